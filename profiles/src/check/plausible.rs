//! Is each number that nothing else in the profile determines at least one that can be?

use super::utc::utc_seconds;
use super::{Findings, Rule, Subject};
use crate::document::{
    Block, BlockEnd, Header, Measurement, Numerics, ONNX_RUNTIME, Processor, ProcessorKind,
    Profile, Provenance,
};
use crate::segment::Segment;
use crate::units::Bytes;

/// The runtime that computes on CPUs within the agent, as agents name it.
const TRACT: &str = "tract";

/// 2015-01-01T00:00:00Z: ONNX did not exist before, nor did any layerlab.
const EARLIEST_S: i64 = 1_420_070_400;

/// The versions of ONNX's default operator set: README names the oldest that is read, and none is near the last.
const OPSETS: std::ops::RangeInclusive<i64> = 7..=40;

/// More threads, and higher numbers of cores, than any device of ours will have.
const MOST_CORES: u32 = 4_096;

/// The longest idle time before each inference: accelerators drop their power state long before.
const LONGEST_GAP_NS: u64 = 60_000_000_000;

/// In thousandths of a degree Celsius: what sensors in silicon can say.
const TEMPERATURES: std::ops::RangeInclusive<i64> = -40_000..=150_000;

/// In thousands of hertz: no clock of ours runs at 20 GHz.
const FASTEST_KHZ: u64 = 20_000_000;

/// Android's thermal status of a device that shuts down.
const SHUTDOWN: u8 = 6;

pub(super) fn check(subject: &Subject<'_>, findings: &mut Findings) {
    let profile = subject.profile;
    let header = &profile.header;
    findings.add(Rule::RuntimeContradiction, numerics(header));
    let mut cases = Vec::new();
    if !OPSETS.contains(&header.model.opset) {
        let (opset, first, last) = (header.model.opset, OPSETS.start(), OPSETS.end());
        cases.push(format!("`model.opset` is {opset}, not {first} to {last}"));
    }
    cases.extend(header.processors.iter().flat_map(cores));
    cases.extend(header.measurements.iter().flat_map(settings));
    cases.extend(smaller_sentinels(subject));
    let evaluations = profile.evaluations.iter();
    let provenances = evaluations.filter_map(|one| one.provenance.as_ref());
    cases.extend(provenances.chain([&header.provenance]).flat_map(past));
    cases.extend(profile.blocks.iter().filter_map(ends));
    // Layers that are wrong have been found before.
    if !findings.has_errors() {
        cases.extend(loads(subject));
    }
    findings.add(Rule::ImplausibleValue, cases);
}

/// The instants that lie more than a day after `now`.
pub(super) fn of_the_future(profile: &Profile, now: &str) -> Vec<String> {
    let Some(tomorrow) = utc_seconds(now).map(|now| now + 24 * 3600) else {
        return Vec::new();
    };
    let evaluations = profile.evaluations.iter();
    let provenances = evaluations.filter_map(|one| one.provenance.as_ref());
    let instants = provenances
        .chain([&profile.header.provenance])
        .flat_map(|one| [&one.started_at, &one.finished_at]);
    let later = instants.filter(|instant| utc_seconds(instant).is_some_and(|at| at > tomorrow));
    later
        .map(|instant| format!("the profile tells of {instant}, and now is {now}"))
        .collect()
}

/// What a processor computes in, where its runtime or its name says so.
fn numerics(header: &Header) -> Vec<String> {
    let contradicts = |processor: &&Processor| {
        let (runtime, numerics) = (processor.runtime.as_str(), processor.numerics);
        let cpu = processor.kind == ProcessorKind::Cpu;
        match runtime {
            TRACT => numerics != Numerics::F32,
            ONNX_RUNTIME if cpu => numerics != Numerics::F32,
            ONNX_RUNTIME => named(&processor.name).is_some_and(|named| named != numerics),
            _ => false,
        }
    };
    let wrong = header.processors.iter().filter(contradicts);
    wrong
        .map(|one| {
            let numerics = format!("{:?}", one.numerics).to_lowercase();
            format!(
                "`{}` is said to compute in {numerics}, which its runtime {} does not do there",
                one.name, one.runtime
            )
        })
        .collect()
}

/// The numerics that the name of an accelerator ends with, such as that of `qnn-htp-i8`.
fn named(processor: &str) -> Option<Numerics> {
    let (_, last) = processor.rsplit_once('-')?;
    match last {
        "f32" => Some(Numerics::F32),
        "f16" => Some(Numerics::F16),
        "i8" => Some(Numerics::I8),
        _ => None,
    }
}

fn cores(processor: &Processor) -> Vec<String> {
    let Processor {
        name,
        threads,
        pinned_to_cores,
        ..
    } = processor;
    let mut cases = Vec::new();
    if threads.is_some_and(|threads| threads == 0 || threads > MOST_CORES) {
        cases.push(format!(
            "`threads` of `{name}` are none, or more than {MOST_CORES}"
        ));
    }
    let Some(cores) = pinned_to_cores else {
        return cases;
    };
    let mut distinct = cores.clone();
    distinct.sort_unstable();
    distinct.dedup();
    let several = distinct.len() < cores.len() || distinct.last() >= Some(&MOST_CORES);
    if several || threads.is_some_and(|threads| threads as usize != cores.len()) {
        cases.push(format!(
            "`pinned_to_cores` of `{name}` are not one core for each of its `threads`"
        ));
    }
    cases
}

fn settings(measurement: &Measurement) -> Vec<String> {
    let name = &measurement.processor;
    let mut cases = Vec::new();
    if measurement.gap_ns.as_nanos() > LONGEST_GAP_NS {
        cases.push(format!("`gap_ns` of `{name}` is longer than a minute"));
    }
    let chooses = measurement.design.chooses_as_it_goes();
    let is_share = |target: f64| target > 0.0 && target < 1.0;
    if measurement
        .target
        .is_some_and(|target| !chooses || !is_share(target))
    {
        cases.push(format!(
            "`target` of `{name}` is no share, or of a design without one"
        ));
    }
    let no_time = |budget: crate::Nanos| budget.as_nanos() == 0;
    if measurement
        .budget_ns
        .is_some_and(|budget| !chooses || no_time(budget))
    {
        cases.push(format!(
            "`budget_ns` of `{name}` is none, or of a design without one"
        ));
    }
    cases
}

/// Sentinels that are not the longest segment, of several the first, that their processor was seen to hold: where layers are
/// timed in passes, the whole model.
fn smaller_sentinels(subject: &Subject<'_>) -> Vec<String> {
    let measurements = subject.profile.header.measurements.iter();
    let longer = measurements.filter_map(|measurement| {
        let sentinel = measurement.sentinel?;
        let place = *subject.places.get(measurement.processor.as_str())?;
        let layers = subject.profile.layers.len() as u32;
        let is_whole = (sentinel.first(), sentinel.last()) == (1, layers);
        if !measurement.design.shows_transfers() && !is_whole {
            return Some(format!(
                "the sentinel on `{}` is layers {sentinel}, and passes go over all {layers} layers",
                measurement.processor
            ));
        }
        let measured = subject.segments.range((place, Segment::single(1))..);
        let mut measured = measured.take_while(|((of, _), _)| *of == place);
        let before = |segment: Segment| {
            let key = |one: Segment| (std::cmp::Reverse(one.layers()), one);
            key(segment) < key(sentinel)
        };
        let found = measured.find(|((_, segment), _)| before(*segment))?.0.1;
        Some(format!(
            "the sentinel on `{}` is layers {sentinel}, and it holds the longer layers {found}",
            measurement.processor
        ))
    });
    longer.collect()
}

fn past(provenance: &Provenance) -> Vec<String> {
    let mut cases = Vec::new();
    let start = utc_seconds(&provenance.started_at);
    if start.is_some_and(|start| start < EARLIEST_S) {
        let start = &provenance.started_at;
        cases.push(format!(
            "`started_at` is {start}, before there was anything to measure"
        ));
    }
    // Runs that this program began are named by when.
    let named = provenance
        .run
        .split_once('-')
        .and_then(|(instant, _)| compact_seconds(instant));
    if let (Some(start), Some(named)) = (start, named)
        && named > start
    {
        cases.push(format!(
            "`started_at` is {}, before the run {} was begun",
            provenance.started_at, provenance.run
        ));
    }
    let host = &provenance.host;
    if host.logical_cores == 0 || host.logical_cores > MOST_CORES {
        cases.push(format!(
            "`logical_cores` of the host are {}",
            host.logical_cores
        ));
    }
    if host.memory_bytes < Bytes::from_bytes(1 << 20) {
        cases.push(format!(
            "`memory_bytes` of the host are {}",
            host.memory_bytes.as_bytes()
        ));
    }
    cases
}

/// The seconds of an instant without its separators, such as 20260131T235959Z.
fn compact_seconds(text: &str) -> Option<i64> {
    let is_compact = text.len() == 16 && text.is_ascii();
    let part = |from: usize, to: usize| &text[from..to];
    is_compact.then_some(())?;
    let (year, month, day) = (part(0, 4), part(4, 6), part(6, 8));
    let (hour, minute, second) = (part(9, 11), part(11, 13), part(13, 15));
    utc_seconds(&format!("{year}-{month}-{day}T{hour}:{minute}:{second}Z"))
}

/// What a device cannot be at an end of a block.
fn ends(block: &Block) -> Option<String> {
    let impossible = |end: &BlockEnd| {
        let conditions = &end.conditions;
        let mut temperatures = [
            conditions.temperature_millicelsius,
            conditions.skin_temperature_millicelsius,
            conditions.soc_temperature_millicelsius,
            conditions.battery_temperature_millicelsius,
        ]
        .into_iter()
        .flatten();
        let mut caps = conditions.frequency_caps_khz.values();
        let mut clocks = conditions.frequencies_khz.values();
        end.sentinel.as_nanos() == 0
            || conditions
                .thermal_status
                .is_some_and(|status| status > SHUTDOWN)
            || temperatures.any(|one| !TEMPERATURES.contains(&one.as_millicelsius()))
            || conditions
                .battery_percent
                .is_some_and(|percent| percent > 100)
            || caps.any(|&cap| cap == 0)
            || clocks.any(|&clock| clock > FASTEST_KHZ)
    };
    [&block.before, &block.after].into_iter().any(impossible).then(|| {
        format!(
            "block {} of order {} has a sentinel, a thermal status, a temperature, a battery, a clock cap or a clock that \
             cannot be",
            block.number, block.order
        )
    })
}

/// Loaded segments that take more memory than there is, or another amount than their layers need where that is how the
/// runtime's memory is estimated: weights once, and once each what they take and give.
fn loads(subject: &Subject<'_>) -> Vec<String> {
    let profile = subject.profile;
    let processor = |name: &str| {
        profile
            .header
            .processors
            .iter()
            .find(|one| one.name == name)
    };
    let wrong = profile.loads.iter().filter_map(|load| {
        let processor = processor(&load.processor)?;
        let layers = load.segment.first() as usize - 1..load.segment.last() as usize;
        let layers = profile.layers.get(layers)?;
        let weights: Bytes = layers.iter().map(|layer| layer.parameter_bytes).sum();
        let beside = layers
            .iter()
            .map(|layer| layer.model_input_bytes + layer.model_output_bytes)
            .sum::<Bytes>();
        let crossing = layers.first()?.input_bytes + layers.last()?.output_bytes;
        let expected = weights + crossing + beside;
        let too_much = processor.memory_bytes.is_some_and(|all| load.memory > all);
        let estimated = processor.runtime == TRACT;
        (too_much || (estimated && load.memory != expected)).then(|| {
            format!(
                "layers {} on `{}` take {} bytes according to loads.csv, which does not follow from layers.csv, or is \
                 more than there is",
                load.segment,
                load.processor,
                load.memory.as_bytes()
            )
        })
    });
    wrong.collect()
}
