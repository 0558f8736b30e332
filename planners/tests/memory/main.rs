//! Plans fit the memory of their accelerators: with everything that is known they are the best of what fits, by trying every
//! placement, and the checker finds those that do not fit.

mod cost_alone;
#[path = "../several/mod.rs"]
mod several;

use std::collections::BTreeMap;

use layerlab_planners::check::{Evidence, Fault, Loss, check};
use layerlab_planners::export::{Source, dnn_partitioning, outcomes_json};
use layerlab_planners::memory::AcceleratorMemory;
use layerlab_planners::placement::PackedPlacement;
use layerlab_planners::reason::Reason;
use layerlab_planners::solve::{Why, find_front_locally};
use layerlab_planners::times::TimesError;
use layerlab_planners::{Algorithm, Goal, MemoryMode, Outcome, TimeTable, plan};
use layerlab_profiles::loading::LoadTimes;
use layerlab_profiles::{Bytes, Nanos, Placement, Segment};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use several::Several;

const MODES: [MemoryMode; 2] = [MemoryMode::Resident, MemoryMode::Reload];

/// The memory of one accelerator and what its segments need and cost to load, by formulas.
struct Memory {
    weights: Vec<u64>,
    tensors: Vec<u64>,
    fixed_ns: u64,
    load_ns: Vec<u64>,
    loaded: BTreeMap<Segment, Bytes>,
    capacity: u64,
}

impl Memory {
    /// Weights add up, and of tensors the largest counts. Loaded were all layers, all neighbours, and some more.
    fn new(layers: usize, random: &mut ChaCha8Rng) -> Memory {
        let mut of_layers = |most| -> Vec<u64> {
            let all = (0..layers).map(|_| random.random_range(1..most));
            all.collect()
        };
        let (weights, tensors, load_ns) = (of_layers(2_000), of_layers(600), of_layers(4_000));
        let mut memory = Memory {
            weights,
            tensors,
            fixed_ns: random.random_range(1..3_000),
            load_ns,
            loaded: BTreeMap::new(),
            capacity: 0,
        };
        for first in 0..layers {
            for last in first..layers {
                if last < first + 2 || random.random_bool(0.1) {
                    let bytes = Bytes::from_bytes(memory.truth(first, last));
                    let segment = Segment::new(first as u32 + 1, last as u32 + 1);
                    memory.loaded.insert(segment.expect("ascending"), bytes);
                }
            }
        }
        let whole = memory.truth(0, layers - 1) as f64;
        memory.capacity = (whole * random.random_range(0.05..1.1)) as u64;
        memory
    }

    fn truth(&self, first: usize, last: usize) -> u64 {
        let weights: u64 = self.weights[first..=last].iter().sum();
        weights + self.tensors[first..=last].iter().max().expect("a layer")
    }

    /// The least sum of loaded segments that have all these layers: of those that have the first, each with the least of
    /// what it leaves.
    fn need(&self, first: usize, last: usize) -> u64 {
        // Of the layers from each on, the last ones first.
        let mut from = vec![0; last + 2];
        for layer in (first..=last).rev() {
            let number = layer as u32 + 1;
            let with_it = self.loaded.iter();
            let with_it = with_it.filter(|(s, _)| (s.first()..=s.last()).contains(&number));
            let sums = with_it
                .map(|(s, bytes)| bytes.as_bytes() + from[(s.last() as usize).min(last + 1)]);
            from[layer] = sums.min().expect("each layer was loaded");
        }
        from[first]
    }

    /// What is said of it to planners.
    fn told(&self, mode: MemoryMode) -> AcceleratorMemory {
        let times = self.loaded.keys().map(|&segment| {
            let layers = segment.first() as usize - 1..segment.last() as usize;
            let time = self.fixed_ns + self.load_ns[layers].iter().sum::<u64>();
            (segment, Nanos::from_nanos(time))
        });
        AcceleratorMemory {
            capacity: Some(Bytes::from_bytes(self.capacity)),
            loaded: self.loaded.clone(),
            load_times: LoadTimes::of(self.weights.len() as u32, &times.collect()),
            mode,
        }
    }

    /// Whether what is placed on a processor fits, and what loading it takes, by the needs of all segments.
    fn look(
        &self,
        needs: &[Vec<u64>],
        digits: &[usize],
        on: usize,
        mode: MemoryMode,
    ) -> (bool, i64) {
        let (mut sum, mut largest, mut loading) = (0, 0, 0);
        let mut first = 0;
        while first < digits.len() {
            let run = digits[first..].iter().take_while(|&&there| there == on);
            let length = run.count();
            if length > 0 {
                let last = first + length - 1;
                sum += needs[first][last];
                largest = largest.max(needs[first][last]);
                loading += self.fixed_ns + self.load_ns[first..=last].iter().sum::<u64>();
            }
            first += length.max(1);
        }
        match mode {
            MemoryMode::Resident => (sum <= self.capacity, 0),
            MemoryMode::Reload => (largest <= self.capacity, loading as i64),
        }
    }
}

/// A network on a device with one or two accelerators, and their memories.
struct Instance {
    several: Several,
    memories: Vec<Memory>,
    needs: Vec<Vec<Vec<u64>>>,
    mode: MemoryMode,
}

impl Instance {
    fn new(layers: usize, accelerators: usize, seed: u64, mode: MemoryMode) -> Instance {
        let mut random = ChaCha8Rng::seed_from_u64(seed ^ 0x3e3e);
        let memories: Vec<Memory> = (0..accelerators)
            .map(|_| Memory::new(layers, &mut random))
            .collect();
        let several = Several::new(layers, accelerators + 1, seed);
        let several = (1..).zip(&memories).fold(several, |several, (on, memory)| {
            several.in_memory(on, memory.told(mode))
        });
        let needs = memories.iter().map(|memory| {
            let of_first = |first| {
                let last = |last| {
                    if last < first {
                        0
                    } else {
                        memory.need(first, last)
                    }
                };
                (0..layers).map(last).collect()
            };
            (0..layers).map(of_first).collect()
        });
        Instance {
            needs: needs.collect(),
            several,
            memories,
            mode,
        }
    }

    /// Every placement that fits, with its time and accuracy.
    fn every(&self) -> Vec<(Vec<usize>, i64, f64)> {
        let all = self.several.every().filter_map(|digits| {
            let mut time = self.several.time(&digits);
            for (on, memory) in (1..).zip(&self.memories) {
                let (fits, loading) = memory.look(&self.needs[on - 1], &digits, on, self.mode);
                if !fits {
                    return None;
                }
                time += loading;
            }
            let accuracy = self.several.accuracy(&digits);
            Some((digits, time, accuracy))
        });
        all.collect()
    }
}

/// The best of these for a goal: what is to be good, and then the other quantity.
fn best(every: &[(Vec<usize>, i64, f64)], goal: Goal) -> Option<(i64, f64)> {
    let kept = every.iter().filter(|(_, time, accuracy)| match goal {
        Goal::MaxAccuracy { within } => *time <= within.signed().as_nanos(),
        Goal::MinTime { at_least } => *accuracy >= at_least,
    });
    let pairs = kept.map(|(_, time, accuracy)| (*time, *accuracy));
    pairs.min_by(|one, other| {
        let (time, accuracy) = (one.0.cmp(&other.0), other.1.total_cmp(&one.1));
        match goal {
            Goal::MaxAccuracy { .. } => accuracy.then(time),
            Goal::MinTime { .. } => time.then(accuracy),
        }
    })
}

/// Time limits and accuracy requirements among what placements that fit have, and one that none can keep.
fn goals(every: &[(Vec<usize>, i64, f64)]) -> Vec<Goal> {
    let mut times: Vec<i64> = every.iter().map(|(_, time, _)| *time).collect();
    times.sort_unstable();
    let mut accuracies: Vec<f64> = every.iter().map(|(_, _, accuracy)| *accuracy).collect();
    accuracies.sort_unstable_by(f64::total_cmp);
    let within = |time: i64| Goal::MaxAccuracy {
        within: Nanos::from_nanos(time as u64),
    };
    let most = every.len() - 1;
    let mut goals = vec![within(times[0] - 1)];
    for place in [0, most / 9, most / 2, most] {
        goals.push(within(times[place]));
        let at_least = accuracies[place].clamp(0.0, several::BASELINE);
        goals.push(Goal::MinTime { at_least });
    }
    goals
}

fn digits(outcome: &Outcome) -> Option<Vec<usize>> {
    let placement = outcome.plan()?.combination().processors().iter();
    Some(placement.map(|&on| usize::from(on)).collect())
}

/// Every algorithm's plan fits, and those that find the best find the best of what fits. How many placements did not fit.
fn assert_best(instance: &Instance, algorithms: &[Algorithm]) -> usize {
    let several = &instance.several;
    let every = instance.every();
    let problem = several.known();
    let fastest = every.iter().map(|(_, time, _)| *time).min();
    for goal in goals(&every) {
        let expected = best(&every, goal);
        for &algorithm in algorithms {
            // The plan is checked from the raw tables, too.
            let outcome = several.plan(&problem, goal, algorithm);
            let found = outcome.plan().map(|plan| {
                let time = plan.time().total().as_nanos();
                (time, plan.accuracy().value)
            });
            let digits = digits(&outcome);
            let is_listed = |digits: &Vec<usize>| every.iter().any(|(one, _, _)| one == digits);
            assert!(
                digits.as_ref().is_none_or(is_listed),
                "{algorithm}, {goal}: {digits:?}"
            );
            match algorithm {
                Algorithm::Mlmp | Algorithm::Exhaustive => {
                    let is_same = match (found, expected) {
                        (Some(found), Some(expected)) => {
                            found.0 == expected.0 && (found.1 - expected.1).abs() < 1e-12
                        }
                        (found, expected) => found.is_none() && expected.is_none(),
                    };
                    assert!(
                        is_same,
                        "{algorithm}, {goal}: {found:?} instead of {expected:?}"
                    );
                }
                Algorithm::Fastest => {
                    let is_fastest = found.is_none_or(|(time, _)| Some(time) == fastest);
                    assert!(is_fastest, "{goal}: {found:?} instead of {fastest:?}");
                }
                _ => {}
            }
        }
    }
    if several.tables().len() == 2 {
        let front = find_front_locally(&problem);
        assert!(!front.placements.is_empty(), "all on the CPU fits");
        for placement in front.placements.iter().map(PackedPlacement::combination) {
            let here = placement.processors().iter().map(|&on| usize::from(on));
            let here: Vec<usize> = here.collect();
            let fits = every.iter().any(|(listed, _, _)| *listed == here);
            assert!(fits, "the local search goes through {placement}");
        }
    }
    several.every().count() - every.len()
}

fn assert_brute_force_agrees(instances: u64) {
    let algorithms = [
        Algorithm::Mlmp,
        Algorithm::Exhaustive,
        Algorithm::Fastest,
        Algorithm::Heuristic,
        Algorithm::MlmpPaper,
        Algorithm::AllNpu,
        Algorithm::AllCpu,
    ];
    for mode in MODES {
        let mut left_out = 0;
        for seed in 0..instances {
            let layers = 2 + seed as usize % 11;
            let instance = Instance::new(layers, 1, seed, mode);
            left_out += assert_best(&instance, &algorithms);
        }
        assert!(
            left_out as u64 > 100 * instances,
            "{mode}: memory limits {left_out} placements"
        );
    }
}

#[test]
fn brute_force_agrees() {
    assert_brute_force_agrees(66);
}

#[test]
#[ignore = "takes ten seconds: make slow-test"]
fn brute_force_agrees_on_500_instances() {
    assert_brute_force_agrees(500);
}

#[test]
fn two_accelerators_each_keep_their_memory() {
    for mode in MODES {
        let mut left_out = 0;
        for seed in 0..60 {
            let instance = Instance::new(2 + seed as usize % 5, 2, seed, mode);
            let algorithms = [Algorithm::Exhaustive, Algorithm::Fastest];
            left_out += assert_best(&instance, &algorithms);
        }
        assert!(left_out > 1_000, "{mode}: {left_out}");
    }
}

#[test]
fn what_a_run_is_taken_to_need_is_never_less_than_it_needs() {
    for seed in 0..50 {
        let memory = Memory::new(9, &mut ChaCha8Rng::seed_from_u64(seed));
        for first in 0..9 {
            for last in first..9 {
                assert!(memory.need(first, last) >= memory.truth(first, last));
            }
        }
    }
}

/// A network whose whole is too large, and what two of its layers need.
fn tight(mode: MemoryMode) -> Several {
    let loaded = (1..=4).flat_map(|first| {
        let ends = [first, (first + 1).min(4)];
        ends.map(|last| {
            let segment = Segment::new(first, last).expect("ascending");
            (
                segment,
                Bytes::from_bytes(1_000 * u64::from(segment.layers())),
            )
        })
    });
    let loaded: BTreeMap<Segment, Bytes> = loaded.collect();
    let times = loaded.keys().map(|&segment| {
        let time = 7 + 10 * u64::from(segment.layers());
        (segment, Nanos::from_nanos(time))
    });
    let load_times = LoadTimes::of(4, &times.collect());
    let memory = AcceleratorMemory {
        capacity: Some(Bytes::from_bytes(2_500)),
        loaded,
        load_times,
        mode,
    };
    free().in_memory(1, memory)
}

/// A network that is faster with two layers on the accelerator than with none, and with more than two faster still.
fn free() -> Several {
    let mut networks = (0..100).map(|seed| Several::new(4, 2, seed));
    let found = networks.find(|one| {
        let least = [4, 2, 0].map(|most| least(one, most));
        least[0] < least[1] && least[1] < least[2]
    });
    found.expect("one of a hundred")
}

/// The least time with so many layers on the accelerator at most.
fn least(several: &Several, most: usize) -> i64 {
    let few = |digits: &Vec<usize>| digits.iter().sum::<usize>() <= most;
    let all = several.every().filter(few);
    all.map(|digits| several.time(&digits)).min().expect("some")
}

fn slow(several: &Several) -> Goal {
    let slowest = several.every().map(|digits| several.time(&digits)).max();
    let within = Nanos::from_nanos(1_000_000 + slowest.expect("placements") as u64);
    Goal::MaxAccuracy { within }
}

#[test]
fn a_placement_that_does_not_fit_is_refused_with_what_it_needs() {
    for (mode, expected) in [
        (
            MemoryMode::Resident,
            "its placement 1111 does not fit: its runs there need 3.9 KiB of the memory of the gpu, which has 2.4 KiB; another \
             algorithm places layers elsewhere",
        ),
        (
            MemoryMode::Reload,
            "its placement 1111 does not fit: its largest run there needs 3.9 KiB of the memory of the gpu, which has 2.4 KiB; \
             another algorithm places layers elsewhere",
        ),
    ] {
        let several = tight(mode);
        let outcome = several.plan(&several.known(), slow(&several), Algorithm::AllNpu);
        let Outcome::Infeasible(infeasible) = &outcome else {
            panic!("{outcome:?}")
        };
        let sentence = infeasible.to_string();
        assert!(sentence.ends_with(expected), "{sentence}");
        assert!(matches!(infeasible.why(), Why::TooLarge(_)));
    }
}

#[test]
fn where_memory_is_what_a_limit_fails_by_the_answer_says_so() {
    let several = tight(MemoryMode::Resident);
    let problem = several.known();
    let anywhere = least(&several, 4);
    let within = Nanos::from_nanos(anywhere as u64);
    let outcome = several.plan(&problem, Goal::MaxAccuracy { within }, Algorithm::Mlmp);
    let Outcome::Infeasible(infeasible) = &outcome else {
        panic!("{outcome:?}")
    };
    let sentence = infeasible.to_string();
    let start = "no placement that fits is fast enough, the fastest (";
    assert!(sentence.contains(start), "{sentence}");
    let end = "of the memory of the gpu, which has 2.4 KiB; allow more time, or load runs when they are needed with --memory \
               reload";
    assert!(sentence.ends_with(end), "{sentence}");
}

#[test]
fn the_checker_notices_what_does_not_fit_and_what_fits_after_all() {
    let (free, bound) = (free(), tight(MemoryMode::Resident));
    let goal = slow(&free);
    let faults = |outcome: &Outcome, several: &Several| {
        let evidence = Evidence {
            layers: &several.layers,
            processors: &several.tables(),
            accuracy: &several.table,
            loss: Loss::Formula(&|_| 0.0),
        };
        check(outcome, &evidence)
    };
    let large = plan(&free.known(), goal, Algorithm::AllNpu).expect("sensible");
    let found = faults(&large, &bound);
    assert!(matches!(found[..], [Fault::TooLarge { .. }]), "{found:?}");
    let refused = plan(&bound.known(), goal, Algorithm::AllNpu).expect("sensible");
    assert_eq!(faults(&refused, &bound), []);
    let found = faults(&refused, &free);
    assert!(
        matches!(found[..], [Fault::SupportedAfterAll { .. }]),
        "{found:?}"
    );
    // Loading that was not charged, and memory that is not needed.
    let reloaded = tight(MemoryMode::Reload);
    let goal = Goal::MinTime { at_least: 0.0 };
    let resident = plan(&bound.known(), goal, Algorithm::Fastest).expect("sensible");
    assert!(
        resident
            .plan()
            .is_some_and(|plan| !plan.combination().is_all_on(0))
    );
    let found = faults(&resident, &reloaded);
    let has = |is: fn(&Fault) -> bool| found.iter().any(is);
    assert!(
        has(|fault| matches!(fault, Fault::Time { .. })),
        "{found:?}"
    );
    assert!(
        has(|fault| matches!(fault, Fault::Memory { .. })),
        "{found:?}"
    );
}

#[test]
fn plans_say_what_they_need_and_so_do_exports() {
    for mode in MODES {
        let several = tight(mode);
        let problem = several.known();
        let goal = Goal::MinTime { at_least: 0.0 };
        let outcome = several.plan(&problem, goal, Algorithm::Fastest);
        let planned = outcome.plan().expect("fast");
        let runs = planned.combination().npu_runs().count() as i64;
        assert!(runs > 0);
        let on_gpu = planned.combination().processors().iter();
        let on_gpu = on_gpu.map(|&on| i64::from(on)).sum::<i64>();
        let loading = match mode {
            MemoryMode::Resident => 0,
            MemoryMode::Reload => 7 * runs + 10 * on_gpu,
        };
        assert_eq!(planned.time().loading.as_nanos(), loading);
        let [used] = planned.memory() else {
            panic!("one accelerator: {:?}", planned.memory())
        };
        assert!(used.fits() && used.capacity == Bytes::from_bytes(2_500));
        let json = outcomes_json(&source(), std::slice::from_ref(&outcome)).expect("JSON");
        let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        let said = &json["outcomes"][0]["plan"];
        assert_eq!(said["loading_ns"], loading);
        assert_eq!(said["memory"][0]["mode"], mode.name());
        assert_eq!(said["memory"][0]["needed_bytes"], used.needed.as_bytes());
        assert_eq!(said["memory"][0]["capacity_bytes"], 2_500);
    }
    let several = tight(MemoryMode::Resident);
    let all_but_two = several.plan(&several.known(), slow(&several), Algorithm::Mlmp);
    let reasons = all_but_two.plan().expect("slow").reasons().iter();
    let too_large = reasons.filter(|reason| matches!(reason, Reason::TooLarge(_)));
    for reason in too_large {
        assert!(
            reason
                .to_string()
                .contains("would not fit, for its runs there need")
        );
    }
    // Layer 2 runs elsewhere, so that no cut has two costs, which that format does not know.
    let several = several.without(1, &[(2, 2), (4, 4)]);
    let json = dnn_partitioning(&several.layers, &several.times(), None, &source());
    let json: serde_json::Value = serde_json::from_str(&json.expect("a workload")).expect("JSON");
    assert_eq!(json["maxSizePerFPGA"], 2_500.0);
    let sizes = [1, 3].map(|layer| json["nodes"][layer]["size"].as_f64());
    assert_eq!(sizes, [Some(1_000.0); 2]);
}

pub(crate) fn source() -> Source {
    Source {
        model: "chain".to_owned(),
        model_sha256: "0".repeat(64),
        device: "planted".to_owned(),
        cpu: "CPU".to_owned(),
        npu: "gpu".to_owned(),
        run: "r-0001".to_owned(),
        profile_digest: None,
        simulated: true,
        emulated: false,
        thermal: layerlab_profiles::soak::Thermal::Cold,
    }
}

#[test]
fn loading_whose_time_nobody_measured_is_not_charged_but_refused() {
    let several = tight(MemoryMode::Resident);
    let mut tables = several.tables();
    let memory = tables[1].memory.as_mut().expect("known");
    memory.load_times = None;
    let table = TimeTable::of(tables).expect("loading costs nothing");
    let error = table.in_memory(MemoryMode::Reload).expect_err("no times");
    assert!(matches!(error, TimesError::NoLoadTimes { .. }), "{error}");
    assert!(error.to_string().contains("--memory resident"), "{error}");
    let placement = Placement::new(vec![1; 4]);
    let packed = PackedPlacement::of(&placement).expect("few");
    assert!(!several.times().allows(&packed));
}
