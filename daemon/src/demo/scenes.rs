//! The labelled images that come with layerlab: drawn scenes, on which the network of the demo was trained.

use include_dir::{Dir, include_dir};
use layerlab_campaign::SetFile;
use layerlab_campaign::evaluation_set::{Annotations, Source};
use layerlab_profiles::accuracy::{Metric, Preprocessing, Resize};

use crate::exit::{Code, ExitWith, Failure};

static IMAGES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../tests/models/scenes/images");
const ANNOTATIONS: &[u8] = include_bytes!("../../../tests/models/scenes/annotations.json");

/// What the network takes.
const SIZE: (u32, u32) = (112, 112);

/// The first so many scenes as an evaluation set.
pub(super) fn scenes(images: usize) -> Result<SetFile, Failure> {
    let folder = tempfile::tempdir().exit_with(Code::Output)?;
    let annotations = folder.path().join("annotations.json");
    IMAGES.extract(folder.path()).exit_with(Code::Output)?;
    std::fs::write(&annotations, ANNOTATIONS).exit_with(Code::Output)?;
    let source = Source {
        annotations: Annotations::Coco(annotations),
        images: folder.path().to_owned(),
        size: SIZE,
        preprocessing: Preprocessing {
            resize: Resize::Stretch,
            channels: "rgb".to_owned(),
            mean: Vec::new(),
            scale: 1.0,
        },
        metric: Metric::MultiLabel { threshold: 0.5 },
        classes: None,
        limit: Some(images),
        name: "scenes".to_owned(),
    };
    let loaded = source.load().exit_with(Code::Internal)?;
    let bytes = loaded.set.to_bytes().exit_with(Code::Internal)?;
    SetFile::from_bytes(bytes).exit_with(Code::Internal)
}
