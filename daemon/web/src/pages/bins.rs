//! Bins of a histogram: how many samples took how long.

use layerlab_profiles::Nanos;

/// More bins cannot be told apart on a phone.
const MOST: u64 = 60;

/// So many bins at most are below the first quarter of the samples: the rest are for what takes longer, which is more common.
const MOST_BELOW: u64 = 20;

/// Bins of equal width. Those at the ends also have what lies beyond them.
pub(super) struct Bins {
    begin: u64,
    width: u64,
    counts: Vec<u64>,
    is_open_below: bool,
    is_open_above: bool,
}

impl Bins {
    /// Bins of the width of Freedman and Diaconis (1981): twice the interquartile range over the cube root of how many samples
    /// there are. None without samples.
    pub(super) fn of(samples: &[Nanos]) -> Option<Bins> {
        let mut sorted: Vec<u64> = samples.iter().map(|sample| sample.as_nanos()).collect();
        sorted.sort_unstable();
        let (&shortest, &longest) = (sorted.first()?, sorted.last()?);
        let quarter = |quarters: usize| sorted[(sorted.len() - 1) * quarters / 4];
        let between = (quarter(3) - quarter(1)) as f64;
        let width = (2.0 * between / (sorted.len() as f64).cbrt()).ceil() as u64;
        // Where most samples are equal, bins are as wide as they must be to show all.
        let width = match width {
            0 => (longest - shortest) / MOST + 1,
            width => width,
        };
        let below = width.saturating_mul(MOST_BELOW);
        let begin = shortest.max(quarter(1).saturating_sub(below));
        let needed = (longest - begin) / width + 1;
        let mut counts = vec![0; needed.min(MOST) as usize];
        for sample in sorted {
            let bin = sample.saturating_sub(begin) / width;
            counts[bin.min(MOST - 1) as usize] += 1;
        }
        Some(Bins {
            begin,
            width,
            counts,
            is_open_below: shortest < begin,
            is_open_above: needed > MOST,
        })
    }

    /// Where the first bin begins and the last ends.
    pub(super) fn ends(&self) -> (Nanos, Nanos) {
        let all = self.width.saturating_mul(self.counts.len() as u64);
        let end = self.begin.saturating_add(all);
        (Nanos::from_nanos(self.begin), Nanos::from_nanos(end))
    }

    /// Each bin, the shortest times first: where its middle is, its name, and how many samples are in it.
    pub(super) fn each(&self) -> impl Iterator<Item = (Nanos, String, u64)> {
        let last = self.counts.len() - 1;
        self.counts.iter().enumerate().map(move |(place, &count)| {
            let begin = self
                .begin
                .saturating_add(self.width.saturating_mul(place as u64));
            let end = Nanos::from_nanos(begin.saturating_add(self.width));
            let name = match (
                self.is_open_below && place == 0,
                self.is_open_above && place == last,
            ) {
                (true, _) => format!("less than {end}"),
                (_, true) => format!("{} and more", Nanos::from_nanos(begin)),
                (false, false) => format!("{} to {end}", Nanos::from_nanos(begin)),
            };
            let middle = Nanos::from_nanos(begin.saturating_add(self.width / 2));
            (middle, name, count)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bins(samples: impl IntoIterator<Item = u64>) -> Vec<(String, u64)> {
        let samples: Vec<Nanos> = samples.into_iter().map(Nanos::from_nanos).collect();
        let bins = Bins::of(&samples).expect("there are samples");
        bins.each().map(|(_, name, count)| (name, count)).collect()
    }

    #[test]
    fn every_sample_is_in_one_bin_and_outliers_in_the_last() {
        // 0 to 999 ns: quartiles 500 apart, so that bins are 100 wide.
        let even = bins(0..1000);
        assert_eq!(even.len(), 10);
        assert!(even.iter().all(|(_, count)| *count == 100), "{even:?}");
        assert_eq!(even[3].0, "300 ns to 400 ns");
        let with_outliers = bins((100_000..101_000).chain([5, 900_000_000]));
        assert_eq!(with_outliers.len(), 60);
        assert_eq!(
            with_outliers.iter().map(|(_, count)| count).sum::<u64>(),
            1002
        );
        assert!(
            with_outliers[0].0.starts_with("less than"),
            "{with_outliers:?}"
        );
        assert_eq!(with_outliers[0].1, 1);
        assert!(
            with_outliers[59].0.ends_with("and more"),
            "{with_outliers:?}"
        );
        assert_eq!(with_outliers[59].1, 1);
    }

    #[test]
    fn samples_that_are_all_equal_are_in_one_bin() {
        assert_eq!(bins([7, 7, 7]), [("7 ns to 8 ns".to_owned(), 3)]);
        assert!(Bins::of(&[]).is_none());
        assert_eq!(
            bins([0, u64::MAX])
                .iter()
                .map(|(_, count)| count)
                .sum::<u64>(),
            2
        );
    }
}
