//! Which orders a run consists of.

use layerlab_profiles::design::Design;
use layerlab_profiles::document::{Measurement, Method, Processor, ProcessorKind};
use layerlab_profiles::{Nanos, Segment};
use layerlab_protocol::{Hygiene, Order, RunId, WarmUp, Work};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

/// Segments per order. Segments of one order take turns, which spreads drift over them; an order
/// that is lost with a phone is measured again, which should not cost much.
const SEGMENTS_PER_ORDER: usize = 16;

/// What the user may choose about a measurement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Which segments to measure on accelerators.
    pub design: Design,
    /// How many samples each segment gets.
    pub samples_per_segment: u64,
    /// The idle time before each inference.
    pub gap: Nanos,
    /// Seeds inputs and order.
    pub seed: u64,
    /// When a block counts.
    pub hygiene: Hygiene,
}

/// How one processor is measured.
#[derive(Clone, Debug, PartialEq)]
pub struct ProcessorPlan {
    /// The processor.
    pub processor: Processor,
    /// Which segments are measured on it.
    pub design: Design,
}

/// The orders of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The processors and their designs.
    pub processors: Vec<ProcessorPlan>,
    /// The orders, in the order in which they are sent.
    pub orders: Vec<Order>,
    settings: Settings,
}

/// Why nothing can be planned.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// There is nothing to measure on.
    #[error("the device has no processor that can be measured")]
    NoProcessor,
    /// Layer passes do not separate transfers from computing.
    #[error(
        "the design {0} is for processors that compute in main memory; choose prefix-suffix or grouped"
    )]
    NotForAccelerators(Design),
}

impl Plan {
    /// Plans a run of a model of `layers` layers on `processors`: a CPU is read layer by layer, an
    /// accelerator by the design that the user chose.
    pub fn new(
        run: &RunId,
        model_sha256: &str,
        layers: u32,
        processors: &[Processor],
        settings: Settings,
    ) -> Result<Plan, PlanError> {
        if processors.is_empty() {
            return Err(PlanError::NoProcessor);
        }
        if settings.design == Design::LayerPass {
            return Err(PlanError::NotForAccelerators(settings.design));
        }
        let mut random = ChaCha8Rng::seed_from_u64(settings.seed);
        let processors: Vec<ProcessorPlan> = processors
            .iter()
            .map(|processor| ProcessorPlan {
                processor: processor.clone(),
                design: match processor.kind {
                    ProcessorKind::Cpu => Design::LayerPass,
                    ProcessorKind::Accelerator => settings.design,
                },
            })
            .collect();
        let mut orders = Vec::new();
        for ProcessorPlan { processor, design } in &processors {
            let works = match design {
                Design::LayerPass => vec![Work::TimePasses],
                Design::PrefixSuffix | Design::Grouped => {
                    time_segments(design.segments(layers), &mut random)
                }
            };
            for work in works {
                orders.push(Order {
                    run: run.clone(),
                    number: orders.len() as u32 + 1,
                    model_sha256: model_sha256.to_owned(),
                    processor: processor.name.clone(),
                    work,
                    samples_per_segment: settings.samples_per_segment,
                    gap_ns: settings.gap,
                    warm_up: WarmUp::default(),
                    hygiene: settings.hygiene,
                    seed: settings.seed,
                });
            }
        }
        Ok(Plan {
            processors,
            orders,
            settings,
        })
    }

    /// How many samples the run will have.
    pub fn samples(&self, layers: u32) -> u64 {
        let segments: usize = self
            .processors
            .iter()
            .map(|plan| plan.design.segments(layers).len())
            .sum();
        segments as u64 * self.settings.samples_per_segment
    }

    /// How the profile describes the plan.
    pub fn measurements(&self) -> Vec<Measurement> {
        let measurement = |plan: &ProcessorPlan| Measurement {
            processor: plan.processor.name.clone(),
            design: plan.design,
            samples_per_segment: self.settings.samples_per_segment,
            gap_ns: self.settings.gap,
            method: match plan.design {
                Design::LayerPass => Method::Median,
                Design::PrefixSuffix | Design::Grouped => Method::Differencing,
            },
            seed: self.settings.seed,
        };
        self.processors.iter().map(measurement).collect()
    }
}

/// Orders of a few segments each, mixed, so that no order has only long or only short ones.
fn time_segments(mut segments: Vec<Segment>, random: &mut ChaCha8Rng) -> Vec<Work> {
    segments.shuffle(random);
    segments
        .chunks(SEGMENTS_PER_ORDER)
        .map(|chunk| Work::TimeSegments {
            segments: chunk.to_vec(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use layerlab_profiles::document::Numerics;
    use std::collections::BTreeSet;

    fn processor(name: &str, kind: ProcessorKind) -> Processor {
        Processor {
            name: name.to_owned(),
            kind,
            numerics: Numerics::F32,
            runtime: "test".to_owned(),
            runtime_version: "1".to_owned(),
            memory_bytes: None,
        }
    }

    fn settings(design: Design, seed: u64) -> Settings {
        Settings {
            design,
            samples_per_segment: 10,
            gap: Nanos::ZERO,
            seed,
            hygiene: Hygiene::default(),
        }
    }

    fn plan(design: Design, seed: u64) -> Result<Plan, PlanError> {
        let processors = [
            processor("cpu", ProcessorKind::Cpu),
            processor("npu", ProcessorKind::Accelerator),
        ];
        Plan::new(
            &RunId::new("r").expect("a name"),
            "ab",
            30,
            &processors,
            settings(design, seed),
        )
    }

    #[test]
    fn every_segment_of_the_design_is_ordered_once() {
        for design in [Design::PrefixSuffix, Design::Grouped] {
            let plan = plan(design, 7).expect("processors");
            let ordered: Vec<Segment> = plan
                .orders
                .iter()
                .filter_map(|order| match &order.work {
                    Work::TimeSegments { segments } => Some(segments.clone()),
                    Work::TimePasses => None,
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
        let first = plan(Design::PrefixSuffix, 1).expect("processors");
        let numbers: Vec<u32> = first.orders.iter().map(|order| order.number).collect();
        assert_eq!(numbers, (1..=numbers.len() as u32).collect::<Vec<_>>());
        assert_eq!(first, plan(Design::PrefixSuffix, 1).expect("processors"));
        assert_ne!(
            first.orders,
            plan(Design::PrefixSuffix, 2).expect("processors").orders
        );
    }

    #[test]
    fn the_sample_count_is_that_of_the_orders() {
        assert_eq!(
            plan(Design::PrefixSuffix, 1)
                .expect("processors")
                .samples(30),
            (30 + 59) * 10
        );
    }

    #[test]
    fn what_cannot_be_planned_is_refused() {
        let run = RunId::new("r").expect("a name");
        let nothing = Plan::new(&run, "ab", 3, &[], settings(Design::Grouped, 1));
        assert_eq!(nothing, Err(PlanError::NoProcessor));
        assert_eq!(
            plan(Design::LayerPass, 1),
            Err(PlanError::NotForAccelerators(Design::LayerPass))
        );
    }
}
