//! The table `layers`: one row for each layer on each processor that can run it.

use layerlab_profiles::document::{CombinationRow, LayerTimeRow, Origin, Profile};
use layerlab_profiles::summary::Estimate;
use layerlab_profiles::{Bytes, Layer};
use parquet::data_type::ByteArray;

use crate::column::Column;
use crate::source::{Source, TableRow, source_columns};

/// One layer on one processor: what it is, what it costs there, and, where that was measured, what it draws and loses.
pub(crate) struct LayerRow<'a> {
    pub(crate) source: &'a Source,
    pub(crate) layer: &'a Layer,
    pub(crate) time: &'a LayerTimeRow,
    /// In nanojoules.
    pub(crate) energy: Option<&'a LayerTimeRow>,
    /// This layer alone on the accelerator.
    pub(crate) alone: Option<&'a CombinationRow>,
    pub(crate) origin: Origin,
}

impl TableRow for LayerRow<'_> {
    fn source(&self) -> &Source {
        self.source
    }
}

/// What the layer of a row of `times.csv` draws, if that was measured.
pub(crate) fn energy<'a>(profile: &'a Profile, time: &LayerTimeRow) -> Option<&'a LayerTimeRow> {
    let mut layers = profile.energy.as_ref()?.layers.iter();
    layers.find(|one| (one.layer, &one.processor) == (time.layer, &time.processor))
}

/// The placement that has the layer of a row of `times.csv` alone on its processor and all others on the first CPU with which it
/// was evaluated, if it was.
pub(crate) fn alone<'a>(profile: &'a Profile, time: &LayerTimeRow) -> Option<&'a CombinationRow> {
    let mut rows = profile.combinations.iter();
    rows.find(|row| {
        let mut placed = (1..).zip(row.combination.processors());
        row.accelerator == time.processor
            && placed.all(|(layer, &processor)| (processor != 0) == (layer == time.layer))
    })
}

pub(crate) fn columns<'a>() -> Vec<Column<LayerRow<'a>>> {
    type Row<'a> = LayerRow<'a>;
    let mut columns = source_columns();
    columns.extend([
        Column::whole("layer", |row: &Row<'a>| Some(row.layer.number.into())).required(),
        Column::text("name", |row: &Row<'a>| Some(row.layer.name.as_str().into())).required(),
        Column::text("operators", |row: &Row<'a>| {
            Some(row.layer.operators.join("+").as_str().into())
        })
        .required(),
        Column::whole("parameter_bytes", |row: &Row<'a>| {
            Some(bytes(row.layer.parameter_bytes))
        })
        .required(),
        Column::whole("input_bytes", |row: &Row<'a>| {
            Some(bytes(row.layer.input_bytes))
        })
        .required(),
        Column::whole("output_bytes", |row: &Row<'a>| {
            Some(bytes(row.layer.output_bytes))
        })
        .required(),
        Column::whole("additions", |row: &Row<'a>| {
            Some(row.layer.additions.cast_signed())
        })
        .required(),
        Column::whole("multiplications", |row: &Row<'a>| {
            Some(row.layer.multiplications.cast_signed())
        })
        .required(),
        Column::whole("compute_ns", |row: &Row<'a>| {
            value(Some(row.time.time.compute))
        })
        .required(),
        Column::whole("compute_ci95_low_ns", |row: &Row<'a>| {
            low(Some(row.time.time.compute))
        }),
        Column::whole("compute_ci95_high_ns", |row: &Row<'a>| {
            high(Some(row.time.time.compute))
        }),
        Column::text("compute_includes", |row: &Row<'a>| included(row.time)),
        Column::whole("to_processor_ns", |row: &Row<'a>| {
            value(row.time.time.to_processor)
        }),
        Column::whole("to_processor_ci95_low_ns", |row: &Row<'a>| {
            low(row.time.time.to_processor)
        }),
        Column::whole("to_processor_ci95_high_ns", |row: &Row<'a>| {
            high(row.time.time.to_processor)
        }),
        Column::whole("from_processor_ns", |row: &Row<'a>| {
            value(row.time.time.from_processor)
        }),
        Column::whole("from_processor_ci95_low_ns", |row: &Row<'a>| {
            low(row.time.time.from_processor)
        }),
        Column::whole("from_processor_ci95_high_ns", |row: &Row<'a>| {
            high(row.time.time.from_processor)
        }),
        Column::text("method", |row: &Row<'a>| {
            Some(row.time.method.name().into())
        })
        .required(),
        Column::whole("compute_nj", |row: &Row<'a>| {
            value(Some(row.energy?.time.compute))
        }),
        Column::whole("compute_ci95_low_nj", |row: &Row<'a>| {
            low(Some(row.energy?.time.compute))
        }),
        Column::whole("compute_ci95_high_nj", |row: &Row<'a>| {
            high(Some(row.energy?.time.compute))
        }),
        Column::whole("to_processor_nj", |row: &Row<'a>| {
            value(row.energy?.time.to_processor)
        }),
        Column::whole("to_processor_ci95_low_nj", |row: &Row<'a>| {
            low(row.energy?.time.to_processor)
        }),
        Column::whole("to_processor_ci95_high_nj", |row: &Row<'a>| {
            high(row.energy?.time.to_processor)
        }),
        Column::whole("from_processor_nj", |row: &Row<'a>| {
            value(row.energy?.time.from_processor)
        }),
        Column::whole("from_processor_ci95_low_nj", |row: &Row<'a>| {
            low(row.energy?.time.from_processor)
        }),
        Column::whole("from_processor_ci95_high_nj", |row: &Row<'a>| {
            high(row.energy?.time.from_processor)
        }),
        Column::fraction("loss", |row: &Row<'a>| Some(row.alone?.loss)),
        Column::fraction("loss_ci95_low", |row: &Row<'a>| {
            Some(row.alone?.loss_ci95.0)
        }),
        Column::fraction("loss_ci95_high", |row: &Row<'a>| {
            Some(row.alone?.loss_ci95.1)
        }),
        Column::text("origin", |row: &Row<'a>| Some(row.origin.name().into())).required(),
    ]);
    columns
}

fn bytes(bytes: Bytes) -> i64 {
    bytes.as_bytes().cast_signed()
}

fn value(estimate: Option<Estimate>) -> Option<i64> {
    Some(estimate?.value.as_nanos())
}

fn low(estimate: Option<Estimate>) -> Option<i64> {
    Some(estimate?.ci95?.0.as_nanos())
}

fn high(estimate: Option<Estimate>) -> Option<i64> {
    Some(estimate?.ci95?.1.as_nanos())
}

/// The transfers that a compute time contains, as `times.csv` names them.
fn included(row: &LayerTimeRow) -> Option<ByteArray> {
    let includes = row.time.compute_includes;
    match (includes.to_processor, includes.from_processor) {
        (false, false) => None,
        (true, false) => Some("to_processor".into()),
        (false, true) => Some("from_processor".into()),
        (true, true) => Some("to_processor+from_processor".into()),
    }
}
