//! A good profile raises no finding, and each fault raises exactly its own.

use crate::common;

use std::fs;

use common::{CPU, NPU, ROUNDS_OF_FIRST_ORDER, good_profile, one_after_the_other, rebuilt};
use layerlab_profiles::accuracy::Part;
use layerlab_profiles::check::{Rule, Severity, check, check_directory, check_not_of_the_future};
use layerlab_profiles::derive::Includes;
use layerlab_profiles::design::Design;
use layerlab_profiles::document::{
    Clock, Disturbance, Fitness, HashedFile, Load, Method, Numerics, Profile, ProvedPlacement,
    Rejected, Sample, Unsupported,
};
use layerlab_profiles::{Bytes, MilliCelsius, Nanos, Segment, Shortcut, SignedNanos};

fn names(profile: &Profile) -> Vec<&'static str> {
    check(profile).iter().map(|f| f.rule.name()).collect()
}

fn nanos(nanos: u64) -> Nanos {
    Nanos::from_nanos(nanos)
}

/// The samples of the NPU's layers `first..=last` become `change(sample's place in the segment, duration)`.
fn retime(profile: &mut Profile, first: u32, last: u32, change: impl Fn(u64, u64) -> u64) {
    let segment = Segment::new(first, last).expect("ascending");
    let samples = profile.samples.iter_mut();
    let of_segment = samples.filter(|s| s.processor == NPU && s.segment == segment);
    for (place, sample) in of_segment.enumerate() {
        sample.duration = nanos(change(place as u64, sample.duration.as_nanos()));
    }
}

/// Gives the NPU's segment `to` the samples of its segment `from`, measured in an order of their own.
fn copy_samples(profile: &mut Profile, from: Segment, to: Segment) {
    let samples = profile.samples.iter();
    let of_segment = samples.filter(|s| s.processor == NPU && s.segment == from);
    let copies: Vec<_> = (0..)
        .zip(of_segment)
        .map(|(index, sample)| Sample {
            segment: to,
            order: 9,
            block: 0,
            index,
            ..sample.clone()
        })
        .collect();
    profile.samples.extend(copies);
    let mut loads = profile.loads.iter();
    let load = loads.find(|load| load.processor == NPU && load.segment == from);
    let load = load.cloned();
    profile.loads.push(Load {
        segment: to,
        ..load.expect("it was loaded")
    });
    let mut placements = profile.placements.iter();
    let placed = placements.find(|row| row.processor == NPU && row.segment == from);
    let placed = placed.cloned();
    profile.placements.push(ProvedPlacement {
        segment: to,
        ..placed.expect("it was placed")
    });
    let mut block = profile.blocks[3].clone();
    (block.order, block.number) = (9, 0);
    profile.blocks.push(block);
}

/// Says that a processor cannot run some layers as one unit.
fn cannot_run(profile: &mut Profile, processor: &str, segment: Segment) {
    profile.unsupported.push(Unsupported {
        processor: processor.to_owned(),
        segment,
        reason: "it lacks an operator".to_owned(),
        needed: None,
    });
}

/// Makes the profile one of a simulated device, everywhere.
fn simulate(profile: &mut Profile) {
    profile.header.simulated = true;
    profile.header.device.simulated = true;
    profile.header.device.clock = Clock::SimulatedExact;
}

/// Makes the accelerator one that ran a quantised twin.
fn quantise(profile: &mut Profile) {
    profile.header.processors[1].numerics = Numerics::I8;
    profile.header.model.quantised = Some(HashedFile {
        name: "three-layers-int8".to_owned(),
        sha256: "18".repeat(32),
    });
}

/// Makes the accelerator one that an emulator plays.
fn emulate(profile: &mut Profile) {
    profile.header.emulated = true;
    profile.header.processors[1].emulated = true;
}

/// Changes the proof of where the accelerator's whole model ran.
fn place(profile: &mut Profile, change: impl Fn(&mut ProvedPlacement)) {
    let mut rows = profile.placements.iter_mut();
    change(
        rows.find(|row| row.segment == Segment::whole(3))
            .expect("it was placed"),
    );
}

/// Adds an evaluation of every placement of the three layers on ten images.
fn evaluate(profile: &mut Profile) {
    *profile = common::evaluated(profile.clone());
}

/// Adds a block that was measured in vain, with one sample.
fn reject(profile: &mut Profile) {
    let mut block = profile.blocks[0].clone();
    block.rejection = Some(Rejected::SentinelMoved);
    profile.rejected.push(profile.samples[0].clone());
    profile.blocks[0].number = 1;
    profile.blocks.insert(0, block);
    let samples = profile.samples.iter_mut();
    for sample in samples.filter(|sample| sample.order == 0) {
        sample.block = 1;
    }
}

#[test]
fn a_good_profile_raises_no_finding() {
    assert_eq!(check(&good_profile()), []);
    let mut redone = good_profile();
    reject(&mut redone);
    assert_eq!(check(&redone), []);
    let mut evaluated = good_profile();
    evaluate(&mut evaluated);
    assert_eq!(check(&evaluated), []);
    let mut simulated = good_profile();
    simulate(&mut simulated);
    assert_eq!(check(&simulated), []);
    let mut emulated = good_profile();
    emulate(&mut emulated);
    assert_eq!(check(&emulated), []);
    let mut quantised = good_profile();
    quantise(&mut quantised);
    assert_eq!(check(&quantised), []);
    // ONNX Runtime's CPU, measured as an accelerator, cannot fall back to itself.
    let mut as_accelerator = good_profile();
    let provider = "CPUExecutionProvider";
    let options = &mut as_accelerator.header.processors[1].runtime_options;
    *options = Some([("provider".to_owned(), provider.to_owned())].into());
    for row in &mut as_accelerator.placements {
        row.provider = provider.to_owned();
        row.backend = None;
        row.fallback_refused = false;
    }
    assert_eq!(check(&as_accelerator), []);
}

/// One way to spoil the good profile.
type Fault = fn(&mut Profile);

/// What to spoil, and the one finding that it should raise.
const FAULTS: &[(Rule, &str, Fault)] = &[
    (Rule::SimulatedContradiction, "header", |p| {
        p.header.simulated = true;
    }),
    (Rule::SimulatedContradiction, "device", |p| {
        p.header.device.simulated = true;
    }),
    (Rule::SimulatedContradiction, "clock", |p| {
        p.header.device.clock = Clock::SimulatedReal;
    }),
    (Rule::SimulatedContradiction, "runtime", |p| {
        p.header.processors[1].runtime = "simulated".to_owned();
    }),
    (Rule::SimulatedContradiction, "real clock", |p| {
        simulate(p);
        p.header.device.clock = Clock::Monotonic;
    }),
    (Rule::EmulatedContradiction, "header", |p| {
        p.header.emulated = true;
    }),
    (Rule::EmulatedContradiction, "processor", |p| {
        p.header.processors[1].emulated = true;
    }),
    (Rule::EmulatedContradiction, "simulated, too", |p| {
        simulate(p);
        emulate(p);
    }),
    (Rule::NothingMeasured, "no layers", |p| {
        p.header.model.layers = 0;
        p.header.processors.clear();
        p.header.measurements.clear();
        p.layers.clear();
        p.times.clear();
        p.segments.clear();
        p.samples.clear();
        p.blocks.clear();
        p.loads.clear();
        p.placements.clear();
    }),
    (Rule::NothingMeasured, "no processors", |p| {
        p.header.processors.clear();
        p.header.measurements.clear();
        p.times.clear();
        p.segments.clear();
        p.samples.clear();
        p.blocks.clear();
        p.loads.clear();
        p.placements.clear();
    }),
    (Rule::MalformedField, "short hash", |p| {
        p.header.model.sha256.pop();
    }),
    (Rule::MalformedField, "upper-case hash", |p| {
        p.header.model.sha256 = "A".repeat(64);
    }),
    (Rule::MalformedField, "hash of the quantised twin", |p| {
        quantise(p);
        let twin = p.header.model.quantised.as_mut();
        twin.expect("just given").sha256.pop();
    }),
    (Rule::PlacementUnproved, "no proof", |p| {
        p.placements.retain(|row| row.segment != Segment::whole(3));
    }),
    (Rule::PlacementUnproved, "a layer that answered", |p| {
        evaluate(p);
        let mut samples = p.samples.iter();
        assert!(
            samples.all(|sample| sample.processor != NPU || sample.segment != Segment::single(2))
        );
        p.placements.retain(|row| row.segment != Segment::single(2));
    }),
    (Rule::PlacementUnproved, "no proof at all", |p| {
        p.placements.clear()
    }),
    (Rule::PlacementUnproved, "on the CPU", |p| {
        place(p, |row| row.provider = "CPUExecutionProvider".to_owned());
    }),
    (Rule::PlacementUnproved, "partly on the CPU", |p| {
        let mut row = p.placements[0].clone();
        row.provider = "CPUExecutionProvider".to_owned();
        p.placements.insert(0, row);
    }),
    (Rule::PlacementUnproved, "fallback allowed", |p| {
        place(p, |row| row.fallback_refused = false);
    }),
    (Rule::PlacementUnproved, "no node", |p| {
        place(p, |row| row.nodes = 0);
    }),
    (
        Rule::PlacementUnproved,
        "a backend that was not loaded",
        |p| {
            place(p, |row| row.backend = Some("libQnnGpu.so".to_owned()));
        },
    ),
    (Rule::PlacementUnproved, "the CPU's backend", |p| {
        let libraries = p.header.processors[1].runtime_libraries.as_mut();
        libraries.expect("some").push(HashedFile {
            name: "libQnnCpu.so".to_owned(),
            sha256: "c0".repeat(32),
        });
        place(p, |row| row.backend = Some("libQnnCpu.so".to_owned()));
    }),
    (
        Rule::PlacementUnproved,
        "a provider that nobody named",
        |p| {
            p.header.processors[1].runtime_options = None;
        },
    ),
    (Rule::TwinMissing, "which model", |p| {
        quantise(p);
        p.header.model.quantised = None;
    }),
    (Rule::UnknownProcessor, "placements", |p| {
        let mut row = p.placements[0].clone();
        row.processor = "gpu".to_owned();
        p.placements.insert(0, row);
    }),
    (Rule::UnknownLayer, "placements", |p| {
        let mut row = p.placements[0].clone();
        row.segment = Segment::single(4);
        p.placements.push(row);
    }),
    (Rule::DuplicateRow, "placements", |p| {
        p.placements.insert(0, p.placements[0].clone());
    }),
    (Rule::RowOrder, "placements", |p| p.placements.swap(0, 1)),
    (Rule::MalformedField, "hash of weights", |p| {
        let weights = p.header.model.external_weights.as_mut();
        weights.expect("one file")[0].sha256.push('0');
    }),
    (Rule::MalformedField, "hash of a library", |p| {
        let libraries = p.header.processors[1].runtime_libraries.as_mut();
        libraries.expect("one library")[0].sha256.clear();
    }),
    (Rule::MalformedField, "local time", |p| {
        p.header.provenance.started_at = "2025-01-31T23:00:00+01:00".to_owned();
    }),
    (Rule::MalformedField, "ends before it starts", |p| {
        p.header.provenance.finished_at = "2025-01-31T21:59:59Z".to_owned();
    }),
    (Rule::MalformedField, "an evaluation in local time", |p| {
        evaluate(p);
        let provenance = p.evaluations[0].provenance.as_mut();
        provenance.expect("noted").finished_at = "2025-01-31T23:00:00+01:00".to_owned();
    }),
    (Rule::MalformedField, "hash of an evaluation set", |p| {
        evaluate(p);
        p.evaluations[0].set_sha256.pop();
    }),
    (Rule::MalformedField, "a processor without a name", |p| {
        let nameless = |name: &mut String| {
            if name == NPU {
                name.clear();
            }
        };
        p.header
            .processors
            .iter_mut()
            .for_each(|r| nameless(&mut r.name));
        p.header
            .measurements
            .iter_mut()
            .for_each(|r| nameless(&mut r.processor));
        p.times.iter_mut().for_each(|r| nameless(&mut r.processor));
        p.segments
            .iter_mut()
            .for_each(|r| nameless(&mut r.processor));
        p.samples
            .iter_mut()
            .for_each(|r| nameless(&mut r.processor));
        p.blocks.iter_mut().for_each(|r| nameless(&mut r.processor));
        p.loads.iter_mut().for_each(|r| nameless(&mut r.processor));
        p.placements
            .iter_mut()
            .for_each(|r| nameless(&mut r.processor));
    }),
    (Rule::DuplicateProcessor, "one twice", |p| {
        p.header.processors.push(p.header.processors[1].clone());
        p.header.measurements.push(p.header.measurements[1].clone());
    }),
    (Rule::MeasurementMismatch, "order", |p| {
        p.header.measurements.reverse();
    }),
    (Rule::MeasurementMismatch, "one more", |p| {
        p.header.measurements.push(p.header.measurements[0].clone());
    }),
    (Rule::MeasurementMismatch, "method", |p| {
        p.header.measurements[0].method = Method::Differencing;
        let on_cpu = p.times.iter_mut().filter(|row| row.processor == CPU);
        on_cpu.for_each(|row| row.method = Method::Differencing);
    }),
    (Rule::MeasurementMismatch, "hidden transfers", |p| {
        p.header.processors[0].kind = p.header.processors[1].kind;
    }),
    (Rule::LayerCount, "header", |p| p.header.model.layers = 4),
    (Rule::LayerNumbering, "twice", |p| p.layers[1].number = 1),
    (Rule::LayerNumbering, "from 0", |p| p.layers[0].number = 0),
    (Rule::FrontierMismatch, "output", |p| {
        p.layers[0].output_bytes = Bytes::from_bytes(1);
    }),
    (Rule::FrontierMismatch, "shortcut to the next layer", |p| {
        p.layers[0].shortcuts.push(Shortcut {
            to_layer: 2,
            bytes: Bytes::from_bytes(1),
        });
    }),
    (
        Rule::FrontierMismatch,
        "more beyond the next layer than crosses the cut",
        |p| {
            p.layers[0].shortcuts.push(Shortcut {
                to_layer: 3,
                bytes: Bytes::from_bytes(1_000_000_000),
            });
        },
    ),
    (Rule::UnknownProcessor, "times", |p| {
        let mut row = p.times[0].clone();
        row.processor = "gpu".to_owned();
        p.times.insert(0, row);
    }),
    (Rule::UnknownProcessor, "segments", |p| {
        let mut row = p.segments[0].clone();
        row.processor = "gpu".to_owned();
        p.segments.insert(0, row);
    }),
    (Rule::UnknownProcessor, "samples", |p| {
        let mut row = p.samples[0].clone();
        row.processor = "gpu".to_owned();
        row.order = 9;
        p.samples.insert(0, row);
    }),
    (Rule::UnknownProcessor, "blocks", |p| {
        let mut row = p.blocks[3].clone();
        row.processor = "gpu".to_owned();
        row.order = 9;
        p.blocks.push(row);
    }),
    (Rule::UnknownProcessor, "loads", |p| {
        let mut row = p.loads[0].clone();
        row.processor = "gpu".to_owned();
        p.loads.insert(0, row);
    }),
    (Rule::UnknownProcessor, "unsupported", |p| {
        cannot_run(p, "gpu", Segment::single(1));
    }),
    (Rule::UnknownLayer, "loads", |p| {
        let mut row = p.loads[7].clone();
        row.segment = Segment::single(4);
        p.loads.push(row);
    }),
    (Rule::UnknownLayer, "unsupported", |p| {
        cannot_run(p, NPU, Segment::single(4));
    }),
    (Rule::UnknownLayer, "times, beyond", |p| {
        let mut row = p.times[5].clone();
        row.layer = 4;
        p.times.push(row);
    }),
    (Rule::UnknownLayer, "times, 0", |p| {
        let mut row = p.times[0].clone();
        row.layer = 0;
        p.times.insert(0, row);
    }),
    (Rule::UnknownLayer, "a segment with its samples", |p| {
        let mut row = p.segments[7].clone();
        let copied = row.segment;
        row.segment = Segment::single(4);
        copy_samples(p, copied, row.segment);
        p.segments.push(row);
    }),
    (Rule::DuplicateRow, "times", |p| {
        p.times.insert(0, p.times[0].clone())
    }),
    (Rule::DuplicateRow, "segments", |p| {
        p.segments.insert(0, p.segments[0].clone());
    }),
    (Rule::DuplicateRow, "samples", |p| {
        // The same sample under two segments would be counted twice.
        let (order, index) = (p.samples[0].order, p.samples[0].index);
        p.samples[9].order = order;
        p.samples[9].index = index;
    }),
    (Rule::DuplicateRow, "blocks", |p| {
        p.blocks.insert(0, p.blocks[0].clone())
    }),
    (Rule::DuplicateRow, "rejected samples", |p| {
        reject(p);
        p.rejected.push(p.rejected[0].clone());
    }),
    (Rule::DuplicateRow, "loads", |p| {
        p.loads.insert(0, p.loads[0].clone());
    }),
    (Rule::DuplicateRow, "unsupported", |p| {
        cannot_run(p, CPU, Segment::whole(2));
        p.unsupported.push(p.unsupported[0].clone());
    }),
    (Rule::DuplicateRow, "evaluations", |p| {
        evaluate(p);
        p.evaluations.push(p.evaluations[0].clone());
    }),
    (Rule::RowOrder, "combinations", |p| {
        evaluate(p);
        p.combinations.swap(1, 2);
    }),
    (Rule::RowOrder, "loads", |p| p.loads.swap(0, 1)),
    (Rule::RowOrder, "unsupported", |p| {
        cannot_run(p, CPU, Segment::whole(2));
        cannot_run(p, CPU, Segment::whole(3));
        p.unsupported.swap(0, 1);
        p.header.measurements[0].sentinel = None;
    }),
    (Rule::RowOrder, "times", |p| p.times.swap(0, 1)),
    (Rule::RowOrder, "segments", |p| p.segments.swap(0, 1)),
    (Rule::RowOrder, "samples", |p| p.samples.swap(0, 1)),
    (Rule::RowOrder, "blocks", |p| p.blocks.swap(0, 1)),
    (Rule::BlockContradiction, "no block", |p| {
        p.samples[0].block = 7;
    }),
    (
        Rule::BlockContradiction,
        "a block of another processor",
        |p| {
            p.blocks[0].processor = NPU.to_owned();
        },
    ),
    (
        Rule::BlockContradiction,
        "samples of a rejected block",
        |p| {
            p.blocks[0].rejection = Some(Rejected::Throttling);
        },
    ),
    (
        Rule::BlockContradiction,
        "rejected samples of a good block",
        |p| {
            reject(p);
            p.blocks[0].rejection = None;
        },
    ),
    (Rule::MissingRow, "times", |p| drop(p.times.pop())),
    (Rule::MissingRow, "loads", |p| drop(p.loads.pop())),
    (Rule::MissingRow, "segment with its samples", |p| {
        let row = p.segments.pop().expect("eight rows");
        p.samples
            .retain(|s| (&s.processor, s.segment) != (&row.processor, row.segment));
    }),
    (Rule::MissingRow, "a larger design", |p| {
        p.header.measurements[1].design = Design::Grouped;
    }),
    (Rule::SegmentOutsideDesign, "a segment too many", |p| {
        copy_samples(p, Segment::single(1), Segment::single(2));
        *p = rebuilt(p.clone());
    }),
    (Rule::SampleCount, "one fewer", |p| {
        p.samples.remove(0);
        *p = rebuilt(p.clone());
    }),
    (Rule::SampleCount, "none of a segment", |p| {
        let row = p.segments[0].clone();
        p.samples
            .retain(|s| (&s.processor, s.segment) != (&row.processor, row.segment));
    }),
    (Rule::SampleCount, "header", |p| {
        p.header.measurements[0].samples_per_segment = 300;
    }),
    (Rule::SampleCount, "more visits than there were", |p| {
        p.header.measurements[1].visits = Some(2);
        *p = rebuilt(p.clone());
        p.header.measurements[1].visits = Some(50);
    }),
    (Rule::UnsupportedContradiction, "a layer with times", |p| {
        cannot_run(p, NPU, Segment::single(2));
    }),
    (Rule::UnsupportedContradiction, "a measured segment", |p| {
        cannot_run(p, NPU, Segment::whole(2));
    }),
    (Rule::UnsupportedContradiction, "no reason", |p| {
        cannot_run(p, CPU, Segment::whole(2));
        p.unsupported[0].reason = " ".to_owned();
    }),
    (Rule::UnsupportedContradiction, "sentinel", |p| {
        p.header.measurements[1].sentinel = Some(Segment::whole(4));
    }),
    (Rule::ZeroDuration, "one sample", |p| {
        p.samples[0].duration = Nanos::ZERO;
        *p = rebuilt(p.clone());
    }),
    (Rule::SummaryContradiction, "p95", |p| {
        p.segments[0].summary.p95 = nanos(1);
    }),
    (Rule::SummaryContradiction, "count", |p| {
        p.segments[0].summary.count = 8
    }),
    (
        Rule::SummaryContradiction,
        "interval of a prefix and the times from it",
        |p| {
            p.segments[3].summary.median_ci95 = None;
            for row in p.times.iter_mut().filter(|row| row.processor == NPU) {
                for estimate in [&mut row.time.to_processor, &mut row.time.from_processor] {
                    // S(1,1) is in everything but what lies behind layer 2.
                    if let Some(estimate) = estimate
                        && estimate.value.as_nanos() == 300_000
                    {
                        estimate.ci95 = None;
                    }
                }
                if row.layer < 3 {
                    row.time.compute.ci95 = None;
                }
            }
        },
    ),
    (Rule::HistogramContradiction, "another segment's", |p| {
        p.segments[0].histogram = p.segments[1].histogram.clone();
    }),
    (Rule::HistogramContradiction, "no histogram", |p| {
        p.segments[0].histogram = "histogram".to_owned();
    }),
    (Rule::TimeContradiction, "a nanosecond", |p| {
        let value = &mut p.times[4].time.compute.value;
        *value = *value + SignedNanos::from_nanos(1);
    }),
    (Rule::TimeContradiction, "merged transfers", |p| {
        p.times[5].time.compute_includes = Includes::default();
    }),
    (Rule::TimeContradiction, "method", |p| {
        p.times[0].method = Method::Differencing
    }),
    (Rule::CombinationContradiction, "score", |p| {
        evaluate(p);
        p.combinations[1].score += 0.1;
    }),
    (Rule::CombinationContradiction, "feature", |p| {
        evaluate(p);
        p.combinations[2].features.additions += 1;
    }),
    (Rule::CombinationContradiction, "no baseline", |p| {
        evaluate(p);
        p.combinations.remove(0);
    }),
    (Rule::CombinationContradiction, "no evaluation", |p| {
        evaluate(p);
        p.evaluations.clear();
    }),
    (Rule::CombinationContradiction, "loss", |p| {
        evaluate(p);
        p.combinations[2].loss += 1e-6;
    }),
    (Rule::CombinationContradiction, "end of an interval", |p| {
        evaluate(p);
        p.combinations[2].loss_ci95.1 += 3e-6;
    }),
    (
        Rule::CombinationContradiction,
        "interval of the baseline",
        |p| {
            evaluate(p);
            p.combinations[0].loss_ci95.1 = 1e-6;
        },
    ),
    (Rule::CombinationContradiction, "false alarms", |p| {
        evaluate(p);
        // Hits and misses alone decide the score of none.
        let of_all = p.combinations.last_mut().expect("rows");
        of_all.tally.false_alarms += 1;
        of_all.tally.misses -= 1;
    }),
    (Rule::CombinationContradiction, "answers of a row", |p| {
        evaluate(p);
        p.combinations[1].answers = 9;
        p.evaluations[0].naive_flop -= 9_000_000;
    }),
    (Rule::CombinationContradiction, "answers", |p| {
        evaluate(p);
        p.evaluations[0].answers = 11;
    }),
    (
        Rule::CombinationContradiction,
        "operations one by one",
        |p| {
            evaluate(p);
            p.evaluations[0].naive_flop += 1;
        },
    ),
    (Rule::CombinationContradiction, "operations executed", |p| {
        evaluate(p);
        p.evaluations[0].executed_flop = 89_999_999;
    }),
    (
        Rule::CombinationContradiction,
        "too few random ones asked for",
        |p| {
            evaluate(p);
            p.evaluations[0].samples = 1;
        },
    ),
    (Rule::CombinationContradiction, "other placements", |p| {
        evaluate(p);
        p.evaluations[0].samples = 2;
    }),
    (Rule::CombinationContradiction, "part", |p| {
        evaluate(p);
        p.combinations[3].part = Part::Reference;
    }),
    (Rule::CombinationContradiction, "preprocessing", |p| {
        evaluate(p);
        p.evaluations[0].preprocessing.scale = 0.0;
    }),
    (Rule::RuntimeContradiction, "tract in 16 bits", |p| {
        p.header.processors[0].numerics = Numerics::F16;
    }),
    (Rule::ImplausibleValue, "opset", |p| {
        p.header.model.opset = 1
    }),
    (Rule::ImplausibleValue, "threads", |p| {
        p.header.processors[0].threads = Some(0);
    }),
    (Rule::ImplausibleValue, "a core twice", |p| {
        p.header.processors[0].threads = Some(2);
        p.header.processors[0].pinned_to_cores = Some(vec![3, 3]);
    }),
    (Rule::ImplausibleValue, "fewer cores than threads", |p| {
        p.header.processors[0].threads = Some(2);
        p.header.processors[0].pinned_to_cores = Some(vec![3]);
    }),
    (Rule::ImplausibleValue, "a target of a fixed design", |p| {
        p.header.measurements[1].target = Some(0.02);
    }),
    (Rule::ImplausibleValue, "an hour's gap", |p| {
        p.header.measurements[1].gap_ns = Nanos::from_millis(3_600_000);
    }),
    (Rule::ImplausibleValue, "a sentinel of one layer", |p| {
        p.header.measurements[1].sentinel = Some(Segment::single(1));
    }),
    (Rule::ImplausibleValue, "before there was ONNX", |p| {
        p.header.provenance.started_at = "2014-12-31T23:59:59Z".to_owned();
    }),
    (Rule::ImplausibleValue, "a run that began later", |p| {
        p.header.provenance.run = "20250131T220001Z-6922e5b6".to_owned();
    }),
    (Rule::ImplausibleValue, "cores of the host", |p| {
        p.header.provenance.host.logical_cores = 0;
    }),
    (Rule::ImplausibleValue, "a burning device", |p| {
        let after = &mut p.blocks[0].after.conditions;
        after.temperature_millicelsius = Some(MilliCelsius::from_millicelsius(200_000));
    }),
    (Rule::ImplausibleValue, "a burning skin", |p| {
        let after = &mut p.blocks[0].after.conditions;
        after.skin_temperature_millicelsius = Some(MilliCelsius::from_millicelsius(200_000));
    }),
    (Rule::ImplausibleValue, "a frozen SoC", |p| {
        let after = &mut p.blocks[0].after.conditions;
        after.soc_temperature_millicelsius = Some(MilliCelsius::from_millicelsius(-200_000));
    }),
    (Rule::ImplausibleValue, "a burning battery", |p| {
        let after = &mut p.blocks[0].after.conditions;
        after.battery_temperature_millicelsius = Some(MilliCelsius::from_millicelsius(200_000));
    }),
    (Rule::ImplausibleValue, "a clock of a terahertz", |p| {
        let after = &mut p.blocks[0].after.conditions;
        after
            .frequencies_khz
            .insert("npu".to_owned(), 1_000_000_000);
    }),
    (Rule::NotFit, "measured though it was hot", |p| {
        p.header.provenance.fitness = Some(Fitness {
            overridden: true,
            not_fit: vec!["battery 51 °C > 37 °C".to_owned()],
            not_told: Vec::new(),
        });
    }),
    (Rule::NotFit, "measured while it throttled", |p| {
        p.blocks[0].after.conditions.thermal_status = Some(4);
        p.header.provenance.fitness = Some(Fitness {
            overridden: true,
            ..Fitness::default()
        });
    }),
    (
        Rule::BlockContradiction,
        "throttled where that was not allowed",
        |p| {
            p.blocks[0].after.conditions.thermal_status = Some(4);
            p.header.provenance.fitness = Some(Fitness::default());
        },
    ),
    (Rule::ImplausibleValue, "an overfull battery", |p| {
        p.blocks[0].before.conditions.battery_percent = Some(101);
    }),
    (Rule::ImplausibleValue, "a load of other layers", |p| {
        p.loads[0].memory = p.loads[0].memory + Bytes::from_bytes(1);
    }),
    (Rule::ImplausibleValue, "a load beyond the memory", |p| {
        p.loads[7].memory = Bytes::from_bytes(1 << 30);
    }),
    (Rule::BlockContradiction, "throttled and counts", |p| {
        p.blocks[0].after.conditions.thermal_status = Some(1);
    }),
    (Rule::BlockContradiction, "rejected for nothing", |p| {
        reject(p);
        p.blocks[0].rejection = Some(Rejected::ClockCapChanged);
    }),
    (Rule::BlockContradiction, "a clock cap changed", |p| {
        let before = &mut p.blocks[0].before.conditions;
        before
            .frequency_caps_khz
            .insert("policy0".to_owned(), 1_800_000);
    }),
    (
        Rule::BlockContradiction,
        "crowded more often than timed",
        |p| {
            p.blocks[0].disturbance = Some(Disturbance {
                crowded_samples: 1_000_000,
                stolen_percent: 0,
            });
        },
    ),
    (Rule::BlockContradiction, "more than all time stolen", |p| {
        p.blocks[0].disturbance = Some(Disturbance {
            crowded_samples: 0,
            stolen_percent: 101,
        });
    }),
    (Rule::BlockContradiction, "disturbed by nothing", |p| {
        reject(p);
        p.blocks[0].rejection = Some(Rejected::Disturbed);
        p.blocks[0].disturbance = Some(Disturbance {
            crowded_samples: 0,
            stolen_percent: 5,
        });
    }),
    (Rule::Disturbed, "beside a program that never rests", |p| {
        p.blocks[0].disturbance = Some(Disturbance {
            crowded_samples: 1,
            stolen_percent: 6,
        });
    }),
    (Rule::BlockContradiction, "numbered from 1", |p| {
        p.blocks[0].number = 1;
        let samples = p.samples.iter_mut().filter(|sample| sample.order == 0);
        samples.for_each(|sample| sample.block = 1);
    }),
    (Rule::BlockContradiction, "a block without samples", |p| {
        let mut block = p.blocks[3].clone();
        block.number = 1;
        p.blocks.push(block);
    }),
    (Rule::BlockContradiction, "an index left out", |p| {
        let last = p.samples.iter_mut().filter(|sample| sample.order == 3);
        last.max_by_key(|sample| sample.index).expect("some").index += 1;
    }),
    (
        Rule::BlockContradiction,
        "rejected and not measured again",
        |p| {
            reject(p);
            p.rejected[0].index = 1;
        },
    ),
    (
        Rule::BlockContradiction,
        "a sentinel of another kind",
        |p| {
            p.blocks[0].before.sentinel = nanos(3_300_000);
        },
    ),
    (Rule::ClockContradiction, "two at once", |p| {
        p.samples[1].started = p.samples[1].started + Nanos::from_millis(6);
    }),
    (Rule::ClockContradiction, "a longer gap", |p| {
        p.header.measurements[1].gap_ns = nanos(5_000_001);
    }),
    (
        Rule::ClockContradiction,
        "a longer gap between passes",
        |p| {
            p.header.measurements[0].gap_ns = nanos(5_000_001);
        },
    ),
    (
        Rule::ClockContradiction,
        "a shorter gap by an exact clock",
        |p| {
            simulate(p);
            p.header.measurements[1].gap_ns = nanos(4_999_999);
        },
    ),
    (Rule::ClockContradiction, "more time than there was", |p| {
        p.header.provenance.started_at = "2025-01-31T21:59:00Z".to_owned();
        p.header.provenance.finished_at = "2025-01-31T21:59:00Z".to_owned();
        for sample in &mut p.samples {
            sample.duration = nanos(sample.duration.as_nanos() * 10);
        }
        for block in &mut p.blocks {
            for end in [&mut block.before, &mut block.after] {
                end.sentinel = nanos(end.sentinel.as_nanos() * 10);
            }
        }
        one_after_the_other(&mut p.samples);
        *p = rebuilt(p.clone());
    }),
    (Rule::FewSamples, "only the first order of each", |p| {
        p.samples.retain(|s| s.order % 2 == 0);
        p.blocks.retain(|block| block.order % 2 == 0);
        for measurement in &mut p.header.measurements {
            measurement.samples_per_segment = ROUNDS_OF_FIRST_ORDER;
        }
        *p = rebuilt(p.clone());
    }),
    (
        Rule::LargeSpread,
        "layer 1 alone, now fast, now slow",
        |p| {
            // On the CPU, where the spread of one layer leaves its time still resolved.
            let on_cpu = p
                .samples
                .iter_mut()
                .filter(|s| s.processor == CPU && s.segment == Segment::single(1));
            for (place, sample) in on_cpu.enumerate() {
                sample.duration = nanos(10_000_000 + 1_500_000 * place as u64);
            }
            one_after_the_other(&mut p.samples);
            *p = rebuilt(p.clone());
        },
    ),
    (
        Rule::UnresolvedTimes,
        "a transfer smaller than its noise",
        |p| {
            // t_d(2) = (S(1,1) + S(2,3) - S(1,3)) / 2 becomes 1 µs and stays within some µs.
            retime(p, 1, 1, |_, duration| duration - 598_000);
            *p = rebuilt(p.clone());
        },
    ),
    (
        Rule::UnresolvedTimes,
        "a transfer below zero, within its noise",
        |p| {
            retime(p, 1, 1, |_, duration| duration - 602_000);
            *p = rebuilt(p.clone());
        },
    ),
    (
        Rule::NegativeTimes,
        "a negative transfer beyond its noise",
        |p| {
            retime(p, 1, 1, |_, duration| duration - 1_000_000);
            *p = rebuilt(p.clone());
        },
    ),
];

#[test]
fn each_fault_raises_exactly_its_finding() {
    for (rule, how, spoil) in FAULTS {
        let mut profile = good_profile();
        spoil(&mut profile);
        assert_eq!(names(&profile), [rule.name()], "{rule}: {how}");
    }
}

#[test]
fn every_rule_has_a_fault_that_raises_it() {
    let elsewhere = [
        // These need files and have tests of their own below.
        Rule::FileChanged,
        Rule::OriginContradiction,
        // These need several visits: tests/visit_profiles.rs.
        Rule::SumContradiction,
        Rule::TwoStates,
        Rule::Unsteady,
        Rule::SpeedSteps,
        // These need a device that was kept busy: tests/soak.rs.
        Rule::ThermalContradiction,
        Rule::SoakContradiction,
        // This needs a power meter: tests/energy.rs.
        Rule::EnergyContradiction,
        // These need a least-squares profile: tests/least_squares.rs.
        Rule::AdditivityContradiction,
        Rule::NotAdditive,
        Rule::SuspectSegments,
        // These need probes: tests/probes.rs.
        Rule::MovingContradiction,
        Rule::ProbesRefused,
    ];
    for rule in Rule::ALL.iter().filter(|rule| !elsewhere.contains(rule)) {
        assert!(FAULTS.iter().any(|(tried, ..)| tried == rule), "{rule}");
    }
}

#[test]
fn evaluations_are_sorted_by_their_processors() {
    let mut profile = good_profile();
    evaluate(&mut profile);
    let mut earlier = profile.evaluations[0].clone();
    earlier.accelerator = "gpu".to_owned();
    profile.evaluations.push(earlier);
    assert!(names(&profile).contains(&"row-order"));
    profile.evaluations.swap(0, 1);
    assert!(!names(&profile).contains(&"row-order"));
}

#[test]
fn few_samples_leave_intervals_where_visits_are_told_apart() {
    let sentence = |visits| {
        let mut profile = good_profile();
        profile.samples.retain(|sample| sample.order % 2 == 0);
        profile.blocks.retain(|block| block.order % 2 == 0);
        for measurement in &mut profile.header.measurements {
            measurement.samples_per_segment = ROUNDS_OF_FIRST_ORDER;
            measurement.visits = visits;
        }
        let findings = check(&rebuilt(profile));
        assert_eq!(findings[0].rule, Rule::FewSamples);
        findings[0].sentence.clone()
    };
    assert!(sentence(None).contains("fewer than 6 samples and so no interval"));
    assert!(sentence(Some(1)).contains("fewer than 6 samples, too few for their spread"));
}

#[test]
fn all_cases_of_a_rule_are_one_finding_with_their_number() {
    let mut profile = good_profile();
    for row in &mut profile.segments {
        row.summary.p5 = nanos(1);
    }
    let findings = check(&profile);
    assert_eq!(findings.len(), 1);
    assert!(
        findings[0].sentence.ends_with("(7 more like this)"),
        "{}",
        findings[0]
    );
}

#[test]
fn errors_come_before_warnings() {
    let mut profile = good_profile();
    retime(&mut profile, 1, 1, |_, duration| duration - 1_000_000);
    let mut profile = rebuilt(profile);
    profile.segments[0].histogram.clear();
    let severities: Vec<_> = check(&profile).iter().map(|f| f.severity).collect();
    assert_eq!(severities, [Severity::Error, Severity::Warning]);
}

/// Nothing that a file can say makes the check panic or run forever.
#[test]
fn absurd_headers_are_findings() {
    let mut profile = good_profile();
    profile.header.model.layers = u32::MAX;
    profile.header.measurements[1].design = Design::Grouped;
    profile.header.measurements[1].samples_per_segment = u64::MAX;
    assert!(names(&profile).contains(&"layer-count"));
    for row in &mut profile.times {
        row.layer = u32::MAX;
        row.time.compute.value = SignedNanos::from_nanos(i64::MIN);
    }
    for sample in &mut profile.samples {
        sample.duration = nanos(u64::MAX);
    }
    assert!(names(&profile).contains(&"unknown-layer"));
}

#[test]
fn a_changed_table_is_a_finding_of_the_directory() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    good_profile().write(dir.path()).expect("written");
    assert_eq!(check_directory(dir.path()).expect("read").1, []);

    let path = dir.path().join("layers.csv");
    let text = fs::read_to_string(&path).expect("just written");
    fs::write(&path, text.replace("MaxPool", "AveragePool")).expect("written");
    let (profile, findings) = check_directory(dir.path()).expect("still readable");
    assert_eq!(profile.layers[1].operators, ["AveragePool"]);
    assert_eq!(findings.len(), 1);
    assert_eq!(findings[0].rule, Rule::FileChanged);
    assert!(
        findings[0].sentence.starts_with("layers.csv"),
        "{}",
        findings[0]
    );
    let refused = Profile::read(dir.path()).expect_err("files do not belong together");
    assert!(
        refused.to_string().contains("layers.csv was changed"),
        "{refused}"
    );
}

#[test]
fn what_was_measured_the_day_after_tomorrow_is_a_finding() {
    let at = |now| check_not_of_the_future(&good_profile(), now).map(|finding| finding.rule);
    assert_eq!(at("2025-01-30T22:00:02.25Z"), None);
    assert_eq!(at("2025-01-30T21:59:59Z"), Some(Rule::ImplausibleValue));
}

/// Turning the flags of a simulated profile's header leaves its tables saying what they are.
#[test]
fn a_simulated_profile_cannot_be_declared_real() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let mut profile = good_profile();
    simulate(&mut profile);
    profile.write(dir.path()).expect("written");
    let path = dir.path().join("profile.json");
    let text = fs::read_to_string(&path).expect("just written");
    let text = text
        .replace("\"simulated\": true", "\"simulated\": false")
        .replace("simulated-exact", "monotonic");
    fs::write(&path, text).expect("written");
    let (_, findings) = check_directory(dir.path()).expect("readable");
    let names: Vec<_> = findings.iter().map(|f| f.rule.name()).collect();
    assert_eq!(names[0], "file-changed", "profile.json");
    assert_eq!(names[1..], ["origin-contradiction"; 6]);
    assert!(Profile::read(dir.path()).is_err());
}

/// The same of an emulated processor.
#[test]
fn an_emulated_profile_cannot_be_declared_a_phone_s() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let mut profile = good_profile();
    emulate(&mut profile);
    profile.write(dir.path()).expect("written");
    let path = dir.path().join("profile.json");
    let text = fs::read_to_string(&path).expect("just written");
    let text = text.replace("\"emulated\": true", "\"emulated\": false");
    fs::write(&path, text).expect("written");
    let (_, findings) = check_directory(dir.path()).expect("readable");
    let names: Vec<_> = findings.iter().map(|f| f.rule.name()).collect();
    assert_eq!(names[0], "file-changed", "profile.json");
    assert_eq!(names[1..], ["origin-contradiction"; 6]);
    assert!(Profile::read(dir.path()).is_err());
}

#[test]
fn nobody_is_told_to_let_a_simulated_device_cool_down() {
    let spread = FAULTS.iter().find(|fault| fault.0 == Rule::LargeSpread);
    let (_, _, spoil) = spread.expect("it is among the faults");
    let remedy = |change: Fault| {
        let mut profile = good_profile();
        change(&mut profile);
        spoil(&mut profile);
        let findings = check(&profile);
        let mut spreads = findings.iter().filter(|it| it.rule == Rule::LargeSpread);
        spreads.next().expect("it is found").remedy
    };
    assert!(remedy(|_| {}).contains("cool down"));
    assert!(!remedy(simulate).contains("cool down"));
}
