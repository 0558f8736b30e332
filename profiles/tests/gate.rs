//! Two profiles of one model: what became worse is found, and nothing else is.

use crate::common;

use common::visits::run_of_visits;
use common::{CPU, NPU, layers};
use layerlab_profiles::accuracy::{Part, Tally, references};
use layerlab_profiles::compare::compare;
use layerlab_profiles::document::{Judged, Measured, Profile, Unsupported};
use layerlab_profiles::gate::{GateResult, GateSettings, GatedNumber, gate};
use layerlab_profiles::{Nanos, Placement, Segment};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

const STEADY: [f64; 5] = [1.0, 1.001, 0.999, 1.0, 1.002];

fn tolerating(tolerance: f64) -> GateSettings {
    GateSettings {
        tolerance,
        alpha: 0.01,
    }
}

/// A profile of visits at these speeds, in which `change` changed what was measured.
fn profile(speeds: &[f64], change: impl FnOnce(&mut Measured)) -> Profile {
    let (header, mut measured) = run_of_visits(speeds, 1.0);
    change(&mut measured);
    Profile::build(header, layers(), measured).expect("every layer was measured")
}

/// Layer 2 takes so much longer on the accelerator, wherever it runs.
fn slower(nanos: u64) -> impl FnOnce(&mut Measured) {
    move |measured| {
        for sample in &mut measured.samples {
            let runs = sample.segment.first() <= 2 && sample.segment.last() >= 2;
            if sample.processor == NPU && runs {
                sample.duration = sample.duration + Nanos::from_nanos(nanos);
            }
        }
        for block in measured
            .blocks
            .iter_mut()
            .filter(|one| one.processor == NPU)
        {
            for end in [&mut block.before, &mut block.after] {
                end.sentinel = end.sentinel + Nanos::from_nanos(nanos);
            }
        }
    }
}

fn passes(one: &Profile, other: &Profile, tolerance: f64) -> GateResult {
    gate(&[one], other, tolerating(tolerance)).expect("of one model")
}

fn worse(found: &GateResult) -> Vec<&GatedNumber> {
    found.worse().map(|gated| &gated.number).collect()
}

#[test]
fn a_profile_is_no_worse_than_itself() {
    let one = common::evaluated(profile(&STEADY, |_| {}));
    let found = passes(&one, &one, 0.0);
    assert!(!found.fails(), "{found:?}");
    // Three layers and the whole on each processor, two cuts, and accuracy on each processor and of each layer alone.
    assert_eq!(found.numbers.len(), 2 * 4 + 2 + 2 + 3);
    assert_eq!((found.untested, found.has_accuracy), (0, true));
    assert!(!passes(&one, &profile(&STEADY, |_| {}), 0.0).has_accuracy);
}

#[test]
fn a_layer_that_became_slower_is_named_unless_that_is_tolerated() {
    let one = profile(&STEADY, |_| {});
    // The layer computes in 500 µs; the whole takes 4.
    let other = profile(&STEADY, slower(100_000));
    let layer = GatedNumber::Layer {
        processor: NPU.to_owned(),
        layer: 2,
    };
    let found = passes(&one, &other, 0.05);
    assert_eq!(worse(&found), [&layer], "{found:?}");
    let found = passes(&one, &other, 0.01);
    let whole = GatedNumber::Whole {
        processor: NPU.to_owned(),
    };
    assert_eq!(worse(&found), [&layer, &whole], "{found:?}");
    assert!(!passes(&one, &other, 0.30).fails());
    // What became faster is not worse.
    assert!(!passes(&other, &one, 0.0).fails());
}

/// Where the interval is wider than what is tolerated, nothing is said to be worse, but that it may be is.
#[test]
fn what_is_known_too_badly_may_be_worse() {
    let unsteady = [1.0, 1.1, 0.9, 1.05, 0.95];
    let one = profile(&unsteady, |_| {});
    let found = passes(&one, &one, 0.01);
    assert!(!found.fails());
    assert!(found.numbers.iter().all(|gated| gated.may_be_worse));
}

#[test]
fn a_layer_that_cannot_run_any_more_fails() {
    let one = profile(&STEADY, |_| {});
    let other = profile(&STEADY, |measured| {
        measured.unsupported.push(Unsupported {
            processor: NPU.to_owned(),
            segment: Segment::single(1),
            reason: "it has no Conv".to_owned(),
            needed: None,
        });
        let runs = |processor: &str, segment: Segment| processor != NPU || segment.first() > 1;
        measured
            .samples
            .retain(|one| runs(&one.processor, one.segment));
        measured
            .loads
            .retain(|one| runs(&one.processor, one.segment));
        measured
            .placements
            .retain(|one| runs(&one.processor, one.segment));
    });
    let found = passes(&one, &other, 0.5);
    assert!(found.fails());
    assert_eq!(found.lost.len(), 1);
    let back = passes(&other, &one, 0.5);
    assert!(back.lost.is_empty() && !back.fails(), "{back:?}");
}

/// The profile with the accuracy of the references, in which the accelerator gets so many of 2,000 images wrong in layer 3.
fn with_accuracy(profile: Profile, wrong_in_layer_3: usize) -> Profile {
    let evaluation = common::evaluated(profile.clone()).evaluations.remove(0);
    let tallies = |placement: &Placement| {
        let wrong = match placement.processors()[2] {
            0 => 100,
            _ => 100 + wrong_in_layer_3,
        };
        let tally = |image: usize| match image < wrong {
            true => Tally::from((0, 1, 1)),
            false => Tally::from((1, 0, 0)),
        };
        (0..2_000).map(tally).collect()
    };
    let judged: Vec<Judged> = references(3, 2)
        .into_iter()
        .map(|combination| Judged {
            tallies: tallies(&combination),
            part: Part::Reference,
            combination,
        })
        .collect();
    let evaluation = layerlab_profiles::document::Evaluation {
        answers: 2_000,
        ..evaluation
    };
    let with = profile.with_evaluation(evaluation, &judged);
    with.expect("a baseline and single layers")
}

#[test]
fn a_layer_that_became_less_accurate_is_named() {
    let timed = profile(&STEADY, |_| {});
    let one = with_accuracy(timed.clone(), 20);
    let other = with_accuracy(timed, 200);
    let of = |digits: &str| GatedNumber::Accuracy {
        processors: vec![CPU.to_owned(), NPU.to_owned()],
        placement: digits.parse().expect("digits"),
    };
    let found = passes(&one, &other, 0.05);
    assert_eq!(worse(&found), [&of("001"), &of("111")], "{found:?}");
    assert!(!passes(&one, &other, 0.2).fails());
    assert!(!passes(&other, &one, 0.0).fails());
}

/// About normal with mean 1: a sum of twelve uniform numbers is nearly so.
fn about_one(random: &mut ChaCha8Rng, sigma: f64) -> f64 {
    let sum: f64 = (0..12).map(|_| random.random::<f64>()).sum();
    1.0 + sigma * (sum - 6.0)
}

/// Runs of the same device, whose visits differ in speed and whose inferences scatter; layer 2 takes so much longer on the
/// CPU.
fn run(random: &mut ChaCha8Rng, visits: usize, slower: f64) -> Profile {
    run_at_speed(random, 1.0, visits, slower)
}

/// A run in which all takes so many times as long.
fn run_at_speed(random: &mut ChaCha8Rng, speed: f64, visits: usize, slower: f64) -> Profile {
    let speeds = (0..visits).map(|_| speed * about_one(random, 0.01));
    let speeds: Vec<f64> = speeds.collect();
    profile(&speeds, |measured| {
        let mut scatter = |time: Nanos| {
            let scattered = time.as_nanos() as f64 * about_one(random, 0.005);
            Nanos::from_nanos(scattered.round() as u64)
        };
        for sample in &mut measured.samples {
            sample.duration = scatter(sample.duration);
            if sample.processor == CPU && sample.segment == Segment::single(2) {
                sample.duration = sample.duration + Nanos::from_nanos(slower.round() as u64);
            }
        }
        for block in &mut measured.blocks {
            for end in [&mut block.before, &mut block.after] {
                end.sentinel = scatter(end.sentinel);
            }
        }
    })
}

/// Runs between which the device differs by a tenth, as its state of that day is, and of which each is steady in itself.
fn runs_of_days(random: &mut ChaCha8Rng, count: usize) -> Vec<Profile> {
    let run = |_| {
        let speed = about_one(random, 0.1);
        run_at_speed(random, speed, 5, 0.0)
    };
    (0..count).map(run).collect()
}

/// What the samples of one run cannot tell, good runs do: how far runs differ. Beside one of them the next raises an alarm on
/// most days; beside eight no more often than alpha says.
#[test]
fn how_far_good_runs_differ_raises_no_alarm() {
    const GATES: usize = 200;
    let mut random = ChaCha8Rng::seed_from_u64(8);
    let settings = GateSettings {
        tolerance: 0.0,
        alpha: 0.05,
    };
    let (mut beside_one, mut beside_eight) = (0, 0);
    for _ in 0..GATES {
        let runs = runs_of_days(&mut random, 9);
        let runs: Vec<&Profile> = runs.iter().collect();
        let [good @ .., new] = &runs[..] else {
            unreachable!("nine of them")
        };
        let fails = |good: &[&Profile]| {
            let found = gate(good, new, settings).expect("of one model");
            assert_eq!((found.good, found.untested), (good.len(), 0));
            found.fails()
        };
        beside_one += usize::from(fails(&good[..1]));
        beside_eight += usize::from(fails(good));
    }
    // Of 200 with a chance of 5 % more than 18 are alarms once in a hundred times.
    assert!(beside_eight <= 18, "{beside_eight} of {GATES} gates");
    assert!(beside_one > 60, "{beside_one} of {GATES} gates");
}

/// A change is found beside several good runs if it is large beside what these differ by, and said to be found from so much.
#[test]
fn what_is_more_than_good_runs_differ_by_is_found() {
    let mut random = ChaCha8Rng::seed_from_u64(88);
    let steady: Vec<Profile> = (0..8).map(|_| run(&mut random, 5, 0.0)).collect();
    let days = runs_of_days(&mut random, 8);
    let layer = GatedNumber::Layer {
        processor: CPU.to_owned(),
        layer: 2,
    };
    // The layer's own time, which becomes a third longer.
    let rows = &steady[0].times;
    let row = rows
        .iter()
        .find(|row| row.processor == CPU && row.layer == 2);
    let third = row.expect("the layer").time.compute.value.as_nanos() as f64 / 3.0;
    let slower = run(&mut random, 5, third);
    let against = |good: &[Profile]| {
        let good: Vec<&Profile> = good.iter().collect();
        let found = gate(&good, &slower, tolerating(0.05)).expect("of one model");
        let mut numbers = found.numbers.into_iter();
        numbers.find(|gated| gated.number == layer).expect("tested")
    };
    let (sure, unsure) = (against(&steady), against(&days));
    assert!(sure.is_worse && sure.worse > sure.detectable, "{sure:?}");
    assert!(!unsure.is_worse && unsure.may_be_worse, "{unsure:?}");
    assert!(unsure.detectable > unsure.worse, "{unsure:?}");
    assert!(unsure.half_width > 3.0 * sure.half_width, "{unsure:?}");
}

/// Where samples tell less than runs differ by, the samples' errors count; a number that a good profile lacks is not tested.
#[test]
fn several_good_profiles_hide_nothing_of_what_samples_leave_open() {
    let unsteady = profile(&[1.0, 1.1, 0.9, 1.05, 0.95], |_| {});
    // The same run four times differs by nothing.
    let same = [&unsteady; 4];
    let slower = profile(&[1.05, 1.155, 0.945, 1.1025, 0.9975], |_| {});
    let found = gate(&same, &slower, tolerating(0.0)).expect("of one model");
    assert!(!found.fails(), "{found:?}");
    assert!(found.numbers.iter().all(|gated| gated.may_be_worse));

    let one = common::evaluated(profile(&STEADY, |_| {}));
    let without_accuracy = profile(&STEADY, |_| {});
    let tested = |good: &[&Profile]| {
        let found = gate(good, &one, tolerating(0.0)).expect("of one model");
        assert!(!found.fails(), "{found:?}");
        (found.numbers.len(), found.untested, found.has_accuracy)
    };
    assert_eq!(tested(&[&one; 4]), (15, 0, true));
    // What only the last has is tested against that alone, what only earlier ones have not at all.
    let [with, without] = [&one, &without_accuracy];
    assert_eq!(tested(&[without, without, without, with]), (15, 0, true));
    assert_eq!(tested(&[with, with, with, without]), (10, 5, false));
}

#[test]
fn few_good_profiles_or_such_of_different_devices_are_refused() {
    let one = profile(&STEADY, |_| {});
    let mut of_another = one.clone();
    of_another.header.device.name = "another".to_owned();
    let refused = |good: &[&Profile]| {
        let refused = gate(good, &one, tolerating(0.0)).expect_err("no several of one thing");
        refused.to_string()
    };
    let said = refused(&[&one; 3]);
    assert!(said.starts_with("3 good profiles do not tell"), "{said}");
    let said = refused(&[&one, &of_another, &one, &one]);
    assert!(said.contains("another by "), "{said}");
    let mut without = one.clone();
    for processor in &mut without.header.processors {
        processor.name.push_str("-other");
    }
    let said = refused(&[&without]);
    assert!(said.starts_with("no processor is in both"), "{said}");
}

/// Of few visits the variances are known badly, and only Student's t says what that does to many tests.
#[test]
fn false_alarms_are_no_more_than_alpha_even_of_three_visits() {
    const PAIRS: usize = 400;
    let mut random = ChaCha8Rng::seed_from_u64(18);
    let (mut alarms, mut differing) = (0, 0);
    for _ in 0..PAIRS {
        let (one, other) = (run(&mut random, 3, 0.0), run(&mut random, 3, 0.0));
        let settings = GateSettings {
            tolerance: 0.0,
            alpha: 0.05,
        };
        let found = gate(&[&one], &other, settings).expect("of one model");
        alarms += usize::from(found.fails());
        let differences = compare(&one, &other).expect("of one model");
        differing += usize::from(
            differences
                .iter()
                .any(|one| one.processor == CPU && one.is_significant()),
        );
    }
    // Of 400 with a chance of 5 % more than 31 are alarms once in a hundred times.
    assert!(alarms <= 31, "{alarms} of {PAIRS} gates");
    assert!(differing <= 31, "{differing} of {PAIRS} comparisons");
}

/// What a gate says that it finds nineteen times in twenty it finds most of the time, though less often than it says, and half
/// of that it does not. The bound of 165 was set after 177 were seen: it holds what there is, and proves no 95 %.
#[test]
fn what_is_said_to_be_found_is_found() {
    const PAIRS: usize = 200;
    const VISITS: usize = 5;
    let mut random = ChaCha8Rng::seed_from_u64(95);
    let number = GatedNumber::Layer {
        processor: CPU.to_owned(),
        layer: 2,
    };
    let tested = |one: &Profile, other: &Profile| {
        let found = passes(one, other, 0.02);
        let mut numbers = found.numbers.into_iter();
        let gated = numbers.find(|gated| gated.number == number);
        gated.expect("a layer that both have")
    };
    let mut said: Vec<f64> = (0..PAIRS)
        .map(|_| {
            let one = run(&mut random, VISITS, 0.0);
            tested(&one, &run(&mut random, VISITS, 0.0)).detectable
        })
        .collect();
    said.sort_unstable_by(f64::total_cmp);
    let said = said[PAIRS / 2];
    let mut found = |slower: f64| {
        let pairs = (0..PAIRS).filter(|_| {
            let one = run(&mut random, VISITS, 0.0);
            tested(&one, &run(&mut random, VISITS, slower)).is_worse
        });
        pairs.count()
    };
    let (at, below) = (found(said), found(0.5 * said));
    // How large errors are is itself known badly of five visits, whose speeds are most of them here: what is said in the middle
    // is then found somewhat less often than 95 %, 177 times of 200.
    assert!(at >= 165, "{at} of {PAIRS} at {said} ns");
    assert!(below <= 150, "{below} of {PAIRS} at half of {said} ns");
}

/// More of what is measured the same way is needed for less to be found, and nothing more for what is found already.
#[test]
fn what_it_takes_to_find_less_is_said() {
    let mut random = ChaCha8Rng::seed_from_u64(3);
    let one = run(&mut random, 5, 0.0);
    let other = run(&mut random, 5, 0.0);
    let found = passes(&one, &other, 0.05);
    let longer = |wanted: f64| {
        let sights = found.sight(&other, wanted);
        let sight = sights.into_iter().find(|one| one.processor == CPU);
        sight.expect("numbers of the CPU")
    };
    let (easy, hard) = (longer(0.5), longer(0.005));
    assert!(
        easy.both_longer < 1.0 && easy.more_time == Nanos::ZERO,
        "{easy:?}"
    );
    assert!(
        hard.both_longer > 1.0 && hard.more_time > Nanos::ZERO,
        "{hard:?}"
    );
    // A hundredth of it takes ten thousand times as long.
    assert!(
        (hard.both_longer / easy.both_longer - 1e4).abs() < 1.0,
        "{hard:?}"
    );
    // Of layers that take less than the average one, as a share of that one's time.
    let (least, most) = hard.layers.expect("layers");
    assert!(0.0 < least && least <= most, "{hard:?}");
    // What is tolerated is never found.
    let whole = hard.whole.expect("the whole");
    assert!(whole > 0.05, "{whole}");
}
