//! The objects of the held-out pictures, each cut out, as `tests/models/objects.py` does it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use image::imageops;
use layerlab_tests::{layerlab, root, succeed};
use serde_json::Value;

/// What is seen around an object on each side, in pixels.
const MARGIN: u32 = 4;

/// The objects of the first pictures find ranges; no other answer depends on them.
const PICTURES_FOR_RANGES: u32 = 100;

/// Evaluation sets of objects.
pub(crate) struct CutOut {
    /// To find ranges on.
    pub(crate) ranges: PathBuf,
    /// To measure.
    pub(crate) measured: PathBuf,
}

impl CutOut {
    /// Cuts the objects out, into `folder`.
    pub(crate) fn new(folder: &Path) -> CutOut {
        let scenes = root().join("tests/models/scenes");
        let text = std::fs::read_to_string(scenes.join("annotations.json")).expect("committed");
        let described: Value = serde_json::from_str(&text).expect("JSON");
        let categories = described["categories"].as_array().expect("a list").iter();
        let classes: Vec<&str> = categories
            .map(|category| category["name"].as_str().expect("a name"))
            .collect();
        let heads = || "image,label\n".to_owned();
        let (mut ranges, mut measured) = (heads(), heads());
        let objects = described["annotations"].as_array().expect("a list");
        for (place, object) in objects.iter().enumerate() {
            let picture = number(&object["image_id"]);
            let file = scenes.join(format!("images/{picture:06}.jpg"));
            let pixels = image::open(file).expect("a picture").to_rgb8();
            let [x, y, width, height] = [0, 1, 2, 3].map(|at| number(&object["bbox"][at]));
            let (left, top) = (x.saturating_sub(MARGIN), y.saturating_sub(MARGIN));
            let right = (x + width + MARGIN).min(pixels.width());
            let bottom = (y + height + MARGIN).min(pixels.height());
            let object_alone = imageops::crop_imm(&pixels, left, top, right - left, bottom - top);
            let name = format!("{place:06}.png");
            let saved = object_alone.to_image().save(folder.join(&name));
            saved.expect("room");
            let class = classes[number(&object["category_id"]) as usize - 1];
            let table = match picture <= PICTURES_FOR_RANGES {
                true => &mut ranges,
                false => &mut measured,
            };
            // Writing to a text does not fail.
            let _ = writeln!(table, "{name},{class}");
        }
        let set = |name: &str, table: String| {
            let (labels, out) = (
                folder.join(format!("{name}.csv")),
                folder.join(format!("{name}.set")),
            );
            std::fs::write(&labels, table).expect("room");
            let mut command = layerlab();
            command.args(["set", "--size", "40x40", "--metric", "top-1"]);
            command.args(["--classes", &classes.join(",")]);
            command
                .arg("--labels")
                .arg(labels)
                .arg("--images")
                .arg(folder);
            succeed(command.arg("--out").arg(&out));
            out
        };
        CutOut {
            ranges: set("ranges", ranges),
            measured: set("measured", measured),
        }
    }
}

fn number(value: &Value) -> u32 {
    value.as_u64().expect("a number") as u32
}
