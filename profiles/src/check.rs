//! Is this profile fit to publish? A doubt is named, says what is doubtful, and comes with what to do.
//!
//! Every finding of one name is gathered into one sentence, with the first case and the number of others,
//! so that one systematic fault does not bury the rest.

mod arithmetic;
mod blocks;
mod clock;
mod combinations;
mod doubt;
mod energy;
mod evaluations;
mod header;
mod layers;
mod order;
mod placements;
mod plausible;
mod rows;
mod rule;
mod soak;
mod stepped;
mod unsupported;
mod utc;
mod whole;

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use serde::Serialize;

use crate::derive::graph::Observations;
use crate::document::{
    self, Contradiction, DocumentError, Measurement, Profile, Sample, SegmentRow,
};
use crate::probe::frontiers;
use crate::segment::Segment;
use crate::supported::SupportedLayers;
use crate::units::Nanos;

pub use doubt::{LARGE_MISFIT_PERCENT, LARGE_SPREAD, SAMPLES_FOR_AN_INTERVAL};
pub use rule::Rule;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// The profile contradicts itself and must not be published.
    Error,
    /// The profile is sound, but some of its numbers say less than one may hope.
    Warning,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
        })
    }
}

/// One doubt about a profile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What was looked for; its name is stable.
    pub rule: Rule,
    /// How bad it is.
    pub severity: Severity,
    /// What was found, in one sentence without a full stop.
    pub sentence: String,
    /// What to do about it, in one sentence without a full stop.
    pub remedy: &'static str,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Finding {
            rule,
            severity,
            sentence,
            remedy,
        } = self;
        write!(f, "{severity}[{rule}]: {sentence}; {remedy}")
    }
}

/// Everything doubtful about a profile, errors first. Nothing is doubtful about a good one.
pub fn check(profile: &Profile) -> Vec<Finding> {
    let mut findings = Findings::default();
    check_into(profile, &mut findings);
    findings.in_order()
}

/// Reads the profile in `dir` and checks it. Files that can be read but do not belong together are
/// findings too, where [`Profile::read`] would refuse them.
pub fn check_directory(dir: &Path) -> Result<(Profile, Vec<Finding>), DocumentError> {
    let (profile, contradictions) = document::read_with_contradictions(dir)?;
    let mut findings = Findings::default();
    for contradiction in contradictions {
        let rule = match contradiction {
            Contradiction::FileChanged { .. }
            | Contradiction::HeaderChanged { .. }
            | Contradiction::SteadyChanged => Rule::FileChanged,
            Contradiction::SteadyInSteady => Rule::ThermalContradiction,
            Contradiction::Origin { .. } => Rule::OriginContradiction,
        };
        findings.add(rule, [contradiction.to_string()]);
    }
    check_into(&profile, &mut findings);
    let findings = findings.in_order();
    Ok((profile, findings))
}

/// What is doubtful about a profile at this moment (RFC 3339, UTC): that it was measured later. Apart from [`check`], which
/// knows no clock. A day is left to clocks that differ.
pub fn check_not_of_the_future(profile: &Profile, now: &str) -> Option<Finding> {
    let mut findings = Findings::default();
    findings.add(
        Rule::ImplausibleValue,
        plausible::of_the_future(profile, now),
    );
    findings.0.pop()
}

fn check_into(profile: &Profile, findings: &mut Findings) {
    let subject = Subject::new(profile);
    header::check(profile, findings);
    layers::check(profile, findings);
    combinations::check(&subject, findings);
    rows::check(&subject, findings);
    unsupported::check(&subject, findings);
    placements::check(&subject, findings);
    arithmetic::check(&subject, findings);
    soak::check(&subject, findings);
    energy::check(&subject, findings);
    evaluations::check(&subject, findings);
    plausible::check(&subject, findings);
    blocks::check(&subject, findings);
    clock::check(&subject, findings);
    whole::check(&subject, findings);
    doubt::check(&subject, findings);
    stepped::check(&subject, findings);
    if profile.header.device.simulated {
        for finding in &mut findings.0 {
            finding.remedy = finding.rule.remedy_of_simulated();
        }
    }
}

/// What has been found so far.
#[derive(Default)]
struct Findings(Vec<Finding>);

impl Findings {
    /// One finding for all `cases` of a rule; none if there are none.
    fn add(&mut self, rule: Rule, cases: impl IntoIterator<Item = String>) {
        let mut cases = cases.into_iter();
        let Some(first) = cases.next() else { return };
        let sentence = match cases.count() {
            0 => first,
            more => format!("{first} ({more} more like this)"),
        };
        self.0.push(Finding {
            rule,
            severity: rule.severity(),
            sentence,
            remedy: rule.remedy(),
        });
    }

    /// Whether the profile is known to contradict itself.
    fn has_errors(&self) -> bool {
        let mut findings = self.0.iter();
        findings.any(|finding| finding.severity == Severity::Error)
    }

    fn in_order(mut self) -> Vec<Finding> {
        // Stable: within a severity findings stay in the order of the checks.
        self.0.sort_by_key(|finding| finding.severity);
        self.0
    }
}

/// A processor's place in the header and a segment: what a row of segments.csv is about.
type Key = (usize, Segment);

/// A profile with the look-ups that several checks share.
struct Subject<'a> {
    profile: &'a Profile,
    /// How many layers the model has: the rows of layers.csv, which exist, unlike the header's number.
    layers: u32,
    /// Each processor's place in the header.
    places: BTreeMap<&'a str, usize>,
    /// The first row of each segment, of known processors only.
    segments: BTreeMap<Key, &'a SegmentRow>,
    /// The durations of each segment's samples, of known processors only.
    durations: BTreeMap<Key, Vec<Nanos>>,
    /// What the samples of each processor say, by its place.
    observed: BTreeMap<usize, Observations>,
}

impl<'a> Subject<'a> {
    fn new(profile: &'a Profile) -> Self {
        let places = profile.header.places();
        let place = |processor: &str| places.get(processor).copied();
        let mut segments = BTreeMap::new();
        for row in &profile.segments {
            if let Some(place) = place(&row.processor) {
                segments.entry((place, row.segment)).or_insert(row);
            }
        }
        let mut durations: BTreeMap<Key, Vec<Nanos>> = BTreeMap::new();
        let same_segment =
            |a: &Sample, b: &Sample| a.segment == b.segment && a.processor == b.processor;
        for group in profile.samples.chunk_by(same_segment) {
            if let Some(first) = group.first()
                && let Some(place) = place(&first.processor)
            {
                durations
                    .entry((place, first.segment))
                    .or_default()
                    .extend(group.iter().map(|sample| sample.duration));
            }
        }
        let observed = profile
            .header
            .measurements
            .iter()
            .filter_map(|measurement| {
                let place = place(&measurement.processor)?;
                Some((place, profile.observed(measurement)?))
            });
        Subject {
            observed: observed.collect(),
            profile,
            layers: u32::try_from(profile.layers.len()).unwrap_or(u32::MAX),
            places,
            segments,
            durations,
        }
    }

    /// The layers that a processor can run.
    fn supported(&self, processor: &str) -> SupportedLayers {
        document::supported(self.layers, processor, &self.profile.unsupported)
    }

    /// What the probes on a processor say.
    fn probed(&self, processor: &str) -> document::Probed {
        let frontiers = frontiers(&self.profile.layers);
        document::probed(&self.profile.probes, processor, &frontiers)
    }

    /// How the processor at this place of the header was measured.
    fn measurement(&self, place: usize) -> Option<&'a Measurement> {
        let name = &self.profile.header.processors.get(place)?.name;
        let mut measurements = self.profile.header.measurements.iter();
        measurements.find(|measurement| &measurement.processor == name)
    }
}
