//! How far confidence is from accuracy: the expected and the maximum calibration error (cbo §III-B).

use super::error::CalibrationError;

/// How many bins of equal width the confidences from 0 to 1 are divided into.
pub const BINS: usize = 10;

/// The answers whose confidences are in one tenth of 0..1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ConfidenceBin {
    /// How many answers.
    pub count: usize,
    /// How many of them were right.
    pub right: usize,
    /// The sum of their confidences.
    pub confidence_sum: f64,
}

impl ConfidenceBin {
    /// |A(B) - C(B)|: accuracy less mean confidence; none where the bin is empty.
    pub fn error(&self) -> Option<f64> {
        let count = self.count as f64;
        (self.count > 0).then(|| (self.right as f64 - self.confidence_sum).abs() / count)
    }
}

/// A reliability diagram (cbo Figures 5 and 7b).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reliability {
    bins: [ConfidenceBin; BINS],
}

impl Reliability {
    /// Sorts answers into bins by their `confidences`, between 0 and 1, with whether each was `right`. A bin holds its lower
    /// end; the last one holds 1, too.
    pub fn of(confidences: &[f64], right: &[bool]) -> Result<Reliability, CalibrationError> {
        if confidences.len() != right.len() {
            return Err(CalibrationError::Lengths {
                scores: confidences.len(),
                labels: right.len(),
            });
        }
        if confidences.is_empty() {
            return Err(CalibrationError::NoAnswers);
        }
        let mut bins = [ConfidenceBin::default(); BINS];
        for (answer, (&confidence, &right)) in confidences.iter().zip(right).enumerate() {
            if !(0.0..=1.0).contains(&confidence) {
                return Err(CalibrationError::NoProbability { answer, confidence });
            }
            let bin = &mut bins[((confidence * BINS as f64) as usize).min(BINS - 1)];
            bin.count += 1;
            bin.right += usize::from(right);
            bin.confidence_sum += confidence;
        }
        Ok(Reliability { bins })
    }

    /// The bins, from the least confidence to the largest.
    pub fn bins(&self) -> &[ConfidenceBin; BINS] {
        &self.bins
    }

    /// ECE, the expected calibration error: Σ |B|/n |A(B) - C(B)|.
    pub fn expected_error(&self) -> f64 {
        let count: usize = self.bins.iter().map(|bin| bin.count).sum();
        let weighted = |bin: &ConfidenceBin| Some(bin.error()? * bin.count as f64);
        self.bins.iter().filter_map(weighted).sum::<f64>() / count as f64
    }

    /// MCE, the maximum calibration error: the largest |A(B) - C(B)| of bins that are not empty.
    pub fn maximum_error(&self) -> f64 {
        let errors = self.bins.iter().filter_map(ConfidenceBin::error);
        errors.fold(0.0, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_those_of_the_design_documents_vector() {
        let confidences = [0.05, 0.15, 0.95, 1.0, 0.55, 0.55];
        let right = [false, false, true, false, true, false];
        let reliability = Reliability::of(&confidences, &right).expect("probabilities");
        assert!((reliability.expected_error() - 0.208_333).abs() < 1e-6);
        assert!((reliability.maximum_error() - 0.475).abs() < 1e-12);
        assert_eq!(reliability.bins()[9].count, 2);
    }

    #[test]
    fn every_tenth_begins_a_bin() {
        for tenth in 0..10 {
            let confidence = f64::from(tenth) / 10.0;
            let reliability = Reliability::of(&[confidence], &[true]).expect("a probability");
            assert_eq!(reliability.bins()[tenth as usize].count, 1, "{confidence}");
        }
    }
}
