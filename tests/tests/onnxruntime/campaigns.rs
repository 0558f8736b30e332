//! Profiles of this machine that tests have measured. However busy it is, no block of theirs is rejected: what they are
//! asked for is not how long anything takes.

use std::path::Path;

use layerlab_campaign::publish::PublishError;
use layerlab_campaign::{
    Campaign, CampaignAccuracy, CampaignError, CampaignFollower, CampaignPart, Follower,
    JournalTrouble, KnownJournal, ModelFile, TimesSettings,
};
use layerlab_farm::Link;
use layerlab_farm::discovery::Choice;
use layerlab_farm::host_runtimes::HostRuntimes;
use layerlab_farm::local::LocalLink;
use layerlab_profiles::Nanos;
use layerlab_profiles::check::{Rule, Severity};
use layerlab_profiles::design::Design;
use layerlab_profiles::document::Profile;
use layerlab_protocol::{Entry, Hygiene};
use layerlab_tests::{agent_program, model};

/// How often a profile is measured at most, where the tests that run beside it hold its sentinels up.
const MEASUREMENTS: usize = 3;

/// Sees each entry of a campaign's journals.
struct Watching<'a, F> {
    entry: &'a mut F,
}

impl<F: FnMut(&Entry) + Send> Follower for Watching<'_, F> {
    async fn entry(&mut self, entry: &Entry) {
        (self.entry)(entry);
    }
}

impl<F: FnMut(&Entry) + Send> CampaignFollower for Watching<'_, F> {
    async fn begin(&mut self, _part: CampaignPart) -> Result<KnownJournal, JournalTrouble> {
        Ok(KnownJournal::fresh())
    }

    async fn end(&mut self) -> Result<(), JournalTrouble> {
        Ok(())
    }
}

/// Profiles vocnet-mini on this machine's `processors`, few samples of each segment, and publishes in the folder
/// `profile` of `folder`. The agent's state is in `folder`, too. Each entry is seen when it comes.
pub(super) async fn profile(
    folder: &Path,
    runtimes: HostRuntimes,
    processors: &[&str],
    accuracy: Option<CampaignAccuracy<'_>>,
    entry: impl FnMut(&Entry) + Send,
) -> Profile {
    let link = LocalLink::kept_in(agent_program(), Choice::Host, folder.join("state"))
        .expect("a state folder")
        .with_runtimes(runtimes);
    profile_over(&link, folder, processors, accuracy, entry).await
}

/// The same over a link to any device.
pub(super) async fn profile_over(
    link: &impl Link,
    folder: &Path,
    processors: &[&str],
    accuracy: Option<CampaignAccuracy<'_>>,
    mut entry: impl FnMut(&Entry) + Send,
) -> Profile {
    let model = ModelFile::open(&model("vocnet-mini"), &Default::default()).expect("a model");
    let campaign = Campaign {
        signing_key: None,
        fitness: None,
        model: &model,
        times: TimesSettings {
            processors: processors.iter().map(ToString::to_string).collect(),
            // It leaves nothing to compare the whole with, and of two visits nothing is told: a busy machine may be in
            // another state while the whole is timed than while its parts are.
            design: Design::PrefixSuffix,
            samples_per_segment: 6,
            visits: 2,
            gap: Nanos::ZERO,
            hygiene: Hygiene {
                sentinel_tolerance_percent: 100_000,
                ..Hygiene::default()
            },
            ..TimesSettings::default()
        },
        accuracy,
        target: folder.join("profile"),
        replace: false,
    };
    for remaining in (0..MEASUREMENTS).rev() {
        let mut follower = Watching { entry: &mut entry };
        match campaign.run(link, &mut follower).await {
            Ok(published) => return published.profile,
            Err(CampaignError::Publish(error)) if remaining > 0 && is_about_sentinels(&error) => {}
            Err(error) => panic!("{error}"),
        }
    }
    unreachable!("the last measurement is published or refused")
}

/// Whether a profile was refused for its sentinels alone: another program had the processor while one ran, which is the
/// median of three inferences of a millisecond. Whatever else is wrong with its blocks is found, and said, before them.
fn is_about_sentinels(error: &PublishError) -> bool {
    let PublishError::Unfit { findings, .. } = error else {
        return false;
    };
    let mut errors = findings
        .iter()
        .filter(|finding| finding.severity == Severity::Error);
    errors.all(|finding| {
        let is_sentinel = finding.sentence.starts_with("a sentinel of block");
        finding.rule == Rule::BlockContradiction && is_sentinel
    })
}

/// The host's runtimes: ONNX Runtime, and Qualcomm's emulated Hexagon beside it.
pub(super) fn hexagon(folders: &(std::path::PathBuf, std::path::PathBuf)) -> HostRuntimes {
    HostRuntimes {
        qnn: Some(folders.1.clone()),
        emulate: Some(super::SOC.to_owned()),
        ..onnxruntime(folders)
    }
}

/// The host's runtimes: ONNX Runtime on its CPU alone.
pub(super) fn onnxruntime(folders: &(std::path::PathBuf, std::path::PathBuf)) -> HostRuntimes {
    HostRuntimes {
        onnxruntime: Some(folders.0.clone()),
        ..HostRuntimes::default()
    }
}
