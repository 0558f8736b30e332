//! What the whole model takes with all its layers on one processor.

use super::Profile;
use crate::placement::Placement;
use crate::time_model::{ProcessorTimes, TimeModel};
use crate::units::SignedNanos;

impl Profile {
    /// T(L) with all layers on one processor, for each processor of the header in its order; nothing for one that cannot
    /// run every layer, or whose memory does not hold all as one segment.
    pub fn whole_model_times(&self) -> Vec<Option<SignedNanos>> {
        let processors = self.header.processors.iter();
        let time = processors.map(|processor| {
            if !self.supported(&processor.name).holds_whole() {
                return None;
            }
            let times = ProcessorTimes::new(processor.kind, &self.layer_times(&processor.name));
            let model = TimeModel::of(vec![times]).ok()?;
            let all = Placement::all_on(0, self.layers.len());
            Some(model.predict(&all).ok()?.total())
        });
        time.collect()
    }
}
