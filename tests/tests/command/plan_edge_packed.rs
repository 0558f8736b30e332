//! `layerlab plan edge --tensors`: tensors cross packed where they arrive sooner so, or a sentence says why they cannot.
//!
//! What was measured of tensors is written here: what a busy machine takes to pack them is another time in each run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use layerlab_profiles::accuracy::{Metric, Tally};
use layerlab_profiles::document::Profile;
use layerlab_profiles::tensors::{
    CrossingAnswer, LeftOut, PackedRow, TENSORS_FORMAT, TENSORS_VERSION, TensorCodec,
    TensorDescription, TensorsDocument, TensorsHeader, TensorsModel, TensorsSet, Timed, ZeroRow,
};
use layerlab_profiles::{Bytes, Nanos};
use layerlab_tests::{layerlab, output, root, stderr, succeed};
use serde_json::Value;

use super::assert_fails;
use super::plan_edge::link;

const PICTURES: u64 = 12;
const PHONE: &str = "mate10pro/vocnet-mini";
const SERVER: &str = "oneplus7/vocnet-mini";

fn published(name: &str) -> PathBuf {
    root().join("profiles/published").join(name)
}

/// What a codec leaves of a hundred bytes, and how many microseconds packing and unpacking take.
fn planted(codec: TensorCodec) -> (u64, u64, u64) {
    match codec {
        TensorCodec::F32Lz4 => (60, 200, 100),
        _ => (10, 3_000, 1_000),
    }
}

/// What was measured of the tensors of a profile's network: those of its first layers become smaller, and the later the cut, the
/// more pictures are answered wrongly in 8 bits. Published in `folder`.
fn tensors(folder: &Path, profile: &str, change: impl FnOnce(&mut TensorsHeader)) -> PathBuf {
    let profile = Profile::read(&published(profile)).expect("a profile");
    let layers = profile.layers.len() as u32;
    let first = profile.layers.iter().map(|layer| layer.input_bytes).next();
    let outputs = profile.layers.iter().map(|layer| layer.output_bytes);
    let described = first.into_iter().chain(outputs).zip(0..);
    let described = described.map(|(bytes, cut): (Bytes, u32)| TensorDescription {
        tensor: format!("after {cut}"),
        producer_layer: cut,
        consumer_layers: (cut < layers).then_some(cut + 1).into_iter().collect(),
        is_output: cut == layers,
        shape: match cut + 3 > layers {
            true => vec![1, bytes.as_bytes() / 4],
            false => vec![1, 2, bytes.as_bytes() / 8],
        },
        bytes,
        left_out: (cut + 3 > layers).then_some(LeftOut::OneAxis),
    });
    let mut device = profile.header.device.clone();
    // Of a simulated one nothing would be timed.
    device.simulated = false;
    let mut header = TensorsHeader {
        format: TENSORS_FORMAT.to_owned(),
        version: TENSORS_VERSION,
        device,
        processor: profile.header.processors[0].clone(),
        timed: Timed::Device,
        model: TensorsModel {
            name: profile.header.model.name.clone(),
            sha256: profile.header.model.sha256.clone(),
            quantised_sha256: None,
            layers,
        },
        set: TensorsSet {
            name: "scenes".to_owned(),
            sha256: "cd".repeat(32),
            images: PICTURES,
            metric: Metric::TopK { k: 1 },
        },
        codecs: vec![TensorCodec::U8Png, TensorCodec::F32Lz4],
        tensors: described.collect(),
        judged: true,
        seed: 1,
        pictures: PICTURES,
        provenance: profile.header.provenance.clone(),
    };
    change(&mut header);
    let (mut zeros, mut packed, mut answers) = (Vec::new(), Vec::new(), Vec::new());
    for image in 0..PICTURES {
        for tensor in header.compressed() {
            zeros.push(ZeroRow {
                image,
                tensor: tensor.tensor.clone(),
                zeros: 0,
                zero_codes: Some(0),
            });
            packed.extend(header.codecs.iter().map(|&codec| {
                let (of_hundred, pack, unpack) = planted(codec);
                let time = |micros: u64| {
                    let nanos = Nanos::from_nanos(1_000 * micros);
                    (header.timed == Timed::Device).then_some(nanos)
                };
                PackedRow {
                    image,
                    tensor: tensor.tensor.clone(),
                    codec,
                    bytes: Bytes::from_bytes(tensor.bytes.as_bytes() * of_hundred / 100 + image),
                    compress: time(pack),
                    decompress: time(unpack),
                }
            }));
        }
        let judged = header.judged.then(|| header.cuts());
        for cut in judged.into_iter().flat_map(|cuts| {
            let cuts = cuts.into_iter().map(Some);
            std::iter::once(None).chain(cuts)
        }) {
            // In 8 bits one picture less is right at the first cut, two at the second, and so on.
            let is_right = cut.is_none_or(|cut| image > u64::from(cut));
            let tally = Tally {
                hits: u64::from(is_right),
                false_alarms: u64::from(!is_right),
                misses: u64::from(!is_right),
            };
            answers.push(CrossingAnswer { image, cut, tally });
        }
    }
    fs::create_dir_all(folder).expect("room");
    let document = TensorsDocument::new(header, zeros, packed, answers);
    document.write(folder).expect("room");
    folder.to_owned()
}

/// The two sides, a link of so many Mbit/s between them, and what was measured of their tensors.
struct Lab {
    folder: tempfile::TempDir,
    link: PathBuf,
    phone: PathBuf,
    server: PathBuf,
}

impl Lab {
    fn new(megabits: u64) -> Lab {
        let folder = tempfile::tempdir().expect("a folder");
        let place = folder.path();
        Lab {
            link: link(place, megabits),
            phone: tensors(&place.join("phone"), PHONE, |_| {}),
            server: tensors(&place.join("server"), SERVER, |_| {}),
            folder,
        }
    }

    /// All layers on the server, so that the input is uploaded.
    fn plan(&self, options: &[&str]) -> Command {
        let mut command = layerlab();
        command
            .args(["plan", "edge", "--profile"])
            .arg(published(PHONE));
        command.arg("--remote").arg(published(SERVER));
        command.args(["--algorithm", "server-only"]);
        if !options.contains(&"--accuracy") {
            // Faster, but in 8 bits.
            command.args(["--remote-processors", "npu"]);
        }
        command.arg("--link").arg(&self.link).args(options);
        command
    }

    fn packed(&self, codecs: &str, options: &[&str]) -> Command {
        let mut command = self.plan(options);
        command.arg("--tensors").arg(&self.phone);
        command.arg("--remote-tensors").arg(&self.server);
        command.args(["--codecs", codecs]);
        command
    }
}

fn json(command: &mut Command) -> Value {
    serde_json::from_str(&succeed(command.arg("--json"))).expect("JSON")
}

fn number(told: &Value, field: &str) -> u64 {
    told[field]
        .as_u64()
        .unwrap_or_else(|| panic!("{field} of {told}"))
}

#[test]
fn an_input_is_packed_over_a_slow_link_and_what_that_takes_and_costs_is_said() {
    let lab = Lab::new(1);
    let as_it_is = json(&mut lab.plan(&[]));
    assert_eq!(as_it_is["transfers"][0]["codec"], Value::Null);
    for (codecs, chosen) in [
        ("f32-lz4", TensorCodec::F32Lz4),
        ("u8-png,f32-lz4", TensorCodec::U8Png),
    ] {
        let plan = json(&mut lab.packed(codecs, &[]));
        let upload = &plan["transfers"][0];
        assert_eq!(upload["codec"], chosen.name());
        let (of_hundred, pack, unpack) = planted(chosen);
        // The median picture's.
        let bytes = 150_528 * of_hundred / 100;
        let found = number(upload, "bytes");
        assert!((bytes..bytes + PICTURES).contains(&found), "{upload}");
        assert_eq!(number(upload, "unpacked_bytes"), 150_528);
        assert_eq!(number(upload, "pack_ns"), 1_000 * pack);
        assert_eq!(number(upload, "unpack_ns"), 1_000 * unpack);
        assert_eq!(number(&plan, "phone_ns"), 1_000 * pack);
        let parts = ["phone_ns", "upload_ns", "server_ns", "download_ns"];
        let parts: u64 = parts.into_iter().map(|part| number(&plan, part)).sum();
        assert_eq!(parts, number(&plan, "latency_ns"));
        assert!(number(&plan, "latency_ns") < number(&as_it_is, "latency_ns"));
        // What leaves the last layer was left out, and crosses as it is.
        assert_eq!(plan["transfers"][1]["codec"], Value::Null);
        match chosen.is_eight_bit() {
            // One of twelve.
            true => {
                let loss = upload["loss"].as_f64().expect("a loss");
                assert!((loss - 1.0 / 12.0).abs() < 1e-9, "{upload}");
                assert_eq!(number(upload, "loss_pictures"), PICTURES);
            }
            false => assert_eq!(upload["loss"], Value::Null),
        }
    }
    let said = succeed(&mut lab.packed("u8-png", &[]));
    for words in [
        "upload: the input, ",
        "14.7 KiB of 147.0 KiB, packed by u8-png in 3.000 ms and unpacked in 1.000 ms",
        "8 bits at this cut cost 0.0833 (",
        "of the score on 12 pictures of scenes",
    ] {
        assert!(said.contains(words), "`{words}` is missing in: {said}");
    }
    let fast = Lab::new(10_000);
    let said = succeed(&mut fast.packed("u8-png,f32-lz4", &[]));
    assert!(!said.contains("packed by"), "{said}");
}

#[test]
fn a_sweep_packs_where_the_link_is_slow() {
    let lab = Lab::new(1);
    let mut command = layerlab();
    command
        .args(["plan", "edge", "sweep", "--profile"])
        .arg(published(PHONE));
    command.arg("--remote").arg(published(SERVER));
    command.args([
        "--remote-processors",
        "npu",
        "--steps",
        "9",
        "--round-trip",
        "0s",
    ]);
    command.arg("--tensors").arg(&lab.phone);
    command.arg("--remote-tensors").arg(&lab.server);
    let said = succeed(command.args(["--codecs", "f32-lz4"]));
    let mut table = csv::Reader::from_reader(said.as_bytes());
    let rows: Vec<std::collections::BTreeMap<String, String>> =
        table.deserialize().collect::<Result<_, _>>().expect("rows");
    let packed = rows
        .iter()
        .filter(|row| row["packed_by"].contains("upload f32-lz4"));
    assert!(packed.count() > 0, "{said}");
    for row in &rows {
        let crosses = row["region"] != "phone";
        assert!(crosses || row["packed_by"].is_empty(), "{row:?}");
    }
    // Over the fastest link packing takes longer than it saves.
    assert_eq!(rows[8]["packed_by"], "", "{said}");
}

#[test]
fn what_cannot_be_packed_is_refused_in_a_sentence() {
    let lab = Lab::new(1);
    let place = lab.folder.path();
    let refused = |options: &[&str]| output(&mut lab.packed("u8-png,f32-lz4", options));
    let words = ["planned for the latency alone", "the server time"];
    assert_fails(&refused(&["--server-time", "5ms"]), 3, &words);
    let words = ["u8-png costs was not measured together", "out of --codecs"];
    let accurate = ["--accuracy", "0.5", "--no-cache"];
    let mut joint = lab.packed("u8-png", &accurate);
    assert_fails(&output(&mut joint), 3, &words);
    assert_fails(
        &output(&mut lab.packed("f32-zstd", &[])),
        3,
        &["the phone's tensors were not packed by f32-zstd, but by u8-png, f32-lz4"],
    );
    let mut alone = lab.plan(&[]);
    let alone = output(alone.arg("--tensors").arg(&lab.phone));
    assert_eq!(alone.status.code(), Some(2));
    assert!(
        stderr(&alone).contains("--remote-tensors"),
        "{}",
        stderr(&alone)
    );

    let with = |name: &str, profile: &str, change: &dyn Fn(&mut TensorsHeader)| {
        let phone = tensors(&place.join(name), profile, change);
        let mut command = lab.plan(&["--codecs", "u8-png"]);
        command.arg("--tensors").arg(phone);
        output(command.arg("--remote-tensors").arg(&lab.server))
    };
    let unknown = with("sizes", PHONE, &|header| header.judged = false);
    let words = ["u8-png costs in accuracy is not known", "--sizes-only"];
    assert_fails(&unknown, 3, &words);
    let simulated = with("simulated", PHONE, &|header| {
        header.device.simulated = true;
        header.timed = Timed::No;
    });
    let words = ["packed on a simulated device", "measure them on a real one"];
    assert_fails(&simulated, 3, &words);
    let elsewhere = with("elsewhere", SERVER, &|_| {});
    assert_fails(&elsewhere, 3, &["the phone's tensors were packed on"]);
    let other = with("other", "mate10pro/yolo-mini", &|_| {});
    assert_fails(&other, 3, &["the phone's tensors are of yolo-mini"]);

    let table = lab.phone.join("tensors.csv");
    let text = fs::read_to_string(&table).expect("a table");
    fs::write(&table, text.replace("f32-lz4,12,", "f32-lz4,13,")).expect("room");
    assert_fails(&refused(&[]), 6, &["contradicts itself"]);
    fs::remove_file(&table).expect("it is there");
    assert_fails(&refused(&[]), 3, &["tensors.csv"]);
}
