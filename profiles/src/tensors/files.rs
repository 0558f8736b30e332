//! The files of a document: written, and read again.

use std::path::Path;

use super::document::{TENSORS_JSON, TensorsDocument};
use super::records::{
    ANSWERS, AnswerRecord, CROSSINGS, CrossingRecord, PACKED, PackedRecord, TENSORS, TensorRecord,
    ZEROS, ZeroRecord,
};
use super::{TENSORS_FORMAT, TENSORS_VERSION, TensorsHeader};
use crate::document::{Origin, write_files};
use crate::folder::{FolderError, FolderFormat, FolderReading, hashes, table_file};

const FORMAT: FolderFormat = FolderFormat {
    json: TENSORS_JSON,
    name: TENSORS_FORMAT,
    version: TENSORS_VERSION,
    what: "measurement of layerlab tensors",
    described: "docs/edge.md",
};

impl TensorsDocument {
    /// Writes the files into the existing, empty directory `dir` and waits until they are on the disk. To publish, write
    /// into a directory beside the final place and rename that.
    ///
    /// # Errors
    /// When something is there already, or a file cannot be written.
    pub fn write(&self, dir: &Path) -> Result<(), FolderError> {
        let header = &self.header;
        let tensors = self.tensors.iter();
        let tensors = tensors.map(|row| TensorRecord::of(row, header));
        let zeros = self.zeros.iter().map(|row| ZeroRecord::of(row, header));
        let packed = self.packed.iter().map(|row| PackedRecord::of(row, header));
        let answers = self.answers.iter();
        let answers = answers.map(|row| AnswerRecord::of(row, header));
        let crossings = self.crossings.iter();
        let crossings = crossings.map(|row| CrossingRecord::of(row, header));
        let mut files = vec![
            table_file(TENSORS, tensors)?,
            table_file(ZEROS, zeros)?,
            table_file(PACKED, packed)?,
            table_file(CROSSINGS, crossings)?,
            table_file(ANSWERS, answers)?,
        ];
        files.push(FORMAT.json_file(header, &hashes(&files))?);
        Ok(write_files(dir, files)?)
    }

    /// Reads the document in `dir`, and says where its files do not belong together.
    pub(super) fn read_with_contradictions(
        dir: &Path,
    ) -> Result<(TensorsDocument, Vec<String>), FolderError> {
        let (header, hashes): (TensorsHeader, _) = FORMAT.read_json(dir)?;
        let mut reading = FolderReading {
            dir,
            format: FORMAT,
            hashes,
            contradictions: Vec::new(),
        };
        let (measured, derived) = (header.origin_of_measured(), header.origin_of_derived());
        let tensors = reading.table(TENSORS, derived, |row: TensorRecord| Ok(alone(row.row()?)))?;
        let zeros = reading.table(ZEROS, measured, |row: ZeroRecord| Ok(alone(row.row())))?;
        let packed = reading.table(PACKED, measured, |row: PackedRecord| Ok(alone(row.row())))?;
        let crossings = reading.table(CROSSINGS, derived, |row: CrossingRecord| {
            Ok(alone(row.row()))
        })?;
        let answers = reading.table(ANSWERS, measured, |row: AnswerRecord| Ok(alone(row.row())))?;
        let contradictions = reading.contradictions;
        let document = TensorsDocument {
            header,
            zeros,
            packed,
            answers,
            tensors,
            crossings,
        };
        Ok((document, contradictions))
    }
}

/// A row of which nothing is to be compared with other files but where its numbers come from.
fn alone<T>((row, origin): (T, Origin)) -> (T, Origin, Option<String>) {
    (row, origin, None)
}
