//! A network between the simulated phone and this machine, as the planner takes it.

use std::collections::BTreeMap;
use std::path::Path;

use layerlab_model::Network;
use layerlab_planners::edge::{
    BackwardPass, Energy, Group, MeasuredNetwork, PhoneCost, SplitNetwork, Tensor,
    mirrored_segment, training_network,
};
use layerlab_profiles::document::Profile;
use layerlab_profiles::{Bytes, Layer, Nanos};

use crate::networks::PaperNetwork;

/// A network at one batch, measured on both sides.
pub(crate) struct Case {
    pub(crate) network: &'static PaperNetwork,
    pub(crate) batch: u32,
    pub(crate) layers: Vec<Layer>,
    /// Inference, with tensors of 8 bits as the paper has them (§4.2).
    pub(crate) inference: SplitNetwork,
}

impl Case {
    pub(crate) fn new(
        network: &'static PaperNetwork,
        batch: u32,
        model: &Path,
        phone: &Profile,
        server: &Profile,
    ) -> Result<Case, String> {
        let processors = phone.header.processors.iter();
        let all: Vec<String> = processors.map(|it| it.name.clone()).collect();
        let measured = MeasuredNetwork::new(phone, server, [&all, &[]]);
        let measured = measured.and_then(|it| it.with_phone_energy(phone));
        let measured = measured.map_err(|error| error.to_string())?;
        let graph = Network::open(model, &BTreeMap::new()).map_err(|error| error.to_string())?;
        let (layers, groups) = (measured.network().layers(), measured.network().groups());
        let inference = SplitNetwork::new(layers, groups.to_vec(), tensors(&graph));
        Ok(Case {
            network,
            batch,
            layers: phone.layers.clone(),
            inference: inference.map_err(|error| error.to_string())?,
        })
    }

    /// The name, with its batch where that is not 1.
    pub(crate) fn name(&self) -> String {
        match self.batch {
            1 => self.network.name.to_owned(),
            batch => format!("{}, batch {batch}", self.network.name),
        }
    }

    /// Bytes across each cut, of 8 bits: the input first.
    pub(crate) fn cuts(&self) -> Vec<u64> {
        let input = self.layers.first().map(|layer| layer.input_bytes);
        let outputs = self.layers.iter().map(|layer| layer.output_bytes);
        let all = input.into_iter().chain(outputs);
        all.map(|bytes| of_8_bits(bytes).as_bytes()).collect()
    }

    /// One step of online training, after which the phone gets so much of the weights that the server updated, as a
    /// fraction (§2.3, §4).
    pub(crate) fn training(&self, inference: &SplitNetwork, updated: f64) -> SplitNetwork {
        let layers = inference.layers();
        let single = |layer: u32| {
            let mut groups = inference.groups().iter();
            let alone = |it: &&Group| it.segment.first() == layer && it.segment.last() == layer;
            *groups.find(alone).expect("each layer alone")
        };
        let backward: Vec<Group> = (1..=layers)
            .map(|layer| times(single(layer), self.backward_factor(layer)))
            .collect();
        let groups = inference.groups().iter().map(|group| {
            let of = &backward[group.segment.first() as usize - 1..group.segment.last() as usize];
            let phone = of.iter().map(|it| it.phone);
            let phone: Option<Vec<PhoneCost>> = phone.collect();
            let server: Option<Vec<Nanos>> = of.iter().map(|it| it.server).collect();
            Group {
                segment: mirrored_segment(group.segment, layers).expect("a forward group"),
                phone: phone.map(|all| PhoneCost {
                    time: all.iter().map(|it| it.time).sum(),
                    energy: all.iter().fold(Energy::ZERO, |sum, it| sum + it.energy),
                }),
                server: server.map(|all| all.into_iter().sum()),
            }
        });
        let weights = self.layers.iter().map(|layer| {
            let bytes = of_8_bits(layer.parameter_bytes).as_bytes() as f64 * updated;
            Bytes::from_bytes(bytes.round() as u64)
        });
        let pass = BackwardPass {
            groups: groups.collect(),
            updated_weights: weights.collect(),
            is_result_wanted: false,
        };
        training_network(inference, pass).expect("a network mirrored")
    }

    /// How many times as long a layer's gradients take as the layer: one product for those of its input and one for those of its
    /// weights, where it has weights; nobody needs those of the network's input.
    fn backward_factor(&self, layer: u32) -> u64 {
        let has_weights = self.layers[layer as usize - 1].parameter_bytes > Bytes::ZERO;
        match layer > 1 && has_weights {
            true => 2,
            false => 1,
        }
    }
}

/// The same network beside a phone that takes so many times as long as the server, whatever it does, and draws nothing.
pub(crate) fn beside_slower(network: &SplitNetwork, times: f64) -> SplitNetwork {
    let phone = |server: Nanos| PhoneCost {
        time: Nanos::from_nanos((server.as_nanos() as f64 * times).round() as u64),
        energy: Energy::ZERO,
    };
    let groups = network.groups().iter().map(|group| Group {
        phone: group.server.map(phone),
        ..*group
    });
    let groups = groups.collect();
    SplitNetwork::new(network.layers(), groups, network.tensors().to_vec()).expect("a network")
}

/// The same network whose tensors are so many times as large.
pub(crate) fn larger(network: &SplitNetwork, factor: u64) -> SplitNetwork {
    let tensors = network.tensors().iter().map(|tensor| Tensor {
        bytes: Bytes::from_bytes(tensor.bytes.as_bytes() * factor),
        ..tensor.clone()
    });
    let groups = network.groups().to_vec();
    SplitNetwork::new(network.layers(), groups, tensors.collect()).expect("a network")
}

fn times(group: Group, factor: u64) -> Group {
    Group {
        phone: group.phone.map(|cost| PhoneCost {
            time: Nanos::from_nanos(cost.time.as_nanos() * factor),
            energy: Energy::from_nanojoules(cost.energy.as_nanojoules() * factor),
        }),
        server: group
            .server
            .map(|time| Nanos::from_nanos(time.as_nanos() * factor)),
        ..group
    }
}

/// A tensor of 32-bit floats at 8 bits.
fn of_8_bits(bytes: Bytes) -> Bytes {
    Bytes::from_bytes(bytes.as_bytes() / 4)
}

/// The tensors between layers: who makes each, and who uses it.
fn tensors(network: &Network) -> Vec<Tensor> {
    let last = network.layer_count();
    let mut found: BTreeMap<String, Tensor> = BTreeMap::new();
    for cut in 0..=last {
        for spec in network.alive(cut) {
            let tensor = found.entry(spec.name.clone()).or_insert_with(|| Tensor {
                producer: cut,
                consumers: network.readers(&spec.name),
                bytes: of_8_bits(spec.bytes()),
                is_result: false,
            });
            // Those that make it read it, too, where it stays within the layer.
            let producer = tensor.producer;
            tensor.consumers.retain(|&layer| layer > producer);
            tensor.is_result |= cut == last;
        }
    }
    found.into_values().collect()
}
