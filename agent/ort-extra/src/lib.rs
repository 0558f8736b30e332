//! Where ONNX Runtime placed the nodes of a session, one working memory for all sessions, and which version of it a library is.
//!
//! `ort` has no safe functions for that, so that this crate, alone of layerlab's, has unsafe code.

use std::ffi::{CStr, c_char};
use std::path::Path;
use std::{ptr, slice};

use libloading::{Library, Symbol};

use ort::AsPointer;
use ort::environment::Environment;
use ort::session::Session;
use ort::sys::{
    ORT_API_VERSION, OrtAllocatorType, OrtApiBase, OrtEpAssignedNode, OrtEpAssignedSubgraph,
    OrtMemType, OrtMemoryInfo, OrtStatusPtr,
};

/// The session option, to be set to `1`, without which ONNX Runtime forgets where it placed nodes.
pub const RECORD_ASSIGNMENT: &str = "session.record_ep_graph_assignment_info";

/// A node of a session, and where it was placed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssignedNode {
    /// The node's name; empty where it has none.
    pub name: String,
    /// Its operator, such as `Conv`.
    pub operator: String,
    /// The provider that runs it, such as `CPUExecutionProvider`.
    pub provider: String,
}

/// The nodes of `session` in the order in which ONNX Runtime names them.
///
/// # Errors
/// What ONNX Runtime says, such as when the session was made without [`RECORD_ASSIGNMENT`].
pub fn assigned_nodes(session: &Session) -> ort::Result<Vec<AssignedNode>> {
    let api = ort::api();
    let mut found = Vec::new();
    let mut graphs: *const *const OrtEpAssignedSubgraph = ptr::null();
    let mut count = 0;
    // SAFETY: the session is alive and the other pointers are ours to be written to. What is written there belongs to
    // the session, which is borrowed until this function returns.
    let graphs = unsafe {
        checked((api.Session_GetEpGraphAssignmentInfo)(
            session.ptr(),
            &mut graphs,
            &mut count,
        ))?;
        listed(graphs, count)
    };
    for &graph in graphs {
        let mut provider: *const c_char = ptr::null();
        let mut nodes: *const *const OrtEpAssignedNode = ptr::null();
        let mut count = 0;
        // SAFETY: the graph is one that the session named; as above.
        let (provider, nodes) = unsafe {
            checked((api.EpAssignedSubgraph_GetEpName)(graph, &mut provider))?;
            checked((api.EpAssignedSubgraph_GetNodes)(
                graph, &mut nodes, &mut count,
            ))?;
            (text(provider), listed(nodes, count))
        };
        for &node in nodes {
            let mut name: *const c_char = ptr::null();
            let mut operator: *const c_char = ptr::null();
            // SAFETY: the node is one that the session named; as above.
            let (name, operator) = unsafe {
                checked((api.EpAssignedNode_GetName)(node, &mut name))?;
                checked((api.EpAssignedNode_GetOperatorType)(node, &mut operator))?;
                (text(name), text(operator))
            };
            found.push(AssignedNode {
                name,
                operator,
                provider: provider.clone(),
            });
        }
    }
    Ok(found)
}

/// Gives `environment` a working memory on the CPU, which its sessions share that are made with
/// [`with_env_allocators`](ort::session::builder::SessionBuilder::with_env_allocators). Each other session has one of its own.
///
/// # Errors
/// What ONNX Runtime says.
pub fn add_shared_memory(environment: &Environment) -> ort::Result<()> {
    let api = ort::api();
    let mut memory: *mut OrtMemoryInfo = ptr::null_mut();
    // SAFETY: the pointer is ours to be written to, and what is written there is ours to be released. The environment is alive;
    // ONNX Runtime locks it, and copies the description of the memory. No configuration means the usual one.
    unsafe {
        checked((api.CreateCpuMemoryInfo)(
            OrtAllocatorType::OrtArenaAllocator,
            OrtMemType::OrtMemTypeDefault,
            &mut memory,
        ))?;
        let registered = checked((api.CreateAndRegisterAllocator)(
            environment.ptr().cast_mut(),
            memory,
            ptr::null(),
        ));
        (api.ReleaseMemoryInfo)(memory);
        registered
    }
}

/// What a library of ONNX Runtime says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LibraryVersion {
    /// Its version, such as `1.24.4`.
    pub version: String,
    /// Whether it has the version of the interface that `ort` was made for. Without it `ort` panics.
    pub has_interface: bool,
}

/// Which version of ONNX Runtime `library` is; none if it is another library, or cannot be loaded.
///
/// To be asked about a library that `ort` has loaded: it does not run again what runs when a library is loaded.
pub fn version_of(library: &Path) -> Option<LibraryVersion> {
    // SAFETY: the library is loaded already, and stays so. It has the function that its interface begins with, which
    // returns something that lives as long as the library.
    unsafe {
        let library = Library::new(library).ok()?;
        let base: Symbol<'_, unsafe extern "C" fn() -> *const OrtApiBase> =
            library.get(b"OrtGetApiBase").ok()?;
        let base = base();
        if base.is_null() {
            return None;
        }
        Some(LibraryVersion {
            version: text(((*base).GetVersionString)()),
            has_interface: !((*base).GetApi)(ORT_API_VERSION).is_null(),
        })
    }
}

/// # Safety
/// `status` is one that ONNX Runtime just returned.
unsafe fn checked(status: OrtStatusPtr) -> ort::Result<()> {
    // SAFETY: as the caller says.
    unsafe { ort::Error::result_from_status(status) }
}

/// The array that begins at `first`; none where there is no beginning.
///
/// # Safety
/// `first` is null, or `count` elements lie there for as long as the caller uses them.
unsafe fn listed<'a, T>(first: *const T, count: usize) -> &'a [T] {
    match first.is_null() {
        true => &[],
        // SAFETY: as the caller says.
        false => unsafe { slice::from_raw_parts(first, count) },
    }
}

/// The text at `start`; empty where there is none.
///
/// # Safety
/// `start` is null, or a text that ends with a zero lies there.
unsafe fn text(start: *const c_char) -> String {
    match start.is_null() {
        true => String::new(),
        // SAFETY: as the caller says.
        false => unsafe { CStr::from_ptr(start) }
            .to_string_lossy()
            .into_owned(),
    }
}
