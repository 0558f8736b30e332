//! What is to become known how well: the numbers of the layer table, each with the width that it may have.

use crate::derive::LayerTime;
use crate::derive::graph::{Contrast, Fit};
use crate::segment::Segment;
use crate::summary::Estimate;
use crate::units::SignedNanos;

/// One number that the profile publishes.
#[derive(Clone, Debug)]
pub(super) struct Aim {
    pub(super) contrast: Contrast,
    /// Its variance now, in ns².
    pub(super) variance: f64,
    /// The half width of its 95 % interval that counts as 1: the number itself, or the average layer's
    /// share of the model where the number is smaller than that. A layer that hardly costs anything need
    /// not be known to a few per cent of hardly anything.
    pub(super) scale_ns: f64,
    /// The half width of its 95 % interval now.
    pub(super) half_width_ns: f64,
}

impl Aim {
    /// The half width as a share of the scale.
    pub(super) fn relative(&self) -> f64 {
        self.half_width_ns / self.scale_ns
    }
}

/// All compute and transfer times of the layer table.
pub(super) fn aims(fit: &Fit) -> Vec<Aim> {
    let (nodes, layers) = (fit.nodes(), fit.layers());
    let share = share(layers, fit.time_ns(Segment::whole(layers)));
    let aim = |contrast: Contrast| Aim {
        variance: fit.variance_of_neighbours(&contrast),
        scale_ns: fit.value_ns(&contrast).abs().max(share),
        half_width_ns: fit
            .half_width_from_nearby(&contrast)
            .unwrap_or(f64::INFINITY),
        contrast,
    };
    let computing = (1..=layers).map(|layer| nodes.compute(layer));
    let moving = (1..layers).map(|layer| nodes.transfer_after(layer));
    computing.chain(moving).map(aim).collect()
}

/// The widest 95 % interval of a layer table, by whatever method it came about: the half width as a share of
/// its number, or of the average layer's share of the whole model's time where that is larger. This is what
/// the adaptive design lowers until it is at its target. Infinite where a number has no interval.
pub fn widest(times: &[LayerTime], whole: SignedNanos) -> f64 {
    let share = share(times.len() as u32, whole.as_nanos() as f64);
    times
        .iter()
        .flat_map(|time| [Some(time.compute), time.to_processor, time.from_processor])
        .flatten()
        .map(|estimate| half_width(estimate) / (estimate.value.as_nanos() as f64).abs().max(share))
        .fold(0.0, f64::max)
}

/// What an average layer takes of the whole model's time, in ns.
fn share(layers: u32, whole_ns: f64) -> f64 {
    (whole_ns / f64::from(layers)).max(1.0)
}

/// Half the interval's width; boundless where there is none.
fn half_width(estimate: Estimate) -> f64 {
    estimate.ci95.map_or(f64::INFINITY, |(low, high)| {
        (high - low).as_nanos() as f64 / 2.0
    })
}
