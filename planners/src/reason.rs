//! Why a plan is as it is: what moving each layer alone would change, and what to be careful about.

use std::fmt;

use layerlab_profiles::{Layer, Nanos, Segment, SignedNanos};

use crate::confidence::Confidence;
use crate::goal::Goal;
use crate::memory::MemoryUse;
use crate::placement::PackedPlacement;
use crate::problem::{Problem, Triple};
use crate::solve::meets;
use crate::times::{Refusal, TimeTable};

/// One reason, which reads as a sentence without a full stop.
#[derive(Clone, Debug, PartialEq)]
pub enum Reason {
    /// Why a layer is where it is.
    Layer(LayerReason),
    /// A processor cannot run a layer that runs elsewhere.
    Unsupported(UnsupportedReason),
    /// The memory of an accelerator would not hold the placement with a layer elsewhere.
    TooLarge(TooLargeReason),
    /// The time limit is not kept with confidence.
    TimeUncertain {
        /// The time that the placement takes at most.
        high: SignedNanos,
        /// With this confidence.
        confidence: Confidence,
        /// The time limit of the goal.
        within: Nanos,
    },
    /// T(L) has no interval, so that the time limit is kept by an estimate.
    TimeUnknown,
    /// The accuracy requirement is not kept with confidence.
    AccuracyUncertain {
        /// The accuracy that the placement has at least; nothing if that is not known.
        low: Option<f64>,
        /// With this confidence.
        confidence: Confidence,
        /// The accuracy requirement of the goal.
        at_least: f64,
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
    /// What the move would add to A(L); nothing where accuracy was not measured.
    pub accuracy_change: Option<f64>,
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

/// Why a layer is not moved to another processor, or from it: memory would not hold the runs that there would be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TooLargeReason {
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
    /// What would be needed.
    pub shortage: MemoryUse,
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
    let confidence = problem.confidence().unwrap_or(Confidence::USUAL);
    match goal {
        Goal::MaxAccuracy { within } => match problem.longest_time_at(placement, confidence) {
            _ if problem.times().interval(placement).is_none() => reasons.push(Reason::TimeUnknown),
            high if high > within.signed().as_nanos() => reasons.push(Reason::TimeUncertain {
                high: SignedNanos::from_nanos(high),
                confidence,
                within,
            }),
            _ => {}
        },
        Goal::MinTime { at_least } => {
            // No accuracy is below 0, so that one of 0 is always kept.
            let low = accuracy.interval.map(|(low, _)| low.max(0.0));
            if low.unwrap_or(0.0) < at_least {
                reasons.push(Reason::AccuracyUncertain {
                    low,
                    confidence,
                    at_least,
                });
            }
        }
    }
    if accuracy.clamped {
        let loss = accuracy.loss;
        reasons.push(Reason::Clamped { loss });
    }
    let measured = problem.measured_accuracy(placement);
    reasons.extend(measured.map(|measured| Reason::Measured {
        measured,
        predicted: problem.predicted_accuracy(&triple.candidate),
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
    let moves: Vec<(usize, usize)> = moves(problem.times(), placement).collect();
    let moved = moves
        .iter()
        .map(|&(index, to)| problem.columns().moved(&triple.candidate, index, to));
    let moved = problem.triples(&moved.collect::<Vec<_>>());
    let names: Vec<&str> = problem.times().names().collect();
    moves
        .into_iter()
        .zip(moved)
        .map(move |((index, to), moved)| {
            let layer = LayerReason {
                layer: index as u32 + 1,
                name: problem.names()[index].clone(),
                processor: placement.processor(index),
                here: names[placement.processor(index)].to_owned(),
                there: names[to].to_owned(),
                time_change: SignedNanos::from_nanos(moved.time - triple.time),
                accuracy_change: Some(moved.accuracy.value - triple.accuracy.value),
                verdict: verdict(problem, goal, triple, &moved),
            };
            unless_refused(layer, problem.times(), &moved.candidate.placement)
        })
}

/// Why each layer of the fastest placement is where it is, where time alone counts.
pub(crate) fn reasons_by_time(
    layers: &[Layer],
    times: &TimeTable,
    fastest: PackedPlacement,
) -> Vec<Reason> {
    let names: Vec<&str> = times.names().collect();
    let reason = |(index, to): (usize, usize)| {
        let change = times.change(&fastest, index, to);
        let processor = fastest.processor(index);
        let layer = LayerReason {
            layer: index as u32 + 1,
            name: layers[index].name.clone(),
            processor,
            here: names[processor].to_owned(),
            there: names[to].to_owned(),
            time_change: SignedNanos::from_nanos(change),
            accuracy_change: None,
            verdict: match change.signum() {
                1 => Verdict::Worse,
                0 => Verdict::Same,
                _ => Verdict::Better,
            },
        };
        unless_refused(layer, times, &fastest.placed(index, to))
    };
    moves(times, fastest).map(reason).collect()
}

/// Each layer with each processor that it is not on.
fn moves(times: &TimeTable, placement: PackedPlacement) -> impl Iterator<Item = (usize, usize)> {
    let processors = times.processors();
    (0..times.layers())
        .flat_map(move |index| (0..processors).map(move |to| (index, to)))
        .filter(move |&(index, to)| to != placement.processor(index))
}

/// The reason, or why the placement with the layer moved is not possible.
fn unless_refused(reason: LayerReason, times: &TimeTable, moved: &PackedPlacement) -> Reason {
    let Some(refusal) = times.refusal(moved) else {
        return Reason::Layer(reason);
    };
    let LayerReason {
        layer,
        name,
        processor,
        here,
        there,
        ..
    } = reason;
    match refusal {
        Refusal::Unsupported(_, lacked) => Reason::Unsupported(UnsupportedReason {
            layer,
            name,
            processor,
            here,
            there,
            segment: lacked.segment,
            reason: lacked.reason.clone(),
        }),
        Refusal::Memory(shortage) => Reason::TooLarge(TooLargeReason {
            layer,
            name,
            processor,
            here,
            there,
            shortage,
        }),
    }
}

fn verdict(problem: &Problem, goal: Goal, planned: &Triple, moved: &Triple) -> Verdict {
    let order = match goal {
        Goal::MaxAccuracy { .. } => moved.accuracy.value.total_cmp(&planned.accuracy.value),
        Goal::MinTime { .. } => planned.time.cmp(&moved.time),
    };
    let broken = !meets(problem, goal, moved);
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
            Reason::TooLarge(layer) => layer.fmt(f),
            Reason::TimeUncertain {
                high,
                confidence,
                within,
            } => write!(
                f,
                "the time may be as long as {high} ({} %), more than the limit {within}; measure longer or plan for \
                 a shorter limit",
                confidence.percent()
            ),
            Reason::TimeUnknown => f.write_str(
                "the time has no interval, so that nobody knows how surely the limit is kept; measure more samples",
            ),
            Reason::AccuracyUncertain {
                low: Some(low),
                confidence,
                at_least,
            } => write!(
                f,
                "the accuracy may be as low as {low:.4} ({} %), less than the requirement {at_least}; measure this \
                 combination before relying on it",
                confidence.percent()
            ),
            Reason::AccuracyUncertain {
                low: None,
                confidence,
                ..
            } => write!(
                f,
                "there are too few measured combinations to say with {} % how low the accuracy may be; measure this \
                 combination before relying on it",
                confidence.percent()
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
        write!(
            f,
            "layer {layer} ({name}) runs on the {here}: on the {there} the time would change by {time}"
        )?;
        if let Some(accuracy) = self.accuracy_change {
            write!(f, " and the accuracy by {accuracy:+.4}")?;
        }
        f.write_str(", ")?;
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

impl fmt::Display for TooLargeReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TooLargeReason {
            layer,
            name,
            here,
            there,
            shortage,
            ..
        } = self;
        write!(
            f,
            "layer {layer} ({name}) runs on the {here}: with it on the {there} the placement would not fit, for {shortage}"
        )
    }
}

fn signed(change: SignedNanos) -> String {
    if change >= SignedNanos::ZERO {
        format!("+{change}")
    } else {
        change.to_string()
    }
}
