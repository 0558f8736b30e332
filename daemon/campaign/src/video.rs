//! What answering the frames of a video costs a device, and how often it is right (docs/video.md).

use std::collections::BTreeMap;

use layerlab_farm::Link;
use layerlab_profiles::accuracy::Truth;
use layerlab_profiles::document::Processor;
use layerlab_profiles::video::{
    Coded, Confidence, FrameAnswer, FrameForm, FrameRow, Half, VIDEO_FORMAT, VIDEO_VERSION,
    VideoDocument, VideoHeader, VideoModel, VideoSet, halves,
};
use layerlab_protocol::{Order, Part, Work};

use super::frame_sizes::{FrameSizes, UnfitFrames, answering_processor, naming_processor};
use super::orders::{News, Orders, PlannerError};
use super::provenance::provenance;
use super::settings::VideoSettings;
use super::{
    CampaignError, CampaignFollower, CampaignPart, Journals, KnownJournal, ModelFile, SetFile,
    begun, drive, ended,
};

/// Images of one order: a lost phone costs little.
const IMAGES_PER_ORDER: usize = 25;

/// Orders that the agent holds at most, so that it never waits for the next one.
const AHEAD: usize = 2;

/// A model's answers to the images of a set, as they are and in every form, on one processor of a device.
pub struct VideoCampaign<'a> {
    /// The model.
    pub model: &'a ModelFile,
    /// The images, labelled: frames as the camera delivers them.
    pub set: &'a SetFile,
    /// How many of them are answered, and on what.
    pub settings: &'a VideoSettings,
}

impl VideoCampaign<'_> {
    /// Whether the model and the set fit each other and the settings, which needs no device.
    ///
    /// # Errors
    /// When they do not.
    pub fn sizes(&self) -> Result<FrameSizes, UnfitFrames> {
        FrameSizes::of(&self.set.set, &self.model.network, self.settings)
    }

    /// Which of a device's processors answers.
    ///
    /// # Errors
    /// When the one that was asked for is not among them.
    pub fn processor<'p>(&self, there: &'p [Processor]) -> Result<&'p Processor, UnfitFrames> {
        let named = naming_processor(there, &self.settings.parts)?;
        match named {
            Some(processor) => Ok(processor),
            None => answering_processor(there, self.settings.processor.as_deref()),
        }
    }

    /// Measures on the device behind `link`, whose journal is forgotten after it.
    ///
    /// # Errors
    /// When the device fails, or cannot run the model.
    pub async fn run<L: Link, F: CampaignFollower>(
        &self,
        link: &L,
        follower: &mut F,
    ) -> Result<VideoDocument, CampaignError> {
        self.answers(link, follower, Journals::AreForgotten).await
    }

    /// The same where the journal stays on the device, so that a measurement that was interrupted can go on from it; whoever
    /// kept it has it [forgotten](super::forget).
    ///
    /// # Errors
    /// When the device fails, or cannot run the model.
    pub async fn measure<L: Link, F: CampaignFollower>(
        &self,
        link: &L,
        follower: &mut F,
    ) -> Result<VideoDocument, CampaignError> {
        self.answers(link, follower, Journals::Stay).await
    }

    async fn answers<L: Link, F: CampaignFollower>(
        &self,
        link: &L,
        follower: &mut F,
        journals: Journals,
    ) -> Result<VideoDocument, CampaignError> {
        let sizes = self.sizes()?;
        let journal = begun(follower, CampaignPart::Video).await?;
        let document = self.document(link, sizes, &journal, follower).await;
        ended(link, follower, journal, document, journals).await
    }

    async fn document<L: Link, F: CampaignFollower>(
        &self,
        link: &L,
        sizes: FrameSizes,
        journal: &KnownJournal,
        follower: &mut F,
    ) -> Result<VideoDocument, CampaignError> {
        let (model, set, settings) = (self.model, self.set, self.settings);
        let hello = link.connect().await?.hello;
        let processor = self.processor(&hello.processors)?.clone();
        let all = set.set.answers() as u64;
        let (calibration, test) = halves(all, settings.answers.unwrap_or(all), settings.seed);
        follower.planned(Some((calibration.len() + test.len()) as u64));
        let template = Order {
            run: journal.id.clone(),
            number: 0,
            model_sha256: model.sha256.clone(),
            quantised_sha256: model.quantised_sha256(),
            processor: processor.name.clone(),
            work: Work::AnswerFrames {
                set_sha256: set.sha256.clone(),
                images: Vec::new(),
                forms: Vec::new(),
                parts: settings
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
        let forms = sizes.forms();
        let mut orders = FrameOrders::new(template, (&test, &calibration), &forms, settings.frames);
        let files: Vec<_> = model.files().chain([set.file()]).collect();
        drive(link, journal, &files, &mut orders, follower).await?;
        let header = VideoHeader {
            format: VIDEO_FORMAT.to_owned(),
            version: VIDEO_VERSION,
            coded: match hello.device.simulated {
                true => Coded::PlayingMachine,
                false => Coded::Device,
            },
            device: hello.device.clone(),
            processor,
            placement: settings.parts.clone(),
            model: VideoModel {
                name: model.network.name().to_owned(),
                sha256: model.source_sha256.clone(),
                quantised_sha256: model.quantised_sha256(),
                width: sizes.input.0,
                height: sizes.input.1,
            },
            set: VideoSet {
                name: set.set.name.clone(),
                sha256: set.sha256.clone(),
                images: all,
                width: sizes.camera.0,
                height: sizes.camera.1,
                classes: set.set.classes.clone(),
                preprocessing: set.set.preprocessing.clone(),
                metric: set.set.metric.clone(),
            },
            // The document knows when it has the scores.
            confidence: Confidence::AsAnswered,
            seed: settings.seed,
            answers: 0,
            provenance: provenance(link, journal, hello),
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
        Ok(VideoDocument::new(header, answers, orders.frames))
    }
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
        let forms = FrameSizes {
            camera: (45, 45),
            input: (45, 45),
        };
        let forms = forms.forms();
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
