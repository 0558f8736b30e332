//! Energy measured by the real agent, in this process, on a simulated phone whose gauge is read: so that hundreds of runs take a
//! minute. What is derived is compared with what the device file plants, which the agent's measuring code never sees.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use layerlab_agent::device::simulated::{DeviceFile, SimulatedDevice};
use layerlab_agent::files::Files;
use layerlab_agent::machine::{Machine, SharedMachine};
use layerlab_agent::queue::Queue;
use layerlab_agent::runtime::Runtimes;
use layerlab_agent::runtime::simulated::{LayerWork, PlantedTimes, SimulatedRuntime};
use layerlab_agent::work;
use layerlab_model::Network;
use layerlab_profiles::document::ProcessorKind;
use layerlab_profiles::energy::{DerivedEnergy, EnergyWindow, SHORTEST_WINDOW, derive, segments};
use layerlab_profiles::{Nanos, SupportedLayers, sha256};
use layerlab_protocol::{Event, Hygiene, MeterChoice, Order, RunId, TimingSettings, WarmUp, Work};

use super::Planted;

/// How long an order may take here.
const PATIENCE: Duration = Duration::from_secs(120);

/// A phone whose layers take tens of milliseconds, so that half a minute has some hundred inferences, and whose gauge is not
/// a good one: it is late, off, noisy and coarse.
pub const PHONE: &str = r#"
name = "energy (simulated)"
clock = "exact"
[gauge]
idle_watts = 0.8
step_watts = 0.005
period_ms = 1000
delay_ms = 700
offset_watts = 0.05
noise_watts = 0.012
[[processor]]
name = "cpu"
kind = "cpu"
numerics = "f32"
convolution_flop_per_s = 6e7
fully_connected_flop_per_s = 6e7
pooling_flop_per_s = 1e7
other_flop_per_s = 1e7
noise_proportional_sigma = 0.02
power_watts = 3.0
[[processor]]
name = "npu"
kind = "accelerator"
numerics = "f16"
convolution_flop_per_s = 2.5e8
fully_connected_flop_per_s = 2.5e8
pooling_flop_per_s = 2e7
other_flop_per_s = 2e7
fixed_cost_ns = 4_000_000
input_bytes_per_s = 4e6
output_bytes_per_s = 5e6
fusion_gain = 0.05
noise_proportional_sigma = 0.01
power_watts = 0.5
"#;

/// A phone with a network on it.
pub struct MeteredPhone {
    file: DeviceFile,
    network: Network,
    onnx: Vec<u8>,
}

impl MeteredPhone {
    /// The phone of this description with this network.
    ///
    /// # Panics
    /// When either makes no sense: both are part of this repository.
    pub fn new(device: &str, model: &Path) -> MeteredPhone {
        let network = Network::open(model, &Default::default()).expect("a model");
        MeteredPhone {
            file: DeviceFile::parse("energy.toml", device).expect("a device"),
            onnx: network.to_onnx(),
            network,
        }
    }

    /// The windows that an agent on the phone journals in so many visits to each processor.
    ///
    /// # Panics
    /// When an order fails: the phone can do all of them.
    pub fn windows(&self, seed: u64, visits: u32) -> Vec<EnergyWindow> {
        let folder = tempfile::tempdir().expect("a folder");
        let files = Files::open(&folder.path().join("files")).expect("room");
        let model_sha256 = sha256(&self.onnx);
        std::fs::write(folder.path().join("files").join(&model_sha256), &self.onnx).expect("room");
        let queue = Queue::open(&folder.path().join("runs")).expect("room");
        let device = SimulatedDevice::new(self.file.clone());
        let runtime = SimulatedRuntime::on(&device);
        let runtimes = Runtimes::new(vec![Box::new(runtime)]).expect("one runtime");
        let machine = Arc::new(SharedMachine::new(Machine {
            device: Box::new(device),
            runtimes,
        }));
        let run = RunId::new("energy").expect("a name");
        let processors: Vec<_> = (0..visits).flat_map(|_| &self.file.processors).collect();
        let supported = SupportedLayers::all(self.network.layer_count());
        for (number, processor) in (1..).zip(&processors) {
            let order = Order {
                run: run.clone(),
                number,
                model_sha256: model_sha256.clone(),
                quantised_sha256: None,
                processor: processor.name.clone(),
                work: Work::MeasureEnergy {
                    segments: segments(processor.kind().into(), &supported),
                    meter: MeterChoice::Any,
                    window_ns: SHORTEST_WINDOW,
                    timing: TimingSettings {
                        samples_per_segment: 1,
                        gap_ns: Nanos::ZERO,
                        warm_up: WarmUp::default(),
                        hygiene: Hygiene::default(),
                    },
                },
                seed,
            };
            queue.submit(order).expect("a new order");
        }
        let (queue, files) = (Arc::new(queue), files);
        let worker = {
            let queue = Arc::clone(&queue);
            std::thread::spawn(move || work::run(&queue, &files, &machine))
        };
        let (mut windows, mut finished, mut after) = (Vec::new(), 0, 0);
        while finished < processors.len() {
            let entries = queue.entries_after(&run, after, 1_000, PATIENCE);
            assert!(!entries.is_empty(), "the agent does nothing");
            for entry in entries {
                after = entry.sequence;
                let processor = processors.get((entry.order as usize).saturating_sub(1));
                let processor = processor.expect("an order that was submitted");
                windows.extend(entry.event.energy_window(&processor.name, entry.order));
                match entry.event {
                    Event::Finished => finished += 1,
                    Event::Failed { failure } => panic!("{failure:?}"),
                    _ => {}
                }
            }
        }
        queue.stop();
        worker.join().expect("the agent stops");
        windows
    }

    /// What follows from windows for a processor, which takes this: nothing of it is the planted truth.
    ///
    /// # Panics
    /// When nothing follows.
    pub fn derive(&self, kind: ProcessorKind, windows: &[EnergyWindow]) -> DerivedEnergy {
        let name = self.processor(kind);
        let of_it: Vec<&EnergyWindow> =
            windows.iter().filter(|one| one.processor == name).collect();
        let supported = SupportedLayers::all(self.network.layer_count());
        let derived = derive(kind, &supported, &of_it).expect("enough windows");
        derived.expect("windows")
    }

    fn processor(&self, kind: ProcessorKind) -> &str {
        let mut processors = self.file.processors.iter();
        let found = processors.find(|one| ProcessorKind::from(one.kind()) == kind);
        &found.expect("one of each kind").name
    }

    /// The planted power of the processor of a kind, in W, as inferences draw it that take the planted time, and its planted
    /// times. A watt draws a nanojoule in a nanosecond. An inference takes a little longer in the mean than in the median,
    /// where times scatter in proportion.
    ///
    /// # Panics
    /// When there is none of the kind.
    pub fn planted(&self, kind: ProcessorKind) -> (f64, PlantedTimes) {
        let mut processors = self.file.processors.iter();
        let found = processors
            .find(|one| ProcessorKind::from(one.kind()) == kind)
            .expect("one of each kind");
        (
            found.power_watts * (found.noise.proportional_sigma.powi(2) / 2.0).exp(),
            PlantedTimes::new(found, &LayerWork::of(&self.network)),
        )
    }

    /// What each layer of the accelerator really draws to compute, and each cut, in nJ, in the terms in which they can be known.
    ///
    /// # Panics
    /// When there is no accelerator.
    pub fn planted_accelerator(&self) -> Planted {
        let (watts, times) = self.planted(ProcessorKind::Accelerator);
        let Planted { compute, cuts } = Planted::of(&times);
        let drawn = |times: Vec<f64>| times.into_iter().map(|time| time * watts).collect();
        Planted {
            compute: drawn(compute),
            cuts: drawn(cuts),
        }
    }
}
