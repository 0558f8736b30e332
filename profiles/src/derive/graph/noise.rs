//! How samples scatter: mostly in proportion to their duration, and never less than a floor.

/// What rounding to a whole nanosecond alone adds: the standard deviation of a uniform error of ±½ ns.
pub(super) const ROUNDING_NS: f64 = 0.288_675_134_594_812_9;

/// How much further than the model a segment may scatter before it loses weight in the fit of the model.
const TOLERATED_EXCESS: f64 = 3.0;

/// Enough for the alternation of weights and parameters to settle to many more digits than matter.
const ROUNDS: usize = 30;

/// The standard deviation of one sample of a segment that takes T: sqrt((proportional · T)² + floor²).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NoiseModel {
    /// The part that grows with the duration: the standard deviation of the time's logarithm.
    pub proportional: f64,
    /// The part that does not, in ns; never less than what a clock of whole nanoseconds adds.
    pub floor_ns: f64,
}

/// The scatter of one segment's samples.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scatter {
    /// Where they scatter around, in ns.
    pub(super) time_ns: f64,
    /// Their variance, in ns².
    pub(super) variance: f64,
    /// From how many independent differences the variance is known.
    pub(super) freedom: f64,
}

impl NoiseModel {
    /// Nothing but the clock's rounding.
    pub(super) const SILENT: NoiseModel = NoiseModel {
        proportional: 0.0,
        floor_ns: ROUNDING_NS,
    };

    /// The model that the scatter of all segments together supports, by weighted least squares of
    /// variance against squared duration. A segment that scatters far more than the others loses weight.
    pub(super) fn fit(scatters: &[Scatter]) -> NoiseModel {
        let informative: Vec<&Scatter> = scatters.iter().filter(|s| s.freedom > 0.0).collect();
        let mut ratios: Vec<f64> = informative
            .iter()
            .map(|s| s.variance / (s.time_ns * s.time_ns))
            .collect();
        ratios.sort_unstable_by(f64::total_cmp);
        let Some(&middle) = ratios.get(ratios.len() / 2) else {
            return NoiseModel::SILENT;
        };
        let mut squares = (middle.max(0.0), ROUNDING_NS * ROUNDING_NS);
        for _ in 0..ROUNDS {
            squares = improved(squares, &informative);
        }
        NoiseModel {
            proportional: squares.0.sqrt(),
            floor_ns: squares.1.sqrt(),
        }
    }

    /// The standard deviation of a sample of a segment that takes `time_ns`.
    pub fn standard_deviation_ns(&self, time_ns: f64) -> f64 {
        (self.proportional * time_ns).hypot(self.floor_ns)
    }

    /// The time on a scale on which noise has standard deviation 1 whatever the duration: logarithmic
    /// where noise is proportional, linear where it is not (the generalised logarithm, Durbin et al.
    /// 2002). Its slope at T is 1 / [`standard_deviation_ns`](Self::standard_deviation_ns).
    pub(super) fn even_scale(self, time_ns: f64) -> f64 {
        if self.proportional == 0.0 {
            return time_ns / self.floor_ns;
        }
        (self.proportional * time_ns / self.floor_ns).asinh() / self.proportional
    }

    /// The inverse of [`even_scale`](Self::even_scale).
    pub(super) fn time_at(self, place: f64) -> f64 {
        if self.proportional == 0.0 {
            return place * self.floor_ns;
        }
        (self.proportional * place).sinh() * self.floor_ns / self.proportional
    }
}

/// One step of iteratively weighted least squares for variance = p·T² + f, with p ≥ 0 and f at least the
/// clock's rounding.
fn improved((p, f): (f64, f64), scatters: &[&Scatter]) -> (f64, f64) {
    // Sums over the segments of w, w·T², w·T⁴, w·v and w·v·T².
    let (mut w0, mut w2, mut w4, mut v0, mut v2) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for scatter in scatters {
        let square = scatter.time_ns * scatter.time_ns;
        let expected = p * square + f;
        let excess = scatter.variance / expected;
        // A variance known from d differences has variance 2 v² / d.
        let weight = scatter.freedom / (expected * expected) * (TOLERATED_EXCESS / excess).min(1.0);
        w0 += weight;
        w2 += weight * square;
        w4 += weight * square * square;
        v0 += weight * scatter.variance;
        v2 += weight * scatter.variance * square;
    }
    let least_floor = ROUNDING_NS * ROUNDING_NS;
    let determinant = w0 * w4 - w2 * w2;
    // Segments of about equal length cannot tell the two parts apart: then all is proportional.
    if determinant > 1e-9 * w0 * w4 {
        let (both_p, both_f) = (
            (w0 * v2 - w2 * v0) / determinant,
            (w4 * v0 - w2 * v2) / determinant,
        );
        if both_p >= 0.0 && both_f >= least_floor {
            return (both_p, both_f);
        }
        if both_p < 0.0 {
            return (0.0, (v0 / w0).max(least_floor));
        }
    }
    (((v2 - least_floor * w2) / w4).max(0.0), least_floor)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scatters(proportional: f64, floor: f64) -> Vec<Scatter> {
        (1..=40)
            .map(|index| {
                let time_ns = 1e5 * f64::from(index * index);
                let variance = (proportional * time_ns).powi(2) + floor * floor;
                Scatter {
                    time_ns,
                    variance,
                    freedom: 9.0,
                }
            })
            .collect()
    }

    #[test]
    fn both_parts_are_found() {
        for (proportional, floor) in [(0.03, 3e5), (0.005, 5e3), (0.0, 1e4), (0.02, ROUNDING_NS)] {
            let model = NoiseModel::fit(&scatters(proportional, floor));
            assert!(
                (model.proportional - proportional).abs() < 1e-4,
                "{model:?}"
            );
            assert!((model.floor_ns / floor - 1.0).abs() < 0.01, "{model:?}");
        }
    }

    #[test]
    fn one_wild_segment_does_not_move_the_model_far() {
        let mut wild = scatters(0.02, 5e3);
        wild[20].variance *= 1e4;
        let model = NoiseModel::fit(&wild);
        assert!((model.proportional / 0.02 - 1.0).abs() < 0.1, "{model:?}");
    }

    #[test]
    fn samples_that_do_not_scatter_have_the_clocks_noise_alone() {
        let model = NoiseModel::fit(&scatters(0.0, 0.0));
        assert_eq!(model, NoiseModel::SILENT);
        assert_eq!(NoiseModel::fit(&[]), NoiseModel::SILENT);
    }

    #[test]
    fn the_even_scale_goes_back_and_has_the_slope_of_the_noise() {
        for model in [
            NoiseModel::SILENT,
            NoiseModel {
                proportional: 0.03,
                floor_ns: 3e5,
            },
            NoiseModel {
                proportional: 0.01,
                floor_ns: ROUNDING_NS,
            },
        ] {
            for time in [2e3, 1e6, 3e8] {
                let place = model.even_scale(time);
                assert!((model.time_at(place) / time - 1.0).abs() < 1e-11);
                let step = time * 1e-5;
                let slope = (model.even_scale(time + step) - place) / step;
                let expected = 1.0 / model.standard_deviation_ns(time);
                assert!((slope / expected - 1.0).abs() < 1e-3, "{model:?} {time}");
            }
        }
    }
}
