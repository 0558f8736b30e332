//! Copies are what the user gave, or are not used.

use std::collections::BTreeMap;

use layerlab_objects::{ObjectsPlace, S3Variables};

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

/// The libraries of two hosts before one object store, which keep so many bytes at hand, and their folders.
fn two_hosts(limit: u64) -> (tempfile::TempDir, [Library; 2]) {
    let folder = tempfile::tempdir().expect("a folder");
    let place = ObjectsPlace::Folder(folder.path().join("objects"));
    let host = |name: &str| {
        let objects = Objects::open(&place, &S3Variables::default()).expect("a folder");
        Library::in_folder(&folder.path().join(name)).before(objects, limit)
    };
    let hosts = [host("one"), host("two")];
    (folder, hosts)
}

/// Puts the content into the library, and says its hash.
fn put(library: &Library, content: &str) -> String {
    let hash = sha256(content.as_bytes());
    library.put(content.as_bytes(), &hash).expect("room");
    hash
}

#[tokio::test]
async fn what_one_host_shares_another_one_fetches() {
    let (_folder, [one, two]) = two_hosts(1 << 20);
    let hashes = [put(&one, "a model"), put(&one, "a set")];
    let early = two.fetch(&hashes).await.expect_err("nobody has shared it");
    let sentence = early.to_string();
    assert!(
        sentence.starts_with(&format!("{} is not in ", hashes[0])),
        "{sentence}"
    );
    one.share(&hashes).await.expect("room");
    two.fetch(&hashes).await.expect("it is shared");
    assert_eq!(two.get(&hashes[1]).expect("at hand"), b"a set");
    // What was altered here is fetched again.
    let path = two.folder().join(&hashes[0]);
    std::fs::write(&path, "A MODEL").expect("altered");
    two.fetch(&hashes).await.expect("it is shared");
    assert_eq!(two.get(&hashes[0]).expect("at hand"), b"a model");
    // Alone, a library has nothing to fetch from.
    let alone = Library::in_folder(&path.with_file_name("alone"));
    alone.fetch(&hashes).await.expect("nothing to be done");
    assert!(!alone.has(&hashes[0]));
}

#[tokio::test]
async fn what_was_used_least_lately_goes_first_and_what_is_in_use_stays() {
    let (_folder, [one, two]) = two_hosts(25);
    let hashes: Vec<String> = (0..4)
        .map(|number| put(&one, &format!("content {number}.")))
        .collect();
    one.share(&hashes).await.expect("room");
    let used = |library: &Library, hash: &str, second| {
        let file = File::options()
            .append(true)
            .open(library.folder().join(hash));
        let at = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(second);
        file.and_then(|file| file.set_modified(at))
            .expect("it is there");
    };
    let at_hand =
        |library: &Library| -> Vec<bool> { hashes.iter().map(|hash| library.has(hash)).collect() };
    assert_eq!(at_hand(&one).iter().filter(|it| **it).count(), 2);
    // Each of ten bytes: two find room.
    two.fetch(&hashes[..2]).await.expect("they are shared");
    used(&two, &hashes[0], 2);
    used(&two, &hashes[1], 1);
    two.fetch(&hashes[2..3]).await.expect("it is shared");
    assert_eq!(at_hand(&two), [true, false, true, false]);
    let in_use = two.using(&hashes[..1]);
    used(&two, &hashes[0], 1);
    two.fetch(&hashes[3..]).await.expect("it is shared");
    assert_eq!(at_hand(&two), [true, false, false, true]);
    drop(in_use);
    used(&two, &hashes[0], 1);
    two.fetch(&hashes[1..2]).await.expect("it is shared");
    assert_eq!(at_hand(&two), [false, true, false, true]);
}
