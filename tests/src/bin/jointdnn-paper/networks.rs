//! The networks of the paper's kinds, as the generator makes them.

use std::path::{Path, PathBuf};
use std::process::Command;

use layerlab_tests::file;

/// What a network is for (jointdnn §3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Discriminative,
    Generative,
    Autoencoder,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Discriminative => "discriminative",
            Kind::Generative => "generative",
            Kind::Autoencoder => "autoencoder",
        }
    }
}

/// A network at one scale.
pub(crate) struct PaperNetwork {
    /// The generator's name for it.
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// How many layers the paper counts (Table 2); nothing where the paper does not have it.
    pub(crate) layers: Option<u32>,
    /// What the generator is told of its scale.
    options: &'static [&'static str],
    /// The scale in words.
    pub(crate) scale: &'static str,
    pub(crate) batches: &'static [u32],
}

/// Those whose profile would take long are smaller than the paper's, in their pictures where they have some: tensors and
/// arithmetic shrink together then. Batches of several for those that are quick.
pub(crate) static NETWORKS: [PaperNetwork; 7] = [
    PaperNetwork {
        name: "alexnet",
        kind: Kind::Discriminative,
        layers: Some(21),
        options: &[],
        scale: "full",
        batches: &[1],
    },
    PaperNetwork {
        name: "vgg16",
        kind: Kind::Discriminative,
        layers: Some(37),
        options: &["--input", "112"],
        scale: "pictures of 112 x 112 in the place of 224 x 224",
        batches: &[1],
    },
    PaperNetwork {
        name: "resnet50",
        kind: Kind::Discriminative,
        layers: Some(70),
        options: &["--input", "112"],
        scale: "pictures of 112 x 112 in the place of 224 x 224",
        batches: &[1],
    },
    PaperNetwork {
        name: "deep-speech",
        kind: Kind::Discriminative,
        layers: Some(10),
        options: &["--input", "25", "--width", "1/2"],
        scale: "25 frames, half as wide; with an LSTM",
        batches: &[1],
    },
    PaperNetwork {
        name: "chair",
        kind: Kind::Generative,
        layers: Some(10),
        options: &[],
        scale: "full",
        batches: &[1, 4],
    },
    PaperNetwork {
        name: "pix2pix",
        kind: Kind::Autoencoder,
        layers: Some(32),
        options: &["--input", "128"],
        scale: "pictures of 128 x 128 in the place of 256 x 256, seven levels",
        batches: &[1],
    },
    PaperNetwork {
        name: "autoencoder",
        kind: Kind::Autoencoder,
        layers: None,
        options: &[],
        scale: "of our own: pictures of 128 x 128, a code of 512 values",
        batches: &[1, 4],
    },
];

impl PaperNetwork {
    /// The network of this batch, which is made unless it lies in the folder.
    pub(crate) fn make(&self, folder: &Path, batch: u32) -> Result<PathBuf, String> {
        let path = folder.join(format!("{}-b{batch}.onnx", self.name));
        if path.exists() {
            return Ok(path);
        }
        let python = std::env::var_os("PYTHON").map_or_else(
            || file("models/.venv/bin/python"),
            |python| PathBuf::from(&python),
        );
        // Not under its name: what was interrupted is not taken for the whole.
        let partial = folder.join("partial.onnx");
        let mut command = Command::new(&python);
        command.arg(file("models/generate.py")).arg(self.name);
        command
            .args(self.options)
            .arg("--batch")
            .arg(batch.to_string());
        let made = command.arg("-o").arg(&partial).output();
        match made {
            Ok(output) if output.status.success() => {}
            Ok(output) => {
                return Err(format!(
                    "{} made no {}: {}",
                    python.display(),
                    self.name,
                    String::from_utf8_lossy(&output.stderr)
                ));
            }
            Err(error) => {
                return Err(format!(
                    "cannot start {}: {error}; make tests/models/.venv as tests/models/README.md says, or name a Python \
                     with its requirements by the variable PYTHON",
                    python.display()
                ));
            }
        }
        std::fs::rename(&partial, &path).map_err(|error| error.to_string())?;
        Ok(path)
    }
}
