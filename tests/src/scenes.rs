//! Evaluation sets of the committed scenes.

use std::path::{Path, PathBuf};

use crate::{layerlab, root, succeed};

/// A set of the first scenes in `folder`, as a camera of 112x112 pixels delivers them, which vocnet-mini answers.
pub fn scenes(folder: &Path, images: u32, options: &[&str]) -> PathBuf {
    let scenes = root().join("tests/models/scenes");
    let out = folder.join("scenes.set");
    let mut set = layerlab();
    set.arg("set");
    set.arg("--coco").arg(scenes.join("annotations.json"));
    set.arg("--images").arg(scenes.join("images"));
    set.args(["--size", "112x112", "--limit", &images.to_string()]);
    succeed(set.args(options).arg("--out").arg(&out));
    out
}

/// The evaluation set that the published profiles of vocnet-mini and yolo-mini were measured with, in `folder`, which is made. A
/// profile names its set after the file.
pub fn scenes_of_published(model: &str, folder: &Path) -> PathBuf {
    let metric: &[&str] = match model {
        "yolo-mini" => &["detection", "--threshold", "0.25"],
        _ => &["multi-label"],
    };
    std::fs::create_dir(folder).expect("room");
    let scenes = root().join("tests/models/scenes");
    let out = folder.join("scenes.set");
    let mut set = layerlab();
    set.arg("set");
    set.arg("--coco").arg(scenes.join("annotations.json"));
    set.arg("--images").arg(scenes.join("images"));
    set.args(["--size", "112x112", "--metric"]).args(metric);
    succeed(set.arg("--out").arg(&out));
    out
}
