//! The child process: it answers the agent until the agent is gone.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::process;
use std::sync::mpsc::{self, Receiver};
use std::thread;

use super::engine::{Engine, ModelNotLoaded, loaded_libraries};
use super::frames::{read_frame, write_frame};
use super::messages::{ChildAnswer, ChildRequest, ChildSetup};

/// Serves the agent at the other end of standard input, which is a socket, and ends the process when the agent ends or
/// closes it. Nothing is torn down: that can crash in the libraries that were loaded.
pub fn serve_runtime() -> ! {
    let code = match serve() {
        Ok(()) => 0,
        Err(error) => {
            tracing::error!(%error, "the child process of a runtime cannot go on");
            1
        }
    };
    process::exit(code)
}

fn serve() -> io::Result<()> {
    let mut socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let requests = received(socket.try_clone()?);
    let mut state: Option<(Engine, ChildSetup)> = None;
    while let Ok((request, payload)) = requests.recv() {
        let answer = answered(&mut state, request, &payload);
        drop(payload);
        let outputs = match (&answer, &state) {
            (ChildAnswer::Ran { .. }, Some((engine, _))) => engine.outputs.as_slice(),
            _ => &[],
        };
        write_frame(&mut socket, &answer, &[outputs])?;
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
    state: &mut Option<(Engine, ChildSetup)>,
    request: ChildRequest,
    payload: &[u8],
) -> ChildAnswer {
    match (request, state) {
        (ChildRequest::Start(setup), state) => match Engine::start(setup.clone()) {
            Ok(engine) => {
                let version = engine.version.clone();
                *state = Some((engine, setup));
                ChildAnswer::Started { version }
            }
            Err(cause) => ChildAnswer::Failed { cause },
        },
        (_, None) => ChildAnswer::Failed {
            cause: "the runtime was not started".to_owned(),
        },
        (
            ChildRequest::Load {
                session,
                compiled,
                save_to,
            },
            Some((engine, setup)),
        ) => {
            let read = compiled.map(std::fs::read).transpose();
            let loaded = match read {
                Ok(compiled) => {
                    let model = compiled.as_deref().unwrap_or(payload);
                    engine.load(session, model, save_to.as_deref())
                }
                Err(error) => Err(ModelNotLoaded::Failed(error.to_string())),
            };
            match loaded {
                Ok((load_time, nodes)) => ChildAnswer::Loaded {
                    load_time,
                    nodes,
                    libraries: loaded_libraries(setup),
                },
                Err(ModelNotLoaded::Refused(reason)) => ChildAnswer::Refused { reason },
                Err(ModelNotLoaded::Failed(cause)) => ChildAnswer::Failed { cause },
            }
        }
        (ChildRequest::Run { session, inputs }, Some((engine, _))) => {
            match engine.run(session, &inputs, payload) {
                Ok((duration, outputs)) => ChildAnswer::Ran { duration, outputs },
                Err(cause) => ChildAnswer::Failed { cause },
            }
        }
        (ChildRequest::Forget { session }, Some((engine, _))) => {
            engine.forget(session);
            ChildAnswer::Forgotten
        }
    }
}
