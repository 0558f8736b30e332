//! Runtimes of this machine that are not part of the agent, as its agent is told of them.

use std::ffi::OsString;
use std::path::PathBuf;

/// What keeps ONNX Runtime from reporting to its maker; it looks at it before anything else.
const QUIET: (&str, &str) = ("ORT_DISABLE_TELEMETRY", "1");

/// Where this machine's runtimes are, and how their processors are offered. An agent that plays a simulated device has no
/// use for them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostRuntimes {
    /// The folder with ONNX Runtime's library.
    pub onnxruntime: Option<PathBuf>,
    /// The folder with Qualcomm's provider for it and the libraries that compute.
    pub qnn: Option<PathBuf>,
    /// The SoC whose accelerator Qualcomm's libraries emulate.
    pub emulate: Option<String>,
    /// The processor that is offered as if it were an accelerator.
    pub as_accelerator: Option<String>,
}

impl HostRuntimes {
    /// Whether nothing is said, so that the agent has its own runtime alone.
    pub fn are_none(&self) -> bool {
        *self == HostRuntimes::default()
    }

    /// What the agent's environment says of them. A variable without a value is to be removed: what is in this process's own
    /// environment was said to it, not to the agent.
    pub(crate) fn environment(&self) -> [(&'static str, Option<OsString>); 5] {
        let path = |path: &Option<PathBuf>| path.clone().map(PathBuf::into_os_string);
        let text = |text: &Option<String>| text.clone().map(OsString::from);
        [
            ("LAYERLAB_ONNXRUNTIME", path(&self.onnxruntime)),
            ("LAYERLAB_QNN", path(&self.qnn)),
            ("LAYERLAB_EMULATE", text(&self.emulate)),
            ("LAYERLAB_AS_ACCELERATOR", text(&self.as_accelerator)),
            (QUIET.0, Some(QUIET.1.into())),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_agent_is_told_what_was_said_and_onnx_runtime_to_be_quiet() {
        let none = HostRuntimes::default();
        assert!(none.are_none());
        let quiet = ("ORT_DISABLE_TELEMETRY", Some("1".into()));
        assert_eq!(
            none.environment(),
            [
                ("LAYERLAB_ONNXRUNTIME", None),
                ("LAYERLAB_QNN", None),
                ("LAYERLAB_EMULATE", None),
                ("LAYERLAB_AS_ACCELERATOR", None),
                quiet.clone(),
            ]
        );
        let some = HostRuntimes {
            onnxruntime: Some("/opt/ort".into()),
            emulate: Some("SM8550".to_owned()),
            ..HostRuntimes::default()
        };
        assert!(!some.are_none());
        assert_eq!(
            some.environment(),
            [
                ("LAYERLAB_ONNXRUNTIME", Some("/opt/ort".into())),
                ("LAYERLAB_QNN", None),
                ("LAYERLAB_EMULATE", Some("SM8550".into())),
                ("LAYERLAB_AS_ACCELERATOR", None),
                quiet,
            ]
        );
    }
}
