//! Segmentation by the mean over classes of intersection over union (mIoU), in which rare classes count as much as frequent ones
//! (Everingham et al., *The PASCAL Visual Object Classes Challenge: A Retrospective*, IJCV 2015, §3.3).
//!
//! It takes hits, false alarms and misses of each class, while an evaluation keeps those of all classes together: it is
//! calculated of raw answers.

use crate::accuracy::{Loss, PixelRun, Tally};
use crate::derive::graph::t_95;

/// How well classes are found.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassOverlap {
    /// The mean over the classes that are there: mIoU.
    pub mean: f64,
    /// Of each class the pixels that show it and were said to, over those that show it or were said to; nothing of a class that
    /// is not there. What is falsely said to show that is missed by the class that it shows.
    pub of_classes: Vec<Option<f64>>,
}

/// What one answer, a value for each class and pixel, class by class, got right and wrong of each class. A pixel is said to
/// show the class whose value is finite and larger than all others; where there is none it is missed, and nothing is said falsely.
/// Pixels that do not count do not.
pub fn class_tallies(classes: usize, answer: &[f32], truth: &[PixelRun]) -> Vec<Tally> {
    let pixels = answer.len() / classes.max(1);
    let mut tallies = vec![Tally::default(); classes];
    let mut place = 0;
    for run in truth {
        let places = place..place + run.count as usize;
        place = places.end;
        let Some(class) = run.class else {
            continue;
        };
        for pixel in places {
            let found = found(classes, answer, pixels, pixel);
            let is_hit = found == Some(class as usize);
            if let Some(own) = tallies.get_mut(class as usize) {
                own.hits += u64::from(is_hit);
                own.misses += u64::from(!is_hit);
            }
            if let Some(other) = found.filter(|_| !is_hit) {
                tallies[other].false_alarms += 1;
            }
        }
    }
    tallies
}

/// The class that a pixel is said to show.
fn found(classes: usize, answer: &[f32], pixels: usize, pixel: usize) -> Option<usize> {
    let value = |class: usize| answer.get(class * pixels + pixel).copied();
    let largest = (0..classes).max_by(|&one, &other| {
        let [one, other] = [one, other].map(|class| value(class).unwrap_or(f32::NAN));
        one.total_cmp(&other)
    })?;
    let own = value(largest).filter(|own| own.is_finite())?;
    let mut others = (0..classes).filter(|&other| other != largest);
    // What is not a number is not smaller.
    let is_largest = others.all(|other| value(other).is_some_and(|other| other < own));
    is_largest.then_some(largest)
}

/// Of the tallies of each answer, by class. `None` where no pixel counts.
pub fn class_overlap(answers: &[Vec<Tally>]) -> Option<ClassOverlap> {
    overlap_of(&sums(answers))
}

/// What a placement loses of the mean against the baseline, in the tallies of the same answers, with the 95 % interval over answers
/// like these: the jackknife, which leaves out one answer after the other (Efron and Stein 1981). `None` of fewer than two answers.
///
/// # Panics
/// When the two do not have the same length.
pub fn class_overlap_loss(baseline: &[Vec<Tally>], placed: &[Vec<Tally>]) -> Option<Loss> {
    assert_eq!(baseline.len(), placed.len(), "tallies of the same answers");
    let count = baseline.len() as f64;
    let (before, after) = (sums(baseline), sums(placed));
    let value = overlap_of(&before)?.mean - overlap_of(&after)?.mean;
    let without = baseline.iter().zip(placed).map(|(one, other)| {
        let before = overlap_of(&less(&before, one))?;
        Some(before.mean - overlap_of(&less(&after, other))?.mean)
    });
    // Where all pixels that count are of one answer, nothing is left without it.
    let without: Vec<f64> = without.collect::<Option<_>>()?;
    let mean = without.iter().sum::<f64>() / without.len() as f64;
    let squares: f64 = without.iter().map(|one| (one - mean).powi(2)).sum();
    let half_width = t_95(count - 1.0) * (squares * (count - 1.0) / count).sqrt();
    Some(Loss {
        value,
        ci95: (value - half_width, value + half_width),
    })
}

fn sums(answers: &[Vec<Tally>]) -> Vec<Tally> {
    let classes = answers.first().map_or(0, Vec::len);
    let of_class = |class: usize| answers.iter().map(|answer| answer[class]).sum();
    (0..classes).map(of_class).collect()
}

/// The sums without one of the answers that they are of.
fn less(sums: &[Tally], answer: &[Tally]) -> Vec<Tally> {
    let less = |(all, one): (&Tally, &Tally)| Tally {
        hits: all.hits - one.hits,
        false_alarms: all.false_alarms - one.false_alarms,
        misses: all.misses - one.misses,
    };
    sums.iter().zip(answer).map(less).collect()
}

fn overlap_of(sums: &[Tally]) -> Option<ClassOverlap> {
    let of_class = |tally: &Tally| {
        let there = tally.hits + tally.misses;
        (there > 0).then(|| tally.hits as f64 / (there + tally.false_alarms) as f64)
    };
    let of_classes: Vec<Option<f64>> = sums.iter().map(of_class).collect();
    let known: Vec<f64> = of_classes.iter().copied().flatten().collect();
    (!known.is_empty()).then(|| ClassOverlap {
        mean: known.iter().sum::<f64>() / known.len() as f64,
        of_classes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accuracy::pixel_runs;

    /// Five pixels of three classes: right, taken for another class, a tie, left out, not a number.
    #[test]
    fn each_pixel_is_a_hit_or_a_miss_and_a_false_alarm() {
        #[rustfmt::skip]
        let answer = [
            0.9, 0.1, 0.5, 0.0, f32::NAN,
            0.1, 0.7, 0.5, 1.0, 0.1,
            0.0, 0.2, 0.0, 0.0, 0.2,
        ];
        let truth = pixel_runs([Some(0), Some(2), Some(1), None, Some(0)]);
        let found = class_tallies(3, &answer, &truth);
        let expected = [(1, 0, 1), (0, 1, 1), (0, 0, 1)].map(Tally::from);
        assert_eq!(found, expected);
        let overlap = class_overlap(&[found]).expect("pixels");
        assert_eq!(overlap.of_classes, [Some(0.5), Some(0.0), Some(0.0)]);
        assert!((overlap.mean - 0.5 / 3.0).abs() < 1e-15);
    }

    /// By hand: 6 of 10, and 1 of 2; a class that is nowhere does not count, though a pixel was said to show it. The mean is not
    /// that of pixels, 7 of 10.
    #[test]
    fn rare_classes_count_as_much_as_frequent_ones() {
        let answers = [
            [(4, 1, 1), (0, 1, 0), (0, 0, 1)],
            [(2, 1, 1), (0, 0, 0), (1, 0, 0)],
        ];
        let answers = answers.map(|answer| answer.map(Tally::from).to_vec());
        let found = class_overlap(&answers).expect("pixels");
        assert_eq!(found.of_classes, [Some(0.6), None, Some(0.5)]);
        assert!((found.mean - 0.55).abs() < 1e-15);
        assert_eq!(class_overlap(&[vec![Tally::default(); 3]]), None);
        assert_eq!(class_overlap(&[]), None);
    }

    /// The jackknife of a mean is the usual standard error: where each answer's loss is its own and unions are alike, the
    /// interval is Student's over the answers.
    #[test]
    fn the_interval_is_student_s_where_answers_are_alike() {
        let of = |hits: &[u64]| -> Vec<Vec<Tally>> {
            let answers = hits.iter();
            answers
                .map(|&hits| vec![Tally::from((hits, 0, 100 - hits))])
                .collect()
        };
        let (before, after) = (of(&[90; 5]), of(&[80, 84, 88, 82, 86]));
        let found = class_overlap_loss(&before, &after).expect("five answers");
        // Losses of 0.10, 0.06, 0.02, 0.08 and 0.04: mean 0.06, standard deviation 0.0316, t of 4 is 2.776.
        assert!((found.value - 0.06).abs() < 1e-12, "{found:?}");
        let half_width = 2.776 * 0.001_f64.sqrt() / 5.0_f64.sqrt();
        assert!((found.half_width() - half_width).abs() < 1e-4, "{found:?}");
        assert_eq!(class_overlap_loss(&before[..1], &after[..1]), None);
    }
}
