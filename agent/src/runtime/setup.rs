//! What runtimes are told before they offer processors.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use super::process::ChildProgram;

/// Where runtimes are found that are not part of the agent, and how their processors are offered.
#[derive(Args, Clone, Debug, Default)]
pub struct OnnxRuntimeOptions {
    /// Also offer the processors of ONNX Runtime, whose libonnxruntime.so is in this folder
    #[arg(long, value_name = "FOLDER", env = "LAYERLAB_ONNXRUNTIME")]
    pub onnxruntime: Option<PathBuf>,
    /// Also offer Qualcomm's Hexagon, with libonnxruntime_providers_qnn.so and libQnnHtp.so of this folder
    #[arg(long, value_name = "FOLDER", env = "LAYERLAB_QNN")]
    pub qnn: Option<PathBuf>,
    /// The folder of libQnnHtp.so and the libraries that it needs, where that is another one
    #[arg(long, value_name = "FOLDER", env = "LAYERLAB_QNN_LIBRARIES")]
    pub qnn_libraries: Option<PathBuf>,
    /// On a computer, offer the Hexagon of this SoC, such as SM8550, as Qualcomm's libraries emulate it
    #[arg(long, value_name = "SOC", env = "LAYERLAB_EMULATE")]
    pub emulate: Option<String>,
    /// Offer this CPU processor, such as cpu:all, as if it were an accelerator: it is then measured in segments that are run
    /// by themselves
    #[arg(long, value_name = "PROCESSOR", env = "LAYERLAB_AS_ACCELERATOR")]
    pub as_accelerator: Option<String>,
    /// Leave out what cannot be used, say why on standard output, and offer the rest
    #[arg(long, env = "LAYERLAB_LEAVE_OUT")]
    pub leave_out: bool,
}

/// What it takes to offer the runtimes of a machine.
#[derive(Clone, Debug)]
pub struct RuntimesSetup {
    /// Where runtimes are found that are not part of the agent, and how they are offered.
    pub onnxruntime: OnnxRuntimeOptions,
    /// The agent's program, which is its child processes' as well.
    pub program: PathBuf,
    /// A folder for whatever runtimes may write.
    pub scratch: PathBuf,
    /// A folder for compiled models; without one, each is compiled whenever it is loaded.
    pub compiled: Option<PathBuf>,
}

impl RuntimesSetup {
    /// What child processes are started from, with these variables beside those of the agent.
    pub(super) fn child_program(&self, environment: Vec<(&'static str, OsString)>) -> ChildProgram {
        ChildProgram {
            program: self.program.clone(),
            scratch: self.scratch.clone(),
            environment,
        }
    }
}
