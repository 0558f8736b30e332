//! A disk that is full, and has room again.

use std::path::Path;
use std::time::Duration;

use super::*;

#[path = "../../../../../tests/src/small_disk.rs"]
#[expect(unreachable_pub, reason = "it is shared with the tests of the whole")]
mod small_disk;

/// A file system of a few pages.
#[test]
fn on_a_full_disk_calls_wait() {
    let name = "store::tests::full_disk::on_a_full_disk_calls_wait";
    if let Some(disk) = small_disk::small_disk("1m", name) {
        // Its clock is paused: what waits for the disk passes at once, apart from the disk's own work.
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().start_paused(true).build();
        let runtime = runtime.expect("a runtime");
        runtime.block_on(fill_and_make_room(&disk));
    }
}

async fn open(disk: &Path) -> (Store, Kept) {
    let place = StorePlace::in_folder(disk);
    Store::open(&place).await.expect("a store")
}

async fn fill_and_make_room(disk: &Path) {
    let (store, _) = open(disk).await;
    store
        .keep(vec![RecordChange::Event(event(1))])
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
    let begin = format!("the lab cannot write {}: ", sqlite::file(disk).display());
    assert!(said.starts_with(&begin), "{said}");
    assert!(said.contains("room"), "{said}");
    // It is tried again and again meanwhile.
    tokio::time::sleep(Duration::from_millis(10_500)).await;
    assert!(!waiting.is_finished());
    let kept = store.entries(&run_id("r")).await.expect("entries");
    assert_eq!(kept, []);

    std::fs::remove_file(filler).expect("room");
    for kept in waiting.await.expect("calls") {
        kept.expect("kept");
    }
    assert_eq!(*trouble.borrow_and_update(), None);
    store.close().await;
    let (store, kept) = open(disk).await;
    assert_eq!(kept.last_event, 1);
    let kept = store.entries(&run_id("r")).await.expect("entries");
    assert_eq!(kept, entries(1..=1500));
}
