//! From a published profile, read from disk, to times with intervals and to other people's format.

use std::path::Path;

use layerlab_planners::Set;
use layerlab_planners::export::{Source, dnn_partitioning};
use layerlab_planners::placement::PackedPlacement;
use layerlab_planners::profile::{Pair, accuracy_table, layer_times, time_table};
use layerlab_profiles::design::Design;
use layerlab_profiles::document::{
    Clock, Device, FORMAT, Header, Host, Measured, Measurement, Method, Model, ModelInput,
    Numerics, Processor, ProcessorKind, Profile, Program, Provenance, Sample, VERSION,
};
use layerlab_profiles::soak::Thermal;
use layerlab_profiles::time_model::TimeModel;
use layerlab_profiles::{Bytes, Layer, Nanos, Placement, Segment};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::Value;

const LAYERS: u32 = 8;

/// A profile of a simulated device, its accelerator measured by `design`, its times by `method`.
fn profile(design: Design, method: Method) -> Profile {
    let processor = |name: &str, kind, numerics| Processor {
        name: name.to_owned(),
        kind,
        numerics,
        emulated: false,
        runtime: "simulated".to_owned(),
        runtime_version: "1".to_owned(),
        runtime_options: None,
        runtime_libraries: None,
        memory_bytes: None,
        threads: None,
        pinned_to_cores: None,
    };
    let measurement = |processor: &str, design, method| Measurement {
        processor: processor.to_owned(),
        design,
        samples_per_segment: 9,
        visits: None,
        gap_ns: Nanos::ZERO,
        method,
        seed: 1,
        target: None,
        budget_ns: None,
        sentinel: Some(Segment::whole(LAYERS)),
    };
    let program = |name: &str| Program {
        name: name.to_owned(),
        version: "0.1.0".to_owned(),
    };
    let header = Header {
        format: FORMAT.to_owned(),
        version: VERSION,
        simulated: true,
        emulated: false,
        thermal: Thermal::Cold,
        model: Model {
            name: "chain".to_owned(),
            sha256: "0123456789abcdef".repeat(4),
            external_weights: None,
            quantised: None,
            opset: 13,
            layers: LAYERS,
            inputs: None,
        },
        device: Device {
            name: "planted".to_owned(),
            simulated: true,
            clock: Clock::SimulatedExact,
        },
        processors: vec![
            processor("cpu", ProcessorKind::Cpu, Numerics::F32),
            processor("npu", ProcessorKind::Accelerator, Numerics::F16),
        ],
        measurements: vec![
            measurement("cpu", Design::LayerPass, Method::Median),
            measurement("npu", design, method),
        ],
        provenance: Provenance {
            started_at: "2025-01-31T22:00:00Z".to_owned(),
            finished_at: "2025-01-31T22:00:01Z".to_owned(),
            host_program: program("layerlab"),
            device_program: program("layerlab-agent"),
            run: "r-0001".to_owned(),
            link: "local".to_owned(),
            device_system: "none".to_owned(),
            host: Host {
                system: "none".to_owned(),
                cpu: "none".to_owned(),
                logical_cores: 1,
                memory_bytes: Bytes::from_bytes(1 << 30),
            },
            phone: None,
            fitness: None,
        },
        written_by: None,
    };
    let samples = samples(&header);
    let layers = (1..=LAYERS).map(|number| Layer {
        number,
        name: format!("conv{number}"),
        operators: vec!["Conv".to_owned()],
        parameter_bytes: Bytes::from_bytes(1_000 * u64::from(number)),
        input_bytes: Bytes::from_bytes(5_000),
        output_bytes: Bytes::from_bytes(5_000),
        model_input_bytes: Bytes::ZERO,
        model_output_bytes: Bytes::ZERO,
        shortcuts: Vec::new(),
        additions: 1_000,
        multiplications: 1_000,
    });
    let measured = Measured {
        samples,
        ..Measured::default()
    };
    Profile::build(header, layers.collect(), measured).expect("every segment has samples")
}

fn samples(header: &Header) -> Vec<Sample> {
    let mut random = ChaCha8Rng::seed_from_u64(7);
    let mut samples = Vec::new();
    for measurement in &header.measurements {
        for segment in measurement.design.segments(LAYERS) {
            for index in 0..9 {
                let noise: f64 = random.random_range(0.99..1.01);
                let nanos = planted(&measurement.processor, segment) * noise;
                samples.push(Sample {
                    processor: measurement.processor.clone(),
                    segment,
                    order: 1,
                    block: 0,
                    index: 9 * u64::from(segment.first() * 100 + segment.last()) + index,
                    started: Nanos::from_nanos(index),
                    duration: Nanos::from_nanos(nanos as u64),
                });
            }
        }
    }
    samples
}

fn planted(processor: &str, segment: Segment) -> f64 {
    let layers = segment.first()..=segment.last();
    let compute: f64 = layers.map(|layer| 1e6 * f64::from(layer * 7 % 5 + 1)).sum();
    match processor {
        "npu" => compute + 3e5 * f64::from(segment.first() + segment.last() + 1),
        _ => 15.0 * compute,
    }
}

fn every_combination() -> impl Iterator<Item = Placement> {
    (0..1_u32 << LAYERS)
        .map(|bits| Placement::new((0..LAYERS).map(|layer| bits >> layer & 1 == 1).collect()))
}

#[test]
fn times_are_those_of_the_profiles_own_model_and_have_intervals() {
    for (design, method) in [
        (Design::PrefixSuffix, Method::Differencing),
        (Design::Local, Method::Graph),
    ] {
        let profile = profile(design, method);
        let table = time_table(&profile, Pair::default()).expect("both processors");
        let cpu = layer_times(&profile, "cpu").expect("all layers");
        let npu = layer_times(&profile, "npu").expect("all layers");
        let model = TimeModel::new(&cpu, &npu).expect("of one model");
        for combination in every_combination() {
            let placement = PackedPlacement::of(&combination).expect("few layers");
            let time = table.time(&placement);
            assert_eq!(Ok(time), model.predict(&combination), "{combination}");
            let (low, high) = table.interval(&placement).expect("nine samples");
            assert!(low < time.total() && time.total() < high, "{combination}");
            let truth: f64 = combination
                .npu_runs()
                .map(|run| planted("npu", run))
                .sum::<f64>()
                + (1..=LAYERS)
                    .filter(|&layer| combination.processors()[layer as usize - 1] == 0)
                    .map(|layer| planted("cpu", Segment::single(layer)))
                    .sum::<f64>();
            let error = (time.total().as_nanos() as f64 - truth).abs() / truth;
            assert!(error < 0.05, "{combination}: {error}");
        }
    }
}

#[test]
fn what_a_profile_lacks_is_said_in_a_sentence() {
    let profile = profile(Design::Local, Method::Graph);
    let ask = |pair| {
        time_table(&profile, pair)
            .err()
            .map(|error| error.to_string())
    };
    let unknown = Pair {
        npu: Some("tpu"),
        ..Pair::default()
    };
    assert_eq!(
        ask(unknown).as_deref(),
        Some("the profile has no processor `tpu`; it has cpu, npu")
    );
    let mut no_npu = profile.clone();
    no_npu.header.processors.pop();
    let error = time_table(&no_npu, Pair::default())
        .err()
        .map(|error| error.to_string());
    assert_eq!(
        error.as_deref(),
        Some("the profile has no accelerator; a plan places layers on a CPU and an accelerator")
    );
}

#[test]
fn what_is_said_of_missing_accuracy_is_true_of_the_model() {
    let mut profile = profile(Design::Local, Method::Graph);
    let mut missing = |inputs: Option<&[&[u64]]>| {
        profile.header.model.inputs = inputs.map(|shapes| {
            let named = shapes.iter().enumerate();
            let named = named.map(|(place, shape)| ModelInput {
                name: format!("input{place}"),
                shape: shape.to_vec(),
            });
            named.collect()
        });
        let error = accuracy_table(&profile, Pair::default()).err();
        let error = error.expect("no accuracy");
        assert!(error.is_about_accuracy());
        error.to_string()
    };
    let measure = "measure them with `layerlab profile --set`, or add them with `layerlab evaluate --profile`";
    let alone = "`layerlab plan min-time` without --accuracy plans by time alone";
    let none = "the profile has no measured combinations";
    for image in [[1, 3, 224, 224], [1, 1, 28, 28]] {
        assert_eq!(
            missing(Some(&[&image])),
            format!("{none}; {measure}, or plan without: {alone}")
        );
    }
    let cannot = |what: &str| {
        format!(
            "{none}, and the accuracy of this model cannot be measured: it takes {what}, and evaluation sets hold images; {alone}"
        )
    };
    assert_eq!(missing(Some(&[&[1, 16]])), cannot("`input0` of 1x16"));
    assert_eq!(
        missing(Some(&[&[1, 9, 8, 8]])),
        cannot("`input0` of 1x9x8x8")
    );
    assert_eq!(
        missing(Some(&[&[2, 3, 8, 8]])),
        cannot("`input0` of 2x3x8x8")
    );
    assert_eq!(
        missing(Some(&[&[1, 3, 8, 8], &[1, 3, 8, 8]])),
        cannot("2 inputs")
    );
    assert_eq!(
        missing(None),
        format!(
            "{none}; if the model takes one image, {measure}; of other models accuracy cannot be measured, and {alone}"
        )
    );
}

/// The latency that the format's own model gives to a placement in which each run of NPU layers has an
/// accelerator of its own: nodes run one after the other, and an accelerator's call takes what its nodes
/// take and what moves into and out of it.
fn latency(workload: &Value, on_npu: &[bool]) -> f64 {
    let number = |value: &Value| value.as_f64().expect("a number");
    let nodes = workload["nodes"].as_array().expect("a list");
    let placed = |id: usize| id > 0 && on_npu.get(id - 1) == Some(&true);
    let mut total = 0.0;
    for (id, node) in nodes.iter().enumerate() {
        assert_eq!(node["id"], id);
        assert!(!placed(id) || node["supportedOnFpga"] == 1);
        total += number(
            &node[if placed(id) {
                "fpgaLatency"
            } else {
                "cpuLatency"
            }],
        );
    }
    for edge in workload["edges"].as_array().expect("a list") {
        let end = |name: &str| edge[name].as_u64().expect("an id") as usize;
        if placed(end("sourceId")) != placed(end("destId")) {
            total += number(&edge["cost"]);
        }
    }
    total
}

#[test]
fn the_exported_workload_gives_the_same_time_to_200_random_combinations() {
    for (design, method) in [
        (Design::PrefixSuffix, Method::Differencing),
        (Design::Local, Method::Graph),
    ] {
        let profile = profile(design, method);
        let table = time_table(&profile, Pair::default()).expect("both processors");
        let source = Source::of(&profile, "cpu", "npu");
        let text = dnn_partitioning(&profile.layers, &table, None, &source).expect("symmetric");
        let workload: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(workload["maxFPGAs"], 4);
        assert_eq!(workload["layerlab"]["source"]["simulated"], true);
        let mut random = ChaCha8Rng::seed_from_u64(1);
        for _ in 0..200 {
            let on_npu: Vec<bool> = (0..LAYERS).map(|_| random.random()).collect();
            let placement =
                PackedPlacement::of(&Placement::new(on_npu.clone())).expect("few layers");
            let ours = table.time(&placement).total().as_nanos() as f64 / 1e6;
            assert!((latency(&workload, &on_npu) - ours).abs() < 1e-6);
        }
    }
}

/// The loss of a single layer is a feature of all others. Profiles of version 3 count those that were drawn as random.
#[test]
fn no_reference_is_learnt_from_nor_judged_by() {
    let published = Path::new(env!("CARGO_MANIFEST_DIR")).join("../profiles/published");
    for (name, train, test) in [
        ("mate10pro/yolo-mini", 250 - 8, 50 - 3),
        ("mate10pro/vocnet-mini", 250 - 11, 50),
    ] {
        let profile = Profile::read(&published.join(name)).expect("a profile");
        let (table, _) = accuracy_table(&profile, Pair::default()).expect("accuracy");
        assert_eq!(
            [Set::Train, Set::Test].map(|set| table.of(set).count()),
            [train, test],
            "{name}"
        );
        let layers = table.layers();
        let is_reference = |placement: &Placement| {
            let on_npu = placement.processors().iter().filter(|on| **on == 1).count();
            [0, 1, layers].contains(&on_npu)
        };
        for row in table.rows() {
            assert_eq!(row.set == Set::Reference, is_reference(&row.combination));
        }
    }
}
