//! Objects and their boxes: which of the boxes that a network found find objects that are there.

use std::collections::BTreeMap;

use super::{ObjectBox, Tally};

/// A box that the network found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub(super) object: ObjectBox,
    pub(super) score: f32,
}

/// What a box must be to find an object.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    /// Of boxes of one class that overlap by more than this (intersection over union), the best stays.
    pub(super) suppress_above: f32,
    /// A box finds an object of its class that it overlaps by at least this.
    pub(super) match_at_least: f32,
}

impl Rules {
    pub(super) fn new(suppress_above: f32, match_at_least: f32) -> Rules {
        Rules {
            suppress_above,
            match_at_least,
        }
    }
}

/// Which of the boxes find the objects that are there, class by class.
pub(super) fn judge(found: Vec<Found>, objects: &[ObjectBox], rules: Rules) -> Tally {
    let mut by_class: BTreeMap<u32, (Vec<Found>, Vec<&ObjectBox>)> = BTreeMap::new();
    for one in found {
        by_class.entry(one.object.class).or_default().0.push(one);
    }
    for object in objects {
        by_class.entry(object.class).or_default().1.push(object);
    }
    let tallies = by_class.into_values().map(|(found, objects)| {
        let kept = suppress(found, rules.suppress_above);
        matches(&kept, objects, rules.match_at_least)
    });
    tallies.sum()
}

/// The boxes of an answer of YOLO version 1 that reach the threshold, each with each class.
pub(super) fn decode_grid(
    (grid, boxes): (usize, usize),
    classes: usize,
    threshold: f32,
    answer: &[f32],
) -> Vec<Found> {
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

/// Non-maximum suppression of boxes of one class: the best silences those that overlap it much. Best first; of equals
/// the one that came first.
fn suppress(mut found: Vec<Found>, above: f32) -> Vec<Found> {
    found.sort_by(|a, b| b.score.total_cmp(&a.score));
    let mut kept: Vec<Found> = Vec::new();
    for candidate in found {
        let silenced = kept
            .iter()
            .any(|better| overlap(&better.object, &candidate.object) > above);
        if !silenced {
            kept.push(candidate);
        }
    }
    kept
}

/// The best box first, each takes the object that it overlaps most and that is still free; all are of one class.
fn matches(found: &[Found], mut free: Vec<&ObjectBox>, at_least: f32) -> Tally {
    let mut tally = Tally::default();
    for Found { object, .. } in found {
        let best = free
            .iter()
            .enumerate()
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
