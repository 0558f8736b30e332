//! A phone on a network is its serial, whatever address it has.

use std::process::Command;

use layerlab_campaign::TimesSettings;
use layerlab_profiles::Nanos;
use layerlab_protocol::Hygiene;
use layerlab_tests::farm::Farm;
use layerlab_tests::run::{self, whole};
use layerlab_tests::virtual_phone::VirtualPhone;
use layerlab_tests::wait::wait_for;
use layerlab_tests::{in_real_time, model, output, stderr, succeed};

/// Has layerlab's own server connect to the phone where it is now, as a person or the network's announcements would.
fn connect(farm: &Farm, phone: &VirtualPhone) {
    succeed(farm.adb().args(["connect", &phone.address]));
}

/// What `layerlab devices` says of phones that can be used.
fn ready(farm: &Farm) -> Vec<serde_json::Value> {
    let listed = succeed(farm.layerlab().args(["devices", "--json"]));
    let listed: Vec<serde_json::Value> = serde_json::from_str(&listed).expect("JSON");
    let is_phone =
        |device: &serde_json::Value| device["link"] == "adb" && device["state"] == "ready";
    listed.into_iter().filter(is_phone).collect()
}

#[test]
fn a_phone_is_listed_by_its_serial_at_whatever_address() {
    let Some(farm) = Farm::new() else { return };
    let mut phone = farm.phone("P1");
    succeed(
        farm.layerlab()
            .args(["devices", "--adb-connect", &phone.address]),
    );
    for turn in ["first", "moved"] {
        let listed = ready(&farm);
        assert_eq!(listed.len(), 1, "{turn}: {listed:?}");
        assert_eq!(listed[0]["name"], "P1", "{turn}");
        assert_eq!(listed[0]["address"], phone.address.as_str(), "{turn}");
        let battery = &listed[0]["battery"];
        assert_eq!(battery["level_percent"], "85", "{turn}");
        assert_eq!(battery["temperature_millicelsius"], "27000", "{turn}");
        let table = succeed(farm.layerlab().arg("devices"));
        assert!(table.contains("85 %, 27 °C"), "{table}");
        phone.change_address();
        connect(&farm, &phone);
    }
}

/// Profiles into the folder that layerlab chooses.
fn published_under(farm: &Farm, name: &str) -> Command {
    let mut command = farm.layerlab();
    command.args(["profile", "--design", "prefix-suffix", "--samples", "6"]);
    command.arg("--model").arg(model("alexnet"));
    command.args(["--device", name, "--simulate", "pixel6", "--replace"]);
    command.current_dir(farm.path(""));
    command
}

#[test]
fn an_address_finds_its_phone_and_the_serial_names_the_folder_and_the_quarantine() {
    let Some(farm) = Farm::new() else { return };
    let mut phone = farm.phone("P1");
    succeed(&mut published_under(&farm, &phone.address));
    let folder = farm.path("layerlab-profiles/P1/alexnet");
    assert!(folder.join("profile.json").exists(), "{}", folder.display());
    succeed(farm.layerlab().args([
        "quarantine",
        "add",
        &phone.address,
        "--reason",
        "its glass is broken",
    ]));
    let entries = succeed(farm.layerlab().args(["quarantine", "list", "--json"]));
    assert!(entries.contains("\"P1\""), "{entries}");
    // It stays the same phone at another address.
    phone.change_address();
    connect(&farm, &phone);
    for name in ["P1", &phone.address] {
        let refused = output(&mut published_under(&farm, name));
        assert_eq!(refused.status.code(), Some(4), "{name}");
        let said = stderr(&refused);
        assert!(said.contains("its glass is broken"), "{name}: {said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_phone_that_changes_its_address_goes_on_with_its_run() {
    let Some(farm) = Farm::new() else { return };
    let mut phone = farm.phone("P1");
    let provision = farm.provision(&in_real_time("noisy"));
    let link = farm.link(&phone, provision).await;
    let settings = TimesSettings {
        hygiene: Hygiene {
            // A machine that runs many tests at once is no steady device.
            sentinel_tolerance_percent: 100_000,
            ..Hygiene::default()
        },
        ..run::settings(12, Nanos::from_micros(8_000))
    };
    let boots = phone.status("boots");
    let mut moves = 0;
    whole(link, settings, &mut |samples, _| {
        if samples > 50 * moves && moves < 2 {
            moves += 1;
            phone.change_address();
            connect(&farm, &phone);
        }
    })
    .await;
    assert_eq!(moves, 2);
    assert_eq!(
        phone.status("boots"),
        boots,
        "its address was all that changed"
    );
}

/// Wireless debugging has another port after each boot.
#[test]
fn a_phone_that_boots_at_another_address_is_one_phone_for_those_who_watch() {
    let Some(farm) = Farm::new() else { return };
    let mut phone = farm.phone("P1");
    connect_and_list(&farm, &phone);
    phone.change_address();
    phone.reboot();
    connect(&farm, &phone);
    wait_for(
        "one phone at its new address",
        || {
            let listed = ready(&farm);
            listed.len() == 1
                && listed[0]["name"] == "P1"
                && listed[0]["address"] == phone.address.as_str()
        },
        || format!("{:?}", ready(&farm)),
    );
}

fn connect_and_list(farm: &Farm, phone: &VirtualPhone) {
    let listed = succeed(
        farm.layerlab()
            .args(["devices", "--adb-connect", &phone.address]),
    );
    assert!(listed.contains("P1"), "{listed}");
}
