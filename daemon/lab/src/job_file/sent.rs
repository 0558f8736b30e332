//! Jobs on their way to a lab elsewhere: the file with everything that it names beside it, by hash. No path goes with it, and
//! none is taken.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use toml::{Table, Value};

use super::content::ModelEntry;
use super::keys::BadKey;
use super::{ELSEWHERE, JobFile, ResolvedJob, bad};
use crate::job::{JobSpec, ModelSpec};
use crate::toml_file::{self, TomlFileError};

/// The key under which a job from elsewhere says which files it brings, by their names: their SHA-256.
const FILES: &str = "files";

/// A job has at most so many.
const MOST_FILES: usize = 1000;

/// A job that is to be sent.
#[derive(Clone, Debug, PartialEq)]
pub struct OutgoingJob {
    /// The job file as the lab takes it.
    pub text: String,
    /// What it brings.
    pub files: Vec<OutgoingFile>,
}

/// A file that goes with a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutgoingFile {
    /// What the job calls it.
    pub name: String,
    /// SHA-256 of its content.
    pub sha256: String,
    /// Where it is here.
    pub path: PathBuf,
}

impl OutgoingJob {
    /// The job in the file at `path`, with its points in time as they are meant here at `now`, on `hosts` if there are any.
    pub fn read(
        path: &Path,
        hosts: &[String],
        now: Timestamp,
    ) -> Result<OutgoingJob, TomlFileError> {
        let mut table = toml_file::read("job file", path)?;
        if !hosts.is_empty() {
            let names = hosts.iter().cloned().map(Value::String);
            table.insert("hosts".to_owned(), Value::Array(names.collect()));
        }
        let job = JobFile::parse(path, &table).map_err(|wrong| wrong.within(path.to_owned()))?;
        let stays_here = job.measures_no_link();
        stays_here.map_err(|wrong| wrong.within(path.to_owned()))?;
        let entries = job.content.models.clone();
        let ResolvedJob { spec, .. } = job.resolve(now)?;
        let files = pack(&mut table, entries, &spec);
        let files = files.map_err(|wrong| wrong.within(path.to_owned()))?;
        let text = table.to_string();
        Ok(OutgoingJob { text, files })
    }
}

/// Names files in `table` by their names alone, and lists them.
fn pack(
    table: &mut Table,
    entries: Vec<ModelEntry>,
    spec: &JobSpec,
) -> Result<Vec<OutgoingFile>, BadKey> {
    // Else it would be called as all jobs from elsewhere are.
    table.insert("name".to_owned(), Value::String(spec.name.clone()));
    let mut packed = Packed::default();
    let mut models = Vec::new();
    for (entry, model) in entries.into_iter().zip(&spec.models) {
        models.push(Value::Table(packed.model(entry, model)?));
    }
    table.insert("models".to_owned(), Value::Array(models));
    let accuracy = spec.accuracy.as_ref();
    let accuracy = accuracy.map(|of| ("accuracy", &of.path, &of.set_sha256));
    let video = spec.video.as_ref();
    let video = video.map(|of| ("video", &of.path, &of.set_sha256));
    for (section, path, sha256) in accuracy.into_iter().chain(video) {
        let name = packed.file(&format!("{section}.set"), path, sha256)?;
        if let Some(section) = table.get_mut(section).and_then(Value::as_table_mut) {
            section.insert("set".to_owned(), Value::String(name));
        }
    }
    for (key, at) in [("not-before", spec.not_before), ("deadline", spec.deadline)] {
        if let Some(at) = at {
            // `tomorrow` is another day in another time zone.
            table.insert(key.to_owned(), Value::String(at.to_string()));
        }
    }
    let hashes = packed.0.iter().map(|(name, file)| {
        let hash = Value::String(file.sha256.clone());
        (name.clone(), hash)
    });
    table.insert(FILES.to_owned(), Value::Table(hashes.collect()));
    Ok(packed.0.into_values().collect())
}

/// What a job brings, by name.
#[derive(Default)]
struct Packed(BTreeMap<String, OutgoingFile>);

impl Packed {
    fn model(&mut self, entry: ModelEntry, model: &ModelSpec) -> Result<Table, BadKey> {
        let mut table = Table::new();
        let name = self.file("models", &model.path, &model.source_sha256)?;
        table.insert("file".to_owned(), Value::String(name));
        let folder = model.path.parent().unwrap_or(Path::new("."));
        for beside in model.external_weights.iter().flatten() {
            if !is_name(&beside.name) {
                let problem = format!(
                    "`{}` has weights in `{}`, and only what lies beside a model goes with it; put that into one file",
                    model.path.display(),
                    beside.name
                );
                return Err(bad("models", problem));
            }
            self.file("models", &folder.join(&beside.name), &beside.sha256)?;
        }
        if let Some(twin) = &model.quantised {
            let name = self.file("models", &twin.path, &twin.source.sha256)?;
            table.insert("quantised".to_owned(), Value::String(name));
        }
        let sizes = entry.table().dims.into_iter();
        let sizes = sizes.map(|(name, size)| (name, Value::Integer(size as i64)));
        let sizes: Table = sizes.collect();
        if !sizes.is_empty() {
            table.insert("dims".to_owned(), Value::Table(sizes));
        }
        Ok(table)
    }

    /// Takes a file in, and says what the job is to call it.
    fn file(&mut self, key: &str, path: &Path, sha256: &str) -> Result<String, BadKey> {
        let name = path.file_name().and_then(|name| name.to_str());
        let Some(name) = name.filter(|name| is_name(name)) else {
            let problem = format!(
                "`{}` has no name that a lab takes; rename it",
                path.display()
            );
            return Err(bad(key, problem));
        };
        let file = OutgoingFile {
            name: name.to_owned(),
            sha256: sha256.to_owned(),
            path: path.to_owned(),
        };
        match self.0.insert(name.to_owned(), file) {
            Some(other) if other.sha256 != sha256 => {
                let problem = format!(
                    "`{}` and `{}` have the same name, and the lab could not tell them apart; rename one",
                    other.path.display(),
                    path.display()
                );
                Err(bad(key, problem))
            }
            _ => Ok(name.to_owned()),
        }
    }
}

/// A job that was sent.
#[derive(Clone, Debug, PartialEq)]
pub struct SentJob {
    table: Table,
    /// What it brings: the names by which it calls the files, and their SHA-256.
    pub files: BTreeMap<String, String>,
}

impl SentJob {
    /// The job that is written in `text`.
    pub fn parse(text: &str) -> Result<SentJob, TomlFileError> {
        let path = Path::new(ELSEWHERE);
        let mut table = toml_file::parse(path, text)?;
        let wrong = |problem: String| bad(FILES, problem).within(path.to_owned());
        let files: BTreeMap<String, String> = match table.remove(FILES) {
            None => BTreeMap::new(),
            Some(files) => files.try_into().map_err(|_| {
                wrong("write a table with the SHA-256 of each file by its name".to_owned())
            })?,
        };
        if files.len() > MOST_FILES {
            let count = files.len();
            return Err(wrong(format!(
                "{count} files are more than a job brings; write at most {MOST_FILES}"
            )));
        }
        match files.keys().find(|name| !is_name(name)) {
            Some(name) => Err(wrong(format!(
                "`{}` is no name of a file; write one without a folder",
                name.escape_debug()
            ))),
            None => Ok(SentJob { table, files }),
        }
    }

    /// The job, whose files are in `folder`. It names them by their names alone, and its profiles are published where the
    /// lab's are: no path is followed that somebody else has written.
    pub fn within(self, folder: &Path) -> Result<JobFile, TomlFileError> {
        let checked = JobFile::parse(&folder.join(ELSEWHERE), &self.table)
            .and_then(|file| file.measures_no_link().map(|()| file))
            .and_then(|file| file.names_files_alone().map(|()| file));
        checked.map_err(|wrong| wrong.within(PathBuf::from(ELSEWHERE)))
    }
}

/// Whether a file of this name lies in a folder and nowhere else.
fn is_name(name: &str) -> bool {
    const LONGEST: usize = 200;
    let is_plain = Path::new(name).file_name() == Some(name.as_ref());
    is_plain && !name.starts_with('.') && name.len() <= LONGEST && !name.contains(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    const REST: &str = "[[devices]]\nserial = \"a\"\n[measure]\ndesign = \"local\"\n";

    #[test]
    fn a_job_brings_what_it_names_by_names_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/models");
        let model = models.join("alexnet.onnx");
        let path = folder.path().join("night.toml");
        let write = |models: &str, rest: &str| {
            let text = format!("models = [{models}]\ndeadline = \"tomorrow 07:00\"\n{rest}{REST}");
            std::fs::write(&path, text).expect("room");
            OutgoingJob::read(&path, &[], Timestamp::now())
        };
        let job = write(&format!("{model:?}"), "name = \"mine\"\n").expect("a job");
        assert_eq!(job.files.len(), 1);
        assert_eq!(job.files[0].path, model);
        let sent = SentJob::parse(&job.text).expect("the same job");
        assert_eq!(sent.files["alexnet.onnx"], job.files[0].sha256);
        let there = folder.path().join("there");
        std::fs::create_dir(&there).expect("room");
        std::fs::copy(&model, there.join("alexnet.onnx")).expect("room");
        let now = Timestamp::now();
        let spec = |job: JobFile| job.resolve(now).expect("a job").spec;
        let taken = spec(sent.within(&there).expect("a job"));
        let own = spec(JobFile::read(&path).expect("a job"));
        assert_eq!(taken.content_sha256(), own.content_sha256());
        assert_eq!((taken.deadline, taken.name), (own.deadline, own.name));

        std::fs::copy(models.join("vgg16.onnx"), there.join("alexnet.onnx")).expect("room");
        let both = format!("{model:?}, {:?}", there.join("alexnet.onnx"));
        let error = write(&both, "").expect_err("one name for two").to_string();
        assert!(error.contains("the same name"), "{error}");
    }

    #[test]
    fn no_name_of_a_file_leads_elsewhere() {
        for name in [
            "../a",
            "/a",
            "a/b",
            ".",
            "..",
            ".hidden",
            "",
            "a\\u0000b",
            "a\\nb",
        ] {
            let text = format!("[files]\n\"{name}\" = \"{}\"\n", "0".repeat(64));
            let error = SentJob::parse(&text).expect_err(name).to_string();
            assert!(error.contains("`files`"), "{error}");
        }
        for files in ["files = 1", "files = [\"a\"]", "[files]\na = 1"] {
            let error = SentJob::parse(files).expect_err(files).to_string();
            assert!(error.contains("`files`"), "{error}");
        }
    }
}
