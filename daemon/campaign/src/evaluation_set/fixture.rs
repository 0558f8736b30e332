//! What the tests of this module share: a folder with small images and annotations, and a source of them.

use std::path::{Path, PathBuf};

use image::{Rgb, RgbImage};
use layerlab_profiles::accuracy::{Metric, Preprocessing, Resize};

use super::{Annotations, Loaded, SetError, Source};

pub(super) const MULTI_LABEL: Metric = Metric::MultiLabel { threshold: 0.5 };

pub(super) const DETECTION: Metric = Metric::Detection {
    grid: 7,
    boxes: 2,
    threshold: 0.2,
    suppress_above: 0.5,
    match_at_least: 0.5,
};

/// A folder with the images `a.png`, `b.jpg` and `more/c.png`, each 40 wide and 20 high, and what tests add.
pub(super) struct Folder(tempfile::TempDir);

impl Folder {
    pub(super) fn new() -> Folder {
        let folder = Folder(tempfile::tempdir().expect("a folder"));
        std::fs::create_dir(folder.path("more")).expect("a folder");
        for (name, colour) in [("a.png", 10), ("b.jpg", 20), ("more/c.png", 30)] {
            let image = RgbImage::from_pixel(40, 20, Rgb([colour; 3]));
            image.save(folder.path(name)).expect("room");
        }
        folder
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(super) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).expect("room");
        }
        std::fs::write(&path, content).expect("room");
        path
    }

    /// A source of 10 x 10 images, stretched.
    pub(super) fn source(&self, annotations: Annotations, metric: Metric) -> Source {
        Source {
            annotations,
            images: self.0.path().to_owned(),
            size: (10, 10),
            preprocessing: Preprocessing {
                resize: Resize::Stretch,
                channels: "rgb".to_owned(),
                mean: Vec::new(),
                scale: 1.0,
            },
            metric,
            classes: None,
            limit: None,
            name: "test".to_owned(),
        }
    }
}

/// `names` as the user gives classes.
pub(super) fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

/// The sentence of a refusal has all of `words` in it, on one line.
#[track_caller]
pub(super) fn assert_refused(loaded: Result<Loaded, SetError>, words: &[&str]) {
    let said = loaded.map(|_| ()).expect_err("refused").to_string();
    for word in words {
        assert!(said.contains(word), "`{word}` is missing in: {said}");
    }
    assert!(!said.contains('\n'), "more than one line: {said}");
}

/// Whether `path` is named in full.
pub(super) fn named(path: &Path) -> String {
    format!("`{}`", path.display())
}
