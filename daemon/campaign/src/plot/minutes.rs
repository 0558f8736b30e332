//! What the whole model took minute by minute while each processor was kept busy: a line for each, the onset of throttling and
//! the steady state marked.

use layerlab_profiles::Nanos;
use layerlab_profiles::document::{Profile, Soak};
use layerlab_profiles::soak::MINUTE;
use plotters::prelude::RGBColor;
use plotters::style::text_anchor::HPos;

use super::axis::{Axis, Unit};
use super::canvas::{Canvas, Drawn, GRID, HEAD, INK, LABEL, LINE, QUIET};
use super::legend::{self, Entry};
use super::panel::{AXIS_WIDTH, EDGE};
use super::{GAP, processor_colour};

/// Pixels of the lines' height.
const PLOT_HEIGHT: i32 = 180;

/// About how many minutes are named.
const TICKS: u32 = 6;

const TITLE: &str = "the whole model minute by minute, each processor kept busy by itself";

/// The minutes of a profile with steady times; nothing of another.
pub(super) struct Minutes<'a> {
    steady: Option<&'a Profile>,
    legend: Vec<Entry>,
}

impl<'a> Minutes<'a> {
    pub(super) fn of(profile: &'a Profile) -> Minutes<'a> {
        let steady = profile
            .steady_times()
            .filter(|one| !one.soaking.found.is_empty());
        let soaks = steady.iter().flat_map(|steady| &steady.soaking.found);
        let entry = |soak: &Soak| (in_words(soak), colour(profile, &soak.processor));
        Minutes {
            legend: soaks.map(entry).collect(),
            steady,
        }
    }

    pub(super) fn height(&self, picture: i32) -> i32 {
        match self.steady {
            None => 0,
            Some(_) => {
                let legend = legend::height(&self.legend, picture - 2 * EDGE);
                HEAD + 8 + legend + PLOT_HEIGHT + 2 * LINE + 8 + GAP
            }
        }
    }

    pub(super) fn draw(&self, canvas: &Canvas<'_>, top: i32, picture: i32) -> Drawn {
        let Some(steady) = self.steady else {
            return Ok(());
        };
        canvas.write(TITLE, (EDGE, top), HEAD, INK, HPos::Left)?;
        let room = picture - 2 * EDGE;
        legend::draw(canvas, &self.legend, (EDGE, top + HEAD + 8), room)?;
        let top = top + HEAD + 8 + legend::height(&self.legend, room) + 8;
        let (foot, left, right) = (top + PLOT_HEIGHT, AXIS_WIDTH, picture - EDGE);
        let rows = &steady.soaking.minutes;
        let most = rows
            .iter()
            .map(|row| row.ci95.map_or(row.median, |(_, high)| high))
            .max();
        let most = most.map_or(1.0, |most| most.as_nanos() as f64);
        let axis = Axis::linear(0.0, most, Unit::Time);
        for (value, name) in &axis.ticks {
            let y = axis.pixel(*value, foot, top);
            canvas.line(&[(left, y), (right, y)], GRID, 1)?;
            canvas.write(name, (left - 6, y - LABEL / 2), LABEL, QUIET, HPos::Right)?;
        }
        let minutes = steady
            .soaking
            .found
            .iter()
            .map(|soak| soak.minutes)
            .max()
            .unwrap_or(1);
        let across = |minute: f64| {
            let share = (minute / f64::from(minutes.max(1))).clamp(0.0, 1.0);
            left + (f64::from(right - left) * share).round() as i32
        };
        let step = step(minutes);
        for minute in (0..=minutes).step_by(step as usize) {
            let side = if minute == minutes {
                HPos::Right
            } else {
                HPos::Center
            };
            let at = (across(f64::from(minute)), foot + 4);
            canvas.write(&minute.to_string(), at, LABEL, QUIET, side)?;
        }
        canvas.write("minutes", (left, foot + 4 + LINE), LABEL, QUIET, HPos::Left)?;
        let high = |time: Nanos| axis.pixel(time.as_nanos() as f64, foot, top);
        for soak in &steady.soaking.found {
            let colour = colour(steady, &soak.processor);
            let of_it = rows.iter().filter(|row| row.processor == soak.processor);
            let points = of_it.map(|row| (across(f64::from(row.minute) - 0.5), high(row.median)));
            canvas.line(&points.collect::<Vec<_>>(), colour, 2)?;
            let from = across(f64::from(soak.steady_from_minute) - 1.0);
            let level = high(soak.steady_ns);
            canvas.line(
                &[(from, level), (across(f64::from(soak.minutes)), level)],
                colour,
                5,
            )?;
            if let Some(onset) = soak.onset_ns {
                let x = across(in_minutes(onset));
                canvas.dashes((x, foot), (x, top), colour)?;
            }
        }
        Ok(())
    }
}

fn in_minutes(time: Nanos) -> f64 {
    time.as_nanos() as f64 / MINUTE.as_nanos() as f64
}

/// The minutes between two that are named.
fn step(minutes: u32) -> u32 {
    let steps = [1, 2, 5, 10, 20, 30, 60, 120, 240];
    let enough = steps.into_iter().find(|step| minutes / step <= TICKS);
    enough.unwrap_or(480)
}

fn colour(profile: &Profile, processor: &str) -> RGBColor {
    let mut processors = profile.header.processors.iter();
    let place = processors.position(|one| one.name == processor);
    place.map_or(QUIET, |place| processor_colour(profile, place))
}

fn in_words(soak: &Soak) -> String {
    let throttles = match (soak.rested_ns, soak.onset_ns) {
        (None, _) => "not cool at first".to_owned(),
        (_, None) => "no throttling".to_owned(),
        (_, Some(onset)) => format!("throttles from {:.1} min on (dashes)", in_minutes(onset)),
    };
    format!(
        "{}: {throttles}, steady from minute {} on (thick)",
        soak.processor, soak.steady_from_minute
    )
}
