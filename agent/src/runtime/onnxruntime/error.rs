//! Why ONNX Runtime cannot be used here, with the remedy: one sentence each.

use std::path::PathBuf;

use super::hexagon::HexagonBarrier;

/// Why ONNX Runtime, or a processor that it was to offer, cannot be used on this machine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OnnxRuntimeError {
    /// An option needs another one.
    #[error("{option} needs {needed}: give both")]
    OptionAlone {
        /// The option that was given.
        option: &'static str,
        /// The one that is missing.
        needed: &'static str,
    },
    /// The agent was built to run without any library, and can load none.
    #[error(
        "this agent is static and can load no library, so that it has no ONNX Runtime: `make agent ANDROID=1` builds one \
         for phones that can"
    )]
    StaticAgent,
    /// A folder does not hold a library.
    #[error("there is no {library} in `{}`: {remedy}", folder.display())]
    NoLibrary {
        /// The library's file name.
        library: String,
        /// The folder where it should be.
        folder: PathBuf,
        /// Where to get it.
        remedy: &'static str,
    },
    /// A library is for other machines, or no library.
    #[error("`{}` is {found}, and this machine needs a library for {needed}: install that one", library.display())]
    WrongMachine {
        /// The library.
        library: PathBuf,
        /// What it is.
        found: String,
        /// The architecture of this machine.
        needed: &'static str,
    },
    /// A library cannot be read.
    #[error("cannot read `{}`: {cause}", library.display())]
    Unreadable {
        /// The library.
        library: PathBuf,
        /// What the system said.
        cause: String,
    },
    /// A backend that computes elsewhere than on the Hexagon tensor processor.
    #[error(
        "`{}` computes on {computes_on}, not on the Hexagon tensor processor, which it would only appear to measure: \
         give the folder with libQnnHtp.so",
        library.display()
    )]
    OtherBackend {
        /// The backend.
        library: PathBuf,
        /// What it computes on.
        computes_on: &'static str,
    },
    /// No known SoC has that name.
    #[error("the Hexagon of SoC `{soc}` is not known to layerlab: choose one of {known}")]
    UnknownSoc {
        /// The name given, or read from the phone.
        soc: String,
        /// The names that are known.
        known: String,
    },
    /// It must be said which SoC to emulate.
    #[error(
        "this machine has no Hexagon: name the SoC to emulate with --emulate, such as --emulate SM8550"
    )]
    NothingToEmulate,
    /// The machine may have what is to be emulated.
    #[error("--emulate is for computers: a phone's own Hexagon is measured, leave it out")]
    EmulationOnPhone,
    /// A phone does not let the agent reach its Hexagon.
    #[error(
        "this phone's Hexagon is not offered: {barrier}, and these said `{said}`: its CPUs are measured; measure a Hexagon \
         on a phone that lets its shell user reach it, such as one with a development build after `adb root`"
    )]
    NoHexagon {
        /// What keeps the agent from it.
        barrier: HexagonBarrier,
        /// What Qualcomm's libraries said when they were tried.
        said: String,
    },
    /// The child process that holds the runtime could not be started or used.
    #[error("ONNX Runtime cannot offer {processor}: {cause}")]
    Probe {
        /// The processor that was probed, by its name.
        processor: String,
        /// What went wrong.
        cause: String,
    },
}
