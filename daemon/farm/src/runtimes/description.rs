//! What a runtime is called, and under which licences it comes: what its archive says of itself, or else its file's name.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::error::RuntimeStoreError;
use super::source::Source;

/// The version of a runtime that does not say it.
const UNKNOWN: &str = "unknown";

/// More licences than these are not listed: notices of third parties are in the archive.
const MOST_LICENCES: usize = 20;

/// A runtime's own account of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Description {
    pub(super) name: String,
    pub(super) version: String,
    /// The licence's name where it is said, and the paths of files with licences.
    pub(super) licences: Vec<String>,
    /// The SHA-256 of each file, in hexadecimal, by its path, where a wheel lists them.
    pub(super) recorded: BTreeMap<String, String>,
}

/// Reads what `source` says of itself. A folder may hold several wheels' files: then it is called as the folder is.
pub(super) fn describe(source: &mut Source) -> Result<Description, RuntimeStoreError> {
    let of_wheels = |source: &Source, file: &str| -> Vec<usize> {
        let end = format!(".dist-info/{file}");
        let entries = source.entries.iter().enumerate();
        let found = entries.filter(|(_, entry)| entry.path.ends_with(&end));
        found.map(|(place, _)| place).collect()
    };
    let mut metadata = Vec::new();
    for place in of_wheels(source, "METADATA") {
        metadata.push(source.text(place)?);
    }
    let mut recorded = BTreeMap::new();
    for place in of_wheels(source, "RECORD") {
        let folder = source.entries[place].folder();
        let root = folder
            .rsplit_once('/')
            .map_or(String::new(), |(root, _)| format!("{root}/"));
        recorded.extend(records(&source.text(place)?, &root));
    }
    let mut licences: Vec<String> = metadata.iter().filter_map(|text| licence(text)).collect();
    let files = source
        .entries
        .iter()
        .filter(|entry| is_licence(entry.name()));
    licences.extend(files.map(|entry| entry.path.clone()));
    licences.dedup();
    licences.truncate(MOST_LICENCES);
    let (name, version) = match metadata.as_slice() {
        [one] => (field(one, "Name"), field(one, "Version")),
        _ => (None, None),
    };
    let stem = source
        .file
        .canonicalize()
        .unwrap_or_else(|_| source.file.clone());
    let stem = if source.is_archive() {
        stem.file_stem()
    } else {
        stem.file_name()
    };
    let stem = stem.unwrap_or_default().to_string_lossy().into_owned();
    let (of_file, version_of_file) = name_and_version(&stem);
    Ok(Description {
        name: harmless(&name.unwrap_or(of_file)),
        version: harmless(
            &version
                .or(version_of_file)
                .unwrap_or_else(|| UNKNOWN.to_owned()),
        ),
        licences,
        recorded,
    })
}

/// `onnxruntime-android-1.24.3` is version 1.24.3 of onnxruntime-android.
fn name_and_version(stem: &str) -> (String, Option<String>) {
    let begins = |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit());
    let hyphens = stem.match_indices('-').map(|(place, _)| place);
    let versions = hyphens.filter(|place| begins(&stem[place + 1..]));
    match versions.min() {
        Some(place) => (stem[..place].to_owned(), Some(stem[place + 1..].to_owned())),
        None => (stem.to_owned(), None),
    }
}

/// The value of a field before the first empty line, where the description begins.
fn field(metadata: &str, name: &str) -> Option<String> {
    let heads = metadata.lines().take_while(|line| !line.is_empty());
    let mut values = heads.filter_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    values.next().map(|value| value.trim().to_owned())
}

fn licence(metadata: &str) -> Option<String> {
    let said = field(metadata, "License-Expression").or_else(|| field(metadata, "License"))?;
    (!said.is_empty()).then_some(said)
}

fn is_licence(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let is_text = !name.ends_with(".py") && !name.contains(".so");
    let says = ["license", "licence", "notice", "copying"];
    is_text && says.iter().any(|word| name.contains(word))
}

/// The files of a wheel with their SHA-256; the list has a line for each, `PATH,sha256=BASE64,BYTES`.
fn records(text: &str, root: &str) -> BTreeMap<String, String> {
    let line = |line: &str| {
        let (rest, _bytes) = line.rsplit_once(',')?;
        let (path, hash) = rest.rsplit_once(',')?;
        let hash = URL_SAFE_NO_PAD.decode(hash.strip_prefix("sha256=")?.trim_end_matches('='));
        let hash: String = hash
            .ok()?
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        Some((format!("{root}{}", path.trim_matches('"')), hash))
    };
    text.lines().filter_map(line).collect()
}

/// A name that may be a folder's, and be printed.
fn harmless(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-+".contains(c);
    let plain: String = name
        .chars()
        .map(|c| if is_plain(c) { c } else { '-' })
        .collect();
    let plain = plain.trim_matches(['.', '-']);
    if plain.is_empty() {
        return "runtime".to_owned();
    }
    plain.chars().take(100).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_name_is_split_where_the_version_begins() {
        let cases = [
            (
                "onnxruntime-android-1.24.3",
                "onnxruntime-android",
                Some("1.24.3"),
            ),
            ("qnn-runtime-2.40.0-rc1", "qnn-runtime", Some("2.40.0-rc1")),
            ("onnxruntime-android", "onnxruntime-android", None),
            ("1.24.3", "1.24.3", None),
        ];
        for (stem, name, version) in cases {
            let expected = (name.to_owned(), version.map(str::to_owned));
            assert_eq!(name_and_version(stem), expected, "{stem}");
        }
    }

    #[test]
    fn a_wheels_fields_end_where_its_description_begins() {
        let metadata = "Metadata-Version: 2.4\nName: onnxruntime\nVersion: 1.24.4\nLicense: MIT License\n\nName: other\nNamed: x\nHome: y\n";
        assert_eq!(field(metadata, "Name").as_deref(), Some("onnxruntime"));
        assert_eq!(field(metadata, "Home"), None);
        assert_eq!(licence(metadata).as_deref(), Some("MIT License"));
        assert_eq!(
            licence("License-Expression: MIT\nLicense: x\n").as_deref(),
            Some("MIT")
        );
    }

    #[test]
    fn a_wheels_record_is_read_whatever_is_in_its_paths() {
        let text = "a/b.so,sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,0\n\"c,d.so\",sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,0\nx.dist-info/RECORD,,\n";
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        let found = records(text, "lib/");
        let expected = [("lib/a/b.so", empty), ("lib/c,d.so", empty)];
        let expected = expected.map(|(path, hash)| (path.to_owned(), hash.to_owned()));
        assert_eq!(found, BTreeMap::from(expected));
    }

    #[test]
    fn a_name_from_outside_is_never_a_path() {
        for (said, name) in [
            ("../../etc", "etc"),
            ("a/b c", "a-b-c"),
            ("...", "runtime"),
            ("A_1+x.2", "A_1+x.2"),
        ] {
            assert_eq!(harmless(said), name);
        }
    }
}
