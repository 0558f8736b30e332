//! A plan for a person: a strip of layers, its time and accuracy, and why.

use layerlab_planners::memory::MemoryUse;
use layerlab_planners::problem::PredictedAccuracy;
use layerlab_planners::reason::Reason;
use layerlab_planners::{MemoryMode, Plan, TimePlan};
use layerlab_profiles::soak::Thermal;
use layerlab_profiles::time_model::PredictedTime;
use layerlab_profiles::{Placement, SignedNanos};

use super::learnt::{Learnt, PlanSubject};

/// The layers of each processor in a strip, processor 0 first; of processors beyond, their digits.
const STRIP: [char; 4] = ['·', '█', '▓', '░'];

/// The placement drawn as a strip of layers, its time and accuracy, and why.
pub(crate) fn describe(planned: &Plan, learnt: &Learnt) -> String {
    let accuracy = planned.accuracy();
    let accuracy = format!(
        "{:.4}{}\n          {:.4} with all layers on {}",
        accuracy.value,
        surely(&accuracy),
        learnt.problem.baseline(),
        learnt.evaluation.cpu,
    );
    let costs = Costs {
        combination: planned.combination(),
        time: planned.time(),
        time_ci95: planned.time_ci95(),
        memory: planned.memory(),
    };
    text(&costs, &accuracy, planned.reasons(), learnt.subject())
}

/// The same of a plan by time alone.
pub(super) fn describe_by_time(planned: &TimePlan, subject: PlanSubject<'_>) -> String {
    let costs = Costs {
        combination: &planned.combination,
        time: planned.time,
        time_ci95: planned.time_ci95,
        memory: &planned.memory,
    };
    text(&costs, UNKNOWN, &planned.reasons, subject)
}

/// In the place of an accuracy that nobody measured.
pub(super) const UNKNOWN: &str =
    "not measured: nothing is known of what this plan costs in accuracy";

/// A placement and what it costs but accuracy.
struct Costs<'a> {
    combination: &'a Placement,
    time: PredictedTime,
    time_ci95: Option<(SignedNanos, SignedNanos)>,
    memory: &'a [MemoryUse],
}

fn text(costs: &Costs<'_>, accuracy: &str, reasons: &[Reason], subject: PlanSubject<'_>) -> String {
    let Costs {
        combination,
        time,
        time_ci95,
        memory,
    } = costs;
    let names = subject.processors;
    let parts: Vec<String> = names
        .iter()
        .enumerate()
        .map(|(place, name)| format!("{} on {name}", time.on(place)))
        .collect();
    let interval = time_ci95.map_or_else(String::new, |(low, high)| format!(" ({low} to {high})"));
    let loading = match subject.times.mode() {
        MemoryMode::Resident => String::new(),
        MemoryMode::Reload => format!(", {} loading", time.loading),
    };
    let memory: String = memory.iter().map(memory_line).collect();
    let mut text = format!(
        "{}\n{combination}\n\ntime      {}{interval}\n          {}, {} moving{loading}\n{memory}accuracy  {accuracy}\n",
        strip(combination, names),
        time.total(),
        parts.join(", "),
        time.transfer,
    );
    text.push_str(of_state(subject));
    for reason in reasons {
        text.push_str(&format!("\n- {reason}"));
    }
    text.push_str(&planned_from(subject));
    text
}

/// Of what state of the device times are, where it is not the usual one.
fn of_state(subject: PlanSubject<'_>) -> &'static str {
    match subject.profile.header.thermal {
        Thermal::Cold => "",
        Thermal::Steady => {
            "\nTimes are those of the steady state, of a device that has been kept busy.\n"
        }
    }
}

/// The layers drawn as a strip, and what it means.
pub(super) fn strip(combination: &Placement, names: &[String]) -> String {
    let strip: String = combination.processors().iter().map(|&p| mark(p)).collect();
    // The accelerators, which are what the strip is looked at for, come first.
    let order = (1..names.len()).chain([0]);
    let legend: Vec<String> = order
        .map(|place| format!("{} {}", mark(place as u8), names[place]))
        .collect();
    format!("{strip}   {}", legend.join(", "))
}

/// How sure an accuracy is.
pub(super) fn surely(accuracy: &PredictedAccuracy) -> String {
    accuracy.interval.map_or_else(String::new, |(low, high)| {
        let how = if accuracy.is_measured {
            "measured"
        } else {
            "predicted"
        };
        format!(" ({:.4} to {:.4}), {how}", low.max(0.0), high.min(1.0))
    })
}

/// What a plan was made of.
pub(super) fn planned_from(subject: PlanSubject<'_>) -> String {
    let (source, rows) = (subject.source, subject.rows_since);
    let mut text = String::new();
    if let Some(digest) = &source.profile_digest {
        let since = match rows {
            0 => String::new(),
            rows => format!(", with placements measured since: {rows}"),
        };
        text.push_str(&format!("\n\nPlanned from the profile {digest}{since}."));
    }
    if source.simulated {
        text.push_str("\n\nPlanned from a simulated device.");
    }
    if source.emulated {
        text.push_str("\n\nPlanned from an emulated processor: its times are no phone's.");
    }
    text
}

/// What the runs on an accelerator need of its memory.
fn memory_line(used: &MemoryUse) -> String {
    let MemoryUse {
        processor,
        mode,
        needed,
        capacity,
    } = used;
    let how = match mode {
        MemoryMode::Resident => "for all runs together",
        MemoryMode::Reload => "for the largest run; each is loaded when it is needed",
    };
    format!("memory    {needed} of {capacity} on the {processor}, {how}\n")
}

/// What stands for a layer on a processor in the strip.
fn mark(processor: u8) -> char {
    let digit = || char::from_digit(processor.into(), 10).unwrap_or('?');
    let known = STRIP.get(usize::from(processor)).copied();
    known.unwrap_or_else(digit)
}
