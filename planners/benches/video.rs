//! What one decision about a frame costs, at the papers' sizes: 30 frames per second, 200 ms, five resolutions. Simulated
//! frames.
// Criterion's macro makes items that have no documentation.
#![allow(missing_docs)]

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use layerlab_planners::video::Uplink;
use layerlab_planners::video::cbo::{AnsweredFrame, EdgeConditions, SendingOrder, plan_offloads};
use layerlab_planners::video::fastva::{FastVaProblem, VideoBacklog, max_accuracy, max_utility};
use layerlab_planners::video::replay::ReplayWorld;
use layerlab_profiles::Nanos;
use simulated::{cbo_world, fastva_world};

#[path = "../tests/video/simulated.rs"]
mod simulated;

/// 3 Mbit/s.
const BANDWIDTH: u64 = 3_000_000;

fn uplink(world: &ReplayWorld) -> Uplink {
    Uplink::new(BANDWIDTH, world.round_trip)
}

fn cbo(criterion: &mut Criterion) {
    let world = cbo_world(1, 30, BANDWIDTH, 7);
    let server = &world.models.remote()[0];
    let accuracies = server.accuracies.clone();
    let within = world.stream.within();
    let conditions = EdgeConditions::new(uplink(&world), server.time, within, accuracies);
    let conditions = conditions.expect("sensible");
    let frames = world.frames.iter().enumerate();
    let frames: Vec<AnsweredFrame> = frames
        .map(|(place, frame)| AnsweredFrame {
            arrival: world.stream.arrival(place),
            confidence: frame.local[0],
            sizes: frame.sizes.clone(),
            server: None,
        })
        .collect();
    for order in [SendingOrder::Paper, SendingOrder::EarliestDeadline] {
        criterion.bench_function(&format!("CBO, 7 frames, {order:?}"), |bencher| {
            bencher.iter(|| plan_offloads(black_box(&conditions), &frames, Nanos::ZERO, order));
        });
    }
}

fn fastva(criterion: &mut Criterion) {
    for fps in [30, 50] {
        let world = fastva_world(1, fps, BANDWIDTH, 1);
        let problem = FastVaProblem::new(world.stream, uplink(&world), world.models.clone());
        let sizes = &world.frames[0].sizes;
        let idle = VideoBacklog::default();
        criterion.bench_function(&format!("Max-Accuracy, {fps} fps"), |bencher| {
            bencher.iter(|| max_accuracy(black_box(&problem), idle, sizes));
        });
        criterion.bench_function(&format!("Max-Utility, {fps} fps"), |bencher| {
            bencher.iter(|| max_utility(black_box(&problem), idle, sizes, 50.0));
        });
    }
}

criterion_group!(benches, cbo, fastva);
criterion_main!(benches);
