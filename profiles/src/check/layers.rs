//! Is `layers.csv` one model?

use super::{Findings, Rule};
use crate::document::Profile;

pub(super) fn check(profile: &Profile, findings: &mut Findings) {
    let layers = &profile.layers;
    let stated = profile.header.model.layers;
    let count = layers.len();
    findings.add(
        Rule::LayerCount,
        (u64::from(stated) != count as u64)
            .then(|| format!("profile.json speaks of {stated} layers and layers.csv has {count}")),
    );
    let misnumbered = (1_u32..)
        .zip(layers)
        .filter(|(number, layer)| layer.number != *number);
    findings.add(
        Rule::LayerNumbering,
        misnumbered.map(|(number, layer)| {
            let found = layer.number;
            format!("row {number} of layers.csv has the number {found}")
        }),
    );
    let cuts = layers.windows(2).filter_map(|pair| match pair {
        [before, after] if before.output_bytes != after.input_bytes => Some(format!(
            "layer {} gives out {} bytes and layer {} takes in {}",
            before.number,
            before.output_bytes.as_bytes(),
            after.number,
            after.input_bytes.as_bytes()
        )),
        _ => None,
    });
    findings.add(Rule::FrontierMismatch, cuts);
}
