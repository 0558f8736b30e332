//! A model and its quantised twin, and which of the two a processor runs.

use std::sync::Arc;

use layerlab_model::{Network, NotATwin, twin_of};
use layerlab_profiles::document::ONNX_RUNTIME;
use layerlab_protocol::{Numerics, Processor};

use crate::runtime::Unsupported;

/// A model, with the quantised twin of it that processors with 8-bit arithmetic run, where there is one.
#[derive(Clone)]
pub struct ModelWithTwin {
    model: Arc<Network>,
    quantised: Option<Arc<Network>>,
}

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
    /// [`NotATwin`], with what differs.
    pub fn with_twin(model: Arc<Network>, quantised: &Network) -> Result<ModelWithTwin, NotATwin> {
        let twin = twin_of(&model, quantised)?;
        Ok(ModelWithTwin {
            model,
            quantised: Some(Arc::new(twin)),
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

#[cfg(test)]
mod tests {
    use layerlab_protocol::ProcessorKind;

    use super::*;

    fn network(name: &str) -> Arc<Network> {
        let models = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/models"));
        let network = Network::open(&models.join(name), &Default::default());
        Arc::new(network.expect("a model"))
    }

    fn processor(runtime: &str, numerics: Numerics) -> Processor {
        Processor {
            name: "npu".to_owned(),
            kind: ProcessorKind::Accelerator,
            numerics,
            emulated: false,
            runtime: runtime.to_owned(),
            runtime_version: "1".to_owned(),
            runtime_options: None,
            runtime_libraries: None,
            memory_bytes: None,
            threads: None,
            pinned_to_cores: None,
        }
    }

    #[test]
    fn eight_bit_processors_of_onnx_runtime_alone_run_the_twin() {
        let (model, quantised) = (
            network("inception.onnx"),
            network("quantised/inception.onnx"),
        );
        let both = ModelWithTwin::with_twin(Arc::clone(&model), &quantised).expect("twins");
        for (runtime, numerics, runs_twin) in [
            (ONNX_RUNTIME, Numerics::I8, true),
            (ONNX_RUNTIME, Numerics::F16, false),
            (ONNX_RUNTIME, Numerics::F32, false),
            ("simulated", Numerics::I8, false),
        ] {
            let run = both.for_processor(&processor(runtime, numerics));
            let is_model = Arc::ptr_eq(run.expect("a network"), &model);
            assert_eq!(is_model, !runs_twin, "{runtime} {numerics:?}");
        }
        let alone = ModelWithTwin::alone(model);
        let refused = alone.for_processor(&processor(ONNX_RUNTIME, Numerics::I8));
        assert_eq!(
            refused.expect_err("no twin").to_string(),
            "needs a quantised model: give one with --quantised; `layerlab quantise` makes one"
        );
    }

    #[test]
    fn a_model_of_other_layers_is_no_twin() {
        let other = network("quantised/inception.onnx");
        let twins = ModelWithTwin::with_twin(network("alexnet.onnx"), &other);
        let refused = twins.err().expect("another network").to_string();
        assert!(refused.contains("layers and the model"), "{refused}");
    }
}
