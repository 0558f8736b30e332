//! Copies are what the user gave, or are not used.

use std::collections::BTreeMap;

use super::*;

fn test_model(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/models")
        .join(name)
}

fn library() -> (tempfile::TempDir, Library) {
    let state = tempfile::tempdir().expect("a folder");
    let library = Library::in_state(state.path());
    (state, library)
}

/// Profiles hold the layers and what crosses the cuts, and samples of models that are sent by hash: with these alike,
/// they are alike.
#[test]
fn a_kept_model_is_the_one_that_the_user_gave() {
    let (_state, library) = library();
    let dims = BTreeMap::from([("H".to_owned(), 32), ("W".to_owned(), 32)]);
    let none = BTreeMap::new();
    let cases = [
        ("inception.onnx", &none),
        ("yolo-mini.onnx", &none),
        ("variants/residual.onnx", &none),
        ("variants/constant-nodes.onnx", &none),
        ("variants/external-data.onnx", &none),
        ("variants/symbolic-batch.onnx", &none),
        ("variants/symbolic-size.onnx", &dims),
        ("variants/two-outputs.onnx", &none),
        ("variants/unsorted-names.onnx", &none),
    ];
    for (name, dims) in cases {
        let path = test_model(name);
        let given = ModelFile::open(&path, dims).expect("a model");
        library.put(&given.onnx, &given.sha256).expect("kept");
        let spec = ModelSpec {
            name: given.network.name().to_owned(),
            sha256: given.sha256.clone(),
            source_sha256: given.source_sha256.clone(),
            external_weights: given.external_weights.clone(),
            quantised: None,
            path,
        };
        let kept = library.model(&spec).expect("a model");
        assert_eq!(kept.sha256, given.sha256, "{name}");
        assert_eq!(kept.source_sha256, given.source_sha256, "{name}");
        assert!(kept.onnx == given.onnx, "{name}");
        let (kept, given) = (kept.network, given.network);
        assert_eq!(kept.name(), given.name());
        assert_eq!(kept.opset(), given.opset());
        assert_eq!(kept.layers(), given.layers(), "{name}");
        for cut in 0..=given.layer_count() {
            assert_eq!(kept.alive(cut), given.alive(cut), "{name}, cut {cut}");
        }
        // What devices cut out of it is what they would cut out of the other.
        assert!(kept.to_onnx() == given.to_onnx(), "{name}");
    }
}

#[test]
fn what_was_altered_is_not_used_and_can_be_put_anew() {
    let (_state, library) = library();
    let hash = sha256(b"content");
    library.put(b"content", &hash).expect("kept");
    library.put(b"content", &hash).expect("there already");
    assert_eq!(library.get(&hash).expect("content"), b"content");
    let path = library.folder().join(&hash);
    std::fs::write(&path, "CONTENT").expect("altered");
    let error = library.get(&hash).expect_err("altered");
    assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    library.put(b"content", &hash).expect("kept again");
    assert_eq!(library.get(&hash).expect("content"), b"content");
    let error = library.set(&hash).err().expect("no set").to_string();
    assert!(error.contains("submit the job again"), "{error}");
}

#[test]
fn a_hash_does_not_lead_out_of_the_folder() {
    let (_state, library) = library();
    for hash in ["../secret", "", &"Z".repeat(64)] {
        let error = library.get(hash).expect_err("no hash");
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{hash}");
    }
    let missing = sha256(b"missing");
    let error = library.get(&missing).expect_err("missing");
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
}
