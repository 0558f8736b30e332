//! Percentages as users write them.

use std::fmt;
use std::str::FromStr;

/// A percentage above 0 and below 100: `2%`, or `2`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Percent(pub(super) f64);

impl Percent {
    /// 2 % as 0.02.
    pub(super) fn share(self) -> f64 {
        self.0 / 100.0
    }
}

impl FromStr for Percent {
    type Err = String;

    fn from_str(text: &str) -> Result<Percent, String> {
        let number = text.strip_suffix('%').unwrap_or(text).trim_end();
        match number.parse::<f64>() {
            Ok(percent) if percent > 0.0 && percent < 100.0 => Ok(Percent(percent)),
            _ => Err("write a percentage above 0 and below 100, such as 2%".to_owned()),
        }
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_are_understood_or_refused() {
        for (text, expected) in [("2%", 0.02), ("2", 0.02), ("0.5 %", 0.005)] {
            assert_eq!(text.parse().map(Percent::share), Ok(expected), "{text}");
        }
        for text in ["0", "100%", "-1%", "2%%", "nan", "a few"] {
            let refusal = text.parse::<Percent>().expect_err(text);
            assert!(refusal.contains("such as 2%"), "{refusal}");
        }
    }

    #[test]
    fn a_percentage_reads_as_it_is_written() {
        let percent = Percent(2.0);
        assert_eq!(percent.to_string(), "2%");
        assert_eq!(percent.to_string().parse(), Ok(percent));
    }
}
