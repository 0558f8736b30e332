//! Progress bars: on a terminal, for what takes longer than two seconds.

use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use layerlab_protocol::{Entry, Event};

use layerlab_campaign::{CampaignFollower, CampaignPart, Follower, JournalTrouble, KnownJournal};
use layerlab_farm::adb::Printable;

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
    fn show_if_it_takes_long(&mut self) {
        if !self.shown && self.started.elapsed() >= PATIENCE {
            self.shown = true;
            self.bar.set_style(style(self.bar.length().is_some()));
            self.bar = self.bars.add(self.bar.clone());
        }
    }
}

impl Follower for Bar {
    fn planned(&mut self, samples: Option<u64>) {
        if let Some(samples) = samples {
            self.bar.set_length(samples);
        }
    }

    async fn entry(&mut self, entry: &Entry) {
        if matches!(
            entry.event,
            Event::Sample { .. }
                | Event::Judged { .. }
                | Event::EnergyWindow { .. }
                | Event::FramesAnswered { .. }
                | Event::TensorsPacked { .. }
        ) {
            self.bar.inc(1);
            self.show_if_it_takes_long();
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// A bar for each part of a campaign, which keeps no journals: nobody goes on with it.
pub(super) struct CampaignBars<'a> {
    bars: &'a Bars,
    model: &'a str,
    device: &'a str,
    bar: Option<Bar>,
}

impl<'a> CampaignBars<'a> {
    /// For `model` on the device that the user calls `device`.
    pub(super) fn new(bars: &'a Bars, model: &'a str, device: &'a str) -> CampaignBars<'a> {
        CampaignBars {
            bars,
            model,
            device,
            bar: None,
        }
    }
}

/// What the bar of a part is called.
pub(super) fn title(part: CampaignPart, model: &str, device: &str) -> String {
    let what = match part {
        CampaignPart::Energy => "energy of ",
        CampaignPart::Times => "",
        CampaignPart::Steady => "steady times of ",
        CampaignPart::Accuracy => "accuracy of ",
        CampaignPart::Video => "frames for ",
        CampaignPart::Tensors => "tensors of ",
    };
    format!("{what}{model} on {}", Printable(device))
}

impl Follower for CampaignBars<'_> {
    fn planned(&mut self, samples: Option<u64>) {
        if let Some(bar) = &mut self.bar {
            bar.planned(samples);
        }
    }

    async fn entry(&mut self, entry: &Entry) {
        if let Some(bar) = &mut self.bar {
            bar.entry(entry).await;
        }
    }
}

impl CampaignFollower for CampaignBars<'_> {
    async fn begin(&mut self, part: CampaignPart) -> Result<KnownJournal, JournalTrouble> {
        self.bar = Some(self.bars.add(title(part, self.model, self.device)));
        Ok(KnownJournal::fresh())
    }

    async fn end(&mut self) -> Result<(), JournalTrouble> {
        self.bar = None;
        Ok(())
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
