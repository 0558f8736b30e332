//! A row of `probes.csv`.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::Table;
use crate::document::{Origin, ProbeSample, Rejected, RowError};
use crate::probe::{PROBE_LAYERS, Probe, ProbeLayer};
use crate::units::{Bytes, Nanos};

pub(in crate::document) const PROBES: Table = Table {
    file: "probes.csv",
    columns: &[
        "processor",
        "channels",
        "side",
        "layer",
        "input_bytes",
        "output_bytes",
        "operations",
        "order",
        "block",
        "index",
        "started_ns",
        "duration_ns",
        "rejection",
        "origin",
    ],
};

#[derive(Serialize, Deserialize)]
pub(in crate::document) struct ProbeRecord<'a> {
    processor: Cow<'a, str>,
    channels: u32,
    side: u32,
    layer: u32,
    input_bytes: Bytes,
    output_bytes: Bytes,
    operations: u64,
    order: u32,
    block: u32,
    index: u64,
    started_ns: Nanos,
    duration_ns: Nanos,
    rejection: Option<Rejected>,
    pub(in crate::document) origin: Origin,
}

impl<'a> TryFrom<(&'a ProbeSample, Origin)> for ProbeRecord<'a> {
    type Error = RowError;
    fn try_from((sample, origin): (&'a ProbeSample, Origin)) -> Result<Self, RowError> {
        let ProbeLayer {
            input,
            output,
            operations,
        } = layer(sample.probe, sample.layer)?;
        Ok(ProbeRecord {
            processor: Cow::Borrowed(&sample.processor),
            channels: sample.probe.channels,
            side: sample.probe.side,
            layer: sample.layer,
            input_bytes: input,
            output_bytes: output,
            operations,
            order: sample.order,
            block: sample.block,
            index: sample.index,
            started_ns: sample.started,
            duration_ns: sample.duration,
            rejection: sample.rejection,
            origin,
        })
    }
}

impl TryFrom<ProbeRecord<'_>> for ProbeSample {
    type Error = RowError;
    fn try_from(row: ProbeRecord<'_>) -> Result<Self, RowError> {
        let probe = Probe {
            channels: row.channels,
            side: row.side,
        };
        let stated = ProbeLayer {
            input: row.input_bytes,
            output: row.output_bytes,
            operations: row.operations,
        };
        if layer(probe, row.layer)? != stated {
            return Err(RowError::Word(format!(
                "columns input_bytes, output_bytes and operations are not those of layer {} of the probe with {} \
                 channels and side {}",
                row.layer, row.channels, row.side
            )));
        }
        Ok(ProbeSample {
            processor: row.processor.into_owned(),
            probe,
            layer: row.layer,
            order: row.order,
            block: row.block,
            index: row.index,
            started: row.started_ns,
            duration: row.duration_ns,
            rejection: row.rejection,
        })
    }
}

fn layer(probe: Probe, layer: u32) -> Result<ProbeLayer, RowError> {
    probe.layer(layer).ok_or_else(|| {
        RowError::Word(format!(
            "column layer: a probe has layers 1 to {PROBE_LAYERS} and none numbered {layer}"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::wire::table::assert_columns_are_fields;

    fn sample() -> ProbeSample {
        ProbeSample {
            processor: "npu".to_owned(),
            probe: Probe {
                channels: 3,
                side: 2,
            },
            layer: 2,
            order: 1,
            block: 0,
            index: 4,
            started: Nanos::from_nanos(5),
            duration: Nanos::from_nanos(6),
            rejection: Some(Rejected::Throttling),
        }
    }

    #[test]
    fn the_columns_are_the_fields() {
        let sample = sample();
        let row = ProbeRecord::try_from((&sample, Origin::Measured)).expect("a layer");
        assert_columns_are_fields(PROBES, row);
    }

    #[test]
    fn a_sample_comes_back_from_its_row_unless_its_sizes_are_anothers() {
        let sample = sample();
        let row = || ProbeRecord::try_from((&sample, Origin::Measured)).expect("a layer");
        assert_eq!(ProbeSample::try_from(row()).expect("just made"), sample);
        let mut other = row();
        other.output_bytes = Bytes::from_bytes(1);
        assert!(ProbeSample::try_from(other).is_err());
        let mut other = row();
        other.layer = 4;
        assert!(ProbeSample::try_from(other).is_err());
    }
}
