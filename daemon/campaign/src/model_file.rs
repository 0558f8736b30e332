//! A model as the user gave it, and as it is sent to devices.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use layerlab_model::{ModelError, Network, NotATwin, twin_of};
use layerlab_profiles::document::HashedFile;
use layerlab_profiles::sha256;

use super::drive::File;

/// A model that was read and taken apart into layers.
pub struct ModelFile {
    /// The model's layers, and the frontiers between them.
    pub network: Network,
    /// The self-contained file that is sent to devices.
    pub onnx: Vec<u8>,
    /// SHA-256 of what is sent.
    pub sha256: String,
    /// SHA-256 of the user's own file, for the provenance.
    pub source_sha256: String,
    /// The files beside the user's own that hold its weights; `None` where nobody knows any more.
    pub external_weights: Option<Vec<HashedFile>>,
    /// The quantised twin that the user gave, for processors that compute in 8 bits.
    pub quantised: Option<QuantisedTwin>,
}

/// A model's quantised twin, as the user gave it and as it is sent to devices.
#[derive(Clone)]
pub struct QuantisedTwin {
    /// The self-contained file that is sent to devices.
    pub onnx: Vec<u8>,
    /// SHA-256 of what is sent.
    pub sha256: String,
    /// The name of the user's own file without its extension, and its SHA-256.
    pub source: HashedFile,
}

/// A model file that cannot be used.
#[derive(Debug)]
pub struct ModelFileError {
    path: PathBuf,
    reason: Unusable,
}

/// What is wrong with a model file.
#[derive(Debug)]
enum Unusable {
    Model(ModelError),
    Twin(NotATwin),
}

impl std::error::Error for ModelFileError {}

impl fmt::Display for ModelFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match &self.reason {
            // These are about the file and name it themselves.
            Unusable::Model(
                reason @ (ModelError::Unreadable { .. }
                | ModelError::NotOnnx { .. }
                | ModelError::Truncated { .. }
                | ModelError::TooLarge { .. }),
            ) => reason.fmt(f),
            Unusable::Model(reason) => write!(f, "`{path}`: {reason}"),
            Unusable::Twin(reason) => write!(f, "`{path}`: {reason}"),
        }
    }
}

impl ModelFile {
    /// Reads the model at `path`, with symbolic dimensions set by `dims`.
    pub fn open(path: &Path, dims: &BTreeMap<String, u64>) -> Result<ModelFile, ModelFileError> {
        let opened = Network::open_with_source(path, dims);
        let (network, source) = opened.map_err(|reason| ModelFileError {
            path: path.to_owned(),
            reason: Unusable::Model(reason),
        })?;
        let onnx = network.to_onnx();
        Ok(ModelFile {
            sha256: sha256(&onnx),
            source_sha256: sha256(&source.onnx),
            external_weights: Some(source.external_weights),
            quantised: None,
            onnx,
            network,
        })
    }

    /// This model as the quantised twin of `float`: what is sent to devices has its nodes in the order of `float`, so that
    /// layers have the same numbers there.
    ///
    /// # Errors
    /// When it is no quantised twin of `float`, with the first difference.
    pub fn twin_of(self, float: &Network) -> Result<ModelFile, NotATwin> {
        let network = twin_of(float, &self.network)?;
        let onnx = network.to_onnx();
        Ok(ModelFile {
            network,
            sha256: sha256(&onnx),
            onnx,
            ..self
        })
    }

    /// The self-contained model in `onnx`, which goes by the name of its graph.
    pub fn from_onnx(onnx: &[u8]) -> Result<ModelFile, ModelError> {
        let network = Network::from_onnx(onnx)?;
        let source_sha256 = sha256(onnx);
        let onnx = network.to_onnx();
        Ok(ModelFile {
            sha256: sha256(&onnx),
            source_sha256,
            external_weights: Some(Vec::new()),
            quantised: None,
            onnx,
            network,
        })
    }

    /// What was sent to devices before, with what is known of the user's files that it was made of.
    pub fn restore(
        onnx: Vec<u8>,
        source_sha256: String,
        external_weights: Option<Vec<HashedFile>>,
    ) -> Result<ModelFile, ModelError> {
        Ok(ModelFile {
            network: Network::from_onnx(&onnx)?,
            sha256: sha256(&onnx),
            source_sha256,
            external_weights,
            quantised: None,
            onnx,
        })
    }

    /// The same model with the quantised twin at `path`, if there is one, its symbolic dimensions set by `dims`.
    ///
    /// # Errors
    /// When the file cannot be used, or is no twin of the model.
    pub fn with_quantised(
        mut self,
        path: Option<&Path>,
        dims: &BTreeMap<String, u64>,
    ) -> Result<ModelFile, ModelFileError> {
        let Some(path) = path else {
            return Ok(self);
        };
        let twin = ModelFile::open(path, dims)?;
        twin_of(&self.network, &twin.network).map_err(|reason| ModelFileError {
            path: path.to_owned(),
            reason: Unusable::Twin(reason),
        })?;
        self.quantised = Some(QuantisedTwin {
            source: HashedFile {
                name: twin.network.name().to_owned(),
                sha256: twin.source_sha256,
            },
            onnx: twin.onnx,
            sha256: twin.sha256,
        });
        Ok(self)
    }

    /// SHA-256 of the quantised twin as it is sent, if there is one.
    pub fn quantised_sha256(&self) -> Option<String> {
        self.quantised.as_ref().map(|twin| twin.sha256.clone())
    }

    /// The file as it is sent to devices.
    pub fn file(&self) -> File<'_> {
        File {
            sha256: &self.sha256,
            content: &self.onnx,
        }
    }

    /// All that is sent to devices: the model, and its quantised twin if there is one.
    pub fn files(&self) -> impl Iterator<Item = File<'_>> {
        let twin = self.quantised.as_ref().map(|twin| File {
            sha256: &twin.sha256,
            content: &twin.onnx,
        });
        std::iter::once(self.file()).chain(twin)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn a_twin_is_sent_with_the_layers_of_the_float_model() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/models");
        let open = |name: &str| ModelFile::open(&folder.join(name), &BTreeMap::new()).expect(name);
        let float = open("inception.onnx");
        let read = open("quantised/inception.onnx");
        let source = read.source_sha256.clone();
        let twin = read.twin_of(&float.network).expect("a twin");
        assert_eq!(twin.source_sha256, source);
        assert_eq!(twin.sha256, sha256(&twin.onnx));
        let sent = Network::from_onnx(&twin.onnx).expect("a network");
        let names = |network: &Network| -> Vec<String> {
            network.layers().iter().map(|l| l.name.clone()).collect()
        };
        assert_eq!(names(&sent), names(&float.network));
        let refused = open("alexnet.onnx").twin_of(&float.network).err();
        let sentence = refused.expect("no pairs").to_string();
        assert!(sentence.contains("layerlab quantise"), "{sentence}");
    }

    /// As a shell hands it over that writes `--model <(cat net.onnx)`.
    #[test]
    fn a_model_that_can_be_read_only_once_has_the_hash_of_what_was_read() {
        let onnx = include_bytes!("../../../tests/models/alexnet.onnx");
        let (reader, mut writer) = std::io::pipe().expect("a pipe");
        let writing = std::thread::spawn(move || writer.write_all(onnx));
        let path = PathBuf::from(format!("/proc/self/fd/{}", reader.as_raw_fd()));
        let model = ModelFile::open(&path, &BTreeMap::new()).expect("a model");
        assert_eq!(model.source_sha256, sha256(onnx));
        writing.join().expect("no panic").expect("all was read");
    }
}
