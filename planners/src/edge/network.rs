//! A network as both sides of a link see it: what its groups of layers cost, and which tensors lie between them.

use std::collections::BTreeSet;

use layerlab_profiles::{Bytes, Nanos, Segment};

use super::energy::Energy;
use super::error::SplitError;
use super::packing::{Packed, Packing};
use super::transfer::TensorTransfer;

/// The most layers of a network; training the paper's ResNet has 140. With the most tensors, sums of the largest costs
/// stay within 63 bits.
const MOST_LAYERS: usize = 1024;
/// The most tensors of a network.
const MOST_TENSORS: usize = 4096;

/// What a group costs on the phone: Tmobile and Emobile (jointdnn Eq. 2, 8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhoneCost {
    /// How long it runs.
    pub time: Nanos,
    /// What the phone spends meanwhile.
    pub energy: Energy,
}

/// Layers run as one unit, which is not the sum of its layers (jointdnn §2.2, Figure 3), and what that costs on each
/// side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// Layers i..=j, numbered from 1.
    pub segment: Segment,
    /// On the phone; nothing where it cannot run them as one unit, or nobody measured it.
    pub phone: Option<PhoneCost>,
    /// Tcloud on the server (jointdnn Eq. 2); nothing where it cannot run them as one unit, or nobody measured it.
    pub server: Option<Nanos>,
}

/// What one layer hands to others. It crosses the link at most once, however many layers on the other side use it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tensor {
    /// The layer that makes it; 0 is the network's input, which is on the phone.
    pub producer: u32,
    /// The layers that use it, all after the producer.
    pub consumers: Vec<u32>,
    /// Its size on the link.
    pub bytes: Bytes,
    /// Whether the phone wants it in the end.
    pub is_result: bool,
}

impl Tensor {
    /// Whether something needs it after layer `last` has run.
    pub fn is_needed_after(&self, last: u32) -> bool {
        self.is_result || self.consumers.iter().any(|&consumer| consumer > last)
    }
}

/// A network of layers 1..=N in topological order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SplitNetwork {
    layers: u32,
    groups: Vec<Group>,
    tensors: Vec<Tensor>,
    returned_weights: Vec<Bytes>,
    packings: Vec<Vec<Packing>>,
}

impl SplitNetwork {
    /// A network whose layers keep their weights, as in inference. A group that is not given cannot be used.
    ///
    /// # Errors
    /// No layers or too many; groups beyond the layers or given twice; tensors that are used before they are there.
    pub fn new(
        layers: u32,
        groups: Vec<Group>,
        tensors: Vec<Tensor>,
    ) -> Result<SplitNetwork, SplitError> {
        if layers == 0 {
            return Err(SplitError::NoLayers);
        }
        refuse_more("layers", layers as usize, MOST_LAYERS)?;
        refuse_more("tensors", tensors.len(), MOST_TENSORS)?;
        let mut given = BTreeSet::new();
        for &Group { segment, .. } in &groups {
            if segment.last() > layers {
                return Err(SplitError::GroupBeyond { segment, layers });
            }
            if !given.insert(segment) {
                return Err(SplitError::GroupTwice { segment });
            }
        }
        for (tensor, one) in tensors.iter().enumerate() {
            let producer = one.producer;
            if producer > layers {
                return Err(SplitError::Producer {
                    tensor,
                    producer,
                    layers,
                });
            }
            let mut consumers = one.consumers.iter();
            if let Some(&consumer) = consumers.find(|&&to| to <= producer || to > layers) {
                return Err(SplitError::Consumer {
                    tensor,
                    producer,
                    consumer,
                    layers,
                });
            }
        }
        Ok(SplitNetwork {
            layers,
            groups,
            packings: vec![Vec::new(); tensors.len()],
            tensors,
            returned_weights: vec![Bytes::ZERO; layers as usize],
        })
    }

    /// The same network where the phone must download so much of each layer's weights, layer 1 first, if the layer runs
    /// on the server; 0 bytes where there is nothing to download.
    ///
    /// # Errors
    /// Another number of sizes than of layers.
    pub fn with_returned_weights(self, weights: Vec<Bytes>) -> Result<SplitNetwork, SplitError> {
        if weights.len() != self.layers as usize {
            return Err(SplitError::Weights {
                given: weights.len(),
                layers: self.layers,
            });
        }
        Ok(SplitNetwork {
            returned_weights: weights,
            ..self
        })
    }

    /// The same network where each tensor may cross in other forms than as it is: those of each, in the order of the tensors.
    ///
    /// # Errors
    /// Another number of lists than of tensors.
    pub fn with_packings(self, packings: Vec<Vec<Packing>>) -> Result<SplitNetwork, SplitError> {
        if packings.len() != self.tensors.len() {
            return Err(SplitError::Packings {
                given: packings.len(),
                tensors: self.tensors.len(),
            });
        }
        Ok(SplitNetwork { packings, ..self })
    }

    /// N.
    pub fn layers(&self) -> u32 {
        self.layers
    }

    /// The groups that can run as one unit somewhere.
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// The tensors between layers, the input and the results.
    pub fn tensors(&self) -> &[Tensor] {
        &self.tensors
    }

    /// The forms in which each of them may cross beside that which it has.
    pub fn packings(&self) -> &[Vec<Packing>] {
        &self.packings
    }

    /// What becomes of the tensor of a transfer; nothing where it crosses as it is, or cannot be packed so.
    pub fn packed(&self, transfer: &TensorTransfer) -> Option<Packed> {
        let codec = transfer.codec?;
        let mut packings = self.packings.get(transfer.tensor)?.iter();
        let packing = packings.find(|packing| packing.codec == codec)?;
        Some(packing.one_way(transfer.direction))
    }

    /// The bytes of a transfer.
    pub fn bytes_of(&self, transfer: &TensorTransfer) -> Bytes {
        match self.packed(transfer) {
            Some(packed) => packed.bytes,
            None => self.tensors[transfer.tensor].bytes,
        }
    }

    /// What the phone downloads for each layer that runs on the server, layer 1 first.
    pub fn returned_weights(&self) -> &[Bytes] {
        &self.returned_weights
    }
}

/// The tensors of a chain of layers (jointdnn Figure 4): the network's input first, then each layer's output, which the
/// next layer uses. The last one is the result if the phone wants it.
pub fn chain_tensors(sizes: &[Bytes], is_result_wanted: bool) -> Vec<Tensor> {
    let last = sizes.len().saturating_sub(1);
    let tensors = sizes.iter().zip(0_u32..).enumerate();
    tensors
        .map(|(place, (&bytes, producer))| Tensor {
            producer,
            consumers: (place < last).then_some(producer + 1).into_iter().collect(),
            bytes,
            is_result: place == last && is_result_wanted,
        })
        .collect()
}

fn refuse_more(what: &'static str, given: usize, most: usize) -> Result<(), SplitError> {
    match given > most {
        true => Err(SplitError::TooMany { what, given, most }),
        false => Ok(()),
    }
}
