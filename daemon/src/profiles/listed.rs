//! A profile in a list, of the lab here or of one elsewhere.

use std::path::PathBuf;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use layerlab_farm::adb::Printable;
use layerlab_lab::query::IndexedProfile;
use layerlab_lab::record::{JobId, RunNumber};
use layerlab_lab::text_table::table;
use layerlab_lab::when::moment;
use layerlab_profiles::document::ProfileDigest;
use serde::Serialize;

use crate::elsewhere::ProfileElsewhere;

/// A published profile.
#[derive(Serialize)]
pub(super) struct ListedProfile {
    model: String,
    device: String,
    simulated: bool,
    run: RunNumber,
    job: JobId,
    published: Timestamp,
    /// What its content is called; nothing if its folder is gone.
    digest: Option<String>,
    /// Where it lies, if that is on this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    folder: Option<PathBuf>,
}

impl From<IndexedProfile> for ListedProfile {
    fn from(profile: IndexedProfile) -> ListedProfile {
        let digest = ProfileDigest::of_folder(&profile.folder).ok();
        ListedProfile {
            model: profile.model,
            device: profile.device,
            simulated: profile.simulated,
            run: profile.run,
            job: profile.job,
            published: profile.published,
            digest: digest.map(|digest| digest.to_string()),
            folder: Some(profile.folder),
        }
    }
}

impl From<ProfileElsewhere> for ListedProfile {
    fn from(profile: ProfileElsewhere) -> ListedProfile {
        ListedProfile {
            model: profile.model,
            device: profile.device,
            simulated: profile.simulated,
            run: profile.run,
            job: profile.job,
            published: profile.published,
            digest: profile.digest,
            folder: None,
        }
    }
}

pub(super) fn profiles_table(profiles: &[ListedProfile]) -> String {
    let (now, zone) = (Timestamp::now(), TimeZone::system());
    let has_folders = profiles.iter().any(|profile| profile.folder.is_some());
    let rows = profiles.iter().map(|profile| {
        let device = match profile.simulated {
            true => format!("{} (simulated)", profile.device),
            false => profile.device.clone(),
        };
        let digest = profile.digest.clone().map(ProfileDigest::try_from);
        let digest = digest.and_then(Result::ok);
        let digest = digest.map_or("gone".to_owned(), |digest| digest.short().to_owned());
        let folder = profile.folder.as_ref();
        let texts = [
            Some(profile.model.clone()),
            Some(device),
            Some(moment(profile.published, now, &zone)),
            Some(profile.run.to_string()),
            Some(profile.job.to_string()),
            Some(digest),
            folder.map(|folder| folder.display().to_string()),
        ];
        let texts = texts.iter().flatten();
        texts.map(|text| Printable(text).to_string()).collect()
    });
    let heads = [
        "model",
        "device",
        "published",
        "run",
        "job",
        "digest",
        "folder",
    ];
    let shown = heads.len() - usize::from(!has_folders);
    table(&heads[..shown], &[3, 4], rows)
}
