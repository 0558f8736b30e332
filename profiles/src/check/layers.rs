//! Is `layers.csv` one model?

use super::{Findings, Rule};
use crate::document::Profile;
use crate::shortcuts::Shortcuts;

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
    findings.add(Rule::FrontierMismatch, cuts.chain(shortcuts(profile)));
}

/// What layers give to others than the next crosses the cuts between them.
fn shortcuts(profile: &Profile) -> impl Iterator<Item = String> + '_ {
    let layers = &profile.layers;
    let misplaced = layers.iter().flat_map(|layer| {
        let (number, count) = (u64::from(layer.number), layers.len() as u64);
        let readers = layer.shortcuts.iter().map(|shortcut| shortcut.to_layer);
        let wrong = readers.filter(move |&to| !(number + 2..=count).contains(&u64::from(to)));
        wrong.map(move |to| {
            format!("layer {number} is said to give something beyond the next layer to layer {to}")
        })
    });
    let all = Shortcuts::of(layers);
    let too_much = layers.iter().filter_map(move |layer| {
        let crossing = all.crossing(layer.number);
        (crossing > layer.output_bytes).then(|| {
            format!(
                "{} bytes are given beyond layer {} by it and those before it, and {} cross the cut after it",
                crossing.as_bytes(),
                u64::from(layer.number) + 1,
                layer.output_bytes.as_bytes()
            )
        })
    });
    misplaced.chain(too_much)
}
