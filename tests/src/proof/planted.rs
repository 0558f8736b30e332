//! What an estimator should find: the planted times, in the terms in which they can be known.

use layerlab_agent::runtime::simulated::PlantedTimes;
use layerlab_profiles::Segment;

/// The layer times that follow from exact segment times under the assumption that a cut costs the same
/// both ways (docs/method.md §3). On a device that keeps the assumption, they are the planted ones.
#[derive(Clone, Debug, PartialEq)]
pub struct Planted {
    /// t_p of each layer in ns; the first contains t_d, the last t_r.
    pub compute: Vec<f64>,
    /// c_l of the cut after each layer but the last, in ns.
    pub cuts: Vec<f64>,
}

impl Planted {
    /// The layer times of an accelerator with these planted times.
    pub fn of(times: &PlantedTimes) -> Planted {
        let layers = times.compute().len() as u32;
        let exact = |first, last| {
            let segment = Segment::new(first, last).expect("layers of the network, ascending");
            times.segment(segment).as_nanos() as f64
        };
        let cuts: Vec<f64> = (1..layers)
            .map(|l| exact(1, l) + exact(l + 1, layers) - exact(1, layers))
            .collect();
        let half = |cut: Option<usize>| cut.and_then(|cut| cuts.get(cut)).map_or(0.0, |c| c / 2.0);
        let compute = (1..=layers)
            .map(|l| {
                let l_usize = l as usize;
                exact(l, l) - half(l_usize.checked_sub(2)) - half(Some(l_usize - 1))
            })
            .collect();
        Planted { compute, cuts }
    }
}
