//! What measuring networks of 50 to 1000 layers costs: processor time for each block that the adaptive design plans, memory,
//! and device time until T(L) of random placements is known to 1 %. `scaling` prints the table of `tests/reports/scaling.md`;
//! `scaling LAYERS` measures one network in a process of its own, so that memory is its own, and prints its row.

#![expect(clippy::print_stdout, reason = "its table is what it is for")]
#![expect(clippy::print_stderr, reason = "as is a wrong command line")]

use std::collections::BTreeMap;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use layerlab_agent::device::simulated::Noise;
use layerlab_agent::runtime::simulated::{LayerWork, PlantedTimes};
use layerlab_profiles::derive::graph::{Fit, VisitSamples, observe_visits};
use layerlab_profiles::derive::{LayerTime, medians};
use layerlab_profiles::design::Design;
use layerlab_profiles::design::adaptive::{self, Overhead, Planner, Settings};
use layerlab_profiles::design::agenda::segments_per_block;
use layerlab_profiles::design::over_budget::OverBudget;
use layerlab_profiles::design::planned_block::{Next, Purpose};
use layerlab_profiles::summary::Summary;
use layerlab_profiles::{Nanos, Placement, Segment};
use layerlab_tests::process_usage::ProcessUsage;
use layerlab_tests::proof::table::markdown;
use layerlab_tests::proof::yolo_small::yolo_small;
use layerlab_tests::proof::{Measured, SimulatedProcessor};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

const LAYERS: [usize; 5] = [50, 100, 200, 500, 1000];
const DEVICE: &str = "mate10pro";
/// Of a time, as on a phone that is neither quiet nor loud.
const NOISE: f64 = 0.03;
const SEED: u64 = 1;
const PLACEMENTS: usize = 200;
/// The half width of T(L)'s 95 % interval, as a share of it, that the median placement is to have.
const TARGET: f64 = 0.01;
/// How often the sentinel is timed in a block at least: three times at either end.
const SENTINELS: u64 = 6;
/// Blocks that are planned beyond those that reach the target, so that planning is timed where there is none else.
const TIMED_BLOCKS: usize = 20;
/// T(L) is looked at each time that so many more blocks are in.
const LOOKS: f64 = 1.02;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.as_slice() {
        [] => table(),
        [layers] => match layers.parse() {
            Ok(layers) if layers > 1 => {
                println!("{}", Row::of(layers).cells().join(";"));
                ExitCode::SUCCESS
            }
            _ => wrong(),
        },
        _ => wrong(),
    }
}

fn wrong() -> ExitCode {
    eprintln!("usage: scaling [LAYERS], at least two");
    ExitCode::from(2)
}

fn table() -> ExitCode {
    let this = std::env::current_exe().expect("this program's own path");
    let row = |layers: &usize| -> Vec<String> {
        let output = Command::new(&this).arg(layers.to_string()).output();
        let output = output.expect("this program starts");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.trim().split(';').map(str::to_owned).collect()
    };
    let rows: Vec<Vec<String>> = LAYERS.iter().map(row).collect();
    print!("{}", markdown(&HEADS, &rows));
    match rows.iter().all(|row| row.len() == HEADS.len()) {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

const HEADS: [&str; 10] = [
    "layers",
    "plan a block, median",
    "longest",
    "observe all samples",
    "memory at most",
    "whole model",
    "blocks",
    "timed inference",
    "with sentinels",
    "error of T(L), median",
];

/// What one network took.
struct Row {
    layers: u32,
    planning: Vec<Duration>,
    observing: Duration,
    whole: Nanos,
    blocks: usize,
    timed: Nanos,
    sentinels: Nanos,
    error: f64,
}

impl Row {
    fn of(layers: usize) -> Row {
        let work: Vec<LayerWork> = yolo_small().into_iter().cycle().take(layers).collect();
        let processor = |name| {
            let mut processor = SimulatedProcessor::open(DEVICE, name, &work);
            processor.noise = Noise {
                proportional_sigma: NOISE,
                spike_probability: 0.01,
                spike_factor: 1.5,
                ..Noise::default()
            };
            processor
        };
        let (cpu, npu) = (processor("cpu"), processor("npu"));
        let placements = placements(layers, &cpu, &npu);
        let cpu_times = cpu_times(&cpu);
        let planner = planner(npu.layers());
        let whole = npu.times.segment(Segment::whole(npu.layers()));
        let mut samples = VisitSamples::default();
        let mut row = Row {
            layers: npu.layers(),
            planning: Vec::new(),
            observing: Duration::ZERO,
            whole,
            blocks: 0,
            timed: Nanos::ZERO,
            sentinels: Nanos::ZERO,
            error: f64::INFINITY,
        };
        let mut spent = Nanos::ZERO;
        let (mut reached, mut look_at) = (false, 1.0);
        loop {
            let began = Instant::now();
            let observations = observe_visits(&samples);
            row.observing = began.elapsed();
            let began = Instant::now();
            let next = planner.next(&observations, spent).expect("one model");
            let took = began.elapsed();
            let Next::Measure(block) = next else {
                return row;
            };
            let is_start = !matches!(block.purpose, Purpose::Narrow { .. });
            if !is_start {
                row.planning.push(took);
            }
            if !reached && !is_start && samples.sentinels.len() as f64 >= look_at {
                look_at = samples.sentinels.len() as f64 * LOOKS;
                let held_back = adaptive::held_back(row.layers, SEED);
                let fit = Fit::new(row.layers, &observations, &held_back).expect("connected");
                let (width, error) = medians_of(&fit, &cpu_times, &placements);
                if width <= TARGET {
                    (reached, row.error) = (true, error);
                    row.blocks = samples.sentinels.len();
                    row.timed = spent;
                    row.sentinels = times(whole, SENTINELS * row.blocks as u64);
                }
            }
            if reached && row.planning.len() >= TIMED_BLOCKS {
                return row;
            }
            spent = spent + npu.visit(&mut samples, block.counts(), SEED);
        }
    }

    fn cells(&self) -> Vec<String> {
        let mut planning = self.planning.clone();
        planning.sort_unstable();
        let millis = |time: Duration| format!("{:.1} ms", 1e3 * time.as_secs_f64());
        let seconds = |time: Nanos| format!("{:.1} s", time.as_nanos() as f64 / 1e9);
        vec![
            self.layers.to_string(),
            millis(planning[planning.len() / 2]),
            millis(planning[planning.len() - 1]),
            millis(self.observing),
            format!("{} MiB", ProcessUsage::own().peak_bytes >> 20),
            seconds(self.whole),
            self.blocks.to_string(),
            seconds(self.timed),
            seconds(self.timed + self.sentinels),
            format!("{:.2} %", 100.0 * self.error),
        ]
    }
}

fn times(time: Nanos, count: u64) -> Nanos {
    Nanos::from_nanos(time.as_nanos() * count)
}

/// A planner that goes on until it is told to stop.
fn planner(layers: u32) -> Planner {
    Planner::new(Settings {
        layers,
        seed: SEED,
        target: 0.0,
        budget: Nanos::from_nanos(u64::MAX / 2),
        over_budget: OverBudget::Extend,
        repetitions: 6,
        segments_per_block: segments_per_block(layers),
        overhead: Overhead::default(),
    })
}

/// Random placements as docs/method.md §6 draws them, each with its planted time in ns.
fn placements(
    layers: usize,
    cpu: &SimulatedProcessor,
    npu: &SimulatedProcessor,
) -> Vec<(Placement, f64)> {
    let mut random = ChaCha8Rng::seed_from_u64(SEED);
    let drawn = (0..PLACEMENTS).map(|_| {
        let share = random.random_range(1..=layers) as f64 / layers as f64;
        let on_npu = (0..layers).map(|_| random.random_bool(share)).collect();
        let placement = Placement::new(on_npu);
        let planted = PlantedTimes::of_placement(&[&cpu.times, &npu.times], &placement);
        (placement, planted.as_nanos() as f64)
    });
    drawn.collect()
}

/// The times of the layers on the CPU, from twenty passes.
fn cpu_times(cpu: &SimulatedProcessor) -> Vec<LayerTime> {
    let mut measured = Measured::new();
    cpu.measure(
        &mut measured,
        Design::LayerPass.iter(cpu.layers()),
        20,
        SEED,
    );
    let summaries: BTreeMap<Segment, Summary> = measured
        .iter()
        .filter_map(|(segment, samples)| Some((*segment, Summary::of(samples)?)))
        .collect();
    medians(cpu.layers(), &summaries).expect("every layer was measured")
}

/// Of T(L): the median half width of its interval and the median error, as shares of it.
fn medians_of(fit: &Fit, cpu: &[LayerTime], placements: &[(Placement, f64)]) -> (f64, f64) {
    let (mut widths, mut errors) = (Vec::new(), Vec::new());
    for (placement, planted) in placements {
        let found = fit.combination(cpu, placement).expect("one model");
        let width = found.ci95.map_or(f64::INFINITY, |(low, high)| {
            (high - low).as_nanos() as f64 / 2.0
        });
        widths.push(width / planted);
        errors.push((found.value.as_nanos() as f64 - planted).abs() / planted);
    }
    (middle(widths), middle(errors))
}

fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
