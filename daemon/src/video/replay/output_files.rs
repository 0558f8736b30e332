//! What became of each frame as CSV, and what policies reached as a picture.

use std::path::Path;

use anyhow::anyhow;
use layerlab_campaign::plot::axis::Unit;
use layerlab_planners::video::fastva::FrameChoice;
use layerlab_profiles::{Bytes, Nanos};
use serde::Serialize;

use super::worlds::Worlds;
use super::{ReplayArgs, Replayed, Setting};
use crate::exit::{Code, ExitWith, Failure};
use crate::sweep_plot::video::{self, PolicyLine};

/// What became of one frame in one replay.
#[derive(Serialize)]
struct FrameCsv<'a> {
    policy: &'a str,
    bandwidth_bps: u64,
    round_trip_ns: Nanos,
    frames_per_second: f64,
    alpha: Option<f64>,
    frame: usize,
    arrival_ns: Nanos,
    by: &'static str,
    model: Option<&'a str>,
    resolution: Option<usize>,
    bytes: Option<Bytes>,
    delay_ns: Option<Nanos>,
    accuracy: f64,
    right: bool,
    origin: &'static str,
}

pub(super) fn write_csv(file: &Path, all: &[Replayed]) -> Result<(), Failure> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for replayed in all {
        let (world, setting) = (&replayed.world, replayed.setting);
        let frames = replayed.results().into_iter().flat_map(|it| it.frames());
        for (place, frame) in frames.enumerate() {
            let (by, model, resolution) = match frame.by {
                FrameChoice::Local { model } => {
                    let model = world.models.local().get(model);
                    ("phone", model.map(|it| it.name.as_str()), None)
                }
                FrameChoice::Remote { model, resolution } => {
                    let model = world.models.remote().get(model);
                    ("server", model.map(|it| it.name.as_str()), Some(resolution))
                }
                FrameChoice::Skipped => ("nothing", None, None),
            };
            let row = FrameCsv {
                policy: replayed.policy.name(),
                bandwidth_bps: setting.bandwidth_bps,
                round_trip_ns: setting.round_trip.into(),
                frames_per_second: setting.frames_per_second,
                alpha: setting.alpha,
                frame: place,
                arrival_ns: world.stream.arrival(place),
                by,
                model,
                resolution,
                bytes: resolution.and_then(|it| world.frames[place].sizes.get(it).copied()),
                delay_ns: frame.delay,
                accuracy: frame.accuracy,
                right: frame.right,
                origin: "simulated",
            };
            writer.serialize(row).exit_with(Code::Internal)?;
        }
    }
    let bytes = writer.into_inner().exit_with(Code::Internal)?;
    write(file, &bytes)
}

fn write(file: &Path, bytes: &[u8]) -> Result<(), Failure> {
    std::fs::write(file, bytes)
        .map_err(|error| anyhow!("cannot write {}: {error}", file.display()))
        .exit_with(Code::Output)
}

/// What has several values: its name, what it counts, and its value in a setting.
type Varied = (&'static str, Unit, fn(&Setting) -> f64);

/// What is drawn over.
///
/// # Errors
/// When nothing has several values, or more than one thing.
pub(super) fn varied(args: &ReplayArgs) -> anyhow::Result<Varied> {
    let all: [(usize, Varied); 4] = [
        (
            args.bandwidth.len(),
            ("bandwidth", Unit::Bandwidth, |it| it.bandwidth_bps as f64),
        ),
        (
            args.fps.len(),
            ("frames per second", Unit::Fraction, |it| {
                it.frames_per_second
            }),
        ),
        (
            args.round_trip.len(),
            ("round trip", Unit::Time, |it| {
                it.round_trip.as_nanos() as f64
            }),
        ),
        (
            args.alpha.len(),
            ("alpha", Unit::Fraction, |it| it.alpha.unwrap_or_default()),
        ),
    ];
    let mut several = all.into_iter().filter(|(values, _)| *values > 1);
    match (several.next(), several.next()) {
        (Some((_, varied)), None) => Ok(varied),
        _ => Err(anyhow!(
            "a plot is drawn over one thing: give several values of one of --bandwidth, --fps, --round-trip and --alpha"
        )),
    }
}

pub(super) fn write_plot(
    file: &Path,
    args: &ReplayArgs,
    worlds: &Worlds,
    all: &[Replayed],
) -> Result<(), Failure> {
    let (across, unit, value) = varied(args).exit_with(Code::Usage)?;
    let by_utility = !args.alpha.is_empty();
    let lines: Vec<PolicyLine> = args
        .policies
        .iter()
        .map(|&policy| {
            let own = all.iter().filter(|one| one.policy == policy);
            let mut points: Vec<(f64, Option<f64>)> = own
                .map(|one| {
                    let reached = match by_utility {
                        true => one.utility(),
                        false => one.accuracy(),
                    };
                    (value(&one.setting), reached)
                })
                .collect();
            points.sort_by(|one, other| one.0.total_cmp(&other.0));
            PolicyLine {
                name: policy.name().to_owned(),
                points,
            }
        })
        .collect();
    let up = match by_utility {
        true => ("utility", Unit::Fraction),
        false => ("accuracy", Unit::Fraction),
    };
    let note = format!(
        "Replayed by the simulator: {} frames, each to be answered within {}.",
        args.frames, args.decision.deadline
    );
    let svg = video::svg(&worlds.title(), (across, unit), up, &lines, &note);
    let svg = svg.map_err(anyhow::Error::msg).exit_with(Code::Internal)?;
    write(file, svg.as_bytes())
}
