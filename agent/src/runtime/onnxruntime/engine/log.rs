//! What ONNX Runtime writes into its log while it loads a model: its errors name no node, the log does.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use ort::logging::{LogLevel, LoggerFunction};

/// Lines kept of one load: a refused network repeats the same few.
const LINES: usize = 200;

/// The lines of the log that may explain an error.
#[derive(Clone, Default)]
pub(super) struct RuntimeLog(Arc<Mutex<Vec<String>>>);

impl RuntimeLog {
    /// What writes into the log.
    pub(super) fn logger(&self) -> LoggerFunction {
        let lines = Arc::clone(&self.0);
        Arc::new(move |level, _, _, _, message: &str| {
            if level >= LogLevel::Error || message.contains(UNSUPPORTED) {
                let mut lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
                if lines.len() < LINES {
                    lines.push(message.to_owned());
                }
            }
        })
    }

    /// Forgets what was written until now.
    pub(super) fn clear(&self) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
    }

    /// The nodes that a provider named as unsupported, each once, such as `Sinh at node sinh`.
    pub(super) fn unsupported_nodes(&self) -> Vec<String> {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let nodes: BTreeSet<String> = lines.iter().flat_map(|line| nodes_named_by(line)).collect();
        nodes.into_iter().collect()
    }

    /// The first error that was written.
    pub(super) fn first_error(&self) -> Option<String> {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines
            .iter()
            .find(|line| !line.contains(UNSUPPORTED))
            .cloned()
    }
}

/// How the line begins in which Qualcomm's provider names what it cannot run.
const UNSUPPORTED: &str = "Unsupported nodes in QNN EP:";

/// The nodes of a line such as `Unsupported nodes in QNN EP: { name: a, type: Sinh },{ name: b, type: Erf }`.
fn nodes_named_by(line: &str) -> Vec<String> {
    let Some((_, named)) = line.split_once(UNSUPPORTED) else {
        return Vec::new();
    };
    let node = |text: &str| {
        let (name, operator) = text.split_once("name:")?.1.rsplit_once(", type:")?;
        let operator = operator.split('}').next().unwrap_or_default();
        Some(format!("{} at node {}", operator.trim(), name.trim()))
    };
    named.split('{').filter_map(node).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_each_node_with_its_operator() {
        let line =
            "Unsupported nodes in QNN EP: { name: s,1, type: Sinh },{ name: /erf, type: Erf },\n";
        assert_eq!(
            nodes_named_by(line),
            ["Sinh at node s,1", "Erf at node /erf"]
        );
        assert!(nodes_named_by("All nodes placed on [QNNExecutionProvider]").is_empty());
    }
}
