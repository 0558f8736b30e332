//! A measured link in a few lines.

use std::path::Path;

use layerlab_farm::adb::Printable;
use layerlab_profiles::link::{LinkDocument, LinkHeader, LinkRow, small_exchanges};
use layerlab_profiles::summary::{Estimate, Summary};
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
    lines.extend(link.rows.iter().map(direction));
    if let Some(row) = link.rows.first() {
        let echo = estimate(row.echo);
        lines.push(format!(
            "echo: {echo}, the median of {}",
            header.method.echoes
        ));
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

fn direction(row: &LinkRow) -> String {
    let fit = row.fit;
    let megabits = |bps: u64| format!("{:.4}", bps as f64 / 1e6);
    let between = fit
        .bandwidth_ci95_bps
        .map_or_else(String::new, |(low, high)| {
            format!(" ({} to {})", megabits(low), megabits(high))
        });
    let unsteady = if fit.is_unsteady() { ", unsteady" } else { "" };
    format!(
        "{}: {} Mbit/s{between}, round trip {}, residual {} %{unsteady}",
        row.direction,
        megabits(fit.bandwidth_bps),
        estimate(fit.round_trip),
        fit.residual_percent,
    )
}

/// What requests to run layers took, where they were timed.
fn requests(link: &LinkDocument) -> Option<String> {
    let method = link.header.method.requests.as_ref()?;
    let small = small_exchanges(&link.samples);
    let (took, computed) = (small.summary()?, Summary::of(&small.computed)?);
    Some(format!(
        "request: {}, the median of {} that had layers {} to {} of {} run on {}, of which the server computed {}",
        estimate(median(&took)),
        method.count,
        method.first_layer,
        method.last_layer,
        method.model,
        method.processor,
        estimate(median(&computed)),
    ))
}

fn median(summary: &Summary) -> Estimate {
    let ends = summary.median_ci95;
    Estimate {
        value: summary.median.signed(),
        ci95: ends.map(|(low, high)| (low.signed(), high.signed())),
    }
}

fn estimate(estimate: Estimate) -> String {
    let between = estimate.ci95;
    let between = between.map_or_else(String::new, |(low, high)| format!(" ({low} to {high})"));
    format!("{}{between}", estimate.value)
}

/// For scripts.
pub(super) fn json(link: &LinkDocument, folder: &Path) -> Value {
    let ends = |estimate: Estimate| estimate.ci95.map(|(low, high)| [low, high]);
    let rows: Vec<Value> = link
        .rows
        .iter()
        .map(|row| {
            json!({
                "direction": row.direction,
                "bandwidth_bps": row.fit.bandwidth_bps,
                "bandwidth_ci95_bps": row.fit.bandwidth_ci95_bps,
                "rtt_ns": row.fit.round_trip.value,
                "rtt_ci95_ns": ends(row.fit.round_trip),
                "echo_ns": row.echo.value,
                "echo_ci95_ns": ends(row.echo),
                "residual_percent": row.fit.residual_percent,
                "unsteady": row.fit.is_unsteady(),
                "samples": row.samples,
            })
        })
        .collect();
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
