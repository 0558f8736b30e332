//! The placements of an evaluation, and what each is for (docs/method.md §6).

use std::collections::BTreeSet;

use super::sampler::sample_without;
use super::{Part, references_on, sample_on, split};
use crate::placement::Placement;
use crate::supported::SupportedLayers;

/// The references and `samples` random placements on processors that can run these layers, each once, all layers on
/// processor 0 first.
///
/// # Panics
/// As [`sample_on`].
pub fn chosen_placements(
    supported: &[SupportedLayers],
    samples: usize,
    seed: u64,
) -> Vec<(Placement, Part)> {
    in_parts(supported, sample_on(supported, samples, seed), seed)
}

/// The same as evaluations chose them that profiles of version 3 hold: a reference that was drawn counted as random.
pub(crate) fn chosen_in_version_3(
    supported: &[SupportedLayers],
    samples: usize,
    seed: u64,
) -> Vec<(Placement, Part)> {
    let all_on_cpu = references_on(supported).into_iter().take(1).collect();
    let drawn = sample_without(supported, &all_on_cpu, samples, seed);
    in_parts(supported, drawn, seed)
}

fn in_parts(
    supported: &[SupportedLayers],
    drawn: Vec<Placement>,
    seed: u64,
) -> Vec<(Placement, Part)> {
    let parts = split(drawn.len(), seed);
    let random: BTreeSet<&Placement> = drawn.iter().collect();
    let mut references = references_on(supported);
    references.retain(|reference| !random.contains(reference));
    let references = references.into_iter().map(|one| (one, Part::Reference));
    references.chain(drawn.iter().cloned().zip(parts)).collect()
}

/// How many placements there are on processors that can run these layers, all layers on processor 0 among them; as many
/// as can be counted if there are more.
pub(crate) fn number_of_placements(supported: &[SupportedLayers]) -> u128 {
    let layers = supported.first().map_or(0, SupportedLayers::layers);
    let choices = |layer| supported.iter().filter(|one| one.has(layer)).count() as u128;
    (1..=layers).map(choices).fold(1, u128::saturating_mul)
}
