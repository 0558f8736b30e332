//! Files that are no good: each gets one sentence that says what to do, and none brings the process down.

use crate::common;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use layerlab_model::{ModelError, Network};
use layerlab_profiles::document::HashedFile;
use layerlab_profiles::{Segment, sha256};
use proptest::prelude::*;

fn open(path: &Path) -> ModelError {
    Network::open(path, &BTreeMap::new()).unwrap_err()
}

fn variant(name: &str) -> std::path::PathBuf {
    common::models().join("variants").join(name)
}

#[test]
fn a_file_that_is_not_there() {
    let error = open(Path::new("no/such/model.onnx"));
    assert!(matches!(error, ModelError::Unreadable { .. }));
    assert!(
        error
            .to_string()
            .starts_with("cannot read the model `no/such/model.onnx` ("),
        "{error}"
    );
}

#[test]
fn a_folder() {
    let folder = tempfile::tempdir().unwrap();
    assert!(matches!(open(folder.path()), ModelError::Unreadable { .. }));
}

#[test]
fn a_file_of_another_kind() {
    let folder = tempfile::tempdir().unwrap();
    for content in [
        &b""[..],
        b"\x89PNG\r\n\x1a\n",
        b"PK\x03\x04rest",
        b"a text\n",
    ] {
        let path = folder.path().join("model.onnx");
        std::fs::write(&path, content).unwrap();
        assert!(
            matches!(open(&path), ModelError::NotOnnx { .. }),
            "{content:?}"
        );
    }
}

#[test]
fn a_file_that_is_cut_short() {
    let folder = tempfile::tempdir().unwrap();
    let content = std::fs::read(variant("residual.onnx")).unwrap();
    let path = folder.path().join("model.onnx");
    std::fs::write(&path, &content[..content.len() / 2]).unwrap();
    let error = open(&path);
    assert!(matches!(error, ModelError::Truncated { .. }), "{error}");
    assert!(
        error.to_string().contains("copy or download it again"),
        "{error}"
    );
}

#[test]
fn an_operator_that_nobody_knows() {
    let error = open(&variant("unknown-operator.onnx"));
    assert!(
        error
            .to_string()
            .starts_with("node `C1_swirl` is a `org.example.custom.Swirl`"),
        "{error}"
    );
}

#[test]
fn a_model_without_layers() {
    assert!(matches!(
        open(&variant("no-layers.onnx")),
        ModelError::NoLayers { nodes: 2 }
    ));
}

#[test]
fn an_open_dimension_is_asked_for() {
    let error = open(&variant("symbolic-size.onnx"));
    assert_eq!(
        error.to_string(),
        "the dimension `H` (axis 2 of the input `image`) is open: give it with --dim H=VALUE"
    );
}

#[test]
fn the_batch_is_one_unless_it_is_given() {
    for (given, batch) in [(vec![], 1), (vec![("N".to_owned(), 2)], 2)] {
        let dims = BTreeMap::from_iter(given);
        let network = Network::open(&variant("symbolic-batch.onnx"), &dims).unwrap();
        assert_eq!(network.inputs()[0].shape, [batch, 3, 8, 8]);
        assert_eq!(network.outputs()[0].shape[0], batch);
    }
}

#[test]
fn initialisers_listed_as_inputs_are_weights() {
    let network = Network::open(&variant("initializers-as-inputs.onnx"), &BTreeMap::new()).unwrap();
    let inputs: Vec<&str> = network
        .frontier(0)
        .iter()
        .map(|spec| spec.name.as_str())
        .collect();
    assert_eq!(inputs, ["image"]);
}

#[test]
fn files_that_hold_weights_are_known_by_their_hashes() {
    let dims = BTreeMap::new();
    let path = variant("external-data.onnx");
    let (_, source) = Network::open_with_source(&path, &dims).unwrap();
    let data = std::fs::read(variant("external-data.onnx.data")).unwrap();
    let expected = HashedFile {
        name: "external-data.onnx.data".to_owned(),
        sha256: sha256(&data),
    };
    assert_eq!(source.external_weights, [expected]);
    assert_eq!(source.onnx, std::fs::read(&path).unwrap());

    let (_, alone) = Network::open_with_source(&variant("residual.onnx"), &dims).unwrap();
    assert_eq!(alone.external_weights, []);
}

#[test]
fn external_data_that_did_not_come_along() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.onnx");
    std::fs::copy(variant("external-data.onnx"), &path).unwrap();
    let error = open(&path);
    assert!(matches!(&error, ModelError::ExternalData { .. }), "{error}");
    assert!(
        error.to_string().contains("`external-data.onnx.data`"),
        "{error}"
    );
}

/// Nothing here takes this long; a reader that does has hung.
const DEADLINE: Duration = Duration::from_secs(120);

/// Reads `bytes`; the answer does not matter, that there is one does.
fn survive(bytes: &[u8]) {
    let (read, ended) = mpsc::channel();
    let bytes = bytes.to_vec();
    let reader = std::thread::spawn(move || {
        if let Ok(network) = Network::from_onnx(&bytes) {
            let whole = Segment::whole(network.layer_count());
            assert!(!network.segment(whole).unwrap().into_bytes().is_empty());
            assert!(!network.to_onnx().is_empty());
        }
        let _ = read.send(());
    });
    let is_hung = ended.recv_timeout(DEADLINE) == Err(RecvTimeoutError::Timeout);
    assert!(!is_hung, "no answer in {DEADLINE:?}");
    reader.join().unwrap();
}

#[test]
fn no_cut_brings_the_process_down() {
    let bytes = std::fs::read(variant("residual.onnx")).unwrap();
    for length in 0..bytes.len() {
        assert!(
            Network::from_onnx(&bytes[..length]).is_err(),
            "{length} bytes"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_flipped_bytes_bring_the_process_down(
        name in prop::sample::select(vec!["residual", "concat-split", "opset7", "newest-opset", "constant-nodes"]),
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in prop::option::weighted(0.2, any::<prop::sample::Index>()),
    ) {
        let mut bytes = std::fs::read(variant(&format!("{name}.onnx"))).unwrap();
        for (place, byte) in flips {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        survive(&bytes);
    }

    #[test]
    fn no_bytes_bring_the_process_down(
        bytes in prop::collection::vec(any::<u8>(), 0..400),
        like_onnx in any::<bool>(),
    ) {
        let mut all = if like_onnx { vec![0x08, 0x08] } else { vec![] };
        all.extend(bytes);
        survive(&all);
    }
}
