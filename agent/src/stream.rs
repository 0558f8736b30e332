//! Answers frames as a camera delivers them, on this device or on an edge server beside it, while the daemon that asked for it
//! listens. A policy of the planners' decides here, frame by frame: no decision waits for the daemon.

mod camera;
mod decisions;
mod happened;
mod processor;
mod server;

use std::io;
use std::sync::MutexGuard;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::thread;

use layerlab_edge::Cancel;
use layerlab_planners::video::fastva::Scheduled;
use layerlab_planners::video::live::{LiveSettings, LiveVideo};
use layerlab_profiles::accuracy::EvaluationSet;
use layerlab_profiles::{Nanos, Segment};
use layerlab_protocol::{FrameStream, Response, StreamedFrame};

use self::camera::Camera;
use self::decisions::{Decisions, Orders};
use self::happened::StreamClock;
use self::processor::StreamProcessor;
use self::server::StreamServer;
use crate::files::Files;
use crate::link::TakenTurn;
use crate::machine::Machine;
use crate::models::read_model;
use crate::pictures::PictureInput;
use crate::reach::{Reached, reach, with_signs_of_life};

/// Frames in one message, which is then a third of the longest line.
const FRAMES_AT_ONCE: usize = 1_000;

/// The longest stream: an hour at 30 frames per second. What came of its frames is kept in memory.
const MOST_FRAMES: usize = 108_000;

/// What came of a stream.
struct Streamed {
    frames: Vec<StreamedFrame>,
    slower: u64,
    lost: Option<String>,
    server_program: String,
}

/// Streams, and says so by `send`, until all frames are over, something fails, `cancel` ends it or nothing can be sent any more.
/// Machine and turn are free before the last of it is said: who hears that may ask again.
///
/// # Errors
/// When nothing can be sent any more.
pub fn run(
    asked: &FrameStream,
    files: &Files,
    mut machine: MutexGuard<'_, Machine>,
    turn: TakenTurn<'_>,
    cancel: &Cancel,
    send: &(impl Fn(Response) -> io::Result<()> + Sync),
) -> io::Result<()> {
    let over = AtomicU64::new(0);
    let of = serde_json::from_str(&asked.settings).map_or(0, |it: LiveSettings| it.frames as u64);
    let progress = || (over.load(Ordering::Relaxed), of);
    let streamed = with_signs_of_life(cancel, send, progress, || {
        stream(asked, files, &mut machine, cancel, (send, &over))
    });
    // Until now it kept the connection to the server open.
    cancel.release();
    drop(machine);
    drop(turn);
    let streamed = match streamed {
        Ok(streamed) => streamed,
        Err(message) => return send(Response::LinkFailed { message }),
    };
    for frames in streamed.frames.chunks(FRAMES_AT_ONCE) {
        send(Response::StreamedFrames {
            frames: frames.to_vec(),
        })?;
    }
    send(Response::StreamEnded {
        frames: streamed.frames.len() as u64,
        slower: streamed.slower,
        lost: streamed.lost,
        server_program: streamed.server_program,
    })
}

/// Prepares both sides and streams.
///
/// # Errors
/// When it cannot, in a sentence.
fn stream(
    asked: &FrameStream,
    files: &Files,
    machine: &mut Machine,
    cancel: &Cancel,
    (send, over): (&impl Fn(Response) -> io::Result<()>, &AtomicU64),
) -> Result<Streamed, String> {
    let said = |error: &dyn std::error::Error| error.to_string();
    let settings: LiveSettings = serde_json::from_str(&asked.settings)
        .map_err(|error| format!("the settings of the stream are not understood: {error}"))?;
    let (frames, interval, within) = (settings.frames, settings.interval, settings.within);
    let live = match LiveVideo::new(settings).map_err(|error| said(&error))? {
        Scheduled::Planned(live) => live,
        Scheduled::Infeasible { frame } => {
            return Err(format!(
                "the policy must answer every frame, and is late from frame {frame} on: choose another, or fewer frames per second"
            ));
        }
    };
    let set = files.set(&asked.set_sha256).map_err(|error| said(&error))?;
    refuse_unfit(asked, &set, frames)?;
    let camera = Camera {
        set: &set,
        images: &asked.images,
        forms: &asked.forms,
    };
    let first = camera.picture(0)?;
    let model = read_model(
        files,
        &asked.model_sha256,
        asked.quantised_sha256.as_deref(),
    )?;
    let reached = reach(&asked.server, &asked.token, asked.shape, cancel)?;
    let Reached {
        client,
        _shaper,
        loopback,
    } = reached;
    // Who is gone ends the connection, and so this.
    send(Response::LinkReached { loopback }).map_err(|error| said(&error))?;
    let server_program = client.server_program().to_owned();
    let whole = Segment::whole(model.model().layer_count());
    let session = machine.runtimes.load(&asked.processor, &model, whole);
    let mut processor = StreamProcessor {
        session: session.map_err(|error| said(&error))?,
        device: machine.device.as_mut(),
        input: PictureInput::of(model.model())?,
        preprocessing: &set.preprocessing,
        seed: asked.seed,
    };
    processor.warm_up(&first)?;
    // What waits for the server at the end of the stream waits no longer.
    let ending = Cancel::default();
    client.cut_by(&ending).map_err(|error| said(&error))?;
    let largest = camera.files(&first)?.pop().unwrap_or_default();
    let form = asked.forms.last().ok_or("a stream has at least one form")?;
    let server = StreamServer::warm_up(client, asked, &set, (form, &largest))?;
    let request_bytes = server.sending.request_bytes(form);

    let (stop, stopping) = channel();
    let (tell, happened) = channel();
    let (answer, to_answer) = channel();
    let (post, to_send) = channel();
    let (sent, to_hear) = channel();
    let (stopped, slower) = (AtomicBool::new(false), AtomicU64::new(0));
    let clock = StreamClock::start();
    let decided = thread::scope(|threads| {
        let tells = [tell.clone(), tell.clone(), tell];
        let [filming, answering, hearing] = tells;
        let StreamServer {
            sending,
            hearing: ears,
        } = server;
        threads.spawn(move || camera.film((frames, interval), clock, &stopping, &filming));
        let stopped = &stopped;
        let counts = (stopped, &slower);
        threads.spawn(move || processor.answer_all(&to_answer, counts, clock, &answering));
        threads.spawn(move || sending.send_all(&to_send, &sent));
        threads.spawn(move || ears.hear_all(&to_hear, clock, &hearing));
        let orders = Orders { answer, send: post };
        let mut decisions = Decisions::new(live, orders, (&asked.forms, request_bytes));
        let last = Nanos::from_nanos(interval.as_nanos() * (frames as u64 - 1));
        let decided = decisions.decide_all(&happened, (clock, last + within), cancel, over);
        stopped.store(true, Ordering::Relaxed);
        drop(stop);
        ending.cancel();
        decided.map(|()| decisions.finish(frames))
    });
    let (frames, lost) = decided?;
    Ok(Streamed {
        frames,
        slower: slower.into_inner(),
        lost,
        server_program,
    })
}

/// Refuses what does not belong together.
fn refuse_unfit(asked: &FrameStream, set: &EvaluationSet, frames: usize) -> Result<(), String> {
    for form in &asked.forms {
        form.refuse_unfit().map_err(|bad| bad.to_string())?;
    }
    let all = set.answers() as u64;
    if asked.images.is_empty() || asked.images.iter().any(|&image| image >= all) {
        return Err(format!("a stream shows images of its set, which has {all}"));
    }
    if set.metric.images_per_answer() != 1 {
        return Err("frames are single images, and the set has pairs".to_owned());
    }
    match (1..=MOST_FRAMES).contains(&frames) {
        true => Ok(()),
        false => Err(format!(
            "a stream has 1 to {MOST_FRAMES} frames, not {frames}"
        )),
    }
}
