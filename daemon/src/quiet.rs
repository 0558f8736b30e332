//! A phone is made quiet while a command measures it, and is as it was before once the command ends: also one that fails or is
//! interrupted.

use std::time::Duration;

use layerlab_farm::AdbLink;
use layerlab_farm::adb::Printable;
use tokio::runtime::Builder;
use tokio::time::timeout;

use super::exit::{Code, ExitWith, Failure};
use super::output;

/// How long a phone may take to be as it was. One that is gone by then is restored by whoever makes it quiet next.
const RESTORE: Duration = Duration::from_secs(60);

/// A phone that was made quiet. Dropping this restores it.
pub(super) struct Quiet<'a> {
    link: &'a AdbLink,
}

impl Quiet<'_> {
    /// Makes the phone behind `link` quiet, and says what of that it refuses.
    pub(super) async fn make(link: &AdbLink) -> Result<Quiet<'_>, Failure> {
        let phone = link.phone().await.exit_with(Code::Device)?;
        // From here on there is something to undo, whatever happens.
        let quiet = Quiet { link };
        let made = phone.quiet().await.exit_with(Code::Device)?;
        if let Some(complaint) = made.complaint() {
            output::note(format_args!(
                "layerlab: {}: {complaint}",
                Printable(&link.name())
            ));
        }
        Ok(quiet)
    }

    /// What keeps the phone from being as it was.
    async fn restore(&self) -> Option<String> {
        let restored = timeout(RESTORE, async { self.link.phone().await?.restore().await }).await;
        match restored {
            Ok(Ok(restored)) => restored.complaint(),
            Ok(Err(error)) => Some(format!(
                "{error}; the next command that measures it restores it"
            )),
            Err(_) => {
                Some("it does not answer; the next command that measures it restores it".to_owned())
            }
        }
    }
}

impl Drop for Quiet<'_> {
    fn drop(&mut self) {
        // What is dropped cannot wait for its own runtime: that may have ended.
        let restored = std::thread::scope(|scope| {
            let work = scope.spawn(|| {
                let runtime = Builder::new_current_thread().enable_all().build();
                runtime.map(|runtime| runtime.block_on(self.restore()))
            });
            work.join()
        });
        let complaint = match restored {
            Ok(Ok(complaint)) => complaint,
            Ok(Err(error)) => Some(error.to_string()),
            Err(_) => Some("restoring it failed".to_owned()),
        };
        if let Some(complaint) = complaint {
            output::note(format_args!(
                "layerlab: {} was made quiet and is not restored: {complaint}",
                Printable(&self.link.name())
            ));
        }
    }
}
