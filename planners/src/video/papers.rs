//! The worlds of the papers' evaluations: the models of their tables, and frames that are made up.
//!
//! The papers give times and full accuracies in tables (fastva Table II, cbo Table III). How accuracy falls with the resolution
//! is a picture there (fastva Figure 4, cbo Figure 10), and what frames take in bytes is not said at all but for a range of
//! transmission times; both are simulated here, and so is everything that a video has of its own.

use layerlab_profiles::{Bytes, Nanos};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::error::VideoError;
use super::fastva::{LocalModel, RemoteModel, ServerMode, VideoModels};
use super::replay::{ReplayBandwidth, ReplayFrame, ReplayWorld};
use super::stream::VideoStream;

/// The sides of the papers' resolutions, in pixels (cbo §V-A, fastva §VI-A).
pub const SIDES: [u64; 5] = [45, 90, 134, 179, 224];

/// The share of a model's full accuracy in each resolution, after the shape of fastva Figure 4 and cbo Figure 10.
const SHARES: [f64; 5] = [0.3, 0.6, 0.8, 0.93, 1.0];

/// Of ResNet-152 on cbo's server: the end of Figure 4's curve, where everything is sent (§III-A).
const SERVER_ACCURACY: f64 = 0.81;

/// What cbo's NPU is right about: the beginning of that curve, which is 0.42, and what Figure 11 shows.
const NPU_ACCURACY: f64 = 0.45;

/// What a world is like beside its frames.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PaperSettings {
    /// Frames per second.
    pub frames_per_second: f64,
    /// The time within which a frame is to be answered; the papers' is 200 ms.
    pub within: Nanos,
    /// In bits per second.
    pub bandwidth_bps: u64,
    /// The round trip; where the papers do not vary it, 100 ms.
    pub round_trip: Nanos,
    /// How many frames the video has.
    pub frames: usize,
    /// What frames, and which answers are right, are drawn from.
    pub seed: u64,
}

impl PaperSettings {
    /// The papers' usual world: 30 frames per second, 200 ms, a round trip of 100 ms, at this bandwidth.
    pub fn usual(bandwidth_bps: u64, frames: usize, seed: u64) -> PaperSettings {
        PaperSettings {
            frames_per_second: 30.0,
            within: Nanos::from_millis(200),
            bandwidth_bps,
            round_trip: Nanos::from_millis(100),
            frames,
            seed,
        }
    }

    fn stream(&self) -> Result<VideoStream, VideoError> {
        // Nothing, or less, becomes 0, which is refused.
        let interval = Nanos::from_nanos((1e9 / self.frames_per_second) as u64);
        VideoStream::new(interval, self.within)
    }

    fn world(
        &self,
        models: VideoModels,
        frame: impl FnMut(usize) -> ReplayFrame,
    ) -> Result<ReplayWorld, VideoError> {
        Ok(ReplayWorld {
            stream: self.stream()?,
            frames: (0..self.frames).map(frame).collect(),
            bandwidth: ReplayBandwidth::Constant(self.bandwidth_bps),
            round_trip: self.round_trip,
            models,
            server: ServerMode::Pipelined,
            calibration: Nanos::ZERO,
            seed: self.seed,
        })
    }
}

/// The models of fastva Table II.
///
/// # Errors
/// Never: the numbers are fractions.
pub fn fastva_models() -> Result<VideoModels, VideoError> {
    let local = vec![local("ResNet", 52, 0.52), local("SqueezeNet", 17, 0.41)];
    let remote = vec![remote("ResNet", 69, 0.67), remote("SqueezeNet", 9, 0.51)];
    VideoModels::new(local, remote)
}

/// The models of cbo Table III: AlexNet on the NPU, ResNet-152 on the server.
///
/// # Errors
/// Never: the numbers are fractions.
pub fn cbo_models() -> Result<VideoModels, VideoError> {
    let npu = vec![local("AlexNet", 20, NPU_ACCURACY)];
    VideoModels::new(npu, vec![remote("ResNet-152", 37, SERVER_ACCURACY)])
}

/// cbo's baseline Compress: a pruned ResNet-152 on the phone's CPU, in the place of the NPU's model. The paper says that pruning
/// saves half of the CPU's time and not what that is; the 180 ms and the accuracy of 0.7 are assumed.
///
/// # Errors
/// Never: the numbers are fractions.
pub fn compress_models() -> Result<VideoModels, VideoError> {
    let cpu = vec![local("pruned ResNet-152", 180, 0.7)];
    VideoModels::new(cpu, vec![remote("ResNet-152", 37, SERVER_ACCURACY)])
}

/// A video for FastVA: of a frame no more is known than the models' mean accuracies.
///
/// # Errors
/// When the settings are no stream.
pub fn fastva_world(settings: &PaperSettings) -> Result<ReplayWorld, VideoError> {
    let mut random = ChaCha8Rng::seed_from_u64(settings.seed);
    let models = fastva_models()?;
    let local: Vec<f64> = models.local().iter().map(|model| model.accuracy).collect();
    settings.world(models, |_| ReplayFrame {
        sizes: png_sizes(&mut random),
        uncalibrated: local[0],
        local: local.clone(),
        by_class: None,
        right: None,
    })
}

/// A video for CBO: the NPU's answers are right with probabilities from 0.05 to 0.95, 0.45 on average, and the confidences
/// before calibration say little of it. Calibration takes the 8 ms of Table III.
///
/// # Errors
/// When the settings are no stream.
pub fn cbo_world(settings: &PaperSettings) -> Result<ReplayWorld, VideoError> {
    let mut random = ChaCha8Rng::seed_from_u64(settings.seed);
    let world = settings.world(cbo_models()?, |_| {
        let confidence = 0.05 + 0.9 * random.random::<f64>().powf(1.25);
        ReplayFrame {
            sizes: png_sizes(&mut random),
            local: vec![confidence],
            uncalibrated: (0.3 + 0.25 * confidence + random.random_range(0.0..0.45)).min(1.0),
            by_class: None,
            right: None,
        }
    })?;
    Ok(ReplayWorld {
        calibration: Nanos::from_millis(8),
        ..world
    })
}

/// The same video where Compress answers on the phone: of a frame no more is known than its mean accuracy.
///
/// # Errors
/// When the settings are no stream.
pub fn compress_world(settings: &PaperSettings) -> Result<ReplayWorld, VideoError> {
    let mut world = cbo_world(settings)?;
    world.models = compress_models()?;
    world.calibration = Nanos::ZERO;
    let accuracy = world.models.local()[0].accuracy;
    for frame in &mut world.frames {
        frame.local = vec![accuracy];
    }
    Ok(world)
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
        accuracies: SHARES.map(|share| share * accuracy).to_vec(),
    }
}

/// The bytes of a lossless frame in each resolution: 1.2 to 2 for a pixel, as PNG takes for photographs.
fn png_sizes(random: &mut ChaCha8Rng) -> Vec<Bytes> {
    let bytes_per_pixel: f64 = random.random_range(1.2..2.0);
    let bytes = |side: u64| Bytes::from_bytes((bytes_per_pixel * (side * side) as f64) as u64);
    SIDES.map(bytes).to_vec()
}
