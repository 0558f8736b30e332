//! Published measurements of frames: where they are, and what they say of their devices.

use std::path::PathBuf;

use layerlab_profiles::video::VIDEO_JSON;
use serde::{Deserialize, Serialize};

use super::files::whole;

/// A published measurement of frames.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct VideoPublication {
    /// The folder that it was published in.
    pub folder: PathBuf,
    /// What is doubtful about it.
    pub findings: Vec<String>,
    /// Whether its device was simulated, if its folder was looked into and says so.
    pub simulated: Option<bool>,
    /// Whether its processor was emulated, likewise.
    pub emulated: Option<bool>,
    /// Whether its folder was looked for and is not there any more.
    pub gone: bool,
}

impl VideoPublication {
    pub(super) fn read(&mut self) {
        let Some(header) = whole(&self.folder.join(VIDEO_JSON)) else {
            self.gone = !self.folder.is_dir();
            return;
        };
        let header: Option<serde_json::Value> = serde_json::from_slice(&header).ok();
        let says = |of: &str, field: &str| header.as_ref()?.get(of)?.get(field)?.as_bool();
        self.simulated = says("device", "simulated");
        self.emulated = says("processor", "emulated");
    }
}
