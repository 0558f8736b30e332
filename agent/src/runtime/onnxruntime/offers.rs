//! Which processors ONNX Runtime offers here: those that pass a probe.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use layerlab_profiles::document::ONNX_RUNTIME;
use layerlab_protocol::{Numerics, ProcessorKind};

use super::provider::{Provider, QnnHtp};
use super::setup::OnnxSetup;
use super::soc::Soc;
use super::{OnnxProcessor, OnnxRuntimeError, hexagon, libraries, probe};
use crate::device::CoreSet;
use crate::runtime::ProcessorOffer;
use crate::runtime::process::{
    CompileCache, LoadFailure, PlacementTerms, RuntimeChild, RuntimeSetup, SharedChild,
};
use crate::runtime::setup::RuntimesSetup;

/// Whether this is a computer, on which Qualcomm's libraries emulate the Hexagon.
const EMULATES: bool = cfg!(target_arch = "x86_64");

/// What helps where Qualcomm's libraries do not work, or not with one another.
const ONE_PACKAGE: &str = "take the provider and all of Qualcomm's libraries from one package, such as \
                           onnxruntime-qnn==2.7.0, and ONNX Runtime 1.24.4";

/// What the runtime offers on a machine with these cores, if the agent was told where it is.
pub(super) fn processors(
    cores: &[CoreSet],
    setup: &RuntimesSetup,
) -> Result<Option<Offered>, OnnxRuntimeError> {
    let options = &setup.onnxruntime;
    let Some(folder) = &options.onnxruntime else {
        let alone = [
            ("--qnn", options.qnn.is_some()),
            ("--qnn-libraries", options.qnn_libraries.is_some()),
            ("--emulate", options.emulate.is_some()),
        ];
        return match alone.into_iter().find(|(_, given)| *given) {
            None => Ok(None),
            Some((option, _)) => Err(OnnxRuntimeError::OptionAlone {
                option,
                needed: "--onnxruntime",
            }),
        };
    };
    let mut left_out = Vec::new();
    let mut unless_left_out = |error: OnnxRuntimeError| match options.leave_out {
        true => {
            tracing::warn!(%error, "left out");
            left_out.push(error);
            Ok(())
        }
        false => Err(error),
    };
    let library = match libraries::onnx_runtime(folder) {
        Ok(library) => library,
        Err(error) => {
            unless_left_out(error)?;
            return Ok(Some(Offered {
                version: String::new(),
                processors: Vec::new(),
                left_out,
            }));
        }
    };
    let mut wanted = cpu_offers(cores);
    if let Some(name) = &options.as_accelerator {
        // It may be another runtime's.
        for (offer, ..) in wanted.iter_mut().filter(|(offer, ..)| offer.name == *name) {
            offer.kind = ProcessorKind::Accelerator;
        }
    }
    let builtin = wanted.len();
    wanted.extend(phone_offers(cores));
    let on_phone = wanted.len();
    match qnn_offers(cores, setup) {
        Ok(offers) => wanted.extend(offers),
        Err(error) => unless_left_out(error)?,
    }

    let mut version = String::new();
    let mut processors = Vec::new();
    let mut hexagon_is_barred = false;
    for (place, (offer, provider, set)) in wanted.into_iter().enumerate() {
        if hexagon_is_barred && matches!(provider, Provider::QnnHtp(_)) {
            // It was said of its other processor.
            continue;
        }
        let setup_of_child = OnnxSetup {
            library: library.clone(),
            copies_count: offer.kind == ProcessorKind::Accelerator && provider == Provider::Cpu,
            provider,
            cores: set,
        };
        let name = offer.name.clone();
        match probed(offer, setup_of_child, setup) {
            Ok((of_library, processor)) => {
                version = of_library;
                processors.push(processor);
            }
            // Nobody asked for these: most libraries are built without them.
            Err(error) if (builtin..on_phone).contains(&place) => {
                tracing::info!(%error, name, "not offered");
            }
            Err(error) => {
                hexagon_is_barred |= matches!(error, OnnxRuntimeError::NoHexagon { .. });
                unless_left_out(error)?;
            }
        }
    }
    Ok(Some(Offered {
        version,
        processors,
        left_out,
    }))
}

/// What ONNX Runtime offers on a machine.
pub(super) struct Offered {
    /// Its version; empty if none of its processors can be used.
    pub(super) version: String,
    pub(super) processors: Vec<OnnxProcessor>,
    /// Why others cannot be used, where the agent was told to leave them out.
    pub(super) left_out: Vec<OnnxRuntimeError>,
}

/// A processor to be probed, on which cores the child process runs, and what computes.
type Wanted = (ProcessorOffer, Provider, CoreSet);

fn cpu_offers(cores: &[CoreSet]) -> Vec<Wanted> {
    let wanted = |set: &CoreSet| {
        let name = set.name.replacen("cpu:", "cpu:ort-", 1);
        (on_cores(name, set), Provider::Cpu, set.clone())
    };
    cores.iter().map(wanted).collect()
}

fn phone_offers(cores: &[CoreSet]) -> Vec<Wanted> {
    let Some(all) = cores.first() else {
        return Vec::new();
    };
    let nnapi = accelerator("nnapi", Numerics::F16);
    vec![
        (
            on_cores("xnnpack".to_owned(), all),
            Provider::Xnnpack,
            all.clone(),
        ),
        (nnapi, Provider::Nnapi, all.clone()),
    ]
}

fn qnn_offers(cores: &[CoreSet], setup: &RuntimesSetup) -> Result<Vec<Wanted>, OnnxRuntimeError> {
    let options = &setup.onnxruntime;
    let (Some(folder), Some(all)) = (&options.qnn, cores.first()) else {
        let alone = [
            ("--qnn-libraries", options.qnn_libraries.is_some()),
            ("--emulate", options.emulate.is_some()),
        ];
        return match alone.into_iter().find(|(_, given)| *given) {
            None => Ok(Vec::new()),
            Some((option, _)) => Err(OnnxRuntimeError::OptionAlone {
                option,
                needed: "--qnn",
            }),
        };
    };
    let (plugin, backend) = libraries::qnn(folder, options.qnn_libraries.as_deref())?;
    let soc: Soc = match (&options.emulate, EMULATES) {
        (Some(name), true) => name.parse()?,
        (Some(_), false) => return Err(OnnxRuntimeError::EmulationOnPhone),
        (None, true) => return Err(OnnxRuntimeError::NothingToEmulate),
        (None, false) => soc_of_phone().parse()?,
    };
    let provider = Provider::QnnHtp(QnnHtp {
        plugin,
        backend,
        soc_model: soc.qnn_model,
    });
    let float = match soc.float_numerics() {
        Numerics::F16 => accelerator("qnn-htp-f16", Numerics::F16),
        other => accelerator("qnn-htp-f32", other),
    };
    let offers = [float, accelerator("qnn-htp-i8", Numerics::I8)];
    let wanted = |mut offer: ProcessorOffer| {
        offer.emulated = EMULATES;
        (offer, provider.clone(), all.clone())
    };
    Ok(offers.into_iter().map(wanted).collect())
}

fn on_cores(name: String, set: &CoreSet) -> ProcessorOffer {
    ProcessorOffer {
        name,
        kind: ProcessorKind::Cpu,
        numerics: Numerics::F32,
        emulated: false,
        memory: None,
        threads: Some(set.cores.len() as u32),
        pinned_to_cores: set.pinned.then(|| set.cores.clone()),
    }
}

fn accelerator(name: &str, numerics: Numerics) -> ProcessorOffer {
    ProcessorOffer {
        name: name.to_owned(),
        kind: ProcessorKind::Accelerator,
        numerics,
        emulated: false,
        memory: None,
        threads: None,
        pinned_to_cores: None,
    }
}

/// The name of the phone's SoC; empty if it does not say.
fn soc_of_phone() -> String {
    let told = Command::new("getprop").arg("ro.soc.model").output();
    let told = told.map(|told| String::from_utf8_lossy(&told.stdout).into_owned());
    told.unwrap_or_default().trim().to_owned()
}

/// Starts the processor's child process and has it load and run a model of one node.
fn probed(
    offer: ProcessorOffer,
    setup_of_child: OnnxSetup,
    setup: &RuntimesSetup,
) -> Result<(String, OnnxProcessor), OnnxRuntimeError> {
    let compiles = setup_of_child.provider.compiles();
    let options = published_options(&setup_of_child);
    let mut files = vec![setup_of_child.library.clone()];
    if let Provider::QnnHtp(qnn) = &setup_of_child.provider {
        files.extend([qnn.plugin.clone(), qnn.backend.clone()]);
    }
    let mut child = SharedChild::new(
        RuntimeChild::new(
            setup.child_program(environment(&setup_of_child.provider)),
            RuntimeSetup {
                runtime: ONNX_RUNTIME.to_owned(),
                setup: serde_json::to_value(&setup_of_child).map_err(|error| {
                    OnnxRuntimeError::Probe {
                        processor: offer.name.clone(),
                        cause: error.to_string(),
                    }
                })?,
            },
        ),
        Some(placement_terms(&setup_of_child.provider)),
    );
    let loaded = match child.load(&probe::probe(offer.numerics)) {
        Ok(loaded) => loaded,
        Err(LoadFailure::Refused(said) | LoadFailure::Failed(said)) => {
            let is_started = !child.version().is_empty();
            return Err(failed_probe(
                &offer.name,
                &setup_of_child.provider,
                is_started,
                said,
            ));
        }
    };
    child.forget(&loaded);
    add_others(&mut files, loaded.libraries);
    let libraries = libraries::hashed(&files)?;
    // Only this plugin can read back what it compiled.
    if let (Some(folder), Provider::QnnHtp(_)) = (&setup.compiled, &setup_of_child.provider) {
        let cache = CompileCache::open(folder, &libraries, &(&options, offer.numerics));
        child.cache = Some(cache.map_err(|error| OnnxRuntimeError::Unreadable {
            library: folder.clone(),
            cause: error.to_string(),
        })?);
    }
    let version = child.version();
    Ok((
        version,
        OnnxProcessor {
            offer,
            options,
            libraries,
            compiles,
            child,
            supported: Mutex::new(HashMap::new()),
        },
    ))
}

/// What ONNX Runtime and its provider find in the environment of their process.
fn environment(provider: &Provider) -> Vec<(&'static str, OsString)> {
    // From 1.29 on ONNX Runtime reports to its maker unless it finds this when it starts.
    let mut variables = vec![("ORT_DISABLE_TELEMETRY", OsString::from("1"))];
    if let Provider::QnnHtp(qnn) = provider {
        // Where the plugin's libraries find one another, and where the Hexagon finds its own.
        let libraries = [&qnn.plugin, &qnn.backend];
        for (variable, between) in [("LD_LIBRARY_PATH", ":"), ("ADSP_LIBRARY_PATH", ";")] {
            variables.push((variable, folders(&libraries, variable, between)));
        }
    }
    variables
}

/// The folders of `libraries`, and those that `variable` names already, each once.
fn folders(libraries: &[&PathBuf], variable: &str, between: &str) -> OsString {
    let named = std::env::var_os(variable).unwrap_or_default();
    let named = named.to_string_lossy().into_owned();
    let of_libraries = libraries.iter().filter_map(|library| library.parent());
    let mut all: Vec<String> = Vec::new();
    for folder in of_libraries
        .map(Path::to_string_lossy)
        .chain(named.split(between).map(Into::into))
    {
        if !folder.is_empty() && !all.iter().any(|other| *other == folder) {
            all.push(folder.into_owned());
        }
    }
    all.join(between).into()
}

/// What the provider's sessions prove.
fn placement_terms(provider: &Provider) -> PlacementTerms {
    let name = |file: &Path| Some(file.file_name()?.to_string_lossy().into_owned());
    PlacementTerms {
        fallback_refused: provider.refuses_fallback(),
        backend: provider.backend().and_then(name),
        compiles: provider.compiles(),
    }
}

/// Why a processor failed its probe, of which `said` was said, by libraries that were loaded or while they were.
fn failed_probe(
    processor: &str,
    provider: &Provider,
    is_started: bool,
    said: String,
) -> OnnxRuntimeError {
    let is_hexagon = matches!(provider, Provider::QnnHtp(_));
    if is_hexagon
        && is_started
        && !EMULATES
        && let Some(barrier) = hexagon::barrier_here()
    {
        return OnnxRuntimeError::NoHexagon { barrier, said };
    }
    OnnxRuntimeError::Probe {
        processor: processor.to_owned(),
        cause: match is_hexagon {
            true => format!("{said}: {ONE_PACKAGE}"),
            false => said,
        },
    }
}

fn add_others(files: &mut Vec<PathBuf>, others: Vec<PathBuf>) {
    for file in others {
        if !files.contains(&file) {
            files.push(file);
        }
    }
}

/// All that may change times or answers.
fn published_options(setup: &OnnxSetup) -> BTreeMap<String, String> {
    let mut options = setup.provider.options();
    // Its path differs between machines; which library it is, the list of libraries says.
    options.remove("backend_path");
    let all: [(&str, &str); 5] = [
        ("enable_mem_pattern", "0"),
        ("graph_optimization_level", "2"),
        ("inter_op_threads", "1"),
        ("intra_op_spinning", "0"),
        ("use_env_allocators", "1"),
    ];
    for (name, value) in all {
        options.insert(name.to_owned(), value.to_owned());
    }
    options.insert("provider".to_owned(), setup.provider.name().to_owned());
    if setup.copies_count {
        options.insert("timed_as".to_owned(), "accelerator".to_owned());
    }
    options
}
