//! What a placement looks like to a regressor (docs/method.md §6, mlmp §4.2.1), apart from its digits.

use crate::layer::Layer;
use crate::placement::Placement;
use crate::units::Bytes;

/// Sums over the layers that are off processor 0: with two processors, those on the accelerator.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Features {
    /// How many layers there are.
    pub npu_layers: u32,
    /// The mean of the losses that each of these layers has alone on its processor; 0 when there are none.
    pub mean_single_loss: f64,
    /// The bytes of their weights and other constants.
    pub parameters: Bytes,
    /// What goes into each of them.
    pub inputs: Bytes,
    /// What comes out of each of them.
    pub outputs: Bytes,
    /// Their floating-point additions in one inference.
    pub additions: u64,
    /// Their floating-point multiplications in one inference.
    pub multiplications: u64,
}

/// The features of a placement of these layers. `single_losses` says what each layer loses alone on processor
/// 1, layer 1 first, then what each loses alone on processor 2, and so on.
///
/// # Panics
/// When the layers and the placement are not of one network, or a loss is missing.
pub fn features(layers: &[Layer], single_losses: &[f64], placement: &Placement) -> Features {
    assert_eq!(layers.len(), placement.layers(), "layers of one network");
    let mut features = Features::default();
    let mut losses = 0.0;
    let places = layers.iter().zip(placement.processors()).enumerate();
    for (index, (layer, &processor)) in places.filter(|(_, (_, on))| **on != 0) {
        features.npu_layers += 1;
        losses += single_losses[(usize::from(processor) - 1) * layers.len() + index];
        features.parameters = features.parameters + layer.parameter_bytes;
        features.inputs = features.inputs + layer.input_bytes;
        features.outputs = features.outputs + layer.output_bytes;
        // Saturating: a profile that somebody damaged may count anything.
        features.additions = features.additions.saturating_add(layer.additions);
        features.multiplications = features
            .multiplications
            .saturating_add(layer.multiplications);
    }
    if features.npu_layers > 0 {
        features.mean_single_loss = losses / f64::from(features.npu_layers);
    }
    features
}
