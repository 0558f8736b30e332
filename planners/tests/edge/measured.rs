//! Splits of what was measured: published profiles and links.

use std::path::Path;

use layerlab_planners::edge::{
    MeasuredNetwork, MeasuredSplitError, PlacedGroup, Power, Quantity, Side, SplitAlgorithm,
    SplitGoal, SplitLimits, SplitPlan, SplitProblem, check_split, measured_link, split,
};
use layerlab_planners::profile::layer_times;
use layerlab_profiles::document::{Host, ProcessorKind, Profile, Program};
use layerlab_profiles::link::{
    LINK_FORMAT, LINK_VERSION, LinkDirection, LinkDocument, LinkFit, LinkHeader, LinkKind,
    LinkMethod, LinkProvenance, LinkRow, MeasuredFrom,
};
use layerlab_profiles::summary::Estimate;
use layerlab_profiles::time_model::{ProcessorTimes, TimeModel};
use layerlab_profiles::{Bytes, Nanos, Placement, SignedNanos};

/// A profile that ships with the repository.
fn published(name: &str) -> Profile {
    let profiles = Path::new(env!("CARGO_MANIFEST_DIR")).join("../profiles/published");
    Profile::read(&profiles.join(name)).expect("a profile")
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

fn link(upload_bps: u64, download_bps: u64, rtt_ns: [i64; 2]) -> LinkDocument {
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
                seed: 0,
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
        let over = measured_link(&link(bps, 2 * bps, [300_000, -5])).expect("both ways");
        assert_eq!(over.round_trip, Nanos::from_micros(300));
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
    let mut one_way = link(1, 1, [0, 0]);
    one_way.rows.truncate(1);
    let refused = measured_link(&one_way);
    assert!(
        matches!(refused, Err(MeasuredSplitError::NoDirection { .. })),
        "{refused:?}"
    );
}
