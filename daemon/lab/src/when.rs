//! Points in time and durations as users write them and as they read them.

use std::time::Duration;

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan};

/// Which of the moments that a text can mean is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The next one: `22:00` is ahead, `8h` is in eight hours.
    Next,
    /// The last one: `22:00` is behind, `8h` is eight hours ago.
    Last,
}

/// Why a text is no point in time, or no duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WhenError {
    /// No point in time.
    #[error(
        "`{0}` is no point in time; write one such as 22:00, `tomorrow 07:00`, `2026-11-21 07:00`, \
         2026-11-21T07:00+01:00 or 8h"
    )]
    Point(String),
    /// A date that the calendar does not have.
    #[error("`{0}` is no date; write YYYY-MM-DD, such as 2026-11-21")]
    Date(String),
    /// A time that the clock does not have.
    #[error("`{0}` is no time of day; write HH:MM, such as 22:00")]
    Time(String),
    /// It was to be a duration and is none.
    #[error("`{0}` is no duration; write a number with its unit, such as 40s, 30m, 8h or 7d")]
    Duration(String),
    /// Beyond the calendar.
    #[error("`{0}` is too far away; write a point in time before the year 9999")]
    TooFar(String),
}

/// The moment that `text` means at `now`, local times being those of `zone`.
///
/// Local times that the clocks skip move on by as much; of those that they repeat the first is meant.
pub fn point(
    text: &str,
    now: Timestamp,
    direction: Direction,
    zone: &TimeZone,
) -> Result<Timestamp, WhenError> {
    let text = text.trim();
    if let Ok(instant) = text.parse::<Timestamp>() {
        return Ok(instant);
    }
    let today = now.to_zoned(zone.clone()).date();
    let local = |date: Date, time: Time| instant(text, date.to_datetime(time), zone);
    if text.contains(':') && !text.contains([' ', '-']) {
        return time_of_day_from(text, now, direction, zone);
    }
    let separator = if text.contains(' ') { ' ' } else { 'T' };
    let (day, time) = match text.split_once(separator) {
        Some((day, time)) => (day, Some(time.trim_start())),
        None => (text, None),
    };
    let Some(date) = day_of(day, today)? else {
        return match period(text) {
            Ok(period) => relative(text, period, now, direction),
            Err(_) => Err(WhenError::Point(text.to_owned())),
        };
    };
    match time {
        None => local(date, Time::midnight()),
        Some(time) => match clock(time) {
            Some(time) => local(date, time),
            None => Err(WhenError::Time(time.to_owned())),
        },
    }
}

/// A duration such as `40s`, `30m` or `1h 30m`.
pub fn period(text: &str) -> Result<Duration, WhenError> {
    humantime::parse_duration(text.trim()).map_err(|_| WhenError::Duration(text.trim().to_owned()))
}

/// `at` for people, in `zone`: `Fri 20 Nov 22:00`, with the year if it is not that of `now`.
pub fn moment(at: Timestamp, now: Timestamp, zone: &TimeZone) -> String {
    let (at, now) = (at.to_zoned(zone.clone()), now.to_zoned(zone.clone()));
    let form = if at.year() == now.year() {
        "%a %-d %b %H:%M"
    } else {
        "%a %-d %b %Y %H:%M"
    };
    at.strftime(form).to_string()
}

/// `length` for people, in at most two units: `2 d 03 h`, `1 h 05 min`, `14 min`, `40 s`.
pub fn length(length: Duration) -> String {
    let seconds = length.as_secs() + u64::from(length.subsec_millis() >= 500);
    // Rounded before it is divided, so that nothing is sixty minutes long.
    let minutes = (seconds + 30) / 60;
    let hours = (minutes + 30) / 60;
    if seconds < 60 {
        format!("{seconds} s")
    } else if minutes < 60 {
        format!("{minutes} min")
    } else if minutes < 48 * 60 {
        format!("{} h {:02} min", minutes / 60, minutes % 60)
    } else {
        format!("{} d {:02} h", hours / 24, hours % 24)
    }
}

/// A time of day as `22:00` or `7:00`.
pub(super) fn time_of_day(text: &str) -> Option<Time> {
    let (hour, minute) = text.split_once(':')?;
    let hour = match hour.len() {
        1 => number(&format!("0{hour}")),
        _ => number(hour),
    };
    Time::new(hour?, number(minute)?, 0, 0).ok()
}

/// A time of day, with seconds or without.
fn clock(text: &str) -> Option<Time> {
    match text.rsplit_once(':') {
        Some((minute, second)) if minute.contains(':') => {
            let time = time_of_day(minute)?.with().second(number(second)?);
            time.build().ok()
        }
        _ => time_of_day(text),
    }
}

/// A number of exactly two digits.
fn number(text: &str) -> Option<i8> {
    let digits = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| digits)
}

/// The next or the last time that clocks show `text`.
fn time_of_day_from(
    text: &str,
    now: Timestamp,
    direction: Direction,
    zone: &TimeZone,
) -> Result<Timestamp, WhenError> {
    let time = clock(text).ok_or_else(|| WhenError::Time(text.to_owned()))?;
    let today = now.to_zoned(zone.clone()).date();
    let (first, step) = match direction {
        Direction::Next => (today.yesterday(), 1.day()),
        Direction::Last => (today.tomorrow(), -1.day()),
    };
    let days = first.map_err(|_| WhenError::TooFar(text.to_owned()))?;
    let instants = days
        .series(step)
        .map(|day| instant(text, day.to_datetime(time), zone));
    for instant in instants {
        let instant = instant?;
        let meant = match direction {
            Direction::Next => instant > now,
            Direction::Last => instant <= now,
        };
        if meant {
            return Ok(instant);
        }
    }
    Err(WhenError::TooFar(text.to_owned()))
}

/// The date that `day` means; none if it is nothing like a date.
fn day_of(day: &str, today: Date) -> Result<Option<Date>, WhenError> {
    let near = match day.to_ascii_lowercase().as_str() {
        "yesterday" => today.yesterday(),
        "today" => Ok(today),
        "tomorrow" => today.tomorrow(),
        _ if !day.contains('-') => return Ok(None),
        _ => day.parse(),
    };
    near.map(Some).map_err(|_| WhenError::Date(day.to_owned()))
}

fn relative(
    text: &str,
    period: Duration,
    now: Timestamp,
    direction: Direction,
) -> Result<Timestamp, WhenError> {
    let far = |_| WhenError::TooFar(text.to_owned());
    let period = SignedDuration::try_from(period).map_err(far)?;
    match direction {
        Direction::Next => now.checked_add(period),
        Direction::Last => now.checked_sub(period),
    }
    .map_err(far)
}

fn instant(text: &str, local: DateTime, zone: &TimeZone) -> Result<Timestamp, WhenError> {
    zone.to_timestamp(local)
        .map_err(|_| WhenError::TooFar(text.to_owned()))
}

#[cfg(test)]
mod tests;
