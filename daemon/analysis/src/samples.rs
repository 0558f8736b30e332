//! The table `samples`: one row for each inference that counts.

use layerlab_profiles::document::{Origin, Sample};

use crate::column::Column;
use crate::source::{Source, TableRow, source_columns};

/// One inference.
pub(crate) struct SampleRow<'a> {
    pub(crate) source: &'a Source,
    pub(crate) sample: &'a Sample,
    pub(crate) origin: Origin,
}

impl TableRow for SampleRow<'_> {
    fn source(&self) -> &Source {
        self.source
    }
}

pub(crate) fn columns<'a>() -> Vec<Column<SampleRow<'a>>> {
    type Row<'a> = SampleRow<'a>;
    let mut columns = source_columns();
    columns.extend([
        Column::whole("first_layer", |row: &Row<'a>| {
            Some(row.sample.segment.first().into())
        })
        .required(),
        Column::whole("last_layer", |row: &Row<'a>| {
            Some(row.sample.segment.last().into())
        })
        .required(),
        Column::whole("order", |row: &Row<'a>| Some(row.sample.order.into())).required(),
        Column::whole("block", |row: &Row<'a>| Some(row.sample.block.into())).required(),
        Column::whole("index", |row: &Row<'a>| {
            Some(row.sample.index.cast_signed())
        })
        .required(),
        Column::whole("started_ns", |row: &Row<'a>| {
            Some(row.sample.started.signed().as_nanos())
        })
        .required(),
        Column::whole("duration_ns", |row: &Row<'a>| {
            Some(row.sample.duration.signed().as_nanos())
        })
        .required(),
        Column::text("origin", |row: &Row<'a>| Some(row.origin.name().into())).required(),
    ]);
    columns
}
