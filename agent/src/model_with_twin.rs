//! A model and its quantised twin, and which of the two a processor runs.

use std::sync::Arc;

use layerlab_model::Network;
use layerlab_profiles::document::ONNX_RUNTIME;
use layerlab_protocol::{Numerics, Processor};

use crate::runtime::Unsupported;

/// A model, with the quantised twin of it that processors with 8-bit arithmetic run, where there is one.
#[derive(Clone)]
pub struct ModelWithTwin {
    model: Arc<Network>,
    quantised: Option<Arc<Network>>,
}

/// A quantised model that is no twin of the model beside it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the quantised model is not the model's twin: {0}; make one with `layerlab quantise`")]
pub struct NoTwin(String);

impl ModelWithTwin {
    /// A model without a twin.
    pub fn alone(model: Arc<Network>) -> ModelWithTwin {
        ModelWithTwin {
            model,
            quantised: None,
        }
    }

    /// A model and its quantised twin, which must have the same layers with the same tensors at every cut.
    ///
    /// # Errors
    /// [`NoTwin`], with what differs.
    pub fn with_twin(
        model: Arc<Network>,
        quantised: Arc<Network>,
    ) -> Result<ModelWithTwin, NoTwin> {
        refuse_no_twin(&model, &quantised)?;
        Ok(ModelWithTwin {
            model,
            quantised: Some(quantised),
        })
    }

    /// The model itself.
    pub fn model(&self) -> &Arc<Network> {
        &self.model
    }

    /// What `processor` runs: ONNX Runtime finds 8-bit arithmetic in the quantised twin alone, all else runs the model.
    ///
    /// # Errors
    /// The reason, for a person, where a twin is needed and there is none.
    pub fn for_processor(&self, processor: &Processor) -> Result<&Arc<Network>, Unsupported> {
        if processor.runtime != ONNX_RUNTIME || processor.numerics != Numerics::I8 {
            return Ok(&self.model);
        }
        self.quantised.as_ref().ok_or_else(|| {
            Unsupported::because(
                "needs a quantised model: give one with --quantised; `layerlab quantise` makes one",
            )
        })
    }
}

/// Refuses a quantised model whose layers or tensors at cuts are others than the model's.
fn refuse_no_twin(model: &Network, quantised: &Network) -> Result<(), NoTwin> {
    let layers = model.layer_count();
    if quantised.layer_count() != layers {
        return Err(NoTwin(format!(
            "it has {} layers and the model has {layers}",
            quantised.layer_count()
        )));
    }
    for cut in 0..=layers {
        if model.frontier(cut) != quantised.frontier(cut) {
            return Err(NoTwin(format!(
                "after layer {cut} it has other tensors than the model"
            )));
        }
    }
    Ok(())
}
