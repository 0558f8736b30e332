//! Which layers differ between two profiles of one model: two phones, two versions, two nights.
//!
//! Every number that both profiles have is compared by the difference of the two, by Student's t with the variances and the
//! degrees of freedom that their samples give; where those do not tell visits apart, as normal with the variances that the
//! published intervals stand for. A model has dozens of numbers, of which
//! some would differ at 5 % by chance alone; p-values are therefore adjusted by Holm's method (1979) over
//! all numbers of a processor: where no layer differs, the chance that any is said to is 5 % in all.

use serde::Serialize;

use crate::derive::graph::{ErrorVariance, two_sided_p_student};
use crate::document::{KnownErrors, LayerTimeRow, Profile};
use crate::holm;
use crate::soak::Thermal;
use crate::summary::Estimate;

/// The chance, per processor, that a layer is said to differ although none does.
pub const SIGNIFICANCE: f64 = 0.05;

/// Two numbers that were each rounded to a nanosecond, and are sums of others that were, differ by as much.
pub(crate) const ROUNDING_NS: u64 = 2;

/// Two profiles that cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompareError {
    /// The profiles are of different networks.
    #[error(
        "the profiles are of different models: {one} ({one_layers} layers) and {other} ({other_layers} layers)"
    )]
    DifferentModels {
        /// The first profile's model: its name and the beginning of its hash.
        one: String,
        /// How many layers the first profile's model has.
        one_layers: u32,
        /// The second profile's model.
        other: String,
        /// How many layers the second profile's model has.
        other_layers: u32,
    },
    /// The profiles are of a cool device and of one in its steady state.
    #[error(
        "the times of one profile are {one}, those of the other {other}: heat, not the model, would be found to differ; \
         compare cold times with cold ones, or steady with steady"
    )]
    DifferentStates {
        /// The state of the first profile's device.
        one: Thermal,
        /// The state of the second's.
        other: Thermal,
    },
    /// No processor is in both profiles.
    #[error("no processor is in both profiles: {one} and {other}")]
    NoCommonProcessor {
        /// The first profile's processors.
        one: String,
        /// The second profile's.
        other: String,
    },
    /// The compute times of a layer contain different transfers.
    #[error(
        "layer {layer} on `{processor}`: one profile's compute time contains transfers that the other's \
         does not; derive both by the same method"
    )]
    DifferentMeaning {
        /// The number of the layer, counted from 1.
        layer: u32,
        /// The name of the processor, which both profiles have.
        processor: String,
    },
}

/// What a time is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// Computing the layer.
    Compute,
    /// Moving its input to the processor.
    ToProcessor,
    /// Moving its output from the processor.
    FromProcessor,
}

impl Quantity {
    /// The name that the columns of `times.csv` begin with.
    pub fn name(self) -> &'static str {
        match self {
            Quantity::Compute => "compute",
            Quantity::ToProcessor => "to_processor",
            Quantity::FromProcessor => "from_processor",
        }
    }
}

/// One number in both profiles.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The processor, by its name.
    pub processor: String,
    /// The layer, counted from 1.
    pub layer: u32,
    /// What was compared.
    pub quantity: Quantity,
    /// The first profile's number.
    pub one: Estimate,
    /// The second profile's.
    pub other: Estimate,
    /// The second less the first, with the 95 % interval of this difference alone.
    pub difference: Estimate,
    /// How probable a difference at least as large is where there is none, adjusted for the number of
    /// comparisons (Holm). `None` where a number has no interval.
    pub p_value: Option<f64>,
}

impl Difference {
    /// Whether the layer differs by more than noise explains.
    pub fn is_significant(&self) -> bool {
        self.p_value.is_some_and(|p| p < SIGNIFICANCE)
    }
}

/// A layer that a processor can run according to one profile and not according to the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunsInOne {
    /// The processor, by its name.
    pub processor: String,
    /// The layer, counted from 1.
    pub layer: u32,
    /// Whether it is the second profile that says that the processor cannot run it.
    pub lacks_other: bool,
    /// Why it cannot.
    pub reason: String,
}

/// The layers that a processor of both profiles can run according to one of them alone, by processor in the first profile's
/// order, then layer.
pub fn runs_in_one(one: &Profile, other: &Profile) -> Vec<RunsInOne> {
    let common = names(one).filter(|name| names(other).any(|known| known == *name));
    let layers = 1..=one.header.model.layers;
    let places = common.flat_map(|name| layers.clone().map(move |layer| (name, layer)));
    let differs = |(processor, layer): (&str, u32)| {
        let why = |profile: &Profile| {
            let reason = profile.why_unsupported(processor, layer);
            reason.map(str::to_owned)
        };
        let (lacks_other, reason) = match (why(one), why(other)) {
            (Some(reason), None) => (false, reason),
            (None, Some(reason)) => (true, reason),
            _ => return None,
        };
        Some(RunsInOne {
            processor: processor.to_owned(),
            layer,
            lacks_other,
            reason,
        })
    };
    places.filter_map(differs).collect()
}

/// Every number that both profiles have, by processor in the first profile's order, then layer. Where a processor lacks a
/// layer in one of them, its neighbours' times there include a transfer that they do not in the other: those are left out.
pub fn compare(one: &Profile, other: &Profile) -> Result<Vec<Difference>, CompareError> {
    refuse_different_models(one, other)?;
    let common = refuse_without_common_processor(one, other)?;
    let mut differences = Vec::new();
    for processor in common {
        let mut of_processor = Vec::new();
        let is_alike = one.supported(processor) == other.supported(processor);
        let errors = [one.known_errors(processor), other.known_errors(processor)];
        for (row, counterpart) in pairs(one, other, processor) {
            if row.time.compute_includes != counterpart.time.compute_includes {
                if !is_alike {
                    continue;
                }
                return Err(CompareError::DifferentMeaning {
                    layer: row.layer,
                    processor: processor.to_owned(),
                });
            }
            let ours = numbers(row, &errors[0]).into_iter();
            for ((quantity, a), (_, b)) in ours.zip(numbers(counterpart, &errors[1])) {
                if let (Some(a), Some(b)) = (a, b) {
                    of_processor.push(difference(row, quantity, &a, &b));
                }
            }
        }
        drop_repetitions(&mut of_processor);
        holm::adjust(
            of_processor
                .iter_mut()
                .filter_map(|one| one.p_value.as_mut()),
        );
        differences.extend(of_processor);
    }
    Ok(differences)
}

pub(crate) fn refuse_different_models(one: &Profile, other: &Profile) -> Result<(), CompareError> {
    let (a, b) = (&one.header.model, &other.header.model);
    if a.sha256 == b.sha256 && a.layers == b.layers {
        return match (one.header.thermal, other.header.thermal) {
            (one, other) if one == other => Ok(()),
            (one, other) => Err(CompareError::DifferentStates { one, other }),
        };
    }
    let name = |model: &crate::document::Model| {
        let hash: String = model.sha256.chars().take(8).collect();
        format!("{} {hash}", model.name)
    };
    Err(CompareError::DifferentModels {
        one: name(a),
        one_layers: a.layers,
        other: name(b),
        other_layers: b.layers,
    })
}

/// The processors that both have.
pub(crate) fn refuse_without_common_processor<'a>(
    one: &'a Profile,
    other: &Profile,
) -> Result<Vec<&'a str>, CompareError> {
    let common = names(one).filter(|name| names(other).any(|known| known == *name));
    let common: Vec<&str> = common.collect();
    if common.is_empty() {
        let list = |profile| names(profile).collect::<Vec<_>>().join(", ");
        return Err(CompareError::NoCommonProcessor {
            one: list(one),
            other: list(other),
        });
    }
    Ok(common)
}

pub(crate) fn names(profile: &Profile) -> impl Iterator<Item = &str> {
    profile.header.processors.iter().map(|p| p.name.as_str())
}

/// The rows of the same layer in both profiles.
pub(crate) fn pairs<'a>(
    one: &'a Profile,
    other: &'a Profile,
    processor: &'a str,
) -> impl Iterator<Item = (&'a LayerTimeRow, &'a LayerTimeRow)> {
    let of = move |profile: &'a Profile| {
        profile
            .times
            .iter()
            .filter(move |row| row.processor == processor)
    };
    of(one).filter_map(move |row| Some((row, of(other).find(|found| found.layer == row.layer)?)))
}

/// A number, and how well it is known.
struct Known {
    estimate: Estimate,
    error: Option<ErrorVariance>,
}

fn numbers(row: &LayerTimeRow, errors: &KnownErrors<'_>) -> [(Quantity, Option<Known>); 3] {
    let time = &row.time;
    let errors = errors.of_layer(row);
    let known = |estimate: Option<Estimate>, error| {
        let estimate = estimate?;
        Some(Known { estimate, error })
    };
    [
        (
            Quantity::ToProcessor,
            known(time.to_processor, errors.to_processor),
        ),
        (Quantity::Compute, known(Some(time.compute), errors.compute)),
        (
            Quantity::FromProcessor,
            known(time.from_processor, errors.from_processor),
        ),
    ]
}

fn difference(row: &LayerTimeRow, quantity: Quantity, one: &Known, other: &Known) -> Difference {
    let error = one.error.zip(other.error);
    let error = error.map(|(one, other)| ErrorVariance::of_difference(one, other));
    let value = other.estimate.value - one.estimate.value;
    let half_width = error.map(ErrorVariance::half_width);
    let p_value = error.map(|error| {
        // Numbers are published as whole nanoseconds: what rounding can do is no difference, and beyond it
        // any difference of two exact numbers is certain.
        let nanos = value.as_nanos().unsigned_abs().saturating_sub(ROUNDING_NS) as f64;
        if nanos == 0.0 {
            1.0
        } else {
            two_sided_p_student(nanos / error.variance.sqrt(), error.freedom)
        }
    });
    Difference {
        processor: row.processor.clone(),
        layer: row.layer,
        quantity,
        one: one.estimate,
        other: other.estimate,
        difference: Estimate::around(value.as_nanos() as f64, half_width),
        p_value,
    }
}

/// Where a layer's transfer out is the next layer's transfer in by assumption, it is one number: to count
/// it twice would make the adjustment too strict.
fn drop_repetitions(differences: &mut Vec<Difference>) {
    let entering: Vec<(u32, Estimate, Estimate)> = differences
        .iter()
        .filter(|difference| difference.quantity == Quantity::ToProcessor)
        .map(|difference| (difference.layer, difference.one, difference.other))
        .collect();
    differences.retain(|difference| {
        let repeated = (
            difference.layer.saturating_add(1),
            difference.one,
            difference.other,
        );
        difference.quantity != Quantity::FromProcessor || !entering.contains(&repeated)
    });
}
