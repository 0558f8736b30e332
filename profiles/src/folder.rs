//! What documents beside profiles have in common, such as measured links: a folder with a JSON file, which has a header and the
//! SHA-256 of each other file, and tables.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::check::Severity;
use crate::document::{DocumentError, Origin, RowError, Table, read_file};
use crate::sha256;

/// The field of the JSON file that holds the hashes.
const FILES: &str = "files";

/// A kind of document.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FolderFormat {
    /// The name of its JSON file.
    pub(crate) json: &'static str,
    /// What is in the field `format`.
    pub(crate) name: &'static str,
    /// What is in the field `version`.
    pub(crate) version: u32,
    /// What it is, for a person.
    pub(crate) what: &'static str,
    /// Where it is described.
    pub(crate) described: &'static str,
}

/// Why a document could not be read or written. Each message is one sentence with the file in it.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// A file cannot be read, written, or is no table.
    #[error(transparent)]
    File(#[from] DocumentError),
    /// The JSON file is some other document.
    #[error("{} is no {what}: its field `format` is not \"{format}\"", path.display())]
    Format {
        /// The path of the JSON file that was read.
        path: PathBuf,
        /// What it should be.
        what: &'static str,
        /// What the field should hold.
        format: &'static str,
    },
    /// The document has a version that this program does not know.
    #[error(
        "{} has version {version} of the format {format}, of which this layerlab knows version {known}; update layerlab",
        path.display()
    )]
    Version {
        /// The path of the JSON file that was read.
        path: PathBuf,
        /// Its format.
        format: &'static str,
        /// The version that it states.
        version: u64,
        /// The version that is known.
        known: u32,
    },
    /// The JSON file lacks a field, has an unknown one or is no JSON.
    #[error("{} is not as {described} says: {reason}", path.display())]
    Json {
        /// The path of the JSON file that was read.
        path: PathBuf,
        /// Where it is described.
        described: &'static str,
        /// The field and the place.
        reason: serde_json::Error,
    },
}

impl FolderFormat {
    /// The JSON file as it lies on disk.
    pub(crate) fn json_file(
        &self,
        header: &impl Serialize,
        files: &impl Serialize,
    ) -> Result<(&'static str, Vec<u8>), FolderError> {
        #[derive(Serialize)]
        struct Json<'a, H, F> {
            #[serde(flatten)]
            header: &'a H,
            /// The SHA-256 of each other file.
            files: &'a F,
        }
        let encoded = serde_json::to_vec_pretty(&Json { header, files });
        let mut bytes = encoded.map_err(|reason| self.malformed(self.json.into(), reason))?;
        bytes.push(b'\n');
        Ok((self.json, bytes))
    }

    /// What the JSON file in `dir` says, and the hashes. Its format and version are looked at before anything else of it.
    pub(crate) fn read_json<H: DeserializeOwned, F: for<'de> Deserialize<'de>>(
        &self,
        dir: &Path,
    ) -> Result<(H, F), FolderError> {
        let path = dir.join(self.json);
        let bytes = read_file(&path)?;
        let malformed = |reason| self.malformed(path.clone(), reason);
        let mut all: serde_json::Map<String, serde_json::Value> =
            serde_json::from_slice(&bytes).map_err(malformed)?;
        if all.get("format").and_then(|it| it.as_str()) != Some(self.name) {
            return Err(FolderError::Format {
                path,
                what: self.what,
                format: self.name,
            });
        }
        let version = all.get("version").and_then(serde_json::Value::as_u64);
        if let Some(version) = version.filter(|&version| version != u64::from(self.version)) {
            return Err(FolderError::Version {
                path,
                format: self.name,
                version,
                known: self.version,
            });
        }
        let hashes = all.remove(FILES).unwrap_or_default();
        let hashes = serde_json::from_value(hashes).map_err(malformed)?;
        let header = serde_json::from_value(serde_json::Value::Object(all)).map_err(malformed)?;
        Ok((header, hashes))
    }

    fn malformed(&self, path: PathBuf, reason: serde_json::Error) -> FolderError {
        FolderError::Json {
            path,
            described: self.described,
            reason,
        }
    }
}

/// The hashes of files that are to be written, by name.
pub(crate) fn hashes<'a>(files: &[(&'a str, Vec<u8>)]) -> BTreeMap<&'a str, String> {
    let hashes = files.iter().map(|(file, bytes)| (*file, sha256(bytes)));
    hashes.collect()
}

/// A table with these rows as a file.
pub(crate) fn table_file<R: Serialize>(
    table: Table,
    rows: impl Iterator<Item = R>,
) -> Result<(&'static str, Vec<u8>), DocumentError> {
    let encoded = table.encode(rows).map_err(|reason| DocumentError::Csv {
        path: table.file.into(),
        reason,
    })?;
    Ok((table.file, encoded))
}

/// The files of a document being read, and where they do not belong together.
pub(crate) struct FolderReading<'a> {
    pub(crate) dir: &'a Path,
    pub(crate) format: FolderFormat,
    pub(crate) hashes: BTreeMap<String, String>,
    pub(crate) contradictions: Vec<String>,
}

impl FolderReading<'_> {
    /// A file's bytes, whose hash is compared.
    pub(crate) fn file(&mut self, file: &str) -> Result<Vec<u8>, DocumentError> {
        let bytes = read_file(&self.dir.join(file))?;
        if self.hashes.get(file) != Some(&sha256(&bytes)) {
            self.contradictions.push(format!(
                "{file} was changed after it was published: its SHA-256 is not the one in {}",
                self.format.json
            ));
        }
        Ok(bytes)
    }

    /// The rows of a table, each with where its numbers come from and what else is wrong with it.
    pub(crate) fn table<R: DeserializeOwned, T>(
        &mut self,
        table: Table,
        origin: Origin,
        from_row: impl Fn(R) -> Result<(T, Origin, Option<String>), RowError>,
    ) -> Result<Vec<T>, DocumentError> {
        let file = table.file;
        let bytes = self.file(file)?;
        let mut first = None;
        let rows = table.decode(&self.dir.join(file), &bytes, |row: R, line| {
            let (row, found, other) = from_row(row)?;
            let wrong = match found == origin {
                true => other,
                false => Some(format!("the origin is {found}, not {origin}")),
            };
            if let Some(wrong) = wrong {
                first.get_or_insert_with(|| format!("{file}, line {line}: {wrong}"));
            }
            Ok(row)
        })?;
        self.contradictions.extend(first);
        Ok(rows)
    }
}

/// One doubt about a document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FolderFinding {
    /// How bad it is.
    pub severity: Severity,
    /// What was found, in one sentence without a full stop.
    pub sentence: String,
    /// What to do about it, in one sentence without a full stop.
    pub remedy: &'static str,
}

impl FolderFinding {
    /// What no sound document has.
    pub(crate) fn error(sentence: String) -> FolderFinding {
        FolderFinding {
            severity: Severity::Error,
            sentence,
            remedy: "get it again from where it was published, or measure again",
        }
    }

    /// What may be so and is to be known.
    pub(crate) fn warning(sentence: String, remedy: &'static str) -> FolderFinding {
        FolderFinding {
            severity: Severity::Warning,
            sentence,
            remedy,
        }
    }
}

impl fmt::Display for FolderFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.severity, self.sentence, self.remedy)
    }
}
