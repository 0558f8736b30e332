//! What the phone's groups draw, by what was measured of its layers (docs/method.md §13).

use layerlab_profiles::document::Profile;
use layerlab_profiles::time_model::ProcessorTimes;
use layerlab_profiles::{Segment, SignedNanos};

use super::{MeasuredNetwork, MeasuredSplitError};
use crate::edge::energy::Energy;
use crate::edge::side::Side;
use crate::edge::side_processor::SideProcessor;
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
        let drawn = self
            .processors(Side::Phone)
            .iter()
            .map(|processor| ProcessorTimes {
                kind: processor.kind(),
                times: energy.of_layers(processor.name(), self.network.layers()),
            })
            .collect();
        MeasuredNetwork { drawn, ..self }.where_allowed(|_, _, _| true)
    }
}

/// What a group draws on the phone's processor at this place; nothing where energy is not planned with.
pub(super) fn of_group(
    drawn: &[ProcessorTimes],
    processors: &[SideProcessor],
    segment: Segment,
    place: usize,
) -> Result<Energy, ProfileError> {
    let Some(here) = drawn.get(place) else {
        return Ok(Energy::ZERO);
    };
    let none = || ProfileError::NoEnergyOn {
        processor: processors[place].name().to_owned(),
    };
    let nanojoules = of_run(here, segment).ok_or_else(none)?;
    // What noise took below zero is zero.
    let nanojoules = u64::try_from(nanojoules.as_nanos()).unwrap_or(0);
    Ok(Energy::from_nanojoules(nanojoules))
}

/// What a run of layers draws, in nJ: energies add up as times do. Nothing where that is not known of all of it.
fn of_run(drawn: &ProcessorTimes, segment: Segment) -> Option<SignedNanos> {
    let runs = drawn.runs_from(segment.first() as usize);
    *runs.get(segment.layers() as usize - 1)?
}
