//! A measured link's files: written, and read again.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::document::{LINK_JSON, LinkDocument};
use super::error::LinkDocumentError;
use super::records::{LINKS, LinkRecord, SAMPLES, SampleRecord, Says, TRACES, TraceRecord};
use super::{LINK_FORMAT, LINK_VERSION, LinkHeader, LinkRow, LinkSample, TraceInterval};
use crate::document::{DocumentError, Table, read_file, write_files};
use crate::sha256;

/// `link.json` as it lies on disk.
#[derive(Serialize)]
struct LinkJson<'a> {
    #[serde(flatten)]
    header: &'a LinkHeader,
    files: &'a Hashes,
}

/// The SHA-256 of each table.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Hashes {
    links: String,
    link_samples: String,
    link_traces: String,
}

/// The field of `link.json` that holds them.
const FILES: &str = "files";

impl LinkDocument {
    /// Writes the files into the existing, empty directory `dir` and waits until they are on the disk. To publish, write
    /// into a directory beside the final place and rename that.
    ///
    /// # Errors
    /// When something is there already, or a file cannot be written.
    pub fn write(&self, dir: &Path) -> Result<(), LinkDocumentError> {
        Ok(write_files(dir, self.to_files()?)?)
    }

    fn to_files(&self) -> Result<[(&'static str, Vec<u8>); 4], LinkDocumentError> {
        let header = &self.header;
        let links = self.rows.iter().map(|row| LinkRecord::from((row, header)));
        let links = table(LINKS, LINKS.encode(links))?;
        let samples = self.samples.iter();
        let samples = samples.map(|sample| SampleRecord::from((sample, header)));
        let samples = table(SAMPLES, SAMPLES.encode(samples))?;
        let traces = self.traces.iter();
        let traces = traces.map(|trace| TraceRecord::from((trace, header)));
        let traces = table(TRACES, TRACES.encode(traces))?;
        let hashes = Hashes {
            links: sha256(&links),
            link_samples: sha256(&samples),
            link_traces: sha256(&traces),
        };
        let json = json(header, &hashes).map_err(|reason| LinkDocumentError::Json {
            path: LINK_JSON.into(),
            reason,
        })?;
        Ok([
            (LINKS.file, links),
            (SAMPLES.file, samples),
            (TRACES.file, traces),
            (LINK_JSON, json),
        ])
    }

    /// Reads the document in `dir`, and says where its files do not belong together.
    pub(super) fn read_with_contradictions(
        dir: &Path,
    ) -> Result<(LinkDocument, Vec<String>), LinkDocumentError> {
        let path = dir.join(LINK_JSON);
        let (header, hashes) = open(&path, &read_file(&path)?)?;
        let mut reading = Reading {
            dir,
            header: &header,
            contradictions: Vec::new(),
        };
        let rows = reading.table(LINKS, &hashes.links, |row: LinkRecord<'_>| {
            let says = row.says();
            let kind = (row.kind != header.kind).then(|| {
                format!(
                    "the kind is {}, but {} in {LINK_JSON}",
                    row.kind, header.kind
                )
            });
            Ok((LinkRow::try_from(row)?, says, header.origin_of_rows(), kind))
        })?;
        let of_samples = header.origin_of_samples();
        let samples = reading.table(SAMPLES, &hashes.link_samples, |row: SampleRecord<'_>| {
            let says = row.says();
            Ok((LinkSample::from(row), says, of_samples, None))
        })?;
        let traces = reading.table(TRACES, &hashes.link_traces, |row: TraceRecord<'_>| {
            let says = row.says();
            Ok((TraceInterval::from(row), says, of_samples, None))
        })?;
        let contradictions = reading.contradictions;
        let document = LinkDocument {
            header,
            rows,
            samples,
            traces,
        };
        Ok((document, contradictions))
    }
}

fn json(header: &LinkHeader, files: &Hashes) -> Result<Vec<u8>, serde_json::Error> {
    let mut bytes = serde_json::to_vec_pretty(&LinkJson { header, files })?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// What `link.json` says. Its format and version are looked at before anything else of it.
fn open(path: &Path, bytes: &[u8]) -> Result<(LinkHeader, Hashes), LinkDocumentError> {
    let malformed = |reason| LinkDocumentError::Json {
        path: path.to_owned(),
        reason,
    };
    let mut all: serde_json::Map<String, serde_json::Value> =
        serde_json::from_slice(bytes).map_err(malformed)?;
    if all.get("format").and_then(|it| it.as_str()) != Some(LINK_FORMAT) {
        return Err(LinkDocumentError::Format {
            path: path.to_owned(),
        });
    }
    let version = all.get("version").and_then(serde_json::Value::as_u64);
    if let Some(version) = version.filter(|&version| version != u64::from(LINK_VERSION)) {
        return Err(LinkDocumentError::Version {
            path: path.to_owned(),
            version,
        });
    }
    let hashes = all.remove(FILES).unwrap_or_default();
    let hashes = serde_json::from_value(hashes).map_err(malformed)?;
    let header = serde_json::from_value(serde_json::Value::Object(all)).map_err(malformed)?;
    Ok((header, hashes))
}

fn table(table: Table, encoded: Result<Vec<u8>, csv::Error>) -> Result<Vec<u8>, DocumentError> {
    encoded.map_err(|reason| DocumentError::Csv {
        path: table.file.into(),
        reason,
    })
}

struct Reading<'a> {
    dir: &'a Path,
    header: &'a LinkHeader,
    contradictions: Vec<String>,
}

/// A row with what it says of the document, where its numbers should come from, and what else is wrong.
type Read<T> = (T, Says, crate::document::Origin, Option<String>);

impl Reading<'_> {
    fn table<R: serde::de::DeserializeOwned, T>(
        &mut self,
        table: Table,
        hash: &str,
        from_row: impl Fn(R) -> Result<Read<T>, crate::document::RowError>,
    ) -> Result<Vec<T>, DocumentError> {
        let path = self.dir.join(table.file);
        let bytes = read_file(&path)?;
        let file = table.file;
        if sha256(&bytes) != hash {
            self.contradictions.push(format!(
                "{file} was changed after the link was published: its SHA-256 is not the one in {LINK_JSON}"
            ));
        }
        let mut first = None;
        let rows = table.decode(&path, &bytes, |row: R, line| {
            let (row, says, origin, other) = from_row(row)?;
            let wrong = if says.link != self.header.name {
                Some(format!("the link is another one than that of {LINK_JSON}"))
            } else if says.origin != origin {
                Some(format!(
                    "the origin is {}, but {origin} according to {LINK_JSON}",
                    says.origin
                ))
            } else {
                other
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
