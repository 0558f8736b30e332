//! Requests to run a layer that are timed over a link, beside echoes.

use std::path::PathBuf;

use anyhow::anyhow;
use layerlab_edge::{InferRequest, Stretch, TensorShape, TimedRequests, hash_bytes};
use layerlab_model::{ElementType, TensorSpec};

use crate::exit::{Code, Failure};
use crate::model_options::{open_with_twin, parse_dim};

/// A model whose last layer the server is asked to run.
#[derive(clap::Args)]
pub(super) struct RequestArgs {
    /// Also time requests to run the last layer of this model, as many as echoes: the server must have been started with it, and
    /// plans of its layers know what a request takes
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
    /// So many requests, if a model was named.
    pub(super) fn timed(&self, count: u32) -> Result<Option<TimedRequests>, Failure> {
        let Some(path) = &self.model else {
            return Ok(None);
        };
        let model = open_with_twin(path, None, &self.dims.iter().cloned().collect())?;
        let last = model.network.layer_count();
        let [inputs, outputs] = [last - 1, last].map(|cut| shapes(model.network.frontier(cut)));
        let stretch = Stretch {
            last,
            processor: self.processor.clone(),
        };
        let (inputs, expected) = inputs
            .zip(outputs)
            .ok_or_else(|| self.not_asked("a tensor of it does not cross a link"))?;
        let asked = InferRequest {
            // It was calculated from the file.
            model: hash_bytes(&model.source_sha256).unwrap_or_default(),
            first: last,
            stretches: vec![stretch],
            tensors: inputs,
        };
        match asked.fits_a_frame() && asked.payload_bytes().is_some() {
            true => Ok(Some(TimedRequests {
                count,
                model: model.network.name().to_owned(),
                asked,
                expected,
            })),
            false => Err(self.not_asked("its tensors are too large for a request")),
        }
    }

    fn not_asked(&self, why: &str) -> Failure {
        let model = self.model.as_deref().unwrap_or("?".as_ref()).display();
        let error = anyhow!(
            "no server can be asked to run the last layer of {model}: {why}; leave --model out"
        );
        Failure::new(Code::Input, error)
    }
}

/// The shapes of tensors of 32-bit floats; nothing where there are others.
fn shapes(frontier: &[TensorSpec]) -> Option<Vec<TensorShape>> {
    let shape = |spec: &TensorSpec| {
        let axes = spec.shape.iter().map(|&axis| u32::try_from(axis).ok());
        let axes: Option<Vec<u32>> = axes.collect();
        axes.filter(|_| spec.element == ElementType::F32)
            .map(TensorShape)
    };
    frontier.iter().map(shape).collect()
}
