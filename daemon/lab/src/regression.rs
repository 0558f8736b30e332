//! Is a profile that was just published worse than the last good one of the same thing? It is only told: the run has not
//! failed, for what was measured is as true as any other.

use std::path::Path;

use layerlab_profiles::compare::CompareError;
use layerlab_profiles::document::Profile;
use layerlab_profiles::gate::{GateResult, GateSettings, ProfileSubject, gate, known_changes};

use crate::baseline::Baseline;
use crate::record::{Run, Verdict};

/// What the gate says of `profile`, which is in the folder `own`, against `baseline` or else against the last good one of
/// what `earlier` runs published on the same device, the newest first. Nothing if there is none to compare with. Reads
/// profiles, which takes a while.
pub(crate) fn verdict(
    profile: &Profile,
    own: &Path,
    earlier: &[Run],
    baseline: Option<&Baseline>,
    settings: GateSettings,
) -> Option<Verdict> {
    let subject = ProfileSubject::of(&profile.header);
    let mut same = earlier.iter().filter_map(|run| {
        let folder = run.profile.as_deref().filter(|folder| *folder != own)?;
        let read = Profile::read(folder).ok()?;
        let is_same = ProfileSubject::of(&read.header).is_same(&subject);
        is_same.then_some((run, folder, read))
    });
    let before = same.next();
    let is_good = |run: &Run| run.worse().is_none();
    let baseline = baseline.and_then(|baseline| match baseline.read() {
        Ok(read) => Some((baseline.folder.as_path(), read)),
        Err(error) => {
            tracing::warn!(%error, "the last good profile takes the baseline's place");
            None
        }
    });
    let is_baseline = baseline.is_some();
    let repeated = before.as_ref().and_then(|(_, folder, before)| {
        let is_repeat = known_changes(&before.header, &profile.header).is_empty();
        is_repeat.then(|| passed(before, profile, settings, folder))?
    });
    let reference = match (baseline, before) {
        (Some(baseline), _) => Some(baseline),
        (None, Some((run, folder, read))) if is_good(run) => Some((folder, read)),
        (None, _) => same
            .find(|(run, ..)| is_good(run))
            .map(|(_, folder, read)| (folder, read)),
    };
    let (against, reference) = reference?;
    let found = passed(&reference, profile, settings, against)?;
    Some(Verdict {
        against: against.to_owned(),
        is_baseline,
        tolerance: settings.tolerance,
        alpha: settings.alpha,
        numbers: found.numbers.len(),
        worse: worse(&found, profile),
        may_be_worse: (found.numbers.iter())
            .filter(|gated| gated.may_be_worse && !gated.is_worse)
            .count(),
        changed: known_changes(&reference.header, &profile.header),
        repeat_alarmed: repeated.map(|found| found.fails()),
    })
}

/// What the gate found; nothing if the two cannot be compared, such as times that were derived in different ways.
fn passed(
    one: &Profile,
    other: &Profile,
    settings: GateSettings,
    against: &Path,
) -> Option<GateResult> {
    let found: Result<GateResult, CompareError> = gate(&[one], other, settings);
    found
        .inspect_err(|error| tracing::info!(against = %against.display(), %error, "not gated"))
        .ok()
        .filter(|found| !found.numbers.is_empty() || !found.lost.is_empty())
}

/// What is worse, and what cannot run any more, each in a few words.
fn worse(found: &GateResult, profile: &Profile) -> Vec<String> {
    let worse = found.worse().map(|gated| gated.words(&profile.layers));
    let lost = found.lost.iter().map(|lost| {
        format!(
            "layer {} cannot run on {} any more: {}",
            lost.layer, lost.processor, lost.reason
        )
    });
    worse.chain(lost).collect()
}

#[cfg(test)]
mod tests;
