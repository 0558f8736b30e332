//! Requests to run a layer that are timed over a link, beside echoes.

use std::path::PathBuf;

use anyhow::anyhow;
use layerlab_edge::{InferRequest, Stretch, TensorShape, TimedRequests, hash_bytes, payload_bytes};
use layerlab_model::{ElementType, TensorSpec};
use layerlab_profiles::Segment;

use crate::exit::{Code, Failure};
use crate::model_options::{open_with_twin, parse_dim};

/// A model of which the server is asked to run a layer.
#[derive(clap::Args)]
pub(super) struct RequestArgs {
    /// Also time requests to run a layer of this model, the last that has fewer bytes than any transfer, as many as echoes: the
    /// server must have been started with it, and plans of its layers know what a request takes
    #[arg(long, value_name = "FILE")]
    model: Option<PathBuf>,
    /// The size of a symbolic dimension of the model; may be repeated
    #[arg(long = "dim", value_name = "NAME=SIZE", value_parser = parse_dim, requires = "model")]
    dims: Vec<(String, u64)>,
    /// The server's processor that runs it, as the server's profile calls it
    #[arg(
        long,
        value_name = "NAME",
        default_value = "cpu:all",
        requires = "model"
    )]
    processor: String,
}

impl RequestArgs {
    /// So many requests that are smaller than `smallest_transfer` bytes, if a model was named.
    pub(super) fn timed(
        &self,
        count: u32,
        smallest_transfer: u64,
    ) -> Result<Option<TimedRequests>, Failure> {
        let Some(path) = &self.model else {
            return Ok(None);
        };
        let model = open_with_twin(path, None, &self.dims.iter().cloned().collect())?;
        let layers = (1..=model.network.layer_count()).rev();
        let small = layers.into_iter().find_map(|layer| {
            let one = Segment::single(layer);
            let inputs = shapes(&model.network.takes(one))?;
            let outputs = shapes(&model.network.gives(one))?;
            let is_small =
                |tensors| payload_bytes(tensors).is_some_and(|it| it < smallest_transfer);
            (is_small(&inputs) && is_small(&outputs)).then_some((layer, inputs, outputs))
        });
        let Some((layer, tensors, expected)) = small else {
            let error = anyhow!(
                "no layer of {} takes and gives fewer than {smallest_transfer} bytes of 32-bit floats, so that no request is smaller \
                 than a transfer; leave --model out",
                path.display()
            );
            return Err(Failure::new(Code::Input, error));
        };
        Ok(Some(TimedRequests {
            count,
            model: model.network.name().to_owned(),
            asked: InferRequest {
                // It was calculated from the file.
                model: hash_bytes(&model.source_sha256).unwrap_or_default(),
                first: layer,
                stretches: vec![Stretch {
                    last: layer,
                    processor: self.processor.clone(),
                }],
                tensors,
            },
            expected,
        }))
    }
}

/// The shapes of tensors of 32-bit floats; nothing where there are others.
fn shapes(tensors: &[TensorSpec]) -> Option<Vec<TensorShape>> {
    let shape = |spec: &TensorSpec| {
        let axes = spec.shape.iter().map(|&axis| u32::try_from(axis).ok());
        let axes: Option<Vec<u32>> = axes.collect();
        axes.filter(|_| spec.element == ElementType::F32)
            .map(TensorShape)
    };
    tensors.iter().map(shape).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// Of AlexNet's kin, whose tensors become smaller towards its end.
    #[test]
    fn the_last_layer_that_is_smaller_than_any_transfer_is_asked_for() {
        let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/models");
        let args = RequestArgs {
            model: Some(models.join("alexnet.onnx")),
            dims: Vec::new(),
            processor: "cpu:all".to_owned(),
        };
        let timed = |smallest| args.timed(7, smallest);
        let requests = timed(16 << 10).expect("a model").expect("it was named");
        let method = requests.method();
        assert_eq!((method.first_layer, method.last_layer), (11, 11));
        let bytes = [method.request_bytes, method.answer_bytes];
        assert_eq!(bytes.map(|it| it.as_bytes()), [512, 80]);
        assert_eq!((method.count, method.model.as_str()), (7, "alexnet"));
        // One that takes as many bytes is no smaller.
        timed(513).expect("a model");
        let failure = timed(512).expect_err("no layer takes fewer");
        assert_eq!(failure.code, Code::Input);
        let said = failure.to_string();
        assert!(
            said.contains("alexnet.onnx takes and gives fewer than 512"),
            "{said}"
        );
        assert!(said.contains("leave --model out"), "{said}");
    }
}
