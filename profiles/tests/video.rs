//! A sceptic changes one number of what was measured of frames: `check_video_directory` refuses it, unless nothing in the
//! document determines that number.

#[path = "common/video.rs"]
mod example;
use crate::sceptic;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use example::document;
use layerlab_profiles::check::Severity;
use layerlab_profiles::video::{VIDEO_JSON, check_video_directory};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use sceptic::Files;

/// Numbers that nothing in the document determines, by file and field: docs/video.md has the same list.
const UNDETERMINED: &[(&str, &str)] = &[
    ("answers.csv", "infer_ns"),
    ("answers.csv", "labels"),
    ("frames.csv", "bytes"),
    ("frames.csv", "resize_ns"),
    ("frames.csv", "encode_ns"),
    ("frames.csv", "decode_ns"),
    ("frames.csv", "upscale_ns"),
    ("frames.csv", "infer_ns"),
    ("frames.csv", "predicted"),
    // Of the last part the last layer.
    ("video.json", "placement.segment"),
    ("video.json", "model.width"),
    ("video.json", "model.height"),
    ("video.json", "set.width"),
    ("video.json", "set.height"),
    ("video.json", "set.metric.k"),
    ("video.json", "set.preprocessing.scale"),
    ("video.json", "provenance.started_at"),
    ("video.json", "provenance.finished_at"),
    ("video.json", "provenance.host.logical_cores"),
    ("video.json", "provenance.host.memory_bytes"),
];

/// How many changes are tried, half of them with hashes that fit.
const CHANGES: usize = 2_000;

fn is_refused(folder: &Path) -> bool {
    match check_video_directory(folder) {
        Err(_) => true,
        Ok((_, findings)) => findings.iter().any(|it| it.severity == Severity::Error),
    }
}

#[test]
fn one_number_is_not_changed_unseen() {
    let folder = tempfile::tempdir().expect("a folder");
    document().write(folder.path()).expect("room");
    assert!(!is_refused(folder.path()), "a sound document");
    let files = Files::read(folder.path(), VIDEO_JSON);
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let mut slipped: BTreeMap<(String, String), String> = BTreeMap::new();
    for place in 0..CHANGES {
        let hashed = place % 2 == 0;
        let change = files.write_changed(folder.path(), hashed, &mut random);
        if !is_refused(folder.path()) {
            assert!(
                hashed || change.file == VIDEO_JSON,
                "{change:?} leaves a hash that does not fit"
            );
            let field = (change.file.clone(), change.field.clone());
            slipped.insert(field, format!("{change:?}"));
        }
    }
    let listed: BTreeSet<_> = UNDETERMINED.iter().copied().collect();
    let unlisted: Vec<_> = slipped
        .iter()
        .filter(|((file, field), _)| !listed.contains(&(file.as_str(), field.as_str())))
        .collect();
    assert!(unlisted.is_empty(), "{unlisted:#?}");
    // What is said to be undetermined is.
    let slipped: BTreeSet<(&str, &str)> = slipped
        .keys()
        .map(|(file, field)| (file.as_str(), field.as_str()))
        .collect();
    let found = listed.difference(&slipped).collect::<Vec<_>>();
    assert!(found.is_empty(), "never passed: {found:?}");
}

#[test]
fn docs_say_what_check_cannot_see() {
    let page = include_str!("../../docs/video.md");
    let section = page.split("## What `check` cannot see").nth(1);
    let section = section.expect("a section");
    let section = section.split("\n## ").next().expect("a section");
    for (file, field) in UNDETERMINED {
        let rows = section.lines();
        let mut rows = rows.filter(|line| line.starts_with(&format!("| `{file}`")));
        let last = field.rsplit('.').next().expect("a name");
        let says = |row: &str| row.contains(&format!("`{last}`"));
        assert!(rows.any(says), "{file}: {field}");
    }
}

/// One bit of a score: where another class is the largest by it, or the confidence another number, and the hash in any case.
#[test]
fn a_changed_score_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    document().write(folder.path()).expect("room");
    let (scores, json) = ("answers.f32", folder.path().join(VIDEO_JSON));
    let path = folder.path().join(scores);
    let sound = fs::read(&path).expect("a file");
    let header: serde_json::Value =
        serde_json::from_slice(&fs::read(&json).expect("a file")).expect("JSON");
    let mut unseen = Vec::new();
    for byte in 0..sound.len() {
        let mut changed = sound.clone();
        changed[byte] ^= 0x40;
        fs::write(&path, &changed).expect("room");
        assert!(is_refused(folder.path()), "byte {byte}, by its hash");
        let mut fitting = header.clone();
        fitting["files"][scores] = layerlab_profiles::sha256(&changed).into();
        fs::write(&json, fitting.to_string()).expect("room");
        if !is_refused(folder.path()) {
            unseen.push(byte);
        }
        fs::write(&json, header.to_string()).expect("room");
    }
    // The score that is not the largest follows from nothing as long as it stays so and their sum is 1; the last two bytes of a
    // float weigh less than that sum is exact.
    assert!(unseen.iter().all(|byte| byte % 4 < 2), "{unseen:?}");
    fs::write(&path, &sound[1..]).expect("room");
    assert!(is_refused(folder.path()), "cut off");
}

/// Bytes changed, cut off or repeated anywhere: refused or not, but never a panic, nor the memory of the machine.
#[test]
fn a_damaged_file_is_no_reason_to_panic() {
    let folder = tempfile::tempdir().expect("a folder");
    document().write(folder.path()).expect("room");
    let mut random = ChaCha8Rng::seed_from_u64(2);
    for entry in fs::read_dir(folder.path()).expect("a folder") {
        let path = entry.expect("a file").path();
        let sound = fs::read(&path).expect("a file");
        for _ in 0..300 {
            let mut damaged = sound.clone();
            let place = random.random_range(0..damaged.len());
            match random.random_range(0..4) {
                0 => damaged[place] = random.random(),
                1 => damaged.truncate(place),
                2 => damaged.insert(place, b'9'),
                _ => damaged.extend_from_within(place..),
            }
            fs::write(&path, damaged).expect("room");
            is_refused(folder.path());
        }
        fs::write(&path, sound).expect("room");
    }
    assert!(!is_refused(folder.path()));

    let json = folder.path().join(VIDEO_JSON);
    let text = fs::read_to_string(&json).expect("a file");
    for huge in ["10000001", "1000000000000000000"] {
        let changed = text.replace(r#""images": 50"#, &format!(r#""images": {huge}"#));
        assert_ne!(changed, text);
        fs::write(&json, changed).expect("room");
        assert!(is_refused(folder.path()), "{huge}");
    }
}
