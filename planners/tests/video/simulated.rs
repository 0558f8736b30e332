//! Simulated videos at the papers' sizes: models as in their tables, frames that are made up.

use layerlab_planners::video::VideoStream;
use layerlab_planners::video::fastva::{LocalModel, RemoteModel, ServerMode, VideoModels};
use layerlab_planners::video::replay::{ReplayBandwidth, ReplayFrame, ReplayWorld};
use layerlab_profiles::{Bytes, Nanos};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// The sides of the papers' resolutions, in pixels.
pub(crate) const SIDES: [u64; 5] = [45, 90, 134, 179, 224];

/// How right a model of these shares is in each resolution: simulated after the shape of the papers' curves (fastva Figure 4,
/// cbo Figure 10), whose end is `full`.
fn by_resolution(full: f64) -> Vec<f64> {
    [0.3, 0.6, 0.8, 0.93, 1.0]
        .map(|share| share * full)
        .to_vec()
}

fn local(name: &str, millis: u64, accuracy: f64) -> LocalModel {
    LocalModel {
        name: name.to_owned(),
        time: Nanos::from_millis(millis),
        accuracy,
    }
}

fn remote(name: &str, millis: u64, accuracy: f64) -> RemoteModel {
    RemoteModel {
        name: name.to_owned(),
        time: Nanos::from_millis(millis),
        accuracies: by_resolution(accuracy),
    }
}

/// fastva Table II.
pub(crate) fn table_2() -> VideoModels {
    let local = vec![local("ResNet", 52, 0.52), local("SqueezeNet", 17, 0.41)];
    let remote = vec![remote("ResNet", 69, 0.67), remote("SqueezeNet", 9, 0.51)];
    VideoModels::new(local, remote).expect("sensible")
}

/// cbo Table III: AlexNet on the NPU, ResNet-152 on the server.
pub(crate) fn table_3() -> VideoModels {
    let local = vec![local("AlexNet", 20, 0.45)];
    VideoModels::new(local, vec![remote("ResNet-152", 37, 0.81)]).expect("sensible")
}

/// Frames per second, each to be answered within the papers' 200 ms.
pub(crate) fn stream(fps: u64) -> VideoStream {
    let interval = Nanos::from_nanos(1_000_000_000 / fps);
    VideoStream::new(interval, Nanos::from_millis(200)).expect("sensible")
}

/// The bytes of a lossless frame in each resolution: 1.2 to 2 for a pixel, as PNG takes for photographs.
fn sizes(random: &mut ChaCha8Rng) -> Vec<Bytes> {
    let bytes_per_pixel: f64 = random.random_range(1.2..2.0);
    let bytes = |side: u64| Bytes::from_bytes((bytes_per_pixel * (side * side) as f64) as u64);
    SIDES.map(bytes).to_vec()
}

/// A world of a link of so many bits per second and 100 ms.
fn world(
    models: VideoModels,
    fps: u64,
    bandwidth_bps: u64,
    frames: Vec<ReplayFrame>,
) -> ReplayWorld {
    ReplayWorld {
        stream: stream(fps),
        frames,
        bandwidth: ReplayBandwidth::Constant(bandwidth_bps),
        round_trip: Nanos::from_millis(100),
        models,
        server: ServerMode::Pipelined,
        calibration: Nanos::ZERO,
        seed: 7,
    }
}

/// A video for FastVA: of a frame no more is known than the models' mean accuracies.
pub(crate) fn fastva_world(seed: u64, fps: u64, bandwidth_bps: u64, frames: usize) -> ReplayWorld {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let models = table_2();
    let local: Vec<f64> = models.local().iter().map(|model| model.accuracy).collect();
    let frame = |_| ReplayFrame {
        sizes: sizes(&mut random),
        local: local.clone(),
        uncalibrated: local[0],
    };
    world(models, fps, bandwidth_bps, (0..frames).map(frame).collect())
}

/// A video for CBO: the NPU's answers are right with probabilities from 0.05 to 0.95, and the confidences before calibration
/// say little of it.
pub(crate) fn cbo_world(seed: u64, fps: u64, bandwidth_bps: u64, frames: usize) -> ReplayWorld {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let frame = |_| {
        let confidence = 0.05 + 0.9 * random.random::<f64>().powf(1.25);
        ReplayFrame {
            sizes: sizes(&mut random),
            local: vec![confidence],
            uncalibrated: (0.3 + 0.25 * confidence + random.random_range(0.0..0.45)).min(1.0),
        }
    };
    let frames = (0..frames).map(frame).collect();
    ReplayWorld {
        calibration: Nanos::from_millis(8),
        ..world(table_3(), fps, bandwidth_bps, frames)
    }
}
