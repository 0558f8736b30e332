//! A row of `blocks.csv`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Table;
use crate::document::{Block, BlockEnd, Conditions, Disturbance, Origin, Rejected, RowError};
use crate::units::{MilliCelsius, Nanos};

/// The columns of every such file, and then these.
macro_rules! columns {
    ($($more:literal),*) => {
        &[
                "processor",
                "order",
                "block",
                "rested_ns",
                "sentinel_before_ns",
                "sentinel_after_ns",
                "thermal_status_before",
                "thermal_status_after",
                "temperature_before_millicelsius",
                "temperature_after_millicelsius",
                "skin_temperature_before_millicelsius",
                "skin_temperature_after_millicelsius",
                "soc_temperature_before_millicelsius",
                "soc_temperature_after_millicelsius",
                "battery_temperature_before_millicelsius",
                "battery_temperature_after_millicelsius",
                "battery_before_percent",
                "battery_after_percent",
                "charging_before",
                "charging_after",
                "frequency_caps_before_khz",
                "frequency_caps_after_khz",
                "frequencies_before_khz",
                "frequencies_after_khz",
                "rejection",
                "origin",
            $($more),*
        ]
    };
}

pub(in crate::document) const BLOCKS: Table = Table {
    file: "blocks.csv",
    columns: columns![],
};

/// The same file where the device told what else ran. A profile of one that did not has the bytes that it had before there were
/// these columns.
pub(in crate::document) const BLOCKS_WITH_DISTURBANCE: Table = Table {
    file: BLOCKS.file,
    columns: columns!["crowded_samples", "stolen_percent"],
};

/// A row of it.
#[derive(Serialize, Deserialize)]
pub(in crate::document) struct DisturbedBlockRecord<'a> {
    pub(in crate::document) block: BlockRecord<'a>,
    crowded_samples: Option<u64>,
    stolen_percent: Option<u64>,
}

impl<'a> From<(&'a Block, Origin)> for DisturbedBlockRecord<'a> {
    fn from((block, origin): (&'a Block, Origin)) -> Self {
        let disturbance = block.disturbance;
        DisturbedBlockRecord {
            block: BlockRecord::from((block, origin)),
            crowded_samples: disturbance.map(|told| told.crowded_samples),
            stolen_percent: disturbance.map(|told| told.stolen_percent),
        }
    }
}

impl TryFrom<DisturbedBlockRecord<'_>> for Block {
    type Error = RowError;
    fn try_from(row: DisturbedBlockRecord<'_>) -> Result<Self, RowError> {
        let told = row.crowded_samples.zip(row.stolen_percent);
        Ok(Block {
            disturbance: told.map(|(crowded_samples, stolen_percent)| Disturbance {
                crowded_samples,
                stolen_percent,
            }),
            ..Block::try_from(row.block)?
        })
    }
}

#[derive(Serialize, Deserialize)]
pub(in crate::document) struct BlockRecord<'a> {
    processor: Cow<'a, str>,
    order: u32,
    block: u32,
    rested_ns: Nanos,
    sentinel_before_ns: Nanos,
    sentinel_after_ns: Nanos,
    thermal_status_before: Option<u8>,
    thermal_status_after: Option<u8>,
    temperature_before_millicelsius: Option<MilliCelsius>,
    temperature_after_millicelsius: Option<MilliCelsius>,
    skin_temperature_before_millicelsius: Option<MilliCelsius>,
    skin_temperature_after_millicelsius: Option<MilliCelsius>,
    soc_temperature_before_millicelsius: Option<MilliCelsius>,
    soc_temperature_after_millicelsius: Option<MilliCelsius>,
    battery_temperature_before_millicelsius: Option<MilliCelsius>,
    battery_temperature_after_millicelsius: Option<MilliCelsius>,
    battery_before_percent: Option<u8>,
    battery_after_percent: Option<u8>,
    charging_before: Option<bool>,
    charging_after: Option<bool>,
    frequency_caps_before_khz: String,
    frequency_caps_after_khz: String,
    frequencies_before_khz: String,
    frequencies_after_khz: String,
    rejection: Option<Rejected>,
    pub(in crate::document) origin: Origin,
}

impl<'a> From<(&'a Block, Origin)> for BlockRecord<'a> {
    fn from((block, origin): (&'a Block, Origin)) -> Self {
        let (before, after) = (&block.before.conditions, &block.after.conditions);
        BlockRecord {
            processor: Cow::Borrowed(&block.processor),
            order: block.order,
            block: block.number,
            rested_ns: block.rested,
            sentinel_before_ns: block.before.sentinel,
            sentinel_after_ns: block.after.sentinel,
            thermal_status_before: before.thermal_status,
            thermal_status_after: after.thermal_status,
            temperature_before_millicelsius: before.temperature_millicelsius,
            temperature_after_millicelsius: after.temperature_millicelsius,
            skin_temperature_before_millicelsius: before.skin_temperature_millicelsius,
            skin_temperature_after_millicelsius: after.skin_temperature_millicelsius,
            soc_temperature_before_millicelsius: before.soc_temperature_millicelsius,
            soc_temperature_after_millicelsius: after.soc_temperature_millicelsius,
            battery_temperature_before_millicelsius: before.battery_temperature_millicelsius,
            battery_temperature_after_millicelsius: after.battery_temperature_millicelsius,
            battery_before_percent: before.battery_percent,
            battery_after_percent: after.battery_percent,
            charging_before: before.charging,
            charging_after: after.charging,
            frequency_caps_before_khz: by_group(&before.frequency_caps_khz),
            frequency_caps_after_khz: by_group(&after.frequency_caps_khz),
            frequencies_before_khz: by_group(&before.frequencies_khz),
            frequencies_after_khz: by_group(&after.frequencies_khz),
            rejection: block.rejection,
            origin,
        }
    }
}

impl TryFrom<BlockRecord<'_>> for Block {
    type Error = RowError;
    fn try_from(row: BlockRecord<'_>) -> Result<Self, RowError> {
        let before = BlockEnd {
            sentinel: row.sentinel_before_ns,
            conditions: Conditions {
                thermal_status: row.thermal_status_before,
                temperature_millicelsius: row.temperature_before_millicelsius,
                skin_temperature_millicelsius: row.skin_temperature_before_millicelsius,
                soc_temperature_millicelsius: row.soc_temperature_before_millicelsius,
                battery_temperature_millicelsius: row.battery_temperature_before_millicelsius,
                battery_percent: row.battery_before_percent,
                charging: row.charging_before,
                frequency_caps_khz: parse_by_group(&row.frequency_caps_before_khz)?,
                frequencies_khz: parse_by_group(&row.frequencies_before_khz)?,
            },
        };
        let after = BlockEnd {
            sentinel: row.sentinel_after_ns,
            conditions: Conditions {
                thermal_status: row.thermal_status_after,
                temperature_millicelsius: row.temperature_after_millicelsius,
                skin_temperature_millicelsius: row.skin_temperature_after_millicelsius,
                soc_temperature_millicelsius: row.soc_temperature_after_millicelsius,
                battery_temperature_millicelsius: row.battery_temperature_after_millicelsius,
                battery_percent: row.battery_after_percent,
                charging: row.charging_after,
                frequency_caps_khz: parse_by_group(&row.frequency_caps_after_khz)?,
                frequencies_khz: parse_by_group(&row.frequencies_after_khz)?,
            },
        };
        Ok(Block {
            processor: row.processor.into_owned(),
            order: row.order,
            number: row.block,
            rested: row.rested_ns,
            before,
            after,
            rejection: row.rejection,
            disturbance: None,
        })
    }
}

/// `group=kHz` for each group of cores, or accelerator, joined by `;`.
pub(super) fn by_group(caps: &BTreeMap<String, u64>) -> String {
    let one = |(group, khz): (&String, &u64)| format!("{group}={khz}");
    caps.iter().map(one).collect::<Vec<_>>().join(";")
}

pub(in crate::document) fn parse_by_group(text: &str) -> Result<BTreeMap<String, u64>, RowError> {
    let one = |cap: &str| {
        let (group, khz) = cap.rsplit_once('=')?;
        Some((group.to_owned(), khz.parse().ok()?))
    };
    text.split(';')
        .filter(|cap| !cap.is_empty())
        .map(|cap| one(cap).ok_or_else(|| RowError::FrequencyCap(cap.to_owned())))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::wire::table::assert_columns_are_fields;

    #[test]
    fn the_columns_are_the_fields() {
        let end = BlockEnd {
            sentinel: Nanos::from_nanos(1),
            conditions: Conditions::default(),
        };
        let block = Block {
            processor: "npu".to_owned(),
            order: 0,
            number: 0,
            rested: Nanos::ZERO,
            before: end.clone(),
            after: end,
            rejection: None,
            disturbance: None,
        };
        assert_columns_are_fields(BLOCKS, BlockRecord::from((&block, Origin::Measured)));
        let of_block = BLOCKS_WITH_DISTURBANCE
            .columns
            .split_at(BLOCKS.columns.len());
        assert_eq!(
            of_block,
            (BLOCKS.columns, &["crowded_samples", "stolen_percent"][..])
        );
    }

    #[test]
    fn caps_are_read_as_they_were_written() {
        let written = BTreeMap::from([
            ("policy0".to_owned(), 1_800_000),
            ("policy4".to_owned(), 2_360_000),
        ]);
        assert_eq!(by_group(&written), "policy0=1800000;policy4=2360000");
        assert_eq!(parse_by_group(&by_group(&written)).expect("caps"), written);
        assert!(parse_by_group("").expect("no caps").is_empty());
        assert!(parse_by_group("policy0=fast").is_err());
    }
}
