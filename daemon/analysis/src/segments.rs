//! The table `segments`: one row for each measured segment on each processor.

use layerlab_profiles::Nanos;
use layerlab_profiles::document::{Origin, Profile, SegmentRow, TestedSegment};

use crate::column::Column;
use crate::source::{Source, TableRow, source_columns};

/// One segment, and what all others predict for it if it was tested whether times add up.
pub(crate) struct MeasuredSegment<'a> {
    pub(crate) source: &'a Source,
    pub(crate) segment: &'a SegmentRow,
    pub(crate) tested: Option<&'a TestedSegment>,
    pub(crate) origin: Origin,
}

impl TableRow for MeasuredSegment<'_> {
    fn source(&self) -> &Source {
        self.source
    }
}

/// What all other segments predict for `row`, if that was tested.
pub(crate) fn tested<'a>(profile: &'a Profile, row: &SegmentRow) -> Option<&'a TestedSegment> {
    let mut of_processor = profile.additivity.iter();
    let of_processor = of_processor.find(|one| one.processor == row.processor)?;
    let (first, last) = (row.segment.first(), row.segment.last());
    let mut segments = of_processor.segments.iter();
    segments.find(|one| (one.first_layer, one.last_layer) == (first, last))
}

pub(crate) fn columns<'a>() -> Vec<Column<MeasuredSegment<'a>>> {
    type Row<'a> = MeasuredSegment<'a>;
    let mut columns = source_columns();
    columns.extend([
        Column::whole("first_layer", |row: &Row<'a>| {
            Some(row.segment.segment.first().into())
        })
        .required(),
        Column::whole("last_layer", |row: &Row<'a>| {
            Some(row.segment.segment.last().into())
        })
        .required(),
        Column::whole("samples", |row: &Row<'a>| {
            Some(row.segment.summary.count.cast_signed())
        })
        .required(),
        Column::whole("median_ns", |row: &Row<'a>| {
            whole(row.segment.summary.median)
        })
        .required(),
        Column::whole("median_ci95_low_ns", |row: &Row<'a>| {
            whole(row.segment.summary.median_ci95?.0)
        }),
        Column::whole("median_ci95_high_ns", |row: &Row<'a>| {
            whole(row.segment.summary.median_ci95?.1)
        }),
        Column::whole("mad_ns", |row: &Row<'a>| {
            whole(row.segment.summary.median_absolute_deviation)
        })
        .required(),
        Column::whole("p5_ns", |row: &Row<'a>| whole(row.segment.summary.p5)).required(),
        Column::whole("p95_ns", |row: &Row<'a>| whole(row.segment.summary.p95)).required(),
        Column::whole("min_ns", |row: &Row<'a>| whole(row.segment.summary.min)).required(),
        Column::whole("max_ns", |row: &Row<'a>| whole(row.segment.summary.max)).required(),
        Column::whole("predicted_ns", |row: &Row<'a>| {
            Some(row.tested?.predicted_ns.as_nanos())
        }),
        Column::whole("predicted_ci95_low_ns", |row: &Row<'a>| {
            Some(row.tested?.predicted_ci95_low_ns?.as_nanos())
        }),
        Column::whole("predicted_ci95_high_ns", |row: &Row<'a>| {
            Some(row.tested?.predicted_ci95_high_ns?.as_nanos())
        }),
        Column::text("origin", |row: &Row<'a>| Some(row.origin.name().into())).required(),
    ]);
    columns
}

fn whole(nanos: Nanos) -> Option<i64> {
    Some(nanos.signed().as_nanos())
}
