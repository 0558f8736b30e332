//! Whether a set's images are a model's input, and a model's answer is what the set's metric judges.

use layerlab_model::Network;
use layerlab_profiles::accuracy::EvaluationSet;

use super::error::{SetError, Shape};

/// Whether a model with this input (a batch of one, channels, height, width) and outputs of these shapes can be asked about
/// the set.
///
/// # Errors
/// When it cannot, with both shapes or both lengths.
fn fits(set: &EvaluationSet, input: &[usize], outputs: &[Vec<u64>]) -> Result<(), SetError> {
    let images: Vec<usize> = std::iter::once(1)
        .chain(set.shape.iter().copied())
        .collect();
    if input != images {
        return Err(SetError::Input {
            set: set.name.clone(),
            model: Shape(input.to_vec()),
            images: Shape(images),
        });
    }
    let classes = set.classes.len();
    let accepted = set.metric.accept_outputs(classes, outputs);
    accepted.map_err(|reason| SetError::Answer {
        set: set.name.clone(),
        classes,
        reason,
    })
}

/// Whether `network` can be asked about the set.
///
/// # Errors
/// When it cannot, with what both have.
pub fn fits_network(set: &EvaluationSet, network: &Network) -> Result<(), SetError> {
    let [input] = network.inputs() else {
        return Err(SetError::Inputs {
            set: set.name.clone(),
            model: network.name().to_owned(),
            inputs: network.inputs().len(),
        });
    };
    let shape: Vec<usize> = input.shape.iter().map(|&axis| axis as usize).collect();
    let outputs = network.outputs().iter();
    let outputs: Vec<Vec<u64>> = outputs.map(|output| output.shape.clone()).collect();
    fits(set, &shape, &outputs)
}

#[cfg(test)]
mod tests {
    use super::super::Annotations;
    use super::super::fixture::{DETECTION, Folder};
    use super::*;

    #[test]
    fn a_model_of_another_input_or_answer_is_refused_with_both() {
        let folder = Folder::new();
        let text = "<annotation><filename>a.png</filename><size><width>40</width><height>20</height></size>
            <object><name>cat</name>
            <bndbox><xmin>1</xmin><ymin>1</ymin><xmax>9</xmax><ymax>9</ymax></bndbox></object></annotation>";
        folder.write("voc/1.xml", text);
        let source = folder.source(Annotations::Voc(folder.path("voc")), DETECTION);
        let set = source.load().expect("a set").set;
        fits(&set, &[1, 3, 10, 10], &[vec![1, 7 * 7 * 11]]).expect("they fit");
        let said = |input: &[usize], answer| {
            let refused = fits(&set, input, &[vec![1, answer]]).expect_err("refused");
            refused.to_string()
        };
        let input = said(&[1, 3, 224, 224], 7 * 7 * 11);
        assert!(
            input.contains("1x3x224x224") && input.contains("1x3x10x10"),
            "{input}"
        );
        let answer = said(&[1, 3, 10, 10], 1470);
        assert!(
            answer.contains("1470") && answer.contains("539"),
            "{answer}"
        );
    }
}
