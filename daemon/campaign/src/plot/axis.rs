//! The vertical or horizontal axis of a chart: which values it shows, and which of them are named.

/// What an axis counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Nanoseconds, named in the unit that reads best.
    Time,
    /// Hundredths.
    Percent,
    /// Fractions, as accuracies are.
    Fraction,
    /// Bits in a second, named in the unit that reads best.
    Bandwidth,
}

/// From a value to its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    low: f64,
    high: f64,
    is_logarithmic: bool,
    /// Values with their names, lowest first.
    pub ticks: Vec<(f64, String)>,
}

/// About how many values of a linear axis are named.
const TICKS: f64 = 5.0;

impl Axis {
    /// Even steps over at least these values.
    pub fn linear(low: f64, high: f64, unit: Unit) -> Axis {
        // What takes no time at all still has an axis.
        let high = if high > low { high } else { low + 1.0 };
        let step = round_step((high - low) / TICKS);
        let last = (high / step).ceil();
        // What is hardly below zero needs no step of its own.
        let is_hardly_below = low < 0.0 && low > -0.3 * step;
        let first = if is_hardly_below {
            0.0
        } else {
            (low / step).floor()
        };
        let (low, high) = (low.min(first * step), last * step);
        let most = high.abs().max(low.abs());
        let ticks = (0..=(last - first).round() as i64).map(|place| {
            let value = (first + place as f64) * step;
            (value, name(value, step, most, unit))
        });
        Axis {
            low,
            high,
            is_logarithmic: false,
            ticks: ticks.collect(),
        }
    }

    /// Each step as many times the last, over at least these values, which are more than 0.
    pub fn logarithmic(low: f64, high: f64, unit: Unit) -> Axis {
        let exponents = low.log10().floor() as i32..=high.log10().ceil() as i32;
        let steps = exponents.flat_map(|exponent| [1.0, 2.0, 5.0].map(|of| (of, exponent)));
        let values: Vec<(f64, bool)> = steps
            .map(|(of, exponent)| (of * 10_f64.powi(exponent), of == 1.0))
            .collect();
        let under = values.iter().rev().find(|(value, _)| *value <= low);
        let over = values
            .iter()
            .find(|(value, _)| *value >= high && *value > low);
        let low = under.map_or(low, |(value, _)| *value);
        let high = over.map_or(10.0 * low, |(value, _)| *value);
        let shown = || {
            values
                .iter()
                .filter(|(value, _)| (low..=high).contains(value))
        };
        // Where there are few decades, twos and fives are named as well.
        let is_short = shown().count() <= TICKS as usize + 2;
        let named = shown().filter(|(_, is_decade)| *is_decade || is_short);
        let ticks = named.map(|(value, _)| (*value, name(*value, *value, *value, unit)));
        Axis {
            low,
            high,
            is_logarithmic: true,
            ticks: ticks.collect(),
        }
    }

    /// Where a value lies between the axis's ends, 0 to 1; values beyond an end lie at the end.
    pub fn share(&self, value: f64) -> f64 {
        let share = match self.is_logarithmic {
            false => (value - self.low) / (self.high - self.low),
            // Nothing and less lie at the foot.
            true => (value.max(self.low) / self.low).ln() / (self.high / self.low).ln(),
        };
        share.clamp(0.0, 1.0)
    }

    /// The pixel of a value, on an axis from one pixel to another.
    pub fn pixel(&self, value: f64, from: i32, to: i32) -> i32 {
        from + (f64::from(to - from) * self.share(value)).round() as i32
    }

    /// The highest value that is shown.
    pub fn high(&self) -> f64 {
        self.high
    }
}

/// The next higher of 1, 2, 5 and their tenfolds.
fn round_step(step: f64) -> f64 {
    let decade = 10_f64.powf(step.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|of| of * decade);
    // Half a thousandth is what rounding may have added.
    let next = steps.into_iter().find(|next| *next >= step * 0.9995);
    next.unwrap_or(10.0 * decade)
}

/// A value for readers: as exact as `step` needs, in the unit in which `most` is read best.
fn name(value: f64, step: f64, most: f64, unit: Unit) -> String {
    let (scale, symbol) = match unit {
        Unit::Time if most >= 1e9 => (1e9, " s"),
        Unit::Time if most >= 1e6 => (1e6, " ms"),
        Unit::Time if most >= 1e3 => (1e3, " µs"),
        Unit::Time => (1.0, " ns"),
        Unit::Percent => (1.0, " %"),
        Unit::Fraction => (1.0, ""),
        Unit::Bandwidth if most >= 1e9 => (1e9, " Gbit/s"),
        Unit::Bandwidth if most >= 1e6 => (1e6, " Mbit/s"),
        Unit::Bandwidth if most >= 1e3 => (1e3, " kbit/s"),
        Unit::Bandwidth => (1.0, " bit/s"),
    };
    let decimals = (-(step / scale).log10().floor()).clamp(0.0, 6.0) as usize;
    // No name is -0.
    let value = if value == 0.0 { 0.0 } else { value / scale };
    format!("{value:.decimals$}{symbol}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|(_, name)| name.as_str()).collect()
    }

    #[test]
    fn linear_axes_are_named_in_one_unit() {
        let axis = Axis::linear(0.0, 1.18e6, Unit::Time);
        let expected = ["0.0 ms", "0.5 ms", "1.0 ms", "1.5 ms"];
        assert_eq!(names(&axis), expected);
        assert_eq!(names(&Axis::linear(-3.0, 9.0, Unit::Percent))[0], "-5 %");
        // Noise below zero is shown, and the axis begins at zero all the same.
        let noisy = Axis::linear(-2e4, 1.18e6, Unit::Time);
        assert_eq!(names(&noisy), expected);
        assert!(noisy.pixel(0.0, 100, 0) < 100);
        assert_eq!(axis.pixel(0.0, 100, 0), 100);
        assert_eq!(axis.pixel(1.5e6, 100, 0), 0);
    }

    #[test]
    fn logarithmic_axes_name_decades_each_in_its_unit() {
        let axis = Axis::logarithmic(700.0, 1.2e6, Unit::Time);
        assert_eq!(names(&axis), ["1 µs", "10 µs", "100 µs", "1 ms"]);
        assert_eq!(
            names(&Axis::logarithmic(1.1e6, 4.0e6, Unit::Time)),
            ["1 ms", "2 ms", "5 ms"]
        );
        assert_eq!(
            names(&Axis::logarithmic(1e5, 1e9, Unit::Bandwidth)),
            [
                "100 kbit/s",
                "1 Mbit/s",
                "10 Mbit/s",
                "100 Mbit/s",
                "1 Gbit/s"
            ]
        );
        // What is below the foot, or nothing, lies at the foot.
        assert_eq!(axis.share(-5.0), 0.0);
        let (low, middle) = (axis.share(1e3), axis.share(1e5) - axis.share(1e4));
        assert!(low > 0.0 && middle > 0.25, "{low} {middle}");
    }
}
