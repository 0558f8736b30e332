//! `layerlab plan edge sweep`: where layers run, over the bandwidth of the link, as CSV and as a picture.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::anyhow;
use layerlab_campaign::bits_per_second;
use layerlab_campaign::plot::title_mark;
use layerlab_planners::edge::{
    Link, MeasuredNetwork, Power, Quantity, RadioPower, Side, SplitAlgorithm, SplitGoal, SplitPlan,
    Wait,
};
use layerlab_profiles::Nanos;
use layerlab_profiles::document::Profile;
use serde::Serialize;

use super::accuracy::{AccuracyArgs, AccuracyColumns, RequiredAccuracy};
use super::packing::packed_by;
use super::planner::{Answer, Planner};
use super::{BASELINES, Sides, stretches};
use crate::exit::{Code, ExitWith, Failure};
use crate::output;
use crate::sweep_plot::regions::{self, Region};

#[derive(clap::Args)]
pub(super) struct SweepArgs {
    #[command(flatten)]
    sides: Sides,
    /// The round trip of the links, such as 75ms
    #[arg(long, value_name = "DURATION", default_value = "20ms")]
    round_trip: humantime::Duration,
    /// The lowest bandwidth, each way
    #[arg(long, value_name = "BANDWIDTH", default_value = "100kbit", value_parser = bandwidth)]
    from: u64,
    /// The highest
    #[arg(long, value_name = "BANDWIDTH", default_value = "1gbit", value_parser = bandwidth)]
    to: u64,
    /// How many bandwidths, each as many times the one before
    #[arg(long, value_name = "COUNT", default_value_t = 41, value_parser = clap::value_parser!(u32).range(2..=1000))]
    steps: u32,
    #[command(flatten)]
    accuracy: AccuracyArgs,
    /// Draw the sweep into this SVG file, too
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
}

fn bandwidth(text: &str) -> Result<u64, String> {
    bits_per_second(text).ok_or_else(|| {
        "a bandwidth is from 64kbit to 1gbit: write a number and kbit, mbit or gbit, such as 5mbit"
            .to_owned()
    })
}

/// One bandwidth of the sweep.
#[derive(Serialize)]
struct Row<'a> {
    model: &'a str,
    phone: &'a str,
    server: &'a str,
    simulated: bool,
    bandwidth_bps: u64,
    round_trip_ns: Nanos,
    region: &'static str,
    layers: String,
    packed_by: String,
    latency_ns: Nanos,
    phone_ns: Nanos,
    upload_ns: Nanos,
    server_ns: Nanos,
    download_ns: Nanos,
    phone_only_latency_ns: Option<Nanos>,
    server_only_latency_ns: Option<Nanos>,
    neurosurgeon_latency_ns: Option<Nanos>,
}

pub(super) fn run(args: &SweepArgs) -> Result<(), Failure> {
    if args.from >= args.to {
        let error = anyhow!("--from is not below --to; give the lowest bandwidth and the highest");
        return Err(Failure::new(Code::Usage, error));
    }
    let (phone, server) = args.sides.read()?;
    let required = args.accuracy.learn(&args.sides, &phone, &server)?;
    let packings = args.sides.packing.read()?;
    let network = (args.sides).network(&phone, &server, required.as_ref(), packings.as_ref())?;
    let limited = required.as_ref().map(RequiredAccuracy::limit).transpose()?;
    let mut rows = Vec::new();
    let mut drawn = Vec::new();
    for bandwidth_bps in bandwidths(args.from, args.to, args.steps) {
        let link = link(bandwidth_bps, args.round_trip.into());
        let planner = Planner::new(&network, &link, limited.as_ref())?;
        let joint = planner.answer(SplitGoal::FASTEST, SplitAlgorithm::Joint)?;
        let joint = joint.map_err(|why| Failure::new(Code::NoPlan, anyhow!(why)))?;
        let mut others = [None; BASELINES.len()];
        for (latency, algorithm) in others.iter_mut().zip(BASELINES) {
            let answer = planner.least(Quantity::Latency, algorithm)?;
            *latency = answer.map(|answer| answer.plan.cost().latency);
        }
        let [alone, there, neurosurgeon] = others;
        let Answer {
            plan: joint,
            network: placed,
            accurate,
        } = joint;
        let region = region(&joint);
        drawn.push(regions::Planned {
            bandwidth_bps,
            region,
            latencies_ns: [Some(joint.cost().latency), alone, there]
                .map(|latency| latency.map(Nanos::as_nanos)),
        });
        let shares = joint.shares();
        let row = Row {
            model: &phone.header.model.name,
            phone: &phone.header.device.name,
            server: &server.header.device.name,
            simulated: is_simulated(&phone, &server),
            bandwidth_bps,
            round_trip_ns: Duration::from(args.round_trip).into(),
            region: region.name(),
            layers: layers(&placed, &joint),
            packed_by: packed_by(joint.transfers()),
            latency_ns: joint.cost().latency,
            phone_ns: shares.phone,
            upload_ns: shares.upload,
            server_ns: shares.server,
            download_ns: shares.download,
            phone_only_latency_ns: alone,
            server_only_latency_ns: there,
            neurosurgeon_latency_ns: neurosurgeon,
        };
        rows.push((row, accurate.as_ref().map(AccuracyColumns::of)));
    }
    if let Some(file) = &args.plot {
        let mark = title_mark(
            is_simulated(&phone, &server),
            phone.header.emulated || server.header.emulated,
        );
        let title = format!(
            "{} on {} beside {}{mark}",
            phone.header.model.name, phone.header.device.name, server.header.device.name
        );
        let svg = regions::svg(&title, &drawn)
            .map_err(anyhow::Error::msg)
            .exit_with(Code::Internal)?;
        std::fs::write(file, svg)
            .map_err(|error| anyhow!("cannot write {}: {error}", file.display()))
            .exit_with(Code::Output)?;
    }
    output::print(csv(&rows).exit_with(Code::Internal)?.trim_end())
}

fn is_simulated(phone: &Profile, server: &Profile) -> bool {
    phone.header.simulated || server.header.simulated
}

/// Bandwidths from the lowest to the highest, each as many times the one before.
fn bandwidths(from: u64, to: u64, steps: u32) -> impl Iterator<Item = u64> {
    let last = f64::from(steps - 1);
    let ratio = to as f64 / from as f64;
    (0..steps).map(move |step| (from as f64 * ratio.powf(f64::from(step) / last)).round() as u64)
}

/// A link of so much each way, of which each transfer of a request waits for half of the round trip.
fn link(bandwidth_bps: u64, round_trip: Duration) -> Link {
    Link {
        upload_bps: bandwidth_bps,
        download_bps: bandwidth_bps,
        upload_wait: Wait::always((round_trip / 2).into()),
        download_wait: Wait::always((round_trip - round_trip / 2).into()),
        radio: RadioPower {
            upload_microwatts_per_mbps: 0,
            download_microwatts_per_mbps: 0,
            base: Power::ZERO,
        },
    }
}

fn region(plan: &SplitPlan) -> Region {
    match plan.pattern()[..] {
        [Side::Phone] => Region::Phone,
        [Side::Server] => Region::Server,
        _ => Region::Split,
    }
}

/// What runs where: `1..=8 phone cpu; 9..=11 server cpu`.
fn layers(network: &MeasuredNetwork, plan: &SplitPlan) -> String {
    let parts = stretches(network, plan).into_iter();
    let parts = parts.map(|it| format!("{} {} {}", it.segment, it.side, it.processor));
    parts.collect::<Vec<_>>().join("; ")
}

/// The rows, all of them with the columns of accuracy or none.
fn csv(rows: &[(Row<'_>, Option<AccuracyColumns>)]) -> anyhow::Result<String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for (row, accuracy) in rows {
        match accuracy {
            Some(accuracy) => writer.serialize((row, accuracy))?,
            None => writer.serialize(row)?,
        }
    }
    Ok(String::from_utf8(writer.into_inner()?)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bandwidths_are_as_many_times_one_another_from_end_to_end() {
        let found: Vec<u64> = bandwidths(100_000, 1_000_000_000, 5).collect();
        let expected = [100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000];
        assert_eq!(found, expected);
        let two: Vec<u64> = bandwidths(64_000, 65_000, 2).collect();
        assert_eq!(two, [64_000, 65_000]);
    }

    #[test]
    fn both_ways_of_a_request_wait_for_one_round_trip() {
        let link = link(1, Duration::from_nanos(7));
        let waits = [link.upload_wait, link.download_wait]
            .map(|wait| wait.of(layerlab_profiles::Bytes::ZERO));
        assert_eq!(waits[0] + waits[1], Nanos::from_nanos(7));
    }
}
