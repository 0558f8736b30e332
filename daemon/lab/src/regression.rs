//! Is a profile that was just published worse than the last good ones of the same thing? It is only told: the run has not
//! failed, for what was measured is as true as any other.

use std::path::Path;
use std::sync::Arc;

use layerlab_profiles::document::Profile;
use layerlab_profiles::gate::{
    GateError, GateResult, GateSettings, ProfileSubject, gate, known_changes,
};

use crate::baseline::Baseline;
use crate::record::{Run, Verdict};

/// How profiles are judged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Judging {
    /// What is put up with.
    pub(crate) settings: GateSettings,
    /// With how many of the last good profiles a new one is compared.
    pub(crate) good: usize,
}

/// What the gate says of `profile`, which is in the folder `own`, against `baseline` or else against the last good one of
/// what `earlier` runs published on the same device, the newest first, or the last good ones, between which nothing is known to
/// have changed. Nothing if there is none to compare with. Reads profiles, which takes a while.
pub(crate) fn verdict(
    profile: &Profile,
    own: &Path,
    earlier: &[Run],
    baseline: Option<&Baseline>,
    judging: Judging,
) -> Option<Verdict> {
    let settings = judging.settings;
    let subject = ProfileSubject::of(&profile.header);
    // Read one after the other, no more than are needed: a device may have published for years.
    let mut same = earlier.iter().filter_map(|run| {
        let folder = run.profile.as_deref().filter(|folder| *folder != own)?;
        let read = Profile::read(folder).ok()?;
        let is_same = ProfileSubject::of(&read.header).is_same(&subject);
        is_same.then(|| (run, (folder, Arc::new(read))))
    });
    let before = same.next();
    let baseline = baseline.and_then(|baseline| match baseline.read() {
        Ok(read) => Some((baseline.folder.as_path(), Arc::new(read))),
        Err(error) => {
            tracing::warn!(%error, "the last good profile takes the baseline's place");
            None
        }
    });
    let is_baseline = baseline.is_some();
    // The newest first.
    let good = match baseline {
        Some(baseline) => vec![baseline],
        None => last_good(before.clone().into_iter().chain(same), judging.good),
    };
    let (against, newest) = good.first()?;
    let compared: Vec<&Profile> = good.iter().rev().map(|(_, read)| &**read).collect();
    // What cannot be compared with all of them can be with the newest.
    let found = passed(&compared, profile, settings, against)
        .or_else(|| passed(&[newest], profile, settings, against))?;
    let repeated = before.and_then(|(_, (folder, before))| {
        if !known_changes(&before.header, &profile.header).is_empty() {
            return None;
        }
        if folder == *against {
            return Some(found.fails());
        }
        let found = passed(&[&before], profile, settings, folder)?;
        Some(found.fails())
    });
    Some(Verdict {
        against: (*against).to_owned(),
        is_baseline,
        good: found.good,
        tolerance: settings.tolerance,
        alpha: settings.alpha,
        numbers: found.numbers.len(),
        worse: worse(&found, profile),
        may_be_worse: (found.numbers.iter())
            .filter(|gated| gated.may_be_worse && !gated.is_worse)
            .count(),
        changed: known_changes(&newest.header, &profile.header),
        repeat_alarmed: repeated,
    })
}

/// A published profile and its folder.
type Published<'a> = (&'a Path, Arc<Profile>);

/// So many of the last good ones, the newest first, between which nothing is known to have changed; as long as there are fewer,
/// the last one alone.
fn last_good<'a>(
    same: impl Iterator<Item = (&'a Run, Published<'a>)>,
    count: usize,
) -> Vec<Published<'a>> {
    let good = same.filter(|(run, _)| run.worse().is_none());
    let mut good = good.map(|(_, published)| published);
    let Some(newest) = good.next() else {
        return Vec::new();
    };
    let is_repeat =
        |(_, one): &Published<'a>| known_changes(&one.header, &newest.1.header).is_empty();
    let earlier: Vec<Published<'a>> = good
        .take_while(is_repeat)
        .take(count.saturating_sub(1))
        .collect();
    match earlier.len() + 1 < count {
        true => vec![newest],
        false => std::iter::once(newest).chain(earlier).collect(),
    }
}

/// What the gate found; nothing if they cannot be compared, such as times that were derived in different ways.
fn passed(
    good: &[&Profile],
    new: &Profile,
    settings: GateSettings,
    against: &Path,
) -> Option<GateResult> {
    let found: Result<GateResult, GateError> = gate(good, new, settings);
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
