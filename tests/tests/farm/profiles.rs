//! What phones give is what the same devices give on this machine.

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};

use layerlab_tests::farm::Farm;
use layerlab_tests::published::Published;
use layerlab_tests::succeed;
use layerlab_tests::watch::Watch;

use super::{Disguised, local, profile_on};

#[test]
fn a_phone_gives_the_same_profile_as_the_local_link() {
    let Some(farm) = Farm::new() else { return };
    let phone = farm.phone("P1");
    let out = farm.path("profile");
    succeed(profile_on(
        &mut farm.layerlab(),
        &phone.address,
        "pixel6",
        &out,
    ));
    assert_eq!(Published::read(&out), local(&farm, "pixel6"));
    let json = std::fs::read_to_string(out.join("profile.json")).expect("profile.json");
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["provenance"]["link"], "adb");
}

/// So often is the fourth phone unplugged.
const UNPLUGGED: u32 = 20;

#[test]
fn three_phones_profile_while_a_fourth_comes_and_goes() {
    let Some(farm) = Farm::new() else { return };
    let simulated = ["mate10pro", "oneplus7", "pixel6"];
    let phones = simulated.map(|name| farm.phone(name));
    let fourth = farm.phone("fourth");
    let mut watch = Watch::start(farm.layerlab(), &fourth.address);
    watch.wait_for(&fourth.serial, "ready");
    let expected = simulated.map(|name| local(&farm, name).clockless());
    let settled = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for ((name, phone), expected) in simulated.iter().zip(&phones).zip(&expected) {
            let (farm, settled) = (&farm, &settled);
            // Again and again, so that each cable that is pulled is pulled in the middle of three runs.
            scope.spawn(move || {
                let mut runs = 0;
                while runs == 0 || !settled.load(Ordering::Relaxed) {
                    let out = farm.path(&format!("out-{name}-{runs}"));
                    let mut command = farm.layerlab();
                    succeed(profile_on(&mut command, &phone.address, name, &out));
                    let published = Published::read(&out).clockless();
                    assert_eq!(&published, expected, "{name}, run {runs}");
                    runs += 1;
                }
            });
        }
        // Says that it is over even if a wait fails, since the others wait for that.
        let _settled = OnDrop(|| settled.store(true, Ordering::Relaxed));
        for _ in 0..UNPLUGGED {
            fourth.unplug();
            watch.wait_for(&fourth.serial, "offline");
            fourth.plug();
            watch.wait_for(&fourth.serial, "ready");
        }
    });
}

/// Does something when it goes out of scope, also in a panic.
struct OnDrop<F: Fn()>(F);

impl<F: Fn()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

#[test]
fn a_phone_that_is_accepted_in_the_end_is_profiled() {
    let Some(lab) = Disguised::new("P1") else {
        return;
    };
    let row = format!("{} unauthorized transport_id:1\n", lab.phone.address);
    lab.interposer.list(Some(&row));
    let out = lab.farm.path("profile");
    let mut command = lab.layerlab();
    // It cannot be asked for its serial yet.
    let name = lab.name_of(&lab.phone.address);
    profile_on(&mut command, &name, "pixel6", &out).env("LAYERLAB_LOG", "warn");
    command.stderr(Stdio::piped()).stdout(Stdio::null());
    let mut child = command.spawn().expect("layerlab starts");
    let stderr = BufReader::new(child.stderr.take().expect("piped"));
    let mut lines = stderr.lines().map_while(Result::ok);
    let told = lines
        .by_ref()
        .any(|line| line.contains("accept the prompt"));
    assert!(told, "the user is told what to do");
    // The owner accepts.
    lab.interposer.list(None);
    let rest: Vec<String> = lines.collect();
    assert!(child.wait().expect("a child").success(), "{rest:?}");
    assert_eq!(Published::read(&out), local(&lab.farm, "pixel6"));
}
