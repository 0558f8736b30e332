//! The loop: what happens is told to the policy, and what it decides is done.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use image::DynamicImage;
use layerlab_edge::Cancel;
use layerlab_planners::video::live::{LiveError, LiveVideo};
use layerlab_planners::video::replay::ReplayCommand;
use layerlab_profiles::video::FrameForm;
use layerlab_profiles::{Bytes, Nanos};
use layerlab_protocol::{PhoneAnswer, SentFrame, ServerAnswer, StreamedFrame};

use super::happened::{Happened, StreamClock};
use super::processor::ToAnswer;
use super::server::ToSend;

/// How long it takes at most until a stream that was cancelled ends.
const TURN: Duration = Duration::from_millis(100);

/// To the threads that do what is decided.
pub(super) struct Orders {
    pub(super) answer: Sender<ToAnswer>,
    pub(super) send: Sender<ToSend>,
}

/// A frame that is there: its picture, and a file for each form.
type Delivered = (Arc<DynamicImage>, Vec<Vec<u8>>);

/// What was decided, and what came of it.
pub(super) struct Decisions<'a> {
    live: LiveVideo,
    orders: Orders,
    forms: &'a [FrameForm],
    request_bytes: u64,
    frames: Vec<StreamedFrame>,
    /// Frames that may still be answered or sent.
    delivered: BTreeMap<usize, Delivered>,
    lost: Option<String>,
}

impl<'a> Decisions<'a> {
    pub(super) fn new(
        live: LiveVideo,
        orders: Orders,
        (forms, request_bytes): (&'a [FrameForm], u64),
    ) -> Decisions<'a> {
        Decisions {
            live,
            orders,
            forms,
            request_bytes,
            frames: Vec::new(),
            delivered: BTreeMap::new(),
            lost: None,
        }
    }

    /// Decides until `end`, when no answer is of use any more. `over` counts the frames that are there.
    ///
    /// # Errors
    /// When the phone cannot go on, or it was cancelled: in a sentence.
    pub(super) fn decide_all(
        &mut self,
        happened: &Receiver<Happened>,
        (clock, end): (StreamClock, Nanos),
        cancel: &Cancel,
        over: &AtomicU64,
    ) -> Result<(), String> {
        while clock.now() < end {
            if cancel.is_cancelled() {
                return Err("streaming was cancelled".to_owned());
            }
            let wake = self.live.wake().map_or(end, |wake| wake.min(end));
            let wait = Duration::from(wake - clock.now()).min(TURN);
            match happened.recv_timeout(wait) {
                Ok(happened) => self.take(happened, clock)?,
                Err(RecvTimeoutError::Timeout) => {}
                // All have ended, and nothing will happen.
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
            if self.live.wake().is_some_and(|wake| wake <= clock.now()) {
                let began = clock.now();
                let commands = self.live.woken(began).map_err(said)?;
                let sent = commands.first().map(|command| match *command {
                    ReplayCommand::RunLocal { frame, .. } | ReplayCommand::Send { frame, .. } => {
                        frame
                    }
                });
                self.obey(&commands, clock);
                self.took(sent, began, clock);
            }
            over.store(self.frames.len() as u64, Ordering::Relaxed);
        }
        Ok(())
    }

    /// What came of all `frames` frames, and why the server was lost, if it was.
    pub(super) fn finish(mut self, frames: usize) -> (Vec<StreamedFrame>, Option<String>) {
        self.frames.resize(frames, nothing());
        (self.frames, self.lost)
    }

    fn take(&mut self, happened: Happened, clock: StreamClock) -> Result<(), String> {
        let began = clock.now();
        match happened {
            Happened::Ready {
                frame,
                at,
                picture,
                files,
            } => {
                let bytes =
                    |file: &Vec<u8>| Bytes::from_bytes(file.len() as u64 + self.request_bytes);
                let sizes = files.iter().map(bytes).collect();
                self.delivered.insert(frame, (picture, files));
                self.frames.resize(frame + 1, nothing());
                self.frames[frame].ready_ns = Some(at);
                let commands = self.live.arrived(began, sizes).map_err(said)?;
                self.obey(&commands, clock);
                self.took(Some(frame), began, clock);
            }
            Happened::Answered {
                frame,
                at,
                infer,
                scores,
            } => {
                let answered = self.live.answered(began, frame, &scores);
                let (answer, commands) = answered.map_err(said)?;
                if let Some(streamed) = self.frames.get_mut(frame) {
                    streamed.phone = Some(PhoneAnswer {
                        answered_ns: at,
                        infer_ns: infer,
                        class: answer.class as u32,
                        confidence_ppb: (answer.confidence * 1e9).round() as u32,
                    });
                }
                self.obey(&commands, clock);
                self.took(Some(frame), began, clock);
            }
            Happened::Served {
                frame,
                at,
                class,
                server,
            } => {
                let served = server.queue + server.compute + server.send;
                self.live.served(at, frame, served).map_err(said)?;
                let streamed = self.frames.get_mut(frame);
                if let Some(sent) = streamed.and_then(|it| it.sent.as_mut()) {
                    sent.answer = Some(ServerAnswer {
                        answered_ns: at,
                        class,
                        server_ns: [server.receive, server.queue, server.compute, server.send],
                    });
                }
            }
            Happened::Lost(sentence) => {
                self.live.lost();
                self.lost.get_or_insert(sentence);
            }
            Happened::Failed(sentence) => return Err(sentence),
        }
        Ok(())
    }

    /// Does what was decided.
    fn obey(&mut self, commands: &[ReplayCommand], clock: StreamClock) {
        for &command in commands {
            // Who does not listen any more has said why, or will.
            match command {
                ReplayCommand::RunLocal { frame, .. } => {
                    if let Some((picture, _)) = self.delivered.get(&frame) {
                        let _ = self.orders.answer.send((frame, Arc::clone(picture)));
                    }
                }
                ReplayCommand::Send {
                    frame, resolution, ..
                } => {
                    let delivered = self.delivered.remove(&frame);
                    let file = delivered.and_then(|(_, mut files)| {
                        (resolution < files.len()).then(|| files.swap_remove(resolution))
                    });
                    let (Some(file), Some(streamed)) = (file, self.frames.get_mut(frame)) else {
                        continue;
                    };
                    streamed.sent = Some(SentFrame {
                        form: resolution as u32,
                        bytes: Bytes::from_bytes(file.len() as u64 + self.request_bytes),
                        sent_ns: clock.now(),
                        answer: None,
                    });
                    let _ = self.orders.send.send((frame, self.forms[resolution], file));
                }
            }
        }
    }

    /// Counts a decision that began at `began` to `frame`, and forgets frames that none is about any more.
    fn took(&mut self, frame: Option<usize>, began: Nanos, clock: StreamClock) {
        if let Some(streamed) = frame.and_then(|frame| self.frames.get_mut(frame)) {
            streamed.decided_ns = streamed.decided_ns + (clock.now() - began);
        }
        let oldest = self
            .frames
            .len()
            .saturating_sub(self.live.frames_within() + 2);
        self.delivered = self.delivered.split_off(&oldest);
    }
}

fn said(error: LiveError) -> String {
    error.to_string()
}

/// A frame of which nothing came.
fn nothing() -> StreamedFrame {
    StreamedFrame {
        ready_ns: None,
        decided_ns: Nanos::ZERO,
        phone: None,
        sent: None,
    }
}
