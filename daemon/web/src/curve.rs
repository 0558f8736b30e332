//! The curve of all plans: the placements that no other is as fast and as accurate as, by estimates.

use layerlab_planners::Problem;
use layerlab_planners::front::Front;
use layerlab_planners::placement::PackedPlacement;
use layerlab_planners::problem::PredictedAccuracy;
use layerlab_profiles::{Placement, SignedNanos};

/// A placement of the curve.
pub(crate) struct CurvePoint {
    /// The placement.
    pub(crate) placement: Placement,
    /// How long one inference takes, T(L).
    pub(crate) time: SignedNanos,
    /// The 95 % interval of that, where the profile's times have one.
    pub(crate) interval: Option<(SignedNanos, SignedNanos)>,
    /// How accurate it is.
    pub(crate) accuracy: PredictedAccuracy,
}

/// The curve, the fastest placement first. The front also has placements that are surer of their limits than others: those are
/// left out where estimates say that another is better.
pub(crate) fn curve_of(problem: &Problem, front: &Front) -> Vec<CurvePoint> {
    let accuracies = problem.accuracies(&front.placements);
    let placements = front.placements.iter().zip(accuracies);
    let mut timed: Vec<(SignedNanos, &PackedPlacement, PredictedAccuracy)> = placements
        .map(|(placement, accuracy)| (problem.time(placement), placement, accuracy))
        .collect();
    timed.sort_by(|one, other| {
        let accurate = other.2.value.total_cmp(&one.2.value);
        one.0.cmp(&other.0).then(accurate)
    });
    let mut best = f64::NEG_INFINITY;
    timed.retain(|(_, _, accuracy)| {
        let is_better = accuracy.value > best;
        best = best.max(accuracy.value);
        is_better
    });
    let points = timed
        .into_iter()
        .map(|(time, placement, accuracy)| CurvePoint {
            placement: placement.combination(),
            time,
            interval: problem.times().interval(placement),
            accuracy,
        });
    points.collect()
}
