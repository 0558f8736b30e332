//! Asking tract: which type, shape and, where it follows from fixed shapes, value every tensor has; and
//! whether a model can be run at all.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use tract_onnx::pb::{ModelProto, NodeProto};
use tract_onnx::prelude::*;
use tract_onnx::tract_hir::infer::Factoid;

use crate::ModelError;
use crate::constant::Constant;
use crate::graph::named;
use crate::half_gemm;
use crate::optimize::optimize;
use crate::reader::reader;
use crate::tensor::{ElementType, TensorSpec};

/// What tract knows of the tensors that nodes give.
pub(crate) struct Facts {
    /// Types and shapes.
    pub(crate) specs: HashMap<String, TensorSpec>,
    /// Values, where they do not depend on the inputs' values.
    pub(crate) values: HashMap<String, Constant>,
}

/// Operators whose output has as many elements as the values of the input make it have.
const SIZED_BY_VALUES: [&str; 4] = ["Compress", "NonMaxSuppression", "NonZero", "Unique"];

/// Works out the types and shapes of all tensors that `model`'s nodes give.
pub(crate) fn infer(model: &ModelProto) -> Result<Facts, ModelError> {
    let parsed = guarded(|| {
        let mut parsed = reader().parse(model, None)?;
        parsed.model.analyse(false)?;
        Ok(parsed)
    })
    .map_err(|error| suppression(model).unwrap_or(error))?;
    let mut facts = Facts {
        specs: HashMap::new(),
        values: HashMap::new(),
    };
    let nodes = model.graph.iter().flat_map(|graph| &graph.node);
    for (node, name) in nodes.flat_map(|node| named(&node.output).map(move |name| (node, name))) {
        let incomplete = |what: &str| ModelError::Shapes {
            reason: format!(
                "the {what} of `{name}`, given by the {} node `{}`, does not follow from the inputs",
                node.op_type, node.name
            ),
        };
        let outlet = parsed.outlets_by_name.get(name);
        let fact = outlet.and_then(|&outlet| parsed.model.outlet_fact(outlet).ok());
        let fact = fact.ok_or_else(|| incomplete("shape"))?;
        let datum = fact
            .datum_type
            .concretize()
            .ok_or_else(|| incomplete("type"))?;
        let element =
            ElementType::from_tract(datum).ok_or_else(|| ModelError::UnsupportedElement {
                tensor: name.to_owned(),
                element: format!("{datum:?}"),
            })?;
        let no_shape = || match SIZED_BY_VALUES.contains(&node.op_type.as_str()) {
            true => sized_by_values(node),
            false => incomplete("shape"),
        };
        let shape = fact.shape.concretize().ok_or_else(no_shape)?;
        let shape = shape
            .iter()
            .map(|length| u64::try_from(length.to_i64().ok()?).ok())
            .collect::<Option<Vec<_>>>()
            .ok_or_else(no_shape)?;
        let value = fact.value.concretize();
        if let Some(value) = value.and_then(|value| Constant::from_tract(&value, name)) {
            facts.values.insert(name.to_owned(), value);
        }
        facts.specs.insert(
            name.to_owned(),
            TensorSpec {
                name: name.to_owned(),
                element,
                shape,
            },
        );
    }
    Ok(facts)
}

fn sized_by_values(node: &NodeProto) -> ModelError {
    ModelError::SizeOfValues {
        node: node.name.clone(),
        operator: node.op_type.clone(),
    }
}

/// What to say of a model with a `NonMaxSuppression`, which tract fails to follow before it comes to a shape.
fn suppression(model: &ModelProto) -> Option<ModelError> {
    let mut nodes = model.graph.iter().flat_map(|graph| &graph.node);
    nodes
        .find(|node| node.op_type == "NonMaxSuppression")
        .map(sized_by_values)
}

/// `model` as tract's typed graph, not yet decluttered or optimised.
pub(crate) fn typed(model: &ModelProto) -> Result<TypedModel, ModelError> {
    guarded(|| {
        let parsed = reader().parse(&half_gemm::as_products(model), None)?;
        parsed.model.into_typed()
    })
}

/// `model` as tract runs it fastest without its answers depending on cuts.
pub(crate) fn optimized(model: &ModelProto) -> Result<TypedModel, ModelError> {
    let model = typed(model)?;
    guarded(|| optimize(model))
}

/// What tract says of an error, in one line.
pub(crate) fn one_line(error: &TractError) -> String {
    let text = error.root_cause().to_string();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Runs `work`, turning a panic into an error: tract indexes and unwraps on the way through attributes
/// that do not fit an operator, and a damaged file must not take the process down.
fn guarded<T>(work: impl FnOnce() -> TractResult<T>) -> Result<T, ModelError> {
    let reason = match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(done)) => return Ok(done),
        Ok(Err(error)) => {
            let (outer, root) = (error.to_string(), error.root_cause().to_string());
            if outer == root {
                outer
            } else {
                format!("{outer}: {root}")
            }
        }
        Err(panic) => panic
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| panic.downcast_ref::<&str>().map(|&text| text.to_owned()))
            .unwrap_or_else(|| "tract stopped".to_owned()),
    };
    // One sentence: tract's reports can span lines and print whole tensors.
    let mut reason = reason.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((end, _)) = reason.char_indices().nth(300) {
        reason.truncate(end);
        reason.push('…');
    }
    Err(ModelError::Shapes { reason })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_of_tract_is_an_error() {
        let error = guarded::<()>(|| panic!("at the\n  bottom")).unwrap_err();
        assert!(error.to_string().contains("(at the bottom)"), "{error}");
    }
}
