//! The forms in which detectors after YOLO's first version answer: from the numbers of an answer to boxes with scores.

use serde::{Deserialize, Serialize};

use super::ObjectBox;
use super::bad_answer::{BadAnswer, shapes_text};
use super::detection::Found;

/// The form of a detector's answer to one image. N is the number of boxes. What is not finite is no box.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "type", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Decoder {
    /// As YOLOv5 is exported: 1 x N x (5 + classes). Of each box the x and y of its centre, its width and its height in
    /// pixels of the network's input; its confidence; the classes' probabilities. A score is confidence times probability.
    YoloV5 {
        /// The width of the network's input.
        width: u32,
        /// The height of the network's input.
        height: u32,
    },
    /// As YOLOv8 is exported: 1 x (4 + classes) x N. All boxes' x, then all y, widths and heights, as those of YOLOv5;
    /// then class by class the scores of all boxes.
    YoloV8 {
        /// The width of the network's input.
        width: u32,
        /// The height of the network's input.
        height: u32,
    },
    /// As SSD answers: two outputs, boxes of 1 x N x 4 and scores of 1 x N x (1 + classes), the first of which is the
    /// background's.
    Ssd {
        /// Which of the two outputs comes first.
        outputs: SsdOutputs,
        /// What boxes are relative to. Without, they are corners: left, top, right and bottom as shares of the image.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        priors: Option<Priors>,
    },
}

/// The order of an SSD network's two outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SsdOutputs {
    /// Boxes, then scores.
    BoxesFirst,
    /// Scores, then boxes.
    ScoresFirst,
}

/// The boxes that an SSD network's answers are relative to (Liu et al. 2016, §2.2). Of a prior with its centre at (x, y),
/// as wide as w and as high as h, the answer (a, b, c, d) is the box with its centre at (x + v a w, y + v b h), as wide as
/// w exp(s c) and as high as h exp(s d).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Priors {
    /// v, usually 0.1.
    pub centre_variance: f32,
    /// s, usually 0.2.
    pub size_variance: f32,
    /// Grids of priors in the order of the answer.
    pub grids: Vec<PriorGrid>,
}

/// Priors of the same sizes around each cell of a grid: row by row, of each row cell by cell, of each cell size by size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PriorGrid {
    /// Cells in a row.
    pub columns: u32,
    /// Rows.
    pub rows: u32,
    /// How wide and how high a cell is, as shares of the image; without, it is divided evenly. Centres lie in the middle of
    /// cells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<[f32; 2]>,
    /// The width and the height of each prior around a cell, as shares of the image.
    pub sizes: Vec<[f32; 2]>,
}

impl Decoder {
    /// What makes it no decoder, if anything does.
    pub fn fault(&self) -> Option<&'static str> {
        match self {
            Decoder::YoloV5 { width, height } | Decoder::YoloV8 { width, height } => {
                (*width == 0 || *height == 0).then_some("the network's input has no pixels")
            }
            Decoder::Ssd { priors, .. } => priors.as_ref()?.fault(),
        }
    }

    /// The width and the height of the network's input, where boxes are relative to it.
    pub fn input(&self) -> Option<(u32, u32)> {
        match self {
            Decoder::YoloV5 { width, height } | Decoder::YoloV8 { width, height } => {
                Some((*width, *height))
            }
            Decoder::Ssd { .. } => None,
        }
    }

    /// How many numbers each box has.
    fn each(&self, classes: usize) -> usize {
        match self {
            Decoder::YoloV8 { .. } => classes.saturating_add(4),
            Decoder::YoloV5 { .. } | Decoder::Ssd { .. } => classes.saturating_add(5),
        }
    }

    pub(super) fn accept_length(&self, classes: usize, found: usize) -> Result<(), BadAnswer> {
        let each = self.each(classes);
        if let Decoder::Ssd {
            priors: Some(priors),
            ..
        } = self
        {
            let expected = priors.count().saturating_mul(each);
            return match found == expected {
                true => Ok(()),
                false => Err(BadAnswer::Length { found, expected }),
            };
        }
        match found.is_multiple_of(each) {
            true => Ok(()),
            false => Err(BadAnswer::NotBoxes { found, each }),
        }
    }

    pub(super) fn accept_outputs(
        &self,
        classes: usize,
        shapes: &[Vec<u64>],
    ) -> Result<(), BadAnswer> {
        let each = self.each(classes) as u64;
        let (fits, expected) = match self {
            Decoder::YoloV5 { .. } => (
                matches!(shapes, [shape] if matches!(shape[..], [1, _, last] if last == each)),
                format!("1xNx{each}"),
            ),
            Decoder::YoloV8 { .. } => (
                matches!(shapes, [shape] if matches!(shape[..], [1, rows, _] if rows == each)),
                format!("1x{each}xN"),
            ),
            Decoder::Ssd { outputs, .. } => {
                let (boxes, scores) = (4, each - 4);
                let (first, second) = match outputs {
                    SsdOutputs::BoxesFirst => (boxes, scores),
                    SsdOutputs::ScoresFirst => (scores, boxes),
                };
                let fits = match shapes {
                    [one, other] => match (&one[..], &other[..]) {
                        ([1, boxes, a], [1, same, b]) => {
                            boxes == same && (*a, *b) == (first, second)
                        }
                        _ => false,
                    },
                    _ => false,
                };
                (fits, format!("1xNx{first} and 1xNx{second}"))
            }
        };
        if fits {
            return Ok(());
        }
        let found = shapes_text(shapes);
        Err(BadAnswer::Outputs { found, expected })
    }

    /// The boxes of an answer that reach the threshold, each with each class. The answer has a length that
    /// [`Decoder::accept_length`] accepts.
    pub(super) fn decode(&self, classes: usize, threshold: f32, answer: &[f32]) -> Vec<Found> {
        let each = self.each(classes);
        let numbers = Numbers {
            decoder: self,
            answer,
            each,
            boxes: answer.len() / each,
        };
        let priors = match self {
            Decoder::Ssd {
                priors: Some(priors),
                ..
            } => priors.all(),
            _ => Vec::new(),
        };
        let mut found = Vec::new();
        for place in 0..numbers.boxes {
            let (confidence, first_class) = match self {
                Decoder::YoloV5 { .. } => (numbers.get(place, 4), 5),
                Decoder::YoloV8 { .. } => (1.0, 4),
                Decoder::Ssd { .. } => (1.0, 5),
            };
            for class in 0..classes {
                let score = confidence * numbers.get(place, first_class + class);
                // The comparison is false for what is not a number.
                if !(score.is_finite() && score >= threshold) {
                    continue;
                }
                let four = [0, 1, 2, 3].map(|number| numbers.get(place, number));
                let shape = self.shape(four, priors.get(place));
                if shape.iter().all(|value| value.is_finite()) {
                    let [x, y, width, height] = shape;
                    let class = class as u32;
                    let object = ObjectBox {
                        class,
                        x,
                        y,
                        width,
                        height,
                    };
                    found.push(Found { object, score });
                }
            }
        }
        found
    }

    /// Left, top, width and height as shares of the image, of a box's four numbers.
    fn shape(&self, four: [f32; 4], prior: Option<&[f32; 4]>) -> [f32; 4] {
        let around = |x: f32, y: f32, width: f32, height: f32| {
            [x - width / 2.0, y - height / 2.0, width, height]
        };
        let [a, b, c, d] = four;
        match self {
            Decoder::YoloV5 { width, height } | Decoder::YoloV8 { width, height } => {
                let (across, down) = (*width as f32, *height as f32);
                around(a / across, b / down, c / across, d / down)
            }
            Decoder::Ssd {
                priors: Some(priors),
                ..
            } => {
                let [x, y, width, height] = prior.copied().unwrap_or_default();
                around(
                    x + priors.centre_variance * a * width,
                    y + priors.centre_variance * b * height,
                    width * (priors.size_variance * c).exp(),
                    height * (priors.size_variance * d).exp(),
                )
            }
            Decoder::Ssd { priors: None, .. } => [a, b, c - a, d - b],
        }
    }
}

impl Priors {
    fn fault(&self) -> Option<&'static str> {
        let positive = |value: &f32| value.is_finite() && *value > 0.0;
        if !positive(&self.centre_variance) || !positive(&self.size_variance) {
            return Some("a variance of the priors is not above 0");
        }
        let mut grids = self.grids.iter();
        if !grids.all(|grid| grid.step.iter().chain(&grid.sizes).flatten().all(positive)) {
            return Some("a step or a size of the priors is not above 0");
        }
        (self.count() == 0).then_some("it has no priors")
    }

    /// How many there are.
    fn count(&self) -> usize {
        let counts = self.grids.iter().map(|grid| {
            let cells = (grid.columns as usize).saturating_mul(grid.rows as usize);
            cells.saturating_mul(grid.sizes.len())
        });
        counts.fold(0, usize::saturating_add)
    }

    /// Centre, width and height of each.
    fn all(&self) -> Vec<[f32; 4]> {
        let mut all = Vec::with_capacity(self.count());
        for grid in &self.grids {
            let even = [1.0 / grid.columns as f32, 1.0 / grid.rows as f32];
            let [across, down] = grid.step.unwrap_or(even);
            for row in 0..grid.rows {
                for column in 0..grid.columns {
                    let (x, y) = (column as f32 + 0.5, row as f32 + 0.5);
                    let sizes = grid.sizes.iter();
                    all.extend(
                        sizes.map(|[width, height]| [x * across, y * down, *width, *height]),
                    );
                }
            }
        }
        all
    }
}

/// Where an answer keeps the numbers of its boxes: four for the place, then what the form has.
struct Numbers<'a> {
    decoder: &'a Decoder,
    answer: &'a [f32],
    each: usize,
    boxes: usize,
}

impl Numbers<'_> {
    fn get(&self, place: usize, number: usize) -> f32 {
        let (each, boxes) = (self.each, self.boxes);
        let index = match self.decoder {
            Decoder::YoloV5 { .. } => place * each + number,
            Decoder::YoloV8 { .. } => number * boxes + place,
            Decoder::Ssd { outputs, .. } => {
                let scores = each - 4;
                let (boxes_at, scores_at) = match outputs {
                    SsdOutputs::BoxesFirst => (0, 4 * boxes),
                    SsdOutputs::ScoresFirst => (scores * boxes, 0),
                };
                match number {
                    0..4 => boxes_at + 4 * place + number,
                    _ => scores_at + scores * place + number - 4,
                }
            }
        };
        self.answer[index]
    }
}
