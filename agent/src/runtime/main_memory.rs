//! What lies in main memory between the segments of a network that run one after the other. A segment takes some of it and
//! gives more; the network's own inputs and outputs stay there.

use std::borrow::Cow;

use layerlab_model::{Network, TensorSpec};
use layerlab_profiles::Segment;

use super::Tensor;

/// Tensors by their names in the network.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct MainMemory<T = Tensor> {
    names: Vec<String>,
    tensors: Vec<T>,
}

impl<T: Clone> MainMemory<T> {
    /// These tensors, each of the spec in its place.
    pub(crate) fn of(specs: &[TensorSpec], tensors: Vec<T>) -> MainMemory<T> {
        MainMemory {
            names: specs.iter().map(|spec| spec.name.clone()).collect(),
            tensors,
        }
    }

    /// Those of these specs that are there, in their order.
    pub(crate) fn taken(&self, specs: &[TensorSpec]) -> Cow<'_, [T]> {
        let wanted = specs.iter().map(|spec| &spec.name);
        if wanted.clone().eq(&self.names) {
            return Cow::Borrowed(&self.tensors);
        }
        let found = wanted.filter_map(|name| self.tensor(name));
        Cow::Owned(found.cloned().collect())
    }

    /// What is there once `segment` gave `given`, as far as anything still needs it.
    pub(crate) fn after(
        &self,
        network: &Network,
        segment: Segment,
        given: Vec<T>,
    ) -> MainMemory<T> {
        let mut given = MainMemory::of(&network.gives(segment), given);
        let alive = network.alive(segment.last());
        if alive.iter().map(|spec| &spec.name).eq(&given.names) {
            return given;
        }
        let mut after = MainMemory {
            names: Vec::with_capacity(alive.len()),
            tensors: Vec::with_capacity(alive.len()),
        };
        for TensorSpec { name, .. } in alive {
            let tensor = given.remove(name).or_else(|| self.tensor(name).cloned());
            if let Some(tensor) = tensor {
                after.names.push(name.clone());
                after.tensors.push(tensor);
            }
        }
        after
    }

    /// All of it: behind the last layer the network's outputs, in their order.
    pub(crate) fn tensors(&self) -> &[T] {
        &self.tensors
    }

    /// The tensor of this name, if it is there.
    pub(crate) fn tensor(&self, name: &str) -> Option<&T> {
        let place = self.names.iter().position(|known| known == name);
        self.tensors.get(place?)
    }

    fn remove(&mut self, name: &str) -> Option<T> {
        let place = self.names.iter().position(|known| known == name)?;
        self.names.swap_remove(place);
        Some(self.tensors.swap_remove(place))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;

    use tract_onnx::prelude::{IntoRunnable as _, TValue, Tensor as TractTensor};

    use super::*;
    use crate::runtime::timing_input;

    fn inputs(network: &Network) -> Vec<TValue> {
        let inputs = timing_input(network.inputs(), 1).into_iter();
        let in_tract = |input: Tensor| {
            let mut copy =
                TractTensor::zero_dt(input.element().tract(), input.shape()).expect("a tensor");
            copy.as_bytes_mut().copy_from_slice(input.bytes());
            TValue::from(copy)
        };
        inputs.map(in_tract).collect()
    }

    fn answers(network: &Network, segment: Segment, inputs: &[TValue]) -> Vec<TValue> {
        let cut = network.segment(segment).expect("a segment");
        let model = cut.optimized().expect("tract reads it");
        let model = model.into_runnable().expect("tract runs it");
        let outputs = model.run(inputs.iter().cloned().collect());
        outputs.expect("answers").into_vec()
    }

    fn are_same(one: &[TValue], other: &[TValue]) -> bool {
        let mut pairs = one.iter().zip(other);
        one.len() == other.len() && pairs.all(|(one, other)| one.as_bytes() == other.as_bytes())
    }

    /// Networks with caches, a late input and an early output, cut in two at each place and in three around each layer.
    #[test]
    fn parts_give_the_bits_of_the_whole_wherever_a_network_is_cut() {
        for name in [
            "gpt2-decode",
            "gpt2-prefill",
            "variants/two-inputs",
            "variants/two-outputs",
        ] {
            let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/models");
            let path = models.join(format!("{name}.onnx"));
            let network = Network::open(&path, &BTreeMap::new()).expect("a model");
            let layers = network.layer_count();
            let inputs = inputs(&network);
            let whole = answers(&network, Segment::whole(layers), &inputs);
            let start = MainMemory::of(network.inputs(), inputs);
            for (one, other) in (0..layers).flat_map(|one| [(one, one + 1), (one, layers)]) {
                let mut memory = start.clone();
                for (before, last) in [(0, one), (one, other), (other, layers)] {
                    let Ok(segment) = Segment::new(before + 1, last) else {
                        continue;
                    };
                    let inputs = memory.taken(&network.takes(segment));
                    let given = answers(&network, segment, &inputs);
                    memory = memory.after(&network, segment, given);
                }
                assert!(
                    are_same(memory.tensors(), &whole),
                    "{name}, cuts {one} and {other}"
                );
            }
        }
    }
}
