//! The threshold of verification, chosen on pairs that nothing is judged by.

use super::metric::cosine;

/// The threshold that tells most of these pairs of answers apart, each with whether it shows the same: of the cosines'
/// middles the one that is right about most pairs; of equals that with the widest gap around it, then the lowest. `None`
/// unless there are finite answers to pairs of both kinds.
pub fn best_threshold<'a>(pairs: impl IntoIterator<Item = ([&'a [f32]; 2], bool)>) -> Option<f32> {
    let pairs = pairs.into_iter();
    let mut cosines: Vec<(f32, bool)> = pairs
        .filter_map(|([a, b], same)| Some((cosine(a, b)?, same)))
        .collect();
    cosines.sort_by(|a, b| a.0.total_cmp(&b.0));
    let same = cosines.iter().filter(|(_, same)| *same).count();
    if same == 0 || same == cosines.len() {
        return None;
    }
    // Below the threshold pairs are said to differ: at first none is.
    let mut right = same;
    let mut best: Option<(usize, f32, f32)> = None;
    for neighbours in cosines.windows(2) {
        let [(below, same), (above, _)] = [neighbours[0], neighbours[1]];
        if same {
            right -= 1;
        } else {
            right += 1;
        }
        let gap = above - below;
        let middle = below + gap / 2.0;
        // Cosines that are the same, or next to each other, have nothing between them.
        let between = below < middle && middle <= above;
        let better =
            best.is_none_or(|(most, widest, _)| right > most || (right == most && gap > widest));
        if between && better {
            best = Some((right, gap, middle));
        }
    }
    best.map(|(_, _, middle)| middle)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pairs of unit vectors at these angles, in degrees.
    fn best(pairs: &[(f32, bool)]) -> Option<f32> {
        let turned = |degrees: f32| {
            let (sine, cosine) = degrees.to_radians().sin_cos();
            [cosine, sine]
        };
        let vectors: Vec<([f32; 2], bool)> = pairs
            .iter()
            .map(|(degrees, same)| (turned(*degrees), *same))
            .collect();
        let pairs = vectors.iter();
        best_threshold(pairs.map(|(turned, same)| ([&[1.0, 0.0][..], &turned[..]], *same)))
    }

    #[test]
    fn the_threshold_lies_in_the_middle_of_what_tells_most_pairs_apart() {
        let apart = best(&[(90.0, false), (60.0, false), (0.0, true)]);
        assert!((apart.expect("one") - 0.75).abs() < 1e-6, "{apart:?}");
        // One pair is on the wrong side wherever it is put: 3 of 4 are right below it, and in the wider gap.
        let mixed = best(&[(90.0, false), (60.0, true), (53.13, false), (0.0, true)]);
        assert!((mixed.expect("one") - 0.25).abs() < 1e-6, "{mixed:?}");
    }

    #[test]
    fn without_pairs_of_both_kinds_there_is_none() {
        assert_eq!(best(&[]), None);
        assert_eq!(best(&[(0.0, true), (10.0, true)]), None);
        assert_eq!(best(&[(0.0, false)]), None);
        let (zero, one) = ([0.0; 2], [1.0; 2]);
        let pairs = [([&zero[..], &one], true), ([&one, &one], false)];
        assert_eq!(best_threshold(pairs), None);
    }

    #[test]
    fn cosines_that_are_the_same_have_nothing_between_them() {
        assert_eq!(best(&[(30.0, false), (30.0, true)]), None);
    }
}
