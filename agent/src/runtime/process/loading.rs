//! Models on their way into the child process: from the compile cache where they are there, with a second try in another
//! process where the first one died.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use layerlab_profiles::Nanos;
use layerlab_protocol::{Placed, PlacedNode};

use super::cache::CompileCache;
use super::connection::{NoAnswer, RuntimeChild};
use super::messages::{ChildAnswer, ChildRequest};

/// The largest networks take minutes to compile on a phone, and to emulate on a computer.
pub(super) const DEADLINE: Duration = Duration::from_secs(600);

/// The child process of one processor, with the cache of what it compiles.
#[derive(Clone)]
pub(in crate::runtime) struct SharedChild {
    child: Arc<Mutex<RuntimeChild>>,
    /// What the runtime is told of where to place nodes; `None` where it has no choice.
    placement: Option<PlacementTerms>,
    /// Absent where nothing is compiled, or the agent has no folder for it.
    pub(in crate::runtime) cache: Option<CompileCache>,
}

/// What a runtime that places nodes by itself was told, which its sessions prove.
#[derive(Clone, Debug)]
pub(in crate::runtime) struct PlacementTerms {
    /// Whether it fails rather than place a node elsewhere.
    pub(in crate::runtime) fallback_refused: bool,
    /// The library that computes, where it is one of its own.
    pub(in crate::runtime) backend: Option<String>,
    /// Whether it compiles what it loads.
    pub(in crate::runtime) compiles: bool,
}

/// A model that the child has loaded.
#[derive(Clone, Debug)]
pub(in crate::runtime) struct LoadedInChild {
    /// The session's number.
    pub(in crate::runtime) session: u64,
    /// The child's number: another child does not have the session.
    pub(in crate::runtime) generation: u64,
    pub(in crate::runtime) load_time: Nanos,
    /// Whether it was compiled for this load; `None` where the provider compiles nothing.
    pub(in crate::runtime) compiled: Option<bool>,
    /// Where its nodes were placed; `None` where the runtime has no choice.
    pub(in crate::runtime) placed: Option<Placed>,
    /// The files of the runtime's libraries that the child has loaded.
    pub(in crate::runtime) libraries: Vec<PathBuf>,
}

/// Why a model was not loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::runtime) enum LoadFailure {
    /// The processor cannot run it.
    Refused(String),
    /// Anything else.
    Failed(String),
}

impl SharedChild {
    pub(in crate::runtime) fn new(
        child: RuntimeChild,
        placement: Option<PlacementTerms>,
    ) -> SharedChild {
        SharedChild {
            child: Arc::new(Mutex::new(child)),
            placement,
            cache: None,
        }
    }

    /// Ends the child: what is loaded next is loaded in another one. Sessions that are still there are loaded again when they
    /// are next run.
    pub(in crate::runtime) fn end(&self) {
        self.lock().end();
    }

    /// The runtime's version; empty until a child was started.
    pub(in crate::runtime) fn version(&self) -> String {
        self.lock().version().to_owned()
    }

    /// The child. Whoever panicked while holding it left it in order: it is only ever replaced as a whole.
    pub(super) fn lock(&self) -> MutexGuard<'_, RuntimeChild> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Loads `model`. A child that dies of it is replaced once.
    pub(in crate::runtime) fn load(&self, model: &[u8]) -> Result<LoadedInChild, LoadFailure> {
        match self.load_once(model) {
            Err(Attempt::NoAnswer(why)) => {
                tracing::warn!(%why, "the process of a runtime is started again");
                self.load_once(model).map_err(|attempt| match attempt {
                    Attempt::NoAnswer(again) => {
                        let runtime = self.lock().runtime().to_owned();
                        LoadFailure::Failed(format!("the process of {runtime} {again}, twice"))
                    }
                    Attempt::Failure(failure) => failure,
                })
            }
            Err(Attempt::Failure(failure)) => Err(failure),
            Ok(loaded) => Ok(loaded),
        }
    }

    /// Frees a session, unless the child that had it is gone.
    pub(in crate::runtime) fn forget(&self, loaded: &LoadedInChild) {
        let mut child = self.lock();
        if child.lives_as(loaded.generation) {
            let forget = ChildRequest::Forget {
                session: loaded.session,
            };
            if let Err(why) = child.ask(&forget, &[], DEADLINE) {
                tracing::warn!(%why, "the process of a runtime ended while it freed a segment");
            }
        }
    }

    fn load_once(&self, model: &[u8]) -> Result<LoadedInChild, Attempt> {
        let mut child = self.lock();
        let Some(cache) = &self.cache else {
            return self
                .request_load(&mut child, model, None, None)
                .map(|(loaded, _)| loaded);
        };
        let key = cache.key(model);
        if let Some(entry) = cache.find(&key) {
            let compiled = Some(entry.file.clone());
            match self.request_load(&mut child, &[], compiled, None) {
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
        let (loaded, nodes) = self.request_load(&mut child, model, None, Some(new.clone()))?;
        cache.keep(&key, &new, &nodes);
        Ok(loaded)
    }

    fn request_load(
        &self,
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
                let terms = self.placement.as_ref();
                let loaded = LoadedInChild {
                    session,
                    generation,
                    load_time,
                    compiled: terms.and_then(|terms| terms.compiles.then_some(!was_compiled)),
                    placed: terms.map(|terms| Placed {
                        fallback_refused: terms.fallback_refused,
                        backend: terms.backend.clone(),
                        nodes: nodes.clone(),
                    }),
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

/// A compiled model is one node; those that it was compiled from were placed when it was.
fn with_nodes(mut loaded: LoadedInChild, nodes: Vec<PlacedNode>) -> LoadedInChild {
    if let Some(placed) = &mut loaded.placed {
        placed.nodes = nodes;
    }
    loaded
}
