//! The probes that go with a model: tiny networks whose times tell moving in from moving out (docs/method.md §10).

use std::collections::BTreeMap;

use layerlab_model::{ModelError, Network, QuantiseError, probe_network, probe_twin};
use layerlab_profiles::{Probe, sha256};

use super::drive::File;

/// The probes of one model, as they are sent to devices.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProbeFiles(Vec<ProbeFile>);

/// One probe, with its quantised twin where the model has one.
#[derive(Clone, Debug, PartialEq)]
struct ProbeFile {
    probe: Probe,
    model: HashedModel,
    twin: Option<HashedModel>,
}

#[derive(Clone, Debug, PartialEq)]
struct HashedModel {
    sha256: String,
    onnx: Vec<u8>,
}

/// A probe that cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// Its network is none.
    #[error("cannot make a probe for moving data: {0}; measure with `--assume symmetric`")]
    Network(#[from] ModelError),
    /// It has no quantised twin.
    #[error(
        "cannot make a quantised probe for moving data: {0}; measure with `--assume symmetric`"
    )]
    Twin(#[from] QuantiseError),
}

impl ProbeFiles {
    /// Those of `network`, quantised too if they are to run where its own twin runs.
    pub fn of(network: &Network, quantised: bool) -> Result<ProbeFiles, ProbeError> {
        let frontiers = layerlab_profiles::probe::frontiers(network.layers());
        let files = Probe::around(frontiers).into_iter().map(|probe| {
            let network = probe_network(probe)?;
            let twin = match quantised {
                true => Some(HashedModel::of(&probe_twin(&network)?)),
                false => None,
            };
            Ok(ProbeFile {
                probe,
                model: HashedModel::of(&network),
                twin,
            })
        });
        files.collect::<Result<_, _>>().map(ProbeFiles)
    }

    /// How many there are.
    pub(super) fn count(&self) -> u64 {
        self.0.len() as u64
    }

    /// SHA-256 of each, with that of its twin.
    pub(super) fn hashes(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        self.0.iter().map(|file| {
            let twin = file.twin.as_ref().map(|twin| twin.sha256.as_str());
            (file.model.sha256.as_str(), twin)
        })
    }

    /// The probes by the SHA-256 of their models.
    pub(super) fn by_hash(&self) -> BTreeMap<String, Probe> {
        let files = self.0.iter();
        files
            .map(|file| (file.model.sha256.clone(), file.probe))
            .collect()
    }

    /// All that is sent to devices.
    pub(super) fn files(&self) -> impl Iterator<Item = File<'_>> {
        let models = self.0.iter();
        models
            .flat_map(|file| std::iter::once(&file.model).chain(&file.twin))
            .map(|model| File {
                sha256: &model.sha256,
                content: &model.onnx,
            })
    }
}

impl HashedModel {
    fn of(network: &Network) -> HashedModel {
        let onnx = network.to_onnx();
        HashedModel {
            sha256: sha256(&onnx),
            onnx,
        }
    }
}
