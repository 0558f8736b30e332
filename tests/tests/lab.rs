//! The lab as a whole: the real daemon and its commands, killed, stopped and out of room. With phones where it says so:
//! the real adb server and the real adbd; skipped, with a sentence, where they cannot be had.
#![expect(
    clippy::print_stdout,
    reason = "a test that takes minutes tells its figures"
)]

use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use layerlab_tests::farm::Farm;
use layerlab_tests::file;
use layerlab_tests::lab::{Lab, content, same_profiles, simulating};
use layerlab_tests::small_disk::small_disk;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

fn job(model: &str, rest: &str) -> String {
    format!(
        "models = [{:?}]\n{rest}",
        file(&format!("models/{model}.onnx"))
    )
}

const SIMULATED: &str =
    "[phones]\nlocal = [\"mate10pro\", \"oneplus7\"]\n[gates]\nload-percent = 100\n";

const EACH: &str = "[[devices]]\nabi = \"x86_64\"\neach = true\n[measure]\ndesign = \"local\"\n";

#[test]
fn a_job_gives_the_profiles_that_the_command_gives() {
    let lab = Lab::new(SIMULATED);
    let _daemon = lab.daemon();
    lab.wait_until_open();
    let said = lab.submit(&job("alexnet", EACH));
    assert!(said.contains("Job 1"), "{said}");
    lab.succeed(&["job", "wait", "1", "--timeout", "2m"]);
    let profiles = lab.profiles();
    assert_eq!(profiles.len(), 2, "{:?}", profiles.keys());
    lab.check_journals();
    for (number, device) in ["mate10pro", "oneplus7"].iter().enumerate() {
        let out = lab.path(device);
        let model = file("models/alexnet.onnx");
        lab.succeed(&[
            "profile",
            "--device",
            device,
            "--model",
            model.to_str().expect("UTF-8"),
            "--design",
            "local",
            "--out",
            out.to_str().expect("UTF-8"),
        ]);
        let of_lab = &profiles[&format!("profiles/{device}/alexnet/run-{}", number + 1)];
        assert!(*of_lab == content(&out), "the profiles of {device} differ");
    }
    let report = lab.succeed(&["report"]);
    assert!(report.starts_with("2 of 2 profiles published"), "{report}");
    // The same again is recognised.
    let again = lab.succeed(&["submit", lab.path("job.toml").to_str().expect("UTF-8")]);
    assert!(again.contains("Job 1 asks for the same"), "{again}");
    assert_eq!(lab.kept().jobs.len(), 1);
}

#[test]
fn a_second_daemon_is_refused() {
    let lab = Lab::new(SIMULATED);
    let first = lab.daemon();
    lab.wait_until_open();
    let config = lab.path("config.toml");
    let second = lab.run(&["daemon", "--config", config.to_str().expect("UTF-8")]);
    assert_eq!(second.status.code(), Some(4));
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    let process = format!("(process {})", first.id());
    assert!(said.contains(&process), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    // The first one is none the worse for it.
    lab.submit(&job("alexnet", EACH));
    lab.succeed(&["job", "wait", "1", "--timeout", "2m"]);
}

#[test]
fn without_a_daemon_commands_say_so() {
    let lab = Lab::new(SIMULATED);
    let file = lab.path("job.toml");
    std::fs::write(&file, job("alexnet", EACH)).expect("room");
    let output = lab.run(&["submit", file.to_str().expect("UTF-8")]);
    assert_eq!(output.status.code(), Some(4));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("layerlab daemon"), "{said}");
    assert!(lab.succeed(&["jobs"]).contains("No jobs"));
}

/// Many samples, so that runs take a while.
const LONG: &str =
    "[[devices]]\nabi = \"x86_64\"\neach = true\n[measure]\ndesign = \"local\"\nsamples = 400\n";

/// What was derived. A local agent ends with the daemon, and the clock of a simulated device begins anew with it: when
/// samples were taken differs.
const DERIVED: [&str; 4] = ["layers.csv", "times.csv", "cuts.csv", "segments.csv"];

/// So often is the daemon stopped.
const STOPS: u32 = 5;

#[test]
fn a_daemon_that_is_stopped_and_started_goes_on() {
    let noisy = file("devices/noisy.toml");
    let configuration = format!("[phones]\nlocal = [{noisy:?}]\n");
    // More runs than visits, however much the machine does in one.
    let long = format!("repeats = {}\n{LONG}", 3 * STOPS);
    let undisturbed = Lab::new(&configuration);
    let daemon = undisturbed.daemon();
    undisturbed.wait_until_open();
    undisturbed.submit(&job("alexnet", &long));
    undisturbed.succeed(&["job", "wait", "1", "--timeout", "2m"]);
    daemon.stop();

    let lab = Lab::new(&configuration);
    let mut daemon = lab.daemon();
    lab.wait_until_open();
    lab.submit(&job("alexnet", &long));
    for stop in 1..=STOPS {
        lab.wait_for("a run on the device", || {
            lab.devices().iter().any(|device| device.run.is_some())
        });
        let before = lab.blocks();
        daemon.stop();
        assert!(
            lab.blocks() > before,
            "stop {stop} of {STOPS}: no block was added"
        );
        daemon = lab.daemon();
        lab.wait_until_open();
    }
    lab.succeed(&["job", "wait", "1", "--timeout", "2m"]);
    daemon.stop();
    lab.check_journals();
    same_profiles(&lab, &undisturbed, &DERIVED);
}

#[test]
#[ignore = "takes ten minutes"]
fn a_daemon_that_is_killed_a_hundred_times_loses_nothing() {
    kill_often(None);
}

#[test]
#[ignore = "takes twelve minutes"]
fn a_daemon_that_is_killed_while_its_disk_fills_up_and_is_freed_loses_nothing() {
    let name = "a_daemon_that_is_killed_while_its_disk_fills_up_and_is_freed_loses_nothing";
    // Half as much again as is there when all is done.
    let size = format!("{}m", 28 * kills().max(10));
    if let Some(disk) = small_disk(&size, name) {
        kill_often(Some(&disk));
    }
}

fn kills() -> usize {
    match std::env::var("LAYERLAB_KILLS") {
        Ok(kills) => kills.parse().expect("a number"),
        Err(_) => 100,
    }
}

/// Kills the daemon of a lab with four phones at random instants. With a small disk, which then holds its store and its
/// profiles, that disk is filled and freed about as often, at random instants, too.
fn kill_often(disk: Option<&Path>) {
    let kills = kills();
    let Some(farm) = Farm::new() else { return };
    let phones: Vec<_> = (1..=4)
        .map(|number| farm.phone(&format!("P{number}")))
        .collect();
    let configuration = simulating(&phones, &file("devices/noisy.toml"));
    let job = job(
        "alexnet",
        &format!(
            "repeats = {}\n[[devices]]\nabi = \"x86_64\"\neach = true\n[measure]\ndesign = \"local\"\nsamples = 3000\n",
            kills.div_ceil(6)
        ),
    );
    let submit = |lab: &Lab| {
        lab.wait_until_open();
        lab.wait_for_devices(phones.len());
        lab.submit(&job);
    };

    // Each lab has agents of its own on the phones, whose clocks begin anew.
    let mut lab = Lab::new(&configuration).with_phones(&farm);
    if let Some(disk) = disk {
        lab = lab.on(disk);
    }
    let mut daemon = lab.daemon();
    submit(&lab);
    let mut random = ChaCha8Rng::seed_from_u64(100);
    let began = Timestamp::now();
    let (mut killed, mut filled) = (0, 0);
    let filler = disk.map(|disk| disk.join("filler"));
    let pauses = if disk.is_some() {
        100..1_500
    } else {
        200..6_000
    };
    while killed < kills {
        std::thread::sleep(Duration::from_millis(random.random_range(pauses.clone())));
        match &filler {
            Some(filler) if random.random_ratio(2, 3) => {
                if std::fs::remove_file(filler).is_err() {
                    fill(filler);
                    filled += 1;
                }
            }
            _ => {
                daemon.kill();
                killed += 1;
                daemon = lab.daemon();
            }
        }
    }
    if let Some(filler) = filler {
        // It may be free already, which is what is wanted.
        let _ = std::fs::remove_file(filler);
        assert!(lab.log().contains("make room"), "{}", lab.log());
    }
    println!(
        "killed {killed} times, its disk filled {filled} times, in {:.0}",
        Timestamp::now().duration_since(began)
    );
    assert!(!lab.is_over(), "the job was over too soon");
    lab.succeed(&["job", "wait", "1", "--timeout", "20m"]);
    daemon.stop();
    assert_eq!(
        lab.kept().runs.values().map(|run| run.attempt).max(),
        Some(1),
        "{}",
        lab.succeed(&["job", "show", "1"])
    );
    lab.check_journals();

    let undisturbed = Lab::new(&configuration).with_phones(&farm);
    let daemon = undisturbed.daemon();
    submit(&undisturbed);
    undisturbed.succeed(&["job", "wait", "1", "--timeout", "20m"]);
    daemon.stop();
    same_profiles(&lab, &undisturbed, &[]);
}

#[test]
fn a_disk_that_fills_up_and_is_freed_loses_nothing() {
    let name = "a_disk_that_fills_up_and_is_freed_loses_nothing";
    let Some(disk) = small_disk("48m", name) else {
        return;
    };
    let undisturbed = Lab::new(SIMULATED);
    let daemon = undisturbed.daemon();
    undisturbed.wait_until_open();
    undisturbed.submit(&job("alexnet", LONG));
    undisturbed.succeed(&["job", "wait", "1", "--timeout", "2m"]);
    daemon.stop();

    let lab = Lab::new(SIMULATED).on(&disk);
    let daemon = lab.daemon();
    lab.wait_until_open();
    lab.submit(&job("alexnet", LONG));
    // The agents have what they need, and measure.
    lab.wait_for("progress on both devices", || {
        let devices = lab.devices().into_iter();
        let progress = devices.filter_map(|one| one.progress);
        progress.filter(|&(done, _)| done > 0).count() == 2
    });
    let filler = disk.join("filler");
    for _ in 0..3 {
        fill(&filler);
        // An agent may find out first, and wait; then the lab has nothing to write.
        let noticed = lab.log().matches("make room").count();
        let patience = Instant::now() + Duration::from_secs(5);
        while lab.log().matches("make room").count() == noticed && Instant::now() < patience {
            std::thread::sleep(Duration::from_millis(50));
        }
        std::fs::remove_file(&filler).expect("it is there");
        std::thread::sleep(Duration::from_millis(300));
    }
    assert!(
        lab.log().contains("make room"),
        "it never noticed: {}",
        lab.log()
    );
    lab.succeed(&["job", "wait", "1", "--timeout", "2m"]);
    same_profiles(&lab, &undisturbed, &[]);
    daemon.stop();
}

/// Takes all the room that there is.
fn fill(path: &Path) {
    let mut file = std::fs::File::create(path).expect("a name takes no room");
    let chunk = vec![0; 1 << 16];
    while file.write_all(&chunk).is_ok() {}
    while file.write_all(&chunk[..512]).is_ok() {}
}
