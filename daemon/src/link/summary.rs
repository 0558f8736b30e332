//! A measured link in a few lines.

use std::path::Path;

use layerlab_farm::adb::Printable;
use layerlab_lab::report::MeasuredDirection;
use layerlab_profiles::link::{LinkDocument, LinkHeader, small_exchanges};
use layerlab_profiles::summary::Summary;
use serde_json::{Value, json};

/// For people.
pub(super) fn text(link: &LinkDocument, folder: &Path) -> String {
    let header = &link.header;
    let mark = match header.shape {
        Some(_) => ", simulated by layerlab's shaper",
        None => "",
    };
    let mut lines = vec![format!(
        "{} ({}{mark}): from {} to {}",
        header.name,
        header.kind,
        origin(header),
        header.server
    )];
    let rows: Vec<MeasuredDirection> = link.rows.iter().map(MeasuredDirection::from).collect();
    lines.extend(rows.iter().map(|row| format!("{}: {row}", row.direction)));
    if let Some(row) = rows.first() {
        let (echo, echoes) = (row.echo(), header.method.echoes);
        lines.push(format!("echo: {echo}, the median of {echoes}"));
    }
    lines.extend(requests(link));
    lines.push(format!("Published in {}", folder.display()));
    lines.join("\n")
}

/// Where it was measured from.
fn origin(header: &LinkHeader) -> String {
    match &header.provenance.phone {
        Some(phone) => format!("the phone {}", Printable(&phone.described.serial)),
        None => "this machine, no phone".to_owned(),
    }
}

/// What requests to run layers took, where they were timed.
fn requests(link: &LinkDocument) -> Option<String> {
    let method = link.header.method.requests.as_ref()?;
    let small = small_exchanges(&link.samples);
    let (took, computed) = (small.summary()?, Summary::of(&small.computed)?);
    Some(format!(
        "request: {}, the median of {} that had layers {} to {} of {} run on {}, of which the server computed {}",
        with_interval(&took),
        method.count,
        method.first_layer,
        method.last_layer,
        method.model,
        method.processor,
        with_interval(&computed),
    ))
}

fn with_interval(summary: &Summary) -> String {
    let between = summary.median_ci95;
    let between = between.map_or_else(String::new, |(low, high)| format!(" ({low} to {high})"));
    format!("{}{between}", summary.median)
}

/// For scripts.
pub(super) fn json(link: &LinkDocument, folder: &Path) -> Value {
    let rows: Vec<MeasuredDirection> = link.rows.iter().map(MeasuredDirection::from).collect();
    json!({
        "link": link.header.name,
        "kind": link.header.kind,
        "simulated": link.header.shape.is_some(),
        "server": link.header.server,
        "measured_from": link.header.provenance.measured_from,
        "phone": link.header.provenance.phone,
        "directions": rows,
        "requests": link.header.method.requests.as_ref().map(|method| json!({
            "method": method,
            "median_ns": small_exchanges(&link.samples).summary().map(|it| it.median),
            "median_ci95_ns": small_exchanges(&link.samples).summary().and_then(|it| it.median_ci95),
        })),
        "folder": folder,
    })
}
