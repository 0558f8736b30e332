//! Orders to pack tensors: those that cross cuts while a network answers images, each packed and unpacked by each codec, and
//! what the answers are worth when a cut's tensors cross in 8 bits (jointdnn §4.2).
//!
//! Packing is done here, on one thread of this machine's CPU. Where the agent plays a simulated device, that is another machine
//! than the one that is simulated, and no time is told.

use std::collections::HashSet;
use std::hint::black_box;
use std::time::Instant;

use layerlab_model::{CrossingTensor, Network};
use layerlab_profiles::accuracy::{EvaluationSet, Tally};
use layerlab_profiles::tensors::TensorCodec;
use layerlab_profiles::{Bytes, Nanos, Segment};
use layerlab_protocol::{Event, FailureKind, PackedTensor, Packing};

use crate::ModelWithTwin;
use crate::compression::{Affine, CompressionError, compress, decompress, rounded};
use crate::device::Device;
use crate::ended::{Ended, failed};
use crate::queue::{Queue, Task};
use crate::runtime::{MainMemory, Runtimes, Session, Tensor, loaded_event};
use crate::set_images::SetImages;

/// What an order to pack tensors asks for.
pub(crate) struct PackedCrossings<'a> {
    pub(crate) set: EvaluationSet,
    /// By their places in the set.
    pub(crate) images: &'a [u64],
    pub(crate) codecs: &'a [TensorCodec],
    pub(crate) judge: bool,
}

impl PackedCrossings<'_> {
    /// Packs the tensors of every image that the journal does not have yet.
    pub(crate) fn run(
        &self,
        task: &Task,
        queue: &Queue,
        device: &mut dyn Device,
        runtimes: &mut Runtimes,
        model: &ModelWithTwin,
    ) -> Result<(), Ended> {
        let network = model.model();
        let pictures = SetImages::of(&self.set, self.images, network).map_err(order)?;
        let is_packed = |event: &Event| match event {
            Event::TensorsPacked { image, .. } => Some(*image),
            _ => None,
        };
        let done: HashSet<u64> = task.history.iter().filter_map(is_packed).collect();
        let left = self.images.iter().filter(|image| !done.contains(image));
        let left: Vec<u64> = left.copied().collect();
        let Some(&first) = left.first() else {
            return Ok(());
        };
        let processor = &task.order.processor;
        let mut layers = Vec::new();
        for layer in 1..=network.layer_count() {
            let segment = Segment::single(layer);
            runtimes.supports(processor, model, segment)?;
            let session = runtimes.load(processor, model, segment)?;
            queue.record(task, loaded_event(processor, segment, session.as_ref()))?;
            layers.push(session);
        }
        let mut packing = PackedImages {
            of: self,
            network,
            tensors: network.crossing_tensors(),
            pictures,
            layers,
            is_timed: !device.identity().device.simulated,
        };
        // What is done once, such as asking for memory, is done by then.
        packing.image(first)?;
        for image in left {
            let event = packing.image(image)?;
            queue.record(task, event)?;
        }
        Ok(())
    }
}

/// A network that answers images layer by layer.
struct PackedImages<'a> {
    of: &'a PackedCrossings<'a>,
    network: &'a Network,
    tensors: Vec<CrossingTensor>,
    pictures: SetImages<'a>,
    /// A session for each layer.
    layers: Vec<Box<dyn Session>>,
    is_timed: bool,
}

impl PackedImages<'_> {
    fn image(&mut self, image: u64) -> Result<Event, Ended> {
        let of = self.of;
        let input = self.pictures.tensor(image).map_err(order)?;
        let inputs = MainMemory::of(self.network.inputs(), vec![input]);
        // What is alive at each cut.
        let mut alive = vec![inputs];
        for (layer, session) in (1..).zip(&mut self.layers) {
            let before = &alive[alive.len() - 1];
            let after = run_layer(self.network, layer, session.as_mut(), before)?;
            alive.push(after);
        }
        let mut tensors = Vec::new();
        for (place, tensor) in self.tensors.iter().enumerate() {
            if tensor.not_compressed().is_some() {
                continue;
            }
            let cut = tensor.producer;
            let value = alive[cut as usize].tensor(&tensor.spec.name);
            let value = value.ok_or_else(|| {
                order(format!(
                    "`{}` is not there after layer {cut}",
                    tensor.spec.name
                ))
            })?;
            // Which codec finds the tensor in the processor's own memory changes from image to image.
            let first = image as usize + place;
            let packed = self.packed(value, first);
            tensors.push(packed.map_err(|reason| unpackable(&tensor.spec.name, &reason))?);
        }
        let (mut whole, mut crossed) = (None, Vec::new());
        if of.judge {
            whole = Some(self.judged(image, alive[alive.len() - 1].tensors())?);
            for cut in 0..=self.network.layer_count() {
                if let Some(rounded) = self.rounded(cut, alive[cut as usize].tensors())? {
                    crossed.push(self.answered(image, cut, rounded)?);
                }
            }
        }
        Ok(Event::TensorsPacked {
            image,
            tensors,
            whole,
            crossed,
        })
    }

    /// What each codec makes of a tensor, the one of place `first` first.
    fn packed(&self, tensor: &Tensor, first: usize) -> Result<PackedTensor, CompressionError> {
        let codecs = self.of.codecs;
        let values = tensor.to_floats();
        let in_eight_bits = Affine::of(&values).ok();
        let zero_codes = in_eight_bits.map(|affine| {
            let codes = affine.codes(&values);
            let zeros = codes.iter().filter(|&&code| code == affine.zero_point());
            zeros.count() as u64
        });
        let mut packed = vec![None; codecs.len()];
        for step in 0..codecs.len() {
            let place = (first + step) % codecs.len();
            packed[place] = Some(self.packing(codecs[place], tensor)?);
        }
        Ok(PackedTensor {
            zeros: values.iter().filter(|&&value| value == 0.0).count() as u64,
            zero_codes,
            packed: packed.into_iter().flatten().collect(),
        })
    }

    /// Packs a tensor and unpacks it again, and proves that it came back.
    fn packing(&self, codec: TensorCodec, tensor: &Tensor) -> Result<Packing, CompressionError> {
        let (compress_ns, packed) = timed(|| compress(codec, black_box(tensor)));
        let packed = packed?;
        let shape = tensor.shape();
        let (decompress_ns, came) = timed(|| decompress(codec, shape, black_box(&packed)));
        let is_back = match codec.is_eight_bit() {
            true => came? == rounded(tensor)?,
            false => came? == *tensor,
        };
        if !is_back {
            return Err(CompressionError::NotBack { codec });
        }
        Ok(Packing {
            bytes: Bytes::from_bytes(packed.len() as u64),
            compress_ns: self.is_timed.then_some(compress_ns),
            decompress_ns: self.is_timed.then_some(decompress_ns),
        })
    }

    /// The tensors of a cut as 8 bits give them back; nothing where none is compressed.
    fn rounded(&self, cut: u32, alive: &[Tensor]) -> Result<Option<MainMemory>, Ended> {
        let mut is_any = false;
        let specs = self.network.alive(cut);
        let mut crossing = Vec::with_capacity(alive.len());
        for (spec, tensor) in specs.iter().zip(alive) {
            let own = self.tensors.iter().find(|it| it.spec.name == spec.name);
            match own.is_some_and(|own| own.not_compressed().is_none()) {
                true => {
                    is_any = true;
                    let tensor = rounded(tensor);
                    crossing.push(tensor.map_err(|reason| unpackable(&spec.name, &reason))?);
                }
                false => crossing.push(tensor.clone()),
            }
        }
        Ok(is_any.then(|| MainMemory::of(specs, crossing)))
    }

    /// What the layers behind a cut answer to these tensors, judged.
    fn answered(&mut self, image: u64, cut: u32, mut memory: MainMemory) -> Result<Tally, Ended> {
        for (layer, session) in (1..).zip(&mut self.layers).skip(cut as usize) {
            memory = run_layer(self.network, layer, session.as_mut(), &memory)?;
        }
        self.judged(image, memory.tensors())
    }

    fn judged(&self, image: u64, outputs: &[Tensor]) -> Result<Tally, Ended> {
        let set = &self.of.set;
        let output: Vec<f32> = outputs.iter().flat_map(Tensor::to_floats).collect();
        let truth = &set.truths[image as usize];
        let judged = set.metric.judge(set.classes.len(), &[&output], truth);
        judged.map_err(|reason| order(reason.to_string()))
    }
}

/// What lies in main memory after a layer.
fn run_layer(
    network: &Network,
    layer: u32,
    session: &mut dyn Session,
    memory: &MainMemory,
) -> Result<MainMemory, Ended> {
    let segment = Segment::single(layer);
    let given = session.outputs(&memory.taken(&network.takes(segment)))?;
    Ok(memory.after(network, segment, given))
}

fn timed<T>(work: impl FnOnce() -> T) -> (Nanos, T) {
    let began = Instant::now();
    let done = work();
    (began.elapsed().into(), done)
}

fn unpackable(tensor: &str, reason: &CompressionError) -> Ended {
    failed(
        FailureKind::Model,
        format!("the tensor `{tensor}` cannot be compressed: {reason}"),
    )
}

fn order(sentence: String) -> Ended {
    failed(FailureKind::Order, sentence)
}
