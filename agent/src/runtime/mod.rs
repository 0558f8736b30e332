//! What runs networks: a [`Runtime`] loads segments on the processors that it offers, a [`Session`] runs one.
//!
//! A runtime knows nothing of the device's clock, state or rest, of orders and journals, nor of which inference it
//! runs. A new one is a folder here, declared below, and a line in the registry.

mod error;
mod main_memory;
mod memory;
pub mod onnxruntime;
mod process;
pub mod registry;
mod runtimes;
mod setup;
pub mod simulated;
mod tensor;
mod timing_input;
mod tract;

use std::collections::BTreeMap;
use std::sync::Arc;

use layerlab_model::Network;
use layerlab_profiles::{Bytes, Nanos, Segment};
use layerlab_protocol::{Event, Library, Numerics, Placed, ProcessorKind};

pub(crate) use self::error::SegmentOnProcessor;
pub use self::error::{RuntimeError, Unsupported};
pub(crate) use self::main_memory::MainMemory;
pub use self::process::CHILD_COMMAND;
pub use self::runtimes::{DuplicateProcessor, Runtimes};
pub use self::setup::{OnnxRuntimeOptions, RuntimesSetup};
pub use self::tensor::{Tensor, TensorError};
pub use self::timing_input::timing_input;

/// Software that runs networks on processors of this device.
///
/// It is used by one thread at a time. Its sessions may outlive calls to it, but not be used while one of its methods
/// runs.
pub trait Runtime: Send {
    /// Its name, as profiles give it.
    fn name(&self) -> &str;

    /// Its version, as profiles give it: two that may differ in speed or answers have different ones.
    fn version(&self) -> &str;

    /// The processors that it runs networks on here. The same, in the same order, whenever it is asked; the other
    /// methods name a processor by its place in this list.
    fn processors(&self) -> Vec<ProcessorOffer>;

    /// Why processors that were asked for cannot be used, where it was told to leave those out: one sentence each.
    fn left_out(&self) -> &[String] {
        &[]
    }

    /// What it was told about `processor` that may change times or answers, by name, as profiles give it.
    fn options(&self, _processor: usize) -> BTreeMap<String, String> {
        BTreeMap::new()
    }

    /// The libraries that `processor` needs, as profiles give them; none if the runtime is part of the agent.
    fn libraries(&self, _processor: usize) -> Vec<Library> {
        Vec::new()
    }

    /// Whether `processor` can run layers `segment` of `network`, and if not, why. Takes no memory, and
    /// little time but where the runtime has to compile a layer to find out.
    ///
    /// [`Runtimes`] asks before it loads. A runtime that finds out by loading alone says that it can, and fails then with
    /// [`RuntimeError::Unsupported`].
    ///
    /// # Errors
    /// The reason, for a person.
    fn supports(
        &self,
        processor: usize,
        network: &Network,
        segment: Segment,
    ) -> Result<(), Unsupported>;

    /// Whether the empty memory of `processor` holds layers `segment` of `network`, which it can run. A runtime that cannot
    /// tell loads them, when nothing else is loaded; one that knows without loading says so here.
    ///
    /// # Errors
    /// [`RuntimeError::OutOfMemory`] if it does not, and those of [`Runtime::load`].
    fn fits(
        &mut self,
        processor: usize,
        network: &Arc<Network>,
        segment: Segment,
    ) -> Result<(), RuntimeError> {
        self.load(processor, network, segment).map(drop)
    }

    /// Makes layers `segment` of `network`, which has them, ready to run on `processor`.
    ///
    /// Takes the processor's memory until the session is dropped. Loads everything that a run needs, so that no run
    /// pays for it.
    ///
    /// # Errors
    /// [`RuntimeError::OutOfMemory`] if the processor's memory does not hold the segment beside those already loaded,
    /// [`RuntimeError::Unsupported`] if loading shows that the processor cannot run the segment, [`RuntimeError::Load`]
    /// for anything else.
    ///
    /// # Panics
    /// May panic when there is no such processor.
    fn load(
        &mut self,
        processor: usize,
        network: &Arc<Network>,
        segment: Segment,
    ) -> Result<Box<dyn Session>, RuntimeError>;

    /// Begins a visit: what is loaded to be timed from now on shares no process, and so no place in memory, with what was
    /// before. A layer can be a fifth slower in one process than in the next, and the same in all of one. A runtime whose times
    /// do not depend on memory has nothing to do.
    fn begin_visit(&mut self) {}

    /// Like [`Runtime::load`], to be timed: in the process of the visit.
    ///
    /// # Errors
    /// Those of [`Runtime::load`].
    ///
    /// # Panics
    /// As [`Runtime::load`].
    fn load_timed(
        &mut self,
        processor: usize,
        network: &Arc<Network>,
        segment: Segment,
    ) -> Result<Box<dyn Session>, RuntimeError> {
        self.load(processor, network, segment)
    }
}

/// A segment that is loaded on a processor. Dropping it frees its memory.
pub trait Session: Send {
    /// The processor's memory that the session takes, in bytes: an estimate where the runtime does not tell.
    fn memory(&self) -> Bytes;

    /// How long loading took, in nanoseconds.
    fn load_time(&self) -> Nanos;

    /// Whether the segment was compiled for this load, rather than read from the compile cache; `None` for runtimes and
    /// providers that compile nothing.
    fn compiled(&self) -> Option<bool> {
        None
    }

    /// Where the runtime placed the segment's nodes; `None` for runtimes that are part of the agent.
    fn placed(&self) -> Option<Placed> {
        None
    }

    /// Runs the segment once on `inputs`, one tensor for each of its left frontier, in that order, and says how long
    /// that took.
    ///
    /// The time, in nanoseconds, begins when the inputs lie in main memory in the form that the runtime takes, and
    /// ends when the outputs lie there in the form that it gives. It includes moving them to and from the processor
    /// (docs/method.md §1). It does not include copies between [`Tensor`] and the runtime's own form, nor passing the
    /// call on to the threads that execute it.
    ///
    /// # Errors
    /// [`RuntimeError::Run`] if the inputs do not fit the segment or the runtime fails. NaN and infinite outputs are
    /// no error: overflow is what 16-bit numerics do.
    fn run(&mut self, inputs: &[Tensor]) -> Result<Inference, RuntimeError>;

    /// How long a run takes, as [`Session::run`] says, when nobody asks what it answers. What is timed again and again is given
    /// the same `inputs`, not equal ones: a runtime in a process of its own keeps them there, so that no tensors pass between
    /// the processes from one run to the next, and only those that are timed use the caches.
    ///
    /// # Errors
    /// As [`Session::run`].
    fn time(&mut self, inputs: &Arc<[Tensor]>) -> Result<Nanos, RuntimeError> {
        Ok(self.run(inputs)?.duration)
    }

    /// What [`Session::run`] answers, when nobody asks how long it takes.
    ///
    /// # Errors
    /// As [`Session::run`].
    fn outputs(&mut self, inputs: &[Tensor]) -> Result<Vec<Tensor>, RuntimeError> {
        Ok(self.run(inputs)?.outputs)
    }
}

/// What the journal says of a segment that was loaded.
pub(crate) fn loaded_event(processor: &str, segment: Segment, session: &dyn Session) -> Event {
    Event::Loaded {
        processor: processor.to_owned(),
        segment,
        load_ns: session.load_time(),
        memory_bytes: session.memory(),
        compiled: session.compiled(),
        placed: session.placed(),
    }
}

/// What one run of a segment gave.
#[derive(Clone, Debug)]
pub struct Inference {
    /// One tensor for each of the segment's right frontier, in that order.
    pub outputs: Vec<Tensor>,
    /// From the inputs in main memory to the outputs in main memory, as [`Session::run`] says.
    pub duration: Nanos,
}

/// A processor that a runtime runs networks on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessorOffer {
    /// The name that orders and tables use. No other processor of the device has it, whichever runtime offers it.
    pub name: String,
    /// Whether it computes in main memory or has memory of its own.
    pub kind: ProcessorKind,
    /// What it computes in.
    pub numerics: Numerics,
    /// True when its maker's emulator plays it: its answers are the processor's own, its times are not.
    pub emulated: bool,
    /// Memory for loaded segments, in bytes, where the processor has a limit of its own.
    pub memory: Option<Bytes>,
    /// How many threads compute on it, where that is the runtime's choice.
    pub threads: Option<u32>,
    /// The cores that these threads are bound to; absent where the system does not allow it.
    pub pinned_to_cores: Option<Vec<u32>>,
}
