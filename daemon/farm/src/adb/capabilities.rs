//! What a phone can do, and how it is: the `key=value` lines of the device scripts, which are fed to
//! the phone's own shell.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde::Serialize;

use super::error::AdbError;
use super::phone::{Identity, Phone};
use crate::folders::write_whole;

const IDENTIFY: &str = include_str!("../../../../device-scripts/identify");
const BATTERY: &str = include_str!("../../../../device-scripts/battery");
const THERMAL: &str = include_str!("../../../../device-scripts/thermal");
const READY: &str = include_str!("../../../../device-scripts/ready");

/// How long a script may take: `dumpsys` gives slow services ten seconds.
const DEADLINE: Duration = Duration::from_secs(20);

/// What a script said. Keys end with their unit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Values(BTreeMap<String, String>);

impl Values {
    /// Reads `key=value` lines; others are skipped.
    pub fn parse(text: &str) -> Values {
        let pairs = text.lines().filter_map(|line| line.split_once('='));
        Values(
            pairs
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .collect(),
        )
    }

    /// The value of `key`.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    /// The value of `key` as a number.
    pub fn number(&self, key: &str) -> Option<i64> {
        self.text(key)?.parse().ok()
    }

    /// The phone in a few words: `Google Pixel 6, Android 14, Tensor, arm64-v8a`.
    pub fn summary(&self) -> String {
        let android = self
            .text("android_version")
            .map(|version| format!("Android {version}"));
        let model = [self.text("manufacturer"), self.text("model")];
        let model: Vec<&str> = model.into_iter().flatten().collect();
        let parts = [
            Some(model.join(" ")).filter(|model| !model.is_empty()),
            android,
            self.text("soc_model").map(str::to_owned),
            self.text("abi").map(str::to_owned),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

impl Phone {
    /// What the phone is: model, processor, Android, core clusters, memory, storage, NPU runtimes.
    pub async fn capabilities(&self) -> Result<Values, AdbError> {
        self.values(IDENTIFY).await
    }

    /// How full, how warm and how charged its battery is.
    pub async fn battery(&self) -> Result<Values, AdbError> {
        self.values(BATTERY).await
    }

    /// How hot it is.
    pub async fn thermal(&self) -> Result<Values, AdbError> {
        self.values(THERMAL).await
    }

    /// What besides heat and an empty battery would spoil a measurement now: other programs, the screen,
    /// full storage. Takes a second, in which nothing else should be asked of the phone.
    pub async fn disturbances(&self) -> Result<Values, AdbError> {
        self.values(READY).await
    }

    async fn values(&self, script: &str) -> Result<Values, AdbError> {
        let output = self.shell_within("sh", script.as_bytes(), DEADLINE).await?;
        let output = self.checked("run a device script", output)?;
        Ok(Values::parse(&output.text()))
    }
}

/// What is recorded about a phone.
#[derive(Serialize)]
struct Record<'a> {
    serial: &'a str,
    boot_id: &'a str,
    abi: &'a str,
    /// Where it was reached, if over a network.
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<&'a str>,
    capabilities: &'a Values,
}

/// Records a phone's capabilities in the file at `path`.
pub(crate) fn record(
    path: &Path,
    identity: &Identity,
    address: Option<&str>,
    capabilities: &Values,
) -> Result<(), AdbError> {
    let record = Record {
        serial: &identity.serial,
        boot_id: &identity.boot_id,
        abi: &identity.abi,
        address,
        capabilities,
    };
    let text = serde_json::to_string_pretty(&record).unwrap_or_default();
    write_whole(path, text.as_bytes()).map_err(|source| AdbError::Own {
        path: path.to_owned(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phone_is_summed_up_from_what_it_tells() {
        let all = Values::parse(
            "manufacturer=Google\nmodel=Pixel 6\nandroid_version=14\nsoc_model=Tensor\nabi=arm64-v8a\nx",
        );
        assert_eq!(
            all.summary(),
            "Google Pixel 6, Android 14, Tensor, arm64-v8a"
        );
        assert_eq!(
            Values::parse("model_missing=unset\nabi=x86_64").summary(),
            "x86_64"
        );
        assert_eq!(
            Values::parse("level_percent=85").number("level_percent"),
            Some(85)
        );
    }
}
