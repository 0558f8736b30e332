//! Segmentation: which class each pixel shows.

use serde::{Deserialize, Serialize};

use super::Tally;

/// Neighbouring pixels of one class, row by row; a row may end within a run. Written as `[class, count]`, where `null` is
/// what nothing is said about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(Option<u32>, u32)", into = "(Option<u32>, u32)")]
pub struct PixelRun {
    /// The class; `None` where it does not count.
    pub class: Option<u32>,
    /// How many pixels there are.
    pub count: u32,
}

impl From<(Option<u32>, u32)> for PixelRun {
    fn from((class, count): (Option<u32>, u32)) -> PixelRun {
        PixelRun { class, count }
    }
}

impl From<PixelRun> for (Option<u32>, u32) {
    fn from(run: PixelRun) -> Self {
        (run.class, run.count)
    }
}

/// The runs of pixels that show these classes.
pub fn pixel_runs(classes: impl IntoIterator<Item = Option<u32>>) -> Vec<PixelRun> {
    let mut runs: Vec<PixelRun> = Vec::new();
    for class in classes {
        match runs.last_mut() {
            Some(last) if last.class == class && last.count < u32::MAX => last.count += 1,
            _ => runs.push(PixelRun { class, count: 1 }),
        }
    }
    runs
}

/// Each pixel that counts, by itself: right when the true class's value is finite and larger than all others. The answer has a
/// value for each class and pixel, class by class.
pub(super) fn judge(classes: usize, answer: &[f32], truth: &[PixelRun]) -> Tally {
    let pixels = answer.len() / classes.max(1);
    let (mut pixel, mut tally) = (0, Tally::default());
    for run in truth {
        for place in pixel..pixel + run.count as usize {
            let Some(class) = run.class else {
                continue;
            };
            let value = |class: usize| answer.get(class * pixels + place).copied();
            let own = value(class as usize).filter(|own| own.is_finite());
            let others = (0..classes).filter(|&other| other != class as usize);
            let right = own.is_some_and(|own| {
                // What is not a number is not smaller.
                others
                    .map(value)
                    .all(|other| other.is_some_and(|other| other < own))
            });
            tally.hits += u64::from(right);
            tally.false_alarms += u64::from(!right);
            tally.misses += u64::from(!right);
        }
        pixel += run.count as usize;
    }
    tally
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_of_one_class_are_one_run() {
        let runs = pixel_runs([Some(1), Some(1), None, Some(1)]);
        let written = serde_json::to_string(&runs).expect("JSON");
        assert_eq!(written, "[[1,2],[null,1],[1,1]]");
        let read: Vec<PixelRun> = serde_json::from_str(&written).expect("runs");
        assert_eq!(read, runs);
    }

    #[test]
    fn each_pixel_that_counts_is_right_or_wrong() {
        // Four pixels of two classes: right, a tie, left out, not a number.
        let answer = [0.9, 0.5, 0.0, 0.7, 0.1, 0.5, 1.0, f32::NAN];
        let truth = pixel_runs([Some(0), Some(0), None, Some(0)]);
        assert_eq!(judge(2, &answer, &truth), (1, 2, 2).into());
    }
}
