//! A profile's rows become files of the tables: whole or not at all, and once.

use std::collections::BTreeSet;
use std::fs::{self, File, Permissions};
use std::io::{self, BufWriter, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use layerlab_profiles::document::{Profile, ProfileDigest, STEADY_FOLDER};
use parquet::file::metadata::KeyValue;
use tempfile::NamedTempFile;

use crate::column::{Column, write_table};
use crate::error::ExportError;
use crate::layers::{self, LayerRow};
use crate::place::partition;
use crate::samples::{self, SampleRow};
use crate::segments::{self, MeasuredSegment};
use crate::source::Source;

/// The tables, each a folder.
const LAYERS: &str = "layers";
const SEGMENTS: &str = "segments";
const SAMPLES: &str = "samples";

/// What a file is called before it has its name: nothing that reads tables looks at it.
const UNFINISHED: &str = ".unfinished-";

/// What an export left that was killed goes after so long; one that still works takes seconds.
const LEFT_FOR: Duration = Duration::from_secs(24 * 3600);

/// How many rows a profile has in each table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExportedRows {
    /// Layers on processors.
    pub layers: usize,
    /// Segments on processors.
    pub segments: usize,
    /// Inferences.
    pub samples: usize,
}

impl std::ops::AddAssign for ExportedRows {
    fn add_assign(&mut self, other: ExportedRows) {
        self.layers += other.layers;
        self.segments += other.segments;
        self.samples += other.samples;
    }
}

/// Adds the rows of the profile in `folder`, and of the steady one in it, to the tables in `out`, in the place of those that it
/// had there. `host` is the name of the machine that its lab is on, if that is known.
///
/// # Errors
/// When the profile cannot be read, or `out` cannot be written.
pub fn export(folder: &Path, out: &Path, host: Option<&str>) -> Result<ExportedRows, ExportError> {
    let profile = Profile::read(folder)?;
    let mut rows = ExportedRows::default();
    // First what lies within: whoever finds the profile's own layers finds all of it.
    if let Some(steady) = &profile.steady {
        rows += export_alone(steady, &folder.join(STEADY_FOLDER), out, host)?;
    }
    rows += export_alone(&profile, folder, out, host)?;
    Ok(rows)
}

/// The digests of all profiles whose rows are in the tables in `out`.
///
/// # Errors
/// When a folder is there and cannot be read.
pub fn exported_profiles(out: &Path) -> io::Result<BTreeSet<String>> {
    let mut digests = BTreeSet::new();
    for model in entries(&out.join(LAYERS))? {
        for month in entries(&model)? {
            let files = entries(&month)?;
            let names = files.iter().filter_map(|file| file.file_name()?.to_str());
            let finished = names.filter(|name| !name.starts_with('.'));
            digests.extend(
                finished.filter_map(|name| Some(name.strip_suffix(".parquet")?.to_owned())),
            );
        }
    }
    Ok(digests)
}

fn export_alone(
    profile: &Profile,
    folder: &Path,
    out: &Path,
    host: Option<&str>,
) -> Result<ExportedRows, ExportError> {
    let digest = ProfileDigest::of_folder(folder)?;
    let sources = Source::of_all(profile, &digest, folder, host)?;
    let Some(first) = sources.first() else {
        return Ok(ExportedRows::default());
    };
    let unknown = |what: String| ExportError::Unknown {
        folder: folder.to_owned(),
        what,
    };
    let source = |processor: &str| {
        let mut sources = sources.iter();
        let found = sources.find(|source| source.name == processor);
        found.ok_or_else(|| unknown(format!("the processor `{processor}`")))
    };
    let header = &profile.header;

    let mut layer_rows = Vec::new();
    for time in &profile.times {
        let layer = (time.layer as usize).checked_sub(1);
        let layer = layer.and_then(|index| profile.layers.get(index));
        layer_rows.push(LayerRow {
            source: source(&time.processor)?,
            layer: layer.ok_or_else(|| unknown(format!("layer {}", time.layer)))?,
            time,
            energy: layers::energy(profile, time),
            alone: layers::alone(profile, time),
            origin: header.origin_of_times(&time.processor, time.method),
        });
    }
    let mut segment_rows = Vec::new();
    for segment in &profile.segments {
        segment_rows.push(MeasuredSegment {
            source: source(&segment.processor)?,
            segment,
            tested: segments::tested(profile, segment),
            origin: header.origin_of_samples(&segment.processor),
        });
    }
    // They are many: looked at one by one, and made rows of a group at a time.
    for run in profile.samples.chunk_by(|a, b| a.processor == b.processor) {
        source(&run[0].processor)?;
    }
    let sample_rows = profile.samples.iter().filter_map(|sample| {
        Some(SampleRow {
            source: source(&sample.processor).ok()?,
            sample,
            origin: header.origin_of_samples(&sample.processor),
        })
    });

    let rows = ExportedRows {
        layers: layer_rows.len(),
        segments: segment_rows.len(),
        samples: profile.samples.len(),
    };
    let place = |table: &str| {
        let partition = partition(&out.join(table), &header.model.name, first.night);
        partition.join(format!("{digest}.parquet"))
    };
    let notes = || {
        vec![KeyValue::new(
            "layerlab.model".to_owned(),
            header.model.name.clone(),
        )]
    };
    let staged = [
        Staged::write(place(SAMPLES), &samples::columns(), sample_rows, notes())?,
        Staged::write(
            place(SEGMENTS),
            &segments::columns(),
            segment_rows.into_iter(),
            notes(),
        )?,
        // Last: a profile whose layers are there is there with all of its rows.
        Staged::write(
            place(LAYERS),
            &layers::columns(),
            layer_rows.into_iter(),
            notes(),
        )?,
    ];
    for table in staged {
        table.publish()?;
    }
    Ok(rows)
}

/// A file of a table that has not its name yet. Dropping it removes it.
struct Staged {
    file: NamedTempFile,
    target: PathBuf,
    partition: PathBuf,
}

impl Staged {
    fn write<R>(
        target: PathBuf,
        columns: &[Column<R>],
        rows: impl Iterator<Item = R>,
        notes: Vec<KeyValue>,
    ) -> Result<Staged, ExportError> {
        let partition = target.parent().map(Path::to_owned).unwrap_or_default();
        let failed = |source| ExportError::Folder {
            path: partition.clone(),
            source,
        };
        fs::create_dir_all(&partition).map_err(failed)?;
        remove_leftovers(&partition);
        let file = tempfile::Builder::new()
            .prefix(UNFINISHED)
            .permissions(Permissions::from_mode(0o644))
            .tempfile_in(&partition)
            .map_err(failed)?;
        let mut buffer = BufWriter::new(file.as_file());
        write_table(columns, rows, notes, &mut buffer).map_err(|reason| ExportError::Table {
            path: target.clone(),
            reason,
        })?;
        let flushed = buffer.flush();
        drop(buffer);
        flushed
            .and_then(|()| file.as_file().sync_all())
            .map_err(failed)?;
        Ok(Staged {
            file,
            target,
            partition,
        })
    }

    /// One rename: a reader sees what was there before or these rows, nothing in between.
    fn publish(self) -> Result<(), ExportError> {
        let renamed = self.file.persist(&self.target).map_err(|error| error.error);
        let durable = renamed.and_then(|_| File::open(&self.partition)?.sync_all());
        durable.map_err(|source| ExportError::Folder {
            path: self.target,
            source,
        })
    }
}

/// Removes what exports that were killed left in `partition`. Nobody reads it, and so it matters little if it stays.
fn remove_leftovers(partition: &Path) {
    for path in entries(partition).unwrap_or_default() {
        let name = path.file_name().and_then(|name| name.to_str());
        let age = path.metadata().and_then(|metadata| metadata.modified());
        let is_old = age.is_ok_and(|at| at.elapsed().is_ok_and(|age| age > LEFT_FOR));
        if name.is_some_and(|name| name.starts_with(UNFINISHED)) && is_old {
            let _ = fs::remove_file(&path);
        }
    }
}

/// What is in a folder; nothing if it is not there, or is none.
fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    match fs::read_dir(folder) {
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ) =>
        {
            Ok(Vec::new())
        }
        entries => entries?.map(|entry| Ok(entry?.path())).collect(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    #[test]
    fn what_a_killed_export_left_is_no_profile_and_goes_after_a_day() {
        let out = tempfile::tempdir().expect("a folder");
        let month = out.path().join("layers/model=alexnet/month=2026-11");
        fs::create_dir_all(&month).expect("room");
        for (name, hours) in [
            (".unfinished-old", 25),
            (".unfinished-new", 1),
            ("0123.parquet", 25),
        ] {
            let file = File::create(month.join(name)).expect("room");
            let since = SystemTime::now() - Duration::from_secs(hours * 3600);
            file.set_modified(since).expect("our own");
        }
        let exported = exported_profiles(out.path()).expect("a folder");
        assert_eq!(exported, BTreeSet::from(["0123".to_owned()]));
        remove_leftovers(&month);
        let mut left = entries(&month).expect("a folder");
        left.sort();
        let expected = [".unfinished-new", "0123.parquet"].map(|name| month.join(name));
        assert_eq!(left, expected);
    }
}
