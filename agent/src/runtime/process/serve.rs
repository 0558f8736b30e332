//! The child process: it answers the agent until the agent is gone.

use std::collections::HashMap;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::process;
use std::sync::mpsc::{self, Receiver};
use std::thread;

use layerlab_profiles::Nanos;

use super::engine::{Engine, EngineStart, ModelNotLoaded};
use super::frames::{read_frame, write_frame};
use super::messages::{ChildAnswer, ChildRequest, TensorHeader};
use super::near::bring_near;

/// A runtime, and what its sessions are run on and give.
struct Serving {
    engine: Box<dyn Engine>,
    /// What sessions that are timed again and again are run on.
    kept: HashMap<u64, Inputs>,
    /// The bytes of what a run gave. Used again and again.
    outputs: Vec<u8>,
}

/// Tensors whose bytes follow one another.
struct Inputs {
    headers: Vec<TensorHeader>,
    bytes: Vec<u8>,
}

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
    let mut serving: Option<Serving> = None;
    while let Ok((request, payload)) = requests.recv() {
        let nothing: &[u8] = &[];
        let (answer, outputs) = match (request, &mut serving) {
            (ChildRequest::Start(setup), serving) => match start(&setup) {
                Ok(engine) => {
                    let version = engine.version().to_owned();
                    *serving = Some(Serving::of(engine));
                    (ChildAnswer::Started { version }, nothing)
                }
                Err(cause) => (ChildAnswer::Failed { cause }, nothing),
            },
            (_, None) => {
                let cause = "the runtime was not started".to_owned();
                (ChildAnswer::Failed { cause }, nothing)
            }
            (request, Some(serving)) => serving.answer(request, payload),
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

impl Serving {
    fn of(engine: Box<dyn Engine>) -> Serving {
        Serving {
            engine,
            kept: HashMap::new(),
            outputs: Vec::new(),
        }
    }

    /// The answer, and the bytes that go with it.
    fn answer(&mut self, request: ChildRequest, payload: Vec<u8>) -> (ChildAnswer, &[u8]) {
        let answer = self.answer_alone(request, payload);
        let bytes = match answer {
            ChildAnswer::Ran { .. } => self.outputs.as_slice(),
            _ => &[],
        };
        (answer, bytes)
    }

    fn answer_alone(&mut self, request: ChildRequest, payload: Vec<u8>) -> ChildAnswer {
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
                        let model = compiled.as_deref().unwrap_or(&payload);
                        self.engine.load(session, model, save_to.as_deref())
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
                let inputs = Inputs {
                    headers: inputs,
                    bytes: payload,
                };
                match run(self.engine.as_mut(), session, &inputs, &mut self.outputs) {
                    Ok((duration, outputs)) => ChildAnswer::Ran { duration, outputs },
                    Err(cause) => ChildAnswer::Failed { cause },
                }
            }
            ChildRequest::Time { session, inputs } => {
                if let Some(headers) = inputs {
                    let bytes = payload;
                    self.kept.insert(session, Inputs { headers, bytes });
                }
                let Some(inputs) = self.kept.get(&session) else {
                    return ChildAnswer::Failed {
                        cause: format!("session {session} has kept no inputs"),
                    };
                };
                bring_near(&inputs.bytes);
                match run(self.engine.as_mut(), session, inputs, &mut self.outputs) {
                    Ok((duration, _)) => ChildAnswer::Timed { duration },
                    Err(cause) => ChildAnswer::Failed { cause },
                }
            }
            ChildRequest::Forget { session } => {
                self.kept.remove(&session);
                self.engine.forget(session);
                ChildAnswer::Forgotten
            }
        }
    }
}

fn run(
    engine: &mut dyn Engine,
    session: u64,
    inputs: &Inputs,
    outputs: &mut Vec<u8>,
) -> Result<(Nanos, Vec<TensorHeader>), String> {
    outputs.clear();
    engine.run(session, &inputs.headers, &inputs.bytes, outputs)
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::{Arc, Mutex};

    use layerlab_model::ElementType;

    use super::super::engine::LoadedModel;
    use super::*;

    /// Gives back what it is run on, which it notes.
    struct Echo {
        given: Arc<Mutex<Vec<Vec<u8>>>>,
    }

    impl Engine for Echo {
        fn version(&self) -> &str {
            "1"
        }

        fn load(
            &mut self,
            _: u64,
            _: &[u8],
            _: Option<&Path>,
        ) -> Result<LoadedModel, ModelNotLoaded> {
            Ok(LoadedModel::default())
        }

        fn run(
            &mut self,
            _: u64,
            inputs: &[TensorHeader],
            bytes: &[u8],
            outputs: &mut Vec<u8>,
        ) -> Result<(Nanos, Vec<TensorHeader>), String> {
            self.given.lock().expect("one thread").push(bytes.to_vec());
            outputs.extend_from_slice(bytes);
            Ok((Nanos::ZERO, inputs.to_vec()))
        }

        fn forget(&mut self, _: u64) {}
    }

    #[test]
    fn what_is_timed_again_is_run_on_what_it_kept_and_sends_nothing_back() {
        let given = Arc::new(Mutex::new(Vec::new()));
        let mut serving = Serving::of(Box::new(Echo {
            given: Arc::clone(&given),
        }));
        let headers = || {
            vec![TensorHeader {
                element: ElementType::U8.onnx(),
                shape: vec![2],
            }]
        };
        let mut time = |session, inputs: Option<&[u8]>| {
            let request = ChildRequest::Time {
                session,
                inputs: inputs.map(|_| headers()),
            };
            let (answer, sent) = serving.answer(request, inputs.unwrap_or_default().to_vec());
            assert!(sent.is_empty(), "{sent:?} with {answer:?}");
            matches!(answer, ChildAnswer::Timed { .. })
        };
        assert!(!time(1, None), "nothing is kept");
        assert!(time(1, Some(b"ab")) && time(2, Some(b"cd")) && time(1, None));
        assert!(time(1, Some(b"ef")) && time(1, None) && time(2, None));
        let expected = [b"ab", b"cd", b"ab", b"ef", b"ef", b"cd"];
        assert_eq!(*given.lock().expect("one thread"), expected);

        let inputs = headers();
        let (_, sent) = serving.answer(ChildRequest::Run { session: 1, inputs }, b"gh".to_vec());
        assert_eq!(sent, b"gh");
        let forgotten = serving.answer(ChildRequest::Forget { session: 1 }, Vec::new());
        assert!(matches!(forgotten, (ChildAnswer::Forgotten, [])));
        let time = ChildRequest::Time {
            session: 1,
            inputs: None,
        };
        let (answer, _) = serving.answer(time, Vec::new());
        assert!(matches!(answer, ChildAnswer::Failed { .. }), "{answer:?}");
    }
}
