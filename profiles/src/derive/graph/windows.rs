//! What windows say of each segment: means over many inferences, of which a meter's error and the scatter of inferences are left,
//! judged by those of all segments together.

use std::collections::BTreeMap;

use super::moderation::Prior;
use super::noise::{NoiseModel, Scatter};
use super::observation::{Observation, Observations, VisitSpread};
use crate::segment::Segment;
use crate::shortcuts::Shortcuts;

/// The noise model is of times in ns and never below what rounding these does; shares are told in parts of this, of which that
/// is nothing.
const PARTS: f64 = 1e9;

/// What one window says of a segment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WindowMean {
    /// The mean over its inferences.
    pub mean: f64,
    /// How many there were.
    pub runs: f64,
}

/// The windows of one segment, summarised.
struct Summarised {
    segment: Segment,
    mean: f64,
    count: f64,
    /// Of the windows' means, relative to their mean.
    variance: f64,
    /// The mean of 1 / runs.
    per_run: f64,
}

/// What the windows of each segment say, with errors. A window's relative variance is a + b / runs: a of the meter, the same for
/// all segments, and b of inferences. Both are found from all segments together; each segment's own variance is moderated by
/// what they say.
pub fn observe_windows(windows: &BTreeMap<Segment, Vec<WindowMean>>) -> Observations {
    let all: Vec<Summarised> = windows
        .iter()
        .filter_map(|(&segment, windows)| summarised(segment, windows))
        .collect();
    // The model's variance p·T² + f² has the same form, with T² for 1 / runs.
    let scatters: Vec<Scatter> = all.iter().map(scatter).collect();
    let model = NoiseModel::fit(&scatters);
    let expected = |one: &Summarised| {
        let deviation = model.standard_deviation_ns(scatter(one).time_ns) / PARTS;
        deviation * deviation
    };
    let ratios: Vec<(f64, f64)> = all
        .iter()
        .map(|one| (one.variance / expected(one), one.count - 1.0))
        .collect();
    let prior = Prior::of(&ratios);
    let segments = all.iter().zip(&ratios).map(|(one, &(ratio, freedom))| {
        let (ratio, freedom) = prior.map_or((1.0, 0.0), |prior| prior.moderate(ratio, freedom));
        Observation {
            segment: one.segment,
            time_ns: one.mean,
            excess_variance: 1.0,
            count: one.count,
            freedom,
            visits: windows[&one.segment].len(),
            visit_variance: ratio * expected(one) / one.count,
            median: None,
        }
    });
    Observations {
        noise: NoiseModel::SILENT,
        has_spread: prior.is_some(),
        segments: segments.collect(),
        visits: VisitSpread::default(),
        neighbours: Vec::new(),
        shortcuts: Shortcuts::default(),
    }
}

fn summarised(segment: Segment, windows: &[WindowMean]) -> Option<Summarised> {
    let count = windows.len() as f64;
    let mean = windows.iter().map(|one| one.mean).sum::<f64>() / count;
    let squares: f64 = windows
        .iter()
        .map(|one| (one.mean / mean - 1.0).powi(2))
        .sum();
    (!windows.is_empty()).then(|| Summarised {
        segment,
        mean,
        count,
        variance: squares / (count - 1.0).max(1.0),
        per_run: windows.iter().map(|one| 1.0 / one.runs).sum::<f64>() / count,
    })
}

fn scatter(one: &Summarised) -> Scatter {
    Scatter {
        time_ns: PARTS * one.per_run.sqrt(),
        variance: PARTS * PARTS * one.variance,
        freedom: one.count - 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three windows of each segment, which scatter by so much relative to their mean.
    fn windows(relative: impl Fn(u32) -> f64) -> BTreeMap<Segment, Vec<WindowMean>> {
        (1..=40)
            .map(|layer| {
                let runs = 100.0 * f64::from(layer);
                let window = |sign: f64| WindowMean {
                    mean: 1e6 * (1.0 + sign * relative(layer)),
                    runs,
                };
                (Segment::single(layer), [-1.0, 0.0, 1.0].map(window).into())
            })
            .collect()
    }

    #[test]
    fn few_inferences_are_known_less_well_than_many() {
        let observed = observe_windows(&windows(|layer| {
            (1e-6 + 1e-3 / (100.0 * f64::from(layer))).sqrt()
        }));
        assert!(observed.has_spread);
        for (layer, one) in (1_u32..).zip(&observed.segments) {
            let expected = (1e-6 + 1e-3 / (100.0 * f64::from(layer))) / 3.0;
            let off = one.visit_variance / expected - 1.0;
            assert!(off.abs() < 0.05, "layer {layer}: {off}");
            assert!(
                one.freedom > 50.0,
                "all are known together: {}",
                one.freedom
            );
        }
    }

    #[test]
    fn one_window_of_each_tells_no_scatter() {
        let mut one = windows(|_| 0.0);
        for windows in one.values_mut() {
            windows.truncate(1);
        }
        assert!(!observe_windows(&one).has_spread);
        assert!(observe_windows(&BTreeMap::new()).segments.is_empty());
    }
}
