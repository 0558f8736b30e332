//! Rows as they lie on disk.

use std::fmt::Display;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{
    CrossingAccuracy, CrossingAnswer, PackedRow, TensorCodec, TensorDescription, TensorRow,
    TensorsHeader, ZeroRow,
};
use crate::accuracy::{Loss, Tally};
use crate::document::{Origin, RowError, Table};
use crate::units::{Bytes, Nanos};

pub(super) const TENSORS: Table = Table {
    file: "tensors.csv",
    columns: &[
        "tensor",
        "producer_layer",
        "consumer_layers",
        "is_output",
        "shape",
        "bytes",
        "codec",
        "pictures",
        "compressed_bytes",
        "compressed_ci95_low_bytes",
        "compressed_ci95_high_bytes",
        "compressed_p5_bytes",
        "compressed_p95_bytes",
        "ratio_to_8_bits",
        "zero_share",
        "zero_code_share",
        "compress_ns",
        "compress_ci95_low_ns",
        "compress_ci95_high_ns",
        "decompress_ns",
        "decompress_ci95_low_ns",
        "decompress_ci95_high_ns",
        "origin",
    ],
};

pub(super) const ZEROS: Table = Table {
    file: "tensor_zeros.csv",
    columns: &["image", "tensor", "zeros", "zero_codes", "origin"],
};

pub(super) const PACKED: Table = Table {
    file: "tensor_samples.csv",
    columns: &[
        "image",
        "tensor",
        "codec",
        "compressed_bytes",
        "compress_ns",
        "decompress_ns",
        "origin",
    ],
};

pub(super) const CROSSINGS: Table = Table {
    file: "crossing_accuracy.csv",
    columns: &[
        "cut",
        "tensors",
        "pictures",
        "hits",
        "false_alarms",
        "misses",
        "hits_32_bits",
        "false_alarms_32_bits",
        "misses_32_bits",
        "changed_answers",
        "score",
        "score_32_bits",
        "loss",
        "loss_ci95_low",
        "loss_ci95_high",
        "origin",
    ],
};

pub(super) const ANSWERS: Table = Table {
    file: "crossing_answers.csv",
    columns: &["image", "cut", "hits", "false_alarms", "misses", "origin"],
};

/// Between the numbers of a field that has several.
const SEPARATOR: &str = ";";

/// Between the axes of a shape.
const BY: &str = "x";

fn joined<T: Display>(all: &[T], separator: &str) -> String {
    let all: Vec<String> = all.iter().map(ToString::to_string).collect();
    all.join(separator)
}

fn parted<T>(column: &str, text: &str, separator: &str) -> Result<Vec<T>, RowError>
where
    T: FromStr<Err: Display>,
{
    let parts = text.split(separator).filter(|part| !part.is_empty());
    let parts: Result<Vec<T>, _> = parts.map(str::parse).collect();
    parts.map_err(|reason| RowError::Field {
        column: column.to_owned(),
        reason: reason.to_string(),
    })
}

#[derive(Serialize, Deserialize)]
pub(super) struct TensorRecord {
    tensor: String,
    producer_layer: u32,
    consumer_layers: String,
    is_output: bool,
    shape: String,
    bytes: Bytes,
    codec: TensorCodec,
    pictures: u64,
    compressed_bytes: Bytes,
    compressed_ci95_low_bytes: Option<Bytes>,
    compressed_ci95_high_bytes: Option<Bytes>,
    compressed_p5_bytes: Bytes,
    compressed_p95_bytes: Bytes,
    ratio_to_8_bits: f64,
    zero_share: f64,
    zero_code_share: Option<f64>,
    compress_ns: Option<Nanos>,
    compress_ci95_low_ns: Option<Nanos>,
    compress_ci95_high_ns: Option<Nanos>,
    decompress_ns: Option<Nanos>,
    decompress_ci95_low_ns: Option<Nanos>,
    decompress_ci95_high_ns: Option<Nanos>,
    origin: Origin,
}

impl TensorRecord {
    pub(super) fn of(row: &TensorRow, header: &TensorsHeader) -> TensorRecord {
        let tensor = &row.tensor;
        let compress_ci95 = row.compress.and_then(|(_, interval)| interval);
        let decompress_ci95 = row.decompress.and_then(|(_, interval)| interval);
        TensorRecord {
            tensor: tensor.tensor.clone(),
            producer_layer: tensor.producer_layer,
            consumer_layers: joined(&tensor.consumer_layers, SEPARATOR),
            is_output: tensor.is_output,
            shape: joined(&tensor.shape, BY),
            bytes: tensor.bytes,
            codec: row.codec,
            pictures: row.pictures,
            compressed_bytes: row.bytes,
            compressed_ci95_low_bytes: row.bytes_ci95.map(|(low, _)| low),
            compressed_ci95_high_bytes: row.bytes_ci95.map(|(_, high)| high),
            compressed_p5_bytes: row.bytes_range.0,
            compressed_p95_bytes: row.bytes_range.1,
            ratio_to_8_bits: row.ratio_to_8_bits,
            zero_share: row.zero_share,
            zero_code_share: row.zero_code_share,
            compress_ns: row.compress.map(|(median, _)| median),
            compress_ci95_low_ns: compress_ci95.map(|(low, _)| low),
            compress_ci95_high_ns: compress_ci95.map(|(_, high)| high),
            decompress_ns: row.decompress.map(|(median, _)| median),
            decompress_ci95_low_ns: decompress_ci95.map(|(low, _)| low),
            decompress_ci95_high_ns: decompress_ci95.map(|(_, high)| high),
            origin: header.origin_of_derived(),
        }
    }

    pub(super) fn row(self) -> Result<(TensorRow, Origin), RowError> {
        let row = TensorRow {
            tensor: TensorDescription {
                tensor: self.tensor,
                producer_layer: self.producer_layer,
                consumer_layers: parted("consumer_layers", &self.consumer_layers, SEPARATOR)?,
                is_output: self.is_output,
                shape: parted("shape", &self.shape, BY)?,
                bytes: self.bytes,
                left_out: None,
            },
            codec: self.codec,
            pictures: self.pictures,
            bytes: self.compressed_bytes,
            bytes_ci95: (self.compressed_ci95_low_bytes).zip(self.compressed_ci95_high_bytes),
            bytes_range: (self.compressed_p5_bytes, self.compressed_p95_bytes),
            ratio_to_8_bits: self.ratio_to_8_bits,
            zero_share: self.zero_share,
            zero_code_share: self.zero_code_share,
            compress: self.compress_ns.map(|median| {
                let interval = self.compress_ci95_low_ns.zip(self.compress_ci95_high_ns);
                (median, interval)
            }),
            decompress: self.decompress_ns.map(|median| {
                let interval = self.decompress_ci95_low_ns;
                (median, interval.zip(self.decompress_ci95_high_ns))
            }),
        };
        Ok((row, self.origin))
    }
}

#[derive(Serialize, Deserialize)]
pub(super) struct ZeroRecord {
    image: u64,
    tensor: String,
    zeros: u64,
    zero_codes: Option<u64>,
    origin: Origin,
}

impl ZeroRecord {
    pub(super) fn of(row: &ZeroRow, header: &TensorsHeader) -> ZeroRecord {
        ZeroRecord {
            image: row.image,
            tensor: row.tensor.clone(),
            zeros: row.zeros,
            zero_codes: row.zero_codes,
            origin: header.origin_of_measured(),
        }
    }

    pub(super) fn row(self) -> (ZeroRow, Origin) {
        let row = ZeroRow {
            image: self.image,
            tensor: self.tensor,
            zeros: self.zeros,
            zero_codes: self.zero_codes,
        };
        (row, self.origin)
    }
}

#[derive(Serialize, Deserialize)]
pub(super) struct PackedRecord {
    image: u64,
    tensor: String,
    codec: TensorCodec,
    compressed_bytes: Bytes,
    compress_ns: Option<Nanos>,
    decompress_ns: Option<Nanos>,
    origin: Origin,
}

impl PackedRecord {
    pub(super) fn of(row: &PackedRow, header: &TensorsHeader) -> PackedRecord {
        PackedRecord {
            image: row.image,
            tensor: row.tensor.clone(),
            codec: row.codec,
            compressed_bytes: row.bytes,
            compress_ns: row.compress,
            decompress_ns: row.decompress,
            origin: header.origin_of_measured(),
        }
    }

    pub(super) fn row(self) -> (PackedRow, Origin) {
        let row = PackedRow {
            image: self.image,
            tensor: self.tensor,
            codec: self.codec,
            bytes: self.compressed_bytes,
            compress: self.compress_ns,
            decompress: self.decompress_ns,
        };
        (row, self.origin)
    }
}

#[derive(Serialize, Deserialize)]
pub(super) struct CrossingRecord {
    cut: u32,
    tensors: u64,
    pictures: u64,
    hits: u64,
    false_alarms: u64,
    misses: u64,
    hits_32_bits: u64,
    false_alarms_32_bits: u64,
    misses_32_bits: u64,
    changed_answers: u64,
    score: f64,
    score_32_bits: f64,
    loss: f64,
    loss_ci95_low: f64,
    loss_ci95_high: f64,
    origin: Origin,
}

impl CrossingRecord {
    pub(super) fn of(row: &CrossingAccuracy, header: &TensorsHeader) -> CrossingRecord {
        CrossingRecord {
            cut: row.cut,
            tensors: row.tensors,
            pictures: row.pictures,
            hits: row.in_8_bits.hits,
            false_alarms: row.in_8_bits.false_alarms,
            misses: row.in_8_bits.misses,
            hits_32_bits: row.in_32_bits.hits,
            false_alarms_32_bits: row.in_32_bits.false_alarms,
            misses_32_bits: row.in_32_bits.misses,
            changed_answers: row.changed,
            score: row.scores.0,
            score_32_bits: row.scores.1,
            loss: row.loss.value,
            loss_ci95_low: row.loss.ci95.0,
            loss_ci95_high: row.loss.ci95.1,
            origin: header.origin_of_derived(),
        }
    }

    pub(super) fn row(self) -> (CrossingAccuracy, Origin) {
        let row = CrossingAccuracy {
            cut: self.cut,
            tensors: self.tensors,
            pictures: self.pictures,
            in_8_bits: (self.hits, self.false_alarms, self.misses).into(),
            in_32_bits: Tally {
                hits: self.hits_32_bits,
                false_alarms: self.false_alarms_32_bits,
                misses: self.misses_32_bits,
            },
            changed: self.changed_answers,
            scores: (self.score, self.score_32_bits),
            loss: Loss {
                value: self.loss,
                ci95: (self.loss_ci95_low, self.loss_ci95_high),
            },
        };
        (row, self.origin)
    }
}

#[derive(Serialize, Deserialize)]
pub(super) struct AnswerRecord {
    image: u64,
    cut: Option<u32>,
    hits: u64,
    false_alarms: u64,
    misses: u64,
    origin: Origin,
}

impl AnswerRecord {
    pub(super) fn of(row: &CrossingAnswer, header: &TensorsHeader) -> AnswerRecord {
        AnswerRecord {
            image: row.image,
            cut: row.cut,
            hits: row.tally.hits,
            false_alarms: row.tally.false_alarms,
            misses: row.tally.misses,
            origin: header.origin_of_measured(),
        }
    }

    pub(super) fn row(self) -> (CrossingAnswer, Origin) {
        let row = CrossingAnswer {
            image: self.image,
            cut: self.cut,
            tally: (self.hits, self.false_alarms, self.misses).into(),
        };
        (row, self.origin)
    }
}
