//! The models that an edge server runs layers of, on this machine's processors.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use layerlab_edge::{
    InferRequest, Inferred, Models, PackedAnswer, PackedRequest, PictureRequest, Stretch,
    TensorShape, hash_bytes, payload_bytes,
};
use layerlab_model::{ElementType, ModelError, Network, TensorSpec};
use layerlab_profiles::{Segment, sha256};

use crate::ModelWithTwin;
use crate::pictures::{PictureInput, decoded};
use crate::runtime::{MainMemory, RuntimeError, Runtimes, Session, Tensor};
use crate::wire_tensors::{from_wire, pack, to_wire, unpack};

/// How many segments stay loaded: those of a few phones' plans. The one that was not used for longest makes room.
const MOST_LOADED: usize = 16;

/// The models of an edge server.
pub struct EdgeModels {
    models: BTreeMap<[u8; 32], ModelWithTwin>,
    processors: Vec<String>,
    loaded: Mutex<Loaded>,
}

struct Loaded {
    runtimes: Runtimes,
    /// The least recently used first.
    sessions: VecDeque<(Part, Box<dyn Session>)>,
}

/// A segment of a model, by its hash, on a processor.
type Part = ([u8; 32], Segment, String);

/// A model that a server cannot be started with.
#[derive(Debug, thiserror::Error)]
#[error("{}: {source}", path.display())]
pub struct EdgeModelError {
    path: PathBuf,
    source: ModelError,
}

impl EdgeModels {
    /// The models of these files, with symbolic dimensions set by `dims`, on the processors of `runtimes`.
    ///
    /// # Errors
    /// When a file is no model.
    pub fn open(
        files: &[PathBuf],
        dims: &BTreeMap<String, u64>,
        runtimes: Runtimes,
    ) -> Result<EdgeModels, EdgeModelError> {
        let mut models = BTreeMap::new();
        for path in files {
            let opened = Network::open_with_source(path, dims);
            let (network, source) = opened.map_err(|source| EdgeModelError {
                path: path.clone(),
                source,
            })?;
            let hash = hash_bytes(&sha256(&source.onnx));
            let model = ModelWithTwin::alone(Arc::new(network));
            models.extend(hash.map(|hash| (hash, model)));
        }
        Ok(EdgeModels {
            models,
            processors: runtimes.processors().map(|it| it.name.clone()).collect(),
            loaded: Mutex::new(Loaded {
                runtimes,
                sessions: VecDeque::new(),
            }),
        })
    }

    /// How many segments are loaded.
    pub fn loaded_segments(&self) -> usize {
        self.lock().sessions.len()
    }

    fn model(&self, hash: &[u8; 32]) -> Result<&ModelWithTwin, String> {
        self.models.get(hash).ok_or_else(|| {
            let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
            format!(
                "this server has no model {}…: start it with --model and the file that was profiled",
                &hash[..12]
            )
        })
    }

    /// What the layers that are asked for give, and its shapes, where `read` reads what they take.
    fn computed(
        &self,
        asked: &InferRequest,
        read: impl FnOnce(&[TensorSpec]) -> Result<Vec<Tensor>, String>,
    ) -> Result<(Vec<TensorShape>, Vec<Tensor>), String> {
        let model = self.model(&asked.model)?;
        let mut loaded = self.lock();
        let (network, segment) = (model.model(), asked_segment(asked)?);
        let (takes, gives) = (network.takes(segment), network.gives(segment));
        let mut memory = MainMemory::of(&takes, read(&takes)?);
        for part in parts(asked) {
            let segment = part.1;
            let inputs = memory.taken(&network.takes(segment));
            let given = loaded.run(part, model, &inputs)?;
            memory = memory.after(network, segment, given);
        }
        Ok((crossing(&gives)?, memory.taken(&gives).into_owned()))
    }

    fn lock(&self) -> MutexGuard<'_, Loaded> {
        // A session whose runtime panicked is dropped with the panic's request: it is not in the list while it runs.
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The ONNX files in `folder`, in the order of their names.
///
/// # Errors
/// When the folder cannot be read.
pub fn models_in(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let entries: Result<Vec<_>, _> = std::fs::read_dir(folder)?.collect();
    let paths = entries?.into_iter().map(|entry| entry.path());
    let mut files: Vec<PathBuf> = paths
        .filter(|path| path.extension().is_some_and(|end| end == "onnx"))
        .collect();
    files.sort();
    Ok(files)
}

/// The shapes of tensors as they cross a link.
///
/// # Errors
/// The reason, when one of them is no tensor of 32-bit floats.
pub fn crossing(tensors: &[TensorSpec]) -> Result<Vec<TensorShape>, String> {
    let shape = |spec: &TensorSpec| {
        if spec.element != ElementType::F32 {
            return Err(format!(
                "the tensor {} is of {}, and only tensors of 32-bit floats cross a link: plan with another cut",
                spec.name, spec.element
            ));
        }
        let axes = spec.shape.iter().map(|&axis| u32::try_from(axis));
        let axes: Result<Vec<u32>, _> = axes.collect();
        let axes =
            axes.map_err(|_| format!("the tensor {} is too large to cross a link", spec.name))?;
        Ok(TensorShape(axes))
    };
    tensors.iter().map(shape).collect()
}

impl Models for EdgeModels {
    fn accepts(&self, asked: &InferRequest) -> Result<(), String> {
        let network = self.model(&asked.model)?.model();
        let (layers, first, last) = (network.layer_count(), asked.first, asked.last());
        if last > layers {
            return Err(format!(
                "{} has {layers} layers, so that there are no layers {first} to {last}: profile it with the version of \
                 layerlab that this server has",
                network.name()
            ));
        }
        let unknown = |name: &&str| !self.processors.iter().any(|known| known == name);
        let mut names = asked.stretches.iter().map(|it| it.processor.as_str());
        if let Some(name) = names.find(unknown) {
            return Err(format!(
                "this server has no processor `{name}`, but {}: plan with a profile that was made on it",
                self.processors.join(", ")
            ));
        }
        let segment = asked_segment(asked)?;
        let expected = crossing(&network.takes(segment))?;
        if asked.tensors != expected {
            return Err(format!(
                "what enters layer {first} of {} has the shapes {}, not {}: give the same sizes of dimensions to the \
                 server and to the phone",
                network.name(),
                shown(&expected),
                shown(&asked.tensors)
            ));
        }
        let outputs = crossing(&network.gives(segment))?;
        match payload_bytes(&outputs) {
            Some(_) => Ok(()),
            None => Err(format!(
                "what leaves layer {last} of {} is too large for an answer: plan with another cut",
                network.name()
            )),
        }
    }

    fn prepare(&self, asked: &InferRequest) -> Result<(), String> {
        let model = self.model(&asked.model)?;
        let mut loaded = self.lock();
        for part in parts(asked) {
            loaded
                .load(part, model)
                .map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    fn run(&self, asked: &InferRequest, payload: &[u8]) -> Result<Inferred, String> {
        let read = |takes: &[TensorSpec]| from_wire(takes, payload);
        let (tensors, given) = self.computed(asked, read)?;
        Ok(Inferred {
            payload: to_wire(&given)?,
            tensors,
        })
    }

    fn run_packed(&self, asked: &PackedRequest, payload: &[u8]) -> Result<PackedAnswer, String> {
        let read = |takes: &[TensorSpec]| unpack(takes, &asked.tensors, payload);
        let (tensors, given) = self.computed(&asked.layers, read)?;
        let (packed, payload) = pack(asked.answer, &given)?;
        Ok(PackedAnswer {
            tensors,
            packed,
            payload,
        })
    }

    fn whole(&self, asked: &PictureRequest) -> Result<InferRequest, String> {
        let network = self.model(&asked.model)?.model();
        PictureInput::of(network)?;
        Ok(InferRequest {
            model: asked.model,
            first: 1,
            stretches: vec![Stretch {
                last: network.layer_count(),
                processor: asked.processor.clone(),
            }],
            tensors: crossing(network.inputs())?,
        })
    }

    fn input(&self, asked: &PictureRequest, file: &[u8]) -> Result<Vec<u8>, String> {
        let input = PictureInput::of(self.model(&asked.model)?.model())?;
        let picture = decoded(file, asked.format).map_err(|error| {
            format!(
                "the picture cannot be decoded: {error}; send a PNG or a JPEG, as the request says"
            )
        })?;
        let tensor = input.tensor(input.resized(&picture), &asked.preprocessing())?;
        to_wire(&[tensor])
    }
}

/// The layers of a request, as one.
fn asked_segment(asked: &InferRequest) -> Result<Segment, String> {
    Segment::new(asked.first, asked.last()).map_err(|error| error.to_string())
}

/// The segments of a request, on their processors.
fn parts(asked: &InferRequest) -> impl Iterator<Item = Part> {
    let mut first = asked.first;
    asked.stretches.iter().filter_map(move |stretch| {
        let segment = Segment::new(first, stretch.last).ok()?;
        first = stretch.last + 1;
        Some((asked.model, segment, stretch.processor.clone()))
    })
}

fn shown(shapes: &[TensorShape]) -> String {
    let shapes: Vec<String> = shapes
        .iter()
        .map(|TensorShape(axes)| format!("{axes:?}"))
        .collect();
    shapes.join(", ")
}

impl Loaded {
    /// Loads `part` unless it is loaded, and makes it the last to make room.
    fn load(&mut self, part: Part, model: &ModelWithTwin) -> Result<(), RuntimeError> {
        if let Some(place) = self.sessions.iter().position(|(it, _)| *it == part) {
            let used = self.sessions.remove(place);
            self.sessions.extend(used);
            return Ok(());
        }
        while self.sessions.len() >= MOST_LOADED {
            self.sessions.pop_front();
        }
        let (_, segment, processor) = &part;
        let session = loop {
            match self.runtimes.load(processor, model, *segment) {
                Err(RuntimeError::OutOfMemory { .. }) if self.sessions.pop_front().is_some() => {}
                loaded => break loaded?,
            }
        };
        self.sessions.push_back((part, session));
        Ok(())
    }

    fn run(
        &mut self,
        part: Part,
        model: &ModelWithTwin,
        inputs: &[Tensor],
    ) -> Result<Vec<Tensor>, String> {
        // What was prepared is there, unless memory does not hold all of one request at once.
        let found = self.load(part, model).map_err(|error| error.to_string());
        found?;
        let Some((part, mut session)) = self.sessions.pop_back() else {
            return Err("the layers are not loaded: please report this".to_owned());
        };
        let outputs = session.outputs(inputs).map_err(|error| error.to_string())?;
        self.sessions.push_back((part, session));
        Ok(outputs)
    }
}
