//! How the times of a whole simulated machine move: what the inferences of one loading, one visit or one minute have in
//! common, and what no number of samples averages away. [`super::noise`] is what each inference has for itself.
//!
//! All parts multiply: a time becomes `time · drift · correlated · switching · visit · loading · cold`.

use layerlab_profiles::Nanos;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::StandardNormal;
use sha2::{Digest, Sha256};

use super::switching::{Switching, SwitchingState};

const NS_PER_HOUR: f64 = 3.6e12;

/// The noise of a machine. Any part may be absent: a sigma of 0, a slowdown of 1, no switching.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MachineNoise {
    /// Of each visit, the time from the first segment that is loaded onto an empty device until the device is empty
    /// again: the standard deviation of the logarithm of a factor that all its times have.
    pub visit_sigma: f64,
    /// Of each loading of a segment: the standard deviation of the logarithm of a factor that all its times have until
    /// it is unloaded.
    pub loading_sigma: f64,
    /// By what share of the first time the machine gets slower each hour, from the moment it is switched on.
    pub drift_per_hour: f64,
    /// Noise that changes gradually; `None` if there is none.
    pub correlated: Option<Correlated>,
    /// What a loaded segment needs to get warm; `None` if nothing.
    pub cold: Option<Cold>,
    /// Levels of speed that hold for a while: steps of a governor, a neighbour's bursts, two states.
    pub switching: Vec<Switching>,
}

/// A first-order autoregressive process in the machine's time (Ornstein and Uhlenbeck): two inferences that begin t apart
/// have factors whose logarithms have the correlation `e^(-t / correlation_time)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Correlated {
    /// The standard deviation of the factor's logarithm.
    pub sigma: f64,
    /// After this time the correlation has fallen to 1/e.
    pub correlation_time: Nanos,
}

/// A loaded segment takes `1 + (slowdown - 1) · e^(-t / decay)` times as long t after it was loaded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cold {
    /// How many times as long it takes right after it was loaded.
    pub slowdown: f64,
    /// After this time 1/e of what is more than the warm time is left.
    pub decay: Nanos,
}

/// One loading of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Loading {
    /// Loadings before it since the device was switched on.
    pub(super) number: u64,
    /// Visits before its own.
    pub(super) visit: u64,
    /// When it was loaded, by the device's clock.
    pub(super) at: Nanos,
}

/// Where a machine's noise is. Its random numbers come from the name of the first inference, so that another seed of a run
/// is another night; an agent that starts again begins another one, as it loads everything anew.
#[derive(Debug)]
pub(super) struct MachineNoiseState {
    night: [u8; 32],
    random: ChaCha8Rng,
    /// The logarithm of the correlated factor in units of its sigma, and when it had this value.
    correlated: (f64, Nanos),
    switching: Vec<SwitchingState>,
}

impl MachineNoiseState {
    /// The noise as it is when the first inference begins.
    pub(super) fn begin(noise: &MachineNoise, seed: u64, now: Nanos) -> Self {
        let mut hash = Sha256::new();
        hash.update(b"layerlab machine noise 1\0");
        hash.update(seed.to_le_bytes());
        let night: [u8; 32] = hash.finalize().into();
        let mut random = ChaCha8Rng::from_seed(night);
        MachineNoiseState {
            correlated: (random.sample(StandardNormal), now),
            switching: (0..)
                .zip(&noise.switching)
                .map(|(place, switching)| {
                    // A generator of its own each, so that one process leaves the others' draws alone.
                    let random = stream(night, Draws::Switching, place);
                    SwitchingState::begin(switching, random, now)
                })
                .collect(),
            night,
            random,
        }
    }

    /// The factor of an inference of this loading that begins now. Times never go back.
    pub(super) fn factor(&mut self, noise: &MachineNoise, loading: Loading, now: Nanos) -> f64 {
        let hours = now.as_nanos() as f64 / NS_PER_HOUR;
        let mut logarithm = noise.visit_sigma * self.normal(Draws::Visit, loading.visit)
            + noise.loading_sigma * self.normal(Draws::Loading, loading.number);
        if let Some(correlated) = &noise.correlated {
            logarithm += correlated.sigma * self.correlated_until(correlated, now);
        }
        let mut factor = logarithm.exp() * (1.0 + noise.drift_per_hour * hours);
        if let Some(cold) = &noise.cold {
            factor *=
                1.0 + (cold.slowdown - 1.0) * (-ratio(since(loading.at, now), cold.decay)).exp();
        }
        for (switching, state) in noise.switching.iter().zip(&mut self.switching) {
            factor *= state.slowdown_at(switching, now);
        }
        factor
    }

    fn correlated_until(&mut self, correlated: &Correlated, now: Nanos) -> f64 {
        let (value, at) = self.correlated;
        let correlation = (-ratio(since(at, now), correlated.correlation_time)).exp();
        let fresh: f64 = self.random.sample(StandardNormal);
        let value = correlation * value + (1.0 - correlation * correlation).sqrt() * fresh;
        self.correlated = (value, now);
        value
    }

    /// The standard normal number with this number of these draws, the same whenever it is asked for.
    fn normal(&self, draws: Draws, number: u64) -> f64 {
        stream(self.night, draws, number).sample(StandardNormal)
    }
}

/// What random numbers are for.
#[derive(Clone, Copy)]
enum Draws {
    Visit = 1,
    Loading = 2,
    Switching = 3,
}

fn stream(night: [u8; 32], draws: Draws, number: u64) -> ChaCha8Rng {
    let mut random = ChaCha8Rng::from_seed(night);
    // Fewer than 2^56 things are loaded in a night.
    random.set_stream((draws as u64) << 56 | number);
    random
}

fn since(earlier: Nanos, now: Nanos) -> Nanos {
    Nanos::from_nanos(now.as_nanos().saturating_sub(earlier.as_nanos()))
}

fn ratio(time: Nanos, scale: Nanos) -> f64 {
    time.as_nanos() as f64 / scale.as_nanos() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Nanos = Nanos::from_millis(1_000);

    fn loading(number: u64, visit: u64) -> Loading {
        Loading {
            number,
            visit,
            at: Nanos::ZERO,
        }
    }

    /// The logarithms of the first factor of 20,000 nights.
    fn nights(noise: &MachineNoise, loading: Loading) -> Vec<f64> {
        let first = |seed| {
            let mut state = MachineNoiseState::begin(noise, seed, Nanos::ZERO);
            state.factor(noise, loading, Nanos::ZERO).ln()
        };
        (0..20_000).map(first).collect()
    }

    fn deviation(values: &[f64]) -> f64 {
        (values.iter().map(|value| value * value).sum::<f64>() / values.len() as f64).sqrt()
    }

    fn correlation(one: &[f64], other: &[f64]) -> f64 {
        let product: f64 = one.iter().zip(other).map(|(x, y)| x * y).sum();
        product / one.len() as f64 / (deviation(one) * deviation(other))
    }

    #[test]
    fn a_visit_has_one_factor_and_each_loading_another() {
        let noise = MachineNoise {
            visit_sigma: 0.03,
            loading_sigma: 0.04,
            ..MachineNoise::default()
        };
        let mut state = MachineNoiseState::begin(&noise, 1, Nanos::ZERO);
        let first = state.factor(&noise, loading(0, 0), Nanos::ZERO);
        assert_eq!(state.factor(&noise, loading(0, 0), SECOND), first);
        assert_ne!(state.factor(&noise, loading(1, 0), SECOND), first);

        let (one, other) = (nights(&noise, loading(0, 0)), nights(&noise, loading(1, 0)));
        assert!((deviation(&one) / 0.05 - 1.0).abs() < 0.03);
        // What two loadings of a visit share is the visit's part of the variance: 9 of 25.
        assert!((correlation(&one, &other) - 0.36).abs() < 0.03);
        let elsewhere = nights(&noise, loading(2, 1));
        assert!(correlation(&one, &elsewhere).abs() < 0.03);
    }

    #[test]
    fn correlated_noise_is_forgotten_as_time_goes_by() {
        let noise = MachineNoise {
            correlated: Some(Correlated {
                sigma: 0.05,
                correlation_time: SECOND,
            }),
            ..MachineNoise::default()
        };
        let mut state = MachineNoiseState::begin(&noise, 1, Nanos::ZERO);
        let step = Nanos::from_millis(500);
        let values: Vec<f64> = (0..50_000)
            .map(|index| {
                let now = Nanos::from_nanos(index * step.as_nanos());
                state.factor(&noise, loading(0, 0), now).ln()
            })
            .collect();
        assert!((deviation(&values) / 0.05 - 1.0).abs() < 0.03);
        for (lag, expected) in [(1, 0.607), (2, 0.368), (10, 0.007)] {
            let found = correlation(&values[..values.len() - lag], &values[lag..]);
            assert!((found - expected).abs() < 0.03, "{lag}: {found}");
        }
    }

    #[test]
    fn a_segment_that_was_just_loaded_is_cold_and_gets_warm() {
        let noise = MachineNoise {
            cold: Some(Cold {
                slowdown: 1.4,
                decay: SECOND,
            }),
            ..MachineNoise::default()
        };
        let mut state = MachineNoiseState::begin(&noise, 1, Nanos::ZERO);
        let mut factor = |at, now| {
            state.factor(
                &noise,
                Loading {
                    at,
                    ..loading(0, 0)
                },
                now,
            )
        };
        assert_eq!(factor(Nanos::ZERO, Nanos::ZERO), 1.4);
        let later = factor(Nanos::ZERO, SECOND);
        assert!((later - (1.0 + 0.4 / std::f64::consts::E)).abs() < 1e-12);
        let minute = Nanos::from_millis(60_000);
        assert!((factor(Nanos::ZERO, minute) - 1.0).abs() < 1e-12);
        assert_eq!(factor(minute, minute), 1.4, "loaded again, cold again");
    }

    #[test]
    fn drift_grows_with_the_hours() {
        let noise = MachineNoise {
            drift_per_hour: 0.1,
            ..MachineNoise::default()
        };
        let mut state = MachineNoiseState::begin(&noise, 1, Nanos::ZERO);
        for (hours, factor) in [(0, 1.0), (1, 1.1), (5, 1.5)] {
            let now = Nanos::from_millis(hours * 3_600_000);
            let found = state.factor(&noise, loading(0, 0), now);
            assert!((found - factor).abs() < 1e-12, "{found}");
        }
    }

    #[test]
    fn without_noise_the_factor_is_one_exactly() {
        let noise = MachineNoise::default();
        let mut state = MachineNoiseState::begin(&noise, 1, Nanos::ZERO);
        assert_eq!(state.factor(&noise, loading(7, 3), SECOND), 1.0);
    }
}
