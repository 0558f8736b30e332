//! What a gate found, in people's words.

use super::{Gated, GatedNumber};
use crate::layer::Layer;
use crate::units::{NanoJoules, SignedNanos};

impl GatedNumber {
    /// Which number it is, of a model with these layers: `layer 1 C1`.
    pub fn what(&self, layers: &[Layer]) -> String {
        let name = |number: u32| {
            let layer = layers.iter().find(|layer| layer.number == number);
            layer.map_or("", |layer| layer.name.as_str())
        };
        match self {
            GatedNumber::Layer { layer, .. } => format!("layer {layer} {}", name(*layer)),
            GatedNumber::Cut { after_layer, .. } => {
                format!("cut after layer {after_layer} {}", name(*after_layer))
            }
            GatedNumber::Whole { .. } => "whole model".to_owned(),
            GatedNumber::Energy {
                layer: Some(layer), ..
            } => format!("energy of layer {layer} {}", name(*layer)),
            GatedNumber::Energy { layer: None, .. } => "energy of the whole model".to_owned(),
            GatedNumber::Accuracy { placement, .. } => format!("accuracy of {placement}"),
        }
    }

    /// On which processor, or which processors.
    pub fn on(&self) -> String {
        match self {
            GatedNumber::Layer { processor, .. }
            | GatedNumber::Cut { processor, .. }
            | GatedNumber::Whole { processor }
            | GatedNumber::Energy { processor, .. } => processor.clone(),
            GatedNumber::Accuracy { processors, .. } => processors.join(", "),
        }
    }
}

impl Gated {
    /// A value of its unit: a time, an energy, or an accuracy as a share.
    pub fn value(&self, value: f64) -> String {
        match self.number {
            GatedNumber::Accuracy { .. } => format!("{value:.4}"),
            GatedNumber::Energy { .. } => {
                NanoJoules::from_nanojoules(value.round() as i64).to_string()
            }
            _ => SignedNanos::from_nanos(value.round() as i64).to_string(),
        }
    }

    /// By how much it is worse, with half the width of the 95 % interval: as a share, or where the number cannot be told from
    /// zero, in its unit.
    pub fn worse_by(&self) -> String {
        match self.one > 2.0 * self.half_width {
            true => format!(
                "{:+.1} % ± {:.1} %",
                100.0 * self.worse / self.one,
                100.0 * self.half_width / self.one
            ),
            false => format!(
                "{} ± {}",
                self.value(self.worse),
                self.value(self.half_width)
            ),
        }
    }

    /// By how much it would have to be worse to be found nineteen times in twenty, in the same way.
    pub fn found_from(&self) -> String {
        match self.one > 2.0 * self.half_width {
            true => format!("{:+.1} %", 100.0 * self.detectable / self.one),
            false => self.value(self.detectable),
        }
    }

    /// All of it: `layer 1 C1 on cpu: +25.0 % ± 1.2 %`.
    pub fn words(&self, layers: &[Layer]) -> String {
        let (what, on) = (self.number.what(layers), self.number.on());
        format!("{what} on {on}: {}", self.worse_by())
    }
}
