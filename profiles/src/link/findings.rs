//! Is this measured link fit to publish? What follows from its samples is calculated again.

use std::collections::BTreeSet;
use std::path::Path;

use super::{
    Exchange, LINK_FORMAT, LINK_VERSION, LinkDirection, LinkDocument, LinkKind, LinkRow,
    MeasuredFrom, link_name,
};
use crate::folder::{FolderError, FolderFinding};
use crate::units::Nanos;

/// Numbers that were calculated twice may differ by this share: another machine's logarithms differ in the last bit.
const SAME: f64 = 1e-6;

/// The clocks of two machines may differ by this share of a time.
const CLOCKS_DIFFER: f64 = 1e-3;

/// Everything doubtful about a measured link, errors first.
pub fn check_link(document: &LinkDocument) -> Vec<FolderFinding> {
    let mut findings = Vec::new();
    findings.extend(header(document).into_iter().map(FolderFinding::error));
    findings.extend(samples(document).into_iter().map(FolderFinding::error));
    findings.extend(rows(document).map(FolderFinding::error));
    findings.extend(traces(document).map(FolderFinding::error));
    findings.extend(doubts(document));
    findings
}

/// Reads the measured link in `dir` and checks it.
///
/// # Errors
/// When it cannot be read.
pub fn check_link_directory(dir: &Path) -> Result<(LinkDocument, Vec<FolderFinding>), FolderError> {
    let (document, contradictions) = LinkDocument::read_with_contradictions(dir)?;
    let mut findings: Vec<FolderFinding> = contradictions
        .into_iter()
        .map(FolderFinding::error)
        .collect();
    findings.extend(check_link(&document));
    Ok((document, findings))
}

fn header(document: &LinkDocument) -> Vec<String> {
    let header = &document.header;
    let mut wrong = Vec::new();
    if header.format != LINK_FORMAT || header.version != LINK_VERSION {
        wrong.push(format!(
            "it says that it is {} {}",
            header.format, header.version
        ));
    }
    if let Err(bad) = link_name(&header.name) {
        wrong.push(bad.to_string());
    }
    if (header.kind == LinkKind::Shaped) != header.shape.is_some() {
        wrong.push(format!(
            "its kind is {}, although it was {}shaped",
            header.kind,
            if header.shape.is_some() { "" } else { "not " }
        ));
    }
    if header.carrier == LinkKind::Shaped {
        wrong.push("what carries a shaped link is not a shaped link".to_owned());
    }
    if header.shape.is_none() && header.carrier != header.kind {
        wrong.push(format!(
            "its kind is {}, but it is carried by {}",
            header.kind, header.carrier
        ));
    }
    if let Some(requests) = &header.method.requests {
        let largest = requests.request_bytes.max(requests.answer_bytes);
        if header
            .method
            .transfer_bytes
            .iter()
            .any(|&bytes| bytes <= largest)
        {
            wrong.push("its requests have no fewer bytes than its transfers".to_owned());
        }
        if requests.first_layer == 0 || requests.last_layer < requests.first_layer {
            wrong.push(format!(
                "its requests are of layers {} to {}",
                requests.first_layer, requests.last_layer
            ));
        }
    }
    let provenance = &header.provenance;
    match (provenance.measured_from, &provenance.phone) {
        (MeasuredFrom::Host, None) => {}
        (MeasuredFrom::Host, Some(_)) => {
            wrong.push("it names a phone, although none measured it".to_owned());
        }
        (MeasuredFrom::Phone, None) => {
            wrong.push("a phone measured it, but it does not say which".to_owned());
        }
        (MeasuredFrom::Phone, Some(phone)) => {
            let other = phone.may_measure(header.carrier).err();
            let sentence = |other| {
                format!(
                    "what carries it is said to be {}, but {other}",
                    header.carrier
                )
            };
            wrong.extend(other.map(sentence));
        }
    }
    wrong
}

/// The samples are those of the method, each once, in order, and the server's times fit into them.
fn samples(document: &LinkDocument) -> Vec<String> {
    let method = &document.header.method;
    let mut wrong = Vec::new();
    let indices: BTreeSet<u32> = document.samples.iter().map(|sample| sample.index).collect();
    let count = document.samples.len();
    let last = indices.last().map_or(0, |&last| last as usize + 1);
    if indices.len() != count || last != count {
        wrong.push(format!(
            "{count} samples have {} different numbers up to {last}: each should have one of its own, counted from 0",
            indices.len()
        ));
    }
    let planned = |exchange: Exchange, bytes: u64| {
        let of_this = document
            .samples
            .iter()
            .filter(|it| it.exchange == exchange && it.bytes.as_bytes() == bytes);
        of_this.count() as u64
    };
    let mut expected = vec![(Exchange::Echo, method.echo_bytes, method.echoes)];
    let requests = method.requests.iter();
    expected.extend(requests.map(|it| (Exchange::Request, it.request_bytes, it.count)));
    for direction in LinkDirection::ALL {
        let sizes = method.transfer_bytes.iter();
        expected.extend(sizes.map(|&size| (direction.into(), size, method.repeats)));
    }
    let all: u64 = expected.iter().map(|&(_, _, count)| u64::from(count)).sum();
    let as_planned = expected
        .iter()
        .all(|&(exchange, size, count)| planned(exchange, size.as_bytes()) == u64::from(count));
    if !as_planned || all != count as u64 {
        wrong.push(format!(
            "link_samples.csv has {count} samples that are not the {all} of the method in link.json"
        ));
    }
    let ordered = document
        .samples
        .windows(2)
        .all(|pair| pair[0].started + pair[0].duration <= pair[1].started);
    if !ordered {
        wrong.push("some sample began before the one above it had ended".to_owned());
    }
    let connections = document.header.connections;
    if connections < method.connections {
        wrong.push(format!(
            "it says that {connections} connections were made, but its method has {}",
            method.connections
        ));
    }
    if document
        .samples
        .iter()
        .any(|it| it.connection >= connections)
    {
        wrong.push(format!(
            "some sample was timed on a connection that is none of the {connections}"
        ));
    }
    let too_long = document.samples.iter().find(|sample| {
        let duration = sample.duration.as_nanos() as f64;
        // The server's clock may be coarse: a microsecond for each of its four times.
        sample.server.total().as_nanos() as f64 > duration * (1.0 + CLOCKS_DIFFER) + 4e3
    });
    if let Some(sample) = too_long {
        wrong.push(format!(
            "the server says that sample {} took it {}, but all of it took {}",
            sample.index,
            sample.server.total(),
            sample.duration
        ));
    }
    wrong
}

/// The rows are what the samples say.
fn rows(document: &LinkDocument) -> Option<String> {
    let again = match LinkRow::all(&document.samples, document.header.method.connections) {
        Ok(again) => again,
        Err(error) => return Some(format!("its samples give no numbers: {error}")),
    };
    let same = again.len() == document.rows.len()
        && again
            .iter()
            .zip(&document.rows)
            .all(|(one, other)| is_same(one, other));
    (!same).then(|| "links.csv is not what follows from link_samples.csv".to_owned())
}

fn is_same(one: &LinkRow, other: &LinkRow) -> bool {
    let near =
        |one: f64, other: f64| (one - other).abs() <= SAME * one.abs().max(other.abs()) + 1.0;
    let numbers = |row: &LinkRow| {
        let fit = row.fit;
        let mut numbers = vec![fit.bandwidth_bps as f64, fit.residual_percent * 100.0];
        numbers.extend(fit.bandwidth_ci95_bps.map(|(low, _)| low as f64));
        numbers.extend(fit.bandwidth_ci95_bps.map(|(_, high)| high as f64));
        for estimate in [fit.round_trip, row.echo] {
            numbers.push(estimate.value.as_nanos() as f64);
            numbers.extend(estimate.ci95.map(|(low, _)| low.as_nanos() as f64));
            numbers.extend(estimate.ci95.map(|(_, high)| high.as_nanos() as f64));
        }
        numbers
    };
    let (left, right) = (numbers(one), numbers(other));
    one.direction == other.direction
        && one.samples == other.samples
        && left.len() == right.len()
        && left
            .iter()
            .zip(&right)
            .all(|(&one, &other)| near(one, other))
}

/// Each direction's intervals follow one another without gaps.
fn traces(document: &LinkDocument) -> Option<String> {
    LinkDirection::ALL.into_iter().find_map(|direction| {
        let mut due = Nanos::ZERO;
        for one in document
            .traces
            .iter()
            .filter(|it| it.direction == direction)
        {
            if one.start != due || one.interval == Nanos::ZERO {
                return Some(format!(
                    "the intervals of the {direction} in link_traces.csv do not follow one another"
                ));
            }
            due = one.start + one.interval;
        }
        None
    })
}

fn doubts(document: &LinkDocument) -> Vec<FolderFinding> {
    let mut doubts = Vec::new();
    for row in &document.rows {
        if row.fit.is_unsteady() {
            doubts.push(FolderFinding::warning(
                format!(
                    "the {} is unsteady: times differ from bandwidth and round trip by {} %",
                    row.direction, row.fit.residual_percent
                ),
                "measure again when the link is quieter, or plan with a trace",
            ));
        }
        if row.fit.bandwidth_ci95_bps.is_none() {
            doubts.push(FolderFinding::warning(
                format!("the bandwidth of the {} has no interval", row.direction),
                "measure with more --repeats",
            ));
        }
    }
    let planned = document.header.method.connections;
    let lost = document.header.connections.saturating_sub(planned);
    if lost > 0 {
        doubts.push(FolderFinding::warning(
            match lost {
                1 => "a connection was lost".to_owned(),
                more => format!("connections were lost {more} times"),
            },
            "see what cuts it, and measure again",
        ));
    }
    doubts
}
