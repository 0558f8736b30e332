//! The files of a document: written, and read again.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::document::{SCORES_FILE, VIDEO_JSON, VideoDocument};
use super::error::VideoDocumentError;
use super::records::{
    ACCURACIES, ANSWERS, AccuracyRecord, AnswerRecord, FRAMES, FrameRecord, TIMES, TimesRecord,
};
use super::{FrameAnswer, VIDEO_FORMAT, VIDEO_VERSION, VideoHeader};
use crate::document::{DocumentError, Origin, RowError, Table, read_file, write_files};
use crate::sha256;

/// `video.json` as it lies on disk.
#[derive(Serialize)]
struct VideoJson<'a> {
    #[serde(flatten)]
    header: &'a VideoHeader,
    /// The SHA-256 of each other file.
    files: BTreeMap<&'a str, String>,
}

/// The field of `video.json` that holds the hashes.
const FILES: &str = "files";

impl VideoDocument {
    /// Writes the files into the existing, empty directory `dir` and waits until they are on the disk. To publish, write
    /// into a directory beside the final place and rename that.
    ///
    /// # Errors
    /// When something is there already, or a file cannot be written.
    pub fn write(&self, dir: &Path) -> Result<(), VideoDocumentError> {
        let header = &self.header;
        let scores = self.answers.iter().flat_map(|answer| &answer.scores);
        let answers = self.answers.iter();
        let answers = answers.map(|answer| AnswerRecord::from((answer, header)));
        let frames = self.frames.iter();
        let frames = frames.map(|frame| FrameRecord::from((frame, header)));
        let accuracies = self.accuracies.iter();
        let accuracies = accuracies.map(|row| AccuracyRecord::from((row, header)));
        let times = self.times.iter();
        let times = times.map(|row| TimesRecord::from((row, header)));
        let mut files = vec![
            table(ANSWERS, answers)?,
            (
                SCORES_FILE,
                scores.flat_map(|score| score.to_le_bytes()).collect(),
            ),
            table(FRAMES, frames)?,
            table(ACCURACIES, accuracies)?,
            table(TIMES, times)?,
        ];
        let hashes = files.iter().map(|(file, bytes)| (*file, sha256(bytes)));
        let json = VideoJson {
            header,
            files: hashes.collect(),
        };
        let json = serde_json::to_vec_pretty(&json);
        let mut json = json.map_err(|reason| VideoDocumentError::Json {
            path: VIDEO_JSON.into(),
            reason,
        })?;
        json.push(b'\n');
        files.push((VIDEO_JSON, json));
        Ok(write_files(dir, files)?)
    }

    /// Reads the document in `dir`, and says where its files do not belong together.
    pub(super) fn read_with_contradictions(
        dir: &Path,
    ) -> Result<(VideoDocument, Vec<String>), VideoDocumentError> {
        let path = dir.join(VIDEO_JSON);
        let (header, hashes) = open(&path, &read_file(&path)?)?;
        let mut reading = Reading {
            dir,
            header: &header,
            hashes,
            contradictions: Vec::new(),
        };
        let (times, derived) = (header.origin_of_times(), header.origin_of_derived());
        let mut answers = reading.table(ANSWERS, times, |row: AnswerRecord| {
            let origin = row.origin;
            Ok((row.answer()?, origin, None))
        })?;
        reading.scores(&mut answers)?;
        let frames = reading.table(FRAMES, times, |row: FrameRecord| {
            let (origin, processor) = (row.origin, row.processor.clone());
            Ok((row.frame()?, origin, Some(processor)))
        })?;
        let accuracies = reading.table(ACCURACIES, derived, |row: AccuracyRecord| {
            let (origin, processor) = (row.origin, row.processor.clone());
            Ok((row.row()?, origin, Some(processor)))
        })?;
        let times = reading.table(TIMES, times, |row: TimesRecord| {
            let (origin, processor) = (row.origin, row.processor.clone());
            Ok((row.row()?, origin, Some(processor)))
        })?;
        let contradictions = reading.contradictions;
        let document = VideoDocument {
            header,
            answers,
            frames,
            accuracies,
            times,
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

/// What `video.json` says. Its format and version are looked at before anything else of it.
fn open(
    path: &Path,
    bytes: &[u8],
) -> Result<(VideoHeader, BTreeMap<String, String>), VideoDocumentError> {
    let path = || path.to_owned();
    let malformed = |reason| VideoDocumentError::Json {
        path: path(),
        reason,
    };
    let mut all: serde_json::Map<String, serde_json::Value> =
        serde_json::from_slice(bytes).map_err(malformed)?;
    if all.get("format").and_then(|it| it.as_str()) != Some(VIDEO_FORMAT) {
        return Err(VideoDocumentError::Format { path: path() });
    }
    match all.get("version").and_then(serde_json::Value::as_u64) {
        Some(version) if version != u64::from(VIDEO_VERSION) => {
            return Err(VideoDocumentError::Version {
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
    header: &'a VideoHeader,
    hashes: BTreeMap<String, String>,
    contradictions: Vec<String>,
}

impl Reading<'_> {
    /// A file's bytes, whose hash is compared.
    fn file(&mut self, file: &str) -> Result<Vec<u8>, DocumentError> {
        let bytes = read_file(&self.dir.join(file))?;
        if self.hashes.get(file) != Some(&sha256(&bytes)) {
            self.contradictions.push(format!(
                "{file} was changed after it was published: its SHA-256 is not the one in {VIDEO_JSON}"
            ));
        }
        Ok(bytes)
    }

    /// The rows of a table, which say where their numbers come from, and some of them which processor they are of.
    fn table<R: DeserializeOwned, T>(
        &mut self,
        table: Table,
        origin: Origin,
        from_row: impl Fn(R) -> Result<(T, Origin, Option<String>), RowError>,
    ) -> Result<Vec<T>, DocumentError> {
        let bytes = self.file(table.file)?;
        let expected = &self.header.processor.name;
        let mut first = None;
        let rows = table.decode(&self.dir.join(table.file), &bytes, |row: R, line| {
            let (row, found, processor) = from_row(row)?;
            let wrong = if found != origin {
                Some(format!("the origin is {found}, not {origin}"))
            } else {
                let other = processor.filter(|processor| processor != expected);
                other.map(|other| format!("the processor is {other}, not {expected}"))
            };
            if let Some(wrong) = wrong {
                let file = table.file;
                first.get_or_insert_with(|| format!("{file}, line {line}: {wrong}"));
            }
            Ok(row)
        })?;
        self.contradictions.extend(first);
        Ok(rows)
    }

    /// Gives each answer its scores.
    fn scores(&mut self, answers: &mut [FrameAnswer]) -> Result<(), VideoDocumentError> {
        let bytes = self.file(SCORES_FILE)?;
        let classes = self.header.set.classes.len();
        let expected = answers.len().saturating_mul(classes).saturating_mul(4);
        if bytes.len() != expected {
            return Err(VideoDocumentError::Scores {
                path: self.dir.join(SCORES_FILE),
                found: bytes.len(),
                expected,
            });
        }
        let (scores, _) = bytes.as_chunks::<4>();
        let mut scores = scores.iter().map(|four| f32::from_le_bytes(*four));
        for answer in answers {
            answer.scores = scores.by_ref().take(classes).collect();
        }
        Ok(())
    }
}
