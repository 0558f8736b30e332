//! The files of a document: written, and read again.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::document::{TENSORS_JSON, TensorsDocument};
use super::error::TensorsDocumentError;
use super::records::{
    ANSWERS, AnswerRecord, CROSSINGS, CrossingRecord, PACKED, PackedRecord, TENSORS, TensorRecord,
    ZEROS, ZeroRecord,
};
use super::{TENSORS_FORMAT, TENSORS_VERSION, TensorsHeader};
use crate::document::{DocumentError, Origin, RowError, Table, read_file, write_files};
use crate::sha256;

/// `tensors.json` as it lies on disk.
#[derive(Serialize)]
struct TensorsJson<'a> {
    #[serde(flatten)]
    header: &'a TensorsHeader,
    /// The SHA-256 of each other file.
    files: BTreeMap<&'a str, String>,
}

/// The field of `tensors.json` that holds the hashes.
const FILES: &str = "files";

impl TensorsDocument {
    /// Writes the files into the existing, empty directory `dir` and waits until they are on the disk. To publish, write
    /// into a directory beside the final place and rename that.
    ///
    /// # Errors
    /// When something is there already, or a file cannot be written.
    pub fn write(&self, dir: &Path) -> Result<(), TensorsDocumentError> {
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
            table(TENSORS, tensors)?,
            table(ZEROS, zeros)?,
            table(PACKED, packed)?,
            table(CROSSINGS, crossings)?,
            table(ANSWERS, answers)?,
        ];
        let hashes = files.iter().map(|(file, bytes)| (*file, sha256(bytes)));
        let json = TensorsJson {
            header,
            files: hashes.collect(),
        };
        let json = serde_json::to_vec_pretty(&json);
        let mut json = json.map_err(|reason| TensorsDocumentError::Json {
            path: TENSORS_JSON.into(),
            reason,
        })?;
        json.push(b'\n');
        files.push((TENSORS_JSON, json));
        Ok(write_files(dir, files)?)
    }

    /// Reads the document in `dir`, and says where its files do not belong together.
    pub(super) fn read_with_contradictions(
        dir: &Path,
    ) -> Result<(TensorsDocument, Vec<String>), TensorsDocumentError> {
        let path = dir.join(TENSORS_JSON);
        let (header, hashes) = open(&path, &read_file(&path)?)?;
        let mut reading = Reading {
            dir,
            hashes,
            contradictions: Vec::new(),
        };
        let (measured, derived) = (header.origin_of_measured(), header.origin_of_derived());
        let tensors = reading.table(TENSORS, derived, TensorRecord::row)?;
        let zeros = reading.table(ZEROS, measured, |row: ZeroRecord| Ok(row.row()))?;
        let packed = reading.table(PACKED, measured, |row: PackedRecord| Ok(row.row()))?;
        let crossings = reading.table(CROSSINGS, derived, |row: CrossingRecord| Ok(row.row()))?;
        let answers = reading.table(ANSWERS, measured, |row: AnswerRecord| Ok(row.row()))?;
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

fn table<R: Serialize>(
    table: Table,
    rows: impl Iterator<Item = R>,
) -> Result<(&'static str, Vec<u8>), DocumentError> {
    let encoded = table.encode(rows).map_err(|reason| DocumentError::Csv {
        path: table.file.into(),
        reason,
    })?;
    Ok((table.file, encoded))
}

/// What `tensors.json` says. Its format and version are looked at before anything else of it.
fn open(
    path: &Path,
    bytes: &[u8],
) -> Result<(TensorsHeader, BTreeMap<String, String>), TensorsDocumentError> {
    let path = || path.to_owned();
    let malformed = |reason| TensorsDocumentError::Json {
        path: path(),
        reason,
    };
    let mut all: serde_json::Map<String, serde_json::Value> =
        serde_json::from_slice(bytes).map_err(malformed)?;
    if all.get("format").and_then(|it| it.as_str()) != Some(TENSORS_FORMAT) {
        return Err(TensorsDocumentError::Format { path: path() });
    }
    match all.get("version").and_then(serde_json::Value::as_u64) {
        Some(version) if version != u64::from(TENSORS_VERSION) => {
            return Err(TensorsDocumentError::Version {
                path: path(),
                version,
            });
        }
        _ => {}
    }
    let hashes = all.remove(FILES).unwrap_or_default();
    let hashes = serde_json::from_value(hashes).map_err(malformed)?;
    let header = serde_json::from_value(serde_json::Value::Object(all)).map_err(malformed)?;
    Ok((header, hashes))
}

struct Reading<'a> {
    dir: &'a Path,
    hashes: BTreeMap<String, String>,
    contradictions: Vec<String>,
}

impl Reading<'_> {
    /// A file's bytes, whose hash is compared.
    fn file(&mut self, file: &str) -> Result<Vec<u8>, DocumentError> {
        let bytes = read_file(&self.dir.join(file))?;
        if self.hashes.get(file) != Some(&sha256(&bytes)) {
            self.contradictions.push(format!(
                "{file} was changed after it was published: its SHA-256 is not the one in {TENSORS_JSON}"
            ));
        }
        Ok(bytes)
    }

    /// The rows of a table, which say where their numbers come from.
    fn table<R: DeserializeOwned, T>(
        &mut self,
        table: Table,
        origin: Origin,
        from_row: impl Fn(R) -> Result<(T, Origin), RowError>,
    ) -> Result<Vec<T>, DocumentError> {
        let bytes = self.file(table.file)?;
        let mut first = None;
        let rows = table.decode(&self.dir.join(table.file), &bytes, |row: R, line| {
            let (row, found) = from_row(row)?;
            if found != origin {
                let file = table.file;
                first.get_or_insert_with(|| {
                    format!("{file}, line {line}: the origin is {found}, not {origin}")
                });
            }
            Ok(row)
        })?;
        self.contradictions.extend(first);
        Ok(rows)
    }
}
