//! How long everything takes: the part of a campaign from which layer times are derived.

use layerlab_profiles::document::{FORMAT, Header, Model, Profile, VERSION};

use super::provenance::{provenance, this_program};
use super::{CampaignError, Follower, KnownJournal, ModelFile, TimesPlan, TimesSettings, drive};
use layerlab_farm::Link;

/// Measures `model` on the device behind `link` and derives its profile, going on with `journal`, which stays on the
/// device.
pub async fn measure_times<L: Link, F: Follower>(
    link: &L,
    model: &ModelFile,
    settings: TimesSettings,
    journal: &KnownJournal,
    follower: &mut F,
) -> Result<Profile, CampaignError> {
    let layers = model.network.layer_count();
    let hello = link.connect().await?.hello;
    let plan = TimesPlan::new(
        &journal.id,
        &model.sha256,
        layers,
        &hello.processors,
        settings,
    )?;
    follower.planned(plan.samples());
    let measured = drive(link, journal, &[model.file()], &mut plan.orders(), follower).await?;
    let header = Header {
        format: FORMAT.to_owned(),
        version: VERSION,
        simulated: hello.device.simulated,
        model: Model {
            name: model.network.name().to_owned(),
            sha256: model.source_sha256.clone(),
            external_weights: model.external_weights.clone(),
            opset: model.network.opset(),
            layers,
        },
        device: hello.device.clone(),
        measurements: plan.measurements(),
        processors: plan
            .processors
            .into_iter()
            .map(|plan| plan.processor)
            .collect(),
        provenance: provenance(link, journal, hello),
        written_by: Some(this_program()),
    };
    let layers = model.network.layers().to_vec();
    Ok(Profile::build(header, layers, measured)?)
}
