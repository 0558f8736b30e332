//! Splits whose tensors cross packed, as `layerlab tensors measure` publishes what that takes.

use layerlab_planners::edge::{
    MeasuredNetwork, MeasuredSplitError, Packed, Power, SplitAlgorithm, SplitGoal, SplitPlan,
    SplitProblem, check_split, measured_link, split,
};
use layerlab_profiles::accuracy::Metric;
use layerlab_profiles::document::{Phone, Profile};
use layerlab_profiles::link::LinkDocument;
use layerlab_profiles::tensors::{
    LeftOut, TENSORS_FORMAT, TENSORS_VERSION, TensorCodec, TensorDescription, TensorRow,
    TensorsDocument, TensorsHeader, TensorsModel, TensorsSet, Timed,
};
use layerlab_profiles::{Bytes, Nanos};

use crate::measured::{link, published, with_samples};

const CODECS: [TensorCodec; 2] = [TensorCodec::U8Png, TensorCodec::F32Lz4];

/// What a codec leaves of a thousand bytes, and how many microseconds packing and unpacking take on the phone.
fn planted(codec: TensorCodec) -> (u64, u64, u64) {
    match codec {
        TensorCodec::F32Lz4 => (600, 200, 100),
        _ => (100, 3_000, 1_000),
    }
}

/// The tensors of a profile's cuts but for those of the last three, each packed `slower` times as long as is planted, and more or
/// fewer bytes and nanoseconds by a hundredth.
fn tensors(profile: &Profile, slower: u64) -> TensorsDocument {
    let layers = profile.layers.len() as u32;
    let first = profile.layers.iter().map(|layer| layer.input_bytes).next();
    let outputs = profile.layers.iter().map(|layer| layer.output_bytes);
    let sizes = first.into_iter().chain(outputs);
    let described = sizes
        .zip(0..)
        .map(|(bytes, cut): (Bytes, u32)| TensorDescription {
            tensor: format!("after {cut}"),
            producer_layer: cut,
            consumer_layers: (cut < layers).then_some(cut + 1).into_iter().collect(),
            is_output: cut == layers,
            shape: vec![1, 2, bytes.as_bytes() / 8],
            bytes,
            left_out: (cut + 3 > layers).then_some(LeftOut::OneAxis),
        });
    let described: Vec<TensorDescription> = described.collect();
    let compressed = described.iter().filter(|one| one.left_out.is_none());
    let rows = compressed.flat_map(|tensor| {
        CODECS.map(|codec| {
            let (of_thousand, pack, unpack) = planted(codec);
            let bytes = Bytes::from_bytes(tensor.bytes.as_bytes() * of_thousand / 1_000);
            let around = |bytes: u64| (bytes * 99 / 100, bytes * 101 / 100);
            let (low, high) = around(bytes.as_bytes());
            let ends = (Bytes::from_bytes(low), Bytes::from_bytes(high));
            let time = |micros: u64| {
                let nanos = micros * 1_000 * slower;
                let (low, high) = around(nanos);
                let ends = (Nanos::from_nanos(low), Nanos::from_nanos(high));
                Some((Nanos::from_nanos(nanos), Some(ends)))
            };
            TensorRow {
                tensor: tensor.clone(),
                codec,
                pictures: 12,
                bytes,
                bytes_ci95: Some(ends),
                bytes_range: ends,
                ratio_to_8_bits: 1.0,
                zero_share: 0.5,
                zero_code_share: None,
                compress: time(pack),
                decompress: time(unpack),
            }
        })
    });
    let rows = rows.collect();
    TensorsDocument {
        header: TensorsHeader {
            format: TENSORS_FORMAT.to_owned(),
            version: TENSORS_VERSION,
            device: profile.header.device.clone(),
            processor: profile.header.processors[0].clone(),
            timed: Timed::Device,
            model: TensorsModel {
                name: profile.header.model.name.clone(),
                sha256: profile.header.model.sha256.clone(),
                quantised_sha256: None,
                layers,
            },
            set: TensorsSet {
                name: "set".to_owned(),
                sha256: "cd".repeat(32),
                images: 12,
                metric: Metric::TopK { k: 1 },
            },
            codecs: CODECS.to_vec(),
            tensors: described,
            judged: false,
            seed: 1,
            pictures: 12,
            provenance: profile.header.provenance.clone(),
        },
        zeros: Vec::new(),
        packed: Vec::new(),
        answers: Vec::new(),
        tensors: rows,
        crossings: Vec::new(),
    }
}

struct Beside {
    phone: Profile,
    server: Profile,
    on_phone: TensorsDocument,
    on_server: TensorsDocument,
}

/// A server that packs and unpacks twice as slowly as the phone, so that the two are told apart.
fn beside() -> Beside {
    let (phone, server) = (
        published("mate10pro/vocnet-mini"),
        published("oneplus7/vocnet-mini"),
    );
    Beside {
        on_phone: tensors(&phone, 1),
        on_server: tensors(&server, 2),
        phone,
        server,
    }
}

impl Beside {
    fn plain(&self) -> MeasuredNetwork {
        let on_server = ["npu".to_owned()];
        MeasuredNetwork::new(&self.phone, &self.server, [&[], &on_server]).expect("one model")
    }

    fn packed(&self, codecs: &[TensorCodec]) -> Result<MeasuredNetwork, MeasuredSplitError> {
        let profiles = [&self.phone, &self.server];
        let tensors = [&self.on_phone, &self.on_server];
        self.plain().with_packings(profiles, tensors, codecs)
    }

    fn refusal(&self) -> String {
        let refused = self.packed(&CODECS).err();
        refused.expect("it cannot be packed").to_string()
    }
}

fn planned(network: &MeasuredNetwork, link: &LinkDocument) -> SplitPlan {
    let over = measured_link(link, network).expect("both directions");
    let problem = SplitProblem::new(network.network().clone(), &over, Power::ZERO);
    let outcome = split(
        &problem.expect("moderate"),
        SplitGoal::FASTEST,
        SplitAlgorithm::ServerOnly,
    );
    let outcome = outcome.expect("sensible");
    let plan = outcome.plan().expect("the server runs all layers").clone();
    assert_eq!(
        check_split(&plan, network.network(), &over, Power::ZERO),
        []
    );
    plan
}

#[test]
fn each_side_takes_what_it_took_and_what_is_left_out_crosses_as_it_is() {
    let beside = beside();
    let network = beside.packed(&CODECS).expect("they belong together");
    let network = network.network();
    for (tensor, packings) in network.tensors().iter().zip(network.packings()) {
        if tensor.producer + 3 > network.layers() {
            assert_eq!(packings, &[]);
            continue;
        }
        assert_eq!(packings.len(), CODECS.len());
        for packing in packings {
            let (of_thousand, pack, unpack) = planted(packing.codec);
            let bytes = Bytes::from_bytes(tensor.bytes.as_bytes() * of_thousand / 1_000);
            let packed = |pack: u64, unpack: u64| Packed {
                bytes,
                pack: Nanos::from_nanos(1_000 * pack),
                unpack: Nanos::from_nanos(1_000 * unpack),
            };
            assert_eq!(packing.upload, packed(pack, 2 * unpack));
            assert_eq!(packing.download, packed(2 * pack, unpack));
        }
    }
    // A cut of which one tensor was not compressed has no packing.
    let mut fewer = beside;
    fewer
        .on_server
        .tensors
        .retain(|row| row.tensor.producer_layer != 2);
    let network = fewer.packed(&CODECS).expect("they belong together");
    assert_eq!(network.network().packings()[2], []);
    assert_eq!(network.network().packings()[1].len(), CODECS.len());
}

#[test]
fn a_tensor_is_packed_by_what_has_it_there_first_and_only_over_a_link_that_is_slow_enough() {
    let beside = beside();
    let network = beside.packed(&CODECS).expect("they belong together");
    let input = &network.network().tensors()[0];
    for (megabits, expected) in [
        (1, Some(TensorCodec::U8Png)),
        (300, Some(TensorCodec::F32Lz4)),
        (10_000, None),
    ] {
        let over = link(megabits * 1_000_000, megabits * 1_000_000, [100_000; 2]);
        let plan = planned(&network, &over);
        let upload = plan.transfers()[0];
        assert_eq!(upload.codec, expected, "{megabits} Mbit/s");
        let unpacked = planned(&beside.plain(), &over);
        let (before, after) = (unpacked.cost().latency, plan.cost().latency);
        let Some(codec) = expected else {
            assert_eq!(before, after);
            continue;
        };
        let (of_thousand, pack, unpack) = planted(codec);
        let bytes = input.bytes.as_bytes();
        let fewer = bytes - bytes * of_thousand / 1_000;
        let saved = fewer * 8_000 / megabits - 1_000 * (pack + 2 * unpack);
        let off = (before - after).as_nanos().abs_diff(saved);
        assert!(
            off <= 2,
            "{before} became {after}, {saved} ns were to be saved"
        );
    }
}

#[test]
fn a_plan_is_as_sure_as_its_packed_bytes_and_times_are() {
    let beside = beside();
    let network = beside.packed(&CODECS).expect("they belong together");
    let over = with_samples(link(2_000_000, 2_000_000, [100_000; 2]), 0);
    let half_width = |ends: Option<(Nanos, Nanos)>| {
        let (low, high) = ends.expect("it has an interval");
        (high - low).as_nanos() as f64 / 2.0
    };
    let plan = planned(&network, &over);
    let found = network.intervals(&plan, &over);
    let as_it_is = beside
        .plain()
        .intervals(&planned(&beside.plain(), &over), &over);
    let (_, pack, unpack) = planted(TensorCodec::U8Png);
    // A hundredth of what the phone takes to pack; nothing else runs there.
    assert!((half_width(found.phone) - 10.0 * pack as f64).abs() <= 1.0);
    // The server's layers, and a hundredth of what unpacking takes there.
    let layers = half_width(as_it_is.server);
    let expected = layers.hypot(10.0 * 2.0 * unpack as f64);
    assert!((half_width(found.server) - expected).abs() <= 2.0);
    // A hundredth of the bytes more or less; what the samples leave unsure of the link comes on top.
    let bytes = network.network().packings()[0][0].upload.bytes.as_bytes();
    let sizes = bytes as f64 / 100.0 * 8e9 / over.rows[0].fit.bandwidth_bps as f64;
    let link = half_width(found.link);
    assert!(
        link >= sizes * 0.99 && link <= sizes * 1.2,
        "{link}, {sizes}"
    );
}

#[test]
fn tensors_that_do_not_belong_to_the_profiles_are_refused_with_the_remedy() {
    let mut other = beside();
    other.on_phone.header.model.sha256 = "00".repeat(32);
    let said = other.refusal();
    assert!(
        said.contains("the phone's tensors are of vocnet-mini"),
        "{said}"
    );
    assert!(
        said.contains("measure the tensors of the profiles' model"),
        "{said}"
    );

    let mut elsewhere = beside();
    elsewhere.on_server.header.device.name = "another".to_owned();
    let said = elsewhere.refusal();
    assert!(
        said.contains("the server's tensors were packed on another"),
        "{said}"
    );

    let mut twin = beside();
    let phone = |serial: &str| {
        Some(Phone {
            serial: serial.to_owned(),
            ..Phone::default()
        })
    };
    twin.phone.header.provenance.phone = phone("one");
    twin.on_phone.header.provenance.phone = phone("two");
    let said = twin.refusal();
    assert!(said.contains("measure the tensors there"), "{said}");

    let mut simulated = beside();
    simulated.on_phone.header.timed = Timed::No;
    let said = simulated.refusal();
    assert!(said.contains("nothing was timed"), "{said}");

    for change in [
        (|header| header.seed = 2) as fn(&mut TensorsHeader),
        |header| header.pictures = 11,
        |header| header.set.sha256 = "ef".repeat(32),
    ] {
        let mut others = beside();
        change(&mut others.on_server.header);
        let said = others.refusal();
        assert!(
            said.contains("the phone's tensors are of 12 pictures of set (cdcdcdcd) that the seed 1 drew, and the server's of 1")
                && said.contains("measure both with the same --set, --pictures and --seed"),
            "{said}"
        );
    }

    let mut without = beside();
    without.on_server.header.codecs = vec![TensorCodec::U8];
    let said = without.refusal();
    assert!(
        said.contains("were not packed by u8-png, but by u8;"),
        "{said}"
    );
    let remedied = beside();
    assert!(remedied.packed(&CODECS).is_ok());
}
