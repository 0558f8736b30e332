//! Writing a profile: its files into an empty directory.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

use serde::Serialize;

use super::wire::{
    BLOCKS, BLOCKS_WITH_DISTURBANCE, BlockRecord, COMBINATIONS, CUTS, CombinationRecord, CutRecord,
    DisturbedBlockRecord, ENERGY, EnergyRecord, Files, InMemoryRecord, LAYER_ENERGY, LAYERS,
    LAYERS_BESIDE_CUTS, LAYERS_BESIDE_CUTS_WITH_SHORTCUTS, LAYERS_WITH_SHORTCUTS, LOADS,
    LayerBesideCutsRecord, LayerRecord, LoadRecord, MINUTES, MinuteRecord, PLACEMENTS, PROBES,
    PlacementRecord, ProbeRecord, ProfileJson, REJECTED, SAMPLES, SEGMENTS, SOAK, SampleRecord,
    SegmentRecord, SoakRecord, TIMES, Table, TimeRecord, UNSUPPORTED, UNSUPPORTED_IN_MEMORY,
    UnsupportedRecord, WithShortcuts,
};
use super::{
    DIGEST_FILE, DocumentError, FORMAT, Method, PROFILE_JSON, Profile, ProfileDigest,
    STEADY_FOLDER, Sample, VERSION,
};
use crate::layer::Layer;
use crate::sha256;
use crate::shortcuts::Shortcuts;

impl Profile {
    /// Writes the files into the existing, empty directory `dir` and waits until they are on the
    /// disk. To publish, write into a directory beside the final place and rename that.
    pub fn write(&self, dir: &Path) -> Result<(), DocumentError> {
        let files = self.to_files()?;
        refuse_unless_empty(dir)?;
        if let Some(steady) = &self.steady {
            let dir = dir.join(STEADY_FOLDER);
            fs::create_dir(&dir).map_err(|reason| DocumentError::Write {
                path: dir.clone(),
                reason,
            })?;
            steady.write(&dir)?;
        }
        write_into(dir, files)
    }

    /// The files by name, `profile.json` last: a directory that has it has all of them. Those of the steady profile beside it
    /// are not among them.
    pub fn to_files(&self) -> Result<Vec<(&'static str, Vec<u8>)>, DocumentError> {
        let header = &self.header;
        if header.format != FORMAT {
            return Err(DocumentError::Format {
                path: PROFILE_JSON.into(),
            });
        }
        if header.version != VERSION {
            return Err(DocumentError::NotWritten {
                version: header.version,
            });
        }
        let layers = encoded_layers(&self.layers)?;
        let time_rows = self.times.iter().map(|row| {
            let origin = header.origin_of_times(&row.processor, row.method);
            TimeRecord::from((row, origin))
        });
        let times = table(TIMES, TIMES.encode(time_rows))?;
        let cut_rows = self.cuts.iter().map(|row| {
            let origin = header.origin_of_times(&row.processor, row.method);
            CutRecord::from((row, origin))
        });
        let cuts = table(CUTS, CUTS.encode(cut_rows))?;
        let origin = |processor: &str| header.origin_of_samples(processor);
        let segment_rows = self
            .segments
            .iter()
            .map(|row| SegmentRecord::from((row, origin(&row.processor))));
        let segments = table(SEGMENTS, SEGMENTS.encode(segment_rows))?;
        let encode_samples = |which: Table, samples: &[Sample]| {
            let rows = samples
                .iter()
                .map(|row| SampleRecord::from((row, origin(&row.processor))));
            table(which, which.encode(rows))
        };
        let samples = encode_samples(SAMPLES, &self.samples)?;
        let rejected = encode_samples(REJECTED, &self.rejected)?;
        let block_rows = self
            .blocks
            .iter()
            .map(|block| (block, origin(&block.processor)));
        let blocks = match self.blocks.iter().any(|block| block.disturbance.is_some()) {
            true => BLOCKS_WITH_DISTURBANCE.encode(block_rows.map(DisturbedBlockRecord::from)),
            false => BLOCKS.encode(block_rows.map(BlockRecord::from)),
        };
        let blocks = table(BLOCKS, blocks)?;

        let combination_rows = self
            .combinations
            .iter()
            .map(|row| CombinationRecord::from((row, header.origin_of_combination(row))));
        let combinations = table(COMBINATIONS, COMBINATIONS.encode(combination_rows))?;
        let unsupported_rows = self
            .unsupported
            .iter()
            .map(|row| (row, origin(&row.processor)));
        let unsupported = match self.unsupported.iter().any(|row| row.needed.is_some()) {
            true => UNSUPPORTED_IN_MEMORY.encode(unsupported_rows.map(InMemoryRecord::from)),
            false => UNSUPPORTED.encode(unsupported_rows.map(UnsupportedRecord::from)),
        };
        let unsupported = table(UNSUPPORTED, unsupported)?;
        let load_rows = self
            .loads
            .iter()
            .map(|load| LoadRecord::from((load, origin(&load.processor))));
        let loads = table(LOADS, LOADS.encode(load_rows))?;
        let placement_rows: Vec<PlacementRecord<'_>> = self
            .placements
            .iter()
            .map(|row| PlacementRecord::try_from((row, origin(&row.processor))))
            .collect::<Result<_, _>>()?;
        let placements = table(PLACEMENTS, PLACEMENTS.encode(placement_rows.iter()))?;

        let probe_rows: Vec<ProbeRecord<'_>> = self
            .probes
            .iter()
            .map(|row| ProbeRecord::try_from((row, origin(&row.processor))))
            .collect::<Result<_, _>>()
            .map_err(|reason| DocumentError::Row {
                path: PROBES.file.into(),
                line: 0,
                reason,
            })?;
        let probes = table(PROBES, PROBES.encode(probe_rows.iter()))?;

        let steady = match &self.steady {
            None => None,
            Some(steady) => {
                let files = steady.to_files()?;
                files.last().map(|(_, json)| sha256(json))
            }
        };
        let mut optional = match self.soaking.rows.is_empty() {
            true => Vec::new(),
            false => {
                let rows = self.soaking.rows.iter();
                let rows = rows.map(|row| SoakRecord::from((row, origin(&row.processor))));
                let soak = table(SOAK, SOAK.encode(rows))?;
                let rows = self.soaking.minutes.iter();
                let rows = rows.map(|row| MinuteRecord::from((row, origin(&row.processor))));
                vec![
                    (SOAK.file, soak),
                    (MINUTES.file, table(MINUTES, MINUTES.encode(rows))?),
                ]
            }
        };
        if let Some(energy) = &self.energy {
            let rows = energy.windows.iter();
            let rows = rows.map(|row| EnergyRecord::from((row, origin(&row.processor))));
            optional.push((ENERGY.file, table(ENERGY, ENERGY.encode(rows))?));
            // Nothing of it is read from a meter: all are differences of windows.
            let rows = energy.layers.iter().map(|row| {
                let origin = header.origin_of_times(&row.processor, Method::Graph);
                TimeRecord::from((row, origin))
            });
            let layers = table(LAYER_ENERGY, LAYER_ENERGY.encode(rows))?;
            optional.push((LAYER_ENERGY.file, layers));
        }
        let hash_of = |table: Table| {
            let mut tables = optional.iter();
            let found = tables.find(|(file, _)| *file == table.file);
            found.map(|(_, bytes)| sha256(bytes))
        };

        let hashes = Files {
            soak: hash_of(SOAK),
            minutes: hash_of(MINUTES),
            energy: hash_of(ENERGY),
            layer_energy: hash_of(LAYER_ENERGY),
            layers: sha256(&layers),
            times: sha256(&times),
            cuts: sha256(&cuts),
            segments: sha256(&segments),
            samples: sha256(&samples),
            rejected: sha256(&rejected),
            blocks: sha256(&blocks),
            combinations: sha256(&combinations),
            unsupported: sha256(&unsupported),
            loads: sha256(&loads),
            placements: sha256(&placements),
            probes: sha256(&probes),
        };
        let mut json = serde_json::to_vec_pretty(&ProfileJson::from((self, hashes, steady)))
            .map_err(|reason| DocumentError::Json {
                path: PROFILE_JSON.into(),
                reason,
            })?;
        json.push(b'\n');
        let digest = ProfileDigest::of(&json);
        let mut files = vec![
            (LAYERS.file, layers),
            (TIMES.file, times),
            (CUTS.file, cuts),
            (SEGMENTS.file, segments),
            (SAMPLES.file, samples),
            (REJECTED.file, rejected),
            (BLOCKS.file, blocks),
            (COMBINATIONS.file, combinations),
            (UNSUPPORTED.file, unsupported),
            (LOADS.file, loads),
            (PLACEMENTS.file, placements),
            (PROBES.file, probes),
        ];
        files.extend(optional);
        files.push((DIGEST_FILE, digest.line().into_bytes()));
        files.push((PROFILE_JSON, json));
        Ok(files)
    }
}

/// Writes `files` into the existing, empty directory `dir`, in their order, and waits until they are on the disk.
pub(crate) fn write_files(
    dir: &Path,
    files: impl IntoIterator<Item = (&'static str, Vec<u8>)>,
) -> Result<(), DocumentError> {
    refuse_unless_empty(dir)?;
    write_into(dir, files)
}

/// `layers.csv`, with the columns of tensors beside cuts and of shortcuts where a layer has such.
fn encoded_layers(layers: &[Layer]) -> Result<Vec<u8>, DocumentError> {
    let beside = layers.iter().any(Layer::has_tensors_beside_cuts);
    let shortcuts = !Shortcuts::of(layers).is_empty();
    match (beside, shortcuts) {
        (false, false) => encoded::<LayerRecord<'_>>(LAYERS, layers),
        (true, false) => encoded::<LayerBesideCutsRecord<'_>>(LAYERS_BESIDE_CUTS, layers),
        (false, true) => encoded::<WithShortcuts<LayerRecord<'_>>>(LAYERS_WITH_SHORTCUTS, layers),
        (true, true) => encoded::<WithShortcuts<LayerBesideCutsRecord<'_>>>(
            LAYERS_BESIDE_CUTS_WITH_SHORTCUTS,
            layers,
        ),
    }
}

fn encoded<'a, R>(of: Table, layers: &'a [Layer]) -> Result<Vec<u8>, DocumentError>
where
    R: Serialize + TryFrom<&'a Layer, Error = DocumentError>,
{
    let rows: Vec<R> = layers.iter().map(R::try_from).collect::<Result<_, _>>()?;
    table(of, of.encode(rows.into_iter()))
}

fn write_into(
    dir: &Path,
    files: impl IntoIterator<Item = (&'static str, Vec<u8>)>,
) -> Result<(), DocumentError> {
    for (name, bytes) in files {
        let path = dir.join(name);
        write_durably(&path, &bytes).map_err(|reason| DocumentError::Write { path, reason })?;
    }
    sync_directory(dir).map_err(|reason| DocumentError::Write {
        path: dir.to_owned(),
        reason,
    })
}

fn table(table: Table, encoded: Result<Vec<u8>, csv::Error>) -> Result<Vec<u8>, DocumentError> {
    encoded.map_err(|reason| DocumentError::Csv {
        path: table.file.into(),
        reason,
    })
}

fn refuse_unless_empty(dir: &Path) -> Result<(), DocumentError> {
    let mut entries = fs::read_dir(dir).map_err(|reason| DocumentError::Write {
        path: dir.to_owned(),
        reason,
    })?;
    match entries.next() {
        None => Ok(()),
        Some(_) => Err(DocumentError::NotEmpty {
            path: dir.to_owned(),
        }),
    }
}

fn write_durably(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Makes the names in `dir` durable, where directories can be opened to that end (not on Windows).
fn sync_directory(dir: &Path) -> io::Result<()> {
    if cfg!(unix) {
        File::open(dir)?.sync_all()
    } else {
        Ok(())
    }
}
