//! Recurring jobs: cron expressions with a time zone, such as `0 22 * * mon-fri Europe/Berlin`.

use std::fmt;
use std::str::FromStr;

use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{RoundMode, SignedDuration, Timestamp, TimestampRound, Unit};
use serde::{Deserialize, Serialize};

use super::zone::Zone;

/// When a job comes again.
///
/// Times of day (`30 2 * * *`) come once a day, as with cron: one that the clocks skip comes when they
/// have skipped it, one that they repeat comes the first time. Every so many hours or minutes
/// (`*/30 * * * *`) means real hours and minutes, which the clocks do not change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Recurrence {
    /// In a box: it is large, and most jobs do not recur.
    cron: Box<Cron>,
    /// As it was written, with single spaces.
    fields: String,
    zone: Zone,
}

/// Why a text is no recurrence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecurrenceError {
    /// Not five fields.
    #[error(
        "`{text}` has {found} of five fields; write minute, hour, day, month and weekday, such as `0 22 * * mon-fri`, \
         then a time zone if it is not this host's"
    )]
    Fields {
        /// What was written.
        text: String,
        /// How many fields that has.
        found: usize,
    },
    /// More than five fields and a zone.
    #[error(
        "`{0}` is one field too many; write minute, hour, day, month and weekday, such as `0 22 * * mon-fri`, then a \
         time zone if it is not this host's"
    )]
    TooMany(String),
    /// The sixth is no zone.
    #[error(
        "`{0}` is no time zone; after minute, hour, day, month and weekday, write one such as Europe/Berlin, or none \
         for this host's"
    )]
    Zone(String),
    /// One of the fields is nonsense.
    #[error("`{value}` is no {field}; write {remedy}")]
    Field {
        /// The field's name: minute, hour, day, month or weekday.
        field: &'static str,
        /// What was written.
        value: String,
        /// What can be written.
        remedy: &'static str,
    },
    /// A nickname that there is not.
    #[error(
        "`{0}` is unknown; write @hourly, @daily, @weekly, @monthly or @yearly, or five fields such as `0 22 * * mon-fri`"
    )]
    Nickname(String),
    /// A day that there is not.
    #[error("`{0}` never comes, since no such day exists; write another day or month")]
    Never(String),
}

/// Each field's name, and what can stand there.
const FIELDS: [(&str, &str); 5] = [
    (
        "minute",
        "0 to 59, `*`, a list, a range or a step, such as */15",
    ),
    (
        "hour",
        "0 to 23, `*`, a list, a range or a step, such as 22,23",
    ),
    (
        "day of the month",
        "1 to 31, `*`, a list, a range, a step, or L for the last",
    ),
    (
        "month",
        "1 to 12 or jan to dec, `*`, a list, a range or a step",
    ),
    (
        "weekday",
        "0 (Sunday) to 6 or mon to sun, `*`, a list or a range, such as mon-fri",
    ),
];

const NICKNAMES: [(&str, &str); 7] = [
    ("@hourly", "0 * * * *"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@weekly", "0 0 * * 0"),
    ("@monthly", "0 0 1 * *"),
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
];

impl Recurrence {
    /// The first occurrence after `t`.
    pub fn next_after(&self, t: Timestamp) -> Option<Timestamp> {
        let local = whole_second(t).to_zoned(self.zone.rules().clone());
        if self.is_periodic() {
            let next = self.cron.find_next_occurrence(&local, false).ok()?;
            return Some(next.timestamp());
        }
        // While the clocks repeat an hour, what they show ahead of them may have been before.
        let mut clock = local.datetime();
        loop {
            clock = self.cron.find_next_occurrence(&clock, false).ok()?;
            let next = instant(clock, self.zone.rules())?;
            if next > t {
                return Some(next);
            }
        }
    }

    /// The last occurrence at or before `t`: the one to catch up when nobody was there.
    pub fn latest_before(&self, t: Timestamp) -> Option<Timestamp> {
        let local = whole_second(t).to_zoned(self.zone.rules().clone());
        if self.is_periodic() {
            let latest = self.cron.find_previous_occurrence(&local, true).ok()?;
            return Some(latest.timestamp());
        }
        let mut clock = latest_shown(local.datetime(), self.zone.rules())?;
        let mut inclusive = true;
        loop {
            clock = self.cron.find_previous_occurrence(&clock, inclusive).ok()?;
            inclusive = false;
            let latest = instant(clock, self.zone.rules())?;
            if latest <= t {
                return Some(latest);
            }
        }
    }

    /// The same with its time zone by name, also if it is this host's.
    #[must_use]
    pub fn in_named_zone(self) -> Recurrence {
        Recurrence {
            zone: self.zone.as_named(),
            ..self
        }
    }

    /// Whether it comes every so many hours or minutes, not at times of day.
    fn is_periodic(&self) -> bool {
        self.cron.pattern.hours.from_wildcard
    }
}

/// Occurrences are at whole seconds, and the search takes what is less than one away for there.
fn whole_second(t: Timestamp) -> Timestamp {
    let down = TimestampRound::new()
        .smallest(Unit::Second)
        .mode(RoundMode::Floor);
    t.round(down).unwrap_or(t)
}

/// The instant at which clocks show `local`: the first if there are two, when they have skipped it if
/// there is none.
fn instant(local: DateTime, rules: &TimeZone) -> Option<Timestamp> {
    let ambiguous = rules.to_ambiguous_timestamp(local);
    let skipped = matches!(ambiguous.offset(), AmbiguousOffset::Gap { .. });
    let compatible = ambiguous.compatible().ok()?;
    if !skipped {
        return Some(compatible);
    }
    // `compatible` is as far after the change as `local` is into what was skipped.
    let soon_after = compatible.checked_add(SignedDuration::from_secs(1)).ok()?;
    let change = rules.preceding(soon_after).next()?;
    Some(change.timestamp())
}

/// The latest that clocks have shown when they show `local`, or later: they may have been put back.
fn latest_shown(local: DateTime, rules: &TimeZone) -> Option<DateTime> {
    match rules.to_ambiguous_timestamp(local).offset() {
        AmbiguousOffset::Fold { before, after } => {
            let put_back = SignedDuration::from_secs(i64::from(before.seconds() - after.seconds()));
            local.checked_add(put_back).ok()
        }
        _ => Some(local),
    }
}

impl FromStr for Recurrence {
    type Err = RecurrenceError;

    fn from_str(text: &str) -> Result<Recurrence, RecurrenceError> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let count = match words.first() {
            Some(word) if word.starts_with('@') => 1,
            _ => FIELDS.len(),
        };
        let Some((fields, rest)) = words.split_at_checked(count) else {
            return Err(RecurrenceError::Fields {
                text: text.trim().to_owned(),
                found: words.len(),
            });
        };
        let zone = match rest {
            [] => Zone::of_this_host(),
            [name] => name
                .parse()
                .map_err(|_| RecurrenceError::Zone((*name).to_owned()))?,
            [_, more, ..] => return Err(RecurrenceError::TooMany((*more).to_owned())),
        };
        let recurrence = Recurrence {
            cron: Box::new(cron(fields)?),
            fields: fields.join(" "),
            zone,
        };
        // Any day that exists comes within eight years, of which one is a leap year.
        match recurrence.next_after(Timestamp::UNIX_EPOCH) {
            Some(_) => Ok(recurrence),
            None => Err(RecurrenceError::Never(recurrence.fields)),
        }
    }
}

fn cron(fields: &[&str]) -> Result<Cron, RecurrenceError> {
    let parser = CronParser::builder()
        .seconds(Seconds::Disallowed)
        .year(Year::Disallowed)
        .build();
    if let [nickname] = fields {
        let known = NICKNAMES.iter();
        return known
            .filter(|(name, _)| name.eq_ignore_ascii_case(nickname))
            .find_map(|(_, pattern)| parser.parse(pattern).ok())
            .ok_or_else(|| RecurrenceError::Nickname((*nickname).to_owned()));
    }
    parser.parse(&fields.join(" ")).map_err(|_| {
        // The parser does not say which field it means.
        let alone = |wrong: usize| {
            let mut pattern = ["*"; FIELDS.len()];
            pattern[wrong] = fields[wrong];
            parser.parse(&pattern.join(" ")).is_err()
        };
        let wrong = (0..FIELDS.len()).find(|field| alone(*field)).unwrap_or(0);
        let (field, remedy) = FIELDS[wrong];
        RecurrenceError::Field {
            field,
            value: fields[wrong].to_owned(),
            remedy,
        }
    })
}

impl fmt::Display for Recurrence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.fields)?;
        match self.zone.name() {
            Some(zone) => write!(f, " {zone}"),
            None => Ok(()),
        }
    }
}

impl TryFrom<String> for Recurrence {
    type Error = RecurrenceError;

    fn try_from(text: String) -> Result<Recurrence, RecurrenceError> {
        text.parse()
    }
}

impl From<Recurrence> for String {
    fn from(recurrence: Recurrence) -> String {
        recurrence.to_string()
    }
}

#[cfg(test)]
mod tests;
