//! Profiles by least squares: built, checked, derived again by another method, compared.

use crate::common;
use crate::plant;

use common::{CPU, NPU, header};
use layerlab_profiles::check::check;
use layerlab_profiles::compare::{CompareError, Quantity, compare};
use layerlab_profiles::design::Design;
use layerlab_profiles::design::adaptive::held_back;
use layerlab_profiles::document::{BuildError, Header, Method, Profile, Sample};
use layerlab_profiles::{Bytes, Layer, Nanos, Placement, Segment, SignedNanos};
use plant::{Plant, phone, proportional};

const LAYERS: u32 = 8;
const SAMPLES: usize = 40;

fn layers() -> Vec<Layer> {
    (1..=LAYERS)
        .map(|number| Layer {
            number,
            name: format!("layer {number}"),
            operators: vec!["Conv".to_owned()],
            parameter_bytes: Bytes::from_bytes(1),
            input_bytes: Bytes::from_bytes(1),
            output_bytes: Bytes::from_bytes(1),
            model_input_bytes: Bytes::ZERO,
            model_output_bytes: Bytes::ZERO,
            shortcuts: Vec::new(),
            additions: 1,
            multiplications: 1,
        })
        .collect()
}

/// A phone that keeps the papers' assumption: moving costs the same both ways, layers do not fuse.
fn symmetric(seed: u64) -> Plant {
    let mut plant = phone(LAYERS as usize, seed);
    for layer in 1..plant.computing.len() {
        plant.leaving[layer - 1] = plant.entering[layer];
    }
    plant.fusion.fill(0);
    plant
}

/// A model of eight layers on a CPU and an accelerator of which everything is known.
fn header_of(design: Design, method: Method, seed: u64) -> Header {
    let mut header = header();
    header.model.layers = LAYERS;
    header.provenance.finished_at = "2025-01-31T23:00:00Z".to_owned();
    for measurement in &mut header.measurements {
        measurement.samples_per_segment = SAMPLES as u64;
        measurement.sentinel = Some(Segment::whole(LAYERS));
    }
    header.measurements[1].design = design;
    header.measurements[1].method = method;
    header.measurements[1].seed = seed;
    header
}

fn profile(plant: &Plant, design: Design, method: Method, seed: u64) -> Profile {
    let header = header_of(design, method, seed);
    let mut segments: Vec<Segment> = design.segments(LAYERS);
    if design == Design::Adaptive {
        segments.extend(held_back(LAYERS, seed));
    }
    let mut samples = Vec::new();
    let cpu = Plant {
        entering: vec![0; LAYERS as usize],
        computing: vec![30_000_000; LAYERS as usize],
        leaving: vec![0; LAYERS as usize],
        fusion: vec![0; LAYERS as usize],
    };
    let noise = |place| proportional(0.01, 2 * seed + place);
    let of_cpu = cpu.measure(Design::LayerPass.iter(LAYERS), SAMPLES, noise(0));
    let of_npu = plant.measure(segments, SAMPLES, noise(1));
    for (order, (processor, measured)) in (0..).zip([(CPU, of_cpu), (NPU, of_npu)]) {
        let mut index = 0;
        for (segment, times) in measured {
            for duration in times {
                samples.push(Sample {
                    processor: processor.to_owned(),
                    segment,
                    order,
                    block: 0,
                    index,
                    started: Nanos::ZERO,
                    duration,
                });
                index += 1;
            }
        }
    }
    common::one_after_the_other(&mut samples);
    let measured = common::measured_of(&layers(), samples);
    Profile::build(header, layers(), measured).expect("complete")
}

fn names(profile: &Profile) -> Vec<&'static str> {
    check(profile).iter().map(|f| f.rule.name()).collect()
}

/// All of the accelerator's samples of `segment` become as many times as long.
fn stretch(profile: &mut Profile, segment: Segment, factor: f64) {
    for sample in &mut profile.samples {
        if sample.processor == NPU && sample.segment == segment {
            let nanos = sample.duration.as_nanos() as f64 * factor;
            sample.duration = Nanos::from_nanos(nanos as u64);
        }
    }
    let Profile {
        header,
        layers,
        mut samples,
        ..
    } = profile.clone();
    common::one_after_the_other(&mut samples);
    let measured = common::measured_of(&layers, samples);
    *profile = Profile::build(header, layers, measured).expect("still complete");
}

const DESIGNS: [Design; 4] = [
    Design::PrefixSuffix,
    Design::Local,
    Design::Adaptive,
    Design::Grouped,
];

#[test]
fn a_good_profile_of_any_design_raises_no_finding() {
    for design in DESIGNS {
        let profile = profile(&symmetric(1), design, Method::Graph, 1);
        assert_eq!(check(&profile), [], "{design}");
        assert_eq!(profile.cuts.len(), 7);
        // Prefixes and suffixes are just enough to determine the times; nothing is left to test.
        let tested = usize::from(design != Design::PrefixSuffix);
        assert_eq!(profile.additivity.len(), tested, "{design}");
        let dir = tempfile::tempdir().expect("a temporary directory");
        profile.write(dir.path()).expect("written");
        assert_eq!(Profile::read(dir.path()).expect("just written"), profile);
    }
}

/// One way to spoil a good adaptive profile.
type Fault = fn(&mut Profile);

const FAULTS: &[(&str, &str, Fault)] = &[
    ("time-contradiction", "two nanoseconds", |p| {
        let value = &mut p.times[12].time.compute.value;
        *value = *value + SignedNanos::from_nanos(2);
    }),
    ("time-contradiction", "a cut", |p| {
        let value = &mut p.cuts[2].cost.value;
        *value = *value + SignedNanos::from_nanos(2);
    }),
    ("time-contradiction", "a cut's method", |p| {
        p.cuts[2].method = Method::Differencing
    }),
    ("missing-row", "a cut", |p| drop(p.cuts.remove(3))),
    ("duplicate-row", "a cut", |p| {
        p.cuts.insert(0, p.cuts[0].clone())
    }),
    ("row-order", "cuts", |p| p.cuts.swap(0, 1)),
    ("unknown-processor", "a cut", |p| {
        let mut row = p.cuts[0].clone();
        row.processor = "gpu".to_owned();
        p.cuts.insert(0, row);
    }),
    ("additivity-contradiction", "misfit", |p| {
        p.additivity[0].misfit_percent += 0.01
    }),
    ("additivity-contradiction", "none", |p| p.additivity.clear()),
    ("additivity-contradiction", "of another", |p| {
        let mut stray = p.additivity[0].clone();
        stray.processor = "gpu".to_owned();
        p.additivity.push(stray);
    }),
    ("additivity-contradiction", "a segment", |p| {
        p.additivity[0].segments.truncate(1)
    }),
    ("not-additive", "a held-back segment takes longer", |p| {
        let tested = p.additivity[0].segments[0].clone();
        let segment = Segment::new(tested.first_layer, tested.last_layer).expect("a segment");
        stretch(p, segment, 1.2);
    }),
    ("suspect-segments", "the whole model takes longer", |p| {
        stretch(p, Segment::whole(LAYERS), 1.2);
    }),
    ("sample-count", "fewer than said", |p| {
        p.header.measurements[1].samples_per_segment += 1;
    }),
];

#[test]
fn each_fault_raises_exactly_its_finding() {
    for (rule, how, spoil) in FAULTS {
        let mut profile = profile(&symmetric(2), Design::Adaptive, Method::Graph, 2);
        spoil(&mut profile);
        assert_eq!(names(&profile), [*rule], "{rule}: {how}");
    }
}

#[test]
fn a_nanosecond_is_a_contradiction_of_least_squares() {
    let profile = profile(&symmetric(2), Design::Local, Method::Graph, 2);
    let nanosecond = SignedNanos::from_nanos(1);
    let spoil: [fn(&mut Profile, SignedNanos); 3] = [
        |p, by| p.times[12].time.compute.value = p.times[12].time.compute.value + by,
        |p, by| {
            let interval = p.times[12]
                .time
                .compute
                .ci95
                .as_mut()
                .expect("several samples");
            interval.1 = interval.1 + by;
        },
        |p, by| p.cuts[0].cost.value = p.cuts[0].cost.value + by,
    ];
    for (place, spoil) in spoil.iter().enumerate() {
        let mut spoiled = profile.clone();
        spoil(&mut spoiled, nanosecond);
        assert_eq!(names(&spoiled), ["time-contradiction"], "{place}");
    }
}

#[test]
fn an_adaptive_planner_may_have_taken_more_samples_than_said_and_any_segment() {
    let mut profile = profile(&symmetric(3), Design::Grouped, Method::Graph, 3);
    profile.header.measurements[1].design = Design::Adaptive;
    profile.header.measurements[1].samples_per_segment = 10;
    assert_eq!(check(&common::rebuilt(profile)), []);
}

#[test]
fn methods_do_not_apply_to_designs_without_their_segments() {
    let plant = symmetric(1);
    let local = profile(&plant, Design::Local, Method::Graph, 1);
    let error = local
        .rederive(Method::Differencing)
        .expect_err("no prefixes");
    assert!(matches!(error, BuildError::Method { .. }), "{error}");
    let error = local.rederive(Method::Median).expect_err("no layer pass");
    assert!(matches!(error, BuildError::Method { .. }), "{error}");
    let mut spoiled = local.clone();
    spoiled
        .samples
        .retain(|sample| sample.segment.last() != 5 || sample.processor == CPU);
    let error = spoiled
        .rederive(Method::Graph)
        .expect_err("nothing ends with layer 5");
    assert!(matches!(error, BuildError::Graph { .. }), "{error}");
    assert!(error.to_string().contains("ends with layer 5"), "{error}");
}

#[test]
fn a_profile_derived_again_is_the_one_that_the_other_method_had_given() {
    let plant = symmetric(4);
    let papers = profile(&plant, Design::PrefixSuffix, Method::Differencing, 4);
    let ours = profile(&plant, Design::PrefixSuffix, Method::Graph, 4);
    assert_eq!(papers.rederive(Method::Graph), Ok(ours.clone()));
    assert_eq!(ours.rederive(Method::Differencing), Ok(papers.clone()));
    // Without surplus segments both solve the same equations; only medians and biweights differ.
    for (one, other) in papers.times.iter().zip(&ours.times) {
        let (one, other) = (one.time.compute, other.time.compute);
        let (low, high) = one.ci95.expect("an interval");
        assert!(low < other.value && other.value < high, "{one:?} {other:?}");
    }
}

#[test]
fn the_fit_of_a_profile_predicts_combinations_as_its_table_does() {
    let plant = symmetric(5);
    let profile = profile(&plant, Design::Local, Method::Graph, 5);
    let fit = profile.fit(NPU).expect("least squares").expect("connected");
    assert!(profile.fit(CPU).is_none());
    let of = |name: &str| -> Vec<_> {
        let rows = profile.times.iter().filter(|row| row.processor == name);
        rows.map(|row| row.time).collect()
    };
    let (cpu, npu) = (of(CPU), of(NPU));
    let table = layerlab_profiles::time_model::TimeModel::new(&cpu, &npu).expect("one model");
    for text in ["00000000", "11111111", "01101001", "10000001"] {
        let combination: Placement = text.parse().expect("bits");
        let predicted = fit.combination(&cpu, &combination).expect("one model");
        let by_table = table.predict(&combination).expect("one model").total();
        let rounding = (predicted.value - by_table).as_nanos().abs();
        assert!(rounding <= 10, "{text}: {rounding} ns");
        let runs: i64 = combination.npu_runs().map(|run| plant.segment(run)).sum();
        let zeros = combination.processors().iter().filter(|&&p| p == 0).count() as i64;
        let truth = SignedNanos::from_nanos(runs + 30_000_000 * zeros);
        let (low, high) = predicted.ci95.expect("an interval");
        // Twice the width: this asserts that it is right, not how often.
        let margin = high - low;
        assert!(low - margin < truth && truth < high + margin, "{text}");
    }
}

#[test]
fn two_nights_on_one_phone_do_not_differ() {
    let plant = symmetric(6);
    let said = (0..40).filter(|night| {
        let one = profile(&plant, Design::Local, Method::Graph, 1_000 + night);
        let other = profile(&plant, Design::Local, Method::Graph, 2_000 + night);
        let differences = compare(&one, &other).expect("one model");
        // On the CPU 8 compute times; on the NPU 8 compute times and 7 transfers.
        assert_eq!(differences.len(), 8 + 15);
        differences
            .iter()
            .any(layerlab_profiles::compare::Difference::is_significant)
    });
    // Two processors at 5 % each make 4 expected in 40.
    assert!(said.count() <= 10);
}

#[test]
fn a_layer_that_became_slower_is_found_and_no_other() {
    let plant = symmetric(7);
    let mut slower = plant.clone();
    slower.computing[4] += slower.computing[4] / 5 + 400_000;
    let one = profile(&plant, Design::Local, Method::Graph, 7);
    let other = profile(&slower, Design::Local, Method::Graph, 8);
    let differences = compare(&one, &other).expect("one model");
    let found: Vec<(u32, Quantity)> = differences
        .iter()
        .filter(|difference| difference.is_significant())
        .map(|difference| (difference.layer, difference.quantity))
        .collect();
    assert_eq!(found, [(5, Quantity::Compute)]);
    let difference = differences
        .iter()
        .find(|d| d.is_significant())
        .expect("found");
    assert!(difference.difference.value > SignedNanos::ZERO);
    assert_eq!(
        difference.difference.value,
        difference.other.value - difference.one.value
    );
}

#[test]
fn profiles_that_cannot_be_compared_are_refused() {
    let plant = symmetric(8);
    let one = profile(&plant, Design::Local, Method::Graph, 1);
    let mut another = one.clone();
    another.header.model.sha256 = "f".repeat(64);
    let error = compare(&one, &another).expect_err("another model");
    assert!(
        matches!(error, CompareError::DifferentModels { .. }),
        "{error}"
    );

    let mut renamed = one.clone();
    for processor in &mut renamed.header.processors {
        processor.name.push_str(" of another phone");
    }
    let error = compare(&one, &renamed).expect_err("no processor in both");
    assert!(
        matches!(error, CompareError::NoCommonProcessor { .. }),
        "{error}"
    );

    let mut merged = one.clone();
    merged.times[10].time.compute_includes.to_processor = true;
    let error = compare(&one, &merged).expect_err("of another meaning");
    assert!(
        matches!(error, CompareError::DifferentMeaning { layer: 3, .. }),
        "{error}"
    );
}
