//! Proof of where a runtime placed the nodes of a loaded segment.

use std::collections::BTreeMap;

use layerlab_profiles::Segment;
use layerlab_profiles::document::ProvedPlacement;
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

impl Placed {
    /// The same as profiles have it: one proof for each provider that runs nodes of `segment` on `processor`.
    pub fn proofs(self, processor: &str, segment: Segment) -> Vec<ProvedPlacement> {
        let mut proofs: BTreeMap<String, ProvedPlacement> = BTreeMap::new();
        for PlacedNode {
            operator, provider, ..
        } in self.nodes
        {
            let proof = proofs
                .entry(provider.clone())
                .or_insert_with(|| ProvedPlacement {
                    processor: processor.to_owned(),
                    segment,
                    provider,
                    backend: self.backend.clone(),
                    fallback_refused: self.fallback_refused,
                    nodes: 0,
                    operators: Default::default(),
                });
            proof.nodes += 1;
            proof.operators.insert(operator);
        }
        proofs.into_values().collect()
    }
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
