//! What answering the frames of a video costs a device, and how often it is right (docs/video.md).

use std::collections::BTreeMap;

use layerlab_farm::Link;
use layerlab_model::Network;
use layerlab_profiles::accuracy::{NoPictures, Truth};
use layerlab_profiles::document::Processor;
use layerlab_profiles::video::{
    Coded, Confidence, FrameAnswer, FrameForm, FrameFormat, FrameRow, Half, VIDEO_FORMAT,
    VIDEO_VERSION, VideoDocument, VideoHeader, VideoModel, VideoPart, VideoSet, halves,
};
use layerlab_protocol::{Order, Part, Work};

use super::orders::{News, Orders, PlannerError};
use super::provenance::provenance;
use super::{CampaignError, Follower, KnownJournal, ModelFile, SetFile, drive, forget};

/// Images of one order: a lost phone costs little.
const IMAGES_PER_ORDER: usize = 25;

/// Orders that the agent holds at most, so that it never waits for the next one.
const AHEAD: usize = 2;

/// The sides of the papers' resolutions, in pixels (cbo §V-A, fastva §VI-A).
pub const SIDES: [u32; 5] = [45, 90, 134, 179, 224];

/// The qualities of JPEG that are measured beside PNG, which the papers use.
const QUALITIES: [u8; 2] = [75, 90];

/// What the user may choose about measuring frames.
#[derive(Clone, Debug, PartialEq)]
pub struct VideoSettings {
    /// How many of the set's images to answer.
    pub answers: u64,
    /// How many of them, at most, to answer in all forms: those of the half that judges calibration first.
    pub frames: u64,
    /// What images and halves are drawn from.
    pub seed: u64,
}

/// The forms of frames from a camera of `set`'s size to a network of `input`'s: the papers' resolutions that are no larger than
/// the camera's, and the network's own, each as PNG and as JPEG.
pub fn forms((width, height): (u32, u32), input: (u32, u32)) -> Vec<FrameForm> {
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

/// The width and the height of the pictures that `network` takes.
pub fn input_size(network: &Network) -> Option<(u32, u32)> {
    match network.frontier(0) {
        [spec] => match spec.shape[..] {
            [1, _, height, width] => Some((width as u32, height as u32)),
            _ => None,
        },
        _ => None,
    }
}

/// Where a network answers.
#[derive(Clone, Debug)]
pub struct VideoPlace {
    /// The processor that all layers run on; of a placement, the one that it is named after.
    pub processor: Processor,
    /// The parts of a placement, one after the other; none if all layers run on the processor.
    pub parts: Vec<VideoPart>,
}

/// Answers images on the device behind `link`, as they are and in `forms`, in a journal that is forgotten after it.
///
/// # Errors
/// When the device fails, or cannot run the model.
pub async fn measure_video<L: Link, F: Follower>(
    link: &L,
    model: &ModelFile,
    set: &SetFile,
    place: &VideoPlace,
    forms: &[FrameForm],
    settings: &VideoSettings,
    follower: &mut F,
) -> Result<VideoDocument, MeasureVideoError> {
    let hello = link.connect().await.map_err(CampaignError::from)?.hello;
    let size = set.set.picture_size()?;
    let input = input_size(&model.network).unwrap_or(size);
    let journal = KnownJournal::fresh();
    let all = set.set.answers() as u64;
    let (calibration, test) = halves(all, settings.answers, settings.seed);
    follower.planned(Some((calibration.len() + test.len()) as u64));
    let template = Order {
        run: journal.id.clone(),
        number: 0,
        model_sha256: model.sha256.clone(),
        quantised_sha256: model.quantised_sha256(),
        processor: place.processor.name.clone(),
        work: Work::AnswerFrames {
            set_sha256: set.sha256.clone(),
            images: Vec::new(),
            forms: Vec::new(),
            parts: place
                .parts
                .iter()
                .map(|part| Part {
                    segment: part.segment,
                    processor: part.processor.clone(),
                })
                .collect(),
        },
        seed: settings.seed,
    };
    let mut orders = FrameOrders::new(template, (&test, &calibration), forms, settings.frames);
    let files: Vec<_> = model.files().chain([set.file()]).collect();
    drive(link, &journal, &files, &mut orders, follower)
        .await
        .map_err(CampaignError::from)?;
    let header = VideoHeader {
        format: VIDEO_FORMAT.to_owned(),
        version: VIDEO_VERSION,
        coded: match hello.device.simulated {
            true => Coded::PlayingMachine,
            false => Coded::Device,
        },
        device: hello.device.clone(),
        processor: place.processor.clone(),
        placement: place.parts.clone(),
        model: VideoModel {
            name: model.network.name().to_owned(),
            sha256: model.source_sha256.clone(),
            quantised_sha256: model.quantised_sha256(),
            width: input.0,
            height: input.1,
        },
        set: VideoSet {
            name: set.set.name.clone(),
            sha256: set.sha256.clone(),
            images: all,
            width: size.0,
            height: size.1,
            classes: set.set.classes.clone(),
            preprocessing: set.set.preprocessing.clone(),
            metric: set.set.metric.clone(),
        },
        // The document knows when it has the scores.
        confidence: Confidence::AsAnswered,
        seed: settings.seed,
        answers: 0,
        provenance: provenance(link, &journal, hello),
    };
    let labels = |image: u64| match set.set.truths.get(image as usize) {
        Some(Truth::Labels(labels)) => labels.clone(),
        _ => Vec::new(),
    };
    let halves = [(Half::Calibration, &calibration), (Half::Test, &test)];
    let answers = halves.into_iter().flat_map(|(half, images)| {
        let answered = images.iter().filter_map(|image| orders.answered.get(image));
        answered.map(move |answer| FrameAnswer {
            half,
            labels: labels(answer.image),
            ..answer.clone()
        })
    });
    let answers = answers.collect();
    let document = VideoDocument::new(header, answers, orders.frames);
    forget(link, journal.id).await;
    Ok(document)
}

/// Why frames were not measured.
#[derive(Debug, thiserror::Error)]
pub enum MeasureVideoError {
    /// The device failed.
    #[error(transparent)]
    Campaign(#[from] CampaignError),
    /// The set has no pictures.
    #[error(transparent)]
    NoPictures(#[from] NoPictures),
}

/// The orders of a measurement, slice by slice of the images, and what came of them.
struct FrameOrders<'a> {
    template: Order,
    forms: &'a [FrameForm],
    /// Images, and whether they are answered in all forms, that are not ordered yet.
    left: Vec<(Vec<u64>, bool)>,
    /// Whether the images of an order are answered in all forms, by the order's number.
    open: BTreeMap<u32, bool>,
    next_number: u32,
    answered: BTreeMap<u64, FrameAnswer>,
    frames: Vec<FrameRow>,
}

impl<'a> FrameOrders<'a> {
    /// The first `in_all_forms` images, those of the test half first, are answered in all forms.
    fn new(
        template: Order,
        (test, calibration): (&[u64], &[u64]),
        forms: &'a [FrameForm],
        in_all_forms: u64,
    ) -> FrameOrders<'a> {
        let images: Vec<u64> = test.iter().chain(calibration).copied().collect();
        let in_all_forms = usize::try_from(in_all_forms).unwrap_or(usize::MAX);
        let (with, without) = images.split_at(in_all_forms.min(images.len()));
        let slices = |images: &[u64], all_forms| {
            let slices = images.chunks(IMAGES_PER_ORDER);
            slices
                .map(|slice| (slice.to_vec(), all_forms))
                .collect::<Vec<_>>()
        };
        let mut left = slices(with, true);
        left.extend(slices(without, false));
        left.reverse();
        FrameOrders {
            template,
            forms,
            left,
            open: BTreeMap::new(),
            next_number: 1,
            answered: BTreeMap::new(),
            frames: Vec::new(),
        }
    }

    fn order(&mut self) -> Option<Order> {
        let (slice, all_forms) = self.left.pop()?;
        let mut order = self.template.clone();
        order.number = self.next_number;
        self.next_number += 1;
        if let Work::AnswerFrames { images, forms, .. } = &mut order.work {
            *images = slice;
            if all_forms {
                *forms = self.forms.to_vec();
            }
        }
        self.open.insert(order.number, all_forms);
        Some(order)
    }
}

impl Orders for FrameOrders<'_> {
    fn next(&mut self, news: &[News]) -> Result<Vec<Order>, PlannerError> {
        for event in news {
            match event {
                News::FramesAnswered {
                    image,
                    infer,
                    score_bits,
                    forms,
                    ..
                } => {
                    self.answered
                        .insert(*image, answer(*image, *infer, score_bits));
                    let forms = self.forms.iter().zip(forms);
                    self.frames.extend(forms.map(|(form, came)| FrameRow {
                        image: *image,
                        form: *form,
                        bytes: came.bytes,
                        resize: came.resize_ns,
                        encode: came.encode_ns,
                        decode: came.decode_ns,
                        upscale: came.upscale_ns,
                        infer: came.infer_ns,
                        predicted: came.class,
                        hit: false,
                    }));
                }
                News::Finished(order) => {
                    self.open.remove(order);
                }
                _ => {}
            }
        }
        let free = AHEAD.saturating_sub(self.open.len());
        Ok((0..free).map_while(|_| self.order()).collect())
    }
}

/// An answer, of which the rest is filled in when all are there.
fn answer(image: u64, infer: layerlab_profiles::Nanos, score_bits: &[u32]) -> FrameAnswer {
    FrameAnswer {
        image,
        half: Half::Test,
        labels: Vec::new(),
        predicted: None,
        confidence: 0.0,
        infer,
        scores: score_bits
            .iter()
            .map(|&bits| f32::from_bits(bits))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use layerlab_profiles::{Bytes, Nanos};
    use layerlab_protocol::FormAnswer;

    use super::*;

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
    fn every_image_is_ordered_once_and_the_first_in_all_forms() {
        let template = Order {
            run: layerlab_protocol::RunId::new("r").expect("a name"),
            number: 0,
            model_sha256: String::new(),
            quantised_sha256: None,
            processor: "npu".to_owned(),
            work: Work::AnswerFrames {
                set_sha256: String::new(),
                images: Vec::new(),
                forms: Vec::new(),
                parts: Vec::new(),
            },
            seed: 1,
        };
        let (test, calibration): (Vec<u64>, Vec<u64>) = ((0..30).collect(), (30..61).collect());
        let forms = forms((45, 45), (45, 45));
        let mut orders = FrameOrders::new(template, (&test, &calibration), &forms, 10);
        let mut open = orders.next(&[]).expect("orders");
        assert_eq!(open.len(), AHEAD);
        while let Some(order) = open.pop() {
            let Work::AnswerFrames { images, forms, .. } = &order.work else {
                panic!("frames")
            };
            for &image in images {
                assert_eq!(forms.is_empty(), image >= 10, "{image}");
                let came = FormAnswer {
                    bytes: Bytes::from_bytes(9),
                    resize_ns: Nanos::ZERO,
                    encode_ns: Nanos::ZERO,
                    decode_ns: Nanos::ZERO,
                    upscale_ns: Nanos::ZERO,
                    infer_ns: Nanos::ZERO,
                    class: Some(1),
                };
                let news = News::FramesAnswered {
                    order: order.number,
                    image,
                    infer: Nanos::ZERO,
                    score_bits: vec![0.5_f32.to_bits()],
                    forms: vec![came; forms.len()],
                };
                open.extend(orders.next(&[news]).expect("orders"));
            }
            open.extend(
                orders
                    .next(&[News::Finished(order.number)])
                    .expect("orders"),
            );
        }
        assert_eq!(orders.answered.len(), 61);
        assert_eq!(orders.frames.len(), 10 * forms.len());
        assert_eq!(orders.answered[&60].scores, [0.5]);
    }
}
