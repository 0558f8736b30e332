//! How long everything takes: the part of a campaign from which layer times are derived.

use layerlab_profiles::Shortcuts;
use layerlab_profiles::document::{FORMAT, Header, Model, ModelInput, Processor, Profile, VERSION};
use layerlab_profiles::soak::Thermal;

use super::drive::drive_with_probes;
use super::provenance::{provenance, this_program};
use super::{
    CampaignError, File, Follower, KnownJournal, ModelFile, ProbeFiles, TimesPlan, TimesSettings,
};
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
    )?
    .with_twin(model.quantised_sha256())
    .with_shortcuts(Shortcuts::of(model.network.layers()));
    let plan = match plan.wants_probes() {
        true => plan.with_probes(ProbeFiles::of(&model.network, model.quantised.is_some())?),
        false => plan,
    };
    follower.planned(plan.samples());
    let files: Vec<File<'_>> = model.files().chain(plan.probes().files()).collect();
    let probes = plan.probes().by_hash();
    let mut orders = plan.orders();
    let measured = drive_with_probes(link, journal, &files, &mut orders, &probes, follower).await?;
    drop(orders);
    let processors = plan.processors.iter();
    let processors: Vec<Processor> = processors.map(|plan| plan.processor.clone()).collect();
    let inputs = model.network.inputs().iter().map(|input| ModelInput {
        name: input.name.clone(),
        shape: input.shape.clone(),
    });
    // Building the profile settles of what state of the device its times are.
    let header = Header {
        format: FORMAT.to_owned(),
        version: VERSION,
        simulated: hello.device.simulated,
        thermal: Thermal::Cold,
        emulated: processors.iter().any(|processor| processor.emulated),
        model: Model {
            name: model.network.name().to_owned(),
            sha256: model.source_sha256.clone(),
            external_weights: model.external_weights.clone(),
            quantised: model.quantised.as_ref().map(|twin| twin.source.clone()),
            opset: model.network.opset(),
            layers,
            inputs: Some(inputs.collect()),
        },
        device: hello.device.clone(),
        measurements: plan.measurements(&measured),
        processors,
        provenance: provenance(link, journal, hello),
        written_by: Some(this_program()),
    };
    let layers = model.network.layers().to_vec();
    Ok(Profile::build(header, layers, measured)?)
}
