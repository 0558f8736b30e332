//! `layerlab compare --gate`: has anything become worse by more than is tolerated?

use std::str::FromStr;

use layerlab_profiles::Layer;
use layerlab_profiles::document::Profile;
use layerlab_profiles::gate::{
    GateError, GateResult, GateSettings, GateSight, Gated, GatedNumber, ProfileSubject, gate,
};
use serde::Serialize;

use super::sight::{self, SightView, percent};
use super::{Compared, lacks};
use crate::exit::{Code, ExitWith, Failure};
use crate::output;
use crate::percent::Percent;
use layerlab_lab::text_table::{Cells, p_value, table};

#[derive(clap::Args)]
#[command(next_help_heading = "Gate")]
pub(super) struct GateArgs {
    /// End with exit code 7 if the last profile is worse than the good one, or than several good ones, by more than so much of any
    /// number: of the time of a layer, of a cut or of the whole model, of the energy of a layer or
    /// of the whole model where all profiles have that by meters of one kind, or of accuracy. 0% tolerates nothing
    #[arg(long, value_name = "PERCENT")]
    gate: Option<Tolerance>,
    /// With --gate: the chance of a false alarm, over all numbers together
    #[arg(long, value_name = "SHARE", requires = "gate", default_value_t = Alpha(GateSettings::ALPHA))]
    alpha: Alpha,
    /// With --gate: say how much must be measured for a change of so much beyond what is tolerated to be seen
    #[arg(long, value_name = "PERCENT", requires = "gate", default_value_t = Percent(3.0))]
    to_see: Percent,
}

/// A percentage of at least 0 and less than 100.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Tolerance(f64);

impl FromStr for Tolerance {
    type Err = String;

    fn from_str(text: &str) -> Result<Tolerance, String> {
        let number = text.strip_suffix('%').unwrap_or(text).trim_end();
        match number.parse::<f64>() {
            Ok(percent) if (0.0..100.0).contains(&percent) => Ok(Tolerance(percent / 100.0)),
            _ => Err("write a percentage of at least 0 and below 100, such as 5%".to_owned()),
        }
    }
}

/// A chance above 0 and at most one half.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Alpha(f64);

impl FromStr for Alpha {
    type Err = String;

    fn from_str(text: &str) -> Result<Alpha, String> {
        match text.parse::<f64>() {
            Ok(alpha) if alpha > 0.0 && alpha <= 0.5 => Ok(Alpha(alpha)),
            _ => Err("write a chance above 0 and at most 0.5, such as 0.01".to_owned()),
        }
    }
}

impl std::fmt::Display for Alpha {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl GateArgs {
    /// What is put up with, if the profiles are to pass a gate.
    pub(super) fn settings(&self) -> Option<GateSettings> {
        let Tolerance(tolerance) = self.gate?;
        let Alpha(alpha) = self.alpha;
        Some(GateSettings { tolerance, alpha })
    }
}

/// Prints what became worse in the last of the profiles, and fails if anything did.
pub(super) fn pass(
    compared: &Compared,
    settings: GateSettings,
    args: &GateArgs,
    (all, json): (bool, bool),
) -> Result<(), Failure> {
    let profiles: Vec<&Profile> = compared.iter().map(|(_, profile)| profile).collect();
    let [good @ .., new] = &profiles[..] else {
        unreachable!("one profile at least is read")
    };
    let found = gate(good, new, settings)
        .map_err(|error| with_folder(error, compared, new, settings))
        .exit_with(Code::Input)?;
    let wanted = args.to_see.share();
    let sights = found.sight(new, wanted);
    match json {
        true => output::print_json(&GateView::of(&found, sights))?,
        false => {
            let has_energy = profiles.iter().any(|profile| profile.energy.is_some());
            output::print(text(&new.layers, &found, has_energy, all))?;
            // What was found needs no word about what might have been.
            if !found.fails() && !sights.is_empty() {
                output::print(sight::text(&sights, new, wanted, found.good))?;
            }
        }
    }
    if !found.fails() {
        return Ok(());
    }
    let tolerated = percent(settings.tolerance);
    let message = match found.good {
        0 | 1 => format!("the second profile is worse than the first by more than {tolerated} %"),
        good => format!(
            "the last profile is worse than the {good} before it by more than {tolerated} %"
        ),
    };
    Err(Failure::new(Code::Worse, anyhow::anyhow!(message)))
}

/// Which of several good profiles does not go with the new one, and why; the error as it is where it is about none of them.
fn with_folder(
    error: GateError,
    compared: &Compared,
    new: &Profile,
    settings: GateSettings,
) -> anyhow::Error {
    let several = &compared[..compared.len() - 1];
    let is_unfit = |one: &Profile| match &error {
        GateError::DifferentSubjects { one: other, .. } => {
            ProfileSubject::of(&one.header) == **other
        }
        GateError::Compare(_) => gate(&[one], new, settings).is_err(),
        GateError::FewGood { .. } => false,
    };
    match several.iter().find(|(_, one)| is_unfit(one)) {
        Some((folder, _)) if several.len() > 1 => anyhow::anyhow!("{}: {error}", folder.display()),
        _ => error.into(),
    }
}

/// What became worse, or with `all` every number; then in words.
fn text(layers: &[Layer], found: &GateResult, has_energy: bool, all: bool) -> String {
    let shown = found.numbers.iter().filter(|gated| all || gated.is_worse);
    let rows: Vec<Cells> = shown.map(|gated| row(layers, gated)).collect();
    let mut parts = Vec::new();
    if !rows.is_empty() {
        let good = match found.good {
            0 | 1 => "one",
            _ => "mean of good ones",
        };
        let heads = ["what", "on", good, "other", "worse by", "found from", "p"];
        parts.push(table(&heads, &[2, 3, 4, 5, 6], rows) + "\n");
    }
    parts.extend(found.lost.iter().map(|lacked| lacks(layers, lacked)));
    let GateSettings { tolerance, alpha } = found.settings;
    let tolerated = percent(tolerance);
    let count = found.numbers.len();
    parts.push(format!(
        "{} of {count} numbers are worse by more than {tolerated} % (false alarms: {alpha} in all, by Holm's method)",
        found.worse().count()
    ));
    let unsure = found.numbers.iter().filter(|gated| gated.may_be_worse);
    let unsure = unsure.filter(|gated| !gated.is_worse).count();
    if unsure > 0 {
        parts.push(format!(
            "{unsure} more may be: their 95 % intervals reach beyond {tolerated} %; {} would tell",
            match found.good {
                0 | 1 => "longer measurements",
                _ => "longer measurements, or more good profiles,",
            }
        ));
    }
    if found.untested > 0 {
        let untested = found.untested;
        parts.push(format!(
            "{untested} numbers have no interval in {} and were not tested",
            match found.good {
                0 | 1 => "one of the profiles",
                _ => "one of the profiles, or are not in the last good one,",
            }
        ));
    }
    if !found.has_energy && has_energy {
        parts.push(
            "energy was not compared: the profiles do not all have it by meters of one kind"
                .to_owned(),
        );
    }
    if !found.has_accuracy {
        parts.push(
            "accuracy was not compared: the profiles do not all have it of the same images"
                .to_owned(),
        );
    }
    parts.join("\n")
}

fn row(layers: &[Layer], gated: &Gated) -> Cells {
    vec![
        gated.number.what(layers),
        gated.number.on(),
        gated.value(gated.one),
        gated.value(gated.other),
        gated.worse_by(),
        gated.found_from(),
        p_value(gated.p_value),
    ]
}

/// What a gate found, for scripts.
#[derive(Serialize)]
struct GateView<'a> {
    tolerance: f64,
    alpha: f64,
    good: usize,
    passed: bool,
    has_accuracy: bool,
    has_energy: bool,
    untested: usize,
    lost: Vec<LostView<'a>>,
    sight: Vec<SightView>,
    numbers: Vec<NumberView<'a>>,
}

#[derive(Serialize)]
struct LostView<'a> {
    processor: &'a str,
    layer: u32,
    reason: &'a str,
}

/// Times are in ns, energies in nJ, accuracies are shares.
#[derive(Serialize)]
struct NumberView<'a> {
    what: &'static str,
    processors: Vec<&'a str>,
    layer: Option<u32>,
    placement: Option<String>,
    one: f64,
    other: f64,
    worse: f64,
    half_width_95: f64,
    detectable_95: f64,
    p_value: f64,
    is_worse: bool,
    may_be_worse: bool,
}

impl<'a> GateView<'a> {
    fn of(found: &'a GateResult, sights: Vec<GateSight>) -> GateView<'a> {
        let lost = found.lost.iter().map(|lacked| LostView {
            processor: &lacked.processor,
            layer: lacked.layer,
            reason: &lacked.reason,
        });
        GateView {
            tolerance: found.settings.tolerance,
            alpha: found.settings.alpha,
            good: found.good,
            passed: !found.fails(),
            has_accuracy: found.has_accuracy,
            has_energy: found.has_energy,
            untested: found.untested,
            lost: lost.collect(),
            sight: (sights.into_iter())
                .map(|sight| SightView::of(sight, found.good))
                .collect(),
            numbers: found.numbers.iter().map(NumberView::from).collect(),
        }
    }
}

impl<'a> From<&'a Gated> for NumberView<'a> {
    fn from(gated: &'a Gated) -> NumberView<'a> {
        let (what, processors, layer, placement) = match &gated.number {
            GatedNumber::Layer { processor, layer } => {
                ("layer", vec![processor.as_str()], Some(*layer), None)
            }
            GatedNumber::Cut {
                processor,
                after_layer,
            } => ("cut", vec![processor.as_str()], Some(*after_layer), None),
            GatedNumber::Whole { processor } => ("whole", vec![processor.as_str()], None, None),
            GatedNumber::Energy { processor, layer } => {
                ("energy", vec![processor.as_str()], *layer, None)
            }
            GatedNumber::Accuracy {
                processors,
                placement,
            } => (
                "accuracy",
                processors.iter().map(String::as_str).collect(),
                None,
                Some(placement.to_string()),
            ),
        };
        NumberView {
            what,
            processors,
            layer,
            placement,
            one: gated.one,
            other: gated.other,
            worse: gated.worse,
            half_width_95: gated.half_width,
            detectable_95: gated.detectable,
            p_value: gated.p_value,
            is_worse: gated.is_worse,
            may_be_worse: gated.may_be_worse,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_tolerated_is_a_percentage_and_may_be_nothing() {
        let parse = |text: &str| text.parse::<Tolerance>();
        assert_eq!(parse("5%"), Ok(Tolerance(0.05)));
        assert_eq!(parse("0%"), Ok(Tolerance(0.0)));
        for text in ["-1%", "100%", "nan", "much"] {
            assert!(parse(text).expect_err(text).contains("such as 5%"));
        }
        assert_eq!("0.01".parse::<Alpha>(), Ok(Alpha(0.01)));
        for text in ["0", "0.6", "1%"] {
            let refused = text.parse::<Alpha>().expect_err(text);
            assert!(refused.contains("such as 0.01"), "{refused}");
        }
    }
}
