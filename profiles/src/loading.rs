//! What loading any segment takes, memory and time, from the segments that were loaded (docs/method.md §11).

use std::collections::BTreeMap;

use nalgebra::DMatrix;

use crate::derive::graph::t_95;
use crate::segment::Segment;
use crate::units::{Bytes, Nanos, SignedNanos};

/// What any segment of one model needs of a processor's memory, at most.
///
/// A segment needs no more than one that contains it, and no more than segments together that make it up: the least sum of
/// loaded segments that have all its layers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryNeeds {
    /// By the first layer, counted from 0, and how many layers follow it.
    needs: Vec<Vec<Option<u64>>>,
}

impl MemoryNeeds {
    /// The needs of the segments of a model of `layers` layers, of which these were loaded.
    pub fn of(layers: u32, loaded: &BTreeMap<Segment, Bytes>) -> MemoryNeeds {
        let count = layers as usize;
        // The least of a loaded segment that has layers `first..=last`, by both, counted from 0.
        let mut one: Vec<Vec<Option<u64>>> = vec![vec![None; count]; count];
        for (segment, bytes) in loaded {
            if segment.last() <= layers {
                let place = &mut one[segment.first() as usize - 1][segment.last() as usize - 1];
                *place = least(*place, Some(bytes.as_bytes()));
            }
        }
        for first in 0..count {
            for last in (first..count).rev() {
                let begun_before = first.checked_sub(1).and_then(|before| one[before][last]);
                let longer = one[first].get(last + 1).copied().flatten();
                one[first][last] = least(one[first][last], least(begun_before, longer));
            }
        }
        let mut needs: Vec<Vec<Option<u64>>> = vec![Vec::new(); count];
        for first in (0..count).rev() {
            let of_first: Vec<Option<u64>> = (first..count)
                .map(|last| {
                    let parted = (first..last).filter_map(|middle| {
                        let rest = needs[middle + 1][last - middle - 1]?;
                        Some(one[first][middle]?.saturating_add(rest))
                    });
                    least(one[first][last], parted.min())
                })
                .collect();
            needs[first] = of_first;
        }
        MemoryNeeds { needs }
    }

    /// What a segment needs at most; `None` where nothing was loaded that has all its layers.
    pub fn need(&self, segment: Segment) -> Option<Bytes> {
        let of_first = self.needs.get(segment.first() as usize - 1)?;
        let need = of_first.get(segment.layers() as usize - 1)?;
        need.map(Bytes::from_bytes)
    }
}

fn least(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

/// How long loading any segment of one model takes: a fixed time and that of each of its layers, by least squares over
/// loaded segments. Errors are taken to grow with the time.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadTimes {
    /// The fixed time, then that of each layer, in ns.
    values: Vec<f64>,
    /// Of the same numbers, in ns²; `None` where there are as many numbers as loaded segments.
    covariance: Option<Vec<Vec<f64>>>,
    freedom: f64,
}

impl LoadTimes {
    /// The times of a model of `layers` layers of which loading these segments took so long. `None` where they do not tell
    /// the time of each layer that was loaded. A layer that was in none of them has none.
    pub fn of(layers: u32, loads: &BTreeMap<Segment, Nanos>) -> Option<LoadTimes> {
        let loads: Vec<(Segment, f64)> = loads
            .iter()
            .filter(|(segment, _)| segment.last() <= layers)
            .map(|(&segment, &time)| (segment, time.as_nanos().max(1) as f64))
            .collect();
        let is_loaded = |layer: &u32| {
            let one = Segment::single(*layer);
            loads.iter().any(|(segment, _)| one.is_within(*segment))
        };
        let known: Vec<u32> = (1..=layers).filter(is_loaded).collect();
        if known.is_empty() {
            return None;
        }
        // Where no two layers were loaded together, the fixed time is part of each layer's.
        [true, false].into_iter().find_map(|has_fixed| {
            let columns = known.iter().map(|&layer| layer as usize);
            let columns: Vec<usize> = has_fixed.then_some(0).into_iter().chain(columns).collect();
            LoadTimes::by_columns(layers, &loads, &columns)
        })
    }

    /// The same where only these numbers, 0 for the fixed time and otherwise a layer, are not zero.
    fn by_columns(layers: u32, loads: &[(Segment, f64)], columns: &[usize]) -> Option<LoadTimes> {
        let unknowns = columns.len();
        let row = |segment: Segment| -> Vec<f64> {
            let has = |column: &usize| match *column {
                0 => 1.0,
                layer => f64::from(u8::from(Segment::single(layer as u32).is_within(segment))),
            };
            columns.iter().map(has).collect()
        };
        let (mut normal, mut right) = (vec![vec![0.0; unknowns]; unknowns], vec![0.0; unknowns]);
        for &(segment, time) in loads {
            let row: Vec<f64> = row(segment).into_iter().map(|one| one / time).collect();
            for (place, &one) in row.iter().enumerate().filter(|(_, one)| **one != 0.0) {
                right[place] += one;
                for (sum, &other) in normal[place].iter_mut().zip(&row) {
                    *sum += one * other;
                }
            }
        }
        let inverse = inverse(&normal)?;
        let found: Vec<f64> = inverse.iter().map(|row| dot(row, &right)).collect();
        let squares = loads.iter().map(|&(segment, time)| {
            let error = dot(&row(segment), &found) / time - 1.0;
            error * error
        });
        let squares: f64 = squares.sum();
        let freedom = loads.len() as f64 - unknowns as f64;
        let count = layers as usize + 1;
        let mut values = vec![0.0; count];
        let mut covariance = vec![vec![0.0; count]; count];
        for (place, &column) in columns.iter().enumerate() {
            values[column] = found[place];
            for (other, &beside) in columns.iter().enumerate() {
                covariance[column][beside] = inverse[place][other] * squares / freedom;
            }
        }
        Some(LoadTimes {
            values,
            covariance: (freedom > 0.0).then_some(covariance),
            freedom,
        })
    }

    /// The part of loading a segment that is the same for all segments, to the nearest nanosecond.
    pub fn fixed(&self) -> SignedNanos {
        SignedNanos::from_nanos(self.values[0].round() as i64)
    }

    /// What a layer, counted from 1, adds to loading a segment, to the nearest nanosecond.
    pub fn layer(&self, layer: u32) -> SignedNanos {
        let value = self.values.get(layer as usize).copied().unwrap_or(0.0);
        SignedNanos::from_nanos(value.round() as i64)
    }

    /// What loading a segment takes: the sum of these.
    pub fn segment(&self, segment: Segment) -> SignedNanos {
        let layers = segment.first()..=segment.last();
        layers.fold(self.fixed(), |sum, layer| sum + self.layer(layer))
    }

    /// Half the width, in ns, of the 95 % interval of loading all these segments; `None` where it is not known.
    pub fn half_width_ns(&self, segments: impl IntoIterator<Item = Segment>) -> Option<f64> {
        let covariance = self.covariance.as_ref()?;
        let mut counts = vec![0.0; self.values.len()];
        for segment in segments {
            counts[0] += 1.0;
            for layer in segment.first()..=segment.last() {
                *counts.get_mut(layer as usize)? += 1.0;
            }
        }
        let variance: f64 = covariance
            .iter()
            .zip(&counts)
            .map(|(row, count)| count * dot(row, &counts))
            .sum();
        Some(t_95(self.freedom) * variance.max(0.0).sqrt())
    }
}

fn dot(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(a, b)| a * b).sum()
}

/// The inverse of a positive definite matrix; `None` where it is singular to double precision.
fn inverse(matrix: &[Vec<f64>]) -> Option<Vec<Vec<f64>>> {
    let count = matrix.len();
    // Scaled so that all are of one size on the diagonal.
    let scale: Vec<f64> = (0..count)
        .map(|place| matrix[place][place].sqrt())
        .collect();
    if !scale.iter().all(|one| *one > 0.0) {
        return None;
    }
    let scaled = |row: usize, column: usize| matrix[row][column] / (scale[row] * scale[column]);
    let factors = DMatrix::from_fn(count, count, scaled).cholesky()?;
    if factors.l_dirty().diagonal().min() < 1e-5 {
        return None;
    }
    let inverse = factors.inverse();
    let row = |row: usize| {
        let columns = 0..count;
        columns
            .map(|column| inverse[(row, column)] / (scale[row] * scale[column]))
            .collect()
    };
    Some((0..count).map(row).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::derive::graph::normal_quantile;
    use crate::design::Design;

    fn segment(first: u32, last: u32) -> Segment {
        Segment::new(first, last).expect("ascending")
    }

    proptest! {
        /// By trying all sets of loaded segments.
        #[test]
        fn a_segment_needs_the_least_of_loaded_segments_that_have_its_layers(
            loaded in prop::collection::btree_map((1..6_u32, 0..4_u32), 1..9_u64, 0..8)
        ) {
            let loaded: BTreeMap<Segment, Bytes> = loaded
                .into_iter()
                .map(|((first, more), bytes)| {
                    (segment(first, (first + more).min(6)), Bytes::from_bytes(bytes))
                })
                .collect();
            let needs = MemoryNeeds::of(6, &loaded);
            let all: Vec<(&Segment, &Bytes)> = loaded.iter().collect();
            for one in Design::Grouped.segments(6) {
                let sets = (0..1_u32 << all.len()).map(|set| {
                    let chosen = (0..all.len()).filter(move |place| set >> place & 1 == 1);
                    chosen.map(|place| all[place]).collect::<Vec<_>>()
                });
                let has_all = sets.filter(|set| {
                    (one.first()..=one.last()).all(|layer| {
                        set.iter().any(|(s, _)| Segment::single(layer).is_within(**s))
                    })
                });
                let sums = has_all.map(|set| set.iter().map(|(_, bytes)| **bytes).sum::<Bytes>());
                prop_assert_eq!(needs.need(one), sums.min(), "{}", one);
            }
        }
    }

    fn planted(segment: Segment) -> f64 {
        let layer = |layer: u32| f64::from(layer * layer) * 1e6;
        3e6 + (segment.first()..=segment.last()).map(layer).sum::<f64>()
    }

    #[test]
    fn what_was_planted_is_found() {
        let loads = Design::Local.segments(9).into_iter();
        let loads = loads.map(|one| (one, Nanos::from_nanos(planted(one) as u64)));
        let loads: BTreeMap<Segment, Nanos> = loads.filter(|(one, _)| one.layers() < 9).collect();
        let times = LoadTimes::of(9, &loads).expect("enough");
        for one in Design::Grouped.segments(9) {
            let found = times.segment(one).as_nanos() as f64;
            assert!((found - planted(one)).abs() < 10.0, "{one}: {found}");
        }
        let half_width = times.half_width_ns([Segment::whole(9)]);
        assert!(half_width.is_some_and(|half| half < 10.0), "{half_width:?}");
    }

    #[test]
    fn intervals_hold_what_was_planted_about_as_often_as_they_say() {
        use rand::{Rng as _, SeedableRng};
        let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(5);
        let (mut held, mut all) = (0, 0);
        for _ in 0..200 {
            let loads = Design::Local.segments(12).into_iter().map(|one| {
                let noise = normal_quantile(random.random_range(1e-12..1.0));
                let time = planted(one) * (1.0 + 0.02 * noise);
                (one, Nanos::from_nanos(time as u64))
            });
            let times = LoadTimes::of(12, &loads.collect()).expect("enough");
            for runs in [vec![segment(3, 7)], vec![segment(1, 2), segment(5, 12)]] {
                let half_width = times.half_width_ns(runs.iter().copied()).expect("known");
                let found: i64 = runs.iter().map(|&one| times.segment(one).as_nanos()).sum();
                let truth: f64 = runs.iter().map(|&one| planted(one)).sum();
                held += usize::from((found as f64 - truth).abs() <= half_width);
                all += 1;
            }
        }
        let share = held as f64 / all as f64;
        assert!((0.92..=0.98).contains(&share), "{share}");
    }

    #[test]
    fn layers_that_were_never_loaded_together_have_the_fixed_time_in_their_own() {
        let alone = (1..=3).map(|layer| (Segment::single(layer), Nanos::from_millis(5)));
        let times = LoadTimes::of(4, &alone.collect()).expect("enough");
        assert_eq!(times.fixed(), SignedNanos::ZERO);
        assert_eq!(times.layer(2).as_nanos(), 5_000_000);
        assert_eq!(times.layer(4), SignedNanos::ZERO);
        assert_eq!(times.half_width_ns([Segment::single(1)]), None);
        let whole = [(Segment::whole(3), Nanos::from_millis(5))];
        assert_eq!(LoadTimes::of(3, &whole.into()), None);
        assert_eq!(LoadTimes::of(3, &BTreeMap::new()), None);
    }
}
