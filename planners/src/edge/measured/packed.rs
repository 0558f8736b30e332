//! What crosses a cut packed, by what `layerlab tensors measure` found on either side (jointdnn §4.2).

use std::collections::BTreeMap;

use layerlab_profiles::document::Profile;
use layerlab_profiles::tensors::{TensorCodec, TensorRow, TensorsDocument, TimeRow, Timed};
use layerlab_profiles::{Bytes, Nanos};

use super::{MeasuredNetwork, MeasuredSplitError};
use crate::edge::packing::{Packed, Packing};
use crate::edge::side::{Direction, Side};
use crate::edge::transfer::TensorTransfer;

/// How unsure the numbers of all packings are.
pub(in crate::edge) type Unsure = BTreeMap<TensorTransfer, PackedHalfWidths>;

/// Half the widths of the 95 % intervals of what one way of a packing takes; nothing where too few pictures were packed.
#[derive(Clone, Copy, Debug)]
pub(in crate::edge) struct PackedHalfWidths {
    pub(in crate::edge) bytes: Option<f64>,
    /// In ns, what the side computes that sends.
    pub(in crate::edge) pack: Option<f64>,
    /// And the side that gets it.
    pub(in crate::edge) unpack: Option<f64>,
}

impl PackedHalfWidths {
    /// Of what a side computes when the tensor arrives on the side `to`.
    pub(in crate::edge) fn on(&self, side: Side, to: Side) -> Option<f64> {
        match side == to {
            true => self.unpack,
            false => self.pack,
        }
    }
}

impl MeasuredNetwork {
    /// The same network where what crosses a cut may be packed by each of `codecs`, as it was by the phone and by the server whose
    /// `profiles` these are. All tensors of a cut are packed by one codec; a cut has no packing where one of them has none, as what
    /// fully connected layers give has not.
    ///
    /// # Errors
    /// Tensors of another model or another device, that were not timed, of other pictures on either side, or not packed by one of
    /// the codecs.
    pub fn with_packings(
        self,
        profiles: [&Profile; 2],
        tensors: [&TensorsDocument; 2],
        codecs: &[TensorCodec],
    ) -> Result<MeasuredNetwork, MeasuredSplitError> {
        for ((side, profile), tensors) in Side::ALL.into_iter().zip(profiles).zip(tensors) {
            refuse_unless_of(side, profile, tensors)?;
            for &codec in codecs {
                if !tensors.header.codecs.contains(&codec) {
                    let known = tensors.header.codecs.iter().map(|it| it.name());
                    return Err(MeasuredSplitError::NotPackedBy {
                        side,
                        codec,
                        known: known.collect::<Vec<&str>>().join(", "),
                    });
                }
            }
        }
        refuse_other_pictures(tensors)?;
        let mut packings = Vec::with_capacity(self.network.tensors().len());
        let mut unsure = Unsure::new();
        for (place, tensor) in self.network.tensors().iter().enumerate() {
            let mut of_cut = Vec::new();
            for &codec in codecs {
                let on = tensors.map(|it| crossing(it, tensor.producer, codec, tensor.bytes));
                let [Some(phone), Some(server)] = on else {
                    continue;
                };
                of_cut.push(Packing {
                    codec,
                    upload: packed(&phone, &server),
                    download: packed(&server, &phone),
                });
                for (direction, from, to) in [
                    (Direction::Upload, &phone, &server),
                    (Direction::Download, &server, &phone),
                ] {
                    let transfer = TensorTransfer {
                        tensor: place,
                        direction,
                        codec: Some(codec),
                    };
                    unsure.insert(transfer, half_widths(from, to));
                }
            }
            packings.push(of_cut);
        }
        Ok(MeasuredNetwork {
            network: self.network.with_packings(packings)?,
            unsure,
            ..self
        })
    }
}

fn refuse_unless_of(
    side: Side,
    profile: &Profile,
    tensors: &TensorsDocument,
) -> Result<(), MeasuredSplitError> {
    let (model, compressed) = (&profile.header.model, &tensors.header.model);
    let layers = profile.layers.len();
    if model.sha256 != compressed.sha256 || layers != compressed.layers as usize {
        return Err(MeasuredSplitError::TensorsOfOtherModel {
            side,
            compressed: compressed.name.clone(),
            model: model.name.clone(),
        });
    }
    if tensors.header.timed == Timed::No {
        return Err(MeasuredSplitError::TensorsNotTimed { side });
    }
    let (profiled, packing) = (&profile.header, &tensors.header);
    let serials = profiled.provenance.phone.as_ref();
    let serials = serials.zip(packing.provenance.phone.as_ref());
    let is_other = serials.is_some_and(|(one, other)| one.serial != other.serial);
    if is_other || profiled.device.name != packing.device.name {
        return Err(MeasuredSplitError::TensorsOfOtherDevice {
            side,
            compressed: packing.device.name.clone(),
            profiled: profiled.device.name.clone(),
        });
    }
    Ok(())
}

/// Sizes are the sender's and unpacking the receiver's: both must be of the same pictures.
fn refuse_other_pictures(tensors: [&TensorsDocument; 2]) -> Result<(), MeasuredSplitError> {
    let [phone, server] = tensors.map(|it| {
        let (set, of) = (&it.header.set, &it.header);
        let file: String = set.sha256.chars().take(8).collect();
        format!(
            "{} pictures of {} ({file}) that the seed {} drew",
            of.pictures, set.name, of.seed
        )
    });
    match phone == server {
        true => Ok(()),
        false => Err(MeasuredSplitError::TensorsOfOtherPictures { phone, server }),
    }
}

/// All that crosses a cut, packed by one codec on one device.
struct Crossing<'a> {
    rows: Vec<&'a TensorRow>,
    compress: Vec<TimeRow>,
    decompress: Vec<TimeRow>,
}

/// What crosses the cut after a layer, if all of its bytes can be packed by the codec, and that was timed.
fn crossing(
    document: &TensorsDocument,
    cut: u32,
    codec: TensorCodec,
    bytes: Bytes,
) -> Option<Crossing<'_>> {
    let crosses = document.header.tensors.iter();
    let crosses = crosses.filter(|tensor| tensor.crosses(cut));
    let mut found = Crossing {
        rows: Vec::new(),
        compress: Vec::new(),
        decompress: Vec::new(),
    };
    for tensor in crosses {
        let mut rows = document.tensors.iter();
        let row = rows.find(|row| row.codec == codec && row.tensor.tensor == tensor.tensor)?;
        found.rows.push(row);
        found.compress.push(row.compress?);
        found.decompress.push(row.decompress?);
    }
    // Of several inputs some count more than once in what a cut moves.
    let all: Bytes = found.rows.iter().map(|row| row.tensor.bytes).sum();
    (!found.rows.is_empty() && all == bytes).then_some(found)
}

fn packed(from: &Crossing<'_>, to: &Crossing<'_>) -> Packed {
    let time = |rows: &[TimeRow]| rows.iter().map(|&(median, _)| median).sum::<Nanos>();
    Packed {
        bytes: from.rows.iter().map(|row| row.bytes).sum(),
        pack: time(&from.compress),
        unpack: time(&to.decompress),
    }
}

/// Those of several tensors are of the same pictures, and err together.
fn half_widths(from: &Crossing<'_>, to: &Crossing<'_>) -> PackedHalfWidths {
    let bytes = from.rows.iter().map(|row| {
        let (low, high) = row.bytes_ci95?;
        Some((high.as_bytes() - low.as_bytes()) as f64 / 2.0)
    });
    let time = |rows: &[TimeRow]| {
        let half = |&(_, interval): &TimeRow| {
            let (low, high) = interval?;
            Some((high - low).as_nanos() as f64 / 2.0)
        };
        rows.iter().map(half).sum::<Option<f64>>()
    };
    PackedHalfWidths {
        bytes: bytes.sum(),
        pack: time(&from.compress),
        unpack: time(&to.decompress),
    }
}
