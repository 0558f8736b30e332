//! What it costs to read the state of a device as blocks do at their ends: time, processor time, and whether the inferences
//! after a reading take longer than others.

use std::fs;

use layerlab_profiles::Nanos;
use layerlab_profiles::summary::{Summary, median_rank_ci95};
use layerlab_protocol::Conditions;
use serde::Serialize;

use crate::device::Device;
use crate::runtime::{RuntimeError, Session, Tensor};

/// What readings took.
#[derive(Clone, Debug, Serialize)]
pub struct ReadingTimes {
    /// What was read last.
    pub conditions: Conditions,
    /// How often it was read.
    pub read_times: u32,
    /// By the device's clock: half of them took no longer.
    pub median_ns: Nanos,
    /// The 95th percentile.
    pub p95_ns: Nanos,
    /// The longest.
    pub longest_ns: Nanos,
    /// What the agent and the programs that it asked computed for one on average, all threads together; absent where the
    /// kernel does not tell. What services compute that answer those programs is not among it.
    pub processor_time_ns: Option<Nanos>,
}

/// The inferences at one place after a reading, beside those at the same place where nothing was read.
#[derive(Clone, Debug, Serialize)]
pub struct AfterReading {
    /// 1: the first after the reading.
    pub place: u32,
    /// How many pairs there are.
    pub pairs: u32,
    /// The median where there was a reading.
    pub with_reading_ns: Nanos,
    /// The median where there was none.
    pub without_reading_ns: Nanos,
    /// The median of the pairs' ratios, with over without.
    pub ratio: f64,
    /// Its 95 % interval, free of any assumption about the distribution; absent below six pairs.
    pub ratio_ci95: Option<(f64, f64)>,
}

/// How inferences are timed with readings between them, and without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turns {
    /// How many turns have a reading at their beginning; as many have none.
    pub pairs: u32,
    /// Inferences in a turn.
    pub inferences: u32,
    /// The rest before each inference.
    pub gap: Nanos,
}

/// Reads the state of `device` so many `times`, at least once.
pub fn reading_times(device: &mut dyn Device, times: u32) -> ReadingTimes {
    let computed = processor_time();
    let mut took = Vec::new();
    let mut conditions = Conditions::default();
    for _ in 0..times.max(1) {
        let begin = device.now();
        conditions = device.conditions();
        took.push(device.now() - begin);
    }
    let spent = processor_time()
        .zip(computed)
        .map(|(after, before)| (after - before).as_nanos() / u64::from(times.max(1)));
    let summary = Summary::of(&took).expect("at least one reading");
    ReadingTimes {
        conditions,
        read_times: times.max(1),
        median_ns: summary.median,
        p95_ns: summary.p95,
        longest_ns: summary.max,
        processor_time_ns: spent.map(Nanos::from_nanos),
    }
}

/// Runs `session` on `inputs` in turns: one that begins with a reading and one that does not, the other way round in the next
/// pair, so that drift falls on both alike.
///
/// # Errors
/// When an inference fails.
pub fn after_readings(
    device: &mut dyn Device,
    session: &mut dyn Session,
    inputs: &[Tensor],
    turns: Turns,
) -> Result<Vec<AfterReading>, RuntimeError> {
    let places = turns.inferences as usize;
    let mut with = vec![Vec::new(); places];
    let mut without = vec![Vec::new(); places];
    for pair in 0..turns.pairs {
        let reading_first = pair % 2 == 0;
        for reads in [reading_first, !reading_first] {
            if reads {
                device.conditions();
            }
            let times = if reads { &mut with } else { &mut without };
            for place in times.iter_mut() {
                device.idle(turns.gap);
                place.push(session.run(inputs)?.duration);
            }
        }
    }
    let places = with.iter().zip(&without).zip(1..);
    Ok(places
        .filter_map(|((with, without), place)| compared(place, with, without))
        .collect())
}

fn compared(place: u32, with: &[Nanos], without: &[Nanos]) -> Option<AfterReading> {
    let ratio = |(with, without): (&Nanos, &Nanos)| {
        with.as_nanos() as f64 / without.as_nanos().max(1) as f64
    };
    let mut ratios: Vec<f64> = with.iter().zip(without).map(ratio).collect();
    ratios.sort_unstable_by(f64::total_cmp);
    let middle = ratios.len() / 2;
    let upper = *ratios.get(middle)?;
    Some(AfterReading {
        place,
        pairs: ratios.len() as u32,
        with_reading_ns: Summary::of(with)?.median,
        without_reading_ns: Summary::of(without)?.median,
        ratio: match ratios.len() % 2 {
            1 => upper,
            _ => f64::midpoint(ratios[middle - 1], upper),
        },
        ratio_ci95: median_rank_ci95(ratios.len()).map(|(low, high)| (ratios[low], ratios[high])),
    })
}

/// How long this process computed until now, and its children that have ended.
fn processor_time() -> Option<Nanos> {
    of_stat(&fs::read_to_string("/proc/self/stat").ok()?)
}

/// The kernel counts in hundredths of a second, whatever it counts in itself.
const TICK: u64 = 10_000_000;

/// The sum of `utime`, `stime`, `cutime` and `cstime`.
fn of_stat(stat: &str) -> Option<Nanos> {
    // The name, in parentheses, may have spaces and parentheses itself; the state is the first field after it.
    let (_, fields) = stat.rsplit_once(')')?;
    let ticks = fields
        .split_whitespace()
        .skip(11)
        .take(4)
        .map(|ticks| ticks.parse().ok())
        .collect::<Option<Vec<u64>>>()
        .filter(|ticks| ticks.len() == 4)?;
    Some(Nanos::from_nanos(ticks.iter().sum::<u64>() * TICK))
}

#[cfg(test)]
mod tests;
