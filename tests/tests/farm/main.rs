//! The farm: the real adb server, the real adbd, and what goes wrong between them. Where they cannot be had, these tests
//! are skipped, and fail in CI.

mod addresses;
mod arm64;
mod artifacts;
mod devices;
mod direct;
mod disturbed;
mod fitness;
mod given_up;
mod links;
mod own_server;
mod plugging;
mod profiles;
mod quiet;
mod readiness;
mod setup;
mod storage;
mod streams;

use std::path::Path;
use std::process::Command;

use layerlab_tests::farm::Farm;
use layerlab_tests::interposer::Interposer;
use layerlab_tests::published::Published;
use layerlab_tests::virtual_phone::VirtualPhone;
use layerlab_tests::{FEW, device, model, profile, succeed};

/// What a serial, a model's name or a path may be made of.
const HOSTILE: &str = "; $(reboot) ' \" \n .. \u{1f4f1}";

/// Has `command` profile alexnet on a phone that plays the simulated device `plays`.
fn profile_on<'a>(
    command: &'a mut Command,
    phone: &str,
    plays: &str,
    out: &Path,
) -> &'a mut Command {
    profile(command, FEW, model("alexnet"), phone, out).args(["--simulate", plays])
}

/// The text of a device file whose times are noisy, on a clock of their own.
fn noisy() -> String {
    std::fs::read_to_string(device("noisy")).expect("a device")
}

/// What the local link gives of a simulated device.
fn local(farm: &Farm, simulated: &str) -> Published {
    let out = farm.path(&format!("local-{simulated}"));
    succeed(profile(
        &mut farm.layerlab(),
        FEW,
        model("alexnet"),
        simulated,
        &out,
    ));
    Published::read(&out)
}

/// A lab with one phone that its server knows, and a liar before that server.
struct Disguised {
    farm: Farm,
    phone: VirtualPhone,
    interposer: Interposer,
}

impl Disguised {
    /// The phone's serial is `serial`.
    #[track_caller]
    fn new(serial: &str) -> Option<Disguised> {
        let farm = Farm::new()?;
        let phone = farm.phone("P1");
        phone.set("prop.ro.serialno", serial);
        succeed(
            farm.layerlab()
                .args(["devices", "--adb-connect", &phone.address]),
        );
        let interposer = Interposer::before(farm.socket());
        Some(Disguised {
            farm,
            phone,
            interposer,
        })
    }

    /// What layerlab calls the phone that the liar calls `serial`.
    fn name_of(&self, serial: &str) -> String {
        format!("{serial}@{}", self.interposer.address)
    }

    /// What layerlab calls the phone.
    fn name(&self) -> String {
        self.name_of(&self.phone.serial)
    }

    /// Layerlab, which takes the liar for the server.
    fn layerlab(&self) -> Command {
        let mut command = self.farm.layerlab();
        command.env("LAYERLAB_ADB_SERVER", self.interposer.address.to_string());
        command
    }

    /// Profiles the phone, which plays pixel6.
    fn profile(&self, out: &Path) -> Published {
        let mut command = self.layerlab();
        succeed(profile_on(&mut command, &self.name(), "pixel6", out));
        Published::read(out)
    }
}
