//! A measured link's files: written, and read again.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::document::{LINK_JSON, LinkDocument};
use super::records::{LINKS, LinkRecord, SAMPLES, SampleRecord, Says, TRACES, TraceRecord};
use super::{LINK_FORMAT, LINK_VERSION, LinkHeader, LinkRow, LinkSample, TraceInterval};
use crate::document::{DocumentError, Table, read_file, write_files};
use crate::folder::{FolderError, FolderFormat, table_file};
use crate::sha256;

const FORMAT: FolderFormat = FolderFormat {
    json: LINK_JSON,
    name: LINK_FORMAT,
    version: LINK_VERSION,
    what: "measured link",
    described: "docs/edge.md",
};

/// The SHA-256 of each table.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Hashes {
    links: String,
    link_samples: String,
    link_traces: String,
}

impl LinkDocument {
    /// Writes the files into the existing, empty directory `dir` and waits until they are on the disk. To publish, write
    /// into a directory beside the final place and rename that.
    ///
    /// # Errors
    /// When something is there already, or a file cannot be written.
    pub fn write(&self, dir: &Path) -> Result<(), FolderError> {
        Ok(write_files(dir, self.to_files()?)?)
    }

    fn to_files(&self) -> Result<[(&'static str, Vec<u8>); 4], FolderError> {
        let header = &self.header;
        let links = self.rows.iter().map(|row| LinkRecord::from((row, header)));
        let links = table_file(LINKS, links)?;
        let samples = self.samples.iter();
        let samples = samples.map(|sample| SampleRecord::from((sample, header)));
        let samples = table_file(SAMPLES, samples)?;
        let traces = self.traces.iter();
        let traces = traces.map(|trace| TraceRecord::from((trace, header)));
        let traces = table_file(TRACES, traces)?;
        let hashes = Hashes {
            links: sha256(&links.1),
            link_samples: sha256(&samples.1),
            link_traces: sha256(&traces.1),
        };
        let json = FORMAT.json_file(header, &hashes)?;
        Ok([links, samples, traces, json])
    }

    /// Reads the document in `dir`, and says where its files do not belong together.
    pub(super) fn read_with_contradictions(
        dir: &Path,
    ) -> Result<(LinkDocument, Vec<String>), FolderError> {
        let (header, hashes): (LinkHeader, Hashes) = FORMAT.read_json(dir)?;
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
