//! What a policy is told beside the video, as users write it.

use std::time::Duration;

use clap::ValueEnum;
use layerlab_planners::video::cbo::SendingOrder;
use layerlab_planners::video::fastva::VideoGoal;
use layerlab_planners::video::replay::PolicySettings;
use layerlab_profiles::Nanos;

#[derive(clap::Args)]
pub(super) struct DecisionArgs {
    /// The time within which a frame is to be answered
    #[arg(long, value_name = "TIME", default_value = "200ms")]
    pub(super) deadline: humantime::Duration,
    /// In which order CBO sends the frames that it has chosen
    #[arg(long, value_enum, default_value = "earliest-deadline")]
    order: OrderArg,
    /// How many frames DeepDecision's windows have
    #[arg(long, value_name = "COUNT", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    window: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum OrderArg {
    /// That of their arrival
    EarliestDeadline,
    /// The surest first, as in the paper
    Paper,
}

impl DecisionArgs {
    /// T.
    pub(super) fn within(&self) -> Nanos {
        Duration::from(self.deadline).into()
    }

    /// The choices that the papers leave open, with the weight of accuracy in the utility, if there is one.
    pub(super) fn settings(&self, alpha: Option<f64>) -> PolicySettings {
        PolicySettings {
            order: match self.order {
                OrderArg::EarliestDeadline => SendingOrder::EarliestDeadline,
                OrderArg::Paper => SendingOrder::Paper,
            },
            goal: match alpha {
                Some(weight) => VideoGoal::Utility { weight },
                None => VideoGoal::Accuracy,
            },
            window: self.window as usize,
            ..PolicySettings::default()
        }
    }
}

/// Frames per second as users write them.
pub(super) fn frame_rate(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(rate) if (0.01..=1000.0).contains(&rate) => Ok(rate),
        _ => Err("frames per second are a number from 0.01 to 1000, such as 30".to_owned()),
    }
}

/// The time between two frames at so many frames per second.
pub(super) fn interval(frames_per_second: f64) -> Nanos {
    Nanos::from_nanos((1e9 / frames_per_second) as u64)
}

/// The weight of accuracy in the utility as users write it.
pub(super) fn weight(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(weight) if weight.is_finite() && weight >= 0.0 => Ok(weight),
        _ => Err("alpha is a number that is not negative, such as 50".to_owned()),
    }
}
