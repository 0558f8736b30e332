//! A disk that is full, and has room again.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::*;

/// Where the disk is mounted, for the test's own second process.
const DISK: &str = "LAYERLAB_TEST_DISK";

/// A file system of a few pages, in a mount namespace of the test's own, in which it runs itself once more.
#[test]
#[expect(
    clippy::print_stderr,
    reason = "who reads the output must know that it was skipped"
)]
fn on_a_full_disk_calls_wait() {
    if let Some(disk) = std::env::var_os(DISK) {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        return runtime.block_on(fill_and_make_room(Path::new(&disk)));
    }
    let folder = tempfile::tempdir().expect("a folder");
    let inside = |program: &Path, arguments: &[&str]| {
        let script = r#"mount -t tmpfs -o size=1m none "$1" && shift && exec "$@""#;
        let mut command = Command::new("unshare");
        command
            .args([
                "--user",
                "--map-root-user",
                "--mount",
                "sh",
                "-c",
                script,
                "sh",
            ])
            .arg(folder.path())
            .arg(program)
            .args(arguments)
            .env(DISK, folder.path());
        command.output()
    };
    match inside(Path::new("true"), &[]) {
        Ok(output) if output.status.success() => {}
        other => return eprintln!("SKIPPED: no mount namespace here: {other:?}"),
    }
    let name = "store::tests::full_disk::on_a_full_disk_calls_wait";
    let this = std::env::current_exe().expect("this program");
    let output = inside(&this, &["--exact", name, "--nocapture"]).expect("a second process");
    assert!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"));
}

async fn fill_and_make_room(disk: &Path) {
    let (store, _) = open(disk).await;
    store
        .keep(vec![Change::Event(event(1))])
        .await
        .expect("kept");
    let filler = disk.join("filler");
    let full = std::fs::write(&filler, vec![0; 2 << 20]);
    full.expect_err("more than the disk holds");

    let mut trouble = store.trouble();
    let waiting = tokio::spawn({
        let store = store.clone();
        async move {
            // In one task, so that they come in their order.
            let calls = (0..3).map(|part| {
                let entries = entries(part * 500 + 1..=part * 500 + 500);
                store.keep(journal("r", entries))
            });
            join_all(calls).await
        }
    });
    let said = trouble.wait_for(Option::is_some).await;
    let said = said.expect("a writer").clone().unwrap_or_default();
    let begin = format!("the lab cannot write {}: ", schema::file(disk).display());
    assert!(said.starts_with(&begin), "{said}");
    assert!(said.contains("room"), "{said}");
    tokio::time::sleep(Duration::from_millis(2500)).await;
    assert!(!waiting.is_finished());
    let kept = store.entries(&run_id("r")).await.expect("entries");
    assert_eq!(kept, []);

    std::fs::remove_file(filler).expect("room");
    for kept in waiting.await.expect("calls") {
        kept.expect("kept");
    }
    assert_eq!(*trouble.borrow_and_update(), None);
    let (store, kept) = reopened(store, disk).await;
    assert_eq!(kept.last_event, 1);
    let kept = store.entries(&run_id("r")).await.expect("entries");
    assert_eq!(kept, entries(1..=1500));
}
