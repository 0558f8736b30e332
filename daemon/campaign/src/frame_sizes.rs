//! Frames of which sizes a network answers, and what keeps it from answering any: what must be known before a device is asked.

use layerlab_model::{Network, TensorSpec};
use layerlab_profiles::Segment;
use layerlab_profiles::accuracy::{EvaluationSet, Metric, NoPictures};
use layerlab_profiles::document::{Processor, ProcessorKind};
use layerlab_profiles::video::{FrameForm, FrameFormat, VideoPart};

use super::settings::VideoSettings;

/// The sides of the papers' resolutions, in pixels (cbo §V-A, fastva §VI-A).
const SIDES: [u32; 5] = [45, 90, 134, 179, 224];

/// The qualities of JPEG that are measured beside PNG, which the papers use.
const QUALITIES: [u8; 2] = [75, 90];

/// Widths and heights in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameSizes {
    /// A frame as the camera delivers it.
    pub camera: (u32, u32),
    /// What the network takes.
    pub input: (u32, u32),
}

/// Why a model does not answer the frames of a set.
#[derive(Debug, thiserror::Error)]
pub enum UnfitFrames {
    /// The set has no pictures.
    #[error(transparent)]
    NoPictures(#[from] NoPictures),
    /// The network's input is no image.
    #[error("{model} takes no images: its input is not 1 x channels x height x width")]
    NoImages {
        /// The network's name.
        model: String,
    },
    /// Its images have other channels than the set's.
    #[error(
        "{model} takes images of {takes} channels, and those of `{set}` have {has}; make a set for it with `layerlab set`"
    )]
    Channels {
        /// The network's name.
        model: String,
        /// How many channels it takes.
        takes: u64,
        /// The set's name.
        set: String,
        /// How many channels its images have.
        has: u64,
    },
    /// Nothing is left to judge by.
    #[error(
        "`{set}` has one image, and one half of the images judges what was learnt from the other; make a larger set"
    )]
    OneImage {
        /// The set's name.
        set: String,
    },
    /// So many images are not there.
    #[error(
        "`{set}` has {has} images, and {asked} cannot be answered; ask for no more than it has, or for all of them"
    )]
    TooFewImages {
        /// The set's name.
        set: String,
        /// How many it has.
        has: u64,
        /// How many were to be answered.
        asked: u64,
    },
    /// There is nothing to be sure of.
    #[error(
        "a confidence is that of a class, and the metric of `{set}` asks for none; make a set with --metric top-1 or \
         multi-label"
    )]
    NoClasses {
        /// The set's name.
        set: String,
    },
    /// The network knows other classes.
    #[error(
        "{model} answers with {scores} scores, and `{set}` has {classes} classes; name the classes of the model with \
         `layerlab set --classes`"
    )]
    OtherClasses {
        /// The network's name.
        model: String,
        /// How many scores it answers with.
        scores: u64,
        /// The set's name.
        set: String,
        /// How many classes it has.
        classes: u64,
    },
    /// The parts of the placement leave layers out.
    #[error("a placement names layers 1 to {layers} of {model}, one part after the other")]
    Placement {
        /// The network's name.
        model: String,
        /// How many layers it has.
        layers: u32,
    },
    /// The device lacks the processor.
    #[error("the device has no processor `{wanted}`, but {}", there.join(", "))]
    NoProcessor {
        /// The processor that was to answer.
        wanted: String,
        /// Those that are there.
        there: Vec<String>,
    },
}

impl FrameSizes {
    /// The sizes of `set`'s frames and of `network`'s input.
    ///
    /// # Errors
    /// When the network cannot answer them, or does not answer with their classes.
    pub fn of(
        set: &EvaluationSet,
        network: &Network,
        settings: &VideoSettings,
    ) -> Result<FrameSizes, UnfitFrames> {
        let camera = set.picture_size()?;
        let (model, name) = (network.name().to_owned(), set.name.clone());
        let Some((takes, input)) = image_input(network) else {
            return Err(UnfitFrames::NoImages { model });
        };
        let has = set.shape.first().copied().unwrap_or(0) as u64;
        if takes != has {
            return Err(UnfitFrames::Channels {
                model,
                takes,
                set: name,
                has,
            });
        }
        let images = set.answers() as u64;
        if images < 2 {
            return Err(UnfitFrames::OneImage { set: name });
        }
        if let Some(asked) = settings.answers.filter(|asked| *asked > images) {
            return Err(UnfitFrames::TooFewImages {
                set: name,
                has: images,
                asked,
            });
        }
        if !matches!(set.metric, Metric::TopK { .. } | Metric::MultiLabel { .. }) {
            return Err(UnfitFrames::NoClasses { set: name });
        }
        let outputs = network.outputs().iter();
        let scores: u64 = outputs.map(TensorSpec::elements).sum();
        let classes = set.classes.len() as u64;
        if scores != classes {
            return Err(UnfitFrames::OtherClasses {
                model,
                scores,
                set: name,
                classes,
            });
        }
        let layers = network.layer_count();
        let parts = settings.parts.iter().map(|part| part.segment);
        match Segment::chained(parts) {
            Some(placed) if placed == 0 || placed == layers => Ok(FrameSizes { camera, input }),
            _ => Err(UnfitFrames::Placement { model, layers }),
        }
    }

    /// The forms in which frames are answered: in the papers' resolutions that are no larger than the camera's, and in the
    /// network's own, each as PNG and as JPEG.
    pub fn forms(&self) -> Vec<FrameForm> {
        let ((width, height), input) = (self.camera, self.input);
        let fits = |side: &u32| *side <= width && *side <= height;
        let mut sizes: Vec<(u32, u32)> = SIDES
            .into_iter()
            .filter(fits)
            .map(|side| (side, side))
            .collect();
        sizes.push((input.0.min(width), input.1.min(height)));
        sizes.sort_unstable();
        sizes.dedup();
        let encodings = || {
            let jpeg = QUALITIES.map(|quality| (FrameFormat::Jpeg, Some(quality)));
            [(FrameFormat::Png, None)].into_iter().chain(jpeg)
        };
        let of_size = |(width, height)| {
            encodings().map(move |(format, quality)| FrameForm {
                width,
                height,
                format,
                quality,
            })
        };
        sizes.into_iter().flat_map(of_size).collect()
    }

    /// Which of the papers' resolutions are left out because the camera's are smaller, and what helps; nothing if none are.
    pub fn left_out(&self) -> Option<String> {
        let (width, height) = self.camera;
        let too_large = SIDES.iter().filter(|side| **side > width.min(height));
        let too_large: Vec<String> = too_large.map(ToString::to_string).collect();
        (!too_large.is_empty()).then(|| {
            format!(
                "the set's images are {width}x{height}, so that frames of {} pixels are left out; make a set of larger images \
                 with `layerlab set --size`",
                too_large.join(", ")
            )
        })
    }
}

/// How many channels the pictures have that `network` takes, and their size.
fn image_input(network: &Network) -> Option<(u64, (u32, u32))> {
    match network.inputs() {
        [spec] => match spec.shape[..] {
            [1, channels, height, width] => Some((channels, (width as u32, height as u32))),
            _ => None,
        },
        _ => None,
    }
}

/// The processor that a placement is named after: the first of its parts that is emulated, so that nobody takes its times for a
/// phone's; else the first accelerator, without one the first part's.
pub(super) fn naming_processor<'a>(
    there: &'a [Processor],
    parts: &[VideoPart],
) -> Result<Option<&'a Processor>, UnfitFrames> {
    let of_parts = parts
        .iter()
        .map(|part| answering_processor(there, Some(&part.processor)));
    let of_parts: Vec<&Processor> = of_parts.collect::<Result<_, _>>()?;
    let first = |is: fn(&Processor) -> bool| of_parts.iter().find(|one| is(one));
    let emulated = first(|one| one.emulated);
    let accelerator = first(|one| one.kind == ProcessorKind::Accelerator);
    Ok(emulated.or(accelerator).or(of_parts.first()).copied())
}

/// The processor of this name, or the one that a phone would answer frames on: its first accelerator, without one its first
/// CPU.
pub(super) fn answering_processor<'a>(
    there: &'a [Processor],
    name: Option<&str>,
) -> Result<&'a Processor, UnfitFrames> {
    let of_kind = |kind| there.iter().find(move |one| one.kind == kind);
    let found = match name {
        Some(name) => there.iter().find(|one| one.name == name),
        None => of_kind(ProcessorKind::Accelerator).or_else(|| of_kind(ProcessorKind::Cpu)),
    };
    found.ok_or_else(|| UnfitFrames::NoProcessor {
        wanted: name.unwrap_or_default().to_owned(),
        there: there.iter().map(|one| one.name.clone()).collect(),
    })
}

#[cfg(test)]
mod tests {
    use layerlab_profiles::document::Numerics;

    use super::*;

    fn forms(camera: (u32, u32), input: (u32, u32)) -> Vec<FrameForm> {
        FrameSizes { camera, input }.forms()
    }

    #[test]
    fn forms_are_the_papers_resolutions_up_to_the_cameras_and_the_networks_own() {
        let small = forms((112, 112), (112, 112));
        let sizes: Vec<String> = small.iter().map(ToString::to_string).collect();
        assert_eq!(
            sizes,
            [
                "45x45 png",
                "45x45 jpeg-75",
                "45x45 jpeg-90",
                "90x90 png",
                "90x90 jpeg-75",
                "90x90 jpeg-90",
                "112x112 png",
                "112x112 jpeg-75",
                "112x112 jpeg-90"
            ]
        );
        assert_eq!(forms((640, 480), (224, 224)).len(), 15);
        assert_eq!(forms((640, 480), (299, 299)).len(), 18);
        // A network's input is no reason to make frames larger than the camera's.
        assert_eq!(forms((30, 20), (224, 224))[0].width, 30);
    }

    #[test]
    fn a_placement_with_an_emulated_part_is_named_after_that() {
        let processor = |name: &str, kind, emulated| Processor {
            name: name.to_owned(),
            kind,
            numerics: Numerics::F32,
            emulated,
            runtime: "test".to_owned(),
            runtime_version: "1".to_owned(),
            runtime_options: None,
            runtime_libraries: None,
            memory_bytes: None,
            threads: None,
            pinned_to_cores: None,
        };
        let there = [
            processor("cpu", ProcessorKind::Cpu, false),
            processor("gpu", ProcessorKind::Accelerator, false),
            processor("htp", ProcessorKind::Accelerator, true),
        ];
        let named = |names: &[&str]| {
            let part = |(place, name): (usize, &&str)| VideoPart {
                segment: Segment::single(place as u32 + 1),
                processor: (*name).to_owned(),
            };
            let parts: Vec<VideoPart> = names.iter().enumerate().map(part).collect();
            let named = naming_processor(&there, &parts);
            named.map(|found| found.map(|it| it.name.clone()))
        };
        for (parts, name) in [
            (&["cpu", "gpu", "htp"][..], Some("htp")),
            (&["cpu", "gpu"], Some("gpu")),
            (&["cpu"], Some("cpu")),
            (&[], None),
        ] {
            assert_eq!(named(parts).expect("they are there").as_deref(), name);
        }
        assert!(named(&["cpu", "tpu"]).is_err());
    }

    #[test]
    fn resolutions_that_the_camera_does_not_have_are_named() {
        let sizes = |side| FrameSizes {
            camera: (side, 300),
            input: (112, 112),
        };
        assert_eq!(sizes(224).left_out(), None);
        let said = sizes(112).left_out().expect("a note");
        assert!(
            said.contains("112x300") && said.contains("134, 179, 224 pixels"),
            "{said}"
        );
    }
}
