//! Whether a phone is fit to be measured, and what is done to it for that.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use layerlab_farm::adb::{Fleet, Phone, Restored};
use layerlab_lab::gates::{Gate, NotReady, Patience, Readings, Thresholds, Verdict, check};
use layerlab_lab::readings;
use layerlab_profiles::{Bytes, MilliCelsius};
use layerlab_tests::farm::Farm;
use layerlab_tests::virtual_phone::VirtualPhone;
use layerlab_tests::wait::wait_until;

/// Storage that suffices, and of which a test can take some away.
const STORAGE: &str = "2147483648";

/// A dark phone with storage of its own.
fn dark_phone(farm: &Farm) -> VirtualPhone {
    let options = ["--storage-bytes", STORAGE];
    let phone = VirtualPhone::start_with(&farm.path("phone"), "P1", &options);
    phone.set("wakefulness", "Asleep");
    phone
}

async fn read(phone: &Phone) -> Readings {
    readings::of_phone(phone)
        .await
        .expect("a phone that answers")
}

/// The machine under a virtual phone runs other tests, so that only what is meant to be busy is judged so.
fn patient() -> Thresholds {
    Thresholds {
        other_load_percent: 100,
        charging_required: true,
        ..Thresholds::default()
    }
}

async fn reasons(phone: &Phone) -> Vec<String> {
    let reasons = check(&read(phone).await, &patient());
    reasons.iter().map(ToString::to_string).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_phone_that_is_cool_charged_dark_and_roomy_is_ready() {
    let Some(farm) = Farm::new() else { return };
    let phone = dark_phone(&farm);
    let readings = read(&farm.connect(&phone).await).await;
    assert_eq!(check(&readings, &patient()), []);
    assert_eq!(readings.unknown(), [""; 0]);
    assert_eq!(readings.battery_level_percent, Some(85));
    let cool = MilliCelsius::from_millicelsius(27_000);
    assert_eq!(readings.battery_temperature_millicelsius, Some(cool));
    let free = readings.storage_free_bytes;
    assert!(free <= Some(Bytes::from_bytes(2 << 30)), "{free:?}");
    assert!(free > Some(Bytes::from_bytes(2_000_000_000)), "{free:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_that_makes_a_phone_unfit_is_named() {
    let Some(farm) = Farm::new() else { return };
    let phone = dark_phone(&farm);
    let connected = farm.connect(&phone).await;
    let table = [
        ("battery_level_percent", "22", "85", "battery 22 % < 30 %"),
        (
            "battery_temperature_millicelsius",
            "41500",
            "27000",
            "battery 41.5 °C > 37 °C",
        ),
        ("battery_status", "Discharging", "Charging", "not charging"),
        ("battery_plugged", "none", "usb", "not charging"),
        ("thermal_status", "3", "0", "thermal status severe > light"),
        (
            "storage_free_bytes",
            "349175808",
            "2000000000",
            "storage 0.3 GiB free < 1 GiB",
        ),
        ("wakefulness", "Awake", "Asleep", "screen is on"),
    ];
    for (key, unfit, fit, sentence) in table {
        phone.set(key, unfit);
        assert_eq!(reasons(&connected).await, [sentence], "{key}");
        phone.set(key, fit);
    }
    assert_eq!(reasons(&connected).await, [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn values_frozen_by_hand_are_not_believed() {
    let Some(farm) = Farm::new() else { return };
    let phone = dark_phone(&farm);
    let connected = farm.connect(&phone).await;
    let run = async |command: &str| {
        connected
            .succeed("freeze", command, b"")
            .await
            .expect("it runs")
    };
    run("dumpsys battery set level 100; cmd thermalservice override-status 0").await;
    let frozen = [NotReady::BatteryFrozen, NotReady::ThermalStatusOverridden];
    assert_eq!(check(&read(&connected).await, &patient()), frozen);
    // What the sentences tell a person to do.
    run("dumpsys battery reset; cmd thermalservice reset").await;
    assert_eq!(check(&read(&connected).await, &patient()), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_phone_is_not_refused_for_what_it_does_not_tell() {
    let Some(farm) = Farm::new() else { return };
    let phone = dark_phone(&farm);
    for service in ["battery", "thermalservice", "power"] {
        phone.set(&format!("dump.{service}"), "");
    }
    let readings = read(&farm.connect(&phone).await).await;
    assert_eq!(check(&readings, &patient()), []);
    let unknown = [
        "battery level",
        "battery temperature",
        "charging",
        "thermal status",
        "screen",
    ];
    assert_eq!(readings.unknown(), unknown);
}

#[tokio::test(flavor = "multi_thread")]
async fn other_programs_are_seen() {
    let Some(farm) = Farm::new() else { return };
    let phone = dark_phone(&farm);
    let connected = farm.connect(&phone).await;
    // A virtual phone has its host's processor.
    let done = AtomicBool::new(false);
    let cores = std::thread::available_parallelism()
        .expect("a number")
        .get();
    let (phone, host) = std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let both = tokio::task::block_in_place(|| {
            tokio::runtime::Handle::current().block_on(async {
                let phone = readings::of_phone(&connected).await;
                (phone, readings::of_host(&farm.state()).await)
            })
        });
        done.store(true, Ordering::Relaxed);
        both
    });
    for readings in [phone.expect("a phone that answers"), host] {
        let reasons = check(&readings, &Thresholds::default());
        let busy = reasons
            .iter()
            .any(|reason| matches!(reason, NotReady::Busy { percent: 50.., .. }));
        assert!(busy, "{readings:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gate_opens_when_the_phone_is_charged() {
    let Some(farm) = Farm::new() else { return };
    let phone = dark_phone(&farm);
    let connected = farm.connect(&phone).await;
    let second = Duration::from_secs(1);
    let mut gate = Gate::new(patient(), Patience::default(), second);
    phone.set("battery_level_percent", "22");
    let verdict = gate.look(&read(&connected).await, second);
    assert!(matches!(verdict, Verdict::Wait { .. }), "{verdict:?}");
    let said = gate.waiting(841 * second);
    assert_eq!(
        said.as_deref(),
        Some("waiting: battery 22 % < 30 %, 14 min")
    );
    phone.unplug();
    let error = readings::of_phone(&connected)
        .await
        .expect_err("it is away");
    let verdict = gate.unread(error.to_string(), 900 * second);
    assert!(matches!(verdict, Verdict::Wait { .. }), "{verdict:?}");
    phone.plug();
    phone.set("battery_level_percent", "30");
    let verdict = gate.look(
        &read(&connect_again(&farm, &phone).await).await,
        1_000 * second,
    );
    assert!(matches!(verdict, Verdict::Ready { .. }), "{verdict:?}");
}

/// The phone, once the server has seen that it is back.
async fn connect_again(farm: &Farm, phone: &VirtualPhone) -> Phone {
    let fleet = Fleet::open(&farm.settings()).await;
    wait_until("the phone to be back", async || {
        // This has the server call it.
        let found = fleet.find(&phone.address).await.expect("a phone");
        let phone = Phone::new(&found.route, &found.row).ok()?;
        phone.identity().await.ok()?;
        Some(phone)
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_phone_made_quiet_is_dark_and_restored_it_is_as_it_was() {
    let Some(farm) = Farm::new() else { return };
    let phone = farm.phone("P1");
    let connected = farm.connect(&phone).await;
    let before = phone.state();
    assert_eq!(
        connected.restore().await.expect("it answers"),
        Restored::Nothing
    );
    assert_eq!(reasons(&connected).await, ["screen is on"]);

    let quieted = connected.quiet().await.expect("it answers");
    assert_eq!(quieted.complaint(), None);
    assert!(!quieted.again);
    assert_ne!(phone.state(), before);
    assert_eq!(reasons(&connected).await, [""; 0]);
    // One that died before it could restore the phone makes it quiet again: what was before stays known.
    assert!(connected.quiet().await.expect("it answers").again);

    assert_eq!(
        connected.restore().await.expect("it answers"),
        Restored::AsBefore
    );
    assert_eq!(phone.state(), before);
    assert_eq!(
        connected.restore().await.expect("it answers"),
        Restored::Nothing
    );
    assert_eq!(phone.state(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_phone_is_restored_after_a_lost_link_and_after_a_reboot() {
    let Some(farm) = Farm::new() else { return };
    let phone = farm.phone("P1");
    let before = phone.state();
    let connected = farm.connect(&phone).await;
    connected.quiet().await.expect("it answers");
    phone.crash_adbd();
    let connected = connect_again(&farm, &phone).await;
    assert_eq!(
        connected.restore().await.expect("it answers"),
        Restored::AsBefore
    );
    assert_eq!(phone.state(), before);

    connected.quiet().await.expect("it answers");
    phone.reboot();
    let connected = connect_again(&farm, &phone).await;
    assert_eq!(
        connected.restore().await.expect("it answers"),
        Restored::AsBefore
    );
    assert_eq!(phone.state(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_phone_does_not_let_be_done_is_said() {
    let Some(farm) = Farm::new() else { return };
    let phone = farm.phone("P1");
    phone.set("fixed_performance_supported", "false");
    let connected = farm.connect(&phone).await;
    let complaint = connected.quiet().await.expect("it answers").complaint();
    let sentence = "the phone is not as quiet as it should be: its clocks are not fixed (not supported by this phone)";
    assert_eq!(complaint.as_deref(), Some(sentence));
    assert_eq!(
        connected.restore().await.expect("it answers"),
        Restored::AsBefore
    );

    // No room for the record, no change.
    let before = phone.state();
    connected
        .succeed("lock its storage", "chmod 555 /data/local/tmp", b"")
        .await
        .expect("it runs");
    let error = connected.quiet().await.expect_err("nothing can be written");
    assert!(error.to_string().contains("free some storage"), "{error}");
    assert_eq!(phone.state(), before);
    connected
        .succeed("unlock it", "chmod 771 /data/local/tmp", b"")
        .await
        .expect("it runs");
}
