//! Replays of the papers' worlds, each of several videos.

use layerlab_planners::video::VideoError;
use layerlab_planners::video::fastva::{Scheduled, VideoGoal};
use layerlab_planners::video::papers::PaperSettings;
use layerlab_planners::video::replay::{PolicySettings, ReplayWorld, VideoPolicy, replay_policy};
use layerlab_profiles::Nanos;
use layerlab_tests::proof::figure::Line;

/// What is the same for all frames of a video.
#[derive(Clone, Copy)]
pub(crate) struct Setting {
    pub(crate) mbps: f64,
    pub(crate) fps: f64,
    pub(crate) latency_ms: u64,
}

/// Makes a world of a paper.
pub(crate) type MakeWorld = fn(&PaperSettings) -> Result<ReplayWorld, VideoError>;

/// Videos, and what is asked of policies.
#[derive(Clone, Copy)]
pub(crate) struct Videos {
    pub(crate) count: u64,
    pub(crate) frames: usize,
    /// Accuracy, or utility of this weight.
    pub(crate) weight: Option<f64>,
}

/// What came of videos: means.
#[derive(Clone, Copy, Default)]
pub(crate) struct Came {
    /// Accuracy, or utility where that is asked for.
    pub(crate) value: f64,
    pub(crate) missed: f64,
}

impl Videos {
    /// What a policy makes of them; nothing where it cannot answer every frame, as it must.
    pub(crate) fn replay(
        self,
        make: MakeWorld,
        policy: VideoPolicy,
        setting: Setting,
    ) -> Option<Came> {
        let mut sum = Came::default();
        for seed in 0..self.count {
            let world = make(&PaperSettings {
                frames_per_second: setting.fps,
                round_trip: Nanos::from_millis(setting.latency_ms),
                ..PaperSettings::usual((setting.mbps * 1e6) as u64, self.frames, seed)
            });
            let world = world.expect("sensible");
            let goal = match self.weight {
                Some(weight) => VideoGoal::Utility { weight },
                None => VideoGoal::Accuracy,
            };
            let settings = PolicySettings {
                goal,
                ..PolicySettings::default()
            };
            let results = match replay_policy(&world, policy, &settings).expect("sensible") {
                Scheduled::Planned(results) => results,
                Scheduled::Infeasible { .. } => return None,
            };
            sum.value += match self.weight {
                Some(weight) => results.utility(world.stream.interval(), weight),
                None => results.accuracy(),
            };
            sum.missed += results.missed_share();
        }
        let count = self.count as f64;
        Some(Came {
            value: sum.value / count,
            missed: sum.missed / count,
        })
    }

    /// A policy's line over settings.
    pub(crate) fn line(
        self,
        make: MakeWorld,
        (name, policy): (&'static str, VideoPolicy),
        settings: &[Setting],
    ) -> Line {
        let value = |setting: &Setting| self.replay(make, policy, *setting).map(|came| came.value);
        Line {
            name,
            values: settings.iter().map(value).collect(),
        }
    }
}
