//! The child process: it answers the agent until the agent is gone.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::process;
use std::sync::mpsc::{self, Receiver};
use std::thread;

use super::engine::{Engine, EngineStart, ModelNotLoaded};
use super::frames::{read_frame, write_frame};
use super::messages::{ChildAnswer, ChildRequest};

/// Serves the agent at the other end of standard input, which is a socket, and ends the process when the agent ends or
/// closes it. Nothing is torn down: that can crash in the libraries that were loaded.
pub(in crate::runtime) fn serve(start: EngineStart) -> ! {
    let code = match try_to_serve(start) {
        Ok(()) => 0,
        Err(error) => {
            tracing::error!(%error, "the child process of a runtime cannot go on");
            1
        }
    };
    process::exit(code)
}

fn try_to_serve(start: EngineStart) -> io::Result<()> {
    let mut socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let requests = received(socket.try_clone()?);
    let mut engine: Option<Box<dyn Engine>> = None;
    // Used again and again.
    let mut outputs = Vec::new();
    while let Ok((request, payload)) = requests.recv() {
        outputs.clear();
        let answer = match (request, &mut engine) {
            (ChildRequest::Start(setup), engine) => match start(&setup) {
                Ok(started) => {
                    let version = started.version().to_owned();
                    *engine = Some(started);
                    ChildAnswer::Started { version }
                }
                Err(cause) => ChildAnswer::Failed { cause },
            },
            (_, None) => ChildAnswer::Failed {
                cause: "the runtime was not started".to_owned(),
            },
            (request, Some(engine)) => answered(engine.as_mut(), request, &payload, &mut outputs),
        };
        drop(payload);
        write_frame(&mut socket, &answer, &[&outputs])?;
    }
    Ok(())
}

/// Requests as they come. A thread of its own reads them, so that the process ends with the agent even in the middle of a
/// long run.
fn received(mut socket: UnixStream) -> Receiver<(ChildRequest, Vec<u8>)> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        while let Ok(frame) = read_frame(&mut socket) {
            if sender.send(frame).is_err() {
                break;
            }
        }
        process::exit(0)
    });
    receiver
}

fn answered(
    engine: &mut dyn Engine,
    request: ChildRequest,
    payload: &[u8],
    outputs: &mut Vec<u8>,
) -> ChildAnswer {
    match request {
        ChildRequest::Start(_) => ChildAnswer::Failed {
            cause: "the runtime was started before".to_owned(),
        },
        ChildRequest::Load {
            session,
            compiled,
            save_to,
        } => {
            let read = compiled.map(std::fs::read).transpose();
            let loaded = match read {
                Ok(compiled) => {
                    let model = compiled.as_deref().unwrap_or(payload);
                    engine.load(session, model, save_to.as_deref())
                }
                Err(error) => Err(ModelNotLoaded::Failed(error.to_string())),
            };
            match loaded {
                Ok(loaded) => ChildAnswer::Loaded {
                    load_time: loaded.load_time,
                    nodes: loaded.nodes,
                    libraries: loaded.libraries,
                },
                Err(ModelNotLoaded::Refused(reason)) => ChildAnswer::Refused { reason },
                Err(ModelNotLoaded::Failed(cause)) => ChildAnswer::Failed { cause },
            }
        }
        ChildRequest::Run { session, inputs } => {
            match engine.run(session, &inputs, payload, outputs) {
                Ok((duration, outputs)) => ChildAnswer::Ran { duration, outputs },
                Err(cause) => {
                    outputs.clear();
                    ChildAnswer::Failed { cause }
                }
            }
        }
        ChildRequest::Forget { session } => {
            engine.forget(session);
            ChildAnswer::Forgotten
        }
    }
}
