//! What `layerlab profile` published, for comparison.

use std::collections::BTreeMap;
use std::path::Path;

/// The files of a profile; of profile.json all but the provenance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Published(BTreeMap<String, String>);

const HEADER: &str = "profile.json";

const DIGEST: &str = "profile.json.sha256";

/// Bytes, and of profile.json.
const SIGNATURE: &str = "profile.json.sig";

/// Of a table, when each of its rows was taken.
const STARTED: &str = "started_ns";

impl Published {
    /// Reads the profile in `folder`.
    pub fn read(folder: &Path) -> Published {
        let mut files = BTreeMap::new();
        for file in std::fs::read_dir(folder).expect("a profile") {
            let file = file.expect("a file");
            let name = file.file_name().into_string().expect("UTF-8");
            if name == SIGNATURE {
                continue;
            }
            let text = std::fs::read_to_string(file.path()).expect("text");
            files.insert(name, text);
        }
        // It says the same as the files, and of profile.json the provenance, too.
        files.remove(DIGEST);
        let mut published = Published(files);
        published.change_header(|header| {
            let had = header.remove("provenance");
            assert!(had.is_some(), "no provenance in {}", folder.display());
        });
        published
    }

    /// One of its files.
    #[track_caller]
    pub fn file(&self, name: &str) -> &str {
        self.0.get(name).unwrap_or_else(|| panic!("no {name}"))
    }

    /// Only the files of these names.
    #[must_use]
    pub fn only(&self, names: &[&str]) -> Published {
        let file = |name: &&str| ((*name).to_owned(), self.file(name).to_owned());
        Published(names.iter().map(file).collect())
    }

    /// All but when samples were taken, and how warm the device was by then: a phone's clock runs on from one run to the
    /// next.
    #[must_use]
    pub fn clockless(mut self) -> Published {
        // Not every design has probes.
        let timed = ["samples.csv", "probes.csv"];
        let timed = timed.into_iter().filter(|name| self.0.contains_key(*name));
        let timed: Vec<&str> = timed.collect();
        assert!(timed.contains(&"samples.csv"), "no samples.csv");
        for name in &timed {
            let timeless = without_column(self.file(name), STARTED);
            self.0.insert((*name).to_owned(), timeless);
        }
        self.0.remove("blocks.csv");
        self.change_header(|header| {
            for name in timed.into_iter().chain(["blocks.csv"]) {
                let hash = header["files"][name].take();
                assert!(hash.is_string(), "{name}: {hash} in {HEADER}");
            }
        });
        self
    }

    /// The names of the files that are not the same in both.
    pub fn differences(&self, other: &Published) -> Vec<String> {
        let names = self.0.keys().chain(other.0.keys());
        let differs = |name: &&String| self.0.get(*name) != other.0.get(*name);
        let mut names: Vec<String> = names.filter(differs).cloned().collect();
        names.sort();
        names.dedup();
        names
    }

    fn change_header(
        &mut self,
        change: impl FnOnce(&mut serde_json::Map<String, serde_json::Value>),
    ) {
        let mut header: serde_json::Value = serde_json::from_str(self.file(HEADER)).expect("JSON");
        change(header.as_object_mut().expect("an object"));
        self.0.insert(HEADER.to_owned(), header.to_string());
    }
}

/// A table of plain fields without one of its columns.
fn without_column(table: &str, name: &str) -> String {
    let head = table.lines().next().expect("a head");
    let column = head.split(',').position(|other| other == name);
    let column = column.unwrap_or_else(|| panic!("no {name} in {head}"));
    let lines = table.lines().map(|line| {
        let fields = line.split(',').enumerate();
        let others = fields.filter(|(place, _)| *place != column);
        others.map(|(_, field)| field).collect::<Vec<_>>().join(",")
    });
    lines.collect::<Vec<_>>().join("\n")
}
