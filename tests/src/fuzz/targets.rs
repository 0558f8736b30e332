//! The readers that are fed: one target each, with the real files that its inputs are made of.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use layerlab_agent::device::simulated::DeviceFile;
use layerlab_agent::journal::Journal;
use layerlab_lab::job_file::{self, JobFile};
use layerlab_model::Network;
use layerlab_planners::measured_rows::{MeasuredRow, MeasuredRows};
use layerlab_planners::profile::{Pair, accuracy_table};
use layerlab_profiles::check::check_directory;
use layerlab_profiles::document::{Profile, ProfileDigest};
use layerlab_profiles::{Placement, Segment};
use layerlab_protocol::{Request, Response, decode, encode};

use super::mutate::Format;
use crate::{file, root};

/// The names of all targets.
pub const TARGETS: [&str; 7] = [
    "model", "frames", "journal", "profile", "device", "job", "rows",
];

/// Reads an input in a folder that it may use, and says whether it is accepted.
pub type Reader = dyn Fn(&[u8], &Path) -> bool;

/// A reader with the files that its inputs are made of.
pub struct Target {
    /// How files are changed.
    pub format: Format,
    /// Real files, each of which the reader accepts.
    pub seeds: Vec<Vec<u8>>,
    /// What reads. A panic of it is a find.
    pub read: Box<Reader>,
}

impl Target {
    /// The target of this name; `None` if there is none.
    pub fn named(name: &str) -> Option<Target> {
        Some(match name {
            "model" => model(),
            "frames" => frames(),
            "journal" => journal(),
            "profile" => profile(),
            "device" => device(),
            "job" => job(),
            "rows" => rows(),
            _ => return None,
        })
    }
}

fn read_all(folder: &str, ending: &str) -> Vec<Vec<u8>> {
    let entries = std::fs::read_dir(root().join(folder)).expect("a folder of this repository");
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.retain(|path| path.extension().is_some_and(|found| found == ending));
    paths.sort();
    paths
        .iter()
        .map(|path| std::fs::read(path).expect("a file"))
        .collect()
}

/// ONNX models, read as the agent reads them, cut in two and given to tract.
fn model() -> Target {
    let mut seeds = read_all("tests/models/variants", "onnx");
    // What is not read uncut, because of its dimensions, its weights or its operators, is no start for changes.
    seeds.retain(|seed| Network::from_onnx(seed).is_ok());
    Target {
        format: Format::Protobuf,
        seeds,
        read: Box::new(|bytes, _| {
            let Ok(network) = Network::from_onnx(bytes) else {
                return false;
            };
            let layers = network.layer_count();
            for segment in [
                Segment::single(1),
                Segment::single(layers),
                Segment::whole(layers),
            ] {
                let cut = network.segment(segment).expect("a segment of the network");
                let _ = cut.typed();
                assert!(!cut.into_bytes().is_empty());
            }
            let again = Network::from_onnx(&network.to_onnx()).expect("its own bytes");
            assert_eq!(again.layers(), network.layers());
            true
        }),
    }
}

/// Messages between daemon and agent, one line each.
fn frames() -> Target {
    let order = r#"{"run":"night-7","number":3,"model_sha256":"abababababababababababababababababababababababababababababababab","processor":"npu","work":{"type":"time_segments","segments":[[1,1],[2,5]],"timing":{"samples_per_segment":30,"gap_ns":5000,"warm_up":{"min_runs":3,"max_runs":30,"agreement_percent":4},"hygiene":{"sentinel_tolerance_percent":10,"redos":5,"cool_down_poll_ns":10,"cool_down_deadline_ns":20}}},"seed":1}"#;
    let submit = format!(r#"{{"type":"submit","order":{order}}}"#);
    let lines = [
        r#"{"type":"hello","protocol":2,"token":"s3cret"}"#,
        r#"{"type":"follow","run":"night-7","after":17}"#,
        r#"{"type":"forget","run":"night-7"}"#,
        r#"{"type":"accepted","run":"night-7","order":3}"#,
        r#"{"type":"entry","run":"night-7","entry":{"sequence":9,"order":3,"event":{"type":"finished"}}}"#,
        r#"{"type":"refused","refusal":"malformed","message":"No."}"#,
        &submit,
    ];
    Target {
        format: Format::Text,
        seeds: lines.iter().map(|line| line.as_bytes().to_vec()).collect(),
        read: Box::new(|bytes, _| {
            let Ok(line) = std::str::from_utf8(bytes) else {
                return false;
            };
            let request = decode::<Request>(line);
            if let Ok(request) = &request {
                let again: Request = decode(&encode(request)).expect("its own line");
                assert_eq!(&again, request);
            }
            let response = decode::<Response>(line);
            if let Ok(response) = &response {
                let again: Response = decode(&encode(response)).expect("its own line");
                assert_eq!(&again, response);
            }
            request.is_ok() || response.is_ok()
        }),
    }
}

/// The journal of a run, as an agent finds it that starts again.
fn journal() -> Target {
    let unknown = r#"{"thermal_status":null,"temperature_millicelsius":null,"battery_percent":null,"frequency_caps_khz":{}}"#;
    let events = [
        r#"{"type":"loaded","processor":"npu","segment":[2,2],"load_ns":10,"memory_bytes":20}"#
            .to_owned(),
        r#"{"type":"warm","segment":[2,2],"runs":5}"#.to_owned(),
        format!(
            r#"{{"type":"block_started","block":2,"segments":[[2,2]],"sentinel_ns":10,"conditions":{unknown}}}"#
        ),
        r#"{"type":"sample","block":2,"index":31,"segment":[2,2],"started_ns":5,"duration_ns":7}"#
            .to_owned(),
        format!(
            r#"{{"type":"block_ended","block":2,"sentinel_ns":10,"conditions":{unknown},"rejection":null}}"#
        ),
        r#"{"type":"judged","answer":7,"tallies":[[3,1,2]],"flop":4600000}"#.to_owned(),
        r#"{"type":"finished"}"#.to_owned(),
    ];
    let lines: String = (1..)
        .zip(&events)
        .map(|(sequence, event)| {
            format!("{{\"sequence\":{sequence},\"order\":3,\"event\":{event}}}\n")
        })
        .collect();
    Target {
        format: Format::Text,
        seeds: vec![lines.into_bytes()],
        read: Box::new(|bytes, folder| {
            let path = folder.join("run.jsonl");
            std::fs::write(&path, bytes).expect("room");
            let Ok(journal) = Journal::open(&path) else {
                return false;
            };
            let entries = journal.entries().len();
            drop(journal);
            let again = Journal::open(&path).expect("what was repaired");
            assert_eq!(again.entries().len(), entries);
            true
        }),
    }
}

/// Profiles of which one file is changed. An input is the file's name, a line feed and its content.
fn profile() -> Target {
    const PUBLISHED: &str = "profiles/published/mate10pro/vocnet-mini";
    let old = root().join(PUBLISHED);
    let newest = Profile::read(&old).expect("a published profile");
    let newest = newest.to_files().expect("a profile can be written");
    let mut seeds = Vec::new();
    for version in ["old", "newest"] {
        for (name, content) in &newest {
            let content = match version {
                "old" => std::fs::read(old.join(name)).ok(),
                _ => Some(content.clone()),
            };
            let Some(content) = content else { continue };
            seeds.push([version.as_bytes(), b"/", name.as_bytes(), b"\n", &content].concat());
        }
    }
    let files: BTreeMap<String, Vec<u8>> = newest
        .into_iter()
        .map(|(name, content)| (name.to_owned(), content))
        .collect();
    Target {
        format: Format::Text,
        seeds,
        read: Box::new(move |bytes, folder| {
            let end = bytes
                .iter()
                .position(|&byte| byte == b'\n')
                .unwrap_or(bytes.len());
            let (head, content) = bytes.split_at(end);
            let head = String::from_utf8_lossy(head);
            let (version, name) = head.split_once('/').unwrap_or(("newest", "profile.json"));
            // The folder holds both versions, unchanged but for the file that the last input named.
            for (version, fill) in [("old", false), ("newest", true)] {
                let kept = folder.join(version);
                if kept.is_dir() {
                    continue;
                }
                std::fs::create_dir(&kept).expect("room");
                for (name, content) in &files {
                    let published = std::fs::read(root().join(PUBLISHED).join(name)).ok();
                    let content = if fill {
                        Some(content.clone())
                    } else {
                        published
                    };
                    if let Some(content) = content {
                        std::fs::write(kept.join(name), content).expect("room");
                    }
                }
            }
            let folder = folder.join(if version == "old" { "old" } else { "newest" });
            let name = if files.contains_key(name) {
                name
            } else {
                "profile.json"
            };
            let path = folder.join(name);
            let Ok(unchanged) = std::fs::read(&path) else {
                return false;
            };
            let _restored = RestoredFile {
                path: &path,
                content: unchanged,
            };
            std::fs::write(&path, content.get(1..).unwrap_or_default()).expect("room");
            check_directory(&folder).is_ok()
        }),
    }
}

/// A file that has its content back when this is dropped, even by a panic, which is not to be found again with every input
/// that follows.
struct RestoredFile<'a> {
    path: &'a Path,
    content: Vec<u8>,
}

impl Drop for RestoredFile<'_> {
    fn drop(&mut self) {
        std::fs::write(self.path, &self.content).expect("room");
    }
}

/// Device files.
fn device() -> Target {
    Target {
        format: Format::Text,
        seeds: read_all("tests/devices", "toml"),
        read: Box::new(|bytes, folder| {
            let path = folder.join("device.toml");
            std::fs::write(&path, bytes).expect("room");
            match DeviceFile::open(&path) {
                Ok(_) => true,
                Err(error) => {
                    assert!(!error.to_string().is_empty());
                    false
                }
            }
        }),
    }
}

/// Job files, of which the models are those of this repository.
fn job() -> Target {
    let example = job_file::EXAMPLE.as_bytes().to_vec();
    let small = format!(
        "models = [\"{}\"]\n\n[[devices]]\nserial = \"noisy\"\n\n[measure]\nbudget = \"60s\"\nseed = 7\n",
        file("models/vocnet-mini.onnx").display()
    );
    Target {
        format: Format::Text,
        seeds: vec![example, small.into_bytes()],
        read: Box::new(|bytes, folder| {
            let path = folder.join("job.toml");
            std::fs::write(&path, bytes).expect("room");
            match JobFile::read(&path) {
                Ok(_) => true,
                Err(error) => {
                    assert!(!error.to_string().is_empty());
                    false
                }
            }
        }),
    }
}

/// Rows that were measured after a profile was published, read as a plan learns from them.
fn rows() -> Target {
    let published = root().join("profiles/published/mate10pro/vocnet-mini");
    let profile = Profile::read(&published).expect("a published profile");
    let digest = ProfileDigest::of_folder(&published).expect("a digest");
    let (table, evaluation) = accuracy_table(&profile, Pair::default()).expect("accuracy");
    let evaluation = evaluation.clone();
    let measured = profile.combinations.iter().map(|row| &row.combination);
    let measured: BTreeSet<&Placement> = measured.collect();
    let numbers = (0..1_u32 << 11)
        .map(|number| Placement::new((0..11).map(|layer| number >> layer & 1 == 1).collect()));
    let new = numbers.filter(|placement| !measured.contains(placement));
    let run = profile.header.provenance.clone();
    let lessons = new.take(3).map(|combination| MeasuredRow {
        combination,
        loss: 0.25,
        loss_ci95: (0.2, 0.3),
        run: run.run.clone(),
    });
    let mut rows = MeasuredRows::none_of(&digest, &evaluation);
    rows.add(run.clone(), lessons.collect::<Vec<_>>());
    let seed = rows.to_json().expect("a document");
    Target {
        format: Format::Text,
        seeds: vec![seed.into_bytes()],
        read: Box::new(move |bytes, _| {
            let Ok(text) = std::str::from_utf8(bytes) else {
                return false;
            };
            match MeasuredRows::read(text, &digest, &evaluation) {
                Ok(rows) => table.clone().with_more(rows.lessons()).is_ok(),
                Err(error) => {
                    assert!(!error.to_string().is_empty());
                    false
                }
            }
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_a_panic_left_changed_has_its_content_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("profile.json");
        let panicked = std::panic::catch_unwind(|| {
            let _restored = RestoredFile {
                path: &path,
                content: b"unchanged".to_vec(),
            };
            std::fs::write(&path, "changed").expect("room");
            panic!("as a reader does");
        });
        assert!(panicked.is_err());
        assert_eq!(std::fs::read(&path).expect("a file"), b"unchanged");
    }

    #[test]
    fn every_seed_is_accepted_so_that_changes_of_it_reach_far() {
        for name in TARGETS {
            let target = Target::named(name).expect("a target");
            assert!(!target.seeds.is_empty(), "{name}");
            let folder = tempfile::tempdir().expect("a folder");
            for (place, seed) in target.seeds.iter().enumerate() {
                let text = String::from_utf8_lossy(seed);
                assert!(
                    (target.read)(seed, folder.path()),
                    "{name}, seed {place}: {text:.300}"
                );
            }
        }
    }
}
