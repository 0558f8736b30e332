//! Which segment contradicts the others? Baarda's data snooping (1968): the segment whose residual is the
//! largest in units of its own standard deviation.

use super::adjusted::Adjusted;
use super::edge::Edge;
use super::quantile::t_at_four_sigma;

/// Below this share of its variance a residual is nothing but rounding: no other segment checks this one.
const LEAST_REDUNDANCY: f64 = 1e-7;

/// Segments that disagree by nearly as much may be no more than witnesses.
const TIE: f64 = 0.9;

/// Fewer differences than this say too little about the noise to accuse anyone.
const LEAST_FREEDOM: f64 = 5.0;

/// A segment that should lose its weight.
pub(super) struct Suspect {
    pub(super) place: usize,
    /// By what its variance should be multiplied.
    pub(super) inflation: f64,
}

/// The segment that contradicts the others most, if any does by more than four standard deviations
/// (seldom by chance even among hundreds).
///
/// In a cycle of segments each contradicts all others by the same amount; then it is the longest that is
/// suspected, because what breaks additivity are longer-range effects (docs/method.md §3).
pub(super) fn most_contradictory(edges: &[Edge], adjusted: &Adjusted) -> Option<Suspect> {
    let freedom = edges
        .iter()
        .map(|edge| edge.observation.freedom)
        .fold(0.0, f64::max);
    if freedom < LEAST_FREEDOM {
        return None;
    }
    let limit = t_at_four_sigma(freedom);
    let deviations: Vec<f64> = edges
        .iter()
        .map(|edge| {
            let redundancy = 1.0 - adjusted.variance_of_fitted(edge) / edge.variance;
            if redundancy < LEAST_REDUNDANCY {
                return 0.0;
            }
            (edge.observation.time_ns - adjusted.fitted(edge)).abs()
                / (edge.variance * redundancy).sqrt()
        })
        .collect();
    let worst = deviations.iter().copied().fold(0.0, f64::max);
    if worst <= limit {
        return None;
    }
    let (place, _) = edges
        .iter()
        .enumerate()
        .filter(|(place, _)| deviations[*place] >= TIE * worst)
        .max_by_key(|(_, edge)| edge.observation.segment.layers())?;
    // Its standard deviation grows with the square of the contradiction, so that a gross error has no
    // influence and a small one still has some.
    let inflation = (deviations[place] / limit).max(1.1).powi(4);
    Some(Suspect { place, inflation })
}
