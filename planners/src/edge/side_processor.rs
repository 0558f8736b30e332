//! A processor of one side: what its layers take and, where every group of layers was measured by itself, what those take.

use std::collections::BTreeMap;

use layerlab_profiles::design::Design;
use layerlab_profiles::document::{Processor, ProcessorKind, Profile};
use layerlab_profiles::link::RequestMethod;
use layerlab_profiles::summary::Summary;
use layerlab_profiles::time_model::ProcessorTimes;
use layerlab_profiles::{Nanos, Placement, Segment, SignedNanos};

use crate::interval;
use crate::processor_table::ProcessorTable;
use crate::profile::{ProfileError, table};

/// A processor that may run groups of layers.
#[derive(Clone, Debug)]
pub(super) struct SideProcessor {
    table: ProcessorTable,
    sums: ProcessorTimes,
    /// The medians of groups that were measured by themselves, with the design `grouped` (jointdnn §3.1).
    groups: BTreeMap<Segment, MeasuredGroup>,
    /// In how many visits each was timed, if it is known.
    visits: Option<u64>,
    /// The SHA-256 of the model's file.
    model_sha256: String,
}

/// A group of layers that was measured by itself.
#[derive(Clone, Copy, Debug)]
struct MeasuredGroup {
    median: Nanos,
    /// Half the width of the median's 95 % interval, if it has one.
    half_width_ns: Option<f64>,
}

impl MeasuredGroup {
    fn of(summary: &Summary) -> MeasuredGroup {
        let width = |(low, high): (Nanos, Nanos)| (high - low).as_nanos() as f64;
        MeasuredGroup {
            median: summary.median,
            half_width_ns: summary.median_ci95.map(|ends| width(ends) / 2.0),
        }
    }
}

impl SideProcessor {
    /// What `profile` says of `processor`.
    pub(super) fn of(
        profile: &Profile,
        processor: &Processor,
    ) -> Result<SideProcessor, ProfileError> {
        let table = table(profile, processor)?;
        let measurements = &profile.header.measurements;
        let measured = measurements
            .iter()
            .find(|it| it.processor == processor.name);
        let is_grouped = measured.is_some_and(|it| it.design == Design::Grouped);
        let rows = profile.segments.iter();
        let rows = rows.filter(|row| is_grouped && row.processor == processor.name);
        Ok(SideProcessor {
            sums: ProcessorTimes::new(table.kind, &table.times),
            groups: rows
                .map(|row| (row.segment, MeasuredGroup::of(&row.summary)))
                .collect(),
            visits: measured.and_then(|it| it.visits),
            model_sha256: profile.header.model.sha256.clone(),
            table,
        })
    }

    /// Its name in its side's profile.
    pub(super) fn name(&self) -> &str {
        &self.table.name
    }

    /// Whether its side's profile is of the model and the processor of these requests.
    pub(super) fn is_of(&self, requests: &RequestMethod) -> bool {
        self.model_sha256 == requests.model_sha256 && self.name() == requests.processor
    }

    /// What it is measured as.
    pub(super) fn kind(&self) -> ProcessorKind {
        self.table.kind
    }

    /// What each group of layers takes that begins with layer `first`, counted from 1, that layer alone first: as it was measured
    /// or else as its layers and moving in and out add up (T(L), docs/method.md §2). What noise took below zero is zero.
    pub(super) fn groups_from(&self, first: u32) -> Vec<Option<Nanos>> {
        let sums = self.sums.runs_from(first as usize);
        (first..)
            .zip(sums)
            .map(|(last, sum)| {
                let segment = Segment::new(first, last).ok()?;
                let measured = self.groups.get(&segment).map(|group| group.median);
                measured.or_else(|| sum.map(no_less_than_nothing))
            })
            .collect()
    }

    /// Half the width of the 95 % interval, in ns, of the median that `groups` take together in one visit.
    ///
    /// The published intervals are of the mean of all V visits, for which each visit's own error counts 1/V. Of one
    /// more visit it counts once, so that the variance is V + 1 times as large.
    pub(super) fn half_width_ns(&self, groups: &[Segment]) -> Option<f64> {
        let measured = |group: &Segment| self.groups.get(group);
        let of_mean = match groups.iter().all(|group| measured(group).is_some()) {
            // All of one visit are slow or fast together.
            true => (groups.iter().filter_map(measured))
                .map(|group| group.half_width_ns)
                .sum::<Option<f64>>()?,
            false => self.half_width_of_sums(groups)?,
        };
        let visits = self.visits.unwrap_or(0);
        Some(of_mean * ((visits + 1) as f64).sqrt())
    }

    /// Of T(L) with these layers here, and the others on a processor where they take no time.
    fn half_width_of_sums(&self, groups: &[Segment]) -> Option<f64> {
        let layers = self.table.times.len();
        let elsewhere = ProcessorTable {
            name: "elsewhere".to_owned(),
            kind: ProcessorKind::Cpu,
            times: vec![Some(interval::NOTHING); layers],
            unsupported: Vec::new(),
            fit: None,
            shared_error: 0.0,
            memory: None,
        };
        let mut digits = vec![0; layers];
        for group in groups {
            digits[group.first() as usize - 1..group.last() as usize].fill(1);
        }
        let processors = [elsewhere, self.table.clone()];
        let (low, high) = interval::of(SignedNanos::ZERO, &processors, &Placement::new(digits))?;
        Some((high - low).as_nanos() as f64 / 2.0)
    }
}

/// What noise took below zero is zero.
pub(super) fn no_less_than_nothing(time: SignedNanos) -> Nanos {
    Nanos::from_nanos(u64::try_from(time.as_nanos()).unwrap_or(0))
}
