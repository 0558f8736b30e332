//! Proof of where a runtime placed the nodes of a loaded segment.

use serde::{Deserialize, Serialize};

/// Where a runtime placed the nodes of a segment that it loaded, in the runtime's own words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Placed {
    /// Whether the runtime was told to fail rather than run a node elsewhere than on the processor.
    pub fallback_refused: bool,
    /// The file name of the library that does the computing, where the provider has one of its own; its hash is among
    /// the processor's `runtime_libraries`.
    pub backend: Option<String>,
    /// The nodes of the segment as the runtime has them after its own optimisation, in its order.
    pub nodes: Vec<PlacedNode>,
}

/// A node of a loaded segment, and what runs it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlacedNode {
    /// The node's name; empty where the model gives it none.
    pub name: String,
    /// Its operator, such as `Conv`.
    pub operator: String,
    /// The runtime's provider that runs it, such as `QNNExecutionProvider`.
    pub provider: String,
}
