//! `energy.csv`, `layer_energy.csv` and `energy` of `profile.json`: what inferences draw (docs/method.md §13).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::decimals::round;
use super::{Header, LayerTimeRow, Method, Processor, Profile};
use crate::derive::LayerTime;
use crate::derive::graph::Fit;
use crate::energy::{
    DerivedEnergy, EnergyError, EnergyWindow, Meter, derive, fit, variance_of_steps,
};
use crate::summary::Estimate;
use crate::units::{NanoJoules, Nanos};

/// What inferences draw, of a profile for which that was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Energy {
    /// `energy.csv`: the windows in which the meter was read.
    pub windows: Vec<EnergyWindow>,
    /// `layer_energy.csv`: what each layer draws on each processor that can run it. In the place of nanoseconds these rows have
    /// nanojoules: the estimator and planners take either.
    pub layers: Vec<LayerTimeRow>,
    /// `energy` of `profile.json`: how that was measured, and what follows for each processor.
    pub found: MeasuredEnergy,
}

/// How energy was measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EnergyMeasurement {
    /// The power meter.
    pub meter: Meter,
    /// For how long each segment was run in each window, at least, and for how long the device idled before and after.
    pub window_ns: Nanos,
    /// In how many visits.
    pub visits: u32,
}

/// How energy was measured, and what follows for each processor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MeasuredEnergy {
    /// How it was measured.
    pub measurement: EnergyMeasurement,
    /// What follows, for each processor that has windows, in the order of `processors`.
    pub processors: Vec<ProcessorEnergy>,
}

/// What the windows of one processor say. Powers are in whole microwatts, and energies are those of one inference.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProcessorEnergy {
    /// The processor, by its name.
    pub processor: String,
    /// What the idle device draws.
    pub idle_uw: u64,
    /// What it draws above that while the processor works.
    pub busy_uw: u64,
    /// The lower end of that power's 95 % confidence interval; `null` where nothing scatters.
    pub busy_ci95_low_uw: Option<u64>,
    /// The upper end.
    pub busy_ci95_high_uw: Option<u64>,
    /// The meter's step, where no scatter averages out what it hides: intervals hold that. `null` where it hides nothing.
    pub hidden_step_uw: Option<u64>,
    /// What the whole model draws; `null` where the processor cannot run all of it.
    pub whole_nj: Option<NanoJoules>,
    /// The lower end of its 95 % confidence interval.
    pub whole_ci95_low_nj: Option<NanoJoules>,
    /// The upper end.
    pub whole_ci95_high_nj: Option<NanoJoules>,
    /// By how much the longest segment deviates from what all others predict for it, in per cent; three decimals. `null` where
    /// that was not tested.
    pub misfit_percent: Option<f64>,
    /// How probable a deviation at least as large is if energies do add up; six decimals. `null` likewise, or where windows are
    /// too few to say.
    pub p_value: Option<f64>,
}

impl Energy {
    /// What follows from these windows, which may come in any order.
    pub fn of(
        profile: &Profile,
        measurement: EnergyMeasurement,
        mut windows: Vec<EnergyWindow>,
    ) -> Result<Energy, EnergyError> {
        sort(&profile.header, &mut windows);
        let (mut layers, mut processors) = (Vec::new(), Vec::new());
        for processor in &profile.header.processors {
            let name = &processor.name;
            let of_it: Vec<&EnergyWindow> = windows
                .iter()
                .filter(|one| one.processor == *name)
                .collect();
            let supported = profile.supported(name);
            let Some(derived) = derive(processor.kind, &supported, &of_it)? else {
                continue;
            };
            layers.extend(derived.layers.iter().map(|(&layer, &time)| LayerTimeRow {
                layer,
                processor: name.clone(),
                time,
                method: Method::Graph,
            }));
            processors.push(ProcessorEnergy::of(processor, &derived));
        }
        Ok(Energy {
            windows,
            layers,
            found: MeasuredEnergy {
                measurement,
                processors,
            },
        })
    }

    fn windows_on(&self, processor: &str) -> Vec<&EnergyWindow> {
        let windows = self.windows.iter();
        windows.filter(|one| one.processor == processor).collect()
    }

    /// What each layer draws on a processor, layer 1 first, in nJ; none of those that it cannot run.
    pub fn of_layers(&self, processor: &str, layers: u32) -> Vec<Option<LayerTime>> {
        let time = |layer| {
            let mut rows = self.layers.iter();
            let row = rows.find(|row| row.processor == processor && row.layer == layer);
            row.map(|row| row.time)
        };
        (1..=layers).map(time).collect()
    }

    /// What the windows of the processor of this name say.
    pub fn of_processor(&self, processor: &str) -> Option<&ProcessorEnergy> {
        let mut all = self.found.processors.iter();
        all.find(|one| one.processor == processor)
    }
}

/// By processor in the header's order, then as they were measured.
fn sort(header: &Header, windows: &mut [EnergyWindow]) {
    let places = header.places();
    windows.sort_by_key(|window| {
        let place = places.get(window.processor.as_str()).copied();
        (place, window.order, window.started)
    });
}

impl ProcessorEnergy {
    /// The standard deviation of the relative error that all energies on the processor have in common.
    pub fn shared_error(&self) -> f64 {
        let step = self.hidden_step_uw.unwrap_or(0);
        variance_of_steps(step, self.busy_uw.max(1) as f64).sqrt()
    }

    fn of(processor: &Processor, derived: &DerivedEnergy) -> ProcessorEnergy {
        let whole = |end: fn(Estimate) -> Option<crate::SignedNanos>| {
            let end = end(derived.whole()?)?;
            Some(NanoJoules::from_nanojoules(end.as_nanos()))
        };
        let busy = |sign: f64| {
            let half = derived.power_half_width_uw?;
            Some((derived.power_uw + sign * half).max(0.0).round() as u64)
        };
        let tested = derived.additivity.as_ref();
        ProcessorEnergy {
            processor: processor.name.clone(),
            idle_uw: derived.idle_uw.round() as u64,
            busy_uw: derived.power_uw.round() as u64,
            busy_ci95_low_uw: busy(-1.0),
            busy_ci95_high_uw: busy(1.0),
            hidden_step_uw: derived.hidden_step_uw,
            whole_nj: whole(|whole| Some(whole.value)),
            whole_ci95_low_nj: whole(|whole| Some(whole.ci95?.0)),
            whole_ci95_high_nj: whole(|whole| Some(whole.ci95?.1)),
            misfit_percent: tested.map(|tested| round(tested.misfit_percent, 1e3)),
            p_value: tested.and_then(|tested| Some(round(tested.p_value?, 1e6))),
        }
    }
}

impl Profile {
    /// The fit from which the energies of an accelerator's layers came. `None` where energy was not measured on it, or where it
    /// cannot run every layer with the next.
    pub fn energy_fit(&self, processor: &str) -> Result<Option<Fit>, EnergyError> {
        let Some(energy) = &self.energy else {
            return Ok(None);
        };
        fit(&self.supported(processor), &energy.windows_on(processor))
    }

    /// What the windows of the processor of this name give, made again from them: the errors of numbers stand in no file.
    pub(crate) fn derived_energy(&self, processor: &str) -> Option<DerivedEnergy> {
        let mut processors = self.header.processors.iter();
        let kind = processors.find(|one| one.name == processor)?.kind;
        let windows = self.energy.as_ref()?.windows_on(processor);
        derive(kind, &self.supported(processor), &windows).ok()?
    }

    /// The same profile with what inferences draw.
    pub fn with_energy(
        mut self,
        measurement: EnergyMeasurement,
        windows: Vec<EnergyWindow>,
    ) -> Result<Profile, EnergyError> {
        self.energy = Some(Energy::of(&self, measurement, windows)?);
        Ok(self)
    }
}
