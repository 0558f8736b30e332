//! Images of an evaluation set as what a network takes.

use layerlab_model::{Network, TensorSpec};
use layerlab_profiles::accuracy::EvaluationSet;

use crate::runtime::Tensor;

/// Images of a set that are a network's input, one at a time.
pub(crate) struct SetImages<'a> {
    set: &'a EvaluationSet,
    input: &'a TensorSpec,
}

impl<'a> SetImages<'a> {
    /// Those of these places in `set`, as the input of `network`.
    ///
    /// # Errors
    /// When the set does not have all of them, or the network takes something else: in a sentence.
    pub(crate) fn of(
        set: &'a EvaluationSet,
        images: &[u64],
        network: &'a Network,
    ) -> Result<SetImages<'a>, String> {
        let all = set.answers() as u64;
        if let Some(beyond) = images.iter().find(|&&image| image >= all) {
            return Err(format!(
                "the order asks for image {beyond} of an evaluation set of {all}"
            ));
        }
        if set.metric.images_per_answer() != 1 {
            return Err("tensors are packed of single images, and the set has pairs".to_owned());
        }
        match network.inputs() {
            [input] if input.elements() == set.image_len() as u64 => Ok(SetImages { set, input }),
            _ => Err(format!(
                "the images of this evaluation set have the shape {:?}, which is not that of the model's input",
                set.shape
            )),
        }
    }

    /// The image of this place.
    ///
    /// # Errors
    /// When it is not there: in a sentence.
    pub(crate) fn tensor(&self, image: u64) -> Result<Tensor, String> {
        let values = self.set.images(image as usize).into_iter().next();
        let values = values.ok_or_else(|| format!("the set has no image {image}"))?;
        let shape = self.input.shape.iter().map(|&axis| axis as usize).collect();
        let tensor = Tensor::from_floats(self.input.element, shape, &values);
        tensor.map_err(|reason| reason.to_string())
    }
}
