//! The section `[machine_noise]` of a device file, and the checks that make it a [`MachineNoise`].

use layerlab_profiles::Nanos;
use serde::Deserialize;

use super::DeviceFileError;
use super::check::{ABOVE_ZERO, AT_LEAST_ONE, AT_LEAST_ZERO, Place};
use crate::device::simulated::machine_noise::{Cold, Correlated, MachineNoise};
use crate::device::simulated::switching::{Level, Switching};

/// Levels that hold for less are not told apart by any inference, and take long to simulate.
const SHORTEST_HOLD: u64 = 1_000_000;

/// How the times of the whole machine move. All is on the machine's own clock, and absent parts do nothing.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawMachineNoise {
    /// The standard deviation of the logarithm of what all times of a visit have in common; a visit lasts from the first
    /// segment that is loaded onto an empty device until the device is empty again.
    visit_sigma: Option<f64>,
    /// The standard deviation of the logarithm of what all times of a segment have in common until it is unloaded.
    loading_sigma: Option<f64>,
    /// By what share the machine gets slower each hour.
    drift_per_hour: Option<f64>,
    /// The standard deviation of the logarithm of noise that changes gradually.
    correlated_sigma: Option<f64>,
    /// With `correlated_sigma` only: after this time the correlation has fallen to 1/e.
    correlation_time_ns: Option<i64>,
    /// How many times as long a segment takes right after it was loaded.
    cold_slowdown: Option<f64>,
    /// With `cold_slowdown` only: after this time 1/e of what is more is left.
    cold_decay_ns: Option<i64>,
    /// Levels of speed: steps of a governor, a neighbour's bursts, two states.
    #[serde(default)]
    switching: Vec<RawSwitching>,
}

/// One set of levels, of which the machine always has one. Levels of several sets multiply.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSwitching {
    /// How many times as long everything takes, for each level.
    slowdowns: Option<Vec<f64>>,
    /// How long each level holds in the mean.
    mean_holds_ns: Option<Vec<i64>>,
}

impl RawMachineNoise {
    pub(super) fn check(self, file: &str) -> Result<MachineNoise, DeviceFileError> {
        let place = Place {
            file,
            place: "[machine_noise]".to_owned(),
        };
        let at_least_zero = |field, value| {
            let number = place.optional_number(field, value, &AT_LEAST_ZERO)?;
            Ok(number.unwrap_or(0.0))
        };
        let correlated = self.correlated(&place)?;
        let cold = self.cold(&place)?;
        Ok(MachineNoise {
            visit_sigma: at_least_zero("visit_sigma", self.visit_sigma)?,
            loading_sigma: at_least_zero("loading_sigma", self.loading_sigma)?,
            drift_per_hour: at_least_zero("drift_per_hour", self.drift_per_hour)?,
            correlated,
            cold,
            switching: (1..)
                .zip(self.switching)
                .map(|(number, switching)| switching.check(file, number))
                .collect::<Result<_, _>>()?,
        })
    }

    fn correlated(&self, place: &Place<'_>) -> Result<Option<Correlated>, DeviceFileError> {
        let (field, time) = ("correlation_time_ns", self.correlation_time_ns);
        match place.optional_number("correlated_sigma", self.correlated_sigma, &AT_LEAST_ZERO)? {
            Some(sigma) => Ok(Some(Correlated {
                sigma,
                correlation_time: positive_time(place, field, time)?,
            })),
            None => {
                place.absent(field, time, "a machine without `correlated_sigma`")?;
                Ok(None)
            }
        }
    }

    fn cold(&self, place: &Place<'_>) -> Result<Option<Cold>, DeviceFileError> {
        let (field, time) = ("cold_decay_ns", self.cold_decay_ns);
        match place.optional_number("cold_slowdown", self.cold_slowdown, &AT_LEAST_ONE)? {
            Some(slowdown) => Ok(Some(Cold {
                slowdown,
                decay: positive_time(place, field, time)?,
            })),
            None => {
                place.absent(field, time, "a machine without `cold_slowdown`")?;
                Ok(None)
            }
        }
    }
}

impl RawSwitching {
    fn check(self, file: &str, number: usize) -> Result<Switching, DeviceFileError> {
        let place = Place {
            file,
            place: format!("switching {number} of [machine_noise]"),
        };
        let expected = "a list of at least two numbers above 0";
        let slowdowns = place.required("slowdowns", self.slowdowns, expected)?;
        let fits = |&slowdown: &f64| slowdown.is_finite() && (ABOVE_ZERO.holds)(slowdown);
        if slowdowns.len() < 2 || !slowdowns.iter().all(fits) {
            return Err(place.senseless("slowdowns", format!("{slowdowns:?}"), expected));
        }
        let expected = "as many whole numbers as there are `slowdowns`, each 1000000 or more";
        let holds = place.required("mean_holds_ns", self.mean_holds_ns, expected)?;
        let hold = |hold: &i64| {
            u64::try_from(*hold)
                .ok()
                .filter(|&hold| hold >= SHORTEST_HOLD)
        };
        let fitting: Vec<u64> = holds.iter().map_while(hold).collect();
        if fitting.len() != slowdowns.len() || holds.len() != slowdowns.len() {
            return Err(place.senseless("mean_holds_ns", format!("{holds:?}"), expected));
        }
        let levels = slowdowns.into_iter().zip(fitting);
        Ok(Switching {
            levels: levels
                .map(|(slowdown, hold)| Level {
                    slowdown,
                    mean_hold: Nanos::from_nanos(hold),
                })
                .collect(),
        })
    }
}

fn positive_time(
    place: &Place<'_>,
    field: &'static str,
    value: Option<i64>,
) -> Result<Nanos, DeviceFileError> {
    let expected = "a whole number above 0";
    let time = place.required(field, value, expected)?;
    match u64::try_from(time) {
        Ok(time) if time > 0 => Ok(Nanos::from_nanos(time)),
        _ => Err(place.senseless(field, time, expected)),
    }
}
