//! What the phone's groups draw, by what was measured of its layers (docs/method.md §13).

use layerlab_profiles::document::Profile;
use layerlab_profiles::time_model::ProcessorTimes;
use layerlab_profiles::{Segment, SignedNanos};

use super::{MeasuredNetwork, MeasuredSplitError};
use crate::edge::energy::Energy;
use crate::edge::network::SplitNetwork;
use crate::edge::side::Side;
use crate::profile::ProfileError;

impl MeasuredNetwork {
    /// The same network whose groups cost the phone what its profile says that they draw above an idle phone (Emobile, jointdnn
    /// Eq. 8), each on the processor that runs it soonest.
    ///
    /// # Errors
    /// A profile without energies, or without those of a processor on which a group runs soonest.
    pub fn with_phone_energy(self, phone: &Profile) -> Result<MeasuredNetwork, MeasuredSplitError> {
        let Some(energy) = &phone.energy else {
            return Err(ProfileError::NoEnergy.into());
        };
        let drawn: Vec<ProcessorTimes> = self
            .processors(Side::Phone)
            .iter()
            .map(|processor| ProcessorTimes {
                kind: processor.kind(),
                times: energy.of_layers(processor.name(), self.network.layers()),
            })
            .collect();
        let mut groups = self.network.groups().to_vec();
        for group in &mut groups {
            let place = self.soonest.get(&group.segment).and_then(|it| it[0]);
            let (Some(cost), Some(place)) = (&mut group.phone, place) else {
                continue;
            };
            let none = || ProfileError::NoEnergyOn {
                processor: self.processors(Side::Phone)[place].name().to_owned(),
            };
            let nanojoules = of_run(&drawn[place], group.segment).ok_or_else(none)?;
            // What noise took below zero is zero.
            let nanojoules = u64::try_from(nanojoules.as_nanos()).unwrap_or(0);
            cost.energy = Energy::from_nanojoules(nanojoules);
        }
        let (layers, tensors) = (self.network.layers(), self.network.tensors().to_vec());
        Ok(MeasuredNetwork {
            network: SplitNetwork::new(layers, groups, tensors)?,
            ..self
        })
    }
}

/// What a run of layers draws, in nJ: energies add up as times do. Nothing where that is not known of all of it.
fn of_run(drawn: &ProcessorTimes, segment: Segment) -> Option<SignedNanos> {
    let runs = drawn.runs_from(segment.first() as usize);
    *runs.get(segment.layers() as usize - 1)?
}
