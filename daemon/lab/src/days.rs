//! Days of the week as users write them: `weekdays`, `mon-fri`, `mon,wed,sat`.

use std::fmt;

use jiff::civil::Weekday;

/// The names, from Monday on.
const NAMES: [&str; 7] = [
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
    "sunday",
];

/// A set of days; the lowest bit is Monday.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Days(u8);

impl Days {
    pub(super) const NONE: Days = Days(0);
    pub(super) const ALL: Days = Days(0b111_1111);
    const WEEKDAYS: Days = Days(0b001_1111);
    const WEEKENDS: Days = Days(0b110_0000);

    /// What one word means: a day, several days, or nothing that is about days.
    pub(super) fn of_word(word: &str) -> Option<Days> {
        let word = word.to_ascii_lowercase();
        match word.as_str() {
            "daily" => return Some(Days::ALL),
            "weekdays" => return Some(Days::WEEKDAYS),
            "weekends" => return Some(Days::WEEKENDS),
            _ => {}
        }
        let Some((first, last)) = word.split_once('-') else {
            return day(&word).map(|day| Days(1 << day));
        };
        let (first, last) = (day(first)?, day(last)?);
        // `fri-mon` goes round the end of the week.
        let length = (last + 7 - first) % 7;
        let days = (0..=length).map(|step| 1 << ((first + step) % 7));
        Some(Days(days.fold(0, |days, day| days | day)))
    }

    pub(super) fn and(self, other: Days) -> Days {
        Days(self.0 | other.0)
    }

    pub(super) fn contains(self, day: Weekday) -> bool {
        self.0 & (1 << day.to_monday_zero_offset()) != 0
    }
}

impl fmt::Display for Days {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Days::ALL => return f.write_str("daily"),
            Days::WEEKDAYS => return f.write_str("weekdays"),
            Days::WEEKENDS => return f.write_str("weekends"),
            _ => {}
        }
        let chosen = NAMES.iter().enumerate();
        let chosen = chosen.filter(|(day, _)| self.0 & (1 << day) != 0);
        let names: Vec<&str> = chosen.map(|(_, name)| &name[..3]).collect();
        f.write_str(&names.join(","))
    }
}

/// The number of a day from Monday, by its name or the name's first three letters.
fn day(name: &str) -> Option<u8> {
    let known = |full: &str| full == name || full[..3] == *name;
    (0..)
        .zip(&NAMES)
        .find_map(|(day, full)| known(full).then_some(day))
}
