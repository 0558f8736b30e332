//! A row of `soak.csv`, which is there in profiles of steady times alone.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::Table;
use super::block_record::{by_group, parse_by_group};
use crate::document::{Origin, RowError, SoakPhase, SoakRow, SoakState};
use crate::units::{MilliCelsius, Nanos};

pub(in crate::document) const SOAK: Table = Table {
    file: "soak.csv",
    columns: &[
        "processor",
        "order",
        "phase",
        "started_ns",
        "runs",
        "median_ns",
        "thermal_status",
        "temperature_millicelsius",
        "skin_temperature_millicelsius",
        "frequencies_khz",
        "origin",
    ],
};

#[derive(Serialize, Deserialize)]
pub(in crate::document) struct SoakRecord<'a> {
    processor: Cow<'a, str>,
    order: u32,
    phase: SoakPhase,
    started_ns: Nanos,
    runs: u64,
    median_ns: Nanos,
    thermal_status: Option<u8>,
    temperature_millicelsius: Option<MilliCelsius>,
    skin_temperature_millicelsius: Option<MilliCelsius>,
    frequencies_khz: String,
    pub(in crate::document) origin: Origin,
}

impl<'a> From<(&'a SoakRow, Origin)> for SoakRecord<'a> {
    fn from((row, origin): (&'a SoakRow, Origin)) -> Self {
        SoakRecord {
            processor: Cow::Borrowed(&row.processor),
            order: row.order,
            phase: row.phase,
            started_ns: row.started,
            runs: row.runs,
            median_ns: row.median,
            thermal_status: row.state.thermal_status,
            temperature_millicelsius: row.state.temperature_millicelsius,
            skin_temperature_millicelsius: row.state.skin_temperature_millicelsius,
            frequencies_khz: by_group(&row.state.frequencies_khz),
            origin,
        }
    }
}

impl TryFrom<SoakRecord<'_>> for SoakRow {
    type Error = RowError;
    fn try_from(row: SoakRecord<'_>) -> Result<Self, RowError> {
        Ok(SoakRow {
            processor: row.processor.into_owned(),
            order: row.order,
            phase: row.phase,
            started: row.started_ns,
            runs: row.runs,
            median: row.median_ns,
            state: SoakState {
                thermal_status: row.thermal_status,
                temperature_millicelsius: row.temperature_millicelsius,
                skin_temperature_millicelsius: row.skin_temperature_millicelsius,
                frequencies_khz: parse_by_group(&row.frequencies_khz)?,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::wire::table::assert_columns_are_fields;

    #[test]
    fn the_columns_are_the_fields() {
        let row = SoakRow {
            processor: "npu".to_owned(),
            order: 1,
            phase: SoakPhase::Busy,
            started: Nanos::ZERO,
            runs: 1,
            median: Nanos::from_nanos(1),
            state: SoakState::default(),
        };
        assert_columns_are_fields(SOAK, SoakRecord::from((&row, Origin::Measured)));
    }
}
