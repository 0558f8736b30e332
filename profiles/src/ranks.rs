//! Which of two devices is the faster, at first and after a while: a device that throttles may fall behind one that is slower.

use crate::document::{MinuteRow, Profile};
use crate::summary::Estimate;

/// A processor of both devices in one minute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankedMinute {
    /// The minute since they were begun to be kept busy, counted from 1.
    pub minute: u32,
    /// What the whole model takes on the first device.
    pub one: Estimate,
    /// What it takes on the second.
    pub other: Estimate,
}

/// Which of two devices is the faster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Faster {
    /// The first.
    One,
    /// The second.
    Other,
}

/// A processor of both devices, at first and after a while.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ranks {
    /// The processor, by its name.
    pub processor: String,
    /// The first minute.
    pub first: RankedMinute,
    /// The last minute that both were kept busy for.
    pub last: RankedMinute,
}

impl RankedMinute {
    /// Which is the faster, if the 95 % intervals of the two do not meet.
    pub fn faster(&self) -> Option<Faster> {
        let ((one_low, one_high), (other_low, other_high)) = (self.one.ci95?, self.other.ci95?);
        if one_high < other_low {
            Some(Faster::One)
        } else if other_high < one_low {
            Some(Faster::Other)
        } else {
            None
        }
    }
}

impl Ranks {
    /// Whether one is the faster at first, and the other in the end.
    pub fn swap(&self) -> bool {
        match (self.first.faster(), self.last.faster()) {
            (Some(first), Some(last)) => first != last,
            _ => false,
        }
    }
}

/// The processors, by name, that were kept busy on both devices, in the first profile's order.
pub fn ranks(one: &Profile, other: &Profile) -> Vec<Ranks> {
    let (Some(one), Some(other)) = (one.steady_times(), other.steady_times()) else {
        return Vec::new();
    };
    let of_processor = |name: &str| {
        let minutes = [rows(one, name).count(), rows(other, name).count()];
        let last = minutes.into_iter().min()?.checked_sub(1)?;
        let at = |place: usize| {
            let (one, other) = (rows(one, name).nth(place)?, rows(other, name).nth(place)?);
            Some(RankedMinute {
                minute: one.minute,
                one: estimate(one),
                other: estimate(other),
            })
        };
        Some(Ranks {
            processor: name.to_owned(),
            first: at(0)?,
            last: at(last)?,
        })
    };
    let processors = one.header.processors.iter();
    processors
        .filter_map(|processor| of_processor(&processor.name))
        .collect()
}

fn rows<'a>(profile: &'a Profile, processor: &'a str) -> impl Iterator<Item = &'a MinuteRow> {
    let rows = profile.soaking.minutes.iter();
    rows.filter(move |row| row.processor == processor)
}

fn estimate(row: &MinuteRow) -> Estimate {
    Estimate {
        value: row.median.signed(),
        ci95: row.ci95.map(|(low, high)| (low.signed(), high.signed())),
    }
}
