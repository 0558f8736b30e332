//! What a network answers to images, as tract computes it on this machine. Nothing is timed.

use tract_onnx::prelude::*;

use crate::infer::one_line;
use crate::{ModelError, Network, infer};

/// Why a network does not answer.
#[derive(Debug, thiserror::Error)]
pub enum AnswerError {
    /// It takes more than an image.
    #[error("the model has {inputs} inputs, and images go into one: name another model")]
    Inputs {
        /// How many inputs it has.
        inputs: usize,
    },
    /// It could not be run.
    #[error("the model fails on image {image} ({reason}): check that the images were made for it")]
    Run {
        /// The image's place, counted from 1.
        image: usize,
        /// What tract said, in one line.
        reason: String,
    },
    /// It cannot be run at all.
    #[error(transparent)]
    Model(#[from] ModelError),
}

/// The values of all outputs of `network`, one after the other, for each image.
///
/// # Errors
/// When it cannot be run, or fails on an image.
pub fn answers(
    network: &Network,
    images: impl IntoIterator<Item = Vec<f32>>,
) -> Result<Vec<Vec<f32>>, AnswerError> {
    let [input] = network.inputs() else {
        return Err(AnswerError::Inputs {
            inputs: network.inputs().len(),
        });
    };
    let shape: Vec<usize> = input.shape.iter().map(|&length| length as usize).collect();
    let model = infer::optimized(&network.model())?;
    let failed = |image| {
        move |error: TractError| AnswerError::Run {
            image,
            reason: one_line(&error),
        }
    };
    let plan = model.into_runnable().map_err(failed(1))?;
    let answer = |image: Vec<f32>| -> TractResult<Vec<f32>> {
        let image = Tensor::from_shape(&shape, &image)?;
        let image = image.cast_to_dt(input.element.tract())?.into_owned();
        let outputs = plan.run(tvec!(image.into_tvalue()))?;
        let mut values = Vec::new();
        for output in outputs {
            let floats = output.cast_to::<f32>()?;
            values.extend(floats.to_plain_array_view::<f32>()?.iter());
        }
        Ok(values)
    };
    let images = (1..).zip(images);
    images
        .map(|(number, image)| answer(image).map_err(failed(number)))
        .collect()
}
