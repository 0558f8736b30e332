//! A row of `energy.csv`, and the columns of `layer_energy.csv`, whose rows are those of `times.csv` in other units.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::Table;
use crate::document::{Origin, RowError};
use crate::energy::EnergyWindow;
use crate::segment::Segment;
use crate::units::{NanoJoules, Nanos};

pub(in crate::document) const ENERGY: Table = Table {
    file: "energy.csv",
    columns: &[
        "processor",
        "order",
        "first_layer",
        "last_layer",
        "started_ns",
        "duration_ns",
        "runs",
        "energy_nj",
        "readings",
        "scatter_uw",
        "step_uw",
        "origin",
    ],
};

pub(in crate::document) const LAYER_ENERGY: Table = Table {
    file: "layer_energy.csv",
    columns: &[
        "layer",
        "processor",
        "compute_nj",
        "compute_ci95_low_nj",
        "compute_ci95_high_nj",
        "compute_includes",
        "to_processor_nj",
        "to_processor_ci95_low_nj",
        "to_processor_ci95_high_nj",
        "from_processor_nj",
        "from_processor_ci95_low_nj",
        "from_processor_ci95_high_nj",
        "unresolved",
        "method",
        "origin",
    ],
};

#[derive(Serialize, Deserialize)]
pub(in crate::document) struct EnergyRecord<'a> {
    processor: Cow<'a, str>,
    order: u32,
    first_layer: Option<u32>,
    last_layer: Option<u32>,
    started_ns: Nanos,
    duration_ns: Nanos,
    runs: u64,
    energy_nj: NanoJoules,
    readings: u64,
    scatter_uw: u64,
    step_uw: Option<u64>,
    pub(in crate::document) origin: Origin,
}

impl<'a> From<(&'a EnergyWindow, Origin)> for EnergyRecord<'a> {
    fn from((row, origin): (&'a EnergyWindow, Origin)) -> Self {
        EnergyRecord {
            processor: Cow::Borrowed(&row.processor),
            order: row.order,
            first_layer: row.segment.map(Segment::first),
            last_layer: row.segment.map(Segment::last),
            started_ns: row.started,
            duration_ns: row.duration,
            runs: row.runs,
            energy_nj: row.energy,
            readings: row.readings,
            scatter_uw: row.scatter_uw,
            step_uw: row.step_uw,
            origin,
        }
    }
}

impl TryFrom<EnergyRecord<'_>> for EnergyWindow {
    type Error = RowError;
    fn try_from(row: EnergyRecord<'_>) -> Result<Self, RowError> {
        Ok(EnergyWindow {
            processor: row.processor.into_owned(),
            order: row.order,
            segment: match (row.first_layer, row.last_layer) {
                (None, None) => None,
                (first, last) => Some(Segment::new(first.unwrap_or(0), last.unwrap_or(0))?),
            },
            started: row.started_ns,
            duration: row.duration_ns,
            runs: row.runs,
            energy: row.energy_nj,
            readings: row.readings,
            scatter_uw: row.scatter_uw,
            step_uw: row.step_uw,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::wire::table::assert_columns_are_fields;
    use crate::document::wire::time_record::TIMES;

    fn window() -> EnergyWindow {
        EnergyWindow {
            processor: "npu".to_owned(),
            order: 1,
            segment: Some(Segment::single(2)),
            started: Nanos::ZERO,
            duration: Nanos::from_millis(30_000),
            runs: 10,
            energy: NanoJoules::from_nanojoules(5),
            readings: 30,
            scatter_uw: 4,
            step_uw: None,
        }
    }

    #[test]
    fn the_columns_are_the_fields() {
        assert_columns_are_fields(ENERGY, EnergyRecord::from((&window(), Origin::Measured)));
    }

    #[test]
    fn layers_have_the_columns_of_times_in_nanojoules() {
        let expected = TIMES.columns.iter().map(|name| name.replace("_ns", "_nj"));
        assert!(expected.eq(LAYER_ENERGY.columns.iter().map(|&name| name.to_owned())));
    }

    #[test]
    fn a_window_comes_back_from_its_row_and_half_a_segment_does_not() {
        let (busy, idle) = (
            window(),
            EnergyWindow {
                segment: None,
                runs: 0,
                ..window()
            },
        );
        for window in [&busy, &idle] {
            let wire = EnergyRecord::from((window, Origin::Measured));
            assert_eq!(&EnergyWindow::try_from(wire).expect("just made"), window);
        }
        let mut wire = EnergyRecord::from((&busy, Origin::Measured));
        wire.first_layer = None;
        assert!(EnergyWindow::try_from(wire).is_err());
    }
}
