//! Which orders measuring the times of a model consists of.

use layerlab_profiles::design::Design;
use layerlab_profiles::design::agenda::{Agenda, DesignTask, FixedBlock};
use layerlab_profiles::document::{
    Measured, Measurement, Method, Processor, ProcessorKind, Unsupported, supported,
};
use layerlab_profiles::probe::PROBE_LAYERS;
use layerlab_profiles::supported::{StretchLayers, SupportedLayers};
use layerlab_profiles::{Nanos, Probe, Segment, Shortcuts};
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
    shortcuts: Shortcuts,
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
            shortcuts: Shortcuts::default(),
        })
    }

    /// The same, with the model's quantised twin for the processors that run that.
    pub fn with_twin(mut self, quantised_sha256: Option<String>) -> TimesPlan {
        self.template.quantised_sha256 = quantised_sha256;
        self
    }

    /// The same of a model with these shortcuts, as layer times are derived from what is measured.
    pub fn with_shortcuts(self, shortcuts: Shortcuts) -> TimesPlan {
        TimesPlan { shortcuts, ..self }
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
                            let shortcuts = self.shortcuts.within(stretch);
                            let orders = orders.with_shortcuts(shortcuts);
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
mod tests;
