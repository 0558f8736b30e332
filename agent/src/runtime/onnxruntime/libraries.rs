//! The files of ONNX Runtime and of Qualcomm's libraries: found, proved to be for this machine, and hashed.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use elf::ElfStream;
use elf::abi::{DT_SONAME, EM_386, EM_AARCH64, EM_ARM, EM_X86_64};
use elf::endian::AnyEndian;
use layerlab_protocol::Library;
use sha2::{Digest, Sha256};

use super::OnnxRuntimeError;
use crate::runtime::process::hexadecimal;

/// How the file of ONNX Runtime's library begins; a version may follow.
const ONNX_RUNTIME: &str = "libonnxruntime.so";
const PLUGIN: &str = "libonnxruntime_providers_qnn.so";
const BACKEND: &str = "libQnnHtp.so";

const GET_ONNX_RUNTIME: &str = "it is in `pip install onnxruntime==1.24.4` (onnxruntime/capi), for phones in \
                                com.microsoft.onnxruntime:onnxruntime-android";
const GET_QNN: &str = "it is in `pip install onnxruntime-qnn==2.7.0` (onnxruntime_qnn), for phones in \
                       com.qualcomm.qti:onnxruntime-android-qnn and qnn-runtime";

/// Qualcomm's other backends, by the names that they have in themselves, and what they compute on.
const OTHER_BACKENDS: [(&str, &str); 5] = [
    ("libQnnCpu", "the CPU"),
    ("libQnnGpu", "the GPU"),
    ("libQnnDsp", "an older DSP"),
    (
        "libQnnSaver",
        "nothing: it writes down what it is asked for",
    ),
    ("libQnnIr", "nothing: it writes down what it is asked for"),
];

/// The library of ONNX Runtime in `folder`.
///
/// # Errors
/// When there is none, it is for another machine, or this agent can load none.
pub(super) fn onnx_runtime(folder: &Path) -> Result<PathBuf, OnnxRuntimeError> {
    if cfg!(target_feature = "crt-static") {
        return Err(OnnxRuntimeError::StaticAgent);
    }
    let is_it = |name: &str| {
        name.strip_prefix(ONNX_RUNTIME)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    let names = std::fs::read_dir(folder).into_iter().flatten();
    let names = names.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    // Where there are several names, the shorter ones point to the longest.
    let name = names.filter(|name| is_it(name)).min_by_key(String::len);
    let name = name.ok_or_else(|| missing(ONNX_RUNTIME, folder, GET_ONNX_RUNTIME))?;
    let library = absolute(&folder.join(name))?;
    soname_of_this_machine(&library)?;
    Ok(library)
}

/// Qualcomm's plugin in `folder` and the backend in `of_backend`, in this order. The path of a backend itself says which
/// folder, too.
///
/// # Errors
/// When one of them is missing, for another machine, or computes elsewhere than on the Hexagon tensor processor.
pub(super) fn qnn(
    folder: &Path,
    of_backend: Option<&Path>,
) -> Result<(PathBuf, PathBuf), OnnxRuntimeError> {
    if folder.is_file() {
        refuse_other_backend(folder)?;
        return qnn(folder.parent().unwrap_or(folder), of_backend);
    }
    let found = |folder: &Path, name| match folder.join(name) {
        library if library.is_file() => absolute(&library),
        _ => Err(missing(name, folder, GET_QNN)),
    };
    let plugin = found(folder, PLUGIN)?;
    let backend = found(of_backend.unwrap_or(folder), BACKEND)?;
    soname_of_this_machine(&plugin)?;
    refuse_other_backend(&backend)?;
    Ok((plugin, backend))
}

/// The libraries with their hashes, as profiles give them.
///
/// # Errors
/// When one cannot be read.
pub(super) fn hashed(files: &[PathBuf]) -> Result<Vec<Library>, OnnxRuntimeError> {
    let hashed = |file: &PathBuf| {
        let mut hasher = Sha256::new();
        let mut reader = File::open(file).map_err(|error| unreadable(file, error))?;
        let mut portion = vec![0; 256 * 1024];
        loop {
            match io::Read::read(&mut reader, &mut portion) {
                Ok(0) => break,
                Ok(read) => hasher.update(&portion[..read]),
                Err(error) => return Err(unreadable(file, error)),
            }
        }
        let name = file.file_name().unwrap_or_default();
        Ok(Library {
            name: name.to_string_lossy().into_owned(),
            sha256: hexadecimal(&hasher.finalize()),
        })
    };
    files.iter().map(hashed).collect()
}

fn refuse_other_backend(backend: &Path) -> Result<(), OnnxRuntimeError> {
    let soname = soname_of_this_machine(backend)?;
    match OTHER_BACKENDS
        .iter()
        .find(|(name, _)| soname.starts_with(name))
    {
        None => Ok(()),
        Some((_, computes_on)) => Err(OnnxRuntimeError::OtherBackend {
            library: backend.to_owned(),
            computes_on,
        }),
    }
}

/// The name that a library has in itself, or else its file's, once it is proved to be one for this machine.
fn soname_of_this_machine(library: &Path) -> Result<String, OnnxRuntimeError> {
    let wrong = |found: String| OnnxRuntimeError::WrongMachine {
        library: library.to_owned(),
        found,
        needed: std::env::consts::ARCH,
    };
    let file = File::open(library).map_err(|error| unreadable(library, error))?;
    let mut elf = ElfStream::<AnyEndian, File>::open_stream(file)
        .map_err(|_| wrong("no library".to_owned()))?;
    let machine = match elf.ehdr.e_machine {
        EM_X86_64 => "x86_64".to_owned(),
        EM_AARCH64 => "aarch64".to_owned(),
        EM_ARM => "arm".to_owned(),
        EM_386 => "x86".to_owned(),
        other => format!("machine {other}"),
    };
    if machine != std::env::consts::ARCH {
        return Err(wrong(format!("a library for {machine}")));
    }
    let name = library.file_name().unwrap_or_default().to_string_lossy();
    Ok(soname(&mut elf).unwrap_or_else(|| name.into_owned()))
}

fn soname(elf: &mut ElfStream<AnyEndian, File>) -> Option<String> {
    let dynamic = elf.dynamic().ok()??;
    let place = dynamic
        .iter()
        .find(|entry| entry.d_tag == DT_SONAME)?
        .d_val();
    let (_, texts) = elf.dynamic_symbol_table().ok()??;
    Some(texts.get(place as usize).ok()?.to_owned())
}

fn absolute(library: &Path) -> Result<PathBuf, OnnxRuntimeError> {
    library
        .canonicalize()
        .map_err(|error| unreadable(library, error))
}

fn missing(library: &str, folder: &Path, remedy: &'static str) -> OnnxRuntimeError {
    OnnxRuntimeError::NoLibrary {
        library: library.to_owned(),
        folder: folder.to_owned(),
        remedy,
    }
}

fn unreadable(library: &Path, error: io::Error) -> OnnxRuntimeError {
    OnnxRuntimeError::Unreadable {
        library: library.to_owned(),
        cause: error.to_string(),
    }
}
