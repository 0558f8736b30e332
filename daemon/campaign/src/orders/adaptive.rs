//! Orders that are planned while the device measures, from what its journal says.

use std::collections::BTreeMap;

use layerlab_profiles::derive::graph::{Visit, VisitSamples, observe_visits};
use layerlab_profiles::design::agenda::BlockPlanner;
use layerlab_profiles::design::planned_block::{
    Next, PlannedBlock, Purpose, ROUNDS_BESIDE_LONG, Reason,
};
use layerlab_profiles::{Nanos, Segment, Shortcuts};
use layerlab_protocol::{Order, TimingSettings, Work};

use super::device_time::DeviceTime;
use super::probing::ProbingTime;
use super::share::share;
use super::{News, Orders, PlannerError};

/// The next order is planned when this share of the samples of the one in progress has come: late enough
/// to know most of what it tells, early enough to be there before it ends.
const PLAN_AHEAD: f64 = 0.8;

/// Orders of a design that chooses as it goes, on one processor.
pub struct Adaptive {
    planner: Box<dyn BlockPlanner>,
    /// An order of the run on the processor, whose segments are set anew for each block.
    template: Order,
    timing: TimingSettings,
    /// The layers that are measured, which to the planner are a model of their own.
    stretch: Segment,
    /// What passes through its segments.
    shortcuts: Shortcuts,
    /// The samples of accepted blocks and of the one in progress, and the sentinels of accepted blocks.
    samples: VisitSamples,
    /// How many samples the block in progress has so far.
    samples_of_block: u64,
    /// How long it took to load each segment for the first time. An agent that starts again loads some once more,
    /// which is to change no plan.
    loads: BTreeMap<Segment, Nanos>,
    spent: DeviceTime,
    /// What probes took of the budgets of all stretches together, which have so many layers.
    probing: ProbingTime,
    layers: u32,
    /// Samples still to come from the orders that were sent.
    outstanding: u64,
    /// What the order that was sent last measures.
    last_block: Option<PlannedBlock>,
    done: Option<Reason>,
    budget: Nanos,
    is_over_budget_said: bool,
}

impl Adaptive {
    /// Orders like `template` for segments of `stretch`, which to the planner are those of a whole model. Each is timed as
    /// `timing` says, but for how often; where layer times need more than the `budget`, that is said.
    pub fn new(
        planner: Box<dyn BlockPlanner>,
        template: Order,
        timing: TimingSettings,
        stretch: Segment,
        budget: Nanos,
    ) -> Adaptive {
        Adaptive {
            planner,
            template,
            timing,
            stretch,
            shortcuts: Shortcuts::default(),
            samples: VisitSamples::default(),
            samples_of_block: 0,
            loads: BTreeMap::new(),
            spent: DeviceTime::default(),
            probing: ProbingTime::of_none(),
            layers: stretch.layers(),
            outstanding: 0,
            last_block: None,
            done: None,
            budget,
            is_over_budget_said: false,
        }
    }

    /// The same after probes. Their time counts towards the budgets of all stretches of the processor, which have so many
    /// `layers`: towards each one's as much as it has of them.
    pub fn after(self, probing: ProbingTime, layers: u32) -> Adaptive {
        Adaptive {
            probing,
            layers,
            ..self
        }
    }

    /// The same of layers with these shortcuts.
    pub fn with_shortcuts(self, shortcuts: Shortcuts) -> Adaptive {
        Adaptive { shortcuts, ..self }
    }

    fn hear(&mut self, news: &News) {
        match news {
            News::Loaded { segment, load } => {
                if let Some(segment) = segment.numbered_from(self.stretch) {
                    self.loads.entry(segment).or_insert(*load);
                }
            }
            News::Unsupported(unsupported) => {
                if let Some(segment) = unsupported.segment.numbered_from(self.stretch) {
                    self.planner.refuse(segment);
                    let samples = self
                        .last_block
                        .as_ref()
                        .map_or(0, |it| it.samples_of(segment));
                    self.outstanding = self.outstanding.saturating_sub(samples);
                }
            }
            News::Sample(sample) => {
                let Some(segment) = sample.segment.numbered_from(self.stretch) else {
                    return;
                };
                self.spent.count(sample);
                let visit = Visit {
                    order: sample.order,
                    block: sample.block,
                };
                self.samples.push(segment, visit, sample.duration);
                self.samples_of_block += 1;
                self.outstanding = self.outstanding.saturating_sub(1);
            }
            News::Elsewhere { until } => self.spent.leave_out(*until),
            News::BlockEnded {
                visit,
                sentinels,
                rejected,
            } => {
                match rejected {
                    false => {
                        self.samples.sentinels.insert(*visit, *sentinels);
                    }
                    true => {
                        // Its samples come again.
                        self.outstanding += self.samples_of_block;
                        self.samples.forget(*visit);
                    }
                }
                self.samples_of_block = 0;
            }
            News::Finished(_)
            | News::Judged { .. }
            | News::FramesAnswered { .. }
            | News::TensorsPacked { .. } => {}
        }
    }

    /// Says once how much device time layer times need, where that is more than the budget.
    fn say_what_is_needed(&mut self, needed: Nanos) {
        if needed > self.budget && !self.is_over_budget_said {
            self.is_over_budget_said = true;
            tracing::warn!(
                "the budget on `{}` is exceeded: measuring every layer needs about {needed} of device time",
                self.template.processor
            );
        }
    }

    fn order(&mut self, block: PlannedBlock) -> Order {
        let segments = block.segments.iter();
        let segments = segments.map(|one| one.moved_into(self.stretch)).collect();
        let timing = TimingSettings {
            samples_per_segment: block.repetitions,
            ..self.timing
        };
        let work = match block.long {
            Some(long) => Work::TimeBesideLong {
                segments,
                long: long.moved_into(self.stretch),
                rounds: ROUNDS_BESIDE_LONG,
                timing,
            },
            None => Work::TimeSegments { segments, timing },
        };
        self.outstanding += block.samples();
        self.last_block = Some(block);
        Order {
            work,
            ..self.template.clone()
        }
    }
}

impl Orders for Adaptive {
    fn next(&mut self, news: &[News]) -> Result<Vec<Order>, PlannerError> {
        news.iter().for_each(|news| self.hear(news));
        let of_last = self.last_block.as_ref().map_or(0, PlannedBlock::samples);
        let enough_to_do = self.outstanding as f64 > (1.0 - PLAN_AHEAD) * of_last as f64;
        if self.done.is_some() || enough_to_do {
            return Ok(Vec::new());
        }
        let Some(probing) = self.probing.total() else {
            return Ok(Vec::new());
        };
        self.planner.learn_loads(&self.loads);
        let spent = self.spent.total() + share(probing, self.stretch, self.layers);
        let observed = observe_visits(&self.samples).with_shortcuts(self.shortcuts.clone());
        let next = self.planner.next(&observed, spent);
        let next = next.map_err(|reason| PlannerError::Observations {
            processor: self.template.processor.clone(),
            reason,
        })?;
        match next {
            Next::Done(Reason::BudgetTooSmall { needed }) => Err(PlannerError::BudgetTooSmall {
                processor: self.template.processor.clone(),
                needed,
            }),
            Next::Measure(block) => {
                tracing::debug!(?block, "planned");
                if let Purpose::Start { needed } = block.purpose {
                    self.say_what_is_needed(needed);
                }
                Ok(vec![self.order(block)])
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
    use std::collections::VecDeque;

    use layerlab_profiles::derive::graph::GraphError;
    use layerlab_profiles::design::adaptive::{Overhead, Planner, Settings};
    use layerlab_profiles::design::over_budget::OverBudget;
    use layerlab_profiles::document::Sample;

    use super::super::Interleaved;
    use super::super::tests::{begun, done, template, timing, told};
    use super::*;

    const LAYERS: u32 = 6;

    fn adaptive(target: f64) -> Adaptive {
        adaptive_of(LAYERS, target)
    }

    fn adaptive_of(layers: u32, target: f64) -> Adaptive {
        let settings = Settings {
            layers,
            seed: 1,
            target,
            budget: Nanos::from_millis(2_000),
            over_budget: OverBudget::Extend,
            repetitions: 5,
            segments_per_block: 8,
            overhead: Overhead::default(),
        };
        let whole = Segment::whole(layers.max(1));
        Adaptive::new(
            Box::new(Planner::new(settings)),
            template(),
            timing(),
            whole,
            Nanos::from_millis(2_000),
        )
    }

    fn segments_of(order: &Order) -> Vec<Segment> {
        match &order.work {
            Work::TimeSegments { segments, .. } => segments.clone(),
            Work::TimeBesideLong { segments, long, .. } => {
                let all = segments.iter().chain([long]);
                all.copied().collect()
            }
            work => panic!("{work:?} times no segments"),
        }
    }

    fn samples_per_segment(order: &Order) -> u64 {
        match &order.work {
            Work::TimeSegments { timing, .. } | Work::TimeBesideLong { timing, .. } => {
                timing.samples_per_segment
            }
            work => panic!("{work:?} times no segments"),
        }
    }

    /// Does an order as a device would whose layers take 100 µs each, give or take the sample's number. Returns what was
    /// planned while samples came, and what afterwards.
    fn work_off(orders: &mut dyn Orders, order: &Order) -> (Vec<Order>, Vec<Order>) {
        let sentinel = Nanos::from_micros(650 + u64::from(order.number) % 3);
        let duration = |segment: Segment, index: u64| {
            let spread = index * 3 % 5;
            Nanos::from_micros(50 + 100 * u64::from(segment.layers()) + spread)
        };
        let (mut within, mut after, mut clock) = (Vec::new(), Vec::new(), Nanos::ZERO);
        for news in done(order, &mut clock, sentinel, duration) {
            let planned = match news {
                News::Sample(_) => &mut within,
                _ => &mut after,
            };
            planned.extend(told(orders, news));
        }
        (within, after)
    }

    #[test]
    fn the_next_block_is_planned_before_the_one_in_progress_ends_and_never_twice() {
        let mut orders = Interleaved::new([Box::new(adaptive(0.001)) as Box<dyn Orders>]);
        let mut open = VecDeque::from(begun(&mut orders));
        let mut blocks = 0;
        while let Some(order) = open.pop_front() {
            let (within, after) = work_off(&mut orders, &order);
            assert!(within.len() <= 1, "one block at a time");
            assert!(after.is_empty(), "the device waited for {after:?}");
            open.extend(within);
            blocks += 1;
            assert!(blocks < 1000, "the budget ends it");
        }
        assert!(blocks > 3, "{blocks} blocks");
    }

    /// With one segment all that is known of how its loadings differ is by the sentinel.
    #[test]
    fn a_stretch_of_one_layer_is_measured_until_its_interval_is_narrow() {
        let mut orders = adaptive_of(1, 0.05);
        let mut open = VecDeque::from(begun(&mut orders));
        let mut number = 0;
        while let Some(mut order) = open.pop_front() {
            number += 1;
            order.number = number;
            let (within, after) = work_off(&mut orders, &order);
            open.extend(within.into_iter().chain(after));
        }
        let reached = matches!(orders.done, Some(Reason::TargetReached { widest }) if widest > 0.0);
        assert!(reached, "{:?}", orders.done);
    }

    /// How often each order repeats its segments, on a device that says that loading any takes `load`.
    fn repetitions(load: Nanos) -> Vec<u64> {
        // Numbers tell one visit from the next.
        let mut orders = Interleaved::new([Box::new(adaptive(0.001)) as Box<dyn Orders>]);
        let mut open = VecDeque::from(begun(&mut orders));
        let mut repetitions = Vec::new();
        while let Some(order) = open.pop_front() {
            repetitions.push(samples_per_segment(&order));
            for segment in segments_of(&order) {
                open.extend(told(&mut orders, News::Loaded { segment, load }));
            }
            let (within, after) = work_off(&mut orders, &order);
            open.extend(within.into_iter().chain(after));
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
        let segments = segments_of(&first);
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
        let known = |orders: &Adaptive| orders.samples.pooled().remove(&segments[0]);
        assert_eq!(known(&orders).map(|all| all.len()), Some(1));
        let end = |block, rejected| News::BlockEnded {
            visit: Visit { order: 1, block },
            sentinels: [Nanos::from_micros(30); 2],
            rejected,
        };
        told(&mut orders, end(0, true));
        assert_eq!(known(&orders), None);
        assert!(orders.samples.sentinels.is_empty());
        told(&mut orders, News::Sample(Sample { block: 1, ..sample }));
        told(&mut orders, end(1, false));
        told(&mut orders, end(2, true));
        assert_eq!(
            known(&orders).map(|all| all.len()),
            Some(1),
            "an accepted block is over"
        );
        let accepted = Visit { order: 1, block: 1 };
        assert!(orders.samples.sentinels.keys().eq([&accepted]));
    }

    #[test]
    fn a_planner_that_fails_says_why_and_on_which_processor() {
        let error = adaptive_of(0, 0.5).next(&[]).expect_err("no layers");
        let expected = PlannerError::Observations {
            processor: "npu".to_owned(),
            reason: GraphError::NoLayers,
        };
        assert_eq!(error, expected);
    }
}
