//! Instances of FastVA's problems, and what a schedule gives, straight from the formulas: nothing of the planners is used.

use layerlab_planners::video::fastva::{
    BufferedFrames, FastVaProblem, FrameChoice, LocalModel, RemoteModel, ServerMode, VideoModels,
};
use layerlab_planners::video::{Uplink, VideoStream};
use layerlab_profiles::{Bytes, Nanos};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

pub(crate) const MILLISECOND: i128 = 1_000_000;

/// An instance in the units of the formulas: nanoseconds, bytes, bits per second.
pub(crate) struct Instance {
    pub(crate) interval: i128,
    pub(crate) within: i128,
    pub(crate) bandwidth: i128,
    pub(crate) round_trip: i128,
    /// Time and accuracy of each model on the phone.
    pub(crate) local: Vec<(i128, f64)>,
    /// Time and accuracies of each model on the server.
    pub(crate) remote: Vec<(i128, Vec<f64>)>,
    /// The sizes of each frame.
    pub(crate) frames: Vec<Vec<i128>>,
    pub(crate) server: ServerMode,
    pub(crate) buffered: BufferedFrames,
    /// When the NPU and the link are idle.
    pub(crate) npu: i128,
    pub(crate) uplink: i128,
}

impl Instance {
    pub(crate) fn new(seed: u64, most_frames: usize) -> Instance {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut accuracy = |low: f64| random.random_range(low..low + 0.4);
        let locals = [accuracy(0.3), accuracy(0.3)];
        let remotes = [0, 1].map(|_| vec![accuracy(0.3), accuracy(0.5)]);
        let mut time = |low: i128, high: i128| random.random_range(low..high) * MILLISECOND;
        // One NPU in three is too slow for every frame.
        let slow = if seed % 3 == 1 { 40 } else { 0 };
        Instance {
            local: locals
                .map(|accuracy| (time(12 + slow, 70 + 2 * slow), accuracy))
                .to_vec(),
            remote: remotes.map(|accuracies| (time(5, 80), accuracies)).to_vec(),
            within: time(80, 200),
            round_trip: time(0, 110),
            npu: time(0, 140) * i128::from(!seed.is_multiple_of(4)),
            uplink: time(0, 20) * i128::from(seed % 8 == 1),
            interval: random.random_range(30..60) * MILLISECOND,
            bandwidth: random.random_range(500_000..6_000_000),
            frames: (0..random.random_range(1..=most_frames))
                .map(|_| {
                    vec![
                        random.random_range(1_000..15_000),
                        random.random_range(5_000..60_000),
                    ]
                })
                .collect(),
            server: match seed % 3 {
                0 => ServerMode::Serial,
                _ => ServerMode::Pipelined,
            },
            buffered: match seed % 5 {
                0 => BufferedFrames::CeilingLessOne,
                _ => BufferedFrames::Floor,
            },
        }
    }

    pub(crate) fn problem(&self) -> FastVaProblem {
        let local = self.local.iter().enumerate();
        let local = local.map(|(place, &(time, accuracy))| LocalModel {
            name: format!("local{place}"),
            time: nanos(time),
            accuracy,
        });
        let remote = self.remote.iter().enumerate();
        let remote = remote.map(|(place, (time, accuracies))| RemoteModel {
            name: format!("remote{place}"),
            time: nanos(*time),
            accuracies: accuracies.clone(),
        });
        let models = VideoModels::new(local.collect(), remote.collect()).expect("sensible");
        let stream = VideoStream::new(nanos(self.interval), nanos(self.within)).expect("sensible");
        let uplink = Uplink::new(self.bandwidth as u64, nanos(self.round_trip));
        FastVaProblem {
            server: self.server,
            buffered: self.buffered,
            ..FastVaProblem::new(stream, uplink, models)
        }
    }

    pub(crate) fn sizes(&self) -> Vec<Vec<Bytes>> {
        let sizes = |frame: &Vec<i128>| {
            let sizes = frame.iter().map(|&size| Bytes::from_bytes(size as u64));
            sizes.collect()
        };
        self.frames.iter().map(sizes).collect()
    }

    pub(crate) fn accuracy(&self, choice: FrameChoice) -> f64 {
        match choice {
            FrameChoice::Local { model } => self.local[model].1,
            FrameChoice::Remote { model, resolution } => self.remote[model].1[resolution],
            FrameChoice::Skipped => 0.0,
        }
    }

    /// What can become of a frame.
    pub(crate) fn choices(&self, may_skip: bool, may_send: bool) -> Vec<FrameChoice> {
        let mut choices: Vec<FrameChoice> = Vec::new();
        choices.extend(may_skip.then_some(FrameChoice::Skipped));
        choices.extend((0..self.local.len()).map(|model| FrameChoice::Local { model }));
        for model in (0..self.remote.len()).filter(|_| may_send) {
            let resolutions = 0..self.remote[model].1.len();
            choices.extend(resolutions.map(|resolution| FrameChoice::Remote { model, resolution }));
        }
        choices
    }

    /// All ways to give each of `count` frames one of `choices`.
    pub(crate) fn combinations(
        &self,
        count: usize,
        choices: &[FrameChoice],
    ) -> impl Iterator<Item = Vec<FrameChoice>> {
        let options = choices.len();
        (0..options.pow(count as u32)).map(move |code| {
            let choice = |place: usize| choices[code / options.pow(place as u32) % options];
            (0..count).map(choice).collect()
        })
    }

    /// When the link is idle after the frame is sent, the link being idle from `start` on; none if the answer is late.
    pub(crate) fn send(&self, frame: usize, choice: FrameChoice, start: i128) -> Option<i128> {
        let FrameChoice::Remote { model, resolution } = choice else {
            panic!("{choice:?} sends nothing");
        };
        let arrival = frame as i128 * self.interval;
        let bits = self.frames[frame][resolution] * 8 * 1_000_000_000;
        let sent = start.max(arrival) + (bits + self.bandwidth - 1) / self.bandwidth;
        let served = sent + self.remote[model].0;
        let in_time = served + self.round_trip <= arrival + self.within;
        in_time.then_some(match self.server {
            ServerMode::Pipelined => sent,
            ServerMode::Serial => served,
        })
    }

    /// How many frames are answered and the sum of their accuracies, where those from `first` on have these choices, the NPU
    /// and the link being idle from `npu` and `uplink` on; none if one is late.
    pub(crate) fn run(
        &self,
        first: usize,
        choices: &[FrameChoice],
        mut npu: i128,
        mut uplink: i128,
    ) -> Option<(usize, f64)> {
        let (mut answered, mut sum) = (0, 0.0);
        for (place, &choice) in choices.iter().enumerate() {
            let frame = first + place;
            let arrival = frame as i128 * self.interval;
            match choice {
                FrameChoice::Skipped => continue,
                FrameChoice::Local { model } => {
                    npu = npu.max(arrival) + self.local[model].0;
                    if npu > arrival + self.within {
                        return None;
                    }
                }
                FrameChoice::Remote { .. } => uplink = self.send(frame, choice, uplink)?,
            }
            answered += 1;
            sum += self.accuracy(choice);
        }
        Some((answered, sum))
    }
}

pub(crate) fn nanos(value: i128) -> Nanos {
    Nanos::from_nanos(value as u64)
}
