//! ONNX Runtime and Qualcomm's emulated Hexagon from the command line to the profile. What is said about emulated
//! processors, and that their placement is proved. `make npu-test` installs what these tests need.

mod emulated;
mod refused;

use std::path::PathBuf;
use std::process::Command;

use layerlab_tests::layerlab;
use layerlab_tests::skip::skip;

/// The emulated phone's chip.
const SOC: &str = "SM8550";

/// Where the libraries are that these tests need.
struct Libraries {
    onnxruntime: PathBuf,
    qnn: PathBuf,
}

impl Libraries {
    /// Those that the environment names; the test is skipped if it does not.
    #[track_caller]
    fn find() -> Option<Libraries> {
        let named = |name| std::env::var_os(name).map(PathBuf::from);
        let both = named("LAYERLAB_ONNXRUNTIME").zip(named("LAYERLAB_QNN"));
        if both.is_none() {
            skip(
                "ONNX Runtime with Qualcomm's emulator",
                "run make npu-test, which installs both",
            );
        }
        both.map(|(onnxruntime, qnn)| Libraries { onnxruntime, qnn })
    }

    /// `layerlab` on a host that has ONNX Runtime.
    fn on_host(&self) -> Command {
        let mut command = layerlab();
        command.arg("--onnxruntime").arg(&self.onnxruntime);
        command
    }

    /// The same with an emulated Hexagon.
    fn on_hexagon(&self) -> Command {
        let mut command = self.on_host();
        command.arg("--qnn").arg(&self.qnn).args(["--emulate", SOC]);
        command
    }
}
