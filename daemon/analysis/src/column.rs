//! The columns of a table: what each is called and holds, and how rows become a file.

use std::io::Write;
use std::sync::Arc;

use parquet::basic::{
    Compression, Encoding, GzipLevel, LogicalType, Repetition, TimeUnit, Type as Physical,
};
use parquet::column::writer::ColumnWriterImpl;
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type,
};
use parquet::errors::Result;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{ColumnPath, Type, TypePtr};

/// How many rows are in memory and in a row group at a time: as many as DuckDB takes at once.
const ROW_GROUP: usize = 122_880;

/// One column of a table whose rows are `R`.
pub(crate) struct Column<R> {
    name: &'static str,
    is_required: bool,
    values: Values<R>,
}

/// How a column's value follows from a row; `None` is written as `NULL`.
enum Values<R> {
    Text(fn(&R) -> Option<ByteArray>),
    Whole(fn(&R) -> Option<i64>),
    Fraction(fn(&R) -> Option<f64>),
    Flag(fn(&R) -> Option<bool>),
    /// In microseconds since 1970 in UTC.
    Instant(fn(&R) -> Option<i64>),
    /// In days since 1970.
    Day(fn(&R) -> Option<i32>),
}

impl<R> Column<R> {
    fn new(name: &'static str, values: Values<R>) -> Column<R> {
        let is_required = false;
        Column {
            name,
            is_required,
            values,
        }
    }

    /// A text. Few different ones are stored once each.
    pub(crate) fn text(name: &'static str, value: fn(&R) -> Option<ByteArray>) -> Column<R> {
        Column::new(name, Values::Text(value))
    }

    /// A whole number.
    pub(crate) fn whole(name: &'static str, value: fn(&R) -> Option<i64>) -> Column<R> {
        Column::new(name, Values::Whole(value))
    }

    /// A number that need not be whole.
    pub(crate) fn fraction(name: &'static str, value: fn(&R) -> Option<f64>) -> Column<R> {
        Column::new(name, Values::Fraction(value))
    }

    /// True or false.
    pub(crate) fn flag(name: &'static str, value: fn(&R) -> Option<bool>) -> Column<R> {
        Column::new(name, Values::Flag(value))
    }

    /// An instant, in microseconds since 1970 in UTC.
    pub(crate) fn instant(name: &'static str, value: fn(&R) -> Option<i64>) -> Column<R> {
        Column::new(name, Values::Instant(value))
    }

    /// A date, in days since 1970.
    pub(crate) fn day(name: &'static str, value: fn(&R) -> Option<i32>) -> Column<R> {
        Column::new(name, Values::Day(value))
    }

    /// The same column, which has a value in every row.
    pub(crate) fn required(self) -> Column<R> {
        let is_required = true;
        Column {
            is_required,
            ..self
        }
    }

    fn field(&self) -> Result<TypePtr> {
        let (physical, logical) = match self.values {
            Values::Text(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            Values::Whole(_) => (Physical::INT64, None),
            Values::Fraction(_) => (Physical::DOUBLE, None),
            Values::Flag(_) => (Physical::BOOLEAN, None),
            Values::Instant(_) => (
                Physical::INT64,
                Some(LogicalType::timestamp(true, TimeUnit::MICROS)),
            ),
            Values::Day(_) => (Physical::INT32, Some(LogicalType::Date)),
        };
        let repetition = match self.is_required {
            true => Repetition::REQUIRED,
            false => Repetition::OPTIONAL,
        };
        let field = Type::primitive_type_builder(self.name, physical)
            .with_repetition(repetition)
            .with_logical_type(logical);
        Ok(Arc::new(field.build()?))
    }

    /// Whether values are stored as differences, which are short: of numbers that rise or repeat.
    fn is_delta_encoded(&self) -> bool {
        matches!(
            self.values,
            Values::Whole(_) | Values::Instant(_) | Values::Day(_)
        )
    }

    fn write(&self, rows: &[R], writer: &mut SerializedColumnWriter<'_>) -> Result<()> {
        match self.values {
            Values::Text(value) => self.put(rows, writer.typed::<ByteArrayType>(), value),
            Values::Whole(value) | Values::Instant(value) => {
                self.put(rows, writer.typed::<Int64Type>(), value)
            }
            Values::Fraction(value) => self.put(rows, writer.typed::<DoubleType>(), value),
            Values::Flag(value) => self.put(rows, writer.typed::<BoolType>(), value),
            Values::Day(value) => self.put(rows, writer.typed::<Int32Type>(), value),
        }
    }

    fn put<T: DataType>(
        &self,
        rows: &[R],
        writer: &mut ColumnWriterImpl<'_, T>,
        value: fn(&R) -> Option<T::T>,
    ) -> Result<()> {
        let mut values = Vec::with_capacity(rows.len());
        let mut levels = Vec::with_capacity(rows.len());
        for row in rows {
            let value = value(row);
            levels.push(i16::from(value.is_some()));
            values.extend(value);
        }
        let levels = (!self.is_required).then_some(levels.as_slice());
        writer.write_batch(&values, levels, None)?;
        Ok(())
    }
}

/// Writes `rows` as a file of Parquet, with these notes in its footer. A row group of them is in memory at a time.
pub(crate) fn write_table<R, W: Write + Send>(
    columns: &[Column<R>],
    rows: impl Iterator<Item = R>,
    notes: Vec<KeyValue>,
    to: W,
) -> Result<()> {
    let fields: Result<Vec<TypePtr>> = columns.iter().map(Column::field).collect();
    let schema = Type::group_type_builder("layerlab")
        .with_fields(fields?)
        .build()?;
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::GZIP(GzipLevel::default()))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_created_by(concat!("layerlab ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_key_value_metadata(Some(notes));
    for column in columns.iter().filter(|column| column.is_delta_encoded()) {
        let path = ColumnPath::from(column.name);
        properties = properties
            .set_column_dictionary_enabled(path.clone(), false)
            .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
    }
    let mut file = SerializedFileWriter::new(to, Arc::new(schema), Arc::new(properties.build()))?;
    let mut rows = rows.peekable();
    while rows.peek().is_some() {
        let group: Vec<R> = rows.by_ref().take(ROW_GROUP).collect();
        let mut writer = file.next_row_group()?;
        for column in columns {
            let Some(mut into) = writer.next_column()? else {
                break;
            };
            column.write(&group, &mut into)?;
            into.close()?;
        }
        writer.close()?;
    }
    file.close()?;
    Ok(())
}
