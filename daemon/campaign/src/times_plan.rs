//! Which orders measuring the times of a model consists of.

use layerlab_profiles::design::Design;
use layerlab_profiles::design::agenda::{Agenda, DesignTask, FixedBlock};
use layerlab_profiles::document::{
    Measured, Measurement, Method, Processor, ProcessorKind, Unsupported, supported,
};
use layerlab_profiles::probe::PROBE_LAYERS;
use layerlab_profiles::supported::{StretchLayers, SupportedLayers};
use layerlab_profiles::{Nanos, Probe, Segment};
use layerlab_protocol::{Order, RunId, TimingSettings, WarmUp, Work};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::orders::{
    Adaptive, Fixed, InTurn, Orders, PlannerError, Probing, ProbingTime, Surveyed, share, survey,
};
use super::{InOut, ProbeFiles, SteadySettings, TimesSettings};

/// How often all probes are loaded anew and timed, between which other things have been loaded.
const PROBE_VISITS: u64 = 3;

/// Of a budget of device time, probes take no more than one part in so many.
const PROBES_PART: u64 = 4;

/// How far a sentinel may be from the steady state: a device cools while segments are loaded, and is then kept busy until it is
/// hot again.
const STEADY_TOLERANCE_PERCENT: u32 = 3;

/// A slice of keeping a processor busy is a second: some inferences of most networks.
const LEAST_SLICE: Nanos = Nanos::from_millis(1_000);

/// There are no more of them than this, however long that takes.
const MOST_SLICES: u64 = 3_600;

/// How one processor is measured.
#[derive(Clone, Debug, PartialEq)]
pub struct ProcessorPlan {
    /// The processor, as the agent describes it.
    pub processor: Processor,
    /// Which segments are measured on it.
    pub design: Design,
}

/// How times are measured: on which processors, by which orders.
#[derive(Clone, Debug, PartialEq)]
pub struct TimesPlan {
    /// The processors and their designs.
    pub processors: Vec<ProcessorPlan>,
    layers: u32,
    /// An order of the run; each part of it has others of its fields.
    template: Order,
    settings: TimesSettings,
    probes: ProbeFiles,
}

/// Why nothing can be planned.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TimesPlanError {
    /// There is nothing to measure on.
    #[error("the device has no processor that can be measured")]
    NoProcessor,
    /// A processor was asked for that the device does not have.
    #[error("the device has no processor `{missing}`; it has {}", there.join(", "))]
    NoSuchProcessor {
        /// The name that the user asked for.
        missing: String,
        /// Those that it has.
        there: Vec<String>,
    },
    /// Layer passes do not separate transfers from computing.
    #[error(
        "the design {design} is for processors that compute in main memory; choose {}",
        Design::for_accelerators()
    )]
    NotForAccelerators {
        /// The design that was chosen.
        design: Design,
    },
}

impl TimesPlan {
    /// Plans a run of a model of `layers` layers on `processors`: a CPU is read layer by layer, an
    /// accelerator by the design that the user chose.
    pub fn new(
        run: &RunId,
        model_sha256: &str,
        layers: u32,
        processors: &[Processor],
        settings: TimesSettings,
    ) -> Result<TimesPlan, TimesPlanError> {
        if processors.is_empty() {
            return Err(TimesPlanError::NoProcessor);
        }
        let settings = settings.of_the_state();
        if !settings.design.shows_transfers() {
            return Err(TimesPlanError::NotForAccelerators {
                design: settings.design,
            });
        }
        let processors: Vec<ProcessorPlan> = settings
            .chosen(processors)?
            .into_iter()
            .map(|processor| ProcessorPlan {
                design: match processor.kind {
                    ProcessorKind::Cpu => Design::LayerPass,
                    ProcessorKind::Accelerator => settings.design,
                },
                processor,
            })
            .collect();
        let template = Order {
            run: run.clone(),
            number: 0,
            model_sha256: model_sha256.to_owned(),
            quantised_sha256: None,
            processor: String::new(),
            work: Work::Survey {
                processors: Vec::new(),
            },
            seed: settings.seed,
        };
        Ok(TimesPlan {
            processors,
            layers,
            template,
            settings,
            probes: ProbeFiles::default(),
        })
    }

    /// The same, with the model's quantised twin for the processors that run that.
    pub fn with_twin(mut self, quantised_sha256: Option<String>) -> TimesPlan {
        self.template.quantised_sha256 = quantised_sha256;
        self
    }

    /// Whether some processor's cuts are to be divided by probes.
    pub fn wants_probes(&self) -> bool {
        self.layers > 1 && self.processors.iter().any(|plan| self.is_probed(plan))
    }

    /// The same with these probes, timed on each processor whose cuts are to be divided by them.
    pub fn with_probes(self, probes: ProbeFiles) -> TimesPlan {
        TimesPlan { probes, ..self }
    }

    /// The probes that it was given.
    pub fn probes(&self) -> &ProbeFiles {
        &self.probes
    }

    /// Whether the processor's cuts are to be divided by probes. The times of an emulator are no device's, and slow: what
    /// moving costs there is no use to anybody.
    fn is_probed(&self, plan: &ProcessorPlan) -> bool {
        self.settings.in_out == InOut::Probed
            && plan.processor.kind == ProcessorKind::Accelerator
            && !plan.processor.emulated
            && plan.design.method() == Method::Graph
    }

    /// The orders of the run: first it is asked which layers the processors cannot run, then the processors are measured
    /// in turns.
    pub fn orders(&self) -> Surveyed<'_> {
        let names = self
            .processors
            .iter()
            .map(|plan| plan.processor.name.clone());
        let survey = survey(&self.template, names.collect());
        Surveyed::new(survey, |unsupported| self.orders_without(unsupported))
    }

    /// The orders that measure, those of all processors in turns, of segments without what is `unsupported`: each stretch
    /// of layers that an accelerator can run is measured as a model of its own. Of a device in its steady state, one processor
    /// after the other, each kept busy before.
    fn orders_without(&self, unsupported: &[Unsupported]) -> Result<InTurn, PlannerError> {
        let mut random = ChaCha8Rng::seed_from_u64(self.settings.seed);
        let Some(steady) = self.settings.steady else {
            let all: Vec<&ProcessorPlan> = self.processors.iter().collect();
            return Ok(InTurn::new([self.turns(&all, unsupported, &mut random)?]));
        };
        let mut steps: Vec<Vec<Box<dyn Orders>>> = Vec::new();
        for plan in &self.processors {
            let turns = self.turns(&[plan], unsupported, &mut random)?;
            if !turns.is_empty() {
                steps.push(vec![Box::new(Fixed::new(vec![self.soak(plan, steady)]))]);
                steps.push(turns);
            }
        }
        Ok(InTurn::new(steps))
    }

    /// The order that keeps a processor busy.
    fn soak(&self, plan: &ProcessorPlan, steady: SteadySettings) -> Order {
        let slice = Nanos::from_nanos(steady.duration.as_nanos() / MOST_SLICES);
        Order {
            work: Work::Soak {
                duration_ns: steady.duration,
                slice_ns: slice.max(LEAST_SLICE),
                rest: steady.rest,
                passes: !plan.design.shows_transfers(),
                timing: self.timing(plan, self.settings.samples_per_segment),
            },
            ..self.template_of(plan)
        }
    }

    /// The orders that measure these processors in turns.
    fn turns(
        &self,
        plans: &[&ProcessorPlan],
        unsupported: &[Unsupported],
        random: &mut ChaCha8Rng,
    ) -> Result<Vec<Box<dyn Orders>>, PlannerError> {
        // The orders of each round of visits, and the parts that plan their own.
        let mut rounds: Vec<Vec<Order>> = vec![Vec::new(); self.visits() as usize];
        let mut parts: Vec<Box<dyn Orders>> = Vec::new();
        for &plan in plans {
            let name = &plan.processor.name;
            let lacked = || unsupported.iter().filter(move |one| one.processor == *name);
            if let Some(lacked) = lacked().next().filter(|_| !plan.design.shows_transfers()) {
                return Err(PlannerError::NoPass {
                    processor: name.clone(),
                    segment: lacked.segment,
                    reason: lacked.reason.clone(),
                });
            }
            let supported = supported(self.layers, name, unsupported);
            plan.refuse_unless_held(&supported)?;
            let layers: u32 = supported.stretches().iter().map(|one| one.layers()).sum();
            let mut probing_time = ProbingTime::of_none();
            if self.probes.count() > 0 && self.is_probed(plan) && layers > 0 {
                let probing = self.probing(plan);
                probing_time = probing.time();
                parts.push(Box::new(probing));
            }
            for &stretch in supported.stretches() {
                let task = self.task(stretch, supported.stretch(stretch), layers);
                for (visit, round) in (0..).zip(&mut rounds) {
                    match plan.design.agenda(&task, random) {
                        Agenda::Fixed(blocks) => {
                            let blocks = blocks.into_iter();
                            round.extend(
                                blocks.map(|block| self.order(plan, stretch, visit, block)),
                            );
                        }
                        // It plans its visits by itself.
                        Agenda::Planned(planner) => {
                            let timing = self.timing(plan, self.settings.samples_per_segment);
                            let template = self.template_of(plan);
                            let orders =
                                Adaptive::new(planner, template, timing, stretch, task.budget);
                            parts.push(Box::new(orders.after(probing_time.clone(), layers)));
                            break;
                        }
                    }
                }
            }
        }
        let fixed: Vec<Order> = rounds.into_iter().flatten().collect();
        if !fixed.is_empty() {
            let alone = parts.is_empty();
            let fixed = if alone {
                Fixed::new(fixed)
            } else {
                Fixed::one_at_a_time(fixed)
            };
            parts.insert(0, Box::new(fixed));
        }
        Ok(parts)
    }

    /// In how many visits each segment of a design that is known from the start is timed: no more than it has samples.
    fn visits(&self) -> u64 {
        let TimesSettings {
            visits,
            samples_per_segment,
            ..
        } = self.settings;
        visits.min(samples_per_segment).max(1)
    }

    /// The order of one block in one of the visits, with that visit's share of the samples.
    fn order(
        &self,
        plan: &ProcessorPlan,
        stretch: Segment,
        visit: u64,
        block: FixedBlock,
    ) -> Order {
        let (samples, visits) = (self.settings.samples_per_segment, self.visits());
        let timing = self.timing(plan, samples / visits + u64::from(visit < samples % visits));
        Order {
            work: match block {
                FixedBlock::LayerPass => Work::TimePasses { timing },
                FixedBlock::Segments(segments) => Work::TimeSegments {
                    segments: segments
                        .into_iter()
                        .map(|one| one.moved_into(stretch))
                        .collect(),
                    timing,
                },
            },
            ..self.template_of(plan)
        }
    }

    fn template_of(&self, plan: &ProcessorPlan) -> Order {
        Order {
            processor: plan.processor.name.clone(),
            ..self.template.clone()
        }
    }

    fn timing(&self, plan: &ProcessorPlan, samples_per_segment: u64) -> TimingSettings {
        let settings = &self.settings;
        TimingSettings {
            samples_per_segment,
            gap_ns: settings.gap,
            warm_up: WarmUp::default(),
            hygiene: match plan.processor.emulated {
                true => settings.hygiene.of_emulated(),
                false => settings.hygiene,
            },
        }
    }

    /// The orders that time the probes on a processor: all sizes, one after the other, and that several times.
    fn probing(&self, plan: &ProcessorPlan) -> Probing {
        let timing = self.timing(plan, self.probe_samples());
        let visit = || {
            self.probes.hashes().map(|(model, twin)| Order {
                model_sha256: model.to_owned(),
                quantised_sha256: twin.map(str::to_owned),
                processor: plan.processor.name.clone(),
                work: Work::TimeSegments {
                    segments: Probe::segments().collect(),
                    timing,
                },
                ..self.template.clone()
            })
        };
        let orders = (0..PROBE_VISITS).flat_map(|_| visit()).collect();
        let chooses = plan.design.chooses_as_it_goes();
        let most =
            chooses.then(|| Nanos::from_nanos(self.settings.budget.as_nanos() / PROBES_PART));
        Probing::new(orders, most)
    }

    /// How many samples each layer of a probe gets in each visit.
    fn probe_samples(&self) -> u64 {
        self.settings.samples_per_segment.div_ceil(PROBE_VISITS)
    }

    /// What a design is to do on one of the stretches of a processor that can run `all` layers: the budget is divided by
    /// how many layers they have.
    fn task(&self, stretch: Segment, layers: StretchLayers, all: u32) -> DesignTask {
        DesignTask {
            stretch: layers,
            seed: self.settings.seed,
            gap: self.settings.gap,
            target: self.settings.target,
            budget: share(self.settings.budget, stretch, all),
            over_budget: self.settings.over_budget,
        }
    }

    /// How many samples the run will have if the processors can run every layer, and fewer if they cannot; `None` if that
    /// turns out while it measures.
    pub fn samples(&self) -> Option<u64> {
        let segments = |plan: &ProcessorPlan| {
            let known = !plan.design.chooses_as_it_goes();
            known.then(|| plan.design.iter(self.layers).count() as u64)
        };
        let segments: Option<u64> = self.processors.iter().map(segments).sum();
        let probed = self.processors.iter().filter(|plan| self.is_probed(plan));
        let probe_layers = probed.count() as u64 * self.probes.count() * u64::from(PROBE_LAYERS);
        let of_probes = probe_layers * PROBE_VISITS * self.probe_samples();
        Some(segments? * self.settings.samples_per_segment + of_probes)
    }

    /// How the profile describes the plan, of which this came.
    pub fn measurements(&self, measured: &Measured) -> Vec<Measurement> {
        let chooses = |plan: &ProcessorPlan| plan.design.chooses_as_it_goes();
        let measurement = |plan: &ProcessorPlan| Measurement {
            processor: plan.processor.name.clone(),
            design: plan.design,
            samples_per_segment: plan
                .design
                .samples_per_segment(self.settings.samples_per_segment),
            visits: Some(plan.design.visits(self.visits())),
            gap_ns: self.settings.gap,
            method: match self.probes.count() > 0 && self.is_probed(plan) {
                true => Method::Probed,
                false => plan.method(&supported(
                    self.layers,
                    &plan.processor.name,
                    &measured.unsupported,
                )),
            },
            seed: self.settings.seed,
            target: chooses(plan).then_some(self.settings.target),
            budget_ns: chooses(plan).then_some(self.settings.budget),
            sentinel: self.sentinel(&plan.processor.name, measured),
        };
        self.processors.iter().map(measurement).collect()
    }
}

impl ProcessorPlan {
    /// Refuses a design whose formulas need a stretch of layers as one segment that memory does not hold.
    fn refuse_unless_held(&self, supported: &SupportedLayers) -> Result<(), PlannerError> {
        let is_held = |stretch: &&Segment| supported.holds(**stretch);
        let needs_whole = self.design.needs_whole();
        let stretch = supported.stretches().iter().find(|one| !is_held(one));
        match (stretch.filter(|_| needs_whole), supported.largest()) {
            (Some(&stretch), Some(largest)) => Err(PlannerError::NeedsWhole {
                processor: self.processor.name.clone(),
                stretch,
                largest,
                design: self.design,
                others: Design::without_whole(),
            }),
            _ => Ok(()),
        }
    }

    /// How layer times follow from the design: least squares where memory does not hold all that differencing needs.
    fn method(&self, supported: &SupportedLayers) -> Method {
        let mut stretches = supported.stretches().iter();
        let is_held = stretches.all(|stretch| supported.holds(*stretch));
        match self.design.method() {
            Method::Differencing if !is_held => Method::Graph,
            method => method,
        }
    }
}

impl TimesPlan {
    /// The sentinel on a processor: the whole model, unless the agent chose another; none where nothing was timed.
    fn sentinel(&self, processor: &str, measured: &Measured) -> Option<Segment> {
        let whole = (self.layers > 0).then(|| Segment::whole(self.layers));
        let was_timed = measured
            .blocks
            .iter()
            .any(|block| block.processor == processor);
        let chosen = measured.sentinels.get(processor).copied();
        chosen.or(whole.filter(|_| was_timed))
    }
}

impl TimesSettings {
    /// The same as they hold in the state that the device is to be in: to stay hot it does not idle, and blocks count whose
    /// sentinels are those of the steady state.
    fn of_the_state(mut self) -> TimesSettings {
        if self.steady.is_some() {
            self.gap = Nanos::ZERO;
            self.hygiene.steady = true;
            self.hygiene.sentinel_tolerance_percent = STEADY_TOLERANCE_PERCENT;
        }
        self
    }

    /// Those of the device's processors that are measured.
    pub(super) fn chosen(&self, there: &[Processor]) -> Result<Vec<Processor>, TimesPlanError> {
        let wanted = &self.processors;
        let has = |name: &&String| there.iter().any(|one| one.name == **name);
        if let Some(missing) = wanted.iter().find(|name| !has(name)) {
            return Err(TimesPlanError::NoSuchProcessor {
                missing: missing.clone(),
                there: there.iter().map(|one| one.name.clone()).collect(),
            });
        }
        let chosen = there.iter();
        let chosen = chosen.filter(|one| wanted.is_empty() || wanted.contains(&one.name));
        Ok(chosen.cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::orders::News;
    use crate::orders::tests::done;
    use layerlab_model::probe_network;
    use layerlab_profiles::Bytes;
    use layerlab_profiles::design::over_budget::OverBudget;
    use layerlab_profiles::document::Numerics;
    use std::collections::{BTreeSet, VecDeque};

    fn processor(name: &str, kind: ProcessorKind) -> Processor {
        Processor {
            name: name.to_owned(),
            kind,
            numerics: Numerics::F32,
            emulated: false,
            runtime: "test".to_owned(),
            runtime_version: "1".to_owned(),
            runtime_options: None,
            runtime_libraries: None,
            memory_bytes: None,
            threads: None,
            pinned_to_cores: None,
        }
    }

    fn settings(design: Design, seed: u64) -> TimesSettings {
        TimesSettings {
            design,
            samples_per_segment: 10,
            gap: Nanos::ZERO,
            seed,
            ..TimesSettings::default()
        }
    }

    fn plan(design: Design, seed: u64) -> Result<TimesPlan, TimesPlanError> {
        let processors = [
            processor("cpu", ProcessorKind::Cpu),
            processor("npu", ProcessorKind::Accelerator),
        ];
        TimesPlan::new(
            &RunId::new("r").expect("a name"),
            "ab",
            30,
            &processors,
            settings(design, seed),
        )
    }

    fn lacking(processor: &str, layer: u32) -> Unsupported {
        Unsupported {
            processor: processor.to_owned(),
            segment: Segment::single(layer),
            reason: "it has no Elu".to_owned(),
            needed: None,
        }
    }

    /// All orders that measure, as they come when each is done at once.
    fn all_orders(plan: &TimesPlan) -> Vec<Order> {
        orders_after(plan, &[]).expect("a plan")
    }

    /// The same after this answer to the survey.
    fn orders_after(plan: &TimesPlan, answer: &[Unsupported]) -> Result<Vec<Order>, PlannerError> {
        let mut source = plan.orders();
        let asked = source.next(&[])?;
        let [survey] = asked.as_slice() else {
            panic!("one order asks: {asked:?}")
        };
        let processors = ["cpu", "npu"].map(str::to_owned).to_vec();
        assert_eq!(survey.work, Work::Survey { processors });
        for one in answer {
            assert_eq!(
                source.next(&[News::Unsupported(one.clone())]),
                Ok(Vec::new())
            );
        }
        let mut all = source.next(&[News::Finished(survey.number)])?;
        let mut done = 0;
        while done < all.len() {
            let finished = News::Finished(all[done].number);
            all.extend(source.next(&[finished])?);
            done += 1;
        }
        Ok(all)
    }

    /// The segments that orders ask for, in their order.
    fn segments(orders: &[Order]) -> Vec<Segment> {
        let segments = orders.iter().filter_map(|order| match &order.work {
            Work::TimeSegments { segments, .. } => Some(segments.clone()),
            _ => None,
        });
        segments.flatten().collect()
    }

    #[test]
    fn every_segment_of_the_design_is_ordered_once_for_each_visit() {
        for design in [Design::PrefixSuffix, Design::Local, Design::Grouped] {
            let plan = plan(design, 7).expect("processors");
            let ordered = segments(&all_orders(&plan));
            let once: BTreeSet<Segment> = ordered.iter().copied().collect();
            assert_eq!(ordered.len(), 5 * once.len());
            assert_eq!(once.into_iter().collect::<Vec<_>>(), design.segments(30));
        }
    }

    #[test]
    fn each_stretch_that_an_accelerator_can_run_is_measured_as_a_model_of_its_own() {
        for design in [Design::PrefixSuffix, Design::Local, Design::Grouped] {
            let plan = plan(design, 7).expect("processors");
            let answer = [lacking("npu", 1), lacking("npu", 12)];
            let mut ordered = segments(&orders_after(&plan, &answer).expect("a plan"));
            ordered.sort();
            ordered.dedup();
            let stretches = [(2, 11), (13, 30)].map(|one| Segment::try_from(one).expect("one"));
            let expected = stretches.iter().flat_map(|&stretch| {
                let segments = design.segments(stretch.layers()).into_iter();
                segments.map(move |segment| segment.moved_into(stretch))
            });
            assert_eq!(ordered, expected.collect::<Vec<_>>(), "{design}");
        }
    }

    #[test]
    fn blocks_count_on_an_emulated_processor_however_busy_the_computer_is() {
        let mut emulated = processor("npu", ProcessorKind::Accelerator);
        emulated.emulated = true;
        let processors = [processor("cpu", ProcessorKind::Cpu), emulated];
        let run = RunId::new("r").expect("a name");
        let plan = TimesPlan::new(&run, "ab", 30, &processors, settings(Design::Local, 1));
        let orders = all_orders(&plan.expect("processors"));
        for order in &orders {
            let (Work::TimePasses { timing } | Work::TimeSegments { timing, .. }) = &order.work
            else {
                panic!("{order:?} times nothing");
            };
            let tolerance = timing.hygiene.sentinel_tolerance_percent;
            assert_eq!(tolerance == u32::MAX, order.processor == "npu", "{order:?}");
        }
    }

    #[test]
    fn the_adaptive_design_begins_with_the_longest_segment_of_the_first_stretch() {
        let plan = plan(Design::Adaptive, 7).expect("processors");
        let answer = [lacking("npu", 4)];
        let mut source = plan.orders();
        source.next(&[]).expect("a survey");
        let answer = answer.map(News::Unsupported);
        source.next(&answer).expect("nothing yet");
        let first = source.next(&[News::Finished(0)]).expect("a plan");
        assert_eq!(
            segments(&first),
            [
                Segment::whole(3),
                Segment::new(5, 30).expect("layers in order")
            ]
        );
        let task = plan.task(Segment::whole(3), StretchLayers::held(3), 29);
        assert_eq!(task.budget.as_nanos(), {
            plan.settings.budget.as_nanos() * 3 / 29
        });
    }

    /// The answer to a survey of a memory that holds ten neighbouring layers and no more.
    fn too_large() -> Vec<Unsupported> {
        let segments = (1..=20).map(|first| Segment::new(first, first + 10).expect("ascending"));
        let row = |segment| Unsupported {
            processor: "npu".to_owned(),
            segment,
            reason: "12 MiB of memory are needed, and there are 11 MiB".to_owned(),
            needed: Some(Bytes::from_bytes(12 << 20)),
        };
        segments.map(row).collect()
    }

    #[test]
    fn what_memory_does_not_hold_is_never_asked_for_and_the_longest_that_it_holds_is() {
        let answer = too_large();
        for design in [Design::Local, Design::Grouped, Design::Adaptive] {
            let plan = plan(design, 7).expect("processors");
            let ordered: BTreeSet<Segment> = match design {
                Design::Adaptive => {
                    let mut source = plan.orders();
                    source.next(&[]).expect("a survey");
                    let answer = answer.iter().cloned().map(News::Unsupported);
                    let answer: Vec<News> = answer.collect();
                    source.next(&answer).expect("nothing yet");
                    let first = source.next(&[News::Finished(0)]).expect("a plan");
                    segments(&first).into_iter().collect()
                }
                _ => {
                    let orders = orders_after(&plan, &answer).expect("a plan");
                    segments(&orders).into_iter().collect()
                }
            };
            assert!(ordered.contains(&Segment::whole(10)), "{design}");
            assert!(ordered.iter().all(|one| one.layers() <= 10), "{design}");
            let method = plan.processors[1].method(&supported(30, "npu", &answer));
            assert_eq!(method, Method::Graph, "{design}");
        }
        let grouped = plan(Design::Grouped, 7).expect("processors");
        let method = grouped.processors[1].method(&supported(30, "npu", &[]));
        assert_eq!(method, Method::Differencing);
        let error = orders_after(&plan(Design::PrefixSuffix, 7).expect("processors"), &answer);
        assert_eq!(
            error
                .expect_err("all differences have the whole in them")
                .to_string(),
            "the memory of `npu` does not hold layers 1..=30 as one segment, only layers 1..=10, and the design prefix-suffix \
             needs all of them; choose local, adaptive or grouped"
        );
    }

    #[test]
    fn a_processor_that_runs_nothing_is_left_out_and_a_cpu_that_lacks_a_layer_is_refused() {
        let plan = plan(Design::Local, 7).expect("processors");
        let nothing: Vec<Unsupported> = (1..=30).map(|layer| lacking("npu", layer)).collect();
        let orders = orders_after(&plan, &nothing).expect("a plan");
        assert_eq!(orders.len(), 5);
        let is_pass = |order: &Order| matches!(order.work, Work::TimePasses { .. });
        assert!(orders.iter().all(is_pass), "{orders:?}");
        let error = orders_after(&plan, &[lacking("cpu", 3)]).expect_err("no pass");
        assert_eq!(
            error.to_string(),
            "`cpu` is measured in passes over all layers and cannot run layers 3..=3: it has no Elu; choose other \
             processors with --processors"
        );
    }

    #[test]
    fn orders_are_numbered_once_and_the_seed_decides_their_content() {
        let orders = |seed| all_orders(&plan(Design::PrefixSuffix, seed).expect("processors"));
        let first = orders(1);
        let numbers: Vec<u32> = first.iter().map(|order| order.number).collect();
        assert_eq!(numbers, (1..=numbers.len() as u32).collect::<Vec<_>>());
        assert_eq!(first, orders(1));
        assert_ne!(first, orders(2));
    }

    /// The same plan with five probes.
    fn with_probes(plan: TimesPlan) -> TimesPlan {
        let model = Probe {
            channels: 4,
            side: 16,
        };
        let model = probe_network(model).expect("a network");
        let probes = ProbeFiles::of(&model, false).expect("probes");
        assert_eq!(probes.count(), 5);
        plan.with_probes(probes)
    }

    #[test]
    fn the_sample_count_is_that_of_the_orders() {
        for design in [Design::PrefixSuffix, Design::Local, Design::Grouped] {
            let without = plan(design, 1).expect("processors");
            for plan in [without.clone(), with_probes(without)] {
                let orders = all_orders(&plan);
                let samples = orders.iter().map(|order| match &order.work {
                    Work::TimePasses { timing } => 30 * timing.samples_per_segment,
                    Work::TimeSegments { segments, timing } => {
                        segments.len() as u64 * timing.samples_per_segment
                    }
                    work => panic!("{work:?} times nothing"),
                });
                assert_eq!(plan.samples(), Some(samples.sum()), "{design}");
            }
        }
    }

    /// A plan for an accelerator alone that chooses as it goes, with probes.
    fn probed(over_budget: OverBudget) -> TimesPlan {
        let settings = TimesSettings {
            target: 0.5,
            over_budget,
            ..settings(Design::Adaptive, 7)
        };
        let npu = [processor("npu", ProcessorKind::Accelerator)];
        let run = RunId::new("r").expect("a name");
        let plan = TimesPlan::new(&run, "ab", 30, &npu, settings).expect("a processor");
        with_probes(plan)
    }

    /// All orders of a plan for a device that cannot run layer 4, takes as long as `probe` for each sample of a probe, and
    /// about a millisecond for each layer of the model.
    fn worked_off(plan: &TimesPlan, probe: Nanos) -> Result<Vec<Order>, PlannerError> {
        let mut source = plan.orders();
        source.next(&[])?;
        source.next(&[News::Unsupported(lacking("npu", 4))])?;
        let mut open = VecDeque::from(source.next(&[News::Finished(0)])?);
        let (mut all, mut clock) = (Vec::new(), Nanos::ZERO);
        while let Some(order) = open.pop_front() {
            let duration = |segment: Segment, index: u64| match order.model_sha256.as_str() {
                "ab" => Nanos::from_micros(1_000 * u64::from(segment.layers()) + index * 3 % 5),
                _ => probe,
            };
            for news in done(&order, &mut clock, Nanos::from_millis(26), duration) {
                open.extend(source.next(&[news])?);
            }
            all.push(order);
        }
        Ok(all)
    }

    #[test]
    fn probes_are_timed_before_the_model_and_each_stretch_bears_its_share_of_their_time() {
        let plan = probed(OverBudget::Refuse);
        // 15 orders of 3 layers and 4 samples take 90 s, more than the 62 s that are the share of layers 1 to 3.
        let orders = worked_off(&plan, Nanos::from_millis(500)).expect("budget enough");
        let is_probe = |order: &Order| order.model_sha256 != "ab";
        let probes = orders.iter().take_while(|order| is_probe(order)).count();
        assert_eq!(probes, 15);
        assert!(!orders[probes..].iter().any(is_probe));
        let measured: BTreeSet<Segment> = segments(&orders[probes..]).into_iter().collect();
        for stretch in [(1, 3), (5, 30)].map(|one| Segment::try_from(one).expect("one")) {
            for segment in Design::Local.iter(stretch.layers()) {
                assert!(measured.contains(&segment.moved_into(stretch)), "{segment}");
            }
        }
    }

    #[test]
    fn probes_take_a_quarter_of_the_budget_at_most() {
        let plan = probed(OverBudget::Extend);
        let orders = worked_off(&plan, Nanos::from_millis(2_000)).expect("a plan");
        let probes = orders.iter().filter(|order| order.model_sha256 != "ab");
        // Each takes 24 s. In the seventh 150 s are over, and one more was sent.
        assert_eq!(probes.count(), 8);
    }

    #[test]
    fn what_cannot_be_planned_is_refused() {
        let run = RunId::new("r").expect("a name");
        let nothing = TimesPlan::new(&run, "ab", 3, &[], settings(Design::Grouped, 1));
        assert_eq!(nothing, Err(TimesPlanError::NoProcessor));
        assert_eq!(
            plan(Design::LayerPass, 1),
            Err(TimesPlanError::NotForAccelerators {
                design: Design::LayerPass
            })
        );
    }
}
