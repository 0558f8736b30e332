//! The threshold of verification, chosen on the first half of the pairs by a model's answers; the set keeps the other half.

use layerlab_model::{Network, answers};
use layerlab_profiles::accuracy::{EvaluationSet, Metric, Truth, Values, best_threshold};

use super::error::SetError;
use super::{Loaded, fits_network};

/// A set of the pairs that no threshold was chosen on.
#[derive(Clone, Debug)]
pub struct Calibrated {
    /// The second half of the pairs, and the threshold.
    pub set: EvaluationSet,
    /// What the threshold is.
    pub threshold: f32,
    /// On how many pairs it was chosen.
    pub pairs: usize,
    /// About how many of them it is right.
    pub right: u64,
}

/// Chooses the threshold with which `network` is right about most pairs of the first half, computed in 32 bits on this
/// machine, and keeps the other pairs.
///
/// # Errors
/// When the network does not fit the images or fails on one, when no threshold follows from its answers, or no pair is
/// left.
pub fn calibrate(loaded: &Loaded, network: &Network) -> Result<Calibrated, SetError> {
    let set = &loaded.set;
    fits_network(set, network)?;
    let half = |first: bool| {
        let halves = loaded.first_half.iter().enumerate();
        halves.filter_map(move |(answer, &one)| (one == first).then_some(answer))
    };
    let first: Vec<usize> = half(true).collect();
    let rest: Vec<usize> = half(false).collect();
    if rest.is_empty() || set.answers() < 2 {
        let set = set.name.clone();
        return Err(SetError::NothingToJudge { set });
    }
    let images = first.iter().flat_map(|&answer| set.images(answer));
    let given = answers(network, images)?;
    let pairs: Vec<([&[f32]; 2], usize)> = given
        .chunks_exact(2)
        .map(|pair| [pair[0].as_slice(), &pair[1]])
        .zip(first.iter().copied())
        .collect();
    let same = |answer: usize| set.truths[answer] == Truth::Same(true);
    let both = pairs.iter().map(|&(pair, answer)| (pair, same(answer)));
    let threshold = best_threshold(both).ok_or(SetError::NoThreshold { pairs: first.len() })?;
    let metric = Metric::Verification { threshold };
    let judged = pairs.iter().filter_map(|(pair, answer)| {
        let judged = metric.judge(0, pair, &set.truths[*answer]);
        judged.ok().map(|tally| tally.hits)
    });
    Ok(Calibrated {
        right: judged.sum(),
        pairs: first.len(),
        threshold,
        set: EvaluationSet {
            metric: metric.clone(),
            ..only(set, &rest)
        },
    })
}

/// The set with these answers alone, and the images that they are about.
fn only(set: &EvaluationSet, kept: &[usize]) -> EvaluationSet {
    let mut images: Vec<u32> = kept.iter().flat_map(|&answer| set.pairs[answer]).collect();
    images.sort_unstable();
    images.dedup();
    let place = |image: u32| images.partition_point(|&other| other < image) as u32;
    let length = set.image_len();
    let range = |&image: &u32| image as usize * length..(image as usize + 1) * length;
    let values = match &set.values {
        Values::U8(values) => Values::U8(
            images
                .iter()
                .flat_map(|i| &values[range(i)])
                .copied()
                .collect(),
        ),
        Values::F32(values) => Values::F32(
            images
                .iter()
                .flat_map(|i| &values[range(i)])
                .copied()
                .collect(),
        ),
    };
    EvaluationSet {
        truths: kept
            .iter()
            .map(|&answer| set.truths[answer].clone())
            .collect(),
        pairs: kept
            .iter()
            .map(|&answer| set.pairs[answer].map(place))
            .collect(),
        values,
        ..set.clone()
    }
}
