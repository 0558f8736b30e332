//! Splits of what was measured: published profiles and links.

use std::path::Path;

use layerlab_planners::edge::{
    MeasuredNetwork, MeasuredSplitError, PlacedGroup, Power, Quantity, Side, SplitAlgorithm,
    SplitGoal, SplitLimits, SplitPlan, SplitProblem, Wait, check_split, measured_link,
    refuse_other_phone, split,
};
use layerlab_planners::placement::PackedPlacement;
use layerlab_planners::profile::{layer_times, time_table_of};
use layerlab_profiles::design::Design;
use layerlab_profiles::document::{
    HashedFile, Host, Numerics, Phone, ProcessorKind, Profile, Program,
};
use layerlab_profiles::link::{
    Exchange, LINK_FORMAT, LINK_VERSION, LinkDirection, LinkDocument, LinkFit, LinkHeader,
    LinkKind, LinkMethod, LinkPhone, LinkProvenance, LinkRow, LinkSample, MeasuredFrom, Moved,
    MovedOneWay, PhoneAttached, RequestMethod, ServerTimes, half_width_ns,
};
use layerlab_profiles::summary::Estimate;
use layerlab_profiles::time_model::{ProcessorTimes, TimeModel};
use layerlab_profiles::{Bytes, Nanos, Placement, Segment, SignedNanos};

/// A profile that ships with the repository.
pub(crate) fn published(name: &str) -> Profile {
    let profiles = Path::new(env!("CARGO_MANIFEST_DIR")).join("../profiles/published");
    Profile::read(&profiles.join(name)).expect("a profile")
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

pub(crate) fn link(upload_bps: u64, download_bps: u64, rtt_ns: [i64; 2]) -> LinkDocument {
    let row = |direction, bandwidth_bps, rtt| {
        let estimate = |nanos| Estimate {
            value: SignedNanos::from_nanos(nanos),
            ci95: None,
        };
        LinkRow {
            direction,
            fit: LinkFit {
                bandwidth_bps,
                bandwidth_ci95_bps: None,
                round_trip: estimate(rtt),
                residual_percent: 1.0,
            },
            echo: estimate(rtt),
            samples: 50,
        }
    };
    let program = Program {
        name: "layerlab".to_owned(),
        version: "0.1.0".to_owned(),
    };
    LinkDocument {
        header: LinkHeader {
            format: LINK_FORMAT.to_owned(),
            version: LINK_VERSION,
            name: "lab".to_owned(),
            kind: LinkKind::Wifi,
            carrier: LinkKind::Wifi,
            shape: None,
            server: "a:1".to_owned(),
            method: LinkMethod {
                transfer_bytes: Vec::new(),
                repeats: 10,
                echoes: 200,
                echo_bytes: Bytes::from_bytes(64),
                connections: 1,
                gap_ns: Nanos::ZERO,
                seed: 0,
                requests: None,
            },
            connections: 1,
            provenance: LinkProvenance {
                started_at: String::new(),
                finished_at: String::new(),
                measured_from: MeasuredFrom::Host,
                program,
                server_program: String::new(),
                host: Host {
                    system: String::new(),
                    cpu: String::new(),
                    logical_cores: 2,
                    memory_bytes: Bytes::ZERO,
                },
                phone: None,
            },
        },
        rows: vec![
            row(LinkDirection::Upload, upload_bps, rtt_ns[0]),
            row(LinkDirection::Download, download_bps, rtt_ns[1]),
        ],
        samples: Vec::new(),
        traces: Vec::new(),
    }
}

/// T(L) of a run of layers on one of two processors, everything else being elsewhere.
fn by_time_model(profile: &Profile, processor: &str, first: u32, last: u32) -> u64 {
    let cpu = layer_times(profile, "cpu").expect("whole tables");
    let npu = layer_times(profile, processor).expect("whole tables");
    let kind = match processor {
        "cpu" => ProcessorKind::Cpu,
        _ => ProcessorKind::Accelerator,
    };
    let model = TimeModel::of(vec![
        ProcessorTimes::new(ProcessorKind::Cpu, &cpu),
        ProcessorTimes::new(kind, &npu),
    ]);
    let digits: String = (1..=cpu.len() as u32)
        .map(|layer| {
            if (first..=last).contains(&layer) {
                '1'
            } else {
                '0'
            }
        })
        .collect();
    let placement: Placement = digits.parse().expect("digits");
    let time = model.expect("one model").predict(&placement);
    let time = time.expect("all transfers");
    // Elsewhere is a CPU, which nothing is moved into.
    u64::try_from((time.on(1) + time.transfer).as_nanos()).unwrap_or(0)
}

#[test]
fn a_group_takes_what_the_time_model_says_where_it_is_soonest() {
    let (phone, server) = (
        published("oneplus7/vocnet-mini"),
        published("mate10pro/vocnet-mini"),
    );
    let both = names(&["cpu", "npu"]);
    let network = MeasuredNetwork::new(&phone, &server, [&both, &both]).expect("one model");
    let layers = network.network().layers();
    let groups = network.network().groups();
    assert_eq!(groups.len() as u32, layers * (layers + 1) / 2);
    let mut on = [0, 0];
    for group in groups {
        let (first, last) = (group.segment.first(), group.segment.last());
        let sides = [
            (Side::Phone, &phone, group.phone.map(|cost| cost.time)),
            (Side::Server, &server, group.server),
        ];
        for (side, profile, time) in sides {
            let time = time.expect("both run everything").as_nanos();
            let [cpu, npu] = ["cpu", "npu"].map(|name| by_time_model(profile, name, first, last));
            assert_eq!(time, cpu.min(npu), "{} on the {side}", group.segment);
            let placed = PlacedGroup {
                segment: group.segment,
                side,
            };
            let soonest = network.processor(&placed);
            assert_eq!(soonest, Some(if npu < cpu { "npu" } else { "cpu" }));
            on[usize::from(npu < cpu)] += 1;
        }
    }
    assert!(on[0] > 0 && on[1] > 0, "{on:?} tells nothing");
    // What a cut's frontier holds is what crosses it.
    let crossing: Vec<Bytes> = network
        .network()
        .tensors()
        .iter()
        .map(|it| it.bytes)
        .collect();
    assert_eq!(crossing[0], phone.layers[0].input_bytes);
    let outputs: Vec<Bytes> = phone.layers.iter().map(|it| it.output_bytes).collect();
    assert_eq!(crossing[1..], outputs);
}

/// A cache that layer 3 takes and gives lies beside the cuts, but must be on the side that computes the layer.
#[test]
fn a_cache_is_alive_until_its_layer_takes_it_and_after_that_gave_it() {
    let mut sides = [
        published("oneplus7/yolo-mini"),
        published("mate10pro/yolo-mini"),
    ];
    for side in &mut sides {
        side.layers[2].model_input_bytes = Bytes::from_bytes(1_000);
        side.layers[2].model_output_bytes = Bytes::from_bytes(1_070);
    }
    let [phone, server] = sides;
    let network = MeasuredNetwork::new(&phone, &server, [&names(&["npu", "cpu"]), &[]]);
    let network = network.expect("one model");
    let input = std::iter::once(phone.layers[0].input_bytes);
    let crossing = input.chain(phone.layers.iter().map(|layer| layer.output_bytes));
    let tensors = network.network().tensors().iter();
    for (cut, (tensor, crossing)) in tensors.zip(crossing).enumerate() {
        let beside = if cut < 3 { 1_000 } else { 1_070 };
        assert_eq!(tensor.bytes, crossing + Bytes::from_bytes(beside), "{cut}");
    }
}

#[test]
fn plans_over_measured_links_add_up_and_are_no_worse_than_their_baselines() {
    let (phone, server) = (
        published("oneplus7/yolo-mini"),
        published("mate10pro/yolo-mini"),
    );
    let network = MeasuredNetwork::new(&phone, &server, [&names(&["npu", "cpu"]), &[]]);
    let network = network.expect("one model");
    let mut patterns = Vec::new();
    for mbit in [1, 100, 100_000] {
        let bps = mbit * 1_000_000;
        let over = measured_link(&link(bps, 2 * bps, [300_000, -5]), &network);
        let over = over.expect("both ways");
        // Half a round trip, and what the frames have beside tensors: 67 bytes more up, 22 down.
        let frames = |bytes: u64, bps: u64| Nanos::from_nanos(bytes * 8_000_000_000 / bps);
        let upload = Nanos::from_micros(150) + frames(67, bps);
        assert_eq!(over.upload_wait, Wait::always(upload));
        assert_eq!(over.download_wait, Wait::always(frames(22, 2 * bps)));
        assert_eq!((over.upload_bps, over.download_bps), (bps, 2 * bps));
        let idle = Power::from_microwatts(0);
        let problem = SplitProblem::new(network.network().clone(), &over, idle);
        let problem = problem.expect("moderate costs");
        let goal = SplitGoal {
            minimise: Quantity::Latency,
            limits: SplitLimits::default(),
        };
        let plan = |algorithm| -> SplitPlan {
            let outcome = split(&problem, goal, algorithm).expect("a sensible goal");
            let plan = outcome.plan().expect("no limits").clone();
            let faults = check_split(&plan, problem.network(), &over, idle);
            assert_eq!(faults, [], "{algorithm} at {mbit} Mbit/s");
            plan
        };
        let joint = plan(SplitAlgorithm::Joint);
        for algorithm in [
            SplitAlgorithm::Neurosurgeon,
            SplitAlgorithm::PhoneOnly,
            SplitAlgorithm::ServerOnly,
        ] {
            assert!(joint.cost().latency <= plan(algorithm).cost().latency);
        }
        patterns.push(joint.pattern());
    }
    assert_eq!(
        patterns[0],
        [Side::Phone],
        "a link that is slow is not used"
    );
}

/// A request that uploads the input and downloads the result takes one round trip, which both directions measured.
#[test]
fn a_request_pays_for_one_round_trip() {
    let profile = published("oneplus7/vocnet-mini");
    let network = MeasuredNetwork::new(&profile, &profile, [&[], &[]]).expect("one model");
    let over = measured_link(
        &link(8_000_000, 4_000_000, [20_000_000, 30_000_001]),
        &network,
    );
    let over = over.expect("both ways");
    let problem = SplitProblem::new(network.network().clone(), &over, Power::ZERO);
    let problem = problem.expect("moderate costs");
    let goal = SplitGoal {
        minimise: Quantity::Latency,
        limits: SplitLimits::default(),
    };
    let outcome = split(&problem, goal, SplitAlgorithm::ServerOnly).expect("a sensible goal");
    let plan = outcome.plan().expect("no limits");
    let [input, result] = [
        profile.layers.first().expect("a layer").input_bytes,
        profile.layers.last().expect("a layer").output_bytes,
    ];
    // A byte takes 1 µs up and 2 µs down, those of frames, too.
    let up = 10_000_000 + (67 + input.as_bytes()) * 1_000;
    let down = 15_000_001 + (22 + result.as_bytes()) * 2_000;
    let shares = plan.shares();
    assert_eq!(shares.upload.as_nanos(), up);
    assert_eq!(shares.download.as_nanos(), down);
    assert_eq!(
        plan.cost().latency.as_nanos(),
        up + shares.server.as_nanos() + down
    );
}

/// Transfers of two sizes each way, `spread` more or less than L + S/B.
pub(crate) fn with_samples(mut document: LinkDocument, spread: u64) -> LinkDocument {
    let sizes = [16_384_u64, 1 << 20];
    for row in &document.rows {
        let exchange = Exchange::from(row.direction);
        let round_trip = row.fit.round_trip.value.as_nanos().unsigned_abs();
        for index in 0..12_u32 {
            let size = sizes[index as usize % 2];
            let sending = size * 8_000_000_000 / row.fit.bandwidth_bps;
            let more = [0, 2 * spread, spread][index as usize / 2 % 3];
            document.samples.push(LinkSample {
                exchange,
                index,
                connection: 0,
                bytes: Bytes::from_bytes(size),
                started: Nanos::ZERO,
                duration: Nanos::from_nanos(round_trip + sending + more),
                server: ServerTimes::default(),
            });
        }
    }
    document
}

fn half_width(interval: Option<(Nanos, Nanos)>) -> f64 {
    let (low, high) = interval.expect("an interval");
    (high - low).as_nanos() as f64 / 2.0
}

#[test]
fn a_plan_is_as_sure_as_what_it_is_the_sum_of() {
    let (phone, server) = (
        published("oneplus7/vocnet-mini"),
        published("mate10pro/vocnet-mini"),
    );
    let network = MeasuredNetwork::new(&phone, &server, [&[], &[]]).expect("one model");
    let empty = link(50_000_000, 80_000_000, [2_000_000, 3_000_000]);
    let over = measured_link(&empty, &network).expect("both ways");
    let problem = SplitProblem::new(network.network().clone(), &over, Power::ZERO);
    let problem = problem.expect("moderate costs");
    let goal = SplitGoal {
        minimise: Quantity::Latency,
        limits: SplitLimits::default(),
    };
    let plan = |algorithm| -> SplitPlan {
        let outcome = split(&problem, goal, algorithm).expect("a sensible goal");
        outcome.plan().expect("no limits").clone()
    };
    // All layers on one CPU are as sure as T(L).
    let of_all = |profile: &Profile| {
        let table = time_table_of(profile, &["cpu", "npu"]).expect("whole tables");
        let all = PackedPlacement::all_on(0, profile.layers.len()).expect("few layers");
        let (low, high) = table.interval(&all).expect("intervals");
        (high - low).as_nanos() as f64 / 2.0
    };
    let alone = network.intervals(&plan(SplitAlgorithm::PhoneOnly), &empty);
    assert!((half_width(alone.phone) - of_all(&phone)).abs() <= 1.0);
    assert_eq!(alone.all, alone.phone, "nothing crosses");
    assert_eq!(half_width(alone.link), 0.0);
    let there = plan(SplitAlgorithm::ServerOnly);
    let unknown = network.intervals(&there, &empty);
    assert_eq!((unknown.all, unknown.link), (None, None));
    let mut widths = Vec::new();
    for spread in [10_000, 1_000_000] {
        let measured = with_samples(empty.clone(), spread);
        let sure = network.intervals(&there, &measured);
        assert!((half_width(sure.server) - of_all(&server)).abs() <= 1.0);
        let sum = half_width(sure.link).hypot(half_width(sure.server));
        assert!((half_width(sure.all) - sum).abs() <= 2.0, "{sure:?}");
        let (low, high) = sure.all.expect("an interval");
        assert!((low..=high).contains(&there.cost().latency), "{sure:?}");
        let half = |bytes: Bytes| MovedOneWay {
            round_trips: 0.5,
            bytes: bytes.as_bytes() as f64,
        };
        let (first, last) = (&phone.layers[0], phone.layers.last().expect("a layer"));
        let moved = Moved {
            upload: half(first.input_bytes),
            download: half(last.output_bytes),
            small_round_trips: 0.0,
        };
        let both = half_width_ns(&measured.samples, 1, &moved).expect("enough");
        assert!((half_width(sure.link) - both).abs() <= 2.0);
        widths.push(half_width(sure.link));
    }
    assert!(widths[0] < widths[1] / 10.0, "{widths:?}");
}

#[test]
fn groups_that_were_measured_by_themselves_take_what_they_took() {
    let phone = published("oneplus7/vocnet-mini");
    let mut server = published("mate10pro/vocnet-mini");
    let layers = server.header.model.layers;
    let npu = [&[][..], &names(&["npu"])];
    let added = MeasuredNetwork::new(&phone, &server, npu).expect("one model");
    // As if all of the measured segments were all that there are, and each had been timed in five visits.
    for measurement in &mut server.header.measurements {
        measurement.design = Design::Grouped;
        measurement.visits = Some(5);
    }
    let measured = MeasuredNetwork::new(&phone, &server, npu).expect("one model");
    let cost = |network: &MeasuredNetwork, segment: Segment| {
        let group = network
            .network()
            .groups()
            .iter()
            .find(|it| it.segment == segment);
        group.expect("every group").server.expect("it runs there")
    };
    let of_npu = server.segments.iter().filter(|row| row.processor == "npu");
    let mut rows: Vec<_> = of_npu.collect();
    assert!(rows.len() > 2 * layers as usize, "{}", rows.len());
    for row in &rows {
        assert_eq!(cost(&measured, row.segment), row.summary.median);
    }
    rows.retain(|row| cost(&added, row.segment) != row.summary.median);
    assert!(
        !rows.is_empty(),
        "an estimate of all segments is not their medians"
    );
    let is_measured = |segment| server.segments.iter().any(|row| row.segment == segment);
    let all = (1..=layers).flat_map(|first| (first..=layers).map(move |last| (first, last)));
    let mut segments = all.filter_map(|(first, last)| Segment::new(first, last).ok());
    let other = segments
        .find(|&segment| !is_measured(segment))
        .expect("one");
    assert_eq!(cost(&measured, other), cost(&added, other));

    // The whole on the server: a visit's median differs from the truth by the visit's own error, and that of the mean of five.
    let over = measured_link(&link(1 << 40, 1 << 40, [0, 0]), &measured).expect("both ways");
    let problem = SplitProblem::new(measured.network().clone(), &over, Power::ZERO);
    let problem = problem.expect("moderate costs");
    let goal = SplitGoal {
        minimise: Quantity::ServerTime,
        limits: SplitLimits::default(),
    };
    let there = split(&problem, goal, SplitAlgorithm::ServerOnly).expect("a sensible goal");
    let there = there.plan().expect("no limits").clone();
    let empty = link(1 << 40, 1 << 40, [0, 0]);
    let sure = measured.intervals(&there, &with_samples(empty, 1_000));
    let [group] = there.groups() else {
        panic!("{:?}", there.groups());
    };
    let row = server
        .segments
        .iter()
        .find(|row| row.segment == group.segment && row.processor == "npu");
    let published = half_width(row.expect("the whole").summary.median_ci95);
    assert!(published > 0.0);
    let ratio = half_width(sure.server) / published;
    assert!((ratio - 6.0_f64.sqrt()).abs() < 0.01, "{ratio}");
}

/// Of a tensor that is smaller than all transfers, the round trip is that of the smallest exchanges, in proportion.
#[test]
fn small_tensors_wait_as_the_smallest_exchanges_do() {
    let (phone, server) = (
        published("oneplus7/vocnet-mini"),
        published("mate10pro/vocnet-mini"),
    );
    let network = MeasuredNetwork::new(&phone, &server, [&[], &[]]).expect("one model");
    // A byte takes 1,000 ns up and 500 ns down.
    let mut measured = with_samples(link(8_000_000, 16_000_000, [2_000_000, 3_000_000]), 1_000);
    measured.header.method.transfer_bytes =
        vec![Bytes::from_bytes(20_000), Bytes::from_bytes(10_000)];
    let exchange = |exchange, micros, computed| LinkSample {
        exchange,
        index: 0,
        connection: 0,
        bytes: Bytes::from_bytes(64),
        started: Nanos::ZERO,
        duration: Nanos::from_micros(micros),
        server: ServerTimes {
            compute: Nanos::from_micros(computed),
            ..ServerTimes::default()
        },
    };
    let waits = |measured: &LinkDocument| {
        let over = measured_link(measured, &network).expect("both ways");
        [over.upload_wait, over.download_wait]
    };
    // Frames of 67 and 22 bytes more than transfers have.
    let large = [1_000_000 + 67_000, 1_500_000 + 11_000].map(Nanos::from_nanos);
    assert_eq!(waits(&measured), large.map(Wait::always));

    let echo = exchange(Exchange::Echo, 4_000, 0);
    measured.samples.extend(vec![echo; 7]);
    // 91 bytes in place of 84 up, 84 in place of 136 down, half of all of which is for each way.
    let of_echo = Nanos::from_nanos((4_000_000 + 7_000 - 26_000) / 2);
    let waiting = |smallest| {
        large.map(|large| Wait {
            smallest,
            large,
            large_from: Bytes::from_bytes(10_000),
        })
    };
    assert_eq!(waits(&measured), waiting(of_echo));
    let [upload, _] = waiting(of_echo);
    let at = |bytes| upload.of(Bytes::from_bytes(bytes)).as_nanos();
    assert_eq!(at(0), of_echo.as_nanos());
    let quarter = (3 * of_echo.as_nanos() + upload.large.as_nanos() + 2) / 4;
    assert_eq!(at(2_500), quarter);
    for bytes in [10_000, 10_001, 1 << 30] {
        assert_eq!(at(bytes), upload.large.as_nanos());
    }

    // A request says more than an echo: what the server takes beside what its profile says of the layers belongs to it.
    let request = exchange(Exchange::Request, 9_000, 2_000);
    measured.samples.extend(vec![request; 7]);
    let last = server.header.model.layers;
    let mut requests = RequestMethod {
        count: 7,
        model: "vocnet-mini".to_owned(),
        model_sha256: server.header.model.sha256.clone(),
        first_layer: last,
        last_layer: last,
        processor: "cpu".to_owned(),
        request_bytes: Bytes::from_bytes(100),
        answer_bytes: Bytes::from_bytes(80),
    };
    let tensors = 100_000 + 40_000;
    let beside = |measured: &mut LinkDocument, requests: &RequestMethod| {
        measured.header.method.requests = Some(requests.clone());
        let [upload, download] = waits(measured);
        assert_eq!(upload.smallest, download.smallest);
        2 * upload.smallest.as_nanos()
    };
    let profiled = by_time_model(&server, "cpu", last, last);
    assert!(profiled > 0);
    let found = beside(&mut measured, &requests);
    assert!(
        found.abs_diff(9_000_000 - tensors - profiled) <= 1,
        "{found}"
    );
    // Of another model, or a processor that is not planned with, by the server's own clock.
    let by_clock = 9_000_000 - tensors - 2_000_000;
    requests.processor = "gpu".to_owned();
    assert_eq!(beside(&mut measured, &requests), by_clock);
    requests.processor = "cpu".to_owned();
    requests.model_sha256 = "0".repeat(64);
    assert_eq!(beside(&mut measured, &requests), by_clock);
}

/// Whether both ends have rested when a small tensor crosses is not known.
#[test]
fn an_interval_reaches_to_what_small_tensors_wait_where_the_link_is_awake() {
    let (phone, server) = (
        published("oneplus7/vocnet-mini"),
        published("mate10pro/vocnet-mini"),
    );
    let network = MeasuredNetwork::new(&phone, &server, [&[], &[]]).expect("one model");
    for echo_micros in [4_000, 1_000] {
        let mut measured = with_samples(link(8_000_000, 16_000_000, [2_000_000; 2]), 1_000);
        measured.header.method.transfer_bytes = vec![Bytes::from_bytes(1 << 30)];
        let echo = LinkSample {
            exchange: Exchange::Echo,
            index: 0,
            connection: 0,
            bytes: Bytes::from_bytes(64),
            started: Nanos::ZERO,
            duration: Nanos::from_micros(echo_micros),
            server: ServerTimes::default(),
        };
        measured.samples.extend(vec![echo; 7]);
        let over = measured_link(&measured, &network).expect("both ways");
        let problem = SplitProblem::new(network.network().clone(), &over, Power::ZERO);
        let goal = SplitGoal {
            minimise: Quantity::Latency,
            limits: SplitLimits::default(),
        };
        let outcome = split(
            &problem.expect("moderate costs"),
            goal,
            SplitAlgorithm::ServerOnly,
        );
        let outcome = outcome.expect("a sensible goal");
        let plan = outcome.plan().expect("no limits");
        let small = |wait: Wait| wait.smallest.as_nanos() as f64 - wait.large.as_nanos() as f64;
        let sooner = small(over.upload_wait) + small(over.download_wait);
        assert_eq!(sooner > 0.0, echo_micros == 4_000, "{sooner}");
        let sure = network.intervals(plan, &measured);
        let shares = plan.shares();
        let crossing = shares.upload + shares.download;
        for (value, interval) in [(plan.cost().latency, sure.all), (crossing, sure.link)] {
            let (low, high) = interval.expect("an interval");
            let reaches = value.as_nanos() as f64 * 2.0 - (low + high).as_nanos() as f64;
            // Tensors of a ten-thousandth of a transfer wait nearly as the smallest exchanges.
            assert!(
                (reaches / sooner - 1.0).abs() < 1e-3,
                "{reaches} of {sooner}"
            );
        }
        let (low, high) = sure.server.expect("an interval");
        assert!(
            (low + high)
                .as_nanos()
                .abs_diff(2 * shares.server.as_nanos())
                <= 2
        );
    }
}

#[test]
fn a_link_of_another_phone_is_refused() {
    let mut profile = published("oneplus7/vocnet-mini");
    let mut link = link(1, 1, [0, 0]);
    refuse_other_phone(&profile, &link).expect("nobody knows which phone it was");
    let phone = |serial: &str| Phone {
        serial: serial.to_owned(),
        ..Phone::default()
    };
    link.header.provenance.phone = Some(LinkPhone {
        described: phone("R1"),
        agent: link.header.provenance.program.clone(),
        attached: PhoneAttached::Cable,
        tunnelled: false,
    });
    refuse_other_phone(&profile, &link).expect("nobody knows which phone was profiled");
    profile.header.provenance.phone = Some(phone("R1"));
    refuse_other_phone(&profile, &link).expect("the same");
    profile.header.provenance.phone = Some(phone("R2"));
    let said = refuse_other_phone(&profile, &link)
        .expect_err("another")
        .to_string();
    assert!(
        said.contains("from the phone R1") && said.contains("of the phone R2"),
        "{said}"
    );
}

#[test]
fn what_does_not_belong_together_is_refused_with_its_remedy() {
    let phone = published("oneplus7/vocnet-mini");
    let other = published("mate10pro/yolo-mini");
    let refused = |phone: &Profile, server: &Profile, chosen: [&[String]; 2]| {
        let refused = MeasuredNetwork::new(phone, server, chosen);
        refused.expect_err("no split").to_string()
    };
    let said = refused(&phone, &other, [&[], &[]]);
    assert!(
        said.contains("profile the phone's model on the server"),
        "{said}"
    );
    // Profiles of version 3 do not say that no weights lie beside the model, and later ones do.
    let with_weights = |weights: Option<Vec<HashedFile>>| {
        let mut profile = phone.clone();
        profile.header.model.external_weights = weights;
        profile
    };
    let (old, new) = (with_weights(None), with_weights(Some(Vec::new())));
    for (phone, server) in [(&old, &new), (&new, &old), (&new, &new)] {
        MeasuredNetwork::new(phone, server, [&[], &[]]).expect("one model");
    }
    let weights = HashedFile {
        name: "weights.bin".to_owned(),
        sha256: "ab".repeat(32),
    };
    let said = refused(&new, &with_weights(Some(vec![weights])), [&[], &[]]);
    assert!(said.contains("which is another file"), "{said}");
    let mut resized = phone.clone();
    resized.layers[0].output_bytes = Bytes::from_bytes(1);
    let said = refused(&phone, &resized, [&[], &[]]);
    assert!(said.contains("do not have the same layers"), "{said}");
    let said = refused(&phone, &phone, [&[], &names(&["tpu"])]);
    assert!(
        said.contains("the server's profile has no processor \"tpu\"; it has cpu, npu"),
        "{said}"
    );
    let mut no_cpu = phone.clone();
    no_cpu
        .header
        .processors
        .retain(|it| it.kind != ProcessorKind::Cpu);
    let said = refused(&no_cpu, &phone, [&[], &[]]);
    assert!(said.contains("choose other processors, of npu"), "{said}");
    // A CPU that was measured as an accelerator is as exact as one that was not.
    no_cpu.header.processors[0].numerics = Numerics::F32;
    let network = MeasuredNetwork::new(&phone, &no_cpu, [&[], &[]]).expect("one model");
    let mut one_way = link(1, 1, [0, 0]);
    one_way.rows.truncate(1);
    let refused = measured_link(&one_way, &network);
    assert!(
        matches!(refused, Err(MeasuredSplitError::NoDirection { .. })),
        "{refused:?}"
    );
}
