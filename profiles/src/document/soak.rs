//! `soak.csv` and `minutes.csv`: how a device that was kept busy became steady (docs/method.md §12).

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{BuildError, Header, Profile};
use crate::soak::{self, Slice, SteadyMinutes, Thermal};
use crate::units::{MilliCelsius, Nanos};

/// The folder in a profile of a cool device that holds the profile of the same device in its steady state.
pub const STEADY_FOLDER: &str = "steady";

/// How a device became steady: the tables of a profile whose times are steady ones. Empty in any other.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Soaking {
    /// `soak.csv`: what was timed.
    pub rows: Vec<SoakRow>,
    /// `minutes.csv`: the same minute by minute.
    pub minutes: Vec<MinuteRow>,
    /// `soaks` of `profile.json`: what follows, for each processor that was kept busy.
    pub found: Vec<Soak>,
}

/// When a row of `soak.csv` was timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SoakPhase {
    /// Before, after a rest: one inference.
    Rested,
    /// While the processor was kept busy: a second or so of inferences.
    Busy,
}

/// The whole model's inferences in one slice of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SoakRow {
    /// The processor, by the name that the header gives it.
    pub processor: String,
    /// The order in which it was kept busy.
    pub order: u32,
    /// Whether it was busy yet.
    pub phase: SoakPhase,
    /// When the slice began, by the device's clock.
    pub started: Nanos,
    /// How many inferences it has.
    pub runs: u64,
    /// Their median.
    pub median: Nanos,
    /// The state of the device when it began, where that was read: once a minute.
    pub state: SoakState,
}

/// What was read of a device while it was kept busy. All is absent where nothing was read, or the device does not tell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SoakState {
    /// Android's thermal status.
    pub thermal_status: Option<u8>,
    /// The temperature of the hottest sensor that can be read.
    pub temperature_millicelsius: Option<MilliCelsius>,
    /// The temperature of its skin.
    pub skin_temperature_millicelsius: Option<MilliCelsius>,
    /// The frequency that each group of cores, and each accelerator that the kernel tells of, had, by its name.
    pub frequencies_khz: BTreeMap<String, u64>,
}

/// One minute in which a processor was kept busy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MinuteRow {
    /// The processor, by the name that the header gives it.
    pub processor: String,
    /// The minute, counted from 1.
    pub minute: u32,
    /// How many slices began in it.
    pub slices: u64,
    /// The median of their medians.
    pub median: Nanos,
    /// Its 95 % interval, by ranks; absent with fewer than six slices.
    pub ci95: Option<(Nanos, Nanos)>,
    /// The state of the device when it began.
    pub state: SoakState,
}

/// What a processor that was kept busy showed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Soak {
    /// The processor, by its name.
    pub processor: String,
    /// What the whole model took after a rest, before the processor was kept busy; absent where the device did not get cool.
    pub rested_ns: Option<Nanos>,
    /// How long after the start the whole model began to take more than 2 % longer than that; absent where it never did, or
    /// where the device did not get cool.
    pub onset_ns: Option<Nanos>,
    /// The first of the steady minutes, which are all from there on, counted from 1.
    pub steady_from_minute: u32,
    /// How many minutes there were in all.
    pub minutes: u32,
    /// What the whole model takes in the first minute: the row of `minutes.csv`.
    pub first_minute_ns: Nanos,
    /// What it takes in the steady state: the median of the last six minutes.
    pub steady_ns: Nanos,
    /// The lower end of that median's 95 % interval, by ranks.
    pub steady_ci95_low_ns: Nanos,
    /// The upper end.
    pub steady_ci95_high_ns: Nanos,
}

impl Soaking {
    /// What follows from these rows, which may come in any order.
    pub(crate) fn of(header: &Header, mut rows: Vec<SoakRow>) -> Result<Soaking, BuildError> {
        let places = header.places();
        let place = |row: &SoakRow| places.get(row.processor.as_str()).copied();
        rows.sort_by_key(|row| (place(row), row.phase, row.started));
        let (mut minutes, mut found) = (Vec::new(), Vec::new());
        for rows in rows.chunk_by(|one, other| one.processor == other.processor) {
            let (of_minutes, soak) = soaked(rows).ok_or_else(|| BuildError::NotSteady {
                processor: rows[0].processor.clone(),
            })?;
            minutes.extend(of_minutes);
            found.push(soak);
        }
        Ok(Soaking {
            rows,
            minutes,
            found,
        })
    }

    /// What the processor of this name showed.
    pub fn of_processor(&self, processor: &str) -> Option<&Soak> {
        self.found.iter().find(|one| one.processor == processor)
    }
}

/// The minutes of a processor's rows, and what follows from them; nothing if it did not become steady.
fn soaked(rows: &[SoakRow]) -> Option<(Vec<MinuteRow>, Soak)> {
    let (rested, busy): (Vec<&SoakRow>, Vec<&SoakRow>) =
        rows.iter().partition(|row| row.phase == SoakPhase::Rested);
    let is_cool = |row: &&SoakRow| row.state.thermal_status.unwrap_or(0) == 0;
    let rested: Vec<Nanos> = match rested.iter().all(is_cool) {
        true => rested.iter().map(|row| row.median).collect(),
        false => Vec::new(),
    };
    let slices: Vec<Slice> = busy
        .iter()
        .map(|row| Slice {
            started: row.started,
            median: row.median,
        })
        .collect();
    let minutes = soak::minutes(&slices);
    let SteadyMinutes { first, time, ci95 } = soak::steady(&minutes)?;
    let processor = &rows[0].processor;
    let minute_rows: Vec<MinuteRow> = (1..)
        .zip(&minutes)
        .map(|(minute, of_minute)| MinuteRow {
            processor: processor.clone(),
            minute,
            slices: of_minute.slices.count,
            median: of_minute.slices.median,
            ci95: of_minute.slices.median_ci95,
            state: busy
                .iter()
                .find(|row| row.started >= of_minute.started)
                .map_or_else(SoakState::default, |row| row.state.clone()),
        })
        .collect();
    let soak = Soak {
        processor: processor.clone(),
        rested_ns: crate::summary::Summary::of(&rested).map(|rested| rested.median),
        onset_ns: soak::onset(&rested, &slices),
        steady_from_minute: u32::try_from(first).ok()? + 1,
        minutes: u32::try_from(minutes.len()).ok()?,
        first_minute_ns: minutes.first()?.slices.median,
        steady_ns: time,
        steady_ci95_low_ns: ci95.0,
        steady_ci95_high_ns: ci95.1,
    };
    Some((minute_rows, soak))
}

/// A profile has no times of the state that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoTimes {
    /// It has cold times alone.
    #[error(
        "the profile has no steady times; measure them with `layerlab profile --steady 30m`, or use its cold ones"
    )]
    Steady,
    /// It has steady times alone.
    #[error(
        "the profile has steady times alone, of a device that did not get cool; choose them with `--thermal steady`"
    )]
    Cold,
}

impl Profile {
    /// The profile with the times of this state of the device, and the accuracy that was measured in whatever state:
    /// answers do not depend on it.
    pub fn in_state(self, thermal: Thermal) -> Result<Profile, NoTimes> {
        match (thermal, self.header.thermal) {
            (Thermal::Cold, Thermal::Steady) => Err(NoTimes::Cold),
            (Thermal::Steady, Thermal::Cold) => {
                let steady = *self.steady.ok_or(NoTimes::Steady)?;
                Ok(Profile {
                    combinations: self.combinations,
                    evaluations: self.evaluations,
                    ..steady
                })
            }
            _ => Ok(self),
        }
    }

    /// The profile of the same device in its steady state: the one beside a cool device's, or itself.
    pub fn steady_times(&self) -> Option<&Profile> {
        match self.header.thermal {
            Thermal::Steady => Some(self),
            Thermal::Cold => self.steady.as_deref(),
        }
    }

    /// Becomes the profile of a cool device with that of its steady state beside it.
    #[must_use]
    pub fn with_steady(self, steady: Profile) -> Profile {
        Profile {
            steady: Some(Box::new(steady)),
            ..self
        }
    }
}
