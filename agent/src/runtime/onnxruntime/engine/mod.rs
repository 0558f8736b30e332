//! ONNX Runtime in the child process: its environment, and the sessions of one processor.

mod convert;
mod log;

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use layerlab_model::ElementType;
use layerlab_ort_extra::{RECORD_ASSIGNMENT, add_shared_memory, assigned_nodes, version_of};
use layerlab_profiles::Nanos;
use layerlab_protocol::PlacedNode;
use ort::ErrorCode;
use ort::environment::Environment;
use ort::ep;
use ort::logging::LogLevel;
use ort::memory::{AllocationDevice, Allocator, AllocatorType, MemoryInfo, MemoryType};
use ort::session::builder::{GraphOptimizationLevel, SessionBuilder};
use ort::session::{Session, SessionInputValue};
use ort::value::{DynTensor, ValueRef};
use serde::Deserialize;

use super::provider::Provider;
use super::setup::OnnxSetup;
use crate::runtime::process::{Engine, LoadedModel, ModelNotLoaded, TensorHeader, bring_near};
use log::RuntimeLog;

/// The runtime, and what it loaded.
struct OnnxEngine {
    environment: Environment,
    setup: OnnxSetup,
    log: RuntimeLog,
    version: String,
    sessions: HashMap<u64, ReadyModel>,
}

/// A model that is ready to run, with tensors for its inputs.
struct ReadyModel {
    session: Session,
    inputs: Vec<(TensorHeader, ElementType, DynTensor)>,
}

impl ReadyModel {
    /// Copies the inputs, whose bytes follow one another, into ONNX Runtime's tensors.
    fn fill(&mut self, bytes: &[u8]) -> Result<(), String> {
        let mut rest = bytes;
        for (header, element, tensor) in &mut self.inputs {
            let (this, others) = rest
                .split_at_checked(header.bytes()?)
                .ok_or("an input has too few bytes")?;
            convert::fill(tensor, *element, this).map_err(in_words)?;
            rest = others;
        }
        Ok(())
    }
}

impl From<ort::Error> for ModelNotLoaded {
    fn from(error: ort::Error) -> Self {
        ModelNotLoaded::Failed(error.to_string())
    }
}

/// Loads ONNX Runtime in this process.
///
/// # Errors
/// Why it cannot be loaded, for a person.
pub(in crate::runtime) fn start(setup: &serde_json::Value) -> Result<Box<dyn Engine>, String> {
    let setup = OnnxSetup::deserialize(setup).map_err(|error| error.to_string())?;
    Ok(Box::new(OnnxEngine::start(setup)?))
}

impl OnnxEngine {
    /// Loads the libraries on the calling thread, to whose cores all threads of the runtime will be bound.
    ///
    /// # Errors
    /// Why it cannot be loaded, for a person.
    fn start(setup: OnnxSetup) -> Result<OnnxEngine, String> {
        setup.cores.bind_this_thread();
        let log = RuntimeLog::default();
        let builder = ort::init_from(&setup.library).map_err(load_error)?;
        let version = known_version(&setup.library)?;
        let environment = builder
            .with_name("layerlab")
            .with_telemetry(false)
            .with_logger(log.logger())
            .build()
            .map_err(|error| error.to_string())?;
        // What is loaded says what it logs; by itself the environment would tell everything.
        environment.set_log_level(LogLevel::Error);
        add_shared_memory(&environment).map_err(|error| error.to_string())?;
        if let Provider::QnnHtp(qnn) = &setup.provider {
            environment
                .register_ep_library(setup.provider.name(), &qnn.plugin)
                .map_err(|error| format!("`{}` cannot be used: {error}", qnn.plugin.display()))?;
        }
        Ok(OnnxEngine {
            environment,
            setup,
            log,
            version,
            sessions: HashMap::new(),
        })
    }

    fn session(
        &self,
        model: &[u8],
        save_to: Option<&Path>,
        level: LogLevel,
    ) -> ort::Result<Session> {
        let provider = &self.setup.provider;
        let threads = self.setup.cores.cores.len();
        let mut builder = Session::builder(&self.environment)?
            .with_optimization_level(GraphOptimizationLevel::Level2)?
            .with_intra_threads(threads)?
            .with_inter_threads(1)?
            .with_intra_op_spinning(false)?
            // Segments write where the one before has just read, as layers of the whole model do, and not into memory that
            // nothing has used since their last turn. A session that plans its memory would keep what it gives apart from
            // what lies between its layers.
            .with_env_allocators()?
            .with_memory_pattern(false)?
            .with_config_entry(RECORD_ASSIGNMENT, "1")?
            .with_logger(self.log.logger())?
            .with_log_level(level)?;
        builder = match provider {
            Provider::Cpu | Provider::QnnHtp(_) => self.on_device(builder)?,
            Provider::Xnnpack => builder.with_execution_providers([ep::XNNPACK::default()
                .with_intra_op_num_threads(threads.try_into().unwrap_or(NonZeroUsize::MIN))
                .build()
                .error_on_failure()])?,
            Provider::Nnapi => builder.with_execution_providers([ep::NNAPI::default()
                .with_fp16(true)
                .with_disable_cpu(true)
                .build()
                .error_on_failure()])?,
        };
        if provider.refuses_fallback() {
            builder = builder.with_disable_cpu_fallback()?;
        }
        if let Some(path) = save_to {
            builder = builder
                .with_config_entry("ep.context_enable", "1")?
                .with_config_entry("ep.context_embed_mode", "1")?
                .with_config_entry("ep.context_file_path", path.display().to_string())?;
        }
        builder.commit_from_memory(model)
    }

    /// Chooses the device by its provider's name, with the provider's options. Its type would not do: an emulated
    /// accelerator calls itself a CPU.
    fn on_device(&self, builder: SessionBuilder) -> ort::Result<SessionBuilder> {
        let name = self.setup.provider.name();
        let devices = self.environment.devices();
        let mut devices: Vec<_> = devices
            .filter(|device| device.ep().is_ok_and(|provider| provider == name))
            .collect();
        // A machine with several has the accelerator itself among them.
        devices.sort_by_key(|device| device.hardware_device().ty() != ort::memory::DeviceType::NPU);
        devices.truncate(1);
        if devices.is_empty() {
            return Err(ort::Error::new(format!("it has no device for {name}")));
        }
        let options: Vec<(String, String)> = self
            .setup
            .provider
            .options()
            .into_iter()
            .map(|(option, value)| (format!("{name}.{option}"), value))
            .collect();
        Ok(builder.with_devices(devices, Some(&options))?)
    }

    /// Why a model was not loaded. Where the processor may have refused it, it is loaded again with a log that tells
    /// more.
    fn explained(&self, model: &[u8], error: ort::Error) -> ModelNotLoaded {
        let message = error.to_string();
        if error.code() == ErrorCode::NotImplemented {
            return ModelNotLoaded::Refused(message);
        }
        if !self.setup.provider.compiles() {
            return ModelNotLoaded::Failed(message);
        }
        self.log.clear();
        if self.session(model, None, LogLevel::Verbose).is_ok() {
            return ModelNotLoaded::Failed(format!(
                "{message} (and it succeeded when tried again)"
            ));
        }
        let who = self.setup.provider.short_name();
        let unsupported = self.log.unsupported_nodes();
        let error = self.log.first_error().unwrap_or(message);
        self.log.clear();
        match unsupported.is_empty() {
            true => ModelNotLoaded::Failed(error),
            false => ModelNotLoaded::Refused(format!(
                "{who} does not support {}",
                unsupported.join(", ")
            )),
        }
    }
}

impl Engine for OnnxEngine {
    fn version(&self) -> &str {
        &self.version
    }

    fn load(
        &mut self,
        number: u64,
        model: &[u8],
        save_to: Option<&Path>,
    ) -> Result<LoadedModel, ModelNotLoaded> {
        let begin = Instant::now();
        let session = match self.session(model, save_to, LogLevel::Error) {
            Ok(session) => session,
            Err(error) => return Err(self.explained(model, error)),
        };
        let load_time = begin.elapsed().into();
        let nodes = placed_nodes(&session)?;
        let provider = self.setup.provider.name();
        if let Some(elsewhere) = nodes.iter().find(|node| node.provider != provider) {
            return Err(ModelNotLoaded::Refused(format!(
                "ONNX Runtime placed {} at node {} on {} instead of {provider}",
                elsewhere.operator, elsewhere.name, elsewhere.provider
            )));
        }
        let memory = working_memory(&session)?;
        let mut inputs = Vec::new();
        for input in session.inputs() {
            let header = convert::header(input.dtype()).map_err(ModelNotLoaded::Failed)?;
            let element = header.element_type().map_err(ModelNotLoaded::Failed)?;
            let tensor = convert::zeros(&memory, element, &header.shape)?;
            inputs.push((header, element, tensor));
        }
        self.sessions.insert(number, ReadyModel { session, inputs });
        Ok(LoadedModel {
            load_time,
            nodes,
            libraries: loaded_libraries(&self.setup),
        })
    }

    /// The time is that of the run alone, or that of copying the inputs in and the outputs out, too, as the setup says.
    fn run(
        &mut self,
        number: u64,
        headers: &[TensorHeader],
        bytes: &[u8],
        copied: &mut Vec<u8>,
    ) -> Result<(Nanos, Vec<TensorHeader>), String> {
        let loaded = self
            .sessions
            .get_mut(&number)
            .ok_or_else(|| format!("there is no session {number}"))?;
        if !headers
            .iter()
            .eq(loaded.inputs.iter().map(|(header, _, _)| header))
        {
            return Err("the inputs are not those of the segment".to_owned());
        }
        let (copying_in, ()) = timed(|| loaded.fill(bytes))?;
        let ReadyModel { session, inputs } = loaded;
        if self.setup.copies_count {
            for (_, _, tensor) in &*inputs {
                bring_near(convert::header_and_bytes(tensor).map_err(in_words)?.1);
            }
        }
        let values: Vec<SessionInputValue<'_>> =
            inputs.iter().map(|(_, _, tensor)| tensor.into()).collect();
        let (running, outputs) = timed(|| session.run(values.as_slice()).map_err(in_words))?;
        if self.setup.copies_count {
            for output in outputs.values() {
                bring_near(convert::header_and_bytes(&output).map_err(in_words)?.1);
            }
        }
        let (copying_out, told) = timed(|| {
            let copy = |output: ValueRef<'_>| {
                let (header, bytes) = convert::header_and_bytes(&output).map_err(in_words)?;
                copied.extend_from_slice(bytes);
                Ok(header)
            };
            outputs.values().map(copy).collect()
        })?;
        let time = match self.setup.copies_count {
            true => copying_in + running + copying_out,
            false => running,
        };
        Ok((time.into(), told))
    }

    fn forget(&mut self, number: u64) {
        self.sessions.remove(&number);
    }
}

/// How long something took, and what came of it.
fn timed<T>(what: impl FnOnce() -> Result<T, String>) -> Result<(Duration, T), String> {
    let begin = Instant::now();
    let result = what()?;
    Ok((begin.elapsed(), result))
}

fn in_words(error: ort::Error) -> String {
    error.to_string()
}

/// The memory in which a session's nodes find and leave their tensors, so that what it takes and gives lies in the same pages.
fn working_memory(session: &Session) -> ort::Result<Allocator> {
    let of_arena = MemoryInfo::new(
        AllocationDevice::CPU,
        0,
        AllocatorType::Arena,
        MemoryType::Default,
    );
    Allocator::new(session, of_arena?)
}

fn placed_nodes(session: &Session) -> ort::Result<Vec<PlacedNode>> {
    let nodes = assigned_nodes(session)?.into_iter();
    Ok(nodes
        .map(|node| PlacedNode {
            name: node.name,
            operator: node.operator,
            provider: node.provider,
        })
        .collect())
}

/// The version of a library that is loaded, unless it is too new to have the interface that is used here.
fn known_version(library: &Path) -> Result<String, String> {
    match version_of(library) {
        Some(known) if known.has_interface => Ok(known.version),
        Some(known) => Err(format!(
            "`{}` is ONNX Runtime {}, which does not have version {} of its interface any more: install 1.24.4",
            library.display(),
            known.version,
            ort::MINOR_VERSION
        )),
        None => Err(format!(
            "`{}` does not tell its version: install ONNX Runtime 1.24.4",
            library.display()
        )),
    }
}

/// Why the library cannot be loaded, with the remedy.
fn load_error(error: ort::LoadDynamicError) -> String {
    use ort::LoadDynamicError::{BadVersion, Dlopen, InvalidVersionString, MissingApi};
    match error {
        BadVersion { version_str, path } => format!(
            "`{}` is ONNX Runtime {version_str}, and 1.{} or a later one is needed: install 1.24.4",
            path.display(),
            ort::MINOR_VERSION
        ),
        MissingApi { path } => format!(
            "`{}` is not the library of ONNX Runtime: give the folder with libonnxruntime.so",
            path.display()
        ),
        Dlopen { error, path } => {
            format!("the system cannot load `{}`: {error}", path.display())
        }
        InvalidVersionString => "the library of ONNX Runtime does not tell its version".to_owned(),
    }
}

/// The files that are mapped into this process and lie beside the library or the provider's plugin.
fn loaded_libraries(setup: &OnnxSetup) -> Vec<PathBuf> {
    let mut folders = vec![setup.library.parent()];
    if let Provider::QnnHtp(qnn) = &setup.provider {
        folders.push(qnn.plugin.parent());
    }
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let mut files: Vec<PathBuf> = maps
        .lines()
        .filter_map(|line| Some(PathBuf::from(&line[line.find('/')?..])))
        .filter(|file| folders.contains(&file.parent()))
        .collect();
    files.sort();
    files.dedup();
    files
}
