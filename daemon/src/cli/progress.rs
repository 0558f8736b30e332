//! Progress bars: on a terminal, for what takes longer than two seconds.

use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::measure::Progress;

/// What is over before this is over needs no bar.
const PATIENCE: Duration = Duration::from_secs(2);

/// The bars of runs that go on side by side.
pub(super) struct Bars(MultiProgress);

/// The bar of one run; gone when it is dropped.
pub(super) struct Bar {
    bars: MultiProgress,
    bar: ProgressBar,
    started: Instant,
    shown: bool,
}

impl Bars {
    pub(super) fn new() -> Bars {
        // Draws nothing when standard error is no terminal.
        Bars(MultiProgress::with_draw_target(ProgressDrawTarget::stderr()))
    }

    pub(super) fn add(&self, name: String) -> Bar {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        bar.set_message(name);
        Bar {
            bars: self.0.clone(),
            bar,
            started: Instant::now(),
            shown: false,
        }
    }
}

impl Bar {
    pub(super) fn update(&mut self, progress: Progress) {
        match progress {
            Progress::Planned { samples } => {
                if let Some(samples) = samples {
                    self.bar.set_length(samples);
                }
            }
            Progress::Sample => self.bar.inc(1),
        }
        if !self.shown && self.started.elapsed() >= PATIENCE {
            self.shown = true;
            self.bar.set_style(style(self.bar.length().is_some()));
            self.bar = self.bars.add(self.bar.clone());
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// The time left follows from the rate of samples, which segments in random order keep steady. Where
/// it turns out only while measuring how many samples it takes, no time left is promised.
fn style(length_is_known: bool) -> ProgressStyle {
    let template = if length_is_known {
        "{msg:26} {bar:30} {human_pos}/{human_len} samples, {eta} left"
    } else {
        "{msg:26} {spinner} {human_pos} samples until the intervals are narrow enough, {elapsed} so far"
    };
    ProgressStyle::with_template(template)
        .expect("a valid template")
        .progress_chars("=> ")
}
