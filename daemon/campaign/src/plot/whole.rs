//! What the whole model takes with all its layers on one processor: a bar for each.

use layerlab_profiles::SignedNanos;
use layerlab_profiles::document::{ProcessorKind, Profile};
use plotters::style::text_anchor::HPos;

use super::canvas::{Canvas, Drawn, HEAD, INK, LABEL, LINE, QUIET, width};
use super::panel::EDGE;
use super::{GAP, processor_colour};

/// Pixels for what is written behind a bar.
const TIME_WIDTH: i32 = 230;

/// The times of the whole model, a row for each processor.
pub(super) struct Whole<'a> {
    profile: &'a Profile,
    /// Nothing for one that cannot run every layer.
    times: Vec<Option<SignedNanos>>,
}

impl Whole<'_> {
    pub(super) fn of(profile: &Profile) -> Whole<'_> {
        Whole {
            profile,
            times: profile.whole_model_times(),
        }
    }

    pub(super) fn height(&self) -> i32 {
        HEAD + 8 + self.times.len() as i32 * LINE + GAP
    }

    pub(super) fn draw(&self, canvas: &Canvas<'_>, top: i32, picture: i32) -> Drawn {
        let title = "the whole model on one processor";
        canvas.write(title, (EDGE, top), HEAD, INK, HPos::Left)?;
        let processors = &self.profile.header.processors;
        let labels = processors.iter().map(|one| width(&one.name, LABEL));
        let left = EDGE + labels.max().unwrap_or(0) + 8;
        let most = self.times.iter().flatten().max();
        let most = most.map_or(1, |most| most.as_nanos().max(1)) as f64;
        let longest = f64::from((picture - left - TIME_WIDTH).max(0));
        for (place, (processor, time)) in processors.iter().zip(&self.times).enumerate() {
            let y = top + HEAD + 8 + place as i32 * LINE;
            canvas.write(&processor.name, (left - 8, y), LABEL, INK, HPos::Right)?;
            let nanos = time.map_or(0, SignedNanos::as_nanos).max(0) as f64;
            let end = left + (longest * nanos / most).round() as i32;
            canvas.fill(
                (left, y),
                (end, y + LABEL),
                processor_colour(self.profile, place),
            )?;
            let (said, colour) = match time {
                Some(time) => (format!("{time}{}", self.beside_cpu(*time, place)), INK),
                None => ("cannot run every layer".to_owned(), QUIET),
            };
            canvas.write(&said, (end + 8, y), LABEL, colour, HPos::Left)?;
        }
        Ok(())
    }

    /// How many times as fast as the CPU an accelerator is.
    fn beside_cpu(&self, time: SignedNanos, place: usize) -> String {
        let processors = &self.profile.header.processors;
        let cpu = processors
            .iter()
            .position(|one| one.kind == ProcessorKind::Cpu);
        let Some(cpu) = cpu.filter(|cpu| *cpu != place && time > SignedNanos::ZERO) else {
            return String::new();
        };
        let on_cpu = self.times[cpu].map(|on_cpu| on_cpu.as_nanos() as f64);
        let ratio = on_cpu.map(|on_cpu| on_cpu / time.as_nanos() as f64);
        ratio.map_or_else(String::new, |ratio| {
            format!(", {ratio:.1} times as fast as {}", processors[cpu].name)
        })
    }
}
