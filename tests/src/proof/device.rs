//! One processor of a simulated device with one network, and samples of it.

use std::collections::BTreeMap;

use layerlab_agent::device::Invocation;
use layerlab_agent::device::simulated::{DeviceFile, Noise};
use layerlab_agent::runtime::simulated::{LayerWork, PlantedTimes};
use layerlab_profiles::{Nanos, Segment};

use crate::file;

/// The samples of each segment.
pub type Measured = BTreeMap<Segment, Vec<Nanos>>;

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
}
