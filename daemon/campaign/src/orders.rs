//! Where a run's orders come from: a plan that is known from the start, or one that is made while the
//! device measures.

mod adaptive;
mod device_time;
mod fixed;
mod in_turn;
mod interleaved;
mod probing;
mod share;
mod survey;

use layerlab_profiles::accuracy::Tally;
use layerlab_profiles::derive::graph::{GraphError, Visit};
use layerlab_profiles::design::Design;
use layerlab_profiles::document::{Sample, Unsupported};
use layerlab_profiles::{Nanos, Segment};
use layerlab_protocol::{Event, FormAnswer, Order, PackedTensor};

pub use adaptive::Adaptive;
pub use fixed::Fixed;
pub use in_turn::InTurn;
pub use interleaved::Interleaved;
pub use probing::{Probing, ProbingTime};
pub(crate) use share::share;
pub use survey::{SURVEY, Surveyed, survey};

/// Where a run's orders come from.
pub trait Orders: Send {
    /// The orders to send next. Asked at the start of a run and after each entry; `news` are what came since
    /// it was asked last, with the samples they hold. A run ends when there are none left open and none
    /// come, and at once when it cannot be said what to measure next.
    fn next(&mut self, news: &[News]) -> Result<Vec<Order>, PlannerError>;
}

/// Why it cannot be said what to measure next.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlannerError {
    /// Nothing follows from what was observed.
    #[error("what to measure next on `{processor}` cannot be planned: {reason}")]
    Observations {
        /// The processor that is measured.
        processor: String,
        /// What is wrong with what was observed.
        reason: GraphError,
    },
    /// The budget is to be kept, and is not enough to derive layer times.
    #[error(
        "measuring every layer on `{processor}` needs about {needed} of device time, more than the budget allows; give a \
         larger --budget, or --over-budget extend"
    )]
    BudgetTooSmall {
        /// The processor that is measured.
        processor: String,
        /// About the device time that is needed.
        needed: Nanos,
    },
    /// Losses are differences to all layers on the first processor, which cannot run some.
    #[error(
        "`{}` cannot run layers {}: {}; accuracy is compared with all layers on a processor that runs every layer: \
         choose another",
        .0.processor, .0.segment, .0.reason
    )]
    NoBaseline(Unsupported),
    /// Placements are to be evaluated as they run, and memory does not hold a run as one segment.
    #[error(
        "the memory of `{processor}` does not hold layers {segment} as one segment, as --as-runs loads them; leave out \
         --as-runs"
    )]
    RunTooLarge {
        /// The processor.
        processor: String,
        /// The layers of the run.
        segment: Segment,
    },
    /// No other processor can run any layer.
    #[error(
        "{0} can run no layer of the model, so that there are no placements to evaluate; choose other processors"
    )]
    NothingElsewhere(String),
    /// The design's formulas need the time of all layers as one segment, which memory does not hold.
    #[error(
        "the memory of `{processor}` does not hold layers {stretch} as one segment, only layers {largest}, and the design \
         {design} needs all of them; choose {others}"
    )]
    NeedsWhole {
        /// The processor that is measured.
        processor: String,
        /// The layers that would have to be loaded as one segment.
        stretch: Segment,
        /// The longest segment of them that memory holds.
        largest: Segment,
        /// The design.
        design: Design,
        /// The designs that do not need that, by name.
        others: String,
    },
    /// A processor that is read layer by layer, in passes over the whole model, cannot run some layer.
    #[error(
        "`{processor}` is measured in passes over all layers and cannot run layers {segment}: {reason}; choose other \
         processors with --processors"
    )]
    NoPass {
        /// The processor that cannot be measured.
        processor: String,
        /// What it cannot run.
        segment: Segment,
        /// Why it cannot.
        reason: String,
    },
}

/// Something that a run's journal says.
#[derive(Clone, Debug, PartialEq)]
pub enum News {
    /// A segment was loaded.
    Loaded {
        /// The segment that was loaded.
        segment: Segment,
        /// How long loading took.
        load: Nanos,
    },
    /// A processor cannot run a segment.
    Unsupported(Unsupported),
    /// A sample came.
    Sample(Sample),
    /// A sample came of an order of another kind, with which those of this kind take turns.
    Elsewhere {
        /// When it ended, by the device's clock.
        until: Nanos,
    },
    /// The block in progress is over.
    BlockEnded {
        /// The visit that it was.
        visit: Visit,
        /// What the sentinel took before and after it.
        sentinels: [Nanos; 2],
        /// Whether its samples must not be used.
        rejected: bool,
    },
    /// An answer was judged.
    Judged {
        /// The number of the order to evaluate that asked for it.
        order: u32,
        /// What each of its placements got right and wrong.
        tallies: Vec<Tally>,
        /// Floating-point operations that it cost.
        flop: u64,
    },
    /// An image was answered, and each of its order's forms of it.
    FramesAnswered {
        /// The number of the order to answer frames that asked for it.
        order: u32,
        /// The image, by its place in the set.
        image: u64,
        /// How long the inference on the image as it is took.
        infer: Nanos,
        /// The bits of the scores.
        score_bits: Vec<u32>,
        /// What came of each form.
        forms: Vec<FormAnswer>,
    },
    /// The tensors of an image were packed.
    TensorsPacked {
        /// The image, by its place in the set.
        image: u64,
        /// What came of each tensor.
        tensors: Vec<PackedTensor>,
        /// What the answer in 32 bits got right and wrong, if it was judged.
        whole: Option<Tally>,
        /// The same of the answers of which one cut's tensors were rounded, for each cut that has any.
        crossed: Vec<Tally>,
    },
    /// An order is done.
    Finished(u32),
}

impl News {
    /// The part of an event that plans depend on, if any; `sample` is the event's own, `before` what the sentinel took
    /// before the block in progress.
    pub(super) fn of(
        order: u32,
        event: &Event,
        sample: Option<&Sample>,
        before: Option<Nanos>,
    ) -> Option<News> {
        match event {
            Event::Loaded {
                segment, load_ns, ..
            } => Some(News::Loaded {
                segment: *segment,
                load: *load_ns,
            }),
            Event::Unsupported {
                processor,
                segment,
                reason,
                needed_bytes,
            } => Some(News::Unsupported(Unsupported {
                processor: processor.clone(),
                segment: *segment,
                reason: reason.clone(),
                needed: *needed_bytes,
            })),
            Event::Sample { .. } => sample.cloned().map(News::Sample),
            Event::BlockEnded {
                block,
                sentinel_ns,
                rejection,
                ..
            } => Some(News::BlockEnded {
                visit: Visit {
                    order,
                    block: *block,
                },
                sentinels: [before?, *sentinel_ns],
                rejected: rejection.is_some(),
            }),
            Event::Judged { tallies, flop, .. } => Some(News::Judged {
                order,
                tallies: tallies.clone(),
                flop: *flop,
            }),
            Event::FramesAnswered {
                image,
                infer_ns,
                score_bits,
                forms,
            } => Some(News::FramesAnswered {
                order,
                image: *image,
                infer: *infer_ns,
                score_bits: score_bits.clone(),
                forms: forms.clone(),
            }),
            Event::TensorsPacked {
                image,
                tensors,
                whole,
                crossed,
            } => Some(News::TensorsPacked {
                image: *image,
                tensors: tensors.clone(),
                whole: *whole,
                crossed: crossed.clone(),
            }),
            Event::Finished => Some(News::Finished(order)),
            _ => None,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use layerlab_protocol::{Hygiene, RunId, TimingSettings, WarmUp, Work};

    use super::*;

    /// An order of layer passes, two samples each.
    pub(crate) fn template() -> Order {
        Order {
            run: RunId::new("run").expect("a name"),
            number: 0,
            model_sha256: "ab".repeat(32),
            quantised_sha256: None,
            processor: "npu".to_owned(),
            work: Work::TimePasses { timing: timing() },
            seed: 1,
        }
    }

    pub(crate) fn timing() -> TimingSettings {
        TimingSettings {
            samples_per_segment: 2,
            gap_ns: Nanos::ZERO,
            warm_up: WarmUp::default(),
            hygiene: Hygiene::default(),
        }
    }

    pub(crate) fn begun(orders: &mut dyn Orders) -> Vec<Order> {
        orders.next(&[]).expect("a plan")
    }

    pub(crate) fn told(orders: &mut dyn Orders, news: News) -> Vec<Order> {
        orders.next(&[news]).expect("a plan")
    }

    /// What a journal says of an order that times segments, each of which takes as long as `duration` says of it and of the
    /// sample's number; `clock` is the device's. The sentinel takes as long as `sentinel` at both ends of the only block.
    pub(crate) fn done(
        order: &Order,
        clock: &mut Nanos,
        sentinel: Nanos,
        duration: impl Fn(Segment, u64) -> Nanos,
    ) -> Vec<News> {
        let (segments, long, timing) = match &order.work {
            Work::TimeSegments { segments, timing } => (segments, None, timing),
            Work::TimeBesideLong {
                segments,
                long,
                rounds,
                timing,
            } => (segments, Some((long, *rounds)), timing),
            _ => panic!("{order:?} times no segments"),
        };
        let visit = Visit {
            order: order.number,
            block: 0,
        };
        let mut news = Vec::new();
        for round in 0..timing.samples_per_segment {
            let long = long.filter(|(_, rounds)| round.is_multiple_of(*rounds));
            for &segment in segments.iter().chain(long.map(|(long, _)| long)) {
                let index = news.len() as u64;
                let duration = duration(segment, index);
                news.push(News::Sample(Sample {
                    processor: order.processor.clone(),
                    segment,
                    order: visit.order,
                    block: visit.block,
                    index,
                    started: *clock,
                    duration,
                }));
                *clock = *clock + duration;
            }
        }
        news.push(News::BlockEnded {
            visit,
            sentinels: [sentinel; 2],
            rejected: false,
        });
        news.push(News::Finished(order.number));
        news
    }
}
