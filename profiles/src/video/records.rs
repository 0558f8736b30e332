//! Rows as they lie on disk.

use serde::{Deserialize, Serialize};

use super::{
    FrameAnswer, FrameForm, FrameFormat, FrameRow, Half, ResolutionAccuracy, ResolutionTimes,
    VideoHeader,
};
use crate::document::{Origin, RowError, Table};
use crate::units::{Bytes, Nanos};

pub(super) const ANSWERS: Table = Table {
    file: "answers.csv",
    columns: &[
        "image",
        "split",
        "labels",
        "predicted",
        "confidence",
        "infer_ns",
        "origin",
    ],
};

pub(super) const FRAMES: Table = Table {
    file: "frames.csv",
    columns: &[
        "image",
        "width",
        "height",
        "format",
        "quality",
        "bytes",
        "resize_ns",
        "encode_ns",
        "decode_ns",
        "upscale_ns",
        "infer_ns",
        "predicted",
        "hit",
        "processor",
        "origin",
    ],
};

pub(super) const ACCURACIES: Table = Table {
    file: "resolution_accuracy.csv",
    columns: &[
        "model",
        "processor",
        "width",
        "height",
        "format",
        "quality",
        "answers",
        "hits",
        "score",
        "score_ci95_low",
        "score_ci95_high",
        "origin",
    ],
};

pub(super) const TIMES: Table = Table {
    file: "resolution_times.csv",
    columns: &[
        "model",
        "processor",
        "width",
        "height",
        "format",
        "quality",
        "batch",
        "frames",
        "bytes_median",
        "prepare_median_ns",
        "prepare_ci95_low_ns",
        "prepare_ci95_high_ns",
        "serve_median_ns",
        "serve_ci95_low_ns",
        "serve_ci95_high_ns",
        "origin",
    ],
};

#[derive(Serialize, Deserialize)]
pub(super) struct AnswerRecord {
    image: u64,
    split: Half,
    labels: String,
    predicted: Option<u32>,
    confidence: f64,
    infer_ns: Nanos,
    pub(super) origin: Origin,
}

impl From<(&FrameAnswer, &VideoHeader)> for AnswerRecord {
    fn from((answer, header): (&FrameAnswer, &VideoHeader)) -> Self {
        let labels: Vec<String> = answer.labels.iter().map(ToString::to_string).collect();
        AnswerRecord {
            image: answer.image,
            split: answer.half,
            labels: labels.join(";"),
            predicted: answer.predicted,
            confidence: answer.confidence,
            infer_ns: answer.infer,
            origin: header.origin_of_times(),
        }
    }
}

impl AnswerRecord {
    /// The answer, whose scores are in a file of their own.
    pub(super) fn answer(self) -> Result<FrameAnswer, RowError> {
        let labels = self.labels.split(';').filter(|label| !label.is_empty());
        let labels: Result<Vec<u32>, _> = labels.map(str::parse).collect();
        Ok(FrameAnswer {
            image: self.image,
            half: self.split,
            labels: labels.map_err(|error| RowError::Field {
                column: "labels".to_owned(),
                reason: error.to_string(),
            })?,
            predicted: self.predicted,
            confidence: self.confidence,
            infer: self.infer_ns,
            scores: Vec::new(),
        })
    }
}

fn form(
    width: u32,
    height: u32,
    format: FrameFormat,
    quality: Option<u8>,
) -> Result<FrameForm, RowError> {
    let form = FrameForm {
        width,
        height,
        format,
        quality,
    };
    let fit = form.refuse_unfit();
    fit.map_err(|bad| RowError::Word(bad.to_string()))?;
    Ok(form)
}

#[derive(Serialize, Deserialize)]
pub(super) struct FrameRecord {
    image: u64,
    width: u32,
    height: u32,
    format: FrameFormat,
    quality: Option<u8>,
    bytes: Bytes,
    resize_ns: Nanos,
    encode_ns: Nanos,
    decode_ns: Nanos,
    upscale_ns: Nanos,
    infer_ns: Nanos,
    predicted: Option<u32>,
    hit: bool,
    pub(super) processor: String,
    pub(super) origin: Origin,
}

impl From<(&FrameRow, &VideoHeader)> for FrameRecord {
    fn from((frame, header): (&FrameRow, &VideoHeader)) -> Self {
        FrameRecord {
            image: frame.image,
            width: frame.form.width,
            height: frame.form.height,
            format: frame.form.format,
            quality: frame.form.quality,
            bytes: frame.bytes,
            resize_ns: frame.resize,
            encode_ns: frame.encode,
            decode_ns: frame.decode,
            upscale_ns: frame.upscale,
            infer_ns: frame.infer,
            predicted: frame.predicted,
            hit: frame.hit,
            processor: header.processor.name.clone(),
            origin: header.origin_of_times(),
        }
    }
}

impl FrameRecord {
    pub(super) fn frame(self) -> Result<FrameRow, RowError> {
        Ok(FrameRow {
            image: self.image,
            form: form(self.width, self.height, self.format, self.quality)?,
            bytes: self.bytes,
            resize: self.resize_ns,
            encode: self.encode_ns,
            decode: self.decode_ns,
            upscale: self.upscale_ns,
            infer: self.infer_ns,
            predicted: self.predicted,
            hit: self.hit,
        })
    }
}

#[derive(Serialize, Deserialize)]
pub(super) struct AccuracyRecord {
    model: String,
    pub(super) processor: String,
    width: u32,
    height: u32,
    format: FrameFormat,
    quality: Option<u8>,
    answers: u64,
    hits: u64,
    score: f64,
    score_ci95_low: f64,
    score_ci95_high: f64,
    pub(super) origin: Origin,
}

impl From<(&ResolutionAccuracy, &VideoHeader)> for AccuracyRecord {
    fn from((row, header): (&ResolutionAccuracy, &VideoHeader)) -> Self {
        AccuracyRecord {
            model: header.model.name.clone(),
            processor: header.processor.name.clone(),
            width: row.form.width,
            height: row.form.height,
            format: row.form.format,
            quality: row.form.quality,
            answers: row.answers,
            hits: row.hits,
            score: row.score,
            score_ci95_low: row.ci95.0,
            score_ci95_high: row.ci95.1,
            origin: header.origin_of_derived(),
        }
    }
}

impl AccuracyRecord {
    pub(super) fn row(self) -> Result<ResolutionAccuracy, RowError> {
        Ok(ResolutionAccuracy {
            form: form(self.width, self.height, self.format, self.quality)?,
            answers: self.answers,
            hits: self.hits,
            score: self.score,
            ci95: (self.score_ci95_low, self.score_ci95_high),
        })
    }
}

#[derive(Serialize, Deserialize)]
pub(super) struct TimesRecord {
    model: String,
    pub(super) processor: String,
    width: u32,
    height: u32,
    format: FrameFormat,
    quality: Option<u8>,
    batch: u32,
    frames: u64,
    bytes_median: Bytes,
    prepare_median_ns: Nanos,
    prepare_ci95_low_ns: Option<Nanos>,
    prepare_ci95_high_ns: Option<Nanos>,
    serve_median_ns: Nanos,
    serve_ci95_low_ns: Option<Nanos>,
    serve_ci95_high_ns: Option<Nanos>,
    pub(super) origin: Origin,
}

impl From<(&ResolutionTimes, &VideoHeader)> for TimesRecord {
    fn from((row, header): (&ResolutionTimes, &VideoHeader)) -> Self {
        TimesRecord {
            model: header.model.name.clone(),
            processor: header.processor.name.clone(),
            width: row.form.width,
            height: row.form.height,
            format: row.form.format,
            quality: row.form.quality,
            batch: 1,
            frames: row.frames,
            bytes_median: row.bytes,
            prepare_median_ns: row.prepare,
            prepare_ci95_low_ns: row.prepare_ci95.map(|(low, _)| low),
            prepare_ci95_high_ns: row.prepare_ci95.map(|(_, high)| high),
            serve_median_ns: row.serve,
            serve_ci95_low_ns: row.serve_ci95.map(|(low, _)| low),
            serve_ci95_high_ns: row.serve_ci95.map(|(_, high)| high),
            origin: header.origin_of_times(),
        }
    }
}

impl TimesRecord {
    pub(super) fn row(self) -> Result<ResolutionTimes, RowError> {
        if self.batch != 1 {
            return Err(RowError::Word(format!(
                "column batch is {}, and frames are answered one at a time",
                self.batch
            )));
        }
        Ok(ResolutionTimes {
            form: form(self.width, self.height, self.format, self.quality)?,
            frames: self.frames,
            bytes: self.bytes_median,
            prepare: self.prepare_median_ns,
            prepare_ci95: self.prepare_ci95_low_ns.zip(self.prepare_ci95_high_ns),
            serve: self.serve_median_ns,
            serve_ci95: self.serve_ci95_low_ns.zip(self.serve_ci95_high_ns),
        })
    }
}
