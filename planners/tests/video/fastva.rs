//! FastVA against every combination of models and resolutions there is.

use layerlab_planners::video::fastva::{
    BufferedFrames, FastVaDecision, FrameChoice, Scheduled, ServerMode, VideoBacklog, VideoGoal,
    deep_decision, local, max_accuracy, max_utility, offload, optimal,
};

use crate::brute::{Instance, nanos};

const INSTANCES: u64 = 300;

fn near(one: f64, other: f64) -> bool {
    (one - other).abs() < 1e-9
}

/// The frames that arrive while the link is busy until `idle`, by counting them.
fn buffered(instance: &Instance, idle: i128) -> usize {
    let arrives = |k: &i128| match instance.buffered {
        BufferedFrames::Floor => k * instance.interval <= idle,
        BufferedFrames::CeilingLessOne => k * instance.interval < idle,
    };
    (1..).take_while(arrives).count()
}

/// Of all ways for the phone to answer `count` frames from `first` on, the largest value.
fn best_by_phone(
    instance: &Instance,
    (first, count): (usize, usize),
    npu: i128,
    may_skip: bool,
    value: impl Fn(usize, f64) -> f64,
) -> Option<f64> {
    let choices = instance.choices(may_skip, false);
    let combinations = instance.combinations(count, &choices);
    let values = combinations.filter_map(|choices| {
        let (answered, sum) = instance.run(first, &choices, npu, 0)?;
        Some(value(answered, sum))
    });
    values.reduce(f64::max)
}

fn backlog(instance: &Instance) -> VideoBacklog {
    VideoBacklog {
        npu: nanos(instance.npu),
        uplink: nanos(instance.uplink),
    }
}

#[test]
fn max_accuracy_is_the_best_of_all_it_looks_at() {
    let (mut sent, mut by_phone, mut infeasible) = (0, 0, 0);
    for seed in 0..INSTANCES {
        let instance = Instance::new(seed, 6);
        let problem = instance.problem();
        let found = max_accuracy(&problem, backlog(&instance), &instance.sizes()[0]);
        let mut best: Option<f64> = None;
        let mut consider = |value: f64| best = Some(best.map_or(value, |best| best.max(value)));
        for choice in instance.choices(false, true) {
            let FrameChoice::Remote { .. } = choice else {
                continue;
            };
            let Some(idle) = instance.send(0, choice, instance.uplink) else {
                continue;
            };
            let count = buffered(&instance, idle);
            let mean = |_, sum: f64| (sum + instance.accuracy(choice)) / (count + 1) as f64;
            if let Some(value) = best_by_phone(&instance, (1, count), instance.npu, false, mean) {
                consider(value);
            }
        }
        let horizon = 1 + (instance.within / instance.interval) as usize;
        for count in (1..=horizon).rev() {
            let mean = |_, sum: f64| sum / count as f64;
            if let Some(value) = best_by_phone(&instance, (0, count), instance.npu, false, mean) {
                consider(value);
                break;
            }
        }
        match (found.expect("sensible"), best) {
            (Scheduled::Planned(found), Some(best)) => {
                assert!(near(found.value, best), "seed {seed}: {found:?} {best}");
                assert_kept(&instance, &found, seed);
                match found.first {
                    FrameChoice::Remote { .. } => sent += 1,
                    _ => by_phone += 1,
                }
            }
            (Scheduled::Infeasible { frame: 0 }, None) => infeasible += 1,
            (found, best) => panic!("seed {seed}: {found:?} {best:?}"),
        }
    }
    assert!(
        sent > 30 && by_phone > 30 && infeasible > 0,
        "{sent} {by_phone} {infeasible}"
    );
}

/// Panics where what a decision says cannot be done in time.
fn assert_kept(instance: &Instance, decision: &FastVaDecision, seed: u64) {
    let mut choices = vec![decision.first];
    choices.extend(&decision.next);
    let kept = instance.run(0, &choices, instance.npu, instance.uplink);
    assert!(kept.is_some(), "seed {seed}: {decision:?}");
}

#[test]
fn max_utility_sends_in_the_most_useful_way_and_fills_the_phone_best() {
    let (mut sent, mut skipped) = (0, 0);
    for seed in 0..INSTANCES {
        let instance = Instance::new(seed, 6);
        let problem = instance.problem();
        let weight = [5.0, 50.0, 200.0][seed as usize % 3];
        let found = max_utility(&problem, backlog(&instance), &instance.sizes()[0], weight);
        let found = found.expect("sensible");
        assert_kept(&instance, &found, seed);
        let useful = |choice: FrameChoice| {
            let idle = instance.send(0, choice, instance.uplink)?;
            let occupied = (idle - instance.uplink).max(instance.interval);
            Some(1e9 / occupied as f64 + weight * instance.accuracy(choice))
        };
        let choices = instance.choices(false, true).into_iter();
        let remote = choices.filter(|choice| matches!(choice, FrameChoice::Remote { .. }));
        let best = remote.filter_map(useful).reduce(f64::max);
        let (first, count) = match found.first {
            FrameChoice::Remote { .. } => {
                sent += 1;
                let value = useful(found.first).expect("in time");
                assert!(near(value, best.expect("one is")), "seed {seed}: {found:?}");
                let idle = instance
                    .send(0, found.first, instance.uplink)
                    .expect("in time");
                assert_eq!(found.next.len(), buffered(&instance, idle));
                (1, found.next.len())
            }
            _ => {
                assert_eq!(best, None, "seed {seed}: {found:?}");
                assert!(found.next.is_empty());
                (0, 1 + (instance.within / instance.interval) as usize)
            }
        };
        let seconds = count as f64 * instance.interval as f64 / 1e9;
        let value = |answered: usize, sum: f64| match answered {
            0 => 0.0,
            _ => answered as f64 / seconds + weight * sum / answered as f64,
        };
        let best = best_by_phone(&instance, (first, count), instance.npu, true, value);
        let best = best.expect("skipping all is always possible");
        assert!(near(found.value, best), "seed {seed}: {found:?} {best}");
        skipped += found
            .next
            .iter()
            .filter(|&&next| next == FrameChoice::Skipped)
            .count();
    }
    assert!(sent > 100 && skipped > 0, "{sent} {skipped}");
}

#[test]
fn the_optimum_is_found_for_accuracy_and_for_utility() {
    let (mut feasible, mut infeasible) = (0, 0);
    for seed in 0..INSTANCES {
        let instance = Instance::new(seed, 4);
        let problem = instance.problem();
        let found = optimal(&problem, &instance.sizes()).expect("sensible");
        let weight = [5.0, 50.0, 200.0][seed as usize % 3];
        let frames = instance.frames.len();
        let seconds = frames as f64 * instance.interval as f64 / 1e9;
        let (mut all, mut most, mut useful) = (None::<f64>, 0.0_f64, 0.0_f64);
        for choices in instance.combinations(frames, &instance.choices(true, true)) {
            let Some((answered, sum)) = instance.run(0, &choices, 0, 0) else {
                continue;
            };
            let accuracy = sum / frames as f64;
            most = most.max(accuracy);
            if answered == frames {
                all = Some(all.map_or(accuracy, |all: f64| all.max(accuracy)));
            }
            if answered > 0 {
                let rate = answered as f64 / seconds;
                useful = useful.max(rate + weight * sum / answered as f64);
            }
        }
        let (by_accuracy, by_utility) = (
            found.most_accurate(),
            found.most_useful(&problem, weight).expect("a weight"),
        );
        assert!(near(by_accuracy.accuracy(), most), "seed {seed}");
        assert!(
            near(by_utility.utility(&problem, weight), useful),
            "seed {seed}"
        );
        for schedule in [by_accuracy, by_utility] {
            assert!(
                instance.run(0, schedule.choices(), 0, 0).is_some(),
                "seed {seed}"
            );
        }
        match (found.all_answered(), all) {
            (Scheduled::Planned(schedule), Some(all)) => {
                assert!(near(schedule.accuracy(), all), "seed {seed}");
                assert_eq!(schedule.answered(), frames);
                assert!(
                    instance.run(0, schedule.choices(), 0, 0).is_some(),
                    "seed {seed}"
                );
                feasible += 1;
            }
            (Scheduled::Infeasible { frame }, None) => {
                // All before it can be answered, with it not all can.
                let all_of = |count: usize| {
                    let choices = instance.choices(false, true);
                    let mut combinations = instance.combinations(count, &choices);
                    combinations.any(|choices| instance.run(0, &choices, 0, 0).is_some())
                };
                assert!(all_of(frame) && !all_of(frame + 1), "seed {seed}");
                infeasible += 1;
            }
            (found, all) => panic!("seed {seed}: {found:?} {all:?}"),
        }
    }
    assert!(feasible > 30 && infeasible > 3, "{feasible} {infeasible}");
}

#[test]
fn local_is_the_best_without_a_server() {
    let (mut feasible, mut infeasible) = (0, 0);
    for seed in 0..INSTANCES {
        let instance = Instance::new(seed, 7);
        let problem = instance.problem();
        let frames = instance.frames.len();
        let mean = |_, sum: f64| sum / frames as f64;
        let best = best_by_phone(&instance, (0, frames), 0, false, mean);
        match (
            local(&problem, frames, VideoGoal::Accuracy).expect("sensible"),
            best,
        ) {
            (Scheduled::Planned(found), Some(best)) => {
                assert!(near(found.accuracy(), best), "seed {seed}");
                assert!(instance.run(0, found.choices(), 0, 0).is_some());
                feasible += 1;
            }
            (Scheduled::Infeasible { frame }, None) => {
                let none = |_, _| 0.0;
                assert!(best_by_phone(&instance, (0, frame), 0, false, none).is_some());
                assert!(best_by_phone(&instance, (0, frame + 1), 0, false, none).is_none());
                infeasible += 1;
            }
            (found, best) => panic!("seed {seed}: {found:?} {best:?}"),
        }
        let weight = 50.0;
        let seconds = frames as f64 * instance.interval as f64 / 1e9;
        let value = |answered: usize, sum: f64| match answered {
            0 => 0.0,
            _ => answered as f64 / seconds + weight * sum / answered as f64,
        };
        let best = best_by_phone(&instance, (0, frames), 0, true, value).expect("skip all");
        let found = local(&problem, frames, VideoGoal::Utility { weight }).expect("sensible");
        let found = found.planned().expect("skipping is allowed");
        assert!(near(found.utility(&problem, weight), best), "seed {seed}");
    }
    assert!(feasible > 30 && infeasible > 30, "{feasible} {infeasible}");
}

#[test]
fn offload_is_the_best_that_leaves_the_link_idle_for_the_next_frame() {
    let mut none = 0;
    for seed in 0..INSTANCES {
        let instance = Instance::new(seed, 1);
        let found = offload(
            &instance.problem(),
            &instance.sizes()[0],
            VideoGoal::Accuracy,
        );
        let choices = instance.choices(false, true).into_iter().filter(|&choice| {
            let remote = matches!(choice, FrameChoice::Remote { .. });
            let idle = remote.then(|| instance.send(0, choice, 0)).flatten();
            idle.is_some_and(|idle| idle <= instance.interval)
        });
        let best = choices
            .map(|choice| instance.accuracy(choice))
            .reduce(f64::max);
        let found = found.expect("sensible");
        match best {
            Some(best) => assert!(near(instance.accuracy(found), best), "seed {seed}"),
            None => assert_eq!(found, FrameChoice::Skipped, "seed {seed}"),
        }
        none += u32::from(best.is_none());
    }
    assert!((30..270).contains(&none), "{none}");
}

#[test]
fn deep_decision_is_the_best_single_way_for_its_window() {
    let mut feasible = 0;
    for seed in 0..INSTANCES {
        let mut instance = Instance::new(seed, 1);
        let window = 1 + seed as usize % 5;
        instance.frames = vec![instance.frames[0].clone(); window];
        let problem = instance.problem();
        let sizes = &instance.sizes()[0];
        let ask = |goal| deep_decision(&problem, backlog(&instance), sizes, window, goal);
        let ways = instance.choices(false, true).into_iter();
        let all = ways.filter(|&way| {
            instance
                .run(0, &vec![way; window], instance.npu, instance.uplink)
                .is_some()
        });
        let best = all.map(|way| instance.accuracy(way)).reduce(f64::max);
        let found = ask(VideoGoal::Accuracy).expect("sensible").planned();
        feasible += u32::from(found.is_some());
        assert_eq!(found.as_ref().map(|found| found.value), best, "seed {seed}");
        if let Some(found) = found {
            assert_kept(&instance, &found, seed);
            assert!(found.next.iter().all(|&next| next == found.first));
        }
        // For utility those of one way that fit are answered, each as it comes.
        let weight = 50.0;
        let seconds = window as f64 * instance.interval as f64 / 1e9;
        let mut best = 0.0_f64;
        for way in instance.choices(false, true) {
            let mut choices: Vec<FrameChoice> = Vec::new();
            for _ in 0..window {
                choices.push(way);
                if instance
                    .run(0, &choices, instance.npu, instance.uplink)
                    .is_none()
                {
                    choices.pop();
                    choices.push(FrameChoice::Skipped);
                }
            }
            let answered = choices.iter().filter(|&&one| one == way).count() as f64;
            if answered > 0.0 {
                best = best.max(answered / seconds + weight * instance.accuracy(way));
            }
        }
        let found = ask(VideoGoal::Utility { weight })
            .expect("sensible")
            .planned();
        assert!(
            near(found.expect("skipping is allowed").value, best),
            "seed {seed}"
        );
    }
    assert!((30..290).contains(&feasible), "{feasible}");
}

#[test]
fn a_serial_server_never_gives_more_and_sometimes_less() {
    let mut less = 0;
    for seed in 0..INSTANCES {
        let mut instance = Instance::new(seed, 4);
        let mut by_mode = |server| {
            instance.server = server;
            let found = optimal(&instance.problem(), &instance.sizes()).expect("sensible");
            found.most_accurate().accuracy()
        };
        let (pipelined, serial) = (by_mode(ServerMode::Pipelined), by_mode(ServerMode::Serial));
        assert!(serial <= pipelined + 1e-12, "seed {seed}");
        less += u32::from(serial < pipelined - 1e-12);
    }
    assert!(less > 30, "{less}");
}
