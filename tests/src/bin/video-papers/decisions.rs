//! How long one decision takes at the papers' sizes, on this machine.

use std::hint::black_box;
use std::time::Instant;

use layerlab_planners::video::Uplink;
use layerlab_planners::video::cbo::{AnsweredFrame, EdgeConditions, SendingOrder, plan_offloads};
use layerlab_planners::video::fastva::{FastVaProblem, VideoBacklog, max_accuracy, max_utility};
use layerlab_planners::video::papers::{self, PaperSettings};
use layerlab_planners::video::replay::ReplayWorld;
use layerlab_profiles::Nanos;
use layerlab_tests::proof::figure::Figure;

/// Decisions about as many different frames.
const DECISIONS: usize = 5_000;

/// Frames that are due and not sent at 30 frames per second and 200 ms.
const BACKLOG: usize = 7;

const MBPS: [u64; 3] = [1, 3, 10];

fn figure(of: &str, rows: Vec<(String, Vec<f64>)>) -> Figure {
    let mut slow = Vec::new();
    let cells = rows.into_iter().map(|(name, mut micros)| {
        micros.sort_by(f64::total_cmp);
        let at = |share: f64| micros[((micros.len() - 1) as f64 * share) as usize];
        let (median, p99) = (at(0.5), at(0.99));
        if median > 100.0 || p99 > 1_000.0 {
            slow.push(name.clone());
        }
        vec![name, format!("{median:.1}"), format!("{p99:.1}")]
    });
    let cells: Vec<Vec<String>> = cells.collect();
    let found = match slow.is_empty() {
        true => String::new(),
        false => format!("not {}", slow.join(", ")),
    };
    Figure::table(
        &format!("What a decision of {of} takes"),
        &["", "median, µs", "99 of 100 within, µs"],
        cells,
    )
    .note(format!(
        "Of {DECISIONS} decisions each about other frames, on one core of this machine, which is no phone's; the development build."
    ))
    .claim(
        "less than 1 ms (to be at most 100 µs in the median)",
        slow.is_empty(),
        found,
    )
}

fn micros(decide: impl FnOnce()) -> f64 {
    let began = Instant::now();
    decide();
    began.elapsed().as_secs_f64() * 1e6
}

fn uplink(world: &ReplayWorld, mbps: u64) -> Uplink {
    Uplink::new(mbps * 1_000_000, world.round_trip)
}

pub(crate) fn cbo() -> Figure {
    let settings = PaperSettings::usual(0, DECISIONS + BACKLOG, 1);
    let world = papers::cbo_world(&settings).expect("sensible");
    let server = &world.models.remote()[0];
    let answered: Vec<AnsweredFrame> = world
        .frames
        .iter()
        .enumerate()
        .map(|(place, frame)| AnsweredFrame {
            arrival: world.stream.arrival(place),
            confidence: frame.local[0],
            sizes: frame.sizes.clone(),
            server: None,
        })
        .collect();
    let rows = MBPS.into_iter().map(|mbps| {
        let conditions = EdgeConditions::new(
            uplink(&world, mbps),
            server.time,
            world.stream.within(),
            server.accuracies.clone(),
        );
        let conditions = conditions.expect("sensible");
        let times = answered.windows(BACKLOG).map(|frames| {
            let now: Nanos = frames[0].arrival;
            micros(|| {
                let order = SendingOrder::EarliestDeadline;
                black_box(plan_offloads(black_box(&conditions), frames, now, order))
                    .expect("sensible");
            })
        });
        (
            format!("CBO, {BACKLOG} frames, {mbps} Mbit/s"),
            times.collect(),
        )
    });
    figure("CBO", rows.collect())
}

pub(crate) fn fastva() -> Figure {
    let mut rows = Vec::new();
    for fps in [30.0, 50.0] {
        let settings = PaperSettings {
            frames_per_second: fps,
            ..PaperSettings::usual(0, DECISIONS, 1)
        };
        let world = papers::fastva_world(&settings).expect("sensible");
        for mbps in MBPS {
            let link = uplink(&world, mbps);
            let problem = FastVaProblem::new(world.stream, link, world.models.clone());
            let idle = VideoBacklog::default();
            let sizes = || world.frames.iter().map(|frame| &frame.sizes);
            let accuracy = sizes().map(|sizes| {
                micros(|| {
                    black_box(max_accuracy(black_box(&problem), idle, sizes)).expect("sensible");
                })
            });
            rows.push((
                format!("Max-Accuracy, {fps} fps, {mbps} Mbit/s"),
                accuracy.collect(),
            ));
            let utility = sizes().map(|sizes| {
                micros(|| {
                    black_box(max_utility(black_box(&problem), idle, sizes, 50.0))
                        .expect("sensible");
                })
            });
            rows.push((
                format!("Max-Utility, {fps} fps, {mbps} Mbit/s"),
                utility.collect(),
            ));
        }
    }
    figure("FastVA", rows)
}
