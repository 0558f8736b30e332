//! The interval of T(L), from the intervals of what it is the sum of.
//!
//! CPU times are medians of different samples, and processors are measured apart: their errors are independent, so
//! half-widths add in squares, but for what all times of one processor have in common. The times of one accelerator are derived from the same segments and err
//! together: where they come from least squares the fit says how, elsewhere the interval is a bound.

use layerlab_profiles::derive::{Includes, LayerTime};
use layerlab_profiles::document::ProcessorKind;
use layerlab_profiles::summary::{Estimate, Z_95};
use layerlab_profiles::{Placement, Segment, SignedNanos};

use crate::processor_table::ProcessorTable;

/// `total`, which is T(L), with a 95 % interval that is never too narrow for normal errors; exact where layers
/// run on one accelerator at most and its times come from least squares.
pub(crate) fn of(
    total: SignedNanos,
    processors: &[ProcessorTable],
    placement: &Placement,
) -> Option<(SignedNanos, SignedNanos)> {
    let is_accelerator = |place: &usize| processors[*place].kind == ProcessorKind::Accelerator;
    let is_used = |place: &usize| placement.processors().contains(&(*place as u8));
    let accelerators: Vec<usize> = (0..processors.len()).filter(is_accelerator).collect();
    let used: Vec<usize> = accelerators.iter().copied().filter(is_used).collect();
    let only = match used[..] {
        // Where nothing runs on an accelerator, any fit leaves the CPUs' part alone.
        [] => accelerators.first(),
        [_] => used.first(),
        _ => None,
    };
    if let Some(&place) = only
        && let Some(fit) = &processors[place].fit
    {
        let cpus = on_cpus(processors, placement);
        let estimate = fit.combination(&cpus, &on(place, placement)).ok()?;
        let shared = shared(processors, placement);
        if shared == 0.0 {
            return estimate.ci95;
        }
        return Some(around(
            estimate.value,
            half_width(estimate)?.powi(2) + shared,
        ));
    }
    let mut squares = shared(processors, placement);
    for (&place, time) in placement
        .processors()
        .iter()
        .zip(on_cpus(processors, placement))
    {
        if processors[usize::from(place)].kind == ProcessorKind::Cpu {
            squares += half_width(time.compute)?.powi(2);
        }
    }
    for place in used {
        squares += part(&processors[place], &on(place, placement))?.powi(2);
    }
    Some(around(total, squares))
}

/// The interval of T(L), without loading, moved and widened by what loading the runs takes where they are loaded when they are
/// needed: measured apart from running them, so that errors are independent.
pub(crate) fn with_loading(
    (low, high): (SignedNanos, SignedNanos),
    processors: &[ProcessorTable],
    placement: &Placement,
) -> Option<(SignedNanos, SignedNanos)> {
    let half_width = (high - low).as_nanos() as f64 / 2.0;
    let (mut loading, mut squares) = (SignedNanos::ZERO, 0.0);
    for (place, processor) in (0..).zip(processors) {
        let runs: Vec<Segment> = placement.runs_on(place).collect();
        if let Some(load_times) = processor.charged().filter(|_| !runs.is_empty()) {
            loading = runs
                .iter()
                .fold(loading, |sum, &run| sum + load_times.segment(run));
            squares += load_times.half_width_ns(runs)?.powi(2);
        }
    }
    if loading == SignedNanos::ZERO && squares == 0.0 {
        return Some((low, high));
    }
    let wider = (half_width * half_width + squares).sqrt() - half_width;
    let wider = SignedNanos::from_nanos(wider.ceil() as i64);
    Some((low + loading - wider, high + loading + wider))
}

/// The interval whose half-width has this square.
fn around(total: SignedNanos, squares: f64) -> (SignedNanos, SignedNanos) {
    let half_width = SignedNanos::from_nanos(squares.sqrt().ceil() as i64);
    (total - half_width, total + half_width)
}

/// What adding in squares misses: layers on one CPU err together by as much as the run's visits were all slow or fast,
/// (Σ t)² - Σ t² times the square of that share.
fn shared(processors: &[ProcessorTable], placement: &Placement) -> f64 {
    let on_one = |place: usize, processor: &ProcessorTable| {
        let layers = placement.processors().iter().zip(&processor.times);
        let there = layers.filter(|(here, _)| usize::from(**here) == place);
        let times = there.filter_map(|(_, time)| Some((*time)?.compute.value.as_nanos() as f64));
        let (sum, squares) = times.fold((0.0, 0.0), |(sum, squares), time| {
            (sum + time, squares + time * time)
        });
        (sum * sum - squares) * (Z_95 * processor.shared_error).powi(2)
    };
    let cpus = processors.iter().enumerate();
    cpus.filter(|(_, processor)| processor.kind == ProcessorKind::Cpu)
        .map(|(place, processor)| on_one(place, processor))
        .sum()
}

/// One where `placement` has `place`, zero elsewhere.
fn on(place: usize, placement: &Placement) -> Placement {
    let processors = placement.processors().iter();
    Placement::new(processors.map(|&p| usize::from(p) == place).collect())
}

/// The time of each layer that runs on a CPU; of the others, the time on processor 0.
fn on_cpus(processors: &[ProcessorTable], placement: &Placement) -> Vec<LayerTime> {
    let places = placement.processors().iter().enumerate();
    places
        .map(|(index, &place)| {
            let here = &processors[usize::from(place)];
            match here.kind {
                ProcessorKind::Cpu => here.times[index],
                ProcessorKind::Accelerator => processors[0].times[index],
            }
        })
        .map(|time| time.unwrap_or(NOTHING))
        .collect()
}

/// Half the width of the interval of what the ones cost on an accelerator.
fn part(accelerator: &ProcessorTable, ones: &Placement) -> Option<f64> {
    let times = &accelerator.times;
    if let Some(fit) = &accelerator.fit {
        let elsewhere = vec![NOTHING; times.len()];
        return half_width(fit.combination(&elsewhere, ones).ok()?);
    }
    // The standard deviation of a sum is at most the sum of the standard deviations.
    let mut sum = 0.0;
    for (&one, time) in ones.processors().iter().zip(times) {
        if one == 1 {
            sum += half_width((*time)?.compute)?;
        }
    }
    for run in ones.npu_runs() {
        let entering = (*times.get(run.first() as usize - 1)?)?.to_processor;
        let leaving = (*times.get(run.last() as usize - 1)?)?.from_processor;
        for transfer in [entering, leaving].into_iter().flatten() {
            sum += half_width(transfer)?;
        }
    }
    Some(sum)
}

/// The time of a layer that is counted elsewhere.
pub(crate) const NOTHING: LayerTime = LayerTime {
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

fn half_width(estimate: Estimate) -> Option<f64> {
    let (low, high) = estimate.ci95?;
    Some((high - low).as_nanos() as f64 / 2.0)
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use layerlab_profiles::derive::graph::{Fit, observe};
    use layerlab_profiles::design::Design;
    use layerlab_profiles::{Nanos, Segment};

    use super::*;

    const LAYERS: u32 = 4;

    /// A CPU whose every layer takes 3 ms, give or take 0.1 ms.
    fn cpu(name: &str) -> ProcessorTable {
        let nanos = SignedNanos::from_nanos;
        let time = LayerTime {
            compute: Estimate {
                value: nanos(3_000_000),
                ci95: Some((nanos(2_900_000), nanos(3_100_000))),
            },
            ..NOTHING
        };
        ProcessorTable {
            name: name.to_owned(),
            kind: ProcessorKind::Cpu,
            times: vec![Some(time); LAYERS as usize],
            unsupported: Vec::new(),
            fit: None,
            shared_error: 0.0,
            memory: None,
        }
    }

    /// An accelerator measured in segments; its times scatter by a few per cent.
    fn accelerator(name: &str, slower: u64) -> ProcessorTable {
        let samples = |segment: Segment| -> Vec<Nanos> {
            let length = 500_000 * slower * (u64::from(segment.layers()) + 1);
            let scatter = |index: u64| length * (index * 7 % 9 + 100) / 100;
            (0..9)
                .map(|index| Nanos::from_nanos(scatter(index)))
                .collect()
        };
        let segments = Design::Local.segments(LAYERS).into_iter();
        let durations: BTreeMap<Segment, Vec<Nanos>> = segments
            .map(|segment| (segment, samples(segment)))
            .collect();
        let fit = Fit::new(LAYERS, &observe(&durations), &BTreeSet::new()).expect("connected");
        ProcessorTable {
            name: name.to_owned(),
            kind: ProcessorKind::Accelerator,
            times: fit.layer_times().into_iter().map(Some).collect(),
            unsupported: Vec::new(),
            fit: Some(fit),
            shared_error: 0.0,
            memory: None,
        }
    }

    fn half_width_of(processors: &[ProcessorTable], text: &str) -> f64 {
        let placement = text.parse().expect("digits");
        let interval = of(SignedNanos::ZERO, processors, &placement).expect("intervals");
        half_width(Estimate {
            value: SignedNanos::ZERO,
            ci95: Some(interval),
        })
        .expect("an interval")
    }

    #[test]
    fn one_accelerator_in_use_has_the_interval_of_its_pair() {
        let all = [
            cpu("cpu"),
            accelerator("gpu", 3),
            accelerator("npu", 1),
            cpu("little"),
        ];
        let gpu = [cpu("cpu"), accelerator("gpu", 3)];
        let npu = [cpu("cpu"), accelerator("npu", 1)];
        for (text, pair, of_pair) in [
            ("0110", &gpu, "0110"),
            ("2022", &npu, "1011"),
            ("3203", &npu, "0100"),
            ("0000", &gpu, "0000"),
            ("3033", &gpu, "0000"),
        ] {
            let placement = text.parse().expect("digits");
            let of_pair = of_pair.parse().expect("bits");
            let fit = pair[1].fit.as_ref().expect("least squares");
            let of_cpu: Vec<LayerTime> = pair[0].times.iter().flatten().copied().collect();
            let exact = fit.combination(&of_cpu, &of_pair).expect("one model");
            assert_eq!(
                of(SignedNanos::ZERO, &all, &placement),
                exact.ci95,
                "{text}"
            );
        }
    }

    #[test]
    fn errors_of_different_accelerators_are_independent() {
        let mut all = [cpu("cpu"), accelerator("gpu", 3), accelerator("npu", 1)];
        for _ in 0..2 {
            let parts = ["1100", "0020"].map(|text| {
                let ones = text.replace('2', "1");
                let processor = &all[if text.contains('2') { 2 } else { 1 }];
                part(processor, &ones.parse().expect("bits")).expect("an interval")
            });
            let expected = (parts[0].powi(2) + parts[1].powi(2) + 1e5_f64.powi(2)).sqrt();
            let found = half_width_of(&all, "1120");
            assert!((found - expected).abs() <= 1.0, "{found} {expected}");
            // The same without the fits, by the bounds.
            all[1].fit = None;
            all[2].fit = None;
        }
    }
}
