//! Is it proved that an accelerator of ONNX Runtime ran what it is said to have run?
//!
//! That runtime gives nodes that a provider cannot run to its CPU provider, in silence unless it is told to refuse, and
//! one of Qualcomm's backends computes on the CPU under the name of the accelerator's provider.

use std::collections::BTreeSet;

use super::{Findings, Rule, Subject};
use crate::document::{Numerics, ONNX_RUNTIME, Processor, ProcessorKind, Profile, ProvedPlacement};
use crate::segment::Segment;

/// The option in which ONNX Runtime's processors name their provider.
const PROVIDER: &str = "provider";

/// The provider that computes in main memory. Nothing can fall back from it.
const CPU_PROVIDER: &str = "CPUExecutionProvider";

/// Qualcomm's backend that computes on the CPU under the name of their accelerators' provider.
const CPU_BACKEND: &str = "QnnCpu";

pub(super) fn check(subject: &Subject<'_>, findings: &mut Findings) {
    findings.add(Rule::PlacementUnproved, unproved(subject));
    findings.add(Rule::TwinMissing, twin_missing(subject));
}

fn unproved(subject: &Subject<'_>) -> Vec<String> {
    let profile = subject.profile;
    // Version 3, which no such accelerator could be measured for, recorded no proof; nor did it record who wrote it.
    if profile.header.written_by.is_none() {
        return Vec::new();
    }
    let processors = profile.header.processors.iter();
    processors
        .filter(|one| one.runtime == ONNX_RUNTIME && one.kind == ProcessorKind::Accelerator)
        .flat_map(|processor| {
            let ran = &measured(subject, processor) | &answered(profile, processor);
            unproved_on(profile, processor, &ran)
        })
        .collect()
}

/// The layers that answered images on a processor: each is loaded by itself.
fn answered(profile: &Profile, processor: &Processor) -> BTreeSet<Segment> {
    let mut layers = BTreeSet::new();
    for evaluation in &profile.evaluations {
        let mut named = evaluation.processors(&profile.header).into_iter();
        let Some(digit) = named.position(|name| name == processor.name) else {
            continue;
        };
        let of_evaluation = profile.combinations.iter().filter(|row| {
            (&row.cpu, &row.accelerator) == (&evaluation.cpu, &evaluation.accelerator)
        });
        for row in of_evaluation {
            let digits = (1..).zip(row.combination.processors());
            let here = digits.filter(|&(_, &of_layer)| usize::from(of_layer) == digit);
            layers.extend(here.map(|(layer, _)| Segment::single(layer)));
        }
    }
    layers
}

/// The segments with samples on a processor.
fn measured(subject: &Subject<'_>, processor: &Processor) -> BTreeSet<Segment> {
    let keys = subject.segments.keys().chain(subject.durations.keys());
    let place = subject.places.get(processor.name.as_str()).copied();
    keys.filter(|(of, _)| Some(*of) == place)
        .map(|&(_, segment)| segment)
        .collect()
}

fn unproved_on(profile: &Profile, processor: &Processor, ran: &BTreeSet<Segment>) -> Vec<String> {
    let name = &processor.name;
    let options = processor.runtime_options.as_ref();
    let provider = options.and_then(|options| options.get(PROVIDER));
    let Some(provider) = provider.filter(|_| !ran.is_empty()) else {
        let nameless = !ran.is_empty();
        let case = || format!("`runtime_options` of `{name}` do not name its `{PROVIDER}`");
        return nameless.then(case).into_iter().collect();
    };
    let rows: Vec<_> = profile
        .placements
        .iter()
        .filter(|row| row.processor == *name)
        .collect();
    let proved: BTreeSet<Segment> = rows.iter().map(|row| row.segment).collect();
    let absent = ran.difference(&proved).map(|segment| {
        format!("nothing proves where layers {segment} of `{name}` ran: placements.csv has no row of them")
    });
    let doubtful = rows
        .iter()
        .filter_map(|row| doubt(row, processor, provider));
    absent.chain(doubtful).collect()
}

/// What keeps a row from being a proof.
fn doubt(row: &ProvedPlacement, processor: &Processor, provider: &str) -> Option<String> {
    let (name, segment) = (&row.processor, row.segment);
    if row.provider != provider {
        let (nodes, other) = (row.nodes, &row.provider);
        return Some(format!(
            "layers {segment} of `{name}` ran partly elsewhere: {nodes} of their nodes on {other}, not on {provider}"
        ));
    }
    if row.nodes == 0 {
        return Some(format!("layers {segment} of `{name}` ran no node there"));
    }
    if !row.fallback_refused && provider != CPU_PROVIDER {
        return Some(format!(
            "layers {segment} of `{name}` could fall back to the CPU in silence"
        ));
    }
    let backend = row.backend.as_ref()?;
    if backend.contains(CPU_BACKEND) {
        return Some(format!(
            "layers {segment} of `{name}` ran in `{backend}`, which computes on the CPU"
        ));
    }
    let mut libraries = processor.runtime_libraries.iter().flatten();
    (!libraries.any(|library| library.name == *backend)).then(|| {
        format!(
            "layers {segment} of `{name}` ran in `{backend}`, which `runtime_libraries` do not have"
        )
    })
}

/// Processors that can have run a quantised twin alone, in a profile that names none.
fn twin_missing(subject: &Subject<'_>) -> Vec<String> {
    let header = &subject.profile.header;
    if header.model.quantised.is_some() || header.written_by.is_none() {
        return Vec::new();
    }
    let processors = header.processors.iter();
    processors
        .filter(|one| one.runtime == ONNX_RUNTIME && one.numerics == Numerics::I8)
        .filter(|one| !measured(subject, one).is_empty())
        .map(|one| {
            format!(
                "`{}` computed in 8 bits, and `model.quantised` does not say which quantised model it ran",
                one.name
            )
        })
        .collect()
}
