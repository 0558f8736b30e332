//! A profile written, read and written again is the same, byte for byte; what cannot be read is refused
//! in one sentence.

use crate::common;

use std::fs;
use std::path::Path;

use common::{NPU, evaluated, good_profile, header, layers, measured, samples};
use layerlab_profiles::accuracy::{
    Decoder, Features, Metric, Part, Preprocessing, PriorGrid, Priors, Resize, SsdOutputs, Tally,
};
use layerlab_profiles::derive::{Includes, LayerTime};
use layerlab_profiles::document::{
    Additivity, Block, BlockEnd, CombinationRow, Conditions, CutRow, DIGEST_FILE, Disturbance,
    DocumentError, Evaluation, LayerTimeRow, Load, Method, ModelInput, MovedCut, Moving,
    MovingLine, MovingNumber, MovingRefusal, PROFILE_JSON, ProbeSample, Profile, ProfileDigest,
    ProvedPlacement, Rejected, Sample, SegmentRow, Soaking, TestedSegment, Unsupported,
};
use layerlab_profiles::summary::{Estimate, Summary};
use layerlab_profiles::units::MilliCelsius;
use layerlab_profiles::{Bytes, Layer, Nanos, Probe, Segment, Shortcut, SignedNanos};
use proptest::prelude::*;

fn written(profile: &Profile) -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a temporary directory");
    profile.write(dir.path()).expect("written");
    dir
}

/// Name and bytes of each file, by name.
fn files(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = fs::read_dir(dir)
        .expect("a directory")
        .map(|entry| {
            let entry = entry.expect("an entry");
            let name = entry.file_name().into_string().expect("a plain name");
            (name, fs::read(entry.path()).expect("a file"))
        })
        .collect();
    files.sort();
    files
}

fn assert_round_trip(profile: &Profile) -> Result<(), TestCaseError> {
    let once = written(profile);
    let read = Profile::read(once.path()).expect("just written");
    prop_assert_eq!(&read, profile);
    let twice = written(&read);
    prop_assert_eq!(files(once.path()), files(twice.path()));
    Ok(())
}

#[test]
fn the_documents_of_a_small_profile() {
    for (name, bytes) in good_profile().to_files().expect("plain names") {
        if name == DIGEST_FILE {
            continue;
        }
        let text = String::from_utf8(bytes).expect("documents are UTF-8");
        // The snapshot alone would not notice: it is compared without the space at its ends.
        assert!(text.ends_with('\n') && !text.ends_with("\n\n"), "{name}");
        insta::assert_snapshot!(name, text);
    }
}

/// The rows of an emulated processor say so, those of others do not, and accuracy says so if any of its processors is.
#[test]
fn the_rows_of_an_emulated_processor_say_so() {
    let mut profile = evaluated(good_profile());
    profile.header.emulated = true;
    profile.header.processors[1].emulated = true;
    let mut emulated = 0;
    for (name, bytes) in profile.to_files().expect("plain names") {
        if [PROFILE_JSON, DIGEST_FILE, "layers.csv"].contains(&name) {
            continue;
        }
        let mut table = csv::Reader::from_reader(bytes.as_slice());
        let columns = table.headers().expect("columns").clone();
        let column = |wanted| columns.iter().position(|column| column == wanted);
        let processor = column("processor").or(column("accelerator")).expect("one");
        for row in table.records() {
            let row = row.expect("a row");
            let of_emulated = &row[processor] == NPU;
            let origin = &row[row.len() - 1];
            assert_eq!(
                origin.ends_with("emulated"),
                of_emulated,
                "{name}: {origin}"
            );
            emulated += usize::from(of_emulated);
        }
    }
    assert!(emulated > 50, "{emulated}");
}

/// Between the names of several accelerators is a `+`, which one name may also have.
#[test]
fn an_emulated_accelerator_may_have_a_plus_in_its_name() {
    let name = "npu+dsp";
    let mut profile = evaluated(good_profile());
    profile.header.emulated = true;
    profile.header.processors[1].emulated = true;
    profile.header.processors[1].name = name.to_owned();
    for row in &mut profile.combinations {
        row.accelerator = name.to_owned();
    }
    let files = profile.to_files().expect("plain names");
    let mut combinations = files.into_iter();
    let combinations = combinations.find(|(file, _)| *file == "combinations.csv");
    let bytes = combinations.expect("a table").1;
    let mut table = csv::Reader::from_reader(bytes.as_slice());
    for row in table.records() {
        let row = row.expect("a row");
        assert_eq!(&row[row.len() - 1], "emulated", "{row:?}");
    }
}

#[test]
fn the_documents_of_a_simulated_device_say_so_everywhere() {
    let mut profile = good_profile();
    profile.header.simulated = true;
    for (name, bytes) in profile.to_files().expect("plain names") {
        if name == DIGEST_FILE {
            continue;
        }
        let text = String::from_utf8(bytes).expect("documents are UTF-8");
        let rows = csv::Reader::from_reader(text.as_bytes()).into_records();
        match name {
            "profile.json" => assert!(text.contains("\"simulated\": true")),
            // What the model is does not depend on the device.
            "layers.csv" => {}
            _ => {
                for row in rows {
                    let row = row.expect("a row");
                    let origin = &row[row.len() - 1];
                    assert!(origin.ends_with("simulated"), "{name}: {origin}");
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn samples_in_any_order_build_the_same_profile(
        shuffled in Just(samples(&header())).prop_shuffle()
    ) {
        let built = Profile::build(header(), layers(), measured(shuffled)).expect("complete");
        prop_assert_eq!(built, good_profile());
    }
}

#[test]
fn samples_that_make_no_profile_are_refused_by_name() {
    type Fault = fn(&mut Profile);
    let faults: [(&str, Fault); 7] = [
        ("4 layers", |p| p.header.model.layers = 4),
        ("`gpu`", |p| p.samples[0].processor = "gpu".to_owned()),
        ("`npu` was measured", |p| p.header.measurements.truncate(1)),
        ("layer 3 was not measured", |p| {
            p.samples.retain(|s| s.segment != Segment::single(3));
        }),
        ("layers 2..=3", |p| {
            p.samples
                .retain(|s| (s.segment.first(), s.segment.last()) != (2, 3));
        }),
        ("does not apply", |p| {
            p.header.measurements[1].method = Method::Median
        }),
        ("accelerator", |p| {
            p.header.processors[0].kind = p.header.processors[1].kind
        }),
    ];
    for (part, spoil) in faults {
        let mut profile = good_profile();
        spoil(&mut profile);
        let Profile {
            header,
            layers,
            samples,
            ..
        } = profile;
        let error = Profile::build(header, layers, measured(samples))
            .expect_err(part)
            .to_string();
        assert!(error.contains(part), "{error}");
    }
}

fn any_segment() -> impl Strategy<Value = Segment> {
    (1..=u32::MAX, 1..=u32::MAX)
        .prop_map(|(a, b)| Segment::new(a.min(b), a.max(b)).expect("ascending"))
}

fn any_nanos() -> impl Strategy<Value = Nanos> {
    any::<u64>().prop_map(Nanos::from_nanos)
}

fn any_estimate() -> impl Strategy<Value = Estimate> {
    let signed = || any::<i64>().prop_map(SignedNanos::from_nanos);
    (signed(), prop::option::of((signed(), signed())))
        .prop_map(|(value, ci95)| Estimate { value, ci95 })
}

fn any_layer() -> impl Strategy<Value = Layer> {
    let numbers = (any::<u32>(), prop::array::uniform5(any::<u64>()));
    // Most models have layers without such tensors, and their profiles lack the columns.
    let beside = prop::array::uniform2(prop_oneof![Just(0), any::<u64>()]);
    let shortcut = (any::<u32>(), any::<u64>()).prop_map(|(to_layer, bytes)| Shortcut {
        to_layer,
        bytes: Bytes::from_bytes(bytes),
    });
    let shortcuts = prop::collection::vec(shortcut, 0..2);
    let operators = prop::collection::vec("[^+]{1,8}", 0..4);
    let all = (any::<String>(), operators, numbers, beside, shortcuts);
    all.prop_map(
        |(name, operators, (number, sizes), beside, shortcuts)| Layer {
            number,
            name,
            operators,
            parameter_bytes: Bytes::from_bytes(sizes[0]),
            input_bytes: Bytes::from_bytes(sizes[1]),
            output_bytes: Bytes::from_bytes(sizes[2]),
            model_input_bytes: Bytes::from_bytes(beside[0]),
            model_output_bytes: Bytes::from_bytes(beside[1]),
            shortcuts,
            additions: sizes[3],
            multiplications: sizes[4],
        },
    )
}

fn any_time() -> impl Strategy<Value = LayerTimeRow> {
    let transfers = (
        prop::option::of(any_estimate()),
        prop::option::of(any_estimate()),
    );
    let method = prop::sample::select(vec![
        Method::Robust,
        Method::Median,
        Method::Differencing,
        Method::Graph,
        Method::Probed,
    ]);
    let row = (
        any::<u32>(),
        any::<String>(),
        any_estimate(),
        any::<[bool; 2]>(),
    );
    (row, transfers, method).prop_map(|((layer, processor, compute, merged), transfers, method)| {
        LayerTimeRow {
            layer,
            processor,
            time: LayerTime {
                compute,
                compute_includes: Includes {
                    to_processor: merged[0],
                    from_processor: merged[1],
                },
                to_processor: transfers.0,
                from_processor: transfers.1,
            },
            method,
        }
    })
}

fn any_cut() -> impl Strategy<Value = CutRow> {
    let method = prop::sample::select(vec![Method::Graph, Method::Probed]);
    let row = (any::<u32>(), any::<String>(), any_estimate(), method);
    row.prop_map(|(after_layer, processor, cost, method)| CutRow {
        after_layer,
        processor,
        cost,
        method,
    })
}

/// Why a block does not count, if it does not.
fn any_rejection() -> impl Strategy<Value = Option<Rejected>> {
    prop::option::of(prop::sample::select(vec![
        Rejected::SentinelMoved,
        Rejected::Throttling,
        Rejected::ClockCapChanged,
        Rejected::OtherState,
        Rejected::Disturbed,
    ]))
}

fn any_probe_sample() -> impl Strategy<Value = ProbeSample> {
    let place = (any::<u32>(), any::<u32>(), any::<u64>());
    let probe = (any::<u32>(), any::<u32>(), 1..=3_u32);
    let times = (any_nanos(), any_nanos());
    (any::<String>(), probe, place, times, any_rejection()).prop_map(
        |(processor, (channels, side, layer), (order, block, index), times, rejection)| {
            ProbeSample {
                processor,
                probe: Probe { channels, side },
                layer,
                order,
                block,
                index,
                started: times.0,
                duration: times.1,
                rejection,
            }
        },
    )
}

/// A number with as many decimals as is published.
fn any_decimal(per_unit: f64) -> impl Strategy<Value = f64> {
    any::<i32>().prop_map(move |number| f64::from(number) / per_unit)
}

fn any_moving() -> impl Strategy<Value = Moving> {
    let number = || {
        let ends = prop::option::of((any_decimal(1e9), any_decimal(1e9)));
        (any_decimal(1e9), ends).prop_map(|(value, ends)| MovingNumber {
            value,
            ci95_low: ends.map(|(low, _)| low),
            ci95_high: ends.map(|(_, high)| high),
        })
    };
    let misfit = (any_decimal(1e3), prop::option::of(any_decimal(1e6)));
    let numbers = (number(), number(), number(), number());
    let line = (numbers, misfit).prop_map(|(numbers, (misfit_percent, p_value))| MovingLine {
        fixed_ns: numbers.0,
        in_ns_per_byte: numbers.1,
        out_ns_per_byte: numbers.2,
        ns_per_operation: numbers.3,
        misfit_percent,
        p_value,
    });
    let cut = (any::<u32>(), any::<u64>(), any_estimate(), any_estimate()).prop_map(
        |(after_layer, bytes, inward, outward)| MovedCut {
            after_layer,
            bytes: Bytes::from_bytes(bytes),
            in_ns: inward.value,
            in_ci95_low_ns: inward.ci95.map(|(low, _)| low),
            in_ci95_high_ns: inward.ci95.map(|(_, high)| high),
            out_ns: outward.value,
            out_ci95_low_ns: outward.ci95.map(|(low, _)| low),
            out_ci95_high_ns: outward.ci95.map(|(_, high)| high),
        },
    );
    let refusal = prop::option::of(prop::sample::select(vec![
        MovingRefusal::Incomplete,
        MovingRefusal::NotLinear,
        MovingRefusal::Uncertain,
        MovingRefusal::Implausible,
    ]));
    let counts = (any::<String>(), any::<u64>(), refusal);
    let parts = (prop::option::of(line), prop::collection::vec(cut, 0..3));
    (counts, parts).prop_map(
        |((processor, probe_layers, refusal), (line, cuts))| Moving {
            processor,
            probe_layers,
            refusal,
            line,
            cuts,
        },
    )
}

fn any_evaluation() -> impl Strategy<Value = Evaluation> {
    let metric = prop::sample::select(vec![
        Metric::TopK { k: 5 },
        Metric::MultiLabel { threshold: 0.25 },
        Metric::Detection {
            grid: 7,
            boxes: 2,
            threshold: 0.25,
            suppress_above: 0.5,
            match_at_least: 0.5,
        },
        Metric::Verification { threshold: -1.5 },
        Metric::PixelAccuracy {
            width: 64,
            height: 48,
        },
        Metric::DecodedDetection {
            decoder: Decoder::YoloV5 {
                width: 640,
                height: 480,
            },
            threshold: 0.25,
            suppress_above: 0.45,
            match_at_least: 0.5,
        },
        Metric::DecodedDetection {
            decoder: Decoder::Ssd {
                outputs: SsdOutputs::ScoresFirst,
                priors: Some(Priors {
                    centre_variance: 0.1,
                    size_variance: 0.2,
                    grids: vec![PriorGrid {
                        columns: 19,
                        rows: 19,
                        step: Some([0.0533, 0.0533]),
                        sizes: vec![[0.2, 0.2], [0.25, 0.5]],
                    }],
                }),
            },
            threshold: 0.25,
            suppress_above: 0.45,
            match_at_least: 0.5,
        },
    ]);
    let texts = prop::array::uniform4(any::<String>());
    let numbers = prop::array::uniform5(any::<u64>());
    let shares = (prop::option::of(any_decimal(1e6)), any_decimal(1e3));
    let known = (metric, any::<bool>());
    (texts, numbers, shares, known).prop_map(|(texts, numbers, shares, (metric, noted))| {
        let [cpu, accelerator, set, channels] = texts;
        let [answers, samples, seed, executed_flop, naive_flop] = numbers;
        Evaluation {
            cpu,
            accelerator,
            set,
            set_sha256: "5e".repeat(32),
            preprocessing: Preprocessing {
                resize: if noted {
                    Resize::Stretch
                } else {
                    Resize::Letterbox
                },
                channels,
                mean: vec![shares.1 as f32],
                scale: shares.1 as f32,
            },
            metric,
            answers,
            samples,
            seed,
            stop_at_half_width: shares.0,
            as_runs: false,
            executed_flop,
            naive_flop,
            provenance: noted.then(|| header().provenance),
        }
    })
}

fn any_combination() -> impl Strategy<Value = CombinationRow> {
    let digits = prop::collection::vec(0..10_u8, 1..8);
    let part = prop::sample::select(vec![Part::Train, Part::Test, Part::Reference]);
    let names = (any::<String>(), any::<String>(), digits, part);
    let counts = (any::<u64>(), prop::array::uniform3(any::<u64>()));
    let shares = prop::array::uniform5(any_decimal(1e6));
    let features = (any::<u32>(), prop::array::uniform5(any::<u64>()));
    (names, counts, shares, features).prop_map(|(names, (answers, tally), shares, features)| {
        let digits = names.2.iter().map(u8::to_string).collect::<String>();
        CombinationRow {
            cpu: names.0,
            accelerator: names.1,
            combination: digits.parse().expect("digits"),
            part: names.3,
            answers,
            tally: Tally {
                hits: tally[0],
                false_alarms: tally[1],
                misses: tally[2],
            },
            score: shares[0],
            loss: shares[1],
            loss_ci95: (shares[2], shares[3]),
            features: Features {
                npu_layers: features.0,
                mean_single_loss: shares[4],
                parameters: Bytes::from_bytes(features.1[0]),
                inputs: Bytes::from_bytes(features.1[1]),
                outputs: Bytes::from_bytes(features.1[2]),
                additions: features.1[3],
                multiplications: features.1[4],
            },
        }
    })
}

fn any_additivity() -> impl Strategy<Value = Additivity> {
    // Numbers with as many decimals as are published.
    let shares = (
        0..10_000_000_u32,
        prop::option::of(0..=1_000_000_u32),
        any::<String>(),
    );
    let segment = (any::<u32>(), any::<u32>(), any_nanos(), any_estimate()).prop_map(
        |(first_layer, last_layer, measured_ns, predicted)| TestedSegment {
            first_layer,
            last_layer,
            measured_ns,
            predicted_ns: predicted.value,
            predicted_ci95_low_ns: predicted.ci95.map(|(low, _)| low),
            predicted_ci95_high_ns: predicted.ci95.map(|(_, high)| high),
        },
    );
    (shares, prop::collection::vec(segment, 0..3)).prop_map(
        |((misfit, p_value, processor), segments)| Additivity {
            processor,
            segments,
            misfit_percent: f64::from(misfit) / 1e3,
            p_value: p_value.map(|p| f64::from(p) / 1e6),
            ns_per_passing_byte: p_value.map(|p| MovingNumber {
                value: f64::from(p) / 1e9,
                ci95_low: p.checked_sub(5).map(|low| f64::from(low) / 1e9),
                ci95_high: None,
            }),
        },
    )
}

fn any_row() -> impl Strategy<Value = SegmentRow> {
    let times = prop::array::uniform6(any_nanos());
    let interval = prop::option::of((any_nanos(), any_nanos()));
    let names = (any::<String>(), any::<String>());
    (names, any_segment(), any::<u64>(), times, interval).prop_map(
        |((processor, histogram), segment, count, times, median_ci95)| SegmentRow {
            processor,
            segment,
            summary: Summary {
                count,
                median: times[0],
                median_absolute_deviation: times[1],
                p5: times[2],
                p95: times[3],
                min: times[4],
                max: times[5],
                median_ci95,
            },
            histogram,
        },
    )
}

fn any_sample() -> impl Strategy<Value = Sample> {
    let place = (any::<u32>(), any::<u32>(), any::<u64>());
    (
        any::<String>(),
        any_segment(),
        place,
        any_nanos(),
        any_nanos(),
    )
        .prop_map(
            |(processor, segment, (order, block, index), started, duration)| Sample {
                processor,
                segment,
                order,
                block,
                index,
                started,
                duration,
            },
        )
}

fn any_block_end() -> impl Strategy<Value = BlockEnd> {
    let clocks = || prop::collection::btree_map("[a-z=]{1,8}", any::<u64>(), 0..3);
    let temperature =
        || any::<Option<i64>>().prop_map(|one| one.map(MilliCelsius::from_millicelsius));
    let temperatures = (temperature(), temperature(), temperature(), temperature());
    let conditions = (
        any::<Option<u8>>(),
        temperatures,
        any::<Option<u8>>(),
        any::<Option<bool>>(),
        clocks(),
        clocks(),
    );
    let conditions = conditions.prop_map(
        |(thermal_status, (hottest, skin, soc, battery), percent, charging, caps, clocks)| {
            Conditions {
                thermal_status,
                temperature_millicelsius: hottest,
                skin_temperature_millicelsius: skin,
                soc_temperature_millicelsius: soc,
                battery_temperature_millicelsius: battery,
                battery_percent: percent,
                charging,
                frequency_caps_khz: caps,
                frequencies_khz: clocks,
            }
        },
    );
    (any_nanos(), conditions).prop_map(|(sentinel, conditions)| BlockEnd {
        sentinel,
        conditions,
    })
}

fn any_block() -> impl Strategy<Value = Block> {
    let name = (any::<String>(), any::<u32>(), any::<u32>());
    (
        name,
        any_nanos(),
        any_block_end(),
        any_block_end(),
        any_rejection(),
        prop::option::of((any::<u64>(), any::<u64>())),
    )
        .prop_map(
            |((processor, order, number), rested, before, after, rejection, told)| Block {
                processor,
                order,
                number,
                rested,
                before,
                after,
                rejection,
                disturbance: told.map(|(crowded_samples, stolen_percent)| Disturbance {
                    crowded_samples,
                    stolen_percent,
                }),
            },
        )
}

fn any_unsupported() -> impl Strategy<Value = Unsupported> {
    (any::<String>(), any_segment(), any::<String>()).prop_map(|(processor, segment, reason)| {
        Unsupported {
            processor,
            segment,
            reason,
            needed: None,
        }
    })
}

fn any_load() -> impl Strategy<Value = Load> {
    let numbers = (any_nanos(), any::<u64>(), any::<Option<bool>>());
    let row = (any::<String>(), any_segment(), numbers);
    row.prop_map(|(processor, segment, numbers)| Load {
        processor,
        segment,
        duration: numbers.0,
        memory: Bytes::from_bytes(numbers.1),
        compiled: numbers.2,
    })
}

fn any_placement() -> impl Strategy<Value = ProvedPlacement> {
    let texts = (any::<String>(), any::<String>(), "[a-z].{0,9}");
    let numbers = (any::<u64>(), any::<bool>(), any::<bool>());
    let operators = prop::collection::btree_set("[A-Za-z]{1,9}", 0..3);
    let row = (texts, any_segment(), numbers, operators);
    row.prop_map(|(texts, segment, numbers, operators)| ProvedPlacement {
        processor: texts.0,
        segment,
        provider: texts.1,
        // An empty name is none.
        backend: numbers.2.then_some(texts.2),
        fallback_refused: numbers.1,
        nodes: numbers.0,
        operators,
    })
}

/// Any value of the type, however little sense it makes.
fn any_profile() -> impl Strategy<Value = Profile> {
    let texts = (any::<String>(), any::<String>(), any::<String>());
    let numbers = (any::<bool>(), any::<u64>(), prop::option::of(any::<u64>()));
    let tables = (
        prop::collection::vec(any_layer(), 0..5),
        prop::collection::vec(any_time(), 0..5),
        prop::collection::vec(any_cut(), 0..5),
        prop::collection::vec(any_additivity(), 0..3),
        prop::collection::vec(any_row(), 0..5),
        prop::collection::vec(any_sample(), 0..5),
        prop::collection::vec(any_sample(), 0..3),
        prop::collection::vec(any_block(), 0..3),
        prop::collection::vec(any_unsupported(), 0..3),
        prop::collection::vec(any_load(), 0..3),
        prop::collection::vec(any_placement(), 0..3),
    );
    let accuracy_and_probes = (
        prop::collection::vec(any_combination(), 0..3),
        prop::collection::vec(any_evaluation(), 0..3),
        prop::collection::vec(any_probe_sample(), 0..3),
        prop::collection::vec(any_moving(), 0..3),
    );
    let all = (texts, numbers, tables, accuracy_and_probes);
    all.prop_map(|(texts, numbers, tables, accuracy_and_probes)| {
        let (combinations, evaluations, probes, moving) = accuracy_and_probes;
        let (
            layers,
            times,
            cuts,
            additivity,
            segments,
            samples,
            rejected,
            blocks,
            unsupported,
            loads,
            placements,
        ) = tables;
        let mut header = header();
        header.simulated = numbers.0;
        header.emulated = numbers.0;
        header.processors[1].emulated = numbers.0;
        header.model.name = texts.0;
        header.device.name = texts.1;
        header.processors[0].name = texts.2;
        header.processors[0].memory_bytes = numbers.2.map(Bytes::from_bytes);
        header.measurements[0].seed = numbers.1;
        Profile {
            header,
            layers,
            times,
            cuts,
            segments,
            samples,
            rejected,
            blocks,
            combinations,
            unsupported,
            loads,
            placements,
            evaluations,
            additivity,
            probes,
            moving,
            soaking: Soaking::default(),
            energy: None,
            steady: None,
        }
    })
}

proptest! {
    // Each case writes twenty-four files and waits for the disk.
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_profile_reads_back_as_it_was_and_writes_the_same_bytes(profile in any_profile()) {
        assert_round_trip(&profile)?;
    }
}

#[test]
fn a_good_profile_reads_back_as_it_was_and_writes_the_same_bytes() {
    assert_round_trip(&common::evaluated(good_profile())).expect("the same");
    assert_round_trip(&good_profile()).expect("the same");
}

/// Replaces `from` by `to` in one file of a good profile and tries to read it.
fn refusal(file: &str, from: &str, to: &str) -> String {
    let dir = written(&good_profile());
    let path = dir.path().join(file);
    let text = fs::read_to_string(&path).expect("just written");
    assert!(text.contains(from), "{file} has no {from:?}");
    fs::write(&path, text.replacen(from, to, 1)).expect("written");
    let error = Profile::read(dir.path()).expect_err("spoiled").to_string();
    let message = error.replace(&dir.path().display().to_string(), "DIR");
    assert!(!message.contains('\n'), "{message}");
    message
}

#[test]
fn what_cannot_be_read_is_refused_in_one_sentence() {
    let refusals = [
        ("profile.json", "\"layerlab-profile\"", "\"recipe\""),
        ("profile.json", "\"version\": 5", "\"version\": 1"),
        ("profile.json", "\"version\": 5", "\"version\": 2"),
        ("profile.json", "\"version\": 5", "\"version\": 6"),
        ("profile.json", "  \"version\": 5,\n", ""),
        ("profile.json", "\"opset\": 13", "\"opset\": \"13\""),
        (
            "profile.json",
            "\"opset\": 13",
            "\"opset\": 13, \"colour\": 1",
        ),
        ("profile.json", "}\n", ""),
        ("layers.csv", "parameter_bytes", "parameter_kilobytes"),
        ("layers.csv", ",multiplications", ""),
        (
            "layers.csv",
            ",multiplications",
            ",multiplications,divisions",
        ),
        ("layers.csv", "Conv+Relu", "Conv++Relu"),
        ("times.csv", ",to_processor,", ",to_cpu,"),
        ("times.csv", "differencing", "guessing"),
        ("times.csv", ",,median", ",compute,median"),
        ("cuts.csv", "after_layer", "before_layer"),
        ("segments.csv", ",9,", ",nine,"),
        ("segments.csv", ",measured\n", ",measured,\n"),
        ("samples.csv", ",1,1,", ",2,1,"),
        ("samples.csv", ",1,1,", ",-1,1,"),
        ("samples.csv", "measured", "simulated"),
        ("profile.json", "\"opset\": 13", "\"opset\": 12"),
    ]
    .map(|(file, from, to)| {
        let refusal = refusal(file, from, to);
        format!("{file}: {from:?} → {to:?}\n    {refusal}\n")
    });
    insta::assert_snapshot!("refusals", refusals.concat());
}

/// `sha256sum --check` understands the file, and the digest of what it names is the profile's.
#[test]
fn the_digest_of_a_profile_lies_beside_it_as_sha256sum_writes_it() {
    let dir = written(&good_profile());
    let digest = ProfileDigest::of_folder(dir.path()).expect("just written");
    let line = fs::read_to_string(dir.path().join(DIGEST_FILE)).expect("just written");
    assert_eq!(line, format!("{digest}  {PROFILE_JSON}\n"));
    let mut changed = good_profile();
    changed.layers[0].additions += 1;
    let other = written(&changed);
    let other = ProfileDigest::of_folder(other.path()).expect("just written");
    assert_ne!(other, digest, "a digest is of the tables, too");
}

#[test]
fn a_missing_file_and_a_missing_directory_are_named() {
    let dir = written(&good_profile());
    fs::remove_file(dir.path().join("times.csv")).expect("was there");
    let error = Profile::read(dir.path())
        .expect_err("incomplete")
        .to_string();
    assert!(error.contains("times.csv"), "{error}");

    let nowhere = dir.path().join("nowhere");
    let error = Profile::read(&nowhere).expect_err("absent").to_string();
    assert!(error.contains("nowhere"), "{error}");
    let error = good_profile().write(&nowhere).expect_err("absent");
    assert!(matches!(error, DocumentError::Write { .. }), "{error}");
}

#[test]
fn nothing_is_written_beside_what_is_there() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    fs::write(dir.path().join("notes.txt"), "mine").expect("written");
    let error = good_profile().write(dir.path()).expect_err("not empty");
    assert!(matches!(error, DocumentError::NotEmpty { .. }), "{error}");
    assert_eq!(files(dir.path()).len(), 1);
}

#[test]
fn a_profile_of_another_version_is_not_written() {
    let mut profile = good_profile();
    profile.header.version = 3;
    let error = profile.to_files().expect_err("of version 3");
    assert!(matches!(error, DocumentError::NotWritten { .. }), "{error}");
}

/// Profiles from before it was recorded have the bytes that they had; both are read as they were written.
#[test]
fn what_the_model_takes_is_read_as_it_was_written() {
    let input = |name: &str, shape: &[u64]| ModelInput {
        name: name.to_owned(),
        shape: shape.to_vec(),
    };
    let (image, tokens) = (input("image", &[1, 3, 8, 8]), input("tokens", &[1, 16]));
    for (inputs, takes_an_image) in [
        (None, None),
        (Some(vec![image.clone()]), Some(true)),
        (Some(vec![tokens.clone()]), Some(false)),
        (Some(vec![image, tokens]), Some(false)),
    ] {
        let mut profile = good_profile();
        profile.header.model.inputs = inputs;
        assert_eq!(profile.header.model.takes_an_image(), takes_an_image);
        let folder = written(&profile);
        let json = fs::read_to_string(folder.path().join(PROFILE_JSON)).expect("a header");
        assert_eq!(json.contains("\"inputs\""), takes_an_image.is_some());
        assert_eq!(Profile::read(folder.path()).expect("just written"), profile);
    }
}
