//! What ONNX Runtime computes with: its execution providers, and all that one is told.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// An execution provider of ONNX Runtime.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Provider {
    /// The CPU's, which every library has.
    Cpu,
    /// Another one for the CPU.
    Xnnpack,
    /// Android's interface to whatever accelerator a phone has; which one stays unknown.
    Nnapi,
    /// Qualcomm's Hexagon tensor processor.
    QnnHtp(QnnHtp),
}

/// Qualcomm's plugin provider, and what it computes with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct QnnHtp {
    /// The plugin.
    pub(super) plugin: PathBuf,
    /// The library for the Hexagon tensor processor.
    pub(super) backend: PathBuf,
    /// Qualcomm's number of the SoC, which decides what the processor computes in.
    pub(super) soc_model: u32,
}

/// The name under which the plugin is registered, which is also its provider's.
pub(super) const QNN: &str = "QNNExecutionProvider";

impl Provider {
    /// The name that ONNX Runtime has for it.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Provider::Cpu => "CPUExecutionProvider",
            Provider::Xnnpack => "XnnpackExecutionProvider",
            Provider::Nnapi => "NnapiExecutionProvider",
            Provider::QnnHtp(_) => QNN,
        }
    }

    /// The name for people: what computes, not the software.
    pub(super) fn short_name(&self) -> &'static str {
        match self {
            Provider::Cpu => "ONNX Runtime's CPU provider",
            Provider::Xnnpack => "XNNPACK",
            Provider::Nnapi => "NNAPI",
            Provider::QnnHtp(_) => "HTP",
        }
    }

    /// Whether it compiles a segment for another processor than the CPU, and refuses what that one cannot run.
    pub(super) fn compiles(&self) -> bool {
        matches!(self, Provider::Nnapi | Provider::QnnHtp(_))
    }

    /// Whether its sessions are told to fail rather than give a node to the CPU's provider. That one has no other to fall
    /// back to.
    pub(super) fn refuses_fallback(&self) -> bool {
        *self != Provider::Cpu
    }

    /// The library that computes, where the provider has one of its own.
    pub(super) fn backend(&self) -> Option<&Path> {
        match self {
            Provider::QnnHtp(qnn) => Some(&qnn.backend),
            Provider::Cpu | Provider::Xnnpack | Provider::Nnapi => None,
        }
    }

    /// What the provider is told, by name. A provider ignores names that it does not know in silence, so that there are
    /// no others than these.
    pub(super) fn options(&self) -> BTreeMap<String, String> {
        let options: Vec<(&str, String)> = match self {
            Provider::Cpu | Provider::Xnnpack => Vec::new(),
            Provider::Nnapi => vec![
                ("cpu_disabled", "1".to_owned()),
                ("use_fp16", "1".to_owned()),
            ],
            Provider::QnnHtp(qnn) => vec![
                ("backend_path", qnn.backend.display().to_string()),
                ("soc_model", qnn.soc_model.to_string()),
                ("htp_performance_mode", "burst".to_owned()),
                // Otherwise the CPU converts the inputs and outputs of quantised models.
                ("offload_graph_io_quantization", "0".to_owned()),
            ],
        };
        let named = |(name, value): (&str, String)| (name.to_owned(), value);
        options.into_iter().map(named).collect()
    }
}
