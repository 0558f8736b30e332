//! What a phone logged around a failure is kept, no more of it than its newest part, and named.

use std::path::Path;

use layerlab_farm::artifacts::{MOST_BYTES, MOST_TOMBSTONES};
use layerlab_tests::farm::Farm;
use layerlab_tests::virtual_phone::VirtualPhone;
use layerlab_tests::{output, stderr};

use super::profile_on;

/// An agent that dies when it is started.
fn dying_agent(farm: &Farm) -> std::path::PathBuf {
    let agent = farm.path("dies");
    let script = "#!/system/bin/sh\necho 'the runtime has no licence' >&2\nexit 1\n";
    std::fs::write(&agent, script).expect("room");
    agent
}

/// Profiles with an agent that dies; what is said.
fn fail(farm: &Farm, phone: &VirtualPhone, out: &Path) -> String {
    let mut command = farm.layerlab();
    profile_on(&mut command, &phone.address, "pixel6", out);
    command.arg("--agent").arg(dying_agent(farm));
    let ended = output(command.arg("--no-reboot"));
    let said = stderr(&ended);
    assert_eq!(ended.status.code(), Some(4), "{said}");
    said
}

#[test]
fn a_crash_leaves_its_logs_and_tombstones() {
    let Some(farm) = Farm::new() else { return };
    let phone = farm.phone("P1");
    let folder = farm.path("phone-P1");
    phone.set("logcat", "F libc    : Fatal signal 11 (SIGSEGV)");
    phone.set("dropbox", "data_app_native_crash: signal 11");
    let line = "[ 12.345678] cdsp: subsystem crashed\n";
    let kernel = line.repeat(2 * MOST_BYTES / line.len()) + "the newest line\n";
    std::fs::write(folder.join("state/dmesg"), kernel).expect("room");
    for number in 0..MOST_TOMBSTONES + 2 {
        let text = format!("backtrace of crash {number}\n");
        let file = folder.join(format!("tombstones/tombstone_{number:02}"));
        std::fs::write(&file, &text).expect("room");
        std::fs::write(file.with_extension("pb"), "no text").expect("room");
    }
    let out = farm.path("out");
    let said = fail(&farm, &phone, &out);
    let kept = farm.path("out.failure");
    assert!(said.contains(kept.to_str().expect("UTF-8")), "{said}");
    let read = |name: &str| std::fs::read_to_string(kept.join(name)).expect("a file");
    for (name, content) in [
        ("failure.txt", "the runtime has no licence"),
        ("logcat.txt", "Fatal signal 11"),
        ("dmesg.txt", "the newest line"),
        ("tombstones-of-dropbox.txt", "data_app_native_crash"),
        ("agent.log", "the runtime has no licence"),
        ("tombstone-1.txt", "backtrace of crash 5"),
        ("tombstone-4.txt", "backtrace of crash 2"),
    ] {
        assert!(read(name).contains(content), "{name}: {}", read(name));
        assert!(
            name == "failure.txt" || said.contains(name),
            "{name}: {said}"
        );
    }
    assert_eq!(read("dmesg.txt").len(), MOST_BYTES, "its newest part");
    assert!(!kept.join("tombstone-5.txt").exists());
    assert!(!out.exists());
}

#[test]
fn what_a_phone_does_not_tell_is_not_kept() {
    let Some(farm) = Farm::new() else { return };
    let phone = farm.phone("P1");
    let said = fail(&farm, &phone, &farm.path("out"));
    let kept = std::fs::read_dir(farm.path("out.failure")).expect("a folder");
    let mut names: Vec<_> = kept.map(|file| file.expect("a file").file_name()).collect();
    names.sort();
    assert_eq!(names, ["agent.log", "failure.txt"], "{said}");
}
