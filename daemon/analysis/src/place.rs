//! Where the rows of a profile lie: a folder for each model and month, as Hive names them, which DuckDB, pandas and Spark read as
//! columns `model` and `month`.

use std::path::{Path, PathBuf};

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// What is escaped in the name of a model: all but what is safe in paths and URLs.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');

/// The folder, in that of a table, for rows of `model` that were measured in `night`.
pub(crate) fn partition(table: &Path, model: &str, night: Date) -> PathBuf {
    let model = utf8_percent_encode(model, ESCAPED);
    table.join(format!("model={model}")).join(format!(
        "month={:04}-{:02}",
        night.year(),
        night.month()
    ))
}

/// The night to which a measurement belongs that began at `started`: it lasts from noon to noon in UTC, and is named by the day on
/// which it begins.
pub(crate) fn night(started: Timestamp) -> Date {
    let half_a_day = SignedDuration::from_hours(12);
    let shifted = started.checked_sub(half_a_day).unwrap_or(started);
    shifted.to_zoned(TimeZone::UTC).date()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_night_lasts_from_noon_to_noon() {
        for (started, expected) in [
            ("2026-11-01T11:59:59Z", "2026-10-31"),
            ("2026-11-01T12:00:00Z", "2026-11-01"),
            ("2026-11-02T03:00:00Z", "2026-11-01"),
        ] {
            let started: Timestamp = started.parse().expect("a time");
            assert_eq!(night(started).to_string(), expected);
        }
    }

    #[test]
    fn no_name_of_a_model_leaves_its_folder() {
        let night = "2026-03-31".parse().expect("a day");
        for (model, folder) in [
            ("vocnet-mini", "model=vocnet-mini"),
            ("../a/b=c", "model=..%2Fa%2Fb%3Dc"),
            ("größe 1%", "model=gr%C3%B6%C3%9Fe%201%25"),
        ] {
            let expected = Path::new("layers").join(folder).join("month=2026-03");
            assert_eq!(partition(Path::new("layers"), model, night), expected);
        }
    }
}
