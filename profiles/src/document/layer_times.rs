//! The layer times of one processor, in the order of layers.

use super::Profile;
use crate::derive::LayerTime;

impl Profile {
    /// The times of the layers on a processor, layer 1 first; none of those that it cannot run.
    pub fn layer_times(&self, processor: &str) -> Vec<Option<LayerTime>> {
        let mut times = vec![None; self.layers.len()];
        for row in self.times.iter().filter(|row| row.processor == processor) {
            let place = (row.layer as usize).checked_sub(1);
            if let Some(time) = place.and_then(|place| times.get_mut(place)) {
                *time = Some(row.time);
            }
        }
        times
    }
}
