//! Metrics: from a network's answer and what is true to a tally.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use super::bad_answer::{BadAnswer, shapes_text};
use super::decoder::Decoder;
use super::detection::{self, Rules, decode_grid};
use super::{Tally, Truth, pixels};

/// How answers are judged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "type", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Metric {
    /// One class for each image: right when the true one is among the `k` with the largest values.
    TopK {
        /// 1, 5 …
        k: u32,
    },
    /// Any number of classes for each image: those whose value is at least `threshold` are found.
    MultiLabel {
        /// 0.5 for probabilities.
        threshold: f32,
    },
    /// Objects and their boxes, as YOLO (version 1) answers: for each cell of a grid, row by row, the
    /// classes' probabilities; then for each cell each box's confidence; then for each cell and box x and y
    /// of its centre relative to the cell, and the square roots of its width and height relative to the image.
    Detection {
        /// Cells along each side.
        grid: u32,
        /// Boxes of each cell.
        boxes: u32,
        /// A box counts when confidence times class probability is at least this.
        threshold: f32,
        /// Of boxes of one class that overlap by more than this (intersection over union), the best stays.
        suppress_above: f32,
        /// A box finds an object of its class that it overlaps by at least this.
        match_at_least: f32,
    },
    /// Objects and their boxes, as later detectors answer.
    DecodedDetection {
        /// The form of the answer.
        decoder: Decoder,
        /// A box counts when its score is at least this.
        threshold: f32,
        /// Of boxes of one class that overlap by more than this (intersection over union), the best stays.
        suppress_above: f32,
        /// A box finds an object of its class that it overlaps by at least this.
        match_at_least: f32,
    },
    /// One class for each pixel, by an answer of 1 x classes x height x width: the share of pixels whose largest value is that
    /// of the true class.
    PixelAccuracy {
        /// The answer's width.
        width: u32,
        /// The answer's height.
        height: u32,
    },
    /// Pairs of images: the same when the cosine similarity of the two answers is at least `threshold`.
    Verification {
        /// From -1 to 1.
        threshold: f32,
    },
}

impl Metric {
    /// How many images one answer takes: two for pairs.
    pub fn images_per_answer(&self) -> usize {
        match self {
            Metric::Verification { .. } => 2,
            _ => 1,
        }
    }

    /// Whether answers are compared with boxes.
    pub fn judges_boxes(&self) -> bool {
        matches!(
            self,
            Metric::Detection { .. } | Metric::DecodedDetection { .. }
        )
    }

    /// Whether so many values can be one answer, with so many classes.
    ///
    /// # Errors
    /// When the metric cannot judge an answer of this length.
    pub fn accept_length(&self, classes: usize, found: usize) -> Result<(), BadAnswer> {
        let expected = match self {
            Metric::TopK { .. } | Metric::MultiLabel { .. } => classes,
            Metric::Detection { grid, boxes, .. } => {
                let (grid, boxes) = (*grid as usize, *boxes as usize);
                let each = boxes.saturating_mul(5).saturating_add(classes);
                // More than there can be is as wrong as any other length.
                grid.saturating_mul(grid).saturating_mul(each)
            }
            Metric::DecodedDetection { decoder, .. } => {
                return decoder.accept_length(classes, found);
            }
            Metric::PixelAccuracy { width, height } => {
                let pixels = (*width as usize).saturating_mul(*height as usize);
                pixels.saturating_mul(classes)
            }
            Metric::Verification { .. } => return Ok(()),
        };
        match found == expected {
            true => Ok(()),
            false => Err(BadAnswer::Length { found, expected }),
        }
    }

    /// Whether a network whose outputs have these shapes gives answers to judge, with so many classes.
    ///
    /// # Errors
    /// When the metric needs others.
    pub fn accept_outputs(&self, classes: usize, shapes: &[Vec<u64>]) -> Result<(), BadAnswer> {
        if let Metric::DecodedDetection { decoder, .. } = self {
            decoder.accept_outputs(classes, shapes)?;
        }
        if let Metric::PixelAccuracy { width, height } = self {
            let expected = [1, classes as u64, u64::from(*height), u64::from(*width)];
            if !matches!(shapes, [shape] if *shape == expected) {
                return Err(BadAnswer::Outputs {
                    found: shapes_text(shapes),
                    expected: shapes_text(&[expected.to_vec()]),
                });
            }
        }
        let lengths = shapes.iter().map(|shape| {
            let lengths = shape.iter();
            lengths.fold(1, |product: u64, &length| product.saturating_mul(length))
        });
        let all = lengths.fold(0, u64::saturating_add);
        self.accept_length(classes, usize::try_from(all).unwrap_or(usize::MAX))
    }

    /// Judges one answer: the values of one image, or of each of a pair. Values that are not finite are
    /// wrong: overflow is what 16-bit numerics do.
    ///
    /// # Errors
    /// When the answer or the truth is not of the metric's form.
    pub fn judge(
        &self,
        classes: usize,
        answer: &[&[f32]],
        truth: &Truth,
    ) -> Result<Tally, BadAnswer> {
        if answer.len() != self.images_per_answer() {
            return Err(BadAnswer::Images(answer.len()));
        }
        let expected = answer[0].len();
        for values in answer {
            let found = values.len();
            if found != expected {
                return Err(BadAnswer::Length { found, expected });
            }
            self.accept_length(classes, found)?;
        }
        match (self, truth) {
            (Metric::TopK { k }, Truth::Labels(labels)) => Ok(top_k(*k, answer[0], labels)),
            (Metric::MultiLabel { threshold }, Truth::Labels(labels)) => {
                Ok(multi_label(*threshold, answer[0], labels))
            }
            (
                Metric::Detection {
                    grid,
                    boxes,
                    threshold,
                    suppress_above,
                    match_at_least,
                },
                Truth::Boxes(objects),
            ) => {
                let cells = (*grid as usize, *boxes as usize);
                let found = decode_grid(cells, classes, *threshold, answer[0]);
                let rules = Rules::new(*suppress_above, *match_at_least);
                Ok(detection::judge(found, objects, rules))
            }
            (
                Metric::DecodedDetection {
                    decoder,
                    threshold,
                    suppress_above,
                    match_at_least,
                },
                Truth::Boxes(objects),
            ) => {
                let found = decoder.decode(classes, *threshold, answer[0]);
                let rules = Rules::new(*suppress_above, *match_at_least);
                Ok(detection::judge(found, objects, rules))
            }
            (Metric::PixelAccuracy { .. }, Truth::Pixels(runs)) => {
                Ok(pixels::judge(classes, answer[0], runs))
            }
            (Metric::Verification { threshold }, Truth::Same(same)) => {
                let alike = cosine(answer[0], answer[1]).map(|cosine| cosine >= *threshold);
                Ok(whole(alike == Some(*same)))
            }
            _ => Err(BadAnswer::Truth),
        }
    }
}

/// A tally of an answer that is right or wrong as a whole.
fn whole(right: bool) -> Tally {
    Tally {
        hits: u64::from(right),
        false_alarms: u64::from(!right),
        misses: u64::from(!right),
    }
}

/// Right when fewer than `k` classes have a value as large as the true one's; a tie counts against it.
fn top_k(k: u32, values: &[f32], labels: &[u32]) -> Tally {
    let right = labels.iter().any(|&label| {
        values.get(label as usize).is_some_and(|&own| {
            let others = values
                .iter()
                .enumerate()
                .filter(|(class, _)| *class != label as usize);
            let before = others
                .filter(|(_, other)| own.partial_cmp(other) != Some(Ordering::Greater))
                .count();
            own.is_finite() && before < k as usize
        })
    });
    whole(right)
}

/// Each class by itself; one whose value is not finite is wrong either way.
fn multi_label(threshold: f32, values: &[f32], labels: &[u32]) -> Tally {
    let mut tally = Tally::default();
    for (class, value) in (0..).zip(values) {
        let there = labels.contains(&class);
        let found = match value.is_finite() {
            true => *value >= threshold,
            false => !there,
        };
        tally.hits += u64::from(found && there);
        tally.false_alarms += u64::from(found && !there);
        tally.misses += u64::from(!found && there);
    }
    tally
}

/// The cosine of the angle between two vectors; `None` where it is not a number.
pub(super) fn cosine(a: &[f32], b: &[f32]) -> Option<f32> {
    let dot = |a: &[f32], b: &[f32]| -> f64 {
        let products = a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b));
        products.sum()
    };
    let cosine = dot(a, b) / (dot(a, a) * dot(b, b)).sqrt();
    cosine.is_finite().then_some(cosine as f32)
}
