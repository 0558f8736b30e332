//! What inferences draw, from windows in which a power meter was read (docs/method.md §13). All are nanojoules, which take the
//! place of nanoseconds in the estimator that times have: energies of segments add up as their times do.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::derive::graph::{
    AdditivityTest, DerivedNumber, ErrorVariance, Fit, GraphError, InShares, Observations,
    WindowMean, additivity, observe_windows,
};
use crate::derive::{Includes, LayerTime};
use crate::design::Design;
use crate::processor_kind::ProcessorKind;
use crate::segment::Segment;
use crate::summary::Estimate;
use crate::supported::SupportedLayers;
use crate::units::{NanoJoules, Nanos};

/// The shortest window: a fuel gauge gives a few dozen readings in it.
pub const SHORTEST_WINDOW: Nanos = Nanos::from_millis(30_000);

/// The longest one: nobody waits for longer.
pub const LONGEST_WINDOW: Nanos = Nanos::from_millis(600_000);

/// The fewest visits: how far windows scatter is told by their differences.
pub const FEWEST_VISITS: u32 = 3;

/// Readings that scatter by at least this part of a meter's step average out what the step hides.
const DITHER: f64 = 0.5;

/// What a power meter is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MeterSource {
    /// An instrument beside the device.
    External,
    /// Meters of the device's power rails, as the kernel's industrial I/O tells of them.
    Rails,
    /// The battery's fuel gauge.
    FuelGauge,
    /// The processor's own energy counters (RAPL).
    Rapl,
    /// The gauge of a simulated device.
    Simulated,
}

/// The power meter that was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Meter {
    /// What it is.
    pub source: MeterSource,
    /// Which one, for a person.
    pub name: String,
    /// How long a change of what is drawn may take to show: nothing is counted that is read sooner after one.
    pub settle_ns: Nanos,
}

/// A time in which a meter was read, while one segment was run over and over, or while the device idled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnergyWindow {
    /// The processor, by the name that the header gives it.
    pub processor: String,
    /// The order in which the agent measured it: a visit to each segment.
    pub order: u32,
    /// The layers that ran as one unit; `None` while the device idled.
    pub segment: Option<Segment>,
    /// When the window began, by the device's clock.
    pub started: Nanos,
    /// How long it was.
    pub duration: Nanos,
    /// How many inferences it holds; 0 while the device idled.
    pub runs: u64,
    /// What the device drew in it, by the meter.
    pub energy: NanoJoules,
    /// From how many readings that is known.
    pub readings: u64,
    /// The standard deviation of the readings, in µW; 0 of a counter, which is read twice.
    pub scatter_uw: u64,
    /// What all readings until then are multiples of, in µW; absent of a counter, and where there was but one value.
    pub step_uw: Option<u64>,
}

/// Why windows say nothing of what layers draw.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum EnergyError {
    /// There is nothing to compare a busy device with.
    #[error(
        "order {order} has a window of layers {segment} on `{processor}` and none in which the device idled"
    )]
    NoIdle {
        /// The processor.
        processor: String,
        /// The order.
        order: u32,
        /// The layers.
        segment: Segment,
    },
    /// Nothing was run in it.
    #[error("order {order} has a window of layers {segment} on `{processor}` in which nothing ran")]
    NoRuns {
        /// The processor.
        processor: String,
        /// The order.
        order: u32,
        /// The layers.
        segment: Segment,
    },
    /// The meter does not notice that a processor works.
    #[error(
        "the meter shows no more while `{processor}` runs layers {segment} than while the device idles: it does not see that \
         processor, or other programs ran meanwhile; choose another --meter, or a longer --energy"
    )]
    Unseen {
        /// The processor.
        processor: String,
        /// The layers.
        segment: Segment,
    },
    /// A layer was not measured.
    #[error("no window of layer {layer} alone on `{processor}`")]
    MissingLayer {
        /// The processor.
        processor: String,
        /// The layer, counted from 1.
        layer: u32,
    },
    /// The segments do not give layers.
    #[error("the energies of segments on `{processor}` give none of layers: {reason}")]
    Graph {
        /// The processor.
        processor: String,
        /// Why not.
        reason: GraphError,
    },
}

/// What follows from the windows of one processor.
#[derive(Clone, Debug, PartialEq)]
pub struct DerivedEnergy {
    /// What each layer costs that the processor can run, by its number, in nJ.
    pub layers: BTreeMap<u32, LayerTime>,
    /// The same of each layer's computing and of all layers together, where the processor can run them, with what is known of
    /// their errors.
    pub(crate) numbers: EnergyNumbers,
    /// What is drawn above idling while the processor works, in µW.
    pub power_uw: f64,
    /// Half its 95 % interval; `None` where nothing scatters.
    pub power_half_width_uw: Option<f64>,
    /// What the idle device draws, in µW.
    pub idle_uw: f64,
    /// The meter's step in µW, where it hides something.
    pub hidden_step_uw: Option<u64>,
    /// How well energies add up on the longest stretch of layers, if that was tested.
    pub additivity: Option<AdditivityTest>,
}

impl DerivedEnergy {
    /// What all layers draw, where the processor can run them, in nJ.
    pub fn whole(&self) -> Option<Estimate> {
        self.numbers.whole.map(|whole| whole.estimate())
    }
}

/// The energies of a processor's layers and of all of them, in nJ, with the degrees of freedom of their errors.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct EnergyNumbers {
    pub(crate) layers: BTreeMap<u32, DerivedNumber>,
    pub(crate) whole: Option<DerivedNumber>,
}

/// Which segments are measured on a processor: on a CPU, which computes in main memory, each layer alone.
pub fn segments(kind: ProcessorKind, supported: &SupportedLayers) -> Vec<Segment> {
    design(kind).iter_on(supported).collect()
}

fn design(kind: ProcessorKind) -> Design {
    match kind {
        ProcessorKind::Cpu => Design::LayerPass,
        ProcessorKind::Accelerator => Design::Local,
    }
}

/// What an inference of a segment drew above idling in one window, in nJ, and what the device drew above it, in µW.
struct Above {
    segment: Segment,
    energy_nj: f64,
    runs: f64,
    power_uw: f64,
    idle_uw: f64,
}

/// What follows from the windows of one processor, in any order. `None` where there are none.
pub fn derive(
    kind: ProcessorKind,
    supported: &SupportedLayers,
    windows: &[&EnergyWindow],
) -> Result<Option<DerivedEnergy>, EnergyError> {
    let Some(first) = windows.first() else {
        return Ok(None);
    };
    let processor = first.processor.as_str();
    let above = above_idle(windows)?;
    let count = above.len().max(1) as f64;
    let idle_uw = above.iter().map(|one| one.idle_uw).sum::<f64>() / count;
    let power_uw = mean_power(&above);
    let hidden_step_uw = hidden_step(windows);
    let observed = observed(&above, hidden_step_uw);
    let of_steps = observed.visits.of_times;
    let graph = |reason| EnergyError::Graph {
        processor: processor.to_owned(),
        reason,
    };
    let (layers, numbers, tested) = match kind {
        ProcessorKind::Cpu => {
            let (layers, numbers) = alone(processor, supported, &observed)?;
            (layers, numbers, None)
        }
        ProcessorKind::Accelerator => by_least_squares(supported, &observed).map_err(graph)?,
    };
    let variance = above.iter().map(|one| (one.power_uw - power_uw).powi(2));
    let variance = variance.sum::<f64>() / (count - 1.0).max(1.0) / count;
    let known = ErrorVariance::sum([
        ErrorVariance {
            variance,
            freedom: count - 1.0,
        },
        ErrorVariance {
            variance: of_steps.variance * power_uw * power_uw,
            ..of_steps
        },
    ]);
    Ok(Some(DerivedEnergy {
        layers,
        numbers,
        power_uw,
        power_half_width_uw: observed.has_spread.then(|| known.half_width()),
        idle_uw,
        hidden_step_uw,
        additivity: tested,
    }))
}

/// The fit from which the energies of an accelerator's layers came, made again from its windows. Nothing without windows.
pub fn fit(
    supported: &SupportedLayers,
    windows: &[&EnergyWindow],
) -> Result<Option<Fit>, EnergyError> {
    let Some(first) = windows.first().filter(|_| supported.is_all()) else {
        return Ok(None);
    };
    let above = above_idle(windows)?;
    let observed = observed(&above, hidden_step(windows));
    let whole = Segment::whole(supported.layers().max(1));
    let fit = fit_of(supported, whole, &observed);
    fit.map(Some).map_err(|reason| EnergyError::Graph {
        processor: first.processor.clone(),
        reason,
    })
}

/// What one inference draws of which each segment in these windows is a part, each on the processor of its windows: the mean over
/// the visits of what all parts draw in one, by Student's t. In nJ; nothing without windows.
///
/// # Errors
/// When a window has none beside it in which the device idled, or shows no more than that one.
pub fn drawn_together(windows: &[&EnergyWindow]) -> Result<Option<Estimate>, EnergyError> {
    let mut by_processor: BTreeMap<&str, Vec<&EnergyWindow>> = BTreeMap::new();
    for &window in windows {
        by_processor
            .entry(&window.processor)
            .or_default()
            .push(window);
    }
    let (mut visits, mut of_steps): (Vec<f64>, f64) = (Vec::new(), 0.0);
    for windows in by_processor.values() {
        let above = above_idle(windows)?;
        let mut times_visited: BTreeMap<Segment, usize> = BTreeMap::new();
        for one in &above {
            let visit = times_visited.entry(one.segment).or_default();
            if *visit == visits.len() {
                visits.push(0.0);
            }
            visits[*visit] += one.energy_nj;
            *visit += 1;
        }
        let parts = times_visited.len() as f64;
        let mean = above.iter().map(|one| one.energy_nj).sum::<f64>() / above.len().max(1) as f64;
        if let Some(step) = hidden_step(windows) {
            let relative = variance_of_steps(step, mean_power(&above));
            of_steps += relative * (mean * parts).powi(2);
        }
    }
    let count = visits.len() as f64;
    if visits.is_empty() {
        return Ok(None);
    }
    let mean = visits.iter().sum::<f64>() / count;
    let scatter = visits
        .iter()
        .map(|visit| (visit - mean).powi(2))
        .sum::<f64>();
    let errors = [
        ErrorVariance {
            variance: scatter / (count - 1.0) / count,
            freedom: count - 1.0,
        },
        ErrorVariance {
            variance: of_steps,
            freedom: f64::INFINITY,
        },
    ];
    let together = DerivedNumber {
        value_ns: mean,
        error: (count > 1.0).then(|| ErrorVariance::sum(errors)),
    };
    Ok(Some(together.estimate()))
}

/// The relative variance of all energies by which a step of so many µW may move them together, where a processor draws so
/// much: it is off by the same in all windows, once while the device idles, and once while it is busy.
pub fn variance_of_steps(step_uw: u64, power_uw: f64) -> f64 {
    (step_uw as f64 / power_uw).powi(2) / 6.0
}

/// What the windows of each segment say, judged by those of all segments together.
fn observed(above: &[Above], hidden_step_uw: Option<u64>) -> Observations {
    let mut means: BTreeMap<Segment, Vec<WindowMean>> = BTreeMap::new();
    for one in above {
        means.entry(one.segment).or_default().push(WindowMean {
            mean: one.energy_nj,
            runs: one.runs,
        });
    }
    let mut observed = observe_windows(&means);
    if let Some(step) = hidden_step_uw {
        observed.visits.of_times = ErrorVariance {
            variance: variance_of_steps(step, mean_power(above)),
            freedom: f64::INFINITY,
        };
    }
    observed
}

fn mean_power(above: &[Above]) -> f64 {
    let sum: f64 = above.iter().map(|one| one.power_uw).sum();
    sum / above.len().max(1) as f64
}

/// What every busy window has above idling: the device idled right before and right after it, which is what it is compared
/// with.
fn above_idle(windows: &[&EnergyWindow]) -> Result<Vec<Above>, EnergyError> {
    let mut by_order: BTreeMap<u32, Vec<&EnergyWindow>> = BTreeMap::new();
    for &window in windows {
        by_order.entry(window.order).or_default().push(window);
    }
    let mut all = Vec::new();
    for windows in by_order.values_mut() {
        windows.sort_by_key(|window| window.started);
        let idle = |window: &&&EnergyWindow| window.segment.is_none();
        for (place, window) in windows.iter().enumerate() {
            let Some(segment) = window.segment else {
                continue;
            };
            let of_window = || (window.processor.clone(), window.order);
            let before = windows[..place].iter().rev().find(idle);
            let after = windows[place + 1..].iter().find(idle);
            let beside: Vec<f64> = [before, after]
                .into_iter()
                .flatten()
                .map(|idle| power_uw(idle))
                .collect();
            if beside.is_empty() {
                let (processor, order) = of_window();
                return Err(EnergyError::NoIdle {
                    processor,
                    order,
                    segment,
                });
            }
            if window.runs == 0 {
                let (processor, order) = of_window();
                return Err(EnergyError::NoRuns {
                    processor,
                    order,
                    segment,
                });
            }
            let idle_uw = beside.iter().sum::<f64>() / beside.len() as f64;
            let above_uw = power_uw(window) - idle_uw;
            if above_uw <= 0.0 {
                return Err(EnergyError::Unseen {
                    processor: window.processor.clone(),
                    segment,
                });
            }
            // µW · ns are fJ.
            let energy_nj = above_uw * window.duration.as_nanos() as f64 / 1e6;
            all.push(Above {
                segment,
                energy_nj: energy_nj / window.runs as f64,
                runs: window.runs as f64,
                power_uw: above_uw,
                idle_uw,
            });
        }
    }
    Ok(all)
}

/// What was drawn on average in a window.
fn power_uw(window: &EnergyWindow) -> f64 {
    window.energy.as_nanojoules() as f64 * 1e6 / (window.duration.as_nanos().max(1)) as f64
}

/// The meter's step, unless readings scatter enough that their mean does not depend on it.
fn hidden_step(windows: &[&EnergyWindow]) -> Option<u64> {
    let step = windows.iter().filter_map(|window| window.step_uw).min()?;
    let mut scatters: Vec<u64> = windows.iter().map(|window| window.scatter_uw).collect();
    scatters.sort_unstable();
    let usual = *scatters.get(scatters.len() / 2)? as f64;
    (usual < DITHER * step as f64).then_some(step)
}

type OfLayers = (BTreeMap<u32, LayerTime>, EnergyNumbers);

/// Each layer from its own windows.
fn alone(
    processor: &str,
    supported: &SupportedLayers,
    observed: &Observations,
) -> Result<OfLayers, EnergyError> {
    let (mut layers, mut errors, mut sum) = (BTreeMap::new(), Vec::new(), 0.0);
    let mut numbers = EnergyNumbers::default();
    let stretches = supported.stretches().iter();
    for layer in stretches.flat_map(|stretch| stretch.first()..=stretch.last()) {
        let Some((energy_nj, own)) = observed.own_error(Segment::single(layer)) else {
            return Err(EnergyError::MissingLayer {
                processor: processor.to_owned(),
                layer,
            });
        };
        let error = ErrorVariance::sum([own, observed.shared_by_times(energy_nj)]);
        let compute = DerivedNumber {
            value_ns: energy_nj,
            error: observed.has_spread.then_some(error),
        };
        numbers.layers.insert(layer, compute);
        layers.insert(
            layer,
            LayerTime {
                compute: compute.estimate(),
                compute_includes: Includes::default(),
                to_processor: None,
                from_processor: None,
            },
        );
        sum += energy_nj;
        errors.push(own);
    }
    errors.push(observed.shared_by_times(sum));
    let whole = DerivedNumber {
        value_ns: sum,
        error: observed.has_spread.then(|| ErrorVariance::sum(errors)),
    };
    numbers.whole = supported.is_all().then_some(whole);
    Ok((layers, numbers))
}

type ByLeastSquares = (
    BTreeMap<u32, LayerTime>,
    EnergyNumbers,
    Option<AdditivityTest>,
);

/// The layers of each stretch by least squares on its segment graph, moving in and out taken to cost the same.
fn by_least_squares(
    supported: &SupportedLayers,
    observed: &Observations,
) -> Result<ByLeastSquares, GraphError> {
    let (mut layers, mut tested) = (BTreeMap::new(), None);
    let mut numbers = EnergyNumbers::default();
    for &stretch in supported.stretches() {
        let of_stretch = fit_of(supported, stretch, observed)?;
        let times = of_stretch.layer_times().into_iter();
        layers.extend((stretch.first()..).zip(times));
        let own = of_stretch.layer_numbers_with(&InShares::symmetric());
        let own = own.into_iter().map(|numbers| numbers.compute);
        numbers.layers.extend((stretch.first()..).zip(own));
        if supported.is_all() {
            numbers.whole = Some(of_stretch.whole_number());
        }
        if supported.longest() == Some(stretch) {
            let held_back = Design::Local.tested(&supported.stretch(stretch), 0);
            tested = additivity(stretch.layers(), &observed.within(stretch), &held_back)?;
        }
    }
    Ok((layers, numbers, tested))
}

fn fit_of(
    supported: &SupportedLayers,
    stretch: Segment,
    observed: &Observations,
) -> Result<Fit, GraphError> {
    let held_back: BTreeSet<Segment> = Design::Local.held_back(&supported.stretch(stretch), 0);
    Fit::new(stretch.layers(), &observed.within(stretch), &held_back)
}
