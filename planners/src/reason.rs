//! Why a plan is as it is: what moving each layer alone would change, and what to be careful about.

use std::fmt;

use layerlab_profiles::{Nanos, Segment, SignedNanos};

use crate::goal::Goal;
use crate::problem::{Problem, Triple};

/// One reason, which reads as a sentence without a full stop.
#[derive(Clone, Debug, PartialEq)]
pub enum Reason {
    /// Why a layer is where it is.
    Layer(LayerReason),
    /// A processor cannot run a layer that runs elsewhere.
    Unsupported(UnsupportedReason),
    /// The upper end of T(L)'s interval lies above the time limit.
    TimeUncertain {
        /// The upper end of the 95 % interval.
        high: SignedNanos,
        /// The time limit of the goal.
        within: Nanos,
    },
    /// The accuracy requirement is met by less than the accuracy model usually errs.
    AccuracyUncertain {
        /// By how much it is met.
        margin: f64,
        /// The model's mean absolute error on rows that it never saw.
        mean_error: f64,
    },
    /// The predicted loss is impossible and was moved to the nearest possible one.
    Clamped {
        /// The predicted loss.
        loss: f64,
    },
    /// Exactly this combination was measured.
    Measured {
        /// A(L) as measured.
        measured: f64,
        /// A(L) as predicted.
        predicted: f64,
    },
}

/// What moving one layer alone to another processor would change.
#[derive(Clone, Debug, PartialEq)]
pub struct LayerReason {
    /// The layer, counted from 1.
    pub layer: u32,
    /// The layer's name in the model.
    pub name: String,
    /// The processor that it runs on, counted from 0.
    pub processor: usize,
    /// What that processor is called.
    pub here: String,
    /// What the processor of the move is called.
    pub there: String,
    /// What the move would add to T(L).
    pub time_change: SignedNanos,
    /// What the move would add to A(L).
    pub accuracy_change: f64,
    /// Why the move is not made.
    pub verdict: Verdict,
}

/// Why a layer cannot run on another processor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnsupportedReason {
    /// The layer, counted from 1.
    pub layer: u32,
    /// The layer's name in the model.
    pub name: String,
    /// The processor that it runs on, counted from 0.
    pub processor: usize,
    /// What that processor is called.
    pub here: String,
    /// What the processor is called that cannot run it, or not together with its neighbours there.
    pub there: String,
    /// The layers that it cannot run as one unit: the layer itself, or some that it is one of.
    pub segment: Segment,
    /// Why it cannot.
    pub reason: String,
}

/// Why a layer is not moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The limit of the goal would be broken.
    BreaksLimit,
    /// What the goal is to improve would become worse.
    Worse,
    /// Nothing that the goal is about would change.
    Same,
    /// The move would be better: the algorithm did not look, or looked and lost it.
    Better,
}

/// The reasons of a plan: one for each layer and each other processor, then what to be careful about.
pub(crate) fn reasons(problem: &Problem, goal: Goal, triple: &Triple) -> Vec<Reason> {
    let mut reasons: Vec<Reason> = layers(problem, goal, triple).collect();
    let placement = &triple.candidate.placement;
    let accuracy = triple.accuracy;
    match goal {
        Goal::MaxAccuracy { within } => {
            let high = problem.times().interval(placement).map(|(_, high)| high);
            let high = high.filter(|high| *high > within.signed());
            reasons.extend(high.map(|high| Reason::TimeUncertain { high, within }));
        }
        Goal::MinTime { at_least } => {
            let margin = accuracy.value - at_least;
            // The accuracy with all layers on the CPU is no prediction.
            let predicted = placement.layers_off_cpu() > 0;
            let error = problem
                .mean_error()
                .filter(|&error| predicted && margin < error);
            reasons
                .extend(error.map(|mean_error| Reason::AccuracyUncertain { margin, mean_error }));
        }
    }
    if accuracy.clamped {
        let loss = accuracy.loss;
        reasons.push(Reason::Clamped { loss });
    }
    let measured = problem.measured_accuracy(placement);
    reasons.extend(measured.map(|measured| Reason::Measured {
        measured,
        predicted: accuracy.value,
    }));
    reasons
}

/// One reason for each layer and each other processor, in their order.
fn layers<'a>(
    problem: &'a Problem,
    goal: Goal,
    triple: &'a Triple,
) -> impl Iterator<Item = Reason> + 'a {
    let placement = triple.candidate.placement;
    let moves: Vec<(usize, usize)> = (0..problem.layers())
        .flat_map(|index| (0..problem.processors()).map(move |to| (index, to)))
        .filter(|&(index, to)| to != placement.processor(index))
        .collect();
    let moved = moves
        .iter()
        .map(|&(index, to)| problem.columns().moved(&triple.candidate, index, to));
    let moved = problem.triples(&moved.collect::<Vec<_>>());
    let names: Vec<&str> = problem.times().names().collect();
    moves
        .into_iter()
        .zip(moved)
        .map(move |((index, to), moved)| {
            let processor = placement.processor(index);
            if let Some((_, lacked)) = problem.times().refusal(&moved.candidate.placement) {
                return Reason::Unsupported(UnsupportedReason {
                    layer: index as u32 + 1,
                    name: problem.names()[index].clone(),
                    processor,
                    here: names[processor].to_owned(),
                    there: names[to].to_owned(),
                    segment: lacked.segment,
                    reason: lacked.reason.clone(),
                });
            }
            Reason::Layer(LayerReason {
                layer: index as u32 + 1,
                name: problem.names()[index].clone(),
                processor,
                here: names[processor].to_owned(),
                there: names[to].to_owned(),
                time_change: SignedNanos::from_nanos(moved.time - triple.time),
                accuracy_change: moved.accuracy.value - triple.accuracy.value,
                verdict: verdict(goal, triple, &moved),
            })
        })
}

fn verdict(goal: Goal, planned: &Triple, moved: &Triple) -> Verdict {
    let (broken, order) = match goal {
        Goal::MaxAccuracy { within } => (
            moved.time > within.signed().as_nanos(),
            moved.accuracy.value.total_cmp(&planned.accuracy.value),
        ),
        Goal::MinTime { at_least } => (
            moved.accuracy.value < at_least,
            planned.time.cmp(&moved.time),
        ),
    };
    match (broken, order) {
        (true, _) => Verdict::BreaksLimit,
        (false, std::cmp::Ordering::Less) => Verdict::Worse,
        (false, std::cmp::Ordering::Equal) => Verdict::Same,
        (false, std::cmp::Ordering::Greater) => Verdict::Better,
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Layer(layer) => layer.fmt(f),
            Reason::Unsupported(layer) => layer.fmt(f),
            Reason::TimeUncertain { high, within } => write!(
                f,
                "the time may be as long as {high} (95 %), more than the limit {within}; measure longer or plan \
                 for a shorter limit"
            ),
            Reason::AccuracyUncertain { margin, mean_error } => write!(
                f,
                "the accuracy requirement is met by {margin:.4} only, and the accuracy model errs by \
                 {mean_error:.4} on average; measure this combination before relying on it"
            ),
            Reason::Clamped { loss } => write!(
                f,
                "the accuracy model predicts a loss of {loss:.4}, which is impossible and was moved to the nearest \
                 possible one"
            ),
            Reason::Measured {
                measured,
                predicted,
            } => write!(
                f,
                "exactly this combination was measured: its accuracy is {measured:.4}, predicted {predicted:.4}"
            ),
        }
    }
}

impl fmt::Display for LayerReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LayerReason {
            layer,
            name,
            here,
            there,
            ..
        } = self;
        let time = signed(self.time_change);
        let accuracy = self.accuracy_change;
        write!(
            f,
            "layer {layer} ({name}) runs on the {here}: on the {there} the time would change by {time} and the \
             accuracy by {accuracy:+.4}, "
        )?;
        f.write_str(match self.verdict {
            Verdict::BreaksLimit => "which breaks the limit",
            Verdict::Worse => "which is worse",
            Verdict::Same => "which gains nothing",
            Verdict::Better => "which would be better, but this algorithm does not get there",
        })
    }
}

impl fmt::Display for UnsupportedReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let UnsupportedReason {
            layer,
            name,
            here,
            there,
            segment,
            reason,
            ..
        } = self;
        write!(
            f,
            "layer {layer} ({name}) runs on the {here}: the {there} cannot run "
        )?;
        match segment.layers() {
            1 => write!(f, "it: {reason}"),
            _ => write!(f, "layers {segment} as one unit: {reason}"),
        }
    }
}

fn signed(change: SignedNanos) -> String {
    if change >= SignedNanos::ZERO {
        format!("+{change}")
    } else {
        change.to_string()
    }
}
