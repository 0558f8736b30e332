//! Which processors a phone offers with the runtimes that were added, as its agent finds them.

use std::time::Duration;

use layerlab_farm::adb::Found;
use layerlab_farm::folders::Folders;
use layerlab_farm::provision::Provision;
use layerlab_farm::{AdbLink, Link, LinkError, Policy};
use layerlab_profiles::document::Processor;

/// The processors that the agent of a phone finds, which is put there and started if it must be. What it leaves out, the
/// runtimes in `provision` tell.
///
/// Whoever only wants to know neither waits for long, nor has anything done to a phone that fails.
pub(super) async fn phone_processors(
    found: &Found,
    provision: Provision,
    folders: &Folders,
) -> Result<Vec<Processor>, LinkError> {
    let policy = Policy {
        patience: Duration::from_secs(10),
        may_reboot: false,
        quarantine: Duration::ZERO,
        ..Policy::default()
    };
    let (route, serial) = (found.route.clone(), &found.row.serial);
    let link = AdbLink::open(route, serial, provision, policy, &folders.state).await?;
    Ok(link.connect().await?.hello.processors)
}
