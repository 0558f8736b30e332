//! The only runtime of a simulated device: real 16-bit or 8-bit numerics, and the times that its file plants.

mod answer;
#[cfg(test)]
mod calibration;
mod numerics;
mod session;
#[cfg(test)]
mod tests;
mod time;

use std::sync::Arc;

use layerlab_model::Network;
use layerlab_profiles::{Bytes, Nanos, Segment};

pub use self::time::{LayerWork, PlantedTimes};

use self::numerics::LayerPlans;
use self::session::SimulatedSession;
use super::{ProcessorOffer, Runtime, RuntimeError, SegmentOnProcessor, Session, Unsupported};
use crate::device::simulated::{SharedDevice, SimulatedDevice, SimulatedProcessor};
use crate::kept::Kept;

/// What the weights of the networks take together that are kept ready beside the last.
const BESIDE_THE_LAST_BYTES: u64 = 16 << 20;

/// What runs networks on a simulated device.
#[derive(Debug)]
pub struct SimulatedRuntime {
    device: SharedDevice,
    /// The networks that processors ran last, ready to run: the sessions of a network on a processor share it.
    plans: Kept<(usize, Arc<LayerPlans>)>,
}

impl SimulatedRuntime {
    /// The runtime on this device.
    pub fn on(device: &SimulatedDevice) -> Self {
        let device = device.share();
        SimulatedRuntime {
            device,
            plans: Kept::new(BESIDE_THE_LAST_BYTES),
        }
    }

    fn plans(&mut self, place: usize, network: &Arc<Network>) -> Arc<LayerPlans> {
        let is_it = |(on, plans): &(usize, Arc<LayerPlans>)| *on == place && plans.are_of(network);
        if let Some((_, plans)) = self.plans.find(is_it) {
            return Arc::clone(plans);
        }
        let arithmetic = self.device.processor(place).arithmetic;
        let plans = Arc::new(LayerPlans::new(Arc::clone(network), arithmetic));
        self.plans
            .keep(parameters(network), (place, Arc::clone(&plans)));
        plans
    }
}

impl Runtime for SimulatedRuntime {
    fn name(&self) -> &str {
        "simulated"
    }

    fn version(&self) -> &str {
        env!("CARGO_PKG_VERSION")
    }

    fn processors(&self) -> Vec<ProcessorOffer> {
        let offer = |processor: &SimulatedProcessor| ProcessorOffer {
            name: processor.name.clone(),
            kind: processor.kind(),
            numerics: processor.arithmetic.numerics(),
            emulated: false,
            memory: processor.memory.filter(|_| processor.tells_memory),
            threads: None,
            pinned_to_cores: None,
        };
        self.device.file().processors.iter().map(offer).collect()
    }

    fn supports(
        &self,
        place: usize,
        network: &Network,
        segment: Segment,
    ) -> Result<(), Unsupported> {
        let lacking = &self.device.processor(place).unsupported_operators;
        for layer in segment.first()..=segment.last() {
            let operators = network.operators(layer).iter();
            let mut lacked = operators.filter(|operator| lacking.contains(&operator.op_type));
            if let Some(operator) = lacked.next() {
                return Err(Unsupported::because(format_args!(
                    "it has no {}, which node `{}` of layer {layer} is",
                    operator.op_type, operator.name
                )));
            }
        }
        Ok(())
    }

    fn fits(
        &mut self,
        place: usize,
        network: &Arc<Network>,
        segment: Segment,
    ) -> Result<(), RuntimeError> {
        let processor = self.device.processor(place);
        if !processor.tells_memory {
            return self.load(place, network, segment).map(drop);
        }
        let needed = Needs::of(processor, &LayerWork::of(network), segment).memory;
        match processor.memory {
            Some(capacity) if needed > capacity => {
                Err(out_of_memory(processor, segment, needed, capacity))
            }
            _ => Ok(()),
        }
    }

    fn load(
        &mut self,
        place: usize,
        network: &Arc<Network>,
        segment: Segment,
    ) -> Result<Box<dyn Session>, RuntimeError> {
        let processor = self.device.processor(place);
        let work = LayerWork::of(network);
        let Needs { weights, memory } = Needs::of(processor, &work, segment);
        let moving = processor
            .load_bytes_per_s
            .map_or(0.0, |rate| weights.as_bytes() as f64 / rate);
        let time = processor.load_fixed + Nanos::from_nanos((moving * 1e9).round() as u64);
        let loaded = self.device.load(place, memory, time);
        let (loading, load_time) =
            loaded.map_err(|free| out_of_memory(processor, segment, memory, free))?;
        Ok(Box::new(SimulatedSession {
            planted: PlantedTimes::new(processor, &work).segment(segment),
            subject: SegmentOnProcessor {
                processor: processor.name.clone(),
                segment,
            },
            device: self.device.clone(),
            place,
            memory,
            loading,
            load_time,
            plans: self.plans(place, network),
            last: None,
        }))
    }
}

/// What the weights of a network take.
fn parameters(network: &Network) -> u64 {
    let layers = LayerWork::of(network);
    let parameters: Bytes = layers.iter().map(|layer| layer.parameters).sum();
    parameters.as_bytes()
}

/// What a segment needs of a processor's memory.
struct Needs {
    weights: Bytes,
    /// All that it needs, the weights included.
    memory: Bytes,
}

impl Needs {
    fn of(processor: &SimulatedProcessor, work: &[LayerWork], segment: Segment) -> Needs {
        let layers = &work[segment.first() as usize - 1..segment.last() as usize];
        let stored = |bytes| processor.arithmetic.stored(bytes);
        let weights = stored(layers.iter().map(|layer| layer.parameters).sum());
        Needs {
            weights,
            memory: weights + stored(largest_tensors(layers)),
        }
    }
}

fn out_of_memory(
    processor: &SimulatedProcessor,
    segment: Segment,
    needed: Bytes,
    free: Bytes,
) -> RuntimeError {
    RuntimeError::OutOfMemory {
        processor: processor.name.clone(),
        segment,
        needed,
        free: Some(free).filter(|_| processor.tells_memory),
        capacity: processor.memory.filter(|_| processor.tells_memory),
    }
}

/// The most that one of these layers takes or gives: a processor keeps at least that much beside the weights.
fn largest_tensors(layers: &[LayerWork]) -> Bytes {
    layers
        .iter()
        .flat_map(|layer| {
            [
                layer.input + layer.model_input,
                layer.output + layer.model_output,
            ]
        })
        .max()
        .unwrap_or(Bytes::ZERO)
}
