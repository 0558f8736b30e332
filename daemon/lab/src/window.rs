//! Windows: the hours, and the days on which they begin, in which the lab may use phones.

use std::fmt;
use std::str::FromStr;

use jiff::civil::{Date, Time};
use jiff::{Timestamp, ToSpan};
use serde::{Deserialize, Serialize};

use super::days::Days;
use super::zone::Zone;

/// When the lab may work, such as `22:00-07:00 Europe/Berlin, weekdays`, or `always`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Window {
    /// None: always.
    hours: Option<Hours>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Hours {
    opens: Time,
    closes: Time,
    /// The days on which it opens; it may close on the next.
    days: Days,
    zone: Zone,
}

/// What a window is at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowState {
    /// Work may run.
    Open {
        /// The moment from which it may not; none if that never comes.
        until: Option<Timestamp>,
    },
    /// The window is closed, and work waits until it opens.
    Closed {
        /// The moment from which it need not.
        opens: Timestamp,
    },
}

/// Why a text is no window.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WindowError {
    /// There is nothing.
    #[error(
        "a window is missing; write one such as `22:00-07:00 Europe/Berlin, weekdays`, or `always`"
    )]
    Empty,
    /// It does not begin with two times of day.
    #[error("`{0}` is no span of hours; write HH:MM-HH:MM, such as 22:00-07:00, or `always`")]
    Hours(String),
    /// One of the two is no time of day.
    #[error("`{0}` is no time of day; write HH:MM, such as 22:00")]
    Time(String),
    /// A word is neither days nor a zone.
    #[error(
        "`{0}` is neither days nor a time zone; write days such as weekdays, mon-fri or mon,wed,sat, and a zone such as \
         Europe/Berlin"
    )]
    Word(String),
    /// It names two time zones.
    #[error("`{first}` and `{second}` are two time zones; write one")]
    TwoZones {
        /// The time zone that was written first.
        first: String,
        /// The time zone that was written second.
        second: String,
    },
    /// `always`, and more.
    #[error(
        "`always` has neither days nor a time zone; leave `{0}` out, or write hours such as 00:00-24:00"
    )]
    Always(String),
}

impl Window {
    /// The window that never closes.
    pub const ALWAYS: Window = Window { hours: None };

    /// Whether its hours are those of whichever host reads it: it names no time zone, and has hours.
    pub fn is_by_host(&self) -> bool {
        self.hours
            .as_ref()
            .is_some_and(|hours| hours.zone.name().is_none())
    }

    /// Whether it is open at `now`, and when that changes.
    pub fn state(&self, now: Timestamp) -> WindowState {
        match &self.hours {
            Some(hours) if !hours.never_close() => hours.state(now),
            _ => WindowState::Open { until: None },
        }
    }

    /// From when until when it is open between `from` and `until`, in order.
    pub fn open_between(&self, from: Timestamp, until: Timestamp) -> Vec<(Timestamp, Timestamp)> {
        let mut open = Vec::new();
        let mut now = from;
        while now < until {
            now = match self.state(now) {
                WindowState::Closed { opens } => opens,
                WindowState::Open { until: closes } => {
                    let closes = closes.map_or(until, |closes| closes.min(until));
                    open.push((now, closes));
                    closes
                }
            };
        }
        open
    }
}

impl Hours {
    fn never_close(&self) -> bool {
        self.days == Days::ALL && self.opens == self.closes
    }

    fn state(&self, now: Timestamp) -> WindowState {
        // What opened two days ago is closed by now in every zone.
        let today = now.to_zoned(self.zone.rules().clone()).date();
        let start = today.checked_sub(2.days()).unwrap_or(today);
        let mut open_until = None;
        for (opens, closes) in start.series(1.day()).filter_map(|day| self.on(day)) {
            open_until = match open_until {
                Some(until) if opens > until => break,
                // The next one begins before this one ends: they are one.
                Some(until) => Some(closes.max(until)),
                None if closes <= now => None,
                None if opens > now => return WindowState::Closed { opens },
                None => Some(closes),
            };
        }
        match open_until {
            Some(until) => WindowState::Open { until: Some(until) },
            None => WindowState::Closed {
                opens: Timestamp::MAX,
            },
        }
    }

    /// When it opens on `day` and when it closes then. None if it does not open, or if the clocks skip
    /// all of it.
    fn on(&self, day: Date) -> Option<(Timestamp, Timestamp)> {
        if !self.days.contains(day.weekday()) {
            return None;
        }
        let last = if self.closes > self.opens {
            day
        } else {
            day.tomorrow().ok()?
        };
        let instant = |day: Date, time: Time| {
            let local = day.to_datetime(time);
            self.zone.rules().to_timestamp(local).ok()
        };
        let (opens, closes) = (instant(day, self.opens)?, instant(last, self.closes)?);
        (opens < closes).then_some((opens, closes))
    }
}

impl FromStr for Window {
    type Err = WindowError;

    fn from_str(text: &str) -> Result<Window, WindowError> {
        let text = text.replace(" - ", "-");
        let mut words = text
            .split(|c: char| c == ',' || c.is_whitespace())
            .filter(|word| !word.is_empty());
        let span = words.next().ok_or(WindowError::Empty)?;
        if span.eq_ignore_ascii_case("always") {
            return match words.next() {
                None => Ok(Window::ALWAYS),
                Some(word) => Err(WindowError::Always(word.to_owned())),
            };
        }
        let (opens, closes) = hours(span)?;
        let mut days = Days::NONE;
        let mut zone: Option<Zone> = None;
        for word in words {
            if let Some(more) = Days::of_word(word) {
                days = days.and(more);
                continue;
            }
            let second: Zone = word
                .parse()
                .map_err(|_| WindowError::Word(word.to_owned()))?;
            if let Some(first) = zone {
                return Err(WindowError::TwoZones {
                    first: first.to_string(),
                    second: second.to_string(),
                });
            }
            zone = Some(second);
        }
        Ok(Window {
            hours: Some(Hours {
                opens,
                closes,
                days: if days == Days::NONE { Days::ALL } else { days },
                zone: zone.unwrap_or_else(Zone::of_this_host),
            }),
        })
    }
}

fn hours(span: &str) -> Result<(Time, Time), WindowError> {
    let (opens, closes) = span
        .split_once(['-', '–'])
        .filter(|(opens, closes)| !opens.is_empty() && !closes.is_empty())
        .ok_or_else(|| WindowError::Hours(span.to_owned()))?;
    let opens = time_of_day(opens)?;
    match closes {
        "24:00" => Ok((opens, Time::midnight())),
        closes => Ok((opens, time_of_day(closes)?)),
    }
}

fn time_of_day(text: &str) -> Result<Time, WindowError> {
    super::when::time_of_day(text).ok_or_else(|| WindowError::Time(text.to_owned()))
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(hours) = &self.hours else {
            return f.write_str("always");
        };
        let Hours { opens, closes, .. } = hours;
        write!(
            f,
            "{}-{}",
            opens.strftime("%H:%M"),
            closes.strftime("%H:%M")
        )?;
        if let Some(zone) = hours.zone.name() {
            write!(f, " {zone}")?;
        }
        match hours.days {
            Days::ALL => Ok(()),
            days => write!(f, ", {days}"),
        }
    }
}

impl TryFrom<String> for Window {
    type Error = WindowError;

    fn try_from(text: String) -> Result<Window, WindowError> {
        text.parse()
    }
}

impl From<Window> for String {
    fn from(window: Window) -> String {
        window.to_string()
    }
}

#[cfg(test)]
mod tests;
