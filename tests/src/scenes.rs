//! Evaluation sets of the committed scenes.

use std::path::{Path, PathBuf};

use crate::{layerlab, root, succeed};

/// A set of the first scenes in `folder`, as a camera of 112x112 pixels delivers them, which vocnet-mini answers.
pub fn scenes(folder: &Path, images: u32, options: &[&str]) -> PathBuf {
    let limit = images.to_string();
    set(folder, &[&["--limit", &limit], options].concat())
}

/// The set in `folder`, which is made, that the published profiles of vocnet-mini and yolo-mini were measured with.
pub fn scenes_of_published(model: &str, folder: &Path) -> PathBuf {
    let metric: &[&str] = match model {
        "yolo-mini" => &["detection", "--threshold", "0.25"],
        _ => &["multi-label"],
    };
    std::fs::create_dir(folder).expect("room");
    set(folder, &[&["--metric"], metric].concat())
}

/// A profile names its set after the file: all are `scenes`.
fn set(folder: &Path, options: &[&str]) -> PathBuf {
    let scenes = root().join("tests/models/scenes");
    let out = folder.join("scenes.set");
    let mut set = layerlab();
    set.args(["set", "--size", "112x112"]);
    set.arg("--coco").arg(scenes.join("annotations.json"));
    set.arg("--images").arg(scenes.join("images"));
    succeed(set.args(options).arg("--out").arg(&out));
    out
}
