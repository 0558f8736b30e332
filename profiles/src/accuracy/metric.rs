//! Metrics: from a network's answer and what is true to a tally.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use super::{ObjectBox, Tally, Truth};

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
    /// Pairs of images: the same when the cosine similarity of the two answers is at least `threshold`.
    Verification {
        /// From -1 to 1.
        threshold: f32,
    },
}

/// An answer that the metric cannot judge.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadAnswer {
    /// The answer has another length than the metric expects.
    #[error(
        "the network answers with {found} values and the metric of this evaluation set needs {expected}"
    )]
    Length {
        /// How many values there are.
        found: usize,
        /// How many are needed.
        expected: usize,
    },
    /// The answer is to another number of images than the metric takes together.
    #[error("the metric of this evaluation set does not judge {0} images together")]
    Images(usize),
    /// The set's labels are of another kind than the metric's.
    #[error("the labels of this evaluation set are not of the kind that its metric judges by")]
    Truth,
}

impl Metric {
    /// How many images one answer takes: two for pairs.
    pub fn images_per_answer(&self) -> usize {
        match self {
            Metric::Verification { .. } => 2,
            _ => 1,
        }
    }

    /// How many values a network must answer with, for so many classes; `None` if any number will do.
    pub fn answer_len(&self, classes: usize) -> Option<usize> {
        match self {
            Metric::TopK { .. } | Metric::MultiLabel { .. } => Some(classes),
            Metric::Detection { grid, boxes, .. } => {
                let (grid, boxes) = (*grid as usize, *boxes as usize);
                let each = boxes.saturating_mul(5).saturating_add(classes);
                // More than there can be is as wrong as any other length.
                Some(grid.saturating_mul(grid).saturating_mul(each))
            }
            Metric::Verification { .. } => None,
        }
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
        let expected = self.answer_len(classes).unwrap_or(answer[0].len());
        for values in answer {
            if values.len() != expected {
                let found = values.len();
                return Err(BadAnswer::Length { found, expected });
            }
        }
        match (self, truth) {
            (Metric::TopK { k }, Truth::Labels(labels)) => Ok(top_k(*k, answer[0], labels)),
            (Metric::MultiLabel { threshold }, Truth::Labels(labels)) => {
                Ok(multi_label(*threshold, answer[0], labels))
            }
            (Metric::Detection { .. }, Truth::Boxes(objects)) => {
                Ok(self.detection(classes, answer[0], objects))
            }
            (Metric::Verification { threshold }, Truth::Same(same)) => {
                let alike = cosine(answer[0], answer[1]).map(|cosine| cosine >= *threshold);
                Ok(whole(alike == Some(*same)))
            }
            _ => Err(BadAnswer::Truth),
        }
    }

    fn detection(&self, classes: usize, answer: &[f32], objects: &[ObjectBox]) -> Tally {
        let Metric::Detection {
            grid,
            boxes,
            threshold,
            suppress_above,
            match_at_least,
        } = *self
        else {
            return Tally::default();
        };
        let found = decode(grid as usize, boxes as usize, classes, threshold, answer);
        let kept = suppress(found, suppress_above);
        matches(&kept, objects, match_at_least)
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
fn cosine(a: &[f32], b: &[f32]) -> Option<f32> {
    let dot = |a: &[f32], b: &[f32]| -> f64 {
        let products = a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b));
        products.sum()
    };
    let cosine = dot(a, b) / (dot(a, a) * dot(b, b)).sqrt();
    cosine.is_finite().then_some(cosine as f32)
}

/// A box that the network found.
#[derive(Clone, Copy, Debug)]
struct Found {
    object: ObjectBox,
    score: f32,
}

/// The boxes of a YOLO answer that reach the threshold, each with each class.
fn decode(grid: usize, boxes: usize, classes: usize, threshold: f32, answer: &[f32]) -> Vec<Found> {
    let cells = grid * grid;
    let (probabilities, rest) = answer.split_at(cells * classes);
    let (confidences, shapes) = rest.split_at(cells * boxes);
    let mut found = Vec::new();
    for place in 0..cells * boxes {
        let cell = place / boxes;
        let shape = &shapes[4 * place..4 * place + 4];
        if shape.iter().any(|value| !value.is_finite()) {
            continue;
        }
        let (row, column) = ((cell / grid) as f32, (cell % grid) as f32);
        let centre_x = (column + shape[0]) / grid as f32;
        let centre_y = (row + shape[1]) / grid as f32;
        let (width, height) = (shape[2] * shape[2], shape[3] * shape[3]);
        for class in 0..classes {
            let score = confidences[place] * probabilities[cell * classes + class];
            if score.is_finite() && score >= threshold {
                found.push(Found {
                    object: ObjectBox {
                        class: class as u32,
                        x: centre_x - width / 2.0,
                        y: centre_y - height / 2.0,
                        width,
                        height,
                    },
                    score,
                });
            }
        }
    }
    found
}

/// Non-maximum suppression: the best box of a class silences those of its class that overlap it much. Best
/// first; of equals the one that came first.
fn suppress(mut found: Vec<Found>, above: f32) -> Vec<Found> {
    found.sort_by(|a, b| b.score.total_cmp(&a.score));
    let mut kept: Vec<Found> = Vec::new();
    for candidate in found {
        let silenced = kept.iter().any(|better| {
            better.object.class == candidate.object.class
                && overlap(&better.object, &candidate.object) > above
        });
        if !silenced {
            kept.push(candidate);
        }
    }
    kept
}

/// The best box first, each takes the object of its class that it overlaps most and that is still free.
fn matches(found: &[Found], objects: &[ObjectBox], at_least: f32) -> Tally {
    let mut free: Vec<&ObjectBox> = objects.iter().collect();
    let mut tally = Tally::default();
    for Found { object, .. } in found {
        let best = free
            .iter()
            .enumerate()
            .filter(|(_, candidate)| candidate.class == object.class)
            .map(|(place, candidate)| (place, overlap(object, candidate)))
            .max_by(|a, b| a.1.total_cmp(&b.1));
        match best {
            Some((place, overlap)) if overlap >= at_least => {
                free.remove(place);
                tally.hits += 1;
            }
            _ => tally.false_alarms += 1,
        }
    }
    tally.misses = free.len() as u64;
    tally
}

/// Intersection over union.
fn overlap(a: &ObjectBox, b: &ObjectBox) -> f32 {
    let along = |start_a: f32, length_a: f32, start_b: f32, length_b: f32| {
        ((start_a + length_a).min(start_b + length_b) - start_a.max(start_b)).max(0.0)
    };
    let shared = along(a.x, a.width, b.x, b.width) * along(a.y, a.height, b.y, b.height);
    let union = a.width * a.height + b.width * b.height - shared;
    if union > 0.0 { shared / union } else { 0.0 }
}
