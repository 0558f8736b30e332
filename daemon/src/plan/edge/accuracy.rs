//! The accuracy that a plan beside a server is to have: from what was measured of the phone's placements, where layers on the
//! server count as on the phone's reference CPU.

use std::path::PathBuf;

use layerlab_planners::check::{Evidence, Loss};
use layerlab_planners::edge::{
    AccuracyFault, AccuracyLimit, AccurateSplit, MeasuredNetwork, PlacedOn, check_accuracy,
};
use layerlab_profiles::document::Profile;
use serde::Serialize;
use serde_json::{Value, json};

use super::{Sides, named};
use crate::exit::{Code, ExitWith, Failure};
use crate::plan::describe::{strip, surely};
use crate::plan::learnt::{Input, Learnt, LimitConfidence};

#[derive(clap::Args)]
pub(super) struct AccuracyArgs {
    /// The accuracy that is required, a fraction such as 0.6: layers on the phone are then placed on its processors as what was
    /// measured of placements allows, and layers on the server count as on the phone's reference CPU
    #[arg(long, value_name = "FRACTION")]
    accuracy: Option<f64>,
    /// With --accuracy: how sure plans are to be of it, so that the end of its interval meets the limit. `none`: the estimate does
    #[arg(
        long,
        value_name = "PERCENT",
        default_value = "95%",
        requires = "accuracy"
    )]
    confidence: LimitConfidence,
    /// With --accuracy: placements of the phone that were measured after its profile was published, as --refine of other plans
    /// writes them
    #[arg(long, value_name = "FILE", requires = "accuracy")]
    rows: Option<PathBuf>,
    /// With --accuracy: learn anew, and keep nothing for the next plan
    #[arg(long, requires = "accuracy")]
    no_cache: bool,
}

/// What is required, and what accuracies are known from.
pub(super) struct RequiredAccuracy {
    at_least: f64,
    pub(super) placed_on: PlacedOn,
    learnt: Learnt,
}

/// The limit that it sets to placements.
pub(super) struct LimitedAccuracy<'a> {
    pub(super) required: &'a RequiredAccuracy,
    pub(super) limit: AccuracyLimit<'a>,
}

impl AccuracyArgs {
    /// Learns what placements lose, if an accuracy is required.
    pub(super) fn learn(
        &self,
        sides: &Sides,
        phone: &Profile,
        server: &Profile,
    ) -> Result<Option<RequiredAccuracy>, Failure> {
        let Some(at_least) = self.accuracy else {
            return Ok(None);
        };
        let placed_on = PlacedOn::new(phone, server, sides.chosen()).exit_with(Code::Input)?;
        let input = Input::beside_server(
            named(&sides.profile)?.to_owned(),
            placed_on.names(),
            self.confidence,
            self.rows.clone(),
            self.no_cache,
        );
        Ok(Some(RequiredAccuracy {
            at_least,
            placed_on,
            learnt: input.learn_accuracy()?,
        }))
    }
}

impl RequiredAccuracy {
    pub(super) fn limit(&self) -> Result<LimitedAccuracy<'_>, Failure> {
        let digits = self.placed_on.digits();
        let limit = AccuracyLimit::new(&self.learnt.problem, digits, self.at_least);
        Ok(LimitedAccuracy {
            required: self,
            limit: limit.exit_with(Code::Input)?,
        })
    }

    /// What is wrong with the accuracy of a split that runs on the processors of this network.
    pub(super) fn check(
        &self,
        split: &AccurateSplit,
        network: &MeasuredNetwork,
    ) -> Vec<AccuracyFault> {
        let learnt = &self.learnt;
        let evidence = Evidence {
            layers: &learnt.profile.layers,
            processors: learnt.problem.times().published(),
            accuracy: &learnt.accuracy,
            loss: Loss::Model(&learnt.model),
        };
        let digit = |group: &_| Some(self.placed_on.digit_of(network.processor(group)?));
        check_accuracy(split, digit, &evidence)
    }

    /// What a plan's accuracy is, for a person.
    pub(super) fn text(&self, split: &AccurateSplit) -> String {
        let (names, accuracy) = (self.placed_on.names(), split.accuracy());
        let sure = match split.confidence() {
            Some(confidence) => format!(" with {} % confidence", confidence.percent()),
            None => " by estimates".to_owned(),
        };
        let best = match split.is_best() {
            true => "",
            false => "; found by a search, which may have missed a better plan",
        };
        format!(
            "accuracy {:.4}{}; {} is required{sure}, and all layers on {} have {:.4}\n{}; the server counts as {}{best}",
            accuracy.value,
            surely(&accuracy),
            split.at_least(),
            names[0],
            self.learnt.problem.baseline(),
            strip(split.placement(), names),
            names[0],
        )
    }

    /// Adds it to what is told of a plan.
    pub(super) fn add_to(&self, split: &AccurateSplit, told: &mut Value) {
        let accuracy = split.accuracy();
        told["limit_accuracy"] = json!(split.at_least());
        told["confidence"] = json!(split.confidence().map(|it| it.share()));
        told["combination"] = json!(split.placement().to_string());
        told["placed_on"] = json!(self.placed_on.names());
        told["accuracy"] = json!(accuracy.value);
        told["accuracy_interval"] = json!(accuracy.interval);
        told["is_measured"] = json!(accuracy.is_measured);
        told["all_cpu_accuracy"] = json!(self.learnt.problem.baseline());
        told["is_best"] = json!(split.is_best());
    }
}

/// What a table says of a plan's accuracy.
#[derive(Serialize)]
pub(super) struct AccuracyColumns {
    limit_accuracy: f64,
    confidence: Option<f64>,
    combination: String,
    accuracy: f64,
    accuracy_low: Option<f64>,
    accuracy_high: Option<f64>,
    is_measured: bool,
    is_best: bool,
}

impl AccuracyColumns {
    pub(super) fn of(split: &AccurateSplit) -> AccuracyColumns {
        let accuracy = split.accuracy();
        AccuracyColumns {
            limit_accuracy: split.at_least(),
            confidence: split.confidence().map(|it| it.share()),
            combination: split.placement().to_string(),
            accuracy: accuracy.value,
            accuracy_low: accuracy.interval.map(|(low, _)| low),
            accuracy_high: accuracy.interval.map(|(_, high)| high),
            is_measured: accuracy.is_measured,
            is_best: split.is_best(),
        }
    }
}
