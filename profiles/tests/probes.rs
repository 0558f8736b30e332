//! What probes say of a profile: how the costs of cuts divide, and when they do not say it.

#![expect(clippy::unwrap_used, reason = "tests")]

use crate::common;

use common::probe_samples::{PLANTED, PlantedMoving, probe_samples};
use common::{NPU, header, layers, measured, samples};
use layerlab_profiles::Nanos;
use layerlab_profiles::check::{Rule, Severity, check};
use layerlab_profiles::derive::graph::LARGEST_BEND_PERCENT;
use layerlab_profiles::design::Design;
use layerlab_profiles::document::{
    Measured, Method, MovingNumber, MovingRefusal, ProbeSample, Profile, Rejected,
};
use layerlab_profiles::gate::{GateSettings, GatedNumber, gate};

fn profile(probes: Vec<ProbeSample>) -> Profile {
    let mut header = header();
    header.measurements[1].design = Design::Local;
    header.measurements[1].method = Method::Probed;
    let samples = samples(&header);
    let measured = Measured {
        probes,
        ..measured(samples)
    };
    Profile::build(header, layers(), measured).unwrap()
}

fn errors(profile: &Profile) -> Vec<Rule> {
    let findings = check(profile).into_iter();
    let errors = findings.filter(|finding| finding.severity == Severity::Error);
    errors.map(|finding| finding.rule).collect()
}

fn says(profile: &Profile, rule: Rule) -> bool {
    check(profile).iter().any(|finding| finding.rule == rule)
}

/// The compute, entering and leaving times of the accelerator's layers in ns; nothing for what is not there.
fn times(profile: &Profile) -> Vec<[f64; 3]> {
    let nanos = |one: Option<layerlab_profiles::summary::Estimate>| {
        one.map_or(0.0, |one| one.value.as_nanos() as f64)
    };
    let rows = profile.times.iter().filter(|row| row.processor == NPU);
    rows.map(|row| {
        let time = row.time;
        [Some(time.compute), time.to_processor, time.from_processor].map(nanos)
    })
    .collect()
}

/// How cuts divide is the device's: a gate takes both profiles' as the first's probes have it, so that layers whose samples
/// are the same are.
#[test]
fn a_gate_names_no_layer_for_what_its_probes_do_not_know() {
    let one = profile(probe_samples(PLANTED));
    let turned = profile(probe_samples(PlantedMoving {
        inward: 1.0,
        outward: 3.0,
        ..PLANTED
    }));
    assert_ne!(times(&one), times(&turned));
    // Its probes lie on no line, so that it has the papers' assumption.
    let bent = profile(probe_samples(PlantedMoving {
        bend: 1e-4,
        ..PLANTED
    }));
    assert!(says(&bent, Rule::ProbesRefused));
    for (one, other) in [(&one, &turned), (&one, &bent), (&bent, &one)] {
        assert_eq!(slower(one, other), [0.0; 3]);
    }
}

/// By how much each of the accelerator's layers is slower in the second profile, in ns, as a gate has it.
fn slower(one: &Profile, other: &Profile) -> Vec<f64> {
    let settings = GateSettings {
        tolerance: 0.0,
        alpha: 0.01,
    };
    let found = gate(&[one], other, settings).unwrap();
    let layers = found.numbers.iter().filter(
        |gated| matches!(&gated.number, GatedNumber::Layer { processor, .. } if processor == NPU),
    );
    layers.map(|gated| gated.worse).collect()
}

#[test]
fn probes_divide_the_cost_of_each_cut_as_their_line_says() {
    let probed = profile(probe_samples(PLANTED));
    assert_eq!(errors(&probed), []);
    assert!(!says(&probed, Rule::ProbesRefused));
    let [moving] = probed.moving.as_slice() else {
        panic!("one accelerator: {:?}", probed.moving)
    };
    assert_eq!((moving.refusal, moving.probe_layers), (None, 15));
    let line = moving.line.as_ref().unwrap();
    assert!(
        (line.in_ns_per_byte.value / PLANTED.inward - 1.0).abs() < 0.01,
        "{line:?}"
    );
    assert!(
        (line.out_ns_per_byte.value / PLANTED.outward - 1.0).abs() < 0.01,
        "{line:?}"
    );
    assert!(
        (line.fixed_ns.value / PLANTED.fixed - 1.0).abs() < 0.02,
        "{line:?}"
    );

    let rows: Vec<_> = probed
        .times
        .iter()
        .filter(|row| row.processor == NPU)
        .collect();
    assert!(rows.iter().all(|row| row.method == Method::Probed));
    let found = times(&probed);
    for (after, bytes) in [(0, 150_000.0), (1, 40_000.0)] {
        let (into, out) = (
            PLANTED.fixed / 2.0 + PLANTED.inward * bytes,
            PLANTED.fixed / 2.0 + PLANTED.outward * bytes,
        );
        let cost = probed.cuts[after].cost.value.as_nanos() as f64;
        let expected = cost * into / (into + out);
        assert!(
            (found[after + 1][1] / expected - 1.0).abs() < 0.01,
            "{found:?}"
        );
        assert!(
            (found[after][2] + found[after + 1][1] - cost).abs() <= 1.0,
            "{found:?}"
        );
    }
}

#[test]
fn whole_runs_of_layers_take_as_long_however_cuts_divide() {
    let probed = profile(probe_samples(PLANTED));
    let symmetric = probed.rederive(Method::Graph).unwrap();
    assert_eq!(errors(&symmetric), []);
    let (one, other) = (times(&probed), times(&symmetric));
    assert_ne!(one, other);
    for first in 0..3 {
        for last in first..3 {
            let run = |times: &[[f64; 3]]| {
                let compute: f64 = times[first..=last].iter().map(|time| time[0]).sum();
                times[first][1] + compute + times[last][2]
            };
            assert!((run(&one) - run(&other)).abs() <= 6.0, "{first} to {last}");
        }
    }
    assert_eq!(symmetric.rederive(Method::Probed).unwrap(), probed);
}

#[test]
fn intervals_hold_the_error_of_the_probes_too() {
    let profile = |visit, load| {
        let planted = PlantedMoving {
            visit,
            load,
            ..PLANTED
        };
        let profile = profile(probe_samples(planted));
        assert_eq!(profile.moving[0].refusal, None, "{:?}", profile.moving);
        profile
    };
    let of_cut = |profile: &Profile| {
        let cut = &profile.moving[0].cuts[0];
        (cut.in_ci95_high_ns.unwrap() - cut.in_ci95_low_ns.unwrap()).as_nanos()
    };
    let of_layer = |profile: &Profile| {
        let mut rows = profile.times.iter();
        let row = rows.find(|row| row.processor == NPU && row.layer == 2);
        let (low, high) = row.unwrap().time.compute.ci95.unwrap();
        (high - low).as_nanos()
    };
    let (sharp, visits, loads) = (profile(0.0, 0.0), profile(0.03, 0.0), profile(0.0, 0.03));
    assert!(of_cut(&visits) > 2 * of_cut(&sharp));
    assert!(of_cut(&loads) > 2 * of_cut(&sharp));
    assert!(of_layer(&loads) > 2 * of_layer(&sharp));
}

/// The three layers of a probe are as fast as its visits are, and each loading differs: no bend, however large the misfit.
#[test]
fn visits_and_loadings_that_differ_bend_no_line_more_often_than_chance_does() {
    let (mut large, mut refused) = (0, 0);
    for seed in 0..200 {
        let profile = profile(probe_samples(PlantedMoving {
            visit: 0.08,
            load: 0.08,
            seed,
            ..PLANTED
        }));
        let moving = &profile.moving[0];
        let line = moving.line.as_ref().unwrap();
        large += u32::from(line.misfit_percent >= LARGEST_BEND_PERCENT);
        refused += u32::from(moving.refusal == Some(MovingRefusal::NotLinear));
    }
    assert!(large >= 80, "{large}");
    assert!(refused <= 4, "{refused}");
}

#[test]
fn intervals_of_the_line_hold_the_truth_where_visits_and_loadings_differ() {
    let mut held = 0;
    let runs = 200;
    for seed in 0..runs {
        let profile = profile(probe_samples(PlantedMoving {
            visit: 0.05,
            load: 0.03,
            seed,
            ..PLANTED
        }));
        let line = profile.moving[0].line.as_ref().unwrap();
        let holds = |number: &MovingNumber, planted: f64| {
            (number.ci95_low.unwrap()..=number.ci95_high.unwrap()).contains(&planted)
        };
        held += u64::from(holds(&line.fixed_ns, PLANTED.fixed));
        held += u64::from(holds(&line.in_ns_per_byte, PLANTED.inward));
        held += u64::from(holds(&line.out_ns_per_byte, PLANTED.outward));
    }
    let percent = 100.0 * held as f64 / (3 * runs) as f64;
    assert!((92.0..=98.0).contains(&percent), "{percent}");
}

#[test]
fn with_two_visits_the_line_has_no_intervals() {
    let mut probes = probe_samples(PLANTED);
    probes.retain(|one| one.order < 110);
    let two = profile(probes);
    assert_eq!(errors(&two), []);
    let line = two.moving[0].line.as_ref().unwrap();
    assert_eq!((line.p_value, line.in_ns_per_byte.ci95_low), (None, None));
    assert_eq!(two.moving[0].cuts[0].in_ci95_low_ns, None);
}

#[test]
fn times_on_no_line_leave_the_papers_assumption_and_the_profile_says_so() {
    let bent = profile(probe_samples(PlantedMoving {
        bend: 1e-4,
        ..PLANTED
    }));
    assert_eq!(bent.moving[0].refusal, Some(MovingRefusal::NotLinear));
    assert_eq!(bent.header.measurements[1].method, Method::Graph);
    assert!(says(&bent, Rule::ProbesRefused));
    assert_eq!(errors(&bent), []);
    let refused = bent.rederive(Method::Probed).unwrap_err().to_string();
    assert!(refused.contains("lie on no straight line"), "{refused}");
    let without = common::by_least_squares();
    assert_eq!(times(&bent), times(&without));
}

#[test]
fn a_way_that_would_cost_less_than_nothing_is_refused() {
    let profile = profile(probe_samples(PlantedMoving {
        fixed: 1_000.0,
        inward: -0.2,
        outward: 6.0,
        ..PLANTED
    }));
    assert_eq!(profile.moving[0].refusal, Some(MovingRefusal::Implausible));
}

#[test]
fn probes_that_do_not_count_or_are_missing_say_nothing() {
    let mut rejected = probe_samples(PLANTED);
    for one in &mut rejected {
        one.rejection = Some(Rejected::Throttling);
    }
    for probes in [rejected, Vec::new(), probe_samples(PLANTED)[..27].to_vec()] {
        let profile = profile(probes);
        assert_eq!(profile.moving[0].refusal, Some(MovingRefusal::Incomplete));
        assert_eq!(profile.header.measurements[1].method, Method::Graph);
        assert!(says(&profile, Rule::ProbesRefused));
        assert_eq!(errors(&profile), []);
    }
    let without = common::by_least_squares();
    let refused = without.rederive(Method::Probed).unwrap_err().to_string();
    assert!(
        refused.contains("too few of them could be timed"),
        "{refused}"
    );
    assert!(refused.contains("`--method graph`"), "{refused}");
}

#[test]
fn a_profile_with_probes_reads_back_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let profile = profile(probe_samples(PLANTED));
    profile.write(folder.path()).unwrap();
    assert_eq!(Profile::read(folder.path()).unwrap(), profile);
}

/// Makes a good profile a bad one.
type Spoil = fn(&mut Profile);

#[test]
fn numbers_that_do_not_follow_from_the_probes_are_found() {
    let spoils: [(Rule, Spoil); 7] = [
        (Rule::TimeContradiction, |p| {
            // What the probes of none say is told truly, and yet the times are said to rest on it.
            p.probes.clear();
            p.moving = profile(Vec::new()).moving;
            p.additivity.clear();
        }),
        (Rule::MovingContradiction, |p| p.moving.clear()),
        (Rule::MovingContradiction, |p| {
            p.moving[0].cuts[0].bytes = layerlab_profiles::Bytes::ZERO
        }),
        (Rule::MovingContradiction, |p| {
            p.moving[0].line.as_mut().unwrap().in_ns_per_byte.value *= 1.001;
        }),
        (Rule::MovingContradiction, |p| {
            for one in &mut p.probes {
                one.duration = Nanos::from_nanos(one.duration.as_nanos() + 1_000);
            }
        }),
        (Rule::RowOrder, |p| p.probes.reverse()),
        (Rule::DuplicateRow, |p| {
            let again = p.probes[0].clone();
            p.probes.insert(0, again);
        }),
    ];
    for (rule, spoil) in spoils {
        let mut profile = profile(probe_samples(PLANTED));
        spoil(&mut profile);
        assert!(
            errors(&profile).contains(&rule),
            "{rule}: {:?}",
            errors(&profile)
        );
    }
}
