//! Measures what inferences draw, in a run of its own (docs/method.md §13).

use std::collections::BTreeMap;

use layerlab_profiles::document::{EnergyMeasurement, Processor, Profile, Unsupported, supported};
use layerlab_profiles::energy::{
    EnergyError, EnergyWindow, FEWEST_VISITS, LONGEST_WINDOW, Meter, SHORTEST_WINDOW,
    drawn_together, segments,
};
use layerlab_profiles::summary::Estimate;
use layerlab_profiles::{Nanos, Placement, Segment};
use layerlab_protocol::{Entry, MeterChoice, Order, RunId, TimingSettings, WarmUp, Work};

use super::orders::{Fixed, SURVEY, Surveyed, survey};
use super::{CampaignError, File, Follower, KnownJournal, ModelFile, TimesSettings, drive, forget};
use layerlab_farm::Link;

/// How energy is measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnergySettings {
    /// For how long each segment is run, and the device idles, in each window.
    pub window: Nanos,
    /// How often each segment is visited.
    pub visits: u32,
    /// Which power meter is read.
    pub meter: MeterChoice,
}

/// Windows that say too little, or that nobody waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a segment is run for {} to {} to measure its energy: write 30s",
    SHORTEST_WINDOW,
    LONGEST_WINDOW
)]
pub struct UnfitWindow;

impl EnergySettings {
    /// How often each segment is visited unless another number is chosen.
    pub const VISITS: u32 = FEWEST_VISITS;

    /// Refuses windows that are too short or too long.
    pub fn fit_window(window: Nanos) -> Result<Nanos, UnfitWindow> {
        match (SHORTEST_WINDOW..=LONGEST_WINDOW).contains(&window) {
            true => Ok(window),
            false => Err(UnfitWindow),
        }
    }

    /// One visit to each of these segments.
    fn work(&self, segments: Vec<Segment>, times: &TimesSettings) -> Work {
        Work::MeasureEnergy {
            segments,
            meter: self.meter.clone(),
            window_ns: self.window,
            timing: TimingSettings {
                samples_per_segment: 1,
                gap_ns: Nanos::ZERO,
                warm_up: WarmUp::default(),
                hygiene: times.hygiene,
            },
        }
    }
}

/// What was read of a power meter, of which what layers draw follows once their times are known.
#[derive(Clone, Debug)]
pub struct MeteredWindows {
    measurement: EnergyMeasurement,
    windows: Vec<EnergyWindow>,
}

impl MeteredWindows {
    /// The profile with what its layers draw.
    pub fn added_to(self, profile: Profile) -> Result<Profile, EnergyError> {
        profile.with_energy(self.measurement, self.windows)
    }
}

/// Reads the power meter of the device behind `link` while `model` runs there, going on with `journal`, which stays on the
/// device.
pub async fn measure_energy<L: Link, F: Follower>(
    link: &L,
    model: &ModelFile,
    times: &TimesSettings,
    energy: &EnergySettings,
    journal: &KnownJournal,
    follower: &mut F,
) -> Result<MeteredWindows, CampaignError> {
    let layers = model.network.layer_count();
    let hello = link.connect().await?.hello;
    let plan = EnergyPlan {
        processors: times.chosen(&hello.processors)?,
        layers,
        template: template(&journal.id, model, times),
        times,
        energy,
    };
    follower.planned(Some(plan.windows()));
    let files: Vec<File<'_>> = model.files().collect();
    let mut orders = plan.orders();
    let measured = drive(link, journal, &files, &mut orders, follower).await?;
    drop(orders);
    let meter = measured.meter.ok_or(CampaignError::NoMeter)?;
    Ok(MeteredWindows {
        measurement: plan.measurement(meter),
        windows: measured.energy,
    })
}

/// Reads the power meter of the device behind `link` while each maximal run of neighbours of `placement` on one of these processors
/// is run there over and over as one unit: what one inference under the placement draws, in nJ.
///
/// # Panics
/// When the placement has a digit without a processor.
pub async fn measure_placement_energy<L: Link>(
    link: &L,
    model: &ModelFile,
    placement: &Placement,
    processors: &[String],
    energy: &EnergySettings,
) -> Result<Estimate, CampaignError> {
    let mut parts: BTreeMap<u8, Vec<Segment>> = BTreeMap::new();
    for (segment, processor) in placement.runs() {
        parts.entry(processor).or_default().push(segment);
    }
    let journal = KnownJournal::fresh();
    let times = TimesSettings::default();
    let template = template(&journal.id, model, &times);
    let visits = (0..energy.visits).flat_map(|_| parts.iter());
    let orders = (1..)
        .zip(visits)
        .map(|(number, (&processor, segments))| Order {
            number,
            processor: processors[usize::from(processor)].clone(),
            work: energy.work(segments.clone(), &times),
            ..template.clone()
        });
    let mut orders = Fixed::new(orders.collect());
    let files: Vec<File<'_>> = model.files().collect();
    let measured = drive(link, &journal, &files, &mut orders, &mut |_: &Entry| {}).await?;
    forget(link, journal.id).await;
    let windows: Vec<&EnergyWindow> = measured.energy.iter().collect();
    drawn_together(&windows)?.ok_or(CampaignError::NoMeter)
}

fn template(run: &RunId, model: &ModelFile, times: &TimesSettings) -> Order {
    Order {
        run: run.clone(),
        number: SURVEY,
        model_sha256: model.sha256.clone(),
        quantised_sha256: model.quantised_sha256(),
        processor: String::new(),
        work: Work::Survey {
            processors: Vec::new(),
        },
        seed: times.seed,
    }
}

/// Which orders measuring energy consists of.
struct EnergyPlan<'a> {
    processors: Vec<Processor>,
    layers: u32,
    template: Order,
    times: &'a TimesSettings,
    energy: &'a EnergySettings,
}

impl EnergyPlan<'_> {
    /// First it is asked which layers the processors cannot run; then, visit after visit, each processor is measured.
    fn orders(&self) -> Surveyed<'_> {
        let names = self.processors.iter().map(|one| one.name.clone());
        let survey = survey(&self.template, names.collect());
        Surveyed::new(survey, |unsupported| {
            Ok(Fixed::new(self.orders_without(unsupported)))
        })
    }

    fn orders_without(&self, unsupported: &[Unsupported]) -> Vec<Order> {
        let of_visit = |_| {
            self.processors.iter().filter_map(|processor| {
                let supported = supported(self.layers, &processor.name, unsupported);
                let segments = segments(processor.kind, &supported);
                (!segments.is_empty()).then(|| self.order(processor, segments))
            })
        };
        let orders = (0..self.energy.visits).flat_map(of_visit);
        (1..)
            .zip(orders)
            .map(|(number, order)| Order { number, ..order })
            .collect()
    }

    fn order(&self, processor: &Processor, segments: Vec<Segment>) -> Order {
        Order {
            processor: processor.name.clone(),
            work: self.energy.work(segments, self.times),
            ..self.template.clone()
        }
    }

    /// How many windows there are, if the processors can run every layer.
    fn windows(&self) -> u64 {
        let all = |processor: &Processor| {
            let supported = supported(self.layers, &processor.name, &[]);
            2 * segments(processor.kind, &supported).len() as u64 + 1
        };
        u64::from(self.energy.visits) * self.processors.iter().map(all).sum::<u64>()
    }

    fn measurement(&self, meter: Meter) -> EnergyMeasurement {
        EnergyMeasurement {
            meter,
            window_ns: self.energy.window,
            visits: self.energy.visits,
        }
    }
}

#[cfg(test)]
mod tests {
    use layerlab_profiles::document::{Numerics, ProcessorKind};

    use super::*;

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

    #[test]
    fn every_visit_has_each_segment_that_can_run_once() {
        let (times, energy) = (
            TimesSettings::default(),
            EnergySettings {
                window: SHORTEST_WINDOW,
                visits: 3,
                meter: MeterChoice::Any,
            },
        );
        let plan = EnergyPlan {
            processors: vec![
                processor("cpu", ProcessorKind::Cpu),
                processor("npu", ProcessorKind::Accelerator),
            ],
            layers: 4,
            template: Order {
                run: RunId::new("run").expect("a name"),
                number: SURVEY,
                model_sha256: String::new(),
                quantised_sha256: None,
                processor: String::new(),
                work: Work::Survey {
                    processors: Vec::new(),
                },
                seed: 1,
            },
            times: &times,
            energy: &energy,
        };
        // Four layers; four layers, three pairs and all of them.
        assert_eq!(plan.windows(), 3 * ((2 * 4 + 1) + (2 * 8 + 1)));
        let lacking = Unsupported {
            processor: "npu".to_owned(),
            segment: Segment::single(2),
            reason: "it has no Elu".to_owned(),
            needed: None,
        };
        let orders = plan.orders_without(&[lacking]);
        let numbers: Vec<u32> = orders.iter().map(|order| order.number).collect();
        assert_eq!(numbers, [1, 2, 3, 4, 5, 6]);
        for order in &orders {
            let Work::MeasureEnergy { segments, .. } = &order.work else {
                panic!("{order:?}");
            };
            let lacks = segments.iter().all(|one| one.first() > 2 || one.last() < 2);
            match order.processor.as_str() {
                "cpu" => assert_eq!(segments.len(), 4),
                _ => assert!(lacks && segments.len() == 4, "{segments:?}"),
            }
        }
    }

    #[test]
    fn windows_are_half_a_minute_or_more() {
        assert!(EnergySettings::fit_window(SHORTEST_WINDOW).is_ok());
        let error = EnergySettings::fit_window(Nanos::from_millis(29_999));
        assert_eq!(
            error.expect_err("too short").to_string(),
            "a segment is run for 30.00 s to 600.0 s to measure its energy: write 30s"
        );
    }
}
