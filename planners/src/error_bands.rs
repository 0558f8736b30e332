//! How far predictions of an accuracy model are off, by conformal prediction.
//!
//! Each training row is predicted once by a model that did not see it (cross-validation). Of m such errors, the
//! ⌈(m + 1) c⌉th smallest is what the error of a further row exceeds with probability 1 - c at most, where rows are drawn
//! alike (Vovk, Gammerman and Shafer, Algorithmic Learning in a Random World, 2005; Barber, Candès, Ramdas and Tibshirani,
//! Predictive inference with the jackknife+, 2021, for models trained on other rows). Small losses are predicted better than
//! large ones, so that rows are put into bands of similar predicted losses, and each band has its own errors (Mondrian
//! conformal prediction).
//!
//! A measured loss is itself uncertain: other images like these would give another one. That adds in squares.

use crate::confidence::Confidence;
use serde::{Deserialize, Serialize};

/// The fewest rows of a band where there is more than one: 95 % needs 19.
const LEAST_ROWS: usize = 50;

/// The most bands.
const MOST_BANDS: usize = 4;

/// A row that was held back: what was predicted for it, and what was measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HeldBackRow {
    /// The loss that a model predicts which did not see the row, moved to the nearest possible one.
    pub predicted: f64,
    /// The loss as measured.
    pub measured: f64,
    /// Half the width of the 95 % interval of the measured loss, over images drawn like these; 0 where it is not known.
    pub sampling: f64,
}

/// The errors of an accuracy model, by the loss that it predicts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ErrorBands(Vec<ErrorBand>);

/// The errors where predicted losses are at least `from` and below the next band's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct ErrorBand {
    from: f64,
    /// |measured - predicted|, ascending.
    errors: Vec<f64>,
    /// The median half-width of measured 95 % intervals.
    sampling: f64,
}

impl ErrorBands {
    /// The bands of rows that were held back, four at most, each of `LEAST_ROWS` rows or all there are. Rows of the same
    /// predicted loss are in one band.
    pub fn of(rows: &[HeldBackRow]) -> ErrorBands {
        let mut rows = rows.to_vec();
        rows.sort_by(|a, b| a.predicted.total_cmp(&b.predicted));
        let bands = parts(&rows).into_iter().filter_map(|part| {
            let first = part.first()?;
            let mut errors: Vec<f64> = part
                .iter()
                .map(|row| (row.measured - row.predicted).abs())
                .collect();
            errors.sort_by(f64::total_cmp);
            let mut sampling: Vec<f64> = part.iter().map(|row| row.sampling).collect();
            sampling.sort_by(f64::total_cmp);
            Some(ErrorBand {
                from: first.predicted,
                errors,
                sampling: sampling[sampling.len() / 2],
            })
        });
        ErrorBands(bands.collect())
    }

    /// Of each band the least predicted loss (the first band also holds what lies below its own), the errors, and the median
    /// half-width of measured 95 % intervals.
    pub(crate) fn bands(&self) -> impl Iterator<Item = (f64, &[f64], f64)> {
        let bands = self.0.iter();
        bands.map(|band| (band.from, band.errors.as_slice(), band.sampling))
    }

    /// By how much the loss may differ from a predicted one that measuring it on the same images gives; nothing where there
    /// are too few rows for this confidence.
    pub fn prediction_error(&self, predicted: f64, confidence: Confidence) -> Option<f64> {
        self.band(predicted)?.quantile(confidence)
    }

    /// By how much the loss over images drawn like these may differ from a predicted one; nothing where there are too few
    /// rows for this confidence.
    pub fn half_width(&self, predicted: f64, confidence: Confidence) -> Option<f64> {
        let band = self.band(predicted)?;
        let sampling = band.sampling * confidence.stretch();
        Some(band.quantile(confidence)?.hypot(sampling))
    }

    fn band(&self, predicted: f64) -> Option<&ErrorBand> {
        let after = self.0.partition_point(|band| band.from <= predicted);
        self.0.get(after.saturating_sub(1))
    }
}

/// The rows of each band, of rows that ascend in predicted losses.
fn parts(rows: &[HeldBackRow]) -> Vec<&[HeldBackRow]> {
    let count = (rows.len() / LEAST_ROWS).clamp(1, MOST_BANDS);
    let (mut parts, mut rest) = (Vec::new(), rows);
    for place in 1..count {
        let begin = rows.len() - rest.len();
        let differs = |at: &usize| rows[at - 1].predicted != rows[*at].predicted;
        let end = (place * rows.len() / count..rows.len()).find(differs);
        let Some(end) = end else { break };
        if end >= begin + LEAST_ROWS && rows.len() - end >= LEAST_ROWS {
            let (part, others) = rest.split_at(end - begin);
            parts.push(part);
            rest = others;
        }
    }
    parts.push(rest);
    parts
}

impl ErrorBand {
    /// The ⌈(m + 1) c⌉th smallest of m errors, if there are so many.
    fn quantile(&self, confidence: Confidence) -> Option<f64> {
        let rank = ((self.errors.len() + 1) as f64 * confidence.share()).ceil() as usize;
        self.errors.get(rank.checked_sub(1)?).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(predicted: f64, error: f64) -> HeldBackRow {
        HeldBackRow {
            predicted,
            measured: predicted + error,
            sampling: 0.03,
        }
    }

    fn share(share: f64) -> Confidence {
        Confidence::of(share).expect("a share")
    }

    #[test]
    fn of_19_errors_the_largest_has_95_per_cent_and_none_has_more() {
        let rows: Vec<HeldBackRow> = (1..=19).map(|e| row(0.5, f64::from(e) / 1000.0)).collect();
        let bands = ErrorBands::of(&rows);
        let error = |c| bands.prediction_error(0.1, share(c));
        assert!((error(0.95).expect("19 rows") - 0.019).abs() < 1e-12);
        assert!((error(0.5).expect("19 rows") - 0.010).abs() < 1e-12);
        assert_eq!(error(0.951), None);
        let both = bands.half_width(0.1, share(0.95)).expect("19 rows");
        assert!((both - 0.019_f64.hypot(0.03)).abs() < 1e-12);
        assert_eq!(ErrorBands::of(&[]).half_width(0.1, share(0.5)), None);
    }

    #[test]
    fn rows_of_the_same_predicted_loss_are_in_one_band() {
        // 80 losses that were moved to 0, with small errors at first, and 120 larger ones.
        let rows: Vec<HeldBackRow> = (0..200_i32)
            .map(|place| {
                let predicted = f64::from((place - 79).max(0)) / 400.0;
                row(predicted, f64::from(place) / 1000.0)
            })
            .collect();
        let bands = ErrorBands::of(&rows);
        let error = |loss| bands.prediction_error(loss, share(0.5)).expect("50 rows");
        assert!((error(0.0) - 0.040).abs() < 1e-12, "{}", error(0.0));
        assert_eq!(error(-1.0), error(0.0));
        let same: Vec<HeldBackRow> = rows.iter().map(|one| row(0.0, one.measured)).collect();
        assert_eq!(ErrorBands::of(&same).0.len(), 1);
    }

    #[test]
    fn small_losses_have_their_own_errors() {
        let rows: Vec<HeldBackRow> = (0..200)
            .map(|place| {
                let predicted = f64::from(place) / 400.0;
                row(predicted, predicted / 10.0)
            })
            .collect();
        let bands = ErrorBands::of(&rows);
        let error = |loss| bands.prediction_error(loss, share(0.9)).expect("50 rows");
        assert!(error(-1.0) < error(0.2) && error(0.2) < error(0.3) && error(0.3) < error(2.0));
        assert_eq!(error(0.0), error(0.1));
    }
}
