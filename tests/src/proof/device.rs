//! One processor of a simulated device with one network, and samples of it.

use std::collections::BTreeMap;

use layerlab_agent::device::Invocation;
use layerlab_agent::device::simulated::{DeviceFile, Noise};
use layerlab_agent::runtime::simulated::{LayerWork, PlantedTimes};
use layerlab_profiles::derive::graph::{Visit, VisitSamples};
use layerlab_profiles::design::agenda::segments_per_block;
use layerlab_profiles::{Nanos, Segment};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use crate::file;

/// The samples of each segment.
pub type Measured = BTreeMap<Segment, Vec<Nanos>>;

/// In how many visits a design that is known from the start is measured (docs/method.md §4).
const VISITS: usize = 5;

/// A processor whose times are planted and whose noise is chosen.
#[derive(Clone, Debug)]
pub struct SimulatedProcessor {
    /// The name in the device's file.
    pub name: String,
    /// What it really takes.
    pub times: PlantedTimes,
    /// How its times scatter.
    pub noise: Noise,
}

impl SimulatedProcessor {
    /// The processor `name` of `tests/devices/<device>.toml` with layers of this work, and the noise of
    /// the file.
    ///
    /// # Panics
    /// When there is no such file or processor: both are part of this repository.
    pub fn open(device: &str, name: &str, work: &[LayerWork]) -> Self {
        let path = file(&format!("devices/{device}.toml"));
        let device = DeviceFile::open(&path).expect("a device file of this repository");
        let processor = device.processors.iter().find(|p| p.name == name);
        let processor = processor.expect("the processor is in the file");
        SimulatedProcessor {
            name: name.to_owned(),
            times: PlantedTimes::new(processor, work),
            noise: processor.noise,
        }
    }

    /// How many layers the network has.
    pub fn layers(&self) -> u32 {
        self.times.compute().len() as u32
    }

    /// Sample number `index` of `segment` in the run of this seed: the same whatever else is measured.
    pub fn sample(&self, segment: Segment, seed: u64, index: u64) -> Nanos {
        let time = self.times.segment(segment);
        let invocation = Invocation::sample(seed, index);
        self.noise.scatter(time, &self.name, segment, invocation)
    }

    /// Adds `count` samples of each of `segments` to `measured`, and returns the time that they took.
    pub fn measure(
        &self,
        measured: &mut Measured,
        segments: impl IntoIterator<Item = Segment>,
        count: u64,
        seed: u64,
    ) -> Nanos {
        let mut spent = Nanos::ZERO;
        for segment in segments {
            let samples = measured.entry(segment).or_default();
            for _ in 0..count {
                let sample = self.sample(segment, seed, samples.len() as u64);
                spent = spent + sample;
                samples.push(sample);
            }
        }
        spent
    }

    /// The sentinel's times at the two ends of a visit: medians of three runs of the whole network.
    fn sentinel(&self, seed: u64, visit: Visit) -> [Nanos; 2] {
        let whole = Segment::whole(self.layers());
        let time = self.times.segment(whole);
        [0, 3].map(|first| {
            let mut runs = [0, 1, 2].map(|run| {
                let invocation = Invocation::sentinel(seed, visit.order, first + run);
                self.noise.scatter(time, &self.name, whole, invocation)
            });
            runs.sort_unstable();
            runs[1]
        })
    }

    /// Adds a visit with so many samples of each segment, and returns the time that these took.
    pub fn visit(
        &self,
        samples: &mut VisitSamples,
        counts: impl IntoIterator<Item = (Segment, u64)>,
        seed: u64,
    ) -> Nanos {
        let visit = Visit {
            order: samples.sentinels.len() as u32,
            block: 0,
        };
        let mut spent = Nanos::ZERO;
        for (segment, count) in counts {
            let before = samples.segments.get(&segment);
            let before = before.map_or(0, |visits| visits.values().map(Vec::len).sum());
            for index in before as u64..before as u64 + count {
                let sample = self.sample(segment, seed, index);
                spent = spent + sample;
                samples.push(segment, visit, sample);
            }
        }
        samples.sentinels.insert(visit, self.sentinel(seed, visit));
        spent
    }

    /// These samples by the visits in which a design that is known from the start takes them: each segment's in five, in each
    /// beside others. The noise of the device is the same in all of them.
    pub fn in_visits(&self, measured: &Measured, seed: u64) -> VisitSamples {
        let mut samples = VisitSamples::default();
        let mut segments: Vec<Segment> = measured.keys().copied().collect();
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        for round in 0..VISITS {
            segments.shuffle(&mut random);
            for block in segments.chunks(segments_per_block(self.layers())) {
                let visit = Visit {
                    order: samples.sentinels.len() as u32,
                    block: 0,
                };
                for &segment in block {
                    let all = &measured[&segment];
                    let part = round * all.len() / VISITS..(round + 1) * all.len() / VISITS;
                    for &sample in &all[part] {
                        samples.push(segment, visit, sample);
                    }
                }
                samples.sentinels.insert(visit, self.sentinel(seed, visit));
            }
        }
        samples
    }
}
