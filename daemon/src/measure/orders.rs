//! Where a run's orders come from: a plan that is known from the start, or one that is made while the
//! device measures.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use layerlab_profiles::accuracy::Tally;
use layerlab_profiles::derive::graph::{GraphError, observe};
use layerlab_profiles::design::adaptive::{Block, Next, Planner, Reason};
use layerlab_profiles::document::Sample;
use layerlab_profiles::{Nanos, Segment};
use layerlab_protocol::{Event, Order, Work};

/// The next order is planned when this share of the samples of the one in progress has come: late enough
/// to know most of what it tells, early enough to be there before it ends.
const PLAN_AHEAD: f64 = 0.8;

/// Where a run's orders come from.
pub trait Orders: Send {
    /// The orders to send next. Asked at the start of a run and after each entry; `news` are what came since
    /// it was asked last, with the samples they hold. A run ends when there are none left open and none
    /// come, and at once when it cannot be said what to measure next.
    fn next(&mut self, news: &[News]) -> Result<Vec<Order>, PlannerError>;
}

/// Why it cannot be said what to measure next.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("what to measure next on `{processor}` cannot be planned: {reason}")]
pub struct PlannerError {
    /// The processor that is measured.
    pub processor: String,
    /// What is wrong with what was observed.
    pub reason: GraphError,
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
    /// A sample came.
    Sample(Sample),
    /// The block in progress is over.
    BlockEnded {
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
    /// An order is done.
    Finished(u32),
}

impl News {
    /// The part of an event that plans depend on, if any; `sample` is the event's own.
    pub(super) fn of(order: u32, event: &Event, sample: Option<&Sample>) -> Option<News> {
        match event {
            Event::Loaded {
                segment, load_ns, ..
            } => Some(News::Loaded {
                segment: *segment,
                load: *load_ns,
            }),
            Event::Sample { .. } => sample.cloned().map(News::Sample),
            Event::BlockEnded { rejection, .. } => Some(News::BlockEnded {
                rejected: rejection.is_some(),
            }),
            Event::Judged { tallies, flop, .. } => Some(News::Judged {
                order,
                tallies: tallies.clone(),
                flop: *flop,
            }),
            Event::Finished => Some(News::Finished(order)),
            _ => None,
        }
    }
}

/// How many orders an agent holds at most: enough that it never waits for the next one, few enough that
/// submitting them again after a lost link takes no time.
const AHEAD: usize = 8;

/// Orders that are known from the start. A few at a time are handed out, and one more as one is done.
#[derive(Clone, Debug, Default)]
pub struct Fixed {
    waiting: VecDeque<Order>,
    open: usize,
}

impl Fixed {
    /// A plan of `orders` and no others.
    pub fn new(orders: Vec<Order>) -> Fixed {
        Fixed {
            waiting: orders.into(),
            open: 0,
        }
    }
}

impl Orders for Fixed {
    fn next(&mut self, news: &[News]) -> Result<Vec<Order>, PlannerError> {
        let is_finished = |event: &&News| matches!(event, News::Finished(_));
        let finished = news.iter().filter(is_finished).count();
        self.open = self.open.saturating_sub(finished);
        let more = AHEAD.saturating_sub(self.open).min(self.waiting.len());
        self.open += more;
        Ok(self.waiting.drain(..more).collect())
    }
}

/// One kind of orders after the other: those of the next begin when those of the one before are done.
/// They are numbered as they come, from 1.
pub struct Sequence {
    parts: VecDeque<Box<dyn Orders>>,
    open: BTreeSet<u32>,
    next_number: u32,
}

impl Sequence {
    /// These parts, in order.
    pub fn new(parts: impl IntoIterator<Item = Box<dyn Orders>>) -> Sequence {
        Sequence {
            parts: parts.into_iter().collect(),
            open: BTreeSet::new(),
            next_number: 1,
        }
    }
}

impl Orders for Sequence {
    fn next(&mut self, news: &[News]) -> Result<Vec<Order>, PlannerError> {
        for event in news {
            if let News::Finished(order) = event {
                self.open.remove(order);
            }
        }
        let mut news = news;
        while let Some(part) = self.parts.front_mut() {
            let mut orders = part.next(news)?;
            for order in &mut orders {
                order.number = self.next_number;
                self.next_number += 1;
                self.open.insert(order.number);
            }
            if !self.open.is_empty() {
                return Ok(orders);
            }
            self.parts.pop_front();
            // What has come was about the part that is over.
            news = &[];
        }
        Ok(Vec::new())
    }
}

/// Orders of the adaptive design on one processor.
pub struct Adaptive {
    planner: Planner,
    /// An order of the run on the processor, whose segments are set anew for each block.
    template: Order,
    /// The samples of accepted blocks and of the one in progress, by segment.
    samples: BTreeMap<Segment, Vec<Nanos>>,
    /// The samples of the block in progress.
    block: Vec<Sample>,
    /// How long it took to load each segment for the first time. An agent that starts again loads some once more,
    /// which is to change no plan.
    loads: BTreeMap<Segment, Nanos>,
    spent: Spent,
    /// Samples still to come from the orders that were sent.
    outstanding: u64,
    /// Samples of the order that was sent last.
    last_order: u64,
    done: Option<Reason>,
}

/// Device time, by the device's own clock.
#[derive(Default)]
struct Spent {
    total: Nanos,
    last: Option<Nanos>,
}

impl Spent {
    /// Counts what passed since the sample before. A clock that has gone back was started anew, and what
    /// passed in between is not known.
    fn count(&mut self, sample: &Sample) {
        let end = sample.started + sample.duration;
        let since = self.last.map_or(sample.duration, |last| end - last);
        self.total = self.total + since;
        self.last = Some(end);
    }
}

impl Adaptive {
    /// Orders like `template`.
    pub fn new(planner: Planner, template: Order) -> Adaptive {
        Adaptive {
            planner,
            template,
            samples: BTreeMap::new(),
            block: Vec::new(),
            loads: BTreeMap::new(),
            spent: Spent::default(),
            outstanding: 0,
            last_order: 0,
            done: None,
        }
    }

    fn hear(&mut self, news: &News) {
        match news {
            News::Loaded { segment, load } => {
                self.loads.entry(*segment).or_insert(*load);
            }
            News::Sample(sample) => {
                self.spent.count(sample);
                self.samples
                    .entry(sample.segment)
                    .or_default()
                    .push(sample.duration);
                self.block.push(sample.clone());
                self.outstanding = self.outstanding.saturating_sub(1);
            }
            News::BlockEnded { rejected: false } => self.block.clear(),
            News::BlockEnded { rejected: true } => {
                // Its samples come again.
                self.outstanding += self.block.len() as u64;
                for sample in self.block.drain(..) {
                    if let Some(samples) = self.samples.get_mut(&sample.segment) {
                        samples.pop();
                    }
                }
            }
            News::Finished(_) | News::Judged { .. } => {}
        }
    }

    fn order(&mut self, block: &Block) -> Order {
        let samples = block.segments.len() as u64 * block.repetitions;
        self.outstanding += samples;
        self.last_order = samples;
        Order {
            work: Work::TimeSegments {
                segments: block.segments.clone(),
            },
            samples_per_segment: block.repetitions,
            ..self.template.clone()
        }
    }
}

impl Orders for Adaptive {
    fn next(&mut self, news: &[News]) -> Result<Vec<Order>, PlannerError> {
        news.iter().for_each(|news| self.hear(news));
        let enough_to_do = self.outstanding as f64 > (1.0 - PLAN_AHEAD) * self.last_order as f64;
        if self.done.is_some() || enough_to_do {
            return Ok(Vec::new());
        }
        self.planner.learn_loads(&self.loads);
        let next = self.planner.next(&observe(&self.samples), self.spent.total);
        let next = next.map_err(|reason| PlannerError {
            processor: self.template.processor.clone(),
            reason,
        })?;
        match next {
            Next::Measure(block) => {
                tracing::debug!(?block, "planned");
                Ok(vec![self.order(&block)])
            }
            Next::Done(reason) => {
                tracing::info!(%reason, "measured enough");
                self.done = Some(reason);
                Ok(Vec::new())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use layerlab_profiles::design::adaptive::{Overhead, Settings};
    use layerlab_protocol::{Hygiene, RunId, WarmUp};

    const LAYERS: u32 = 6;

    fn template() -> Order {
        Order {
            run: RunId::new("run").expect("a name"),
            number: 0,
            model_sha256: "ab".repeat(32),
            processor: "npu".to_owned(),
            work: Work::TimePasses,
            samples_per_segment: 2,
            gap_ns: Nanos::ZERO,
            warm_up: WarmUp::default(),
            hygiene: Hygiene::default(),
            seed: 1,
        }
    }

    fn adaptive(target: f64) -> Adaptive {
        adaptive_of(LAYERS, target)
    }

    fn adaptive_of(layers: u32, target: f64) -> Adaptive {
        let settings = Settings {
            layers,
            seed: 1,
            target,
            budget: Nanos::from_millis(2_000),
            repetitions: 5,
            segments_per_block: 8,
            overhead: Overhead::default(),
        };
        Adaptive::new(Planner::new(settings), template())
    }

    fn begun(orders: &mut dyn Orders) -> Vec<Order> {
        orders.next(&[]).expect("a plan")
    }

    fn told(orders: &mut dyn Orders, news: News) -> Vec<Order> {
        orders.next(&[news]).expect("a plan")
    }

    /// Does an order as a device would whose layers take 100 µs each, give or take the sample's number.
    fn work_off(orders: &mut dyn Orders, order: &Order) -> (Vec<Order>, u64) {
        let Work::TimeSegments { segments } = &order.work else {
            panic!("segments")
        };
        let (mut planned, mut samples) = (Vec::new(), 0);
        for repetition in 0..order.samples_per_segment {
            for &segment in segments {
                let spread = (repetition * 7 + samples * 3) % 5;
                let micros = 50 + 100 * u64::from(segment.layers()) + spread;
                let sample = Sample {
                    processor: order.processor.clone(),
                    segment,
                    order: order.number,
                    block: 0,
                    index: samples,
                    started: Nanos::from_micros(1_000 * samples),
                    duration: Nanos::from_micros(micros),
                };
                planned.extend(told(orders, News::Sample(sample)));
                samples += 1;
            }
        }
        planned.extend(told(orders, News::BlockEnded { rejected: false }));
        planned.extend(told(orders, News::Finished(order.number)));
        (planned, samples)
    }

    #[test]
    fn parts_come_one_after_the_other_and_orders_are_numbered_once() {
        let parts: [Box<dyn Orders>; 2] = [
            Box::new(Fixed::new(vec![template(), template()])),
            Box::new(Fixed::new(vec![template()])),
        ];
        let mut sequence = Sequence::new(parts);
        let numbers = |orders: Vec<Order>| orders.iter().map(|o| o.number).collect::<Vec<_>>();
        assert_eq!(numbers(begun(&mut sequence)), [1, 2]);
        assert!(told(&mut sequence, News::Finished(1)).is_empty());
        assert_eq!(numbers(told(&mut sequence, News::Finished(2))), [3]);
        assert!(told(&mut sequence, News::Finished(3)).is_empty());
    }

    #[test]
    fn the_next_block_is_planned_before_the_one_in_progress_ends_and_never_twice() {
        let mut orders = Sequence::new([Box::new(adaptive(0.001)) as Box<dyn Orders>]);
        let mut open = VecDeque::from(begun(&mut orders));
        let mut done = 0;
        while let Some(order) = open.pop_front() {
            let (planned, _) = work_off(&mut orders, &order);
            assert!(planned.len() <= 1, "one block at a time");
            open.extend(planned);
            done += 1;
            assert!(done < 1000, "the budget ends it");
        }
        assert!(done > 3, "{done} blocks");
    }

    /// How often each order repeats its segments, on a device that says that loading any takes `load`.
    fn repetitions(load: Nanos) -> Vec<u64> {
        let mut orders = adaptive(0.001);
        let mut open = VecDeque::from(begun(&mut orders));
        let mut repetitions = Vec::new();
        while let Some(order) = open.pop_front() {
            repetitions.push(order.samples_per_segment);
            let Work::TimeSegments { segments } = order.work.clone() else {
                panic!("segments")
            };
            for segment in segments {
                open.extend(told(&mut orders, News::Loaded { segment, load }));
            }
            open.extend(work_off(&mut orders, &order).0);
        }
        repetitions
    }

    #[test]
    fn blocks_repeat_their_segments_more_where_the_journal_says_that_loading_takes_long() {
        let (at_once, slowly) = (
            repetitions(Nanos::ZERO),
            repetitions(Nanos::from_micros(2_000)),
        );
        let first = slowly.iter().position(|&repetitions| repetitions > 5);
        let first = first.expect("a block that narrows intervals");
        assert_eq!(at_once[first], 5);
    }

    #[test]
    fn an_agent_that_loads_again_changes_no_plan() {
        let mut orders = adaptive(0.5);
        let segment = Segment::single(1);
        for micros in [7, 9_000] {
            let load = Nanos::from_micros(micros);
            told(&mut orders, News::Loaded { segment, load });
        }
        assert_eq!(orders.loads[&segment], Nanos::from_micros(7));
    }

    #[test]
    fn samples_of_a_rejected_block_are_forgotten() {
        let mut orders = adaptive(0.5);
        let first = begun(&mut orders).remove(0);
        let Work::TimeSegments { segments } = &first.work else {
            panic!("segments")
        };
        let sample = Sample {
            processor: "npu".to_owned(),
            segment: segments[0],
            order: 1,
            block: 0,
            index: 0,
            started: Nanos::ZERO,
            duration: Nanos::from_micros(5),
        };
        told(&mut orders, News::Sample(sample.clone()));
        assert_eq!(orders.samples[&segments[0]].len(), 1);
        told(&mut orders, News::BlockEnded { rejected: true });
        assert_eq!(orders.samples[&segments[0]].len(), 0);
        told(&mut orders, News::Sample(sample));
        told(&mut orders, News::BlockEnded { rejected: false });
        told(&mut orders, News::BlockEnded { rejected: true });
        assert_eq!(
            orders.samples[&segments[0]].len(),
            1,
            "an accepted block is over"
        );
    }
    #[test]
    fn a_planner_that_fails_says_why_and_on_which_processor() {
        let error = adaptive_of(0, 0.5).next(&[]).expect_err("no layers");
        let expected = PlannerError {
            processor: "npu".to_owned(),
            reason: GraphError::NoLayers,
        };
        assert_eq!(error, expected);
    }
}
