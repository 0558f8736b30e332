//! Looks for phones: on USB again and again, and for those that say on the network that they can be debugged.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use adb_client::mdns::{MDNSDevice, MDNSDiscoveryService};
use layerlab_farm::adb::Address;
use layerlab_farm::adb::direct::frames::{Answer, Frame, Sighting, Target};

use crate::outbox::Outbox;
use crate::usb;

/// How often to look at USB.
const LOOK: Duration = Duration::from_secs(1);

/// Says which phones there are, at once and each time that it changes.
pub(crate) fn look(outbox: Outbox) -> ! {
    // Where the network cannot be asked, there is still USB.
    let browsing = browse();
    let mut on_network: BTreeMap<String, Sighting> = BTreeMap::new();
    let mut last = None;
    loop {
        let mut seen = usb::look().unwrap_or_default();
        seen.extend(on_network.values().cloned());
        if last.as_ref() != Some(&seen) {
            outbox.say(&Frame::Answer(Answer::Seen(seen.clone())));
            last = Some(seen);
        }
        match browsing
            .as_ref()
            .map(|(_, phones)| phones.recv_timeout(LOOK))
        {
            Some(Ok(phone)) => {
                if let Some(sighting) = sighting(&phone) {
                    on_network.insert(sighting.target.clone(), sighting);
                }
            }
            Some(Err(RecvTimeoutError::Timeout)) => {}
            Some(Err(RecvTimeoutError::Disconnected)) | None => thread::sleep(LOOK),
        }
    }
}

/// Phones that are found while the service lives.
fn browse() -> Option<(MDNSDiscoveryService, Receiver<MDNSDevice>)> {
    let (found, phones) = channel();
    let mut service = MDNSDiscoveryService::new().ok()?;
    service.start(found).ok()?;
    Some((service, phones))
}

fn sighting(phone: &MDNSDevice) -> Option<Sighting> {
    let version_4 = phone
        .ipv4_addresses()
        .into_iter()
        .map(|it| it.to_string())
        .min();
    let version_6 = || {
        phone
            .ipv6_addresses()
            .into_iter()
            .map(|it| it.to_string())
            .min()
    };
    let address = Address {
        host: version_4.or_else(version_6)?,
        port: phone.port().get(),
    };
    // adb-SERIAL-random._adb-tls-connect._tcp.local.
    let name = phone.fullname.split('.').next().unwrap_or_default();
    Some(Sighting {
        target: Target::Network(address).to_string(),
        description: name.to_owned(),
        usb_path: None,
        obstacle: None,
    })
}
