//! The files of a document: written, and read again.

use std::path::Path;

use super::document::{SCORES_FILE, VIDEO_JSON, VideoDocument};
use super::error::VideoDocumentError;
use super::records::{
    ACCURACIES, ANSWERS, AccuracyRecord, AnswerRecord, FRAMES, FrameRecord, TIMES, TimesRecord,
};
use super::{FrameAnswer, VIDEO_FORMAT, VIDEO_VERSION, VideoHeader};
use crate::document::write_files;
use crate::folder::{FolderError, FolderFormat, FolderReading, hashes, table_file};

const FORMAT: FolderFormat = FolderFormat {
    json: VIDEO_JSON,
    name: VIDEO_FORMAT,
    version: VIDEO_VERSION,
    what: "measurement of layerlab video",
    described: "docs/video.md",
};

impl VideoDocument {
    /// Writes the files into the existing, empty directory `dir` and waits until they are on the disk. To publish, write
    /// into a directory beside the final place and rename that.
    ///
    /// # Errors
    /// When something is there already, or a file cannot be written.
    pub fn write(&self, dir: &Path) -> Result<(), FolderError> {
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
            table_file(ANSWERS, answers)?,
            (
                SCORES_FILE,
                scores.flat_map(|score| score.to_le_bytes()).collect(),
            ),
            table_file(FRAMES, frames)?,
            table_file(ACCURACIES, accuracies)?,
            table_file(TIMES, times)?,
        ];
        files.push(FORMAT.json_file(header, &hashes(&files))?);
        Ok(write_files(dir, files)?)
    }

    /// Reads the document in `dir`, and says where its files do not belong together.
    pub(super) fn read_with_contradictions(
        dir: &Path,
    ) -> Result<(VideoDocument, Vec<String>), VideoDocumentError> {
        let (header, hashes): (VideoHeader, _) = FORMAT.read_json(dir)?;
        let mut reading = FolderReading {
            dir,
            format: FORMAT,
            hashes,
            contradictions: Vec::new(),
        };
        let expected = &header.processor.name;
        let other = |processor: String| {
            let is_other = processor != *expected;
            is_other.then(|| format!("the processor is {processor}, not {expected}"))
        };
        let (times, derived) = (header.origin_of_times(), header.origin_of_derived());
        let mut answers = reading.table(ANSWERS, times, |row: AnswerRecord| {
            let origin = row.origin;
            Ok((row.answer()?, origin, None))
        })?;
        read_scores(&mut reading, &header, &mut answers)?;
        let frames = reading.table(FRAMES, times, |row: FrameRecord| {
            let (origin, processor) = (row.origin, row.processor.clone());
            Ok((row.frame()?, origin, other(processor)))
        })?;
        let accuracies = reading.table(ACCURACIES, derived, |row: AccuracyRecord| {
            let (origin, processor) = (row.origin, row.processor.clone());
            Ok((row.row()?, origin, other(processor)))
        })?;
        let times = reading.table(TIMES, times, |row: TimesRecord| {
            let (origin, processor) = (row.origin, row.processor.clone());
            Ok((row.row()?, origin, other(processor)))
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

/// Gives each answer its scores.
fn read_scores(
    reading: &mut FolderReading<'_>,
    header: &VideoHeader,
    answers: &mut [FrameAnswer],
) -> Result<(), VideoDocumentError> {
    let bytes = reading.file(SCORES_FILE).map_err(FolderError::from)?;
    let classes = header.set.classes.len();
    let expected = answers.len().saturating_mul(classes).saturating_mul(4);
    if bytes.len() != expected {
        return Err(VideoDocumentError::Scores {
            path: reading.dir.join(SCORES_FILE),
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
