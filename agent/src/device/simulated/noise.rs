//! How simulated times scatter. Noise is a function of the inference's name, not of what ran before it:
//! a measurement that goes on after the agent was killed gives the samples of one that was not.

use layerlab_profiles::{Nanos, Segment};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::StandardNormal;
use sha2::{Digest, Sha256};

use crate::device::invocation::Invocation;

/// A time becomes `time · e^(proportional σ · z) · spike + absolute σ · z'`, z and z' standard normal.
///
/// The median stays the time itself.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Noise {
    /// The standard deviation of the logarithm of a time.
    pub proportional_sigma: f64,
    /// The standard deviation of what is added to a time, in nanoseconds.
    pub absolute_sigma_ns: f64,
    /// How probable it is that an inference is disturbed.
    pub spike_probability: f64,
    /// How many times as long a disturbed inference takes.
    pub spike_factor: f64,
}

impl Noise {
    /// What a run of `segment` that should take `time` does take. Never less than half of it, whatever
    /// the absolute part.
    pub fn scatter(
        &self,
        time: Nanos,
        processor: &str,
        segment: Segment,
        invocation: Invocation,
    ) -> Nanos {
        let mut random = stream(processor, segment, invocation);
        // All are drawn whatever the settings, so that changing one leaves the others' draws alone.
        let proportional: f64 = random.sample(StandardNormal);
        let absolute: f64 = random.sample(StandardNormal);
        let chance: f64 = random.random();
        if self.is_silent() {
            return time;
        }
        let nanos = time.as_nanos() as f64;
        let spike = if chance < self.spike_probability {
            self.spike_factor
        } else {
            1.0
        };
        let noisy = nanos * (self.proportional_sigma * proportional).exp() * spike
            + self.absolute_sigma_ns * absolute;
        Nanos::from_nanos(noisy.max(nanos / 2.0).round() as u64)
    }

    /// Whether times come out exactly as they went in.
    fn is_silent(&self) -> bool {
        self.proportional_sigma == 0.0
            && self.absolute_sigma_ns == 0.0
            && (self.spike_probability == 0.0 || self.spike_factor == 1.0)
    }
}

/// The random numbers of one inference.
fn stream(processor: &str, segment: Segment, invocation: Invocation) -> ChaCha8Rng {
    let mut hash = Sha256::new();
    hash.update(b"layerlab noise 1\0");
    hash.update(invocation.bytes());
    hash.update(segment.first().to_le_bytes());
    hash.update(segment.last().to_le_bytes());
    hash.update(processor.as_bytes());
    ChaCha8Rng::from_seed(hash.finalize().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOISE: Noise = Noise {
        proportional_sigma: 0.02,
        absolute_sigma_ns: 1e4,
        spike_probability: 0.0,
        spike_factor: 1.0,
    };
    const TIME: Nanos = Nanos::from_millis(10);
    const SEGMENT: Segment = Segment::single(3);

    fn times(noise: Noise, count: u64) -> Vec<u64> {
        let time = |index| noise.scatter(TIME, "npu", SEGMENT, Invocation::sample(1, index));
        (0..count).map(|index| time(index).as_nanos()).collect()
    }

    #[test]
    fn the_same_inference_has_the_same_noise_whatever_ran_before() {
        let forwards = times(NOISE, 20);
        let mut backwards: Vec<u64> = (0..20)
            .rev()
            .map(|index| {
                NOISE
                    .scatter(TIME, "npu", SEGMENT, Invocation::sample(1, index))
                    .as_nanos()
            })
            .collect();
        backwards.reverse();
        assert_eq!(forwards, backwards);
    }

    #[test]
    fn every_part_of_the_name_changes_the_noise() {
        let sample = Invocation::sample(1, 2);
        let mut times: Vec<Nanos> = [
            ("npu", SEGMENT, sample),
            ("cpu", SEGMENT, sample),
            ("npu", Segment::single(4), sample),
            ("npu", SEGMENT, Invocation::sample(2, 2)),
            ("npu", SEGMENT, Invocation::sample(1, 3)),
            ("npu", SEGMENT, sample.step(1)),
            ("npu", SEGMENT, Invocation::warm_up(1, 0, 2)),
            ("npu", SEGMENT, Invocation::warm_up(1, 1, 2)),
            ("npu", SEGMENT, Invocation::warm_up_in_turn(1, 1, 2)),
        ]
        .into_iter()
        .map(|(processor, segment, invocation)| NOISE.scatter(TIME, processor, segment, invocation))
        .collect();
        let named = times.len();
        times.sort();
        times.dedup();
        assert_eq!(times.len(), named);
    }

    #[test]
    fn the_median_is_the_time_and_the_spread_is_sigma() {
        let mut times = times(NOISE, 10_001);
        times.sort_unstable();
        let (median, sigma) = (
            times[5_000] as f64,
            (times[8_413] - times[1_587]) as f64 / 2.0,
        );
        assert!((median / 1e7 - 1.0).abs() < 0.001, "{median}");
        assert!((sigma / 2e5 - 1.0).abs() < 0.05, "{sigma}");
    }

    #[test]
    fn spikes_come_as_often_as_they_should() {
        let spiky = Noise {
            spike_probability: 0.1,
            spike_factor: 3.0,
            ..Noise::default()
        };
        let times = times(spiky, 10_000);
        let spikes = times
            .iter()
            .filter(|&&time| time == 3 * TIME.as_nanos())
            .count();
        assert!((900..1_100).contains(&spikes), "{spikes}");
        assert_eq!(
            times
                .iter()
                .filter(|&&time| time == TIME.as_nanos())
                .count(),
            10_000 - spikes
        );
    }

    #[test]
    fn without_noise_times_stay_to_the_nanosecond() {
        let silent = Noise {
            spike_factor: 1.0,
            ..Noise::default()
        };
        assert!(
            times(silent, 100)
                .iter()
                .all(|&time| time == TIME.as_nanos())
        );
    }

    #[test]
    fn an_absolute_part_larger_than_the_time_does_not_make_it_negative() {
        let rough = Noise {
            absolute_sigma_ns: 1e9,
            ..NOISE
        };
        assert!(
            times(rough, 1_000)
                .iter()
                .all(|&time| time >= TIME.as_nanos() / 2)
        );
    }
}
