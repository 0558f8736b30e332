//! Reliability diagrams: how often answers are right over how sure the model is, as in cbo Figures 5 and 7b. SVG.

use layerlab_campaign::plot::axis::Unit;
use layerlab_campaign::plot::legend::Entry;
use layerlab_planners::video::calibration::CalibrationTrial;

use super::chart::{Chart, ChartLine, Holds, Point};
use super::{colour, picture};

const NOTE: &str = "Answers that were not learnt from, in bins of a tenth of confidence; whiskers are 95 % intervals (Wilson's). \
On the first line a confidence says how often its answers are right.";

/// The diagrams of calibrations, drawn in one chart.
///
/// # Errors
/// When the drawing library fails, which it does not on a drawing in memory.
pub(crate) fn svg(title: &str, trials: &[CalibrationTrial]) -> Result<String, String> {
    let ideal = ChartLine {
        colour: colour(0),
        points: [0.0, 1.0].map(|end| point(end, end, None)).to_vec(),
    };
    let of_trial = |(place, trial): (usize, &CalibrationTrial)| {
        let bins = trial.reliability.bins().iter();
        let bins = bins.filter(|bin| bin.count > 0);
        let points = bins.map(|bin| {
            let count = bin.count as f64;
            let (confidence, accuracy) = (bin.confidence_sum / count, bin.right as f64 / count);
            let (low, high) =
                layerlab_profiles::video::wilson_ci95(bin.right as u64, bin.count as u64);
            point(confidence, accuracy, Some([low, accuracy, high]))
        });
        ChartLine {
            colour: colour(place + 1),
            points: points.collect(),
        }
    };
    let mut lines = vec![ideal];
    lines.extend(trials.iter().enumerate().map(of_trial));
    let chart = Chart::new(
        "How often are answers right?",
        ("confidence", Unit::Fraction),
        ("share of right answers", Unit::Fraction),
        lines,
        Vec::new(),
        Holds::Nowhere,
    );
    let named = trials.iter().enumerate().map(|(place, trial)| {
        let error = trial.reliability.expected_error();
        (
            format!("{}: ECE {error:.3}", trial.name()),
            colour(place + 1),
        )
    });
    let mut entries: Vec<Entry> = vec![("as sure as right".to_owned(), colour(0))];
    entries.extend(named);
    picture(title, &entries, &[chart], NOTE)
}

fn point(limit: f64, reached: f64, ran: Option<[f64; 3]>) -> Point {
    Point {
        limit,
        reached: Some(reached),
        ran,
    }
}
