//! Whether a quantised model is the twin of a model: the same layers, and the same tensors at every cut, so that a
//! placement may run some layers of the one and the others of the other.

use super::{ModelError, Network, TensorSpec};

/// What quantisation adds to the name of a tensor that it gives back as floating point.
const DEQUANTISED: &str = "_DequantizeLinear_Output";

/// Refuses a quantised model whose layers or tensors at cuts are others than the model's.
///
/// # Errors
/// [`ModelError::NoTwin`] with the first difference.
pub fn refuse_unless_twins(model: &Network, quantised: &Network) -> Result<(), ModelError> {
    match difference(model, quantised) {
        None => Ok(()),
        Some(difference) => Err(ModelError::NoTwin { difference }),
    }
}

fn difference(model: &Network, quantised: &Network) -> Option<String> {
    let (layers, other) = (model.layer_count(), quantised.layer_count());
    if layers != other {
        return Some(format!("the model has {layers} layers and it has {other}"));
    }
    let names = model.layers().iter().zip(quantised.layers());
    let renamed = names.into_iter().find(|(one, two)| one.name != two.name);
    if let Some((one, two)) = renamed {
        return Some(format!(
            "layer {} is called `{}` in the model and `{}` in it",
            one.number, one.name, two.name
        ));
    }
    let differs = |cut: &u32| {
        let (tensors, others) = (model.frontier(*cut), quantised.frontier(*cut));
        let same = tensors
            .iter()
            .zip(others)
            .all(|(one, two)| are_same(one, two));
        tensors.len() != others.len() || !same
    };
    let cut = (0..=layers).find(differs)?;
    Some(format!("after layer {cut} it has other tensors"))
}

fn are_same(tensor: &TensorSpec, of_twin: &TensorSpec) -> bool {
    let name = of_twin.name.strip_suffix(DEQUANTISED);
    let same_name = tensor.name == of_twin.name || name == Some(&tensor.name);
    same_name && (tensor.element, &tensor.shape) == (of_twin.element, &of_twin.shape)
}
