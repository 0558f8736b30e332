//! Instants of RFC 3339 in UTC, as seconds that can be compared.

/// Days from 0000-03-01 to 1970-01-01.
const DAYS_TO_1970: i64 = 719_468;

/// The seconds from 1970 to an RFC 3339 instant in UTC, decimals of a second left out; `None` if `text` is none.
pub(super) fn utc_seconds(text: &str) -> Option<i64> {
    let (seconds, fraction) = text.strip_suffix('Z')?.split_at_checked(19)?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !fraction.is_empty() && !fraction.strip_prefix('.').is_some_and(digits) {
        return None;
    }
    let shape = "0000-00-00T00:00:00";
    let fits = seconds
        .bytes()
        .zip(shape.bytes())
        .all(|(byte, shape)| match shape {
            b'0' => byte.is_ascii_digit(),
            _ => byte == shape,
        });
    if !fits {
        return None;
    }
    let number = |from: usize, to: usize| seconds[from..to].parse::<i64>().ok();
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days_of_month = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        _ => return None,
    };
    // A leap second is the sixtieth.
    if !(1..=days_of_month).contains(&day) || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    // Years that begin in March have their leap day at the end (Hinnant, "chrono-compatible low-level date algorithms").
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * month + 2) / 5 + day - 1;
    let days = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - DAYS_TO_1970;
    Some(((days * 24 + hour) * 60 + minute) * 60 + second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_is_the_seconds_that_date_prints() {
        for (text, seconds) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2000-02-29T12:00:00Z", 951_825_600),
            ("2025-01-31T23:59:59.5Z", 1_738_367_999),
            ("2026-11-20T18:04:34Z", 1_795_197_874),
        ] {
            assert_eq!(utc_seconds(text), Some(seconds), "{text}");
        }
    }

    #[test]
    fn instants_are_in_utc_and_exist() {
        for text in [
            "",
            "Z",
            "2025-01-31 23:59:59Z",
            "2025-01-31T23:59:59+02:00",
            "2025-01-31T23:59:59.Z",
            "2025-01-31T23:59Z",
            "2025-02-29T00:00:00Z",
            "2025-13-01T00:00:00Z",
            "2025-01-01T24:00:00Z",
            "٢025-01-31T23:59:59Z",
        ] {
            assert_eq!(utc_seconds(text), None, "{text}");
        }
    }
}
