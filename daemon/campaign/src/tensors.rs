//! What the tensors that cross cuts become when they are compressed, and what 8 bits cost in accuracy (docs/edge.md).

use layerlab_farm::Link;
use layerlab_model::{CrossingTensor, Network, NotCompressed, TensorSpec};
use layerlab_profiles::accuracy::{BadAnswer, EvaluationSet, Tally};
use layerlab_profiles::document::{Processor, ProcessorKind};
use layerlab_profiles::tensors::{
    CrossingAnswer, LeftOut, PackedRow, TENSORS_FORMAT, TENSORS_VERSION, TensorDescription,
    TensorsDocument, TensorsHeader, TensorsModel, TensorsSet, Timed, ZeroRow, drawn_pictures,
};
use layerlab_protocol::{Order, PackedTensor, Work};

use super::orders::{News, Orders, PlannerError};
use super::provenance::provenance;
use super::settings::TensorsSettings;
use super::{
    CampaignError, CampaignFollower, CampaignPart, Journals, KnownJournal, ModelFile, SetFile,
    begun, drive, ended,
};

/// The tensors of a model, compressed while it answers the pictures of a set on one processor of a device.
pub struct TensorsCampaign<'a> {
    /// The model.
    pub model: &'a ModelFile,
    /// The pictures.
    pub set: &'a SetFile,
    /// How many of them are answered, and by what tensors are packed.
    pub settings: &'a TensorsSettings,
}

/// Why the tensors of a model are not compressed over the pictures of a set.
#[derive(Debug, thiserror::Error)]
pub enum UnfitTensors {
    /// All of them are small.
    #[error(
        "no tensor of {model} that crosses a cut has more than one axis, as those between fully connected layers, which are not \
         compressed; choose a model with feature maps"
    )]
    NothingToCompress {
        /// The network's name.
        model: String,
    },
    /// The network takes other images.
    #[error(
        "the images of `{set}` have the shape {has:?} and {model} takes {takes:?}; make a set for it with `layerlab set`"
    )]
    OtherImages {
        /// The set's name.
        set: String,
        /// The shape of its images.
        has: Vec<usize>,
        /// The network's name.
        model: String,
        /// The shapes of its inputs.
        takes: Vec<Vec<u64>>,
    },
    /// An answer takes two images.
    #[error(
        "`{set}` has pairs of images, and tensors are compressed of single ones; make a set of those"
    )]
    Pairs {
        /// The set's name.
        set: String,
    },
    /// The answers cannot be judged.
    #[error(
        "{model} cannot be judged by the labels of `{set}`: {reason}; make a set with its classes, or leave the accuracy out with \
         --sizes-only"
    )]
    OtherAnswers {
        /// The network's name.
        model: String,
        /// The set's name.
        set: String,
        /// What of its answers the metric cannot judge.
        reason: BadAnswer,
    },
    /// So many pictures are not there.
    #[error(
        "`{set}` has {has} pictures, and {asked} cannot be answered; ask for no more than it has"
    )]
    TooFewPictures {
        /// The set's name.
        set: String,
        /// How many it has.
        has: u64,
        /// How many were to be answered.
        asked: u64,
    },
    /// The device lacks the processor.
    #[error("the device has no {}, but {}", wanted.as_ref().map_or_else(|| "CPU".to_owned(), |it| format!("processor `{it}`")), there.join(", "))]
    NoProcessor {
        /// The processor that was asked for.
        wanted: Option<String>,
        /// Those that are there.
        there: Vec<String>,
    },
}

impl TensorsCampaign<'_> {
    /// Whether the model and the set fit each other and the settings, which needs no device.
    ///
    /// # Errors
    /// When they do not.
    pub fn refuse_unfit(&self) -> Result<(), UnfitTensors> {
        let (network, set): (&Network, &EvaluationSet) = (&self.model.network, &self.set.set);
        let (model, name) = (network.name().to_owned(), set.name.clone());
        let mut tensors = network.crossing_tensors().into_iter();
        if tensors.all(|tensor| tensor.not_compressed().is_some()) {
            return Err(UnfitTensors::NothingToCompress { model });
        }
        let inputs = network.inputs();
        let image: Vec<u64> = set.shape.iter().map(|&axis| axis as u64).collect();
        let is_image = |it: &TensorSpec| it.shape.split_first() == Some((&1, &image));
        if !(inputs.len() == 1 && inputs.iter().all(is_image)) {
            return Err(UnfitTensors::OtherImages {
                set: name,
                has: set.shape.clone(),
                model,
                takes: inputs.iter().map(|it| it.shape.clone()).collect(),
            });
        }
        if set.metric.images_per_answer() != 1 {
            return Err(UnfitTensors::Pairs { set: name });
        }
        let has = set.answers() as u64;
        if let Some(asked) = self.settings.pictures.filter(|asked| *asked > has) {
            return Err(UnfitTensors::TooFewPictures {
                set: name,
                has,
                asked,
            });
        }
        let outputs = network.outputs().iter();
        let outputs: Vec<Vec<u64>> = outputs.map(|output| output.shape.clone()).collect();
        let accepted = set.metric.accept_outputs(set.classes.len(), &outputs);
        match accepted {
            Err(reason) if self.settings.judge => Err(UnfitTensors::OtherAnswers {
                model,
                set: name,
                reason,
            }),
            _ => Ok(()),
        }
    }

    /// Which of a device's processors runs the layers: the one that was asked for, or its first CPU.
    ///
    /// # Errors
    /// When it is not among them.
    pub fn processor<'p>(&self, there: &'p [Processor]) -> Result<&'p Processor, UnfitTensors> {
        let wanted = self.settings.processor.as_ref();
        let mut all = there.iter();
        let found = match wanted {
            Some(name) => all.find(|one| one.name == *name),
            None => all.find(|one| one.kind == ProcessorKind::Cpu),
        };
        found.ok_or_else(|| UnfitTensors::NoProcessor {
            wanted: wanted.cloned(),
            there: there.iter().map(|one| one.name.clone()).collect(),
        })
    }

    /// Measures on the device behind `link`, whose journal is forgotten after it.
    ///
    /// # Errors
    /// When the device fails, or cannot run the model.
    pub async fn run<L: Link, F: CampaignFollower>(
        &self,
        link: &L,
        follower: &mut F,
    ) -> Result<TensorsDocument, CampaignError> {
        let journal = begun(follower, CampaignPart::Tensors).await?;
        let document = self.document(link, &journal, follower).await;
        ended(link, follower, journal, document, Journals::AreForgotten).await
    }

    async fn document<L: Link, F: CampaignFollower>(
        &self,
        link: &L,
        journal: &KnownJournal,
        follower: &mut F,
    ) -> Result<TensorsDocument, CampaignError> {
        self.refuse_unfit()?;
        let (model, set, settings) = (self.model, self.set, self.settings);
        let hello = link.connect().await?.hello;
        let processor = self.processor(&hello.processors)?.clone();
        let images = set.set.answers() as u64;
        let pictures = settings.pictures.unwrap_or(TensorsSettings::PICTURES);
        let drawn = drawn_pictures(images, pictures, settings.seed);
        let answered = drawn.len() as u64;
        follower.planned(Some(answered));
        let order = Order {
            run: journal.id.clone(),
            number: 1,
            model_sha256: model.sha256.clone(),
            quantised_sha256: model.quantised_sha256(),
            processor: processor.name.clone(),
            work: Work::PackTensors {
                set_sha256: set.sha256.clone(),
                images: drawn,
                codecs: settings.codecs.clone(),
                judge: settings.judge,
            },
            seed: settings.seed,
        };
        let mut orders = TensorOrders {
            order: Some(order),
            pictures: Vec::new(),
        };
        let files: Vec<_> = model.files().chain([set.file()]).collect();
        drive(link, journal, &files, &mut orders, follower).await?;
        let header = TensorsHeader {
            format: TENSORS_FORMAT.to_owned(),
            version: TENSORS_VERSION,
            timed: match hello.device.simulated {
                true => Timed::No,
                false => Timed::Device,
            },
            device: hello.device.clone(),
            processor,
            model: TensorsModel {
                name: model.network.name().to_owned(),
                sha256: model.source_sha256.clone(),
                quantised_sha256: model.quantised_sha256(),
                layers: model.network.layer_count(),
            },
            set: TensorsSet {
                name: set.set.name.clone(),
                sha256: set.sha256.clone(),
                images,
                metric: set.set.metric.clone(),
            },
            codecs: settings.codecs.clone(),
            tensors: (model.network.crossing_tensors().iter())
                .map(described)
                .collect(),
            judged: settings.judge,
            seed: settings.seed,
            pictures: answered,
            provenance: provenance(link, journal, hello),
        };
        Ok(document(header, &orders.pictures))
    }
}

fn described(tensor: &CrossingTensor) -> TensorDescription {
    TensorDescription {
        tensor: tensor.spec.name.clone(),
        producer_layer: tensor.producer,
        consumer_layers: tensor.consumers.clone(),
        is_output: tensor.is_output,
        shape: tensor.spec.shape.clone(),
        bytes: tensor.spec.bytes(),
        left_out: tensor.not_compressed().map(|reason| match reason {
            NotCompressed::OneAxis => LeftOut::OneAxis,
            NotCompressed::NoFloats => LeftOut::NoFloats,
        }),
    }
}

/// What came of one picture.
struct PackedPicture {
    image: u64,
    /// Of each tensor that is compressed.
    tensors: Vec<PackedTensor>,
    whole: Option<Tally>,
    /// Of each cut at which something was rounded.
    crossed: Vec<Tally>,
}

/// The one order of a measurement, and what came of it.
struct TensorOrders {
    order: Option<Order>,
    pictures: Vec<PackedPicture>,
}

impl Orders for TensorOrders {
    fn next(&mut self, news: &[News]) -> Result<Vec<Order>, PlannerError> {
        for event in news {
            if let News::TensorsPacked {
                image,
                tensors,
                whole,
                crossed,
            } = event
            {
                self.pictures.push(PackedPicture {
                    image: *image,
                    tensors: tensors.clone(),
                    whole: *whole,
                    crossed: crossed.clone(),
                });
            }
        }
        Ok(self.order.take().into_iter().collect())
    }
}

/// The document of these pictures.
fn document(header: TensorsHeader, pictures: &[PackedPicture]) -> TensorsDocument {
    let (mut zeros, mut packed, mut answers) = (Vec::new(), Vec::new(), Vec::new());
    let cuts = header.cuts();
    for picture in pictures {
        let image = picture.image;
        for (tensor, came) in header.compressed().zip(&picture.tensors) {
            zeros.push(ZeroRow {
                image,
                tensor: tensor.tensor.clone(),
                zeros: came.zeros,
                zero_codes: came.zero_codes,
            });
            let packings = header.codecs.iter().zip(&came.packed);
            packed.extend(packings.map(|(&codec, packing)| PackedRow {
                image,
                tensor: tensor.tensor.clone(),
                codec,
                bytes: packing.bytes,
                compress: packing.compress_ns,
                decompress: packing.decompress_ns,
            }));
        }
        let whole = picture.whole.map(|tally| (None, tally)).into_iter();
        let cuts = cuts.iter().copied().map(Some);
        let all = whole.chain(cuts.zip(picture.crossed.iter().copied()));
        answers.extend(all.map(|(cut, tally)| CrossingAnswer { image, cut, tally }));
    }
    TensorsDocument::new(header, zeros, packed, answers)
}
