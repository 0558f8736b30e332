//! A row of `minutes.csv`, which is there in profiles of steady times alone.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::Table;
use super::block_record::{by_group, parse_by_group};
use crate::document::{MinuteRow, Origin, RowError, SoakState};
use crate::units::{MilliCelsius, Nanos};

pub(in crate::document) const MINUTES: Table = Table {
    file: "minutes.csv",
    columns: &[
        "processor",
        "minute",
        "slices",
        "median_ns",
        "median_ci95_low_ns",
        "median_ci95_high_ns",
        "thermal_status",
        "temperature_millicelsius",
        "skin_temperature_millicelsius",
        "frequencies_khz",
        "origin",
    ],
};

#[derive(Serialize, Deserialize)]
pub(in crate::document) struct MinuteRecord<'a> {
    processor: Cow<'a, str>,
    minute: u32,
    slices: u64,
    median_ns: Nanos,
    median_ci95_low_ns: Option<Nanos>,
    median_ci95_high_ns: Option<Nanos>,
    thermal_status: Option<u8>,
    temperature_millicelsius: Option<MilliCelsius>,
    skin_temperature_millicelsius: Option<MilliCelsius>,
    frequencies_khz: String,
    pub(in crate::document) origin: Origin,
}

impl<'a> From<(&'a MinuteRow, Origin)> for MinuteRecord<'a> {
    fn from((row, origin): (&'a MinuteRow, Origin)) -> Self {
        let (low, high) = row.ci95.unzip();
        MinuteRecord {
            processor: Cow::Borrowed(&row.processor),
            minute: row.minute,
            slices: row.slices,
            median_ns: row.median,
            median_ci95_low_ns: low,
            median_ci95_high_ns: high,
            thermal_status: row.state.thermal_status,
            temperature_millicelsius: row.state.temperature_millicelsius,
            skin_temperature_millicelsius: row.state.skin_temperature_millicelsius,
            frequencies_khz: by_group(&row.state.frequencies_khz),
            origin,
        }
    }
}

impl TryFrom<MinuteRecord<'_>> for MinuteRow {
    type Error = RowError;
    fn try_from(row: MinuteRecord<'_>) -> Result<Self, RowError> {
        let ci95 = match (row.median_ci95_low_ns, row.median_ci95_high_ns) {
            (None, None) => None,
            (Some(low), Some(high)) => Some((low, high)),
            _ => return Err(RowError::HalfInterval { value: "median" }),
        };
        Ok(MinuteRow {
            processor: row.processor.into_owned(),
            minute: row.minute,
            slices: row.slices,
            median: row.median_ns,
            ci95,
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
        let row = MinuteRow {
            processor: "npu".to_owned(),
            minute: 1,
            slices: 60,
            median: Nanos::from_nanos(1),
            ci95: None,
            state: SoakState::default(),
        };
        assert_columns_are_fields(MINUTES, MinuteRecord::from((&row, Origin::Measured)));
    }
}
