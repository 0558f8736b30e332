//! Samples as an HDR histogram in text: V2 with zlib compression, in base64, as every HdrHistogram
//! library reads it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer as _, V2DeflateSerializer};

use crate::units::Nanos;

/// A value read from the histogram is within 0.1 % of the sample.
const SIGNIFICANT_DIGITS: u8 = 3;

/// The histogram of `samples` as text; `None` when there are none.
pub fn encode_histogram(samples: &[Nanos]) -> Option<String> {
    let histogram = record(samples)?;
    let mut bytes = Vec::new();
    V2DeflateSerializer::new()
        .serialize(&histogram, &mut bytes)
        .ok()?;
    Some(BASE64.encode(bytes))
}

/// The histogram that a text holds; `None` when it holds none.
pub fn decode_histogram(text: &str) -> Option<Histogram<u64>> {
    let bytes = BASE64.decode(text).ok()?;
    Deserializer::new().deserialize(&mut bytes.as_slice()).ok()
}

/// Whether `text` holds the histogram of `samples`.
///
/// Counts are compared, not texts: another version of the compressor writes the same counts otherwise.
pub(crate) fn is_histogram_of(text: &str, samples: &[Nanos]) -> bool {
    let (Some(read), Some(expected)) = (decode_histogram(text), record(samples)) else {
        return false;
    };
    let counts = |histogram: &Histogram<u64>| -> Vec<(u64, u64)> {
        histogram
            .iter_recorded()
            .map(|step| (step.value_iterated_to(), step.count_at_value()))
            .collect()
    };
    read.sigfig() == SIGNIFICANT_DIGITS && counts(&read) == counts(&expected)
}

fn record(samples: &[Nanos]) -> Option<Histogram<u64>> {
    let longest = samples.iter().max()?.as_nanos();
    // The bounds follow from the samples alone, so that the same samples give the same text. The
    // library wants a range of at least 1..=2.
    let mut histogram = Histogram::new_with_max(longest.max(2), SIGNIFICANT_DIGITS).ok()?;
    for sample in samples {
        histogram.record(sample.as_nanos()).ok()?;
    }
    Some(histogram)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn nanos(values: &[u64]) -> Vec<Nanos> {
        values.iter().copied().map(Nanos::from_nanos).collect()
    }

    #[test]
    fn a_histogram_reads_back_within_its_three_digits() {
        let text = encode_histogram(&nanos(&[1_234_567, 2_000_000, 2_000_000])).expect("samples");
        let histogram = decode_histogram(&text).expect("just encoded");
        assert_eq!(histogram.len(), 3);
        let read = histogram.min() as f64;
        assert!((read / 1_234_567.0 - 1.0).abs() < 1e-3, "{read}");
    }

    #[test]
    fn a_text_that_is_no_histogram_is_of_no_samples() {
        for text in ["", "not base64!", "AAAA", "HISTFAAA"] {
            assert!(!is_histogram_of(text, &nanos(&[1, 2, 3])), "{text}");
        }
    }

    proptest! {
        #[test]
        fn the_order_of_samples_does_not_matter(
            values in prop::collection::vec(0..=u64::MAX / 2, 1..40)
        ) {
            let samples = nanos(&values);
            let mut reversed = samples.clone();
            reversed.reverse();
            let text = encode_histogram(&samples).expect("at least one sample");
            prop_assert_eq!(encode_histogram(&reversed), Some(text.clone()));
            prop_assert!(is_histogram_of(&text, &samples));
        }
    }
}
