//! Models on their way into the child process: from the compile cache where they are there, with a second try in another
//! process where the first one died.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use layerlab_profiles::Nanos;
use layerlab_protocol::{Placed, PlacedNode};

use super::connection::{NoAnswer, RuntimeChild};
use crate::runtime::onnxruntime::cache::CompileCache;
use crate::runtime::onnxruntime::child::messages::{ChildAnswer, ChildRequest};

/// The largest networks take minutes to compile on a phone, and to emulate on a computer.
pub(in crate::runtime::onnxruntime) const DEADLINE: Duration = Duration::from_secs(600);

/// The child process of one processor, with the cache of what it compiles.
#[derive(Clone)]
pub(in crate::runtime::onnxruntime) struct SharedChild {
    child: Arc<Mutex<RuntimeChild>>,
    /// Absent where nothing is compiled, or the agent has no folder for it.
    pub(in crate::runtime::onnxruntime) cache: Option<CompileCache>,
}

/// A model that the child has loaded.
#[derive(Clone, Debug)]
pub(in crate::runtime::onnxruntime) struct LoadedInChild {
    /// The session's number.
    pub(in crate::runtime::onnxruntime) session: u64,
    /// The child's number: another child does not have the session.
    pub(in crate::runtime::onnxruntime) generation: u64,
    pub(in crate::runtime::onnxruntime) load_time: Nanos,
    /// Whether it was compiled for this load; `None` where the provider compiles nothing.
    pub(in crate::runtime::onnxruntime) compiled: Option<bool>,
    pub(in crate::runtime::onnxruntime) placed: Placed,
    /// The files of the runtime's libraries that the child has loaded.
    pub(in crate::runtime::onnxruntime) libraries: Vec<PathBuf>,
}

/// Why a model was not loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::runtime::onnxruntime) enum LoadFailure {
    /// The processor cannot run it.
    Refused(String),
    /// Anything else.
    Failed(String),
}

impl SharedChild {
    pub(in crate::runtime::onnxruntime) fn new(
        child: RuntimeChild,
        cache: Option<CompileCache>,
    ) -> SharedChild {
        SharedChild {
            child: Arc::new(Mutex::new(child)),
            cache,
        }
    }

    /// The child. Whoever panicked while holding it left it in order: it is only ever replaced as a whole.
    pub(in crate::runtime::onnxruntime) fn lock(&self) -> MutexGuard<'_, RuntimeChild> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Loads `model`. A child that dies of it is replaced once.
    pub(in crate::runtime::onnxruntime) fn load(
        &self,
        model: &[u8],
    ) -> Result<LoadedInChild, LoadFailure> {
        match self.load_once(model) {
            Err(Attempt::NoAnswer(why)) => {
                tracing::warn!(%why, "the process of ONNX Runtime is started again");
                self.load_once(model).map_err(|attempt| match attempt {
                    Attempt::NoAnswer(again) => {
                        LoadFailure::Failed(format!("the process of ONNX Runtime {again}, twice"))
                    }
                    Attempt::Failure(failure) => failure,
                })
            }
            Err(Attempt::Failure(failure)) => Err(failure),
            Ok(loaded) => Ok(loaded),
        }
    }

    /// Frees a session, unless the child that had it is gone.
    pub(in crate::runtime::onnxruntime) fn forget(&self, loaded: &LoadedInChild) {
        let mut child = self.lock();
        if child.lives_as(loaded.generation) {
            let forget = ChildRequest::Forget {
                session: loaded.session,
            };
            if let Err(why) = child.ask(&forget, &[], DEADLINE) {
                tracing::warn!(%why, "the process of ONNX Runtime ended while it freed a segment");
            }
        }
    }

    fn load_once(&self, model: &[u8]) -> Result<LoadedInChild, Attempt> {
        let mut child = self.lock();
        let Some(cache) = &self.cache else {
            return request_load(&mut child, model, None, None).map(|(loaded, _)| loaded);
        };
        let key = cache.key(model);
        if let Some(entry) = cache.find(&key) {
            let compiled = Some(entry.file.clone());
            match request_load(&mut child, &[], compiled, None) {
                Ok((loaded, _)) => return Ok(with_nodes(loaded, entry.nodes)),
                Err(Attempt::NoAnswer(why)) => {
                    cache.remove(&key);
                    return Err(Attempt::NoAnswer(why));
                }
                // Compiled by other libraries, perhaps: they are not all known before one is loaded.
                Err(Attempt::Failure(_)) => cache.remove(&key),
            }
        }
        let new = cache.new_file();
        let (loaded, nodes) = request_load(&mut child, model, None, Some(new.clone()))?;
        cache.keep(&key, &new, &nodes);
        Ok(loaded)
    }
}

enum Attempt {
    NoAnswer(NoAnswer),
    Failure(LoadFailure),
}

impl From<NoAnswer> for Attempt {
    fn from(why: NoAnswer) -> Self {
        match why {
            NoAnswer::NotStarted(cause) => Attempt::Failure(LoadFailure::Failed(cause)),
            NoAnswer::Died(_) | NoAnswer::Silent(_) => Attempt::NoAnswer(why),
        }
    }
}

fn request_load(
    child: &mut RuntimeChild,
    model: &[u8],
    compiled: Option<PathBuf>,
    save_to: Option<PathBuf>,
) -> Result<(LoadedInChild, Vec<PlacedNode>), Attempt> {
    let generation = child.generation()?;
    let session = child.new_session();
    let was_compiled = compiled.is_some();
    let load = ChildRequest::Load {
        session,
        compiled,
        save_to,
    };
    let failure = match child.ask(&load, &[model], DEADLINE)?.0 {
        ChildAnswer::Loaded {
            load_time,
            nodes,
            libraries,
        } => {
            let provider = &child.setup.provider;
            let backend = provider.backend();
            let loaded = LoadedInChild {
                session,
                generation,
                load_time,
                compiled: provider.compiles().then_some(!was_compiled),
                placed: Placed {
                    fallback_refused: provider.refuses_fallback(),
                    backend: backend
                        .and_then(|file| Some(file.file_name()?.to_string_lossy().into_owned())),
                    nodes: nodes.clone(),
                },
                libraries,
            };
            return Ok((loaded, nodes));
        }
        ChildAnswer::Refused { reason } => LoadFailure::Refused(reason),
        ChildAnswer::Failed { cause } => LoadFailure::Failed(cause),
        other => LoadFailure::Failed(format!("its process answered {other:?}")),
    };
    Err(Attempt::Failure(failure))
}

/// A compiled model is one node; those that it was compiled from were placed when it was.
fn with_nodes(mut loaded: LoadedInChild, nodes: Vec<PlacedNode>) -> LoadedInChild {
    loaded.placed.nodes = nodes;
    loaded
}
