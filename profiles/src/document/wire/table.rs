//! One CSV table: its columns in the first row, then rows of one type.

use std::path::Path;

use csv::{ErrorKind, ReaderBuilder, StringRecord, WriterBuilder};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::document::{DocumentError, RowError};

/// A table's file and its columns, in the order of the row type's fields.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Table {
    pub(crate) file: &'static str,
    pub(crate) columns: &'static [&'static str],
}

impl Table {
    /// The file's bytes.
    pub(crate) fn encode<R: Serialize>(
        &self,
        rows: impl Iterator<Item = R>,
    ) -> Result<Vec<u8>, csv::Error> {
        // The columns are written here and not by the library, which writes none when there are no rows.
        let mut writer = WriterBuilder::new()
            .has_headers(false)
            .from_writer(Vec::new());
        writer.write_record(self.columns)?;
        for row in rows {
            writer.serialize(row)?;
        }
        writer
            .into_inner()
            .map_err(|error| csv::Error::from(error.into_error()))
    }

    /// The rows in a file's bytes, each with the line on which it starts.
    pub(crate) fn decode<R: DeserializeOwned, T>(
        &self,
        path: &Path,
        bytes: &[u8],
        mut from_row: impl FnMut(R, u64) -> Result<T, RowError>,
    ) -> Result<Vec<T>, DocumentError> {
        let mut reader = ReaderBuilder::new().has_headers(false).from_reader(bytes);
        let mut record = StringRecord::new();
        let mut next = |record: &mut StringRecord| {
            reader
                .read_record(record)
                .map_err(|reason| DocumentError::Csv {
                    path: path.to_owned(),
                    reason,
                })
        };
        next(&mut record)?;
        self.refuse_other_columns(path, &record)?;
        let mut rows = Vec::new();
        while next(&mut record)? {
            let line = record.position().map_or(0, csv::Position::line);
            // Columns are matched by place: the check above has shown that all are there, in order.
            let row = record
                .deserialize(None)
                .map_err(|error| self.field_error(error))
                .and_then(|row| from_row(row, line))
                .map_err(|reason| DocumentError::Row {
                    path: path.to_owned(),
                    line,
                    reason,
                })?;
            rows.push(row);
        }
        Ok(rows)
    }

    /// Whether a file's bytes begin with these columns.
    pub(crate) fn has_columns(&self, bytes: &[u8]) -> bool {
        let first = bytes.split(|&byte| byte == b'\n').next();
        first.is_some_and(|first| first.trim_ascii_end() == self.columns.join(",").as_bytes())
    }

    fn refuse_other_columns(&self, path: &Path, first: &StringRecord) -> Result<(), DocumentError> {
        let places = first.len().max(self.columns.len());
        let wrong = (0..places).find(|&place| first.get(place) != self.columns.get(place).copied());
        wrong.map_or(Ok(()), |place| {
            Err(DocumentError::Column {
                path: path.to_owned(),
                place: place + 1,
                found: first.get(place).map(str::to_owned),
                expected: self.columns.get(place).map(|&name| name.to_owned()),
            })
        })
    }

    fn field_error(&self, error: csv::Error) -> RowError {
        let ErrorKind::Deserialize { err, .. } = error.kind() else {
            return RowError::Word(error.to_string());
        };
        let reason = err.kind().to_string();
        match err.field().and_then(|at| self.columns.get(at as usize)) {
            Some(&column) => RowError::Field {
                column: column.to_owned(),
                reason,
            },
            // The library does not say in which field a word is unknown, but it names the words.
            None => RowError::Word(reason),
        }
    }
}

/// Asserts in a test that a row type's fields are its table's columns, in order.
#[cfg(test)]
pub(crate) fn assert_columns_are_fields(table: Table, row: impl Serialize) {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.serialize(row).expect("a row of plain fields");
    let bytes = writer.into_inner().expect("a vector takes all");
    let text = String::from_utf8(bytes).expect("fields in UTF-8");
    assert_eq!(
        text.lines().next(),
        Some(table.columns.join(",").as_str()),
        "{}",
        table.file
    );
}
