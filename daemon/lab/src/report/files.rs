//! What a report needs from disk, and the report on disk.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use jiff::tz::TimeZone;
use layerlab_profiles::document::{PROFILE_JSON, Profile, ProfileDigest};

use super::{Publication, Report, WholeModel};
use layerlab_campaign::publish::{PLOT, PublishError, StagedFile};

/// More than any of our own pictures takes.
const MOST_BYTES: u64 = 4 << 20;

/// More than any table of a profile takes: its samples are its largest.
const MOST_TABLE_BYTES: u64 = 256 << 20;

impl Report {
    /// Looks into the folders of what was published: whether they are there, what they say about their device,
    /// and, if `plots`, how they look.
    pub fn read_profiles(&mut self, plots: bool) {
        let (mut simulated, mut emulated) = (BTreeSet::new(), BTreeSet::new());
        for run in self.jobs.iter_mut().flat_map(|job| &mut job.runs) {
            if let Some(published) = &mut run.published {
                published.read(plots);
            }
            if let Some(video) = &mut run.video {
                video.read();
            }
            if let Some(link) = &mut run.link {
                link.read();
            }
            if run.says_simulated() {
                simulated.insert(run.device.clone());
            }
            if run.says_emulated() {
                emulated.insert(run.device.clone());
            }
        }
        for device in &mut self.devices {
            device.simulated |= simulated.contains(&device.name);
            device.emulated |= emulated.contains(&device.name);
        }
    }

    /// Writes the report as HTML into `folder`, under its date, and says where it is.
    ///
    /// # Errors
    /// When the folder cannot be written.
    pub fn write_html(&self, folder: &Path, zone: &TimeZone) -> Result<PathBuf, PublishError> {
        let until = self.until.to_zoned(zone.clone());
        let path = folder.join(format!("{}.html", until.strftime("%Y-%m-%d-%H%M%S")));
        let staged = StagedFile::prepare(&path, true)?;
        staged.publish(self.html(zone).as_bytes())?;
        Ok(path)
    }
}

impl Publication {
    fn read(&mut self, plots: bool) {
        let header = self.profile.join(PROFILE_JSON);
        let Some(header) = whole(&header) else {
            self.gone = !self.profile.is_dir();
            return;
        };
        self.digest = Some(ProfileDigest::of(&header));
        let header: Option<serde_json::Value> = serde_json::from_slice(&header).ok();
        let says = |field: &str| header.as_ref()?.get(field)?.as_bool();
        self.simulated = says("simulated");
        self.emulated = says("emulated");
        if plots {
            self.plot = whole(&self.profile.join(PLOT));
        }
        self.whole_model = whole_model(&self.profile);
        if let Some(before) = &mut self.before {
            before.whole_model = whole_model(&before.profile);
        }
    }
}

/// What the whole model takes on each processor; nothing if the profile cannot be read any more.
fn whole_model(folder: &Path) -> Vec<WholeModel> {
    let Some(profile) = readable(folder)
        .then(|| Profile::read(folder).ok())
        .flatten()
    else {
        return Vec::new();
    };
    let times = profile.whole_model_times();
    let processors = profile.header.processors.iter().zip(times);
    let whole = processors.map(|(processor, time_ns)| WholeModel {
        processor: processor.name.clone(),
        time_ns,
    });
    whole.collect()
}

/// Whether all that a folder holds is files of a size that profiles have.
pub(super) fn readable(folder: &Path) -> bool {
    let Ok(mut entries) = folder.read_dir() else {
        return false;
    };
    entries.all(|entry| {
        let path = entry.map(|entry| entry.path());
        let file = path.and_then(|path| path.metadata());
        file.is_ok_and(|file| file.is_file() && file.len() <= MOST_TABLE_BYTES)
    })
}

/// The file, if it is there and of a size that it may have.
pub(super) fn whole(path: &Path) -> Option<Vec<u8>> {
    // Whoever replaced it may have put a pipe there, which would never end.
    if !path.metadata().ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    let file = File::open(path).ok()?;
    file.take(MOST_BYTES + 1).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 <= MOST_BYTES).then_some(bytes)
}
