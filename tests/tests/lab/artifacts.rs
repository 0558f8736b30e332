//! What phones logged around failures is kept with their runs, and the report says where.

use layerlab_tests::device;
use layerlab_tests::farm::Farm;
use layerlab_tests::lab::{Lab, simulating};

use super::job;

#[test]
fn a_failed_run_keeps_what_its_phone_logged_and_the_report_names_it() {
    let Some(farm) = Farm::new() else { return };
    let phones = [farm.phone("P1")];
    phones[0].set("logcat", "F libc    : Fatal signal 11 (SIGSEGV)");
    let agent = farm.path("dies");
    let script = "#!/system/bin/sh\necho 'the runtime has no licence' >&2\nexit 1\n";
    std::fs::write(&agent, script).expect("room");
    let configuration = simulating(&phones, &device("noisy"));
    let configuration = configuration.replace("[phones]\n", "[phones]\nreboot = false\n")
        + "[attempts]\nper-run = 1\n";
    let lab = Lab::new(&configuration)
        .with_phones(&farm)
        .with_agent(&agent);
    let daemon = lab.daemon();
    lab.wait_until_open();
    lab.wait_for_devices(1);
    lab.submit(&job("alexnet", "[[devices]]\nserial = \"P1\"\n"));
    let waited = lab.run(&["job", "wait", "1", "--timeout", "3m"]);
    assert_eq!(waited.status.code(), Some(4), "{}", lab.log());
    daemon.stop();
    let kept = lab.state().join("lab/artifacts/run-1-attempt-1");
    let log = std::fs::read_to_string(kept.join("logcat.txt")).expect("a log");
    assert!(log.contains("Fatal signal 11"), "{log}");
    let report = lab.succeed(&["report"]);
    let report: String = report.split_whitespace().collect();
    let named = kept.to_str().expect("UTF-8");
    assert!(
        report.contains(named) && report.contains("logcat.txt"),
        "{report}"
    );
    // It goes when room is needed.
    let goes = lab.succeed(&["lab", "prune", "--budget", "0B", "--remove"]);
    assert!(goes.contains("run-1-attempt-1"), "{goes}");
    assert!(!kept.exists());
}
