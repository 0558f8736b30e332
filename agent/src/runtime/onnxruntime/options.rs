//! What the agent is told about runtimes that are not part of it.

use std::path::PathBuf;

use clap::Args;

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
    /// Offer this CPU processor of ONNX Runtime, such as cpu:ort-all, as if it were an accelerator
    #[arg(long, value_name = "PROCESSOR", env = "LAYERLAB_AS_ACCELERATOR")]
    pub as_accelerator: Option<String>,
    /// Leave out what cannot be used, say why on standard output, and offer the rest
    #[arg(long, env = "LAYERLAB_LEAVE_OUT")]
    pub leave_out: bool,
}
