//! The ends of intervals, and what a placement keeps with confidence (docs/method.md §2, §9).

use layerlab_profiles::derive::{Includes, LayerTime};
use layerlab_profiles::document::ProcessorKind;
use layerlab_profiles::summary::{Estimate, Z_95};
use layerlab_profiles::{Placement, SignedNanos};
use statrs::distribution::{ContinuousCDF, Normal};

use super::{Evidence, Loss, memory};
use crate::confidence::Confidence;
use crate::outcome::Plan;
use crate::times::ProcessorTable;

/// The time of a layer on another processor than the one that is looked at.
const ELSEWHERE: LayerTime = LayerTime {
    compute: Estimate {
        value: SignedNanos::ZERO,
        ci95: Some((SignedNanos::ZERO, SignedNanos::ZERO)),
    },
    compute_includes: Includes {
        to_processor: false,
        from_processor: false,
    },
    to_processor: None,
    from_processor: None,
};

/// By how many nanoseconds an end of the time's interval may differ, with the confidence of the plan: published times are
/// rounded, a few for each layer.
pub(super) fn rounding_ns(plan: &Plan, evidence: &Evidence) -> i64 {
    (3.0 * evidence.layers.len() as f64 * stretch(plan.confidence()).max(1.0)).ceil() as i64
}

/// The 95 % interval of T(L): the parts of different processors err independently of each other.
pub(super) fn time_ci95(
    combination: &Placement,
    evidence: &Evidence,
) -> Option<(SignedNanos, SignedNanos)> {
    let (mut total, mut squares) = (0.0, 0.0);
    for (place, processor) in evidence.processors.iter().enumerate() {
        let here: Vec<bool> = combination
            .processors()
            .iter()
            .map(|&on| usize::from(on) == place)
            .collect();
        if here.contains(&true) {
            let (value, square) = match processor.kind {
                ProcessorKind::Cpu => on_cpu(processor, &here)?,
                ProcessorKind::Accelerator => on_accelerator(processor, &here)?,
            };
            total += value;
            squares += square + memory::loading_square(combination, place as u8, processor)?;
        }
    }
    total += memory::loading(combination, evidence).as_nanos() as f64;
    Estimate::around(total, Some(squares.sqrt())).ci95
}

/// The time of a CPU's layers and the square of its half-width: errors of its layers are independent, but for what the
/// processor's visits have in common.
fn on_cpu(processor: &ProcessorTable, here: &[bool]) -> Option<(f64, f64)> {
    let (mut total, mut own, mut own_shared) = (0.0, 0.0, 0.0);
    for (time, _) in processor.times.iter().zip(here).filter(|(_, here)| **here) {
        let compute = (*time)?.compute;
        let value = compute.value.as_nanos() as f64;
        total += value;
        own += half_width(compute)?.powi(2);
        own_shared += value * value;
    }
    let shared = Z_95 * processor.shared_error;
    Some((total, own + shared * shared * (total * total - own_shared)))
}

/// The same of an accelerator: by the fit that its times come from, or at most the sum of all half-widths.
fn on_accelerator(processor: &ProcessorTable, here: &[bool]) -> Option<(f64, f64)> {
    if let Some(fit) = &processor.fit {
        let placement = Placement::new(here.to_vec());
        let estimate = fit
            .combination(&vec![ELSEWHERE; here.len()], &placement)
            .ok()?;
        let half_width = half_width(estimate)?;
        return Some((estimate.value.as_nanos() as f64, half_width * half_width));
    }
    let (mut total, mut half_widths) = (0.0, 0.0);
    let mut add = |estimate: Estimate| {
        total += estimate.value.as_nanos() as f64;
        half_widths += half_width(estimate)?;
        Some(())
    };
    for layer in (0..here.len()).filter(|&layer| here[layer]) {
        let time = processor.times[layer]?;
        add(time.compute)?;
        if layer == 0 || !here[layer - 1] {
            time.to_processor.map_or(Some(()), &mut add)?;
        }
        if here.get(layer + 1) != Some(&true) {
            time.from_processor.map_or(Some(()), &mut add)?;
        }
    }
    Some((total, half_widths * half_widths))
}

/// The longest time, in ns, with the plan's confidence; T(L) where it has none, or a published time has no interval.
pub(super) fn longest_time_ns(
    plan: &Plan,
    total: SignedNanos,
    ci95: Option<(SignedNanos, SignedNanos)>,
) -> i64 {
    let total = total.as_nanos();
    match (plan.confidence(), ci95) {
        (Some(_), Some((low, high))) => {
            let middle = (low + high).as_nanos() as f64 / 2.0;
            let half_width = (high - low).as_nanos() as f64 / 2.0;
            total.max((middle + stretch(plan.confidence()) * half_width).ceil() as i64)
        }
        _ => total,
    }
}

/// The interval of A(L) around this value, with this confidence, 95 % if there is none.
pub(super) fn accuracy_interval(
    combination: &Placement,
    value: f64,
    confidence: Option<Confidence>,
    evidence: &Evidence,
) -> Option<(f64, f64)> {
    if combination.is_all_on(0) {
        return Some((value, value));
    }
    let table = evidence.accuracy;
    let mut rows = table.rows().iter();
    if let Some(row) = rows.find(|row| &row.combination == combination) {
        let (low, high) = row.loss_ci95?;
        // What is lost less is accuracy more.
        let (less, more) = (high - row.loss, row.loss - low);
        let stretch = stretch(confidence);
        return Some((value - stretch * less, value + stretch * more));
    }
    let half_width = match evidence.loss {
        Loss::Formula(_) => 0.0,
        Loss::Model(model) => {
            let predicted = table.baseline() - value;
            let bands: Vec<_> = model.errors().bands().collect();
            let reached = bands.iter().rposition(|(from, ..)| *from <= predicted);
            let (_, errors, sampling) = bands.get(reached.unwrap_or(0))?;
            let share = confidence.map_or(0.95, Confidence::share);
            // So many of them are no larger than the one that is exceeded too seldom.
            let enough = ((errors.len() + 1) as f64 * share).ceil() as usize;
            let is_enough =
                |error: &&f64| errors.iter().filter(|one| one <= error).count() >= enough;
            let error = errors.iter().filter(is_enough).copied().reduce(f64::min)?;
            let sampling = sampling * stretch(confidence);
            (error * error + sampling * sampling).sqrt()
        }
    };
    Some((value - half_width, value + half_width))
}

/// The least accuracy with this confidence: A(L) where there is none, 0 where nothing is known.
pub(super) fn least_accuracy(
    combination: &Placement,
    value: f64,
    confidence: Option<Confidence>,
    evidence: &Evidence,
) -> f64 {
    let interval = || accuracy_interval(combination, value, confidence, evidence);
    let least = match confidence {
        None => value,
        Some(_) => interval().map_or(0.0, |(low, _)| low.min(value)),
    };
    least.max(0.0)
}

/// What a 95 % half-width is multiplied by to have this confidence.
fn stretch(confidence: Option<Confidence>) -> f64 {
    confidence.map_or(1.0, |confidence| {
        Normal::standard().inverse_cdf(0.5 + confidence.share() / 2.0) / Z_95
    })
}

fn half_width(estimate: Estimate) -> Option<f64> {
    let (low, high) = estimate.ci95?;
    Some((high - low).as_nanos() as f64 / 2.0)
}
