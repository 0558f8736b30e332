//! What the tests share: the committed models, models built in code, and running either with tract.

pub(crate) mod build;
pub(crate) mod run;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The folder of the models that the repository carries.
pub(crate) fn models() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/models")
}

/// Committed models that are not meant to be profiled.
const REFUSED: [&str; 2] = ["no-layers", "unknown-operator"];

/// The committed models that can be profiled, by name, each with what it leaves open besides the batch.
pub(crate) fn profiled() -> Vec<(String, PathBuf, BTreeMap<String, u64>)> {
    let mut found: Vec<_> = [models(), models().join("variants")]
        .iter()
        .flat_map(|folder| std::fs::read_dir(folder).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "onnx")
        })
        .map(|path| (path.file_stem().unwrap().to_str().unwrap().to_owned(), path))
        .filter(|(stem, _)| !REFUSED.contains(&stem.as_str()))
        .map(|(stem, path)| {
            let dims = match stem.as_str() {
                "symbolic-size" => BTreeMap::from([("H".to_owned(), 32), ("W".to_owned(), 32)]),
                _ => BTreeMap::new(),
            };
            (stem, path, dims)
        })
        .collect();
    found.sort();
    assert!(found.len() >= 5, "only {} models were found", found.len());
    found
}
