//! What a combination looks like to a regressor (docs/method.md §6, mlmp §4.2.1), apart from its zeros and ones.

use crate::layer::Layer;
use crate::segment::Combination;
use crate::units::Bytes;

/// Sums over the layers on the accelerator.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Features {
    /// How many layers are on the accelerator.
    pub npu_layers: u32,
    /// The mean of the losses that these layers have alone; 0 when there are none.
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

/// The features of a combination of these layers, of which `single_losses` says what each loses alone.
///
/// # Panics
/// When the three are not of one network.
pub fn features(layers: &[Layer], single_losses: &[f64], combination: &Combination) -> Features {
    assert_eq!(layers.len(), combination.layers(), "layers of one network");
    assert_eq!(layers.len(), single_losses.len(), "a loss for each layer");
    let mut features = Features::default();
    let mut losses = 0.0;
    let all = layers.iter().zip(single_losses).zip(combination.on_npu());
    for ((layer, loss), _) in all.filter(|(_, on_npu)| **on_npu) {
        features.npu_layers += 1;
        losses += loss;
        features.parameters = features.parameters + layer.parameter_bytes;
        features.inputs = features.inputs + layer.input_bytes;
        features.outputs = features.outputs + layer.output_bytes;
        features.additions += layer.additions;
        features.multiplications += layer.multiplications;
    }
    if features.npu_layers > 0 {
        features.mean_single_loss = losses / f64::from(features.npu_layers);
    }
    features
}
