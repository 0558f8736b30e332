//! What follows from the pictures: sizes and times of each tensor by each codec, and what 8 bits cost at each cut.

use std::collections::{BTreeMap, HashMap};

use super::{CrossingAnswer, PackedRow, TensorCodec, TensorDescription, TensorsHeader, ZeroRow};
use crate::accuracy::{Loss, Tally, loss};
use crate::summary::Summary;
use crate::units::{Bytes, Nanos};

/// A tensor by one codec: medians over the pictures, with 95 % intervals where there are enough.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorRow {
    /// The tensor.
    pub tensor: TensorDescription,
    /// The codec.
    pub codec: TensorCodec,
    /// How many pictures there were.
    pub pictures: u64,
    /// The packed size.
    pub bytes: Bytes,
    /// Its interval.
    pub bytes_ci95: Option<(Bytes, Bytes)>,
    /// The 5th and the 95th percentile of the packed sizes.
    pub bytes_range: (Bytes, Bytes),
    /// One byte for each number, of all pictures, over all packed bytes: jointdnn's compression ratio (§4.2).
    pub ratio_to_8_bits: f64,
    /// The share of numbers that are zero, of all pictures.
    pub zero_share: f64,
    /// The share of 8-bit codes that are that of zero; none where a number is not finite.
    pub zero_code_share: Option<f64>,
    /// From floats to packed bytes, with its interval; none on a simulated device.
    pub compress: Option<TimeRow>,
    /// And back.
    pub decompress: Option<TimeRow>,
}

/// A median time over the pictures, and its 95 % interval where there are enough.
pub type TimeRow = (Nanos, Option<(Nanos, Nanos)>);

/// What it costs that the tensors of a cut cross in 8 bits.
#[derive(Clone, Debug, PartialEq)]
pub struct CrossingAccuracy {
    /// The cut, by the layer before it.
    pub cut: u32,
    /// How many tensors were rounded.
    pub tensors: u64,
    /// How many pictures were answered.
    pub pictures: u64,
    /// What all answers got right and wrong with them rounded.
    pub in_8_bits: Tally,
    /// The same in 32 bits.
    pub in_32_bits: Tally,
    /// How many answers got other things right or wrong.
    pub changed: u64,
    /// The scores with them rounded, and in 32 bits.
    pub scores: (f64, f64),
    /// The score in 32 bits less the score with them rounded, and its paired interval.
    pub loss: Loss,
}

/// The rows of each compressed tensor, by each codec.
pub(super) fn tensors(
    header: &TensorsHeader,
    zeros: &[ZeroRow],
    packed: &[PackedRow],
) -> Vec<TensorRow> {
    let mut zeros_of: HashMap<&str, Vec<&ZeroRow>> = HashMap::new();
    for row in zeros {
        zeros_of.entry(&row.tensor).or_default().push(row);
    }
    let mut packed_of: HashMap<(&str, TensorCodec), Vec<&PackedRow>> = HashMap::new();
    for row in packed {
        let of = packed_of.entry((&row.tensor, row.codec)).or_default();
        of.push(row);
    }
    let mut rows = Vec::new();
    for tensor in header.compressed() {
        let Some(zeros) = zeros_of.get(tensor.tensor.as_str()) else {
            continue;
        };
        let numbers = tensor.elements() as f64;
        let all = numbers * zeros.len() as f64;
        let zero_share = zeros.iter().map(|it| it.zeros as f64).sum::<f64>() / all;
        let codes: Option<Vec<u64>> = zeros.iter().map(|it| it.zero_codes).collect();
        let codes = codes.map(|codes| codes.iter().map(|&it| it as f64).sum::<f64>() / all);
        for &codec in &header.codecs {
            let packed = packed_of.get(&(tensor.tensor.as_str(), codec));
            let Some((packed, sizes)) = packed.and_then(|it| Some((it, sizes(it)?))) else {
                continue;
            };
            let total: f64 = packed.iter().map(|it| it.bytes.as_bytes() as f64).sum();
            let (bytes, bytes_ci95, bytes_range) = sizes;
            rows.push(TensorRow {
                tensor: tensor.clone(),
                codec,
                pictures: packed.len() as u64,
                bytes,
                bytes_ci95,
                bytes_range,
                ratio_to_8_bits: numbers * packed.len() as f64 / total,
                zero_share,
                zero_code_share: codes,
                compress: time(packed, |it| it.compress),
                decompress: time(packed, |it| it.decompress),
            });
        }
    }
    rows
}

/// A median, its interval, and the 5th and 95th percentile.
type Sizes = (Bytes, Option<(Bytes, Bytes)>, (Bytes, Bytes));

fn sizes(packed: &[&PackedRow]) -> Option<Sizes> {
    // Order statistics do not ask for the unit.
    let sizes = packed
        .iter()
        .map(|it| Nanos::from_nanos(it.bytes.as_bytes()));
    let summary = Summary::of(&sizes.collect::<Vec<Nanos>>())?;
    let bytes = |size: Nanos| Bytes::from_bytes(size.as_nanos());
    let interval = summary.median_ci95;
    Some((
        bytes(summary.median),
        interval.map(|(low, high)| (bytes(low), bytes(high))),
        (bytes(summary.p5), bytes(summary.p95)),
    ))
}

fn time(packed: &[&PackedRow], of: fn(&PackedRow) -> Option<Nanos>) -> Option<TimeRow> {
    let times: Option<Vec<Nanos>> = packed.iter().map(|it| of(it)).collect();
    let summary = Summary::of(&times?)?;
    Some((summary.median, summary.median_ci95))
}

/// The rows of each cut at which something was rounded.
pub(super) fn crossings(
    header: &TensorsHeader,
    answers: &[CrossingAnswer],
) -> Vec<CrossingAccuracy> {
    let mut of: BTreeMap<Option<u32>, BTreeMap<u64, Tally>> = BTreeMap::new();
    for answer in answers {
        let of = of.entry(answer.cut).or_default();
        of.insert(answer.image, answer.tally);
    }
    let Some(whole) = of.get(&None) else {
        return Vec::new();
    };
    let row = |(cut, crossed): (&Option<u32>, &BTreeMap<u64, Tally>)| {
        let cut = (*cut)?;
        let before: Option<Vec<Tally>> = crossed.keys().map(|it| whole.get(it).copied()).collect();
        let (before, after) = (before?, crossed.values().copied().collect::<Vec<Tally>>());
        let pairs = before.iter().zip(&after);
        let in_8_bits: Tally = after.iter().copied().sum();
        let in_32_bits: Tally = before.iter().copied().sum();
        Some(CrossingAccuracy {
            cut,
            tensors: header.compressed().filter(|it| it.crosses(cut)).count() as u64,
            pictures: after.len() as u64,
            in_8_bits,
            in_32_bits,
            changed: pairs.filter(|(before, after)| before != after).count() as u64,
            scores: (in_8_bits.score(), in_32_bits.score()),
            loss: loss(&before, &after)?,
        })
    };
    of.iter().filter_map(row).collect()
}
