//! A plan for a person: a strip of layers, its time and accuracy, and why.

use layerlab_planners::memory::MemoryUse;
use layerlab_planners::problem::PredictedAccuracy;
use layerlab_planners::{MemoryMode, Plan};
use layerlab_profiles::Placement;
use layerlab_profiles::soak::Thermal;

use super::learnt::Learnt;

/// The layers of each processor in a strip, processor 0 first; of processors beyond, their digits.
const STRIP: [char; 4] = ['·', '█', '▓', '░'];

/// The placement drawn as a strip of layers, its time and accuracy, and why.
pub(crate) fn describe(planned: &Plan, learnt: &Learnt) -> String {
    let combination = planned.combination();
    let names = &learnt.processors;
    let cpu = &learnt.evaluation.cpu;
    let time = planned.time();
    let parts: Vec<String> = names
        .iter()
        .enumerate()
        .map(|(place, name)| format!("{} on {name}", time.on(place)))
        .collect();
    let interval = planned
        .time_ci95()
        .map_or_else(String::new, |(low, high)| format!(" ({low} to {high})"));
    let accuracy = planned.accuracy();
    let surely = surely(&accuracy);
    let loading = match learnt.problem.times().mode() {
        MemoryMode::Resident => String::new(),
        MemoryMode::Reload => format!(", {} loading", time.loading),
    };
    let memory: String = planned.memory().iter().map(memory_line).collect();
    let mut text = format!(
        "{}\n{combination}\n\ntime      {}{interval}\n          {}, {} moving{loading}\n{memory}accuracy  {:.4}{surely}\n          {:.4} with all layers on {cpu}\n",
        strip(combination, names),
        time.total(),
        parts.join(", "),
        time.transfer,
        accuracy.value,
        learnt.problem.baseline(),
    );
    if learnt.profile.header.thermal == Thermal::Steady {
        text.push_str(
            "\nTimes are those of the steady state, of a device that has been kept busy.\n",
        );
    }
    for reason in planned.reasons() {
        text.push_str(&format!("\n- {reason}"));
    }
    text.push_str(&planned_from(learnt));
    text
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
pub(super) fn planned_from(learnt: &Learnt) -> String {
    let mut text = String::new();
    if let Some(digest) = &learnt.source.profile_digest {
        let since = match learnt.rows.rows().len() {
            0 => String::new(),
            rows => format!(", with placements measured since: {rows}"),
        };
        text.push_str(&format!("\n\nPlanned from the profile {digest}{since}."));
    }
    if learnt.source.simulated {
        text.push_str("\n\nPlanned from a simulated device.");
    }
    if learnt.source.emulated {
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
