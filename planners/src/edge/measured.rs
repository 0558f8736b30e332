//! A split of what was measured: two published profiles of one model, one of a phone and one of a server, and a published
//! link between them.

mod energy;
mod error;
mod packed;
mod placed_on;

use std::collections::BTreeMap;

use layerlab_profiles::document::{Header, Numerics, Processor, ProcessorKind, Profile};
use layerlab_profiles::link::{LinkDocument, RequestMethod};
use layerlab_profiles::time_model::ProcessorTimes;
use layerlab_profiles::{Bytes, Layer, Nanos, Placement, Segment};

use super::network::{Group, PhoneCost, SplitNetwork, Tensor, chain_tensors};
use super::placed_group::PlacedGroup;
use super::side::Side;
use super::side_processor::SideProcessor;
use super::transfer::TensorTransfer;
use crate::profile::ProfileError;
use packed::Unsure;

pub use error::MeasuredSplitError;
pub(super) use packed::PackedHalfWidths;
pub use placed_on::PlacedOn;

/// A network with what its groups cost on both sides, as was measured.
#[derive(Clone, Debug)]
pub struct MeasuredNetwork {
    network: SplitNetwork,
    /// The processors that may be used, on the phone and on the server.
    processors: [Vec<SideProcessor>; 2],
    /// What layers draw on each of the phone's, where energy is planned with.
    drawn: Vec<ProcessorTimes>,
    /// Which of them runs a group soonest, on the phone and on the server.
    soonest: BTreeMap<Segment, [Option<usize>; 2]>,
    /// How unsure packings are, where tensors may be packed.
    unsure: Unsure,
}

impl MeasuredNetwork {
    /// The network of two profiles, where each group runs on whichever of the `chosen` processors of its side runs it soonest.
    /// Where none are chosen, these are all CPUs of a side, or all that compute in 32-bit floats if it has none. Times are estimates
    /// without their intervals; a transfer moves all tensors that are alive at a cut. Of the model's own inputs and outputs a
    /// run of the plan moves fewer where a server does not compute the layers of all of them.
    ///
    /// # Errors
    /// Profiles of different models, processors that are not there, tables with holes.
    pub fn new(
        phone: &Profile,
        server: &Profile,
        chosen: [&[String]; 2],
    ) -> Result<MeasuredNetwork, MeasuredSplitError> {
        refuse_unless_same(phone, server)?;
        let mut processors = [Vec::new(), Vec::new()];
        for (side, profile) in Side::ALL.into_iter().zip([phone, server]) {
            for processor in usable(profile, side, chosen[side as usize])? {
                processors[side as usize].push(SideProcessor::of(profile, processor)?);
            }
        }
        MeasuredNetwork::of(
            phone.layers.len(),
            chain_tensors(&alive_sizes(&phone.layers), true),
            processors,
            Vec::new(),
            |_, _, _| true,
        )
    }

    /// The network where each group runs on whichever of the processors of its side that `may_run` it does so soonest.
    fn of(
        layers: usize,
        tensors: Vec<Tensor>,
        processors: [Vec<SideProcessor>; 2],
        drawn: Vec<ProcessorTimes>,
        may_run: impl Fn(Segment, Side, &SideProcessor) -> bool,
    ) -> Result<MeasuredNetwork, MeasuredSplitError> {
        let mut groups = Vec::with_capacity(layers * (layers + 1) / 2);
        let mut soonest = BTreeMap::new();
        // A profile has the number of layers as 32 bits.
        for first in 1..=layers as u32 {
            let on = |side: Side| {
                let may_run = |segment, one: &SideProcessor| may_run(segment, side, one);
                soonest_from(&processors[side as usize], first, layers, may_run)
            };
            let (on_phone, on_server) = (on(Side::Phone), on(Side::Server));
            for (last, (here, there)) in (first..).zip(on_phone.into_iter().zip(on_server)) {
                let Ok(segment) = Segment::new(first, last) else {
                    continue;
                };
                let phone = here.map(|(time, place)| {
                    let energy = energy::of_group(&drawn, &processors[0], segment, place)?;
                    Ok::<_, ProfileError>(PhoneCost { time, energy })
                });
                groups.push(Group {
                    segment,
                    phone: phone.transpose()?,
                    server: there.map(|(time, _)| time),
                });
                let places = [here, there].map(|run| run.map(|(_, place)| place));
                soonest.insert(segment, places);
            }
        }
        Ok(MeasuredNetwork {
            network: SplitNetwork::new(layers as u32, groups, tensors)?,
            processors,
            drawn,
            soonest,
            unsure: Unsure::new(),
        })
    }

    /// The same where groups run only where they may.
    fn where_allowed(
        &self,
        may_run: impl Fn(Segment, Side, &SideProcessor) -> bool,
    ) -> Result<MeasuredNetwork, MeasuredSplitError> {
        let other = MeasuredNetwork::of(
            self.network.layers() as usize,
            self.network.tensors().to_vec(),
            self.processors.clone(),
            self.drawn.clone(),
            may_run,
        )?;
        let packings = self.network.packings().to_vec();
        Ok(MeasuredNetwork {
            network: other.network.with_packings(packings)?,
            unsure: self.unsure.clone(),
            ..other
        })
    }

    /// The networks of groups that run on the phone's processors of each digit of placements, on the server with the digit 0.
    ///
    /// # Errors
    /// Costs that make no network.
    pub fn by_digit(
        &self,
        placed_on: &PlacedOn,
    ) -> Result<BTreeMap<u8, SplitNetwork>, MeasuredSplitError> {
        let network = |&digit: &u8| {
            let has_digit = |_, side, one: &SideProcessor| placed_on.digit(side, one) == digit;
            Ok((digit, self.where_allowed(has_digit)?.network))
        };
        placed_on.digits().iter().map(network).collect()
    }

    /// The network of one placement: only groups of layers that have one digit, on the soonest processors of that digit.
    ///
    /// # Errors
    /// Costs that make no network.
    pub fn of_placement(
        &self,
        placed_on: &PlacedOn,
        placement: &Placement,
    ) -> Result<MeasuredNetwork, MeasuredSplitError> {
        self.where_allowed(|segment, side, one| {
            let layers = segment.first() as usize - 1..segment.last() as usize;
            let digits = placement.processors().get(layers).unwrap_or_default();
            let digit = placed_on.digit(side, one);
            !digits.is_empty() && digits.iter().all(|&here| here == digit)
        })
    }

    /// The network, without what its groups run on.
    pub fn network(&self) -> &SplitNetwork {
        &self.network
    }

    /// The processor of a plan's group, by its name in its side's profile.
    pub fn processor(&self, group: &PlacedGroup) -> Option<&str> {
        let place = self.place(group)?;
        let processor = self.processors[group.side as usize].get(place);
        processor.map(SideProcessor::name)
    }

    /// The processors of a side that may be used.
    pub(super) fn processors(&self, side: Side) -> &[SideProcessor] {
        &self.processors[side as usize]
    }

    /// What the server's profile says of the layers of a link's requests; nothing where it is not of their model, or has not
    /// their processor.
    pub(super) fn server_time_of(&self, requests: &RequestMethod) -> Option<Nanos> {
        let mut processors = self.processors(Side::Server).iter();
        let processor = processors.find(|it| it.is_of(requests))?;
        let beyond_first = requests.last_layer.checked_sub(requests.first_layer)?;
        let times = processor.groups_from(requests.first_layer);
        times.get(beyond_first as usize).copied().flatten()
    }

    /// How unsure a packing is; nothing where the tensor crosses as it is.
    pub(super) fn half_widths(&self, transfer: &TensorTransfer) -> Option<PackedHalfWidths> {
        self.unsure.get(transfer).copied()
    }

    /// Which of them a plan's group runs on.
    pub(super) fn place(&self, group: &PlacedGroup) -> Option<usize> {
        self.soonest.get(&group.segment)?[group.side as usize]
    }
}

/// Refuses a link that is known to be of another phone than the profile.
///
/// # Errors
/// When both say which phone it was, and it was not the same one.
pub fn refuse_other_phone(phone: &Profile, link: &LinkDocument) -> Result<(), MeasuredSplitError> {
    let profiled = &phone.header.provenance.phone;
    let measured = &link.header.provenance.phone;
    match (profiled, measured) {
        (Some(one), Some(other)) if one.serial != other.described.serial => {
            Err(MeasuredSplitError::OtherPhone {
                link: link.header.name.clone(),
                serial: other.described.serial.clone(),
                profiled: one.serial.clone(),
            })
        }
        _ => Ok(()),
    }
}

fn refuse_unless_same(phone: &Profile, server: &Profile) -> Result<(), MeasuredSplitError> {
    let (one, other) = (&phone.header.model, &server.header.model);
    // Older profiles do not say what weights lay beside the model.
    let weights = one
        .external_weights
        .as_ref()
        .zip(other.external_weights.as_ref());
    let are_other_weights = weights.is_some_and(|(one, other)| one != other);
    if one.sha256 != other.sha256 || are_other_weights {
        return Err(MeasuredSplitError::OtherModel {
            phone: one.name.clone(),
            server: other.name.clone(),
        });
    }
    let sizes = |profile: &Profile| -> Vec<[Bytes; 4]> {
        let layers = profile.layers.iter();
        let bytes = |it: &Layer| {
            [
                it.input_bytes,
                it.output_bytes,
                it.model_input_bytes,
                it.model_output_bytes,
            ]
        };
        layers.map(bytes).collect()
    };
    match sizes(phone) == sizes(server) {
        true => Ok(()),
        false => Err(MeasuredSplitError::OtherLayers {
            model: one.name.clone(),
        }),
    }
}

/// The bytes that are alive at each cut, from that before layer 1 to that after the last: what crosses it, the inputs that later
/// layers take beside the cuts, and the outputs that earlier ones gave. An input that several layers take counts once for each.
fn alive_sizes(layers: &[Layer]) -> Vec<Bytes> {
    let cuts = 0..=layers.len();
    let alive = cuts.map(|cut| {
        let (before, after) = layers.split_at(cut);
        let crossing = match (before.last(), after.first()) {
            (Some(last), _) => last.output_bytes,
            (None, first) => first.map_or(Bytes::ZERO, |first| first.input_bytes),
        };
        let given: Bytes = before.iter().map(|layer| layer.model_output_bytes).sum();
        let taken: Bytes = after.iter().map(|layer| layer.model_input_bytes).sum();
        crossing + given + taken
    });
    alive.collect()
}

/// The processors that were chosen, or all CPUs. Of a side without a CPU, all that compute in 32-bit floats, as a CPU does
/// that was measured as an accelerator.
fn usable<'a>(
    profile: &'a Profile,
    side: Side,
    chosen: &[String],
) -> Result<Vec<&'a Processor>, MeasuredSplitError> {
    let all = &profile.header.processors;
    if chosen.is_empty() {
        let cpus = all.iter().filter(|it| it.kind == ProcessorKind::Cpu);
        let exact = all.iter().filter(|it| it.numerics == Numerics::F32);
        let found = [cpus.collect(), exact.collect::<Vec<&Processor>>()];
        let found = found.into_iter().find(|processors| !processors.is_empty());
        return found.ok_or_else(|| MeasuredSplitError::NoProcessor {
            side,
            known: known(&profile.header),
        });
    }
    let named = |name: &String| {
        let found = all.iter().find(|processor| processor.name == *name);
        found.ok_or_else(|| MeasuredSplitError::UnknownProcessor {
            side,
            name: name.clone(),
            known: known(&profile.header),
        })
    };
    chosen.iter().map(named).collect()
}

fn known(header: &Header) -> String {
    let names: Vec<&str> = header
        .processors
        .iter()
        .map(|it| it.name.as_str())
        .collect();
    names.join(", ")
}

/// For each last layer from `first` on: how long the group takes where it is soonest of where it may run, and on which
/// processor; nothing where none can run it.
fn soonest_from(
    processors: &[SideProcessor],
    first: u32,
    layers: usize,
    may_run: impl Fn(Segment, &SideProcessor) -> bool,
) -> Vec<Option<(Nanos, usize)>> {
    let mut soonest = vec![None; layers + 1 - first as usize];
    for (place, processor) in processors.iter().enumerate() {
        let times = (first..).zip(processor.groups_from(first));
        for (best, (last, time)) in soonest.iter_mut().zip(times) {
            let here = Segment::new(first, last).is_ok_and(|segment| may_run(segment, processor));
            let time = time.filter(|_| here).map(|time| (time, place));
            // Of two that take as long, the first.
            *best = [*best, time].into_iter().flatten().min();
        }
    }
    soonest
}
