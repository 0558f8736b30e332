//! Which orders measuring the times of a model consists of.

use layerlab_profiles::Segment;
use layerlab_profiles::design::Design;
use layerlab_profiles::design::agenda::{Agenda, DesignTask, FixedBlock};
use layerlab_profiles::document::{Measurement, Processor, ProcessorKind};
use layerlab_protocol::{Order, RunId, WarmUp, Work};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::TimesSettings;
use super::orders::{Adaptive, Fixed, Orders, Sequence};

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
            processor: String::new(),
            work: Work::TimePasses,
            samples_per_segment: settings.samples_per_segment,
            gap_ns: settings.gap,
            warm_up: WarmUp::default(),
            hygiene: settings.hygiene,
            seed: settings.seed,
        };
        Ok(TimesPlan {
            processors,
            layers,
            template,
            settings,
        })
    }

    /// The orders of the run, one processor after the other.
    pub fn orders(&self) -> Sequence {
        let mut random = ChaCha8Rng::seed_from_u64(self.settings.seed);
        Sequence::new(
            self.processors
                .iter()
                .map(|plan| self.part(plan, &mut random)),
        )
    }

    fn part(&self, plan: &ProcessorPlan, random: &mut ChaCha8Rng) -> Box<dyn Orders> {
        let template = Order {
            processor: plan.processor.name.clone(),
            ..self.template.clone()
        };
        let order = |block| Order {
            work: match block {
                FixedBlock::LayerPass => Work::TimePasses,
                FixedBlock::Segments(segments) => Work::TimeSegments { segments },
            },
            ..template.clone()
        };
        match plan.design.agenda(&self.task(), random) {
            Agenda::Fixed(blocks) => Box::new(Fixed::new(blocks.into_iter().map(order).collect())),
            Agenda::Planned(planner) => Box::new(Adaptive::new(planner, template)),
        }
    }

    fn task(&self) -> DesignTask {
        DesignTask {
            layers: self.layers,
            seed: self.settings.seed,
            gap: self.settings.gap,
            target: self.settings.target,
            budget: self.settings.budget,
        }
    }

    /// How many samples the run will have; `None` if that turns out while it measures.
    pub fn samples(&self) -> Option<u64> {
        let segments = |plan: &ProcessorPlan| {
            let known = !plan.design.chooses_as_it_goes();
            known.then(|| plan.design.iter(self.layers).count() as u64)
        };
        let segments: Option<u64> = self.processors.iter().map(segments).sum();
        Some(segments? * self.settings.samples_per_segment)
    }

    /// How the profile describes the plan.
    pub fn measurements(&self) -> Vec<Measurement> {
        let chooses = |plan: &ProcessorPlan| plan.design.chooses_as_it_goes();
        let measurement = |plan: &ProcessorPlan| Measurement {
            processor: plan.processor.name.clone(),
            design: plan.design,
            samples_per_segment: plan
                .design
                .samples_per_segment(self.settings.samples_per_segment),
            gap_ns: self.settings.gap,
            method: plan.design.method(),
            seed: self.settings.seed,
            target: chooses(plan).then_some(self.settings.target),
            budget_ns: chooses(plan).then_some(self.settings.budget),
            sentinel: (self.layers > 0).then(|| Segment::whole(self.layers)),
        };
        self.processors.iter().map(measurement).collect()
    }
}

impl TimesSettings {
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
    use layerlab_profiles::Nanos;
    use layerlab_profiles::document::Numerics;
    use std::collections::BTreeSet;

    fn processor(name: &str, kind: ProcessorKind) -> Processor {
        Processor {
            name: name.to_owned(),
            kind,
            numerics: Numerics::F32,
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

    /// All orders, as they come when each is done at once.
    fn all_orders(plan: &TimesPlan) -> Vec<Order> {
        let mut source = plan.orders();
        let mut all = source.next(&[]).expect("a plan");
        let mut done = 0;
        while done < all.len() {
            let finished = News::Finished(all[done].number);
            all.extend(source.next(&[finished]).expect("a plan"));
            done += 1;
        }
        all
    }

    #[test]
    fn every_segment_of_the_design_is_ordered_once() {
        for design in [Design::PrefixSuffix, Design::Local, Design::Grouped] {
            let plan = plan(design, 7).expect("processors");
            let ordered: Vec<Segment> = all_orders(&plan)
                .iter()
                .filter_map(|order| match &order.work {
                    Work::TimeSegments { segments } => Some(segments.clone()),
                    _ => None,
                })
                .flatten()
                .collect();
            let once: BTreeSet<Segment> = ordered.iter().copied().collect();
            assert_eq!(ordered.len(), once.len());
            assert_eq!(once.into_iter().collect::<Vec<_>>(), design.segments(30));
        }
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

    #[test]
    fn the_sample_count_is_that_of_the_orders() {
        assert_eq!(
            plan(Design::PrefixSuffix, 1).expect("processors").samples(),
            Some((30 + 59) * 10)
        );
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
