//! Making a phone fit to measure on, and undoing that.

use std::time::Duration;

use super::capabilities::Values;
use super::error::AdbError;
use super::phone::Phone;
use super::shell::Output;
use super::text::Printable;

const QUIET: &str = include_str!("../../../../device-scripts/quiet");
const RESTORE: &str = include_str!("../../../../device-scripts/restore");

/// How long either may take: a dozen calls of Android's services, of which a slow phone needs seconds for
/// each.
const DEADLINE: Duration = Duration::from_secs(60);

/// `restore` closes its standard input, so the shell may not read the script from there. This also starts
/// no script of which only a part has come.
const WHOLE_SCRIPT: &str = r#"sh -c "$(cat)""#;

/// The exit status of `quiet` when it could not write down what to restore, and so changed nothing.
const NO_RECORD: u8 = 3;

/// The steps of `quiet`, and what is wrong with a phone on which one failed.
const STEPS: [(&str, &str); 5] = [
    ("stay_awake", "it may fall asleep"),
    ("authorisation_kept", "it may forget this host after a week"),
    ("doze_off", "it may doze"),
    ("fixed_performance", "its clocks are not fixed"),
    ("screen_off", "its screen stays on"),
];

/// A phone that was made quiet, as far as it can be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quieted {
    /// Whether an earlier `quiet` was still in force: it is what will be undone.
    pub again: bool,
    failed: Vec<String>,
}

impl Quieted {
    /// What of it failed, in one sentence; `None` if nothing did.
    pub fn complaint(&self) -> Option<String> {
        let failed = self.failed.join(", ");
        (!failed.is_empty()).then(|| format!("the phone is not as quiet as it should be: {failed}"))
    }

    fn from(said: &Values) -> Quieted {
        let failed = STEPS
            .iter()
            .filter(|(step, _)| said.text(step) != Some("done"));
        let with_reason = |(step, consequence): &(&str, &str)| {
            let reason = said.text(&format!("{step}_reason")).unwrap_or("not tried");
            format!("{consequence} ({})", Printable(reason))
        };
        Quieted {
            again: said.text("record_is") == Some("earlier"),
            failed: failed.map(with_reason).collect(),
        }
    }
}

/// What came of undoing what was done to make a phone quiet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Restored {
    /// There was nothing to undo.
    Nothing,
    /// The phone is as it was.
    AsBefore,
    /// Something is left to undo, and can be tried again.
    Partly {
        /// What, in the phone's words.
        left: Vec<String>,
    },
}

impl Restored {
    /// What is left to undo, in one sentence; `None` if nothing is.
    pub fn complaint(&self) -> Option<String> {
        let Restored::Partly { left } = self else {
            return None;
        };
        let left = left.join(", ");
        Some(format!(
            "the phone did not take back {}; restore it again, or set that by hand",
            Printable(&left)
        ))
    }

    fn from(said: &Values) -> Option<Restored> {
        match said.text("restored")? {
            "nothing" => Some(Restored::Nothing),
            "yes" => Some(Restored::AsBefore),
            "partly" => {
                let left = said.text("failed").unwrap_or("something");
                let left = left.split(' ').map(str::to_owned).collect();
                Some(Restored::Partly { left })
            }
            _ => None,
        }
    }
}

impl Phone {
    /// Makes the phone fit to measure on: awake, screen off, fixed clocks, no doze. What it was like before
    /// is kept on the phone first, so that [`Phone::restore`] undoes this whatever happens in between.
    pub async fn quiet(&self) -> Result<Quieted, AdbError> {
        let output = self.script(QUIET).await?;
        match output.status {
            0 | 1 => Ok(Quieted::from(&Values::parse(&output.text()))),
            NO_RECORD => Err(AdbError::Command {
                name: self.name().to_owned(),
                what: "be made quiet",
                status: NO_RECORD,
                said: "nothing can be written to /data/local/tmp; free some storage on the phone"
                    .to_owned(),
            }),
            _ => Err(self.unexpected("be made quiet", &output)),
        }
    }

    /// Undoes what [`Phone::quiet`] did. Harmless to repeat, and where there is nothing to undo.
    pub async fn restore(&self) -> Result<Restored, AdbError> {
        let output = self.script(RESTORE).await?;
        Restored::from(&Values::parse(&output.text()))
            .ok_or_else(|| self.unexpected("be restored", &output))
    }

    async fn script(&self, script: &str) -> Result<Output, AdbError> {
        self.shell_within(WHOLE_SCRIPT, script.as_bytes(), DEADLINE)
            .await
    }

    fn unexpected(&self, what: &'static str, output: &Output) -> AdbError {
        AdbError::Command {
            name: self.name().to_owned(),
            what,
            status: output.status,
            said: output.last_words(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quiet_phone_gives_no_cause_for_complaint() {
        let done = "record=/x\nrecord_is=earlier\nstay_awake=done\nauthorisation_kept=done\ndoze_off=done\n\
                    fixed_performance=done\nscreen_off=done\n";
        let quieted = Quieted::from(&Values::parse(done));
        assert!(quieted.again);
        assert_eq!(quieted.complaint(), None);
    }

    #[test]
    fn what_failed_is_one_sentence() {
        let said = "record_is=new\nstay_awake=done\nauthorisation_kept=done\ndoze_off=done\n\
                    fixed_performance=failed\nfixed_performance_reason=not supported by this phone\n";
        let quieted = Quieted::from(&Values::parse(said));
        let sentence = "the phone is not as quiet as it should be: its clocks are not fixed (not supported by \
                        this phone), its screen stays on (not tried)";
        assert_eq!(quieted.complaint().as_deref(), Some(sentence));
        assert!(!quieted.again);
    }

    #[test]
    fn what_is_left_to_undo_is_named() {
        let of = |text: &str| Restored::from(&Values::parse(text));
        assert_eq!(of("restored=nothing"), Some(Restored::Nothing));
        assert_eq!(of("restored=yes"), Some(Restored::AsBefore));
        assert_eq!(of("sh: not found"), None);
        let partly = of("restored=partly\nfailed=stay_on_while_plugged_in wakefulness");
        let complaint = partly.and_then(|partly| partly.complaint());
        let sentence = "the phone did not take back stay_on_while_plugged_in, wakefulness; restore it again, or set \
                        that by hand";
        assert_eq!(complaint.as_deref(), Some(sentence));
    }
}
