//! What the samples of one processor say: observed by visits, or in the way of profiles that do not tell visits apart.

use std::collections::BTreeMap;

use super::{Block, Clock, Measurement, Profile, Sample};
use crate::derive::graph::{
    ErrorVariance, Observations, Visit, VisitSamples, observe, observe_passes, observe_visits,
};
use crate::method::Method;
use crate::segment::Segment;
use crate::shortcuts::Shortcuts;
use crate::summary::Summary;
use crate::units::Nanos;

/// How much more two runs of a real processor differ than the visits of each of them tell: states of a machine may outlast a
/// run, whose visits then lie all in one. Pairs of profiles of a host differed by 1.45 to 1.49 times the variance of their visits
/// (tests/reports/host.md).
const RUN_INFLATION: f64 = 1.5;

/// That of a processor whose times were read from this clock: simulated machines draw the state of each visit anew.
fn run_inflation(clock: Clock) -> f64 {
    match clock {
        Clock::Monotonic => RUN_INFLATION,
        Clock::SimulatedExact | Clock::SimulatedReal => 1.0,
    }
}

/// What the samples of a processor say, read from this clock; `None` where nothing but their order statistics is asked for.
pub(crate) fn observed<'a>(
    clock: Clock,
    measurement: &Measurement,
    samples: impl Iterator<Item = &'a Sample>,
    blocks: &[Block],
) -> Option<Observations> {
    match (measurement.visits, measurement.method) {
        (Some(_), Method::Robust) => Some(observe_passes(
            &visit_samples(measurement, samples, blocks),
            run_inflation(clock),
        )),
        (Some(_), _) => Some(observe_visits(&visit_samples(measurement, samples, blocks))),
        (None, Method::Median | Method::Differencing) => None,
        (None, Method::Robust | Method::Graph | Method::Probed) => {
            let mut durations: BTreeMap<Segment, Vec<Nanos>> = BTreeMap::new();
            for sample in samples.filter(|sample| sample.processor == measurement.processor) {
                durations
                    .entry(sample.segment)
                    .or_default()
                    .push(sample.duration);
            }
            Some(observe(&durations))
        }
    }
}

/// The samples of a processor by visits: the blocks of its orders.
pub(crate) fn visit_samples<'a>(
    measurement: &Measurement,
    samples: impl Iterator<Item = &'a Sample>,
    blocks: &[Block],
) -> VisitSamples {
    let processor = &measurement.processor;
    let mut by_visit = VisitSamples::default();
    let of_processor = samples.filter(|sample| sample.processor == *processor);
    let mut in_order: Vec<&Sample> = of_processor.collect();
    in_order.sort_by_key(|sample| (sample.started, sample.index));
    for sample in in_order {
        let visit = Visit {
            order: sample.order,
            block: sample.block,
        };
        by_visit.push(sample.segment, visit, sample.duration);
    }
    let accepted = blocks
        .iter()
        .filter(|block| block.processor == *processor && block.rejection.is_none());
    by_visit.sentinels.extend(accepted.map(|block| {
        let visit = Visit {
            order: block.order,
            block: block.number,
        };
        (visit, [block.before.sentinel, block.after.sentinel])
    }));
    by_visit
}

/// The order statistics of a segment's samples, with the interval of their median: from the spread of visits where they
/// are told apart, else from the samples as if each were independent.
pub(crate) fn summary(
    measurement: Option<&Measurement>,
    observations: Option<&Observations>,
    segment: Segment,
    durations: &[Nanos],
) -> Option<Summary> {
    let mut summary = Summary::of(durations)?;
    if measurement.is_some_and(|measurement| measurement.visits.is_some()) {
        let interval =
            observations.map(|observations| observations.of_median(segment, summary.median));
        summary.median_ci95 = interval.flatten();
    }
    Some(summary)
}

impl Profile {
    /// What the samples of a processor say, as `observed`.
    pub(crate) fn observed(&self, measurement: &Measurement) -> Option<Observations> {
        let clock = self.header.device.clock;
        let observations = observed(clock, measurement, self.samples.iter(), &self.blocks)?;
        Some(observations.with_shortcuts(Shortcuts::of(&self.layers)))
    }

    /// The relative error that all times of a processor have in common, beside those of their own: that the visits of
    /// the run were faster or slower than visits are on average. Nothing where visits were not told apart.
    pub fn shared_error(&self, processor: &str) -> ErrorVariance {
        let mut measurements = self.header.measurements.iter();
        let measurement = measurements
            .find(|measurement| measurement.processor == processor && measurement.visits.is_some());
        match measurement
            .and_then(|measurement| Some((measurement.method, self.observed(measurement)?)))
        {
            None => ErrorVariance::default(),
            Some((Method::Median, observations)) => observations.visits.of_medians,
            Some((
                Method::Robust | Method::Differencing | Method::Graph | Method::Probed,
                observations,
            )) => observations.visits.of_times,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::design::Design;

    /// Files list samples by segments, and what is made of moments needs their turns.
    #[test]
    fn samples_are_in_the_order_of_time_whatever_order_they_are_listed_in() {
        let segments = [1, 2].map(Segment::single);
        let sample = |(segment, started): (Segment, u64)| Sample {
            processor: "npu".to_owned(),
            segment,
            order: 1,
            block: 0,
            index: started,
            started: Nanos::from_nanos(started),
            duration: Nanos::from_nanos(10 + started),
        };
        let turns: Vec<Sample> = (0..6)
            .map(|turn| sample((segments[turn % 2], turn as u64)))
            .collect();
        let mut listed = turns.clone();
        listed.sort_by_key(|sample| (sample.segment, sample.index));
        assert_ne!(listed, turns);
        let mut in_turn = VisitSamples::default();
        for sample in &turns {
            let visit = Visit { order: 1, block: 0 };
            in_turn.push(sample.segment, visit, sample.duration);
        }
        let measurement = Measurement {
            processor: "npu".to_owned(),
            design: Design::Local,
            samples_per_segment: 3,
            visits: Some(1),
            gap_ns: Nanos::ZERO,
            method: Method::Graph,
            seed: 1,
            target: None,
            budget_ns: None,
            sentinel: None,
        };
        assert_eq!(visit_samples(&measurement, listed.iter(), &[]), in_turn);
    }
}
