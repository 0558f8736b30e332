//! Which share of a cut's cost is for entering the processor, the rest being for leaving it (docs/method.md §10).
//!
//! What a cut costs is measured; how that divides is half and half by the papers' assumption, or as probes say.

use nalgebra::{Matrix4, Vector4};

use super::moving::{MovingModel, Parts};
use crate::units::Bytes;

/// A model whose cuts are known worse than this says too little about how they divide.
const LARGEST_ERROR: f64 = 0.1;

/// How far a share may lie beyond 0 or 1 by chance, in standard deviations: as suspects do.
const BY_CHANCE: f64 = 4.0;

/// Why the probes of a processor do not say how cuts divide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undivided {
    /// The cost of a cut is not known well enough.
    Uncertain,
    /// One way would cost less than nothing.
    Implausible,
}

/// The shares of the cuts of one model, or of a stretch of its layers.
#[derive(Clone, Debug, PartialEq)]
pub struct InShares {
    /// Of the cut after each layer but the last; none where all are half.
    of: Vec<InShare>,
    /// Of the numbers on which the shares depend.
    covariance: Matrix4<f64>,
    pub(super) freedom: f64,
    pub(super) has_spread: bool,
}

/// The share of one cut.
#[derive(Clone, Copy, Debug, PartialEq)]
struct InShare {
    value: f64,
    /// How it changes with each of the numbers of the moving model.
    gradient: Vector4<f64>,
}

impl InShares {
    /// The papers' assumption: moving costs the same both ways.
    pub fn symmetric() -> InShares {
        InShares {
            of: Vec::new(),
            covariance: Matrix4::zeros(),
            freedom: f64::INFINITY,
            has_spread: true,
        }
    }

    /// As `model` has it, of cuts that these bytes cross, the cut after layer 1 first.
    pub fn probed(model: &MovingModel, frontiers: &[Bytes]) -> Result<InShares, Undivided> {
        let shares = frontiers.iter().map(|&bytes| InShare::of(model, bytes));
        Ok(InShares {
            of: shares.collect::<Result<_, _>>()?,
            covariance: *model.covariance(),
            freedom: model.freedom(),
            has_spread: model.has_spread(),
        })
    }

    /// Whether they are the papers' assumption, and no probe says so.
    pub(crate) fn are_assumed(&self) -> bool {
        self.of.is_empty()
    }

    /// The share of the cut after `layer` that is for entering.
    pub(super) fn inward(&self, layer: u32) -> f64 {
        self.at(layer).map_or(0.5, |share| share.value)
    }

    /// The variance of a sum of shares, each (the layer before its cut, by what it is multiplied).
    pub(super) fn variance(&self, terms: &[(u32, f64)]) -> f64 {
        let mut gradient = Vector4::zeros();
        for &(layer, factor) in terms {
            if let Some(share) = self.at(layer) {
                gradient += factor * share.gradient;
            }
        }
        (gradient.transpose() * self.covariance * gradient)[(0, 0)].max(0.0)
    }

    fn at(&self, layer: u32) -> Option<&InShare> {
        self.of.get((layer as usize).checked_sub(1)?)
    }
}

impl InShare {
    fn of(model: &MovingModel, bytes: Bytes) -> Result<InShare, Undivided> {
        let Parts { inward, outward } = Parts::of(bytes);
        let both = inward + outward;
        let cost = both.dot(model.values());
        if !(cost > 0.0 && model.variance(&both).sqrt() <= LARGEST_ERROR * cost) {
            return Err(Undivided::Uncertain);
        }
        let value = inward.dot(model.values()) / cost;
        let gradient = (inward - both * value) / cost;
        let beyond = (-value).max(value - 1.0);
        if beyond > BY_CHANCE * model.variance(&gradient).sqrt() + f64::EPSILON {
            return Err(Undivided::Implausible);
        }
        Ok(InShare { value, gradient })
    }
}
