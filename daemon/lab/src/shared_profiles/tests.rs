//! What is published is found whole by whoever finds its note, or not at all.

use jiff::Timestamp;
use layerlab_objects::{ObjectsPlace, S3Variables};
use tempfile::TempDir;

use super::*;
use crate::record::Run;

/// A lab's object store, and the folder of a test.
fn shared() -> (TempDir, SharedProfiles) {
    let folder = tempfile::tempdir().expect("a folder");
    let place = ObjectsPlace::Folder(folder.path().join("objects"));
    let objects = Objects::open(&place, &S3Variables::default()).expect("a folder");
    (folder, SharedProfiles::new(objects, "lab".to_owned()))
}

fn run(attempt: u32) -> Run {
    Run {
        number: 7,
        attempt,
        started: Timestamp::from_second(1_700_000_000).ok(),
        ..Run::default()
    }
}

/// A folder as publications are.
fn publish(folder: &Path, content: &str) {
    for name in ["profile.json", "layers.csv", "steady/layers.csv"] {
        write(&folder.join(name), format!("{content} {name}").as_bytes()).expect("room");
    }
}

fn content(folder: &Path) -> Vec<(String, String)> {
    let names = names(folder).expect("it is there").into_iter();
    let read = |name: String| {
        let text = fs::read_to_string(folder.join(&name)).expect("a text");
        (name, text)
    };
    names.map(read).collect()
}

#[tokio::test]
async fn what_one_host_publishes_another_one_has_whole() {
    let (folder, shared) = shared();
    let (one, two) = (
        folder.path().join("one/run-7"),
        folder.path().join("two/run-7"),
    );
    publish(&one, "measured");
    let early = shared.bring(&run(1), &two).await.expect_err("no note");
    let early = early.to_string();
    assert!(
        early.starts_with("runs/lab/run-7-attempt-1-1700000000000000000.json is not in "),
        "{early}"
    );
    assert!(!two.exists());
    shared.put(&run(1), &one).await.expect("room");
    shared.bring(&run(1), &two).await.expect("it is published");
    assert_eq!(content(&two), content(&one));
    assert_eq!(content(&two).len(), 3);
}

#[tokio::test]
async fn of_one_attempt_what_was_published_first_stays() {
    let (folder, shared) = shared();
    let (one, again) = (folder.path().join("one"), folder.path().join("again"));
    publish(&one, "first");
    shared.put(&run(1), &one).await.expect("room");
    shared.put(&run(1), &one).await.expect("the same");
    publish(&again, "second");
    shared.put(&run(1), &again).await.expect("it is there");
    assert_eq!(content(&again), content(&one));
    // Another attempt has a note of its own.
    publish(&one, "third");
    shared.put(&run(2), &one).await.expect("room");
    assert_eq!(content(&one)[0].1, "third layers.csv");
}

/// A lab that was restored from a backup numbers its runs as those were that it does not know any more.
#[tokio::test]
async fn a_run_that_is_numbered_as_another_one_was_is_told_from_it() {
    let (folder, shared) = shared();
    let [before, after, brought] = ["before", "after", "brought"].map(|it| folder.path().join(it));
    let again = Run {
        started: Timestamp::from_second(1_800_000_000).ok(),
        ..run(1)
    };
    publish(&before, "another model");
    publish(&after, "measured");
    shared.put(&run(1), &before).await.expect("room");
    shared.put(&again, &after).await.expect("room");
    shared
        .bring(&again, &brought)
        .await
        .expect("it is published");
    let measured = brought.join("layers.csv");
    let measured = fs::read_to_string(measured).expect("it is there");
    assert_eq!(measured, "measured layers.csv");
    assert_eq!(content(&after), content(&brought));
}

#[tokio::test]
async fn a_publication_that_lacks_a_file_is_not_visible_in_part() {
    let (folder, shared) = shared();
    let (one, two) = (folder.path().join("one"), folder.path().join("two"));
    publish(&one, "measured");
    shared.put(&run(1), &one).await.expect("room");
    let hash = sha256(b"measured steady/layers.csv");
    let file = folder.path().join("objects/sha256").join(&hash[..2]);
    fs::remove_dir_all(file).expect("it is there");
    let lacking = shared
        .bring(&run(1), &two)
        .await
        .expect_err("a file is gone");
    assert!(lacking.to_string().starts_with(&hash), "{lacking}");
    assert!(!two.exists());
    // Nothing is left of what was brought before.
    let left = fs::read_dir(folder.path()).expect("it is there").count();
    assert_eq!(left, 2);
}

#[tokio::test]
async fn no_note_leads_out_of_the_folder() {
    for name in ["../escaped", "/tmp/escaped", "a/../../escaped", ""] {
        let (folder, shared) = shared();
        let note = PublicationNote {
            format: FORMAT,
            files: vec![NotedFile {
                name: name.to_owned(),
                sha256: sha256(b""),
                bytes: 0,
            }],
        };
        let text = serde_json::to_vec(&note).expect("JSON");
        let written = shared.objects.write_new(&shared.note(&run(1)), text).await;
        assert_eq!(written, Ok(true));
        let refused = shared
            .bring(&run(1), &folder.path().join("inner/two"))
            .await;
        let refused = refused.expect_err(name).to_string();
        assert!(refused.contains("was altered"), "{refused}");
        assert!(!folder.path().join("inner").exists());
    }
}
