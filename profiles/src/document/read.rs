//! Reading a profile from its files.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::de::DeserializeOwned;

use super::opened::Opened;
use super::versions::{BLOCKS_V4, BlockRecordV4, open};
use super::wire::{
    BLOCKS, BLOCKS_WITH_DISTURBANCE, BlockRecord, COMBINATIONS, CUTS, CombinationRecord, CutRecord,
    DisturbedBlockRecord, ENERGY, EnergyRecord, InMemoryRecord, LAYER_ENERGY, LAYERS,
    LAYERS_BESIDE_CUTS, LAYERS_BESIDE_CUTS_WITH_SHORTCUTS, LAYERS_WITH_SHORTCUTS, LOADS,
    LayerBesideCutsRecord, LayerRecord, LoadRecord, MINUTES, MinuteRecord, PLACEMENTS, PROBES,
    PlacementRecord, ProbeRecord, REJECTED, SAMPLES, SEGMENTS, SOAK, SampleRecord, SegmentRecord,
    SoakRecord, TIMES, Table, TimeRecord, UNSUPPORTED, UNSUPPORTED_IN_MEMORY, UnsupportedRecord,
    WithShortcuts,
};
use super::{
    Block, Contradiction, DIGEST_FILE, DocumentError, Energy, LayerTimeRow, Load, Method,
    MinuteRow, Origin, PROFILE_JSON, ProbeSample, Profile, ProfileDigest, ProvedPlacement,
    RowError, STEADY_FOLDER, Sample, SoakRow, Soaking, Unsupported,
};
use crate::energy::EnergyWindow;
use crate::layer::Layer;
use crate::sha256;

impl Profile {
    /// Reads the profile in `dir`, refusing one whose files do not belong together.
    ///
    /// What the numbers say about each other is [`check`](crate::check::check)'s business.
    pub fn read(dir: &Path) -> Result<Profile, DocumentError> {
        let (profile, contradictions) = read_with_contradictions(dir)?;
        match contradictions.into_iter().next() {
            None => Ok(profile),
            Some(contradiction) => Err(DocumentError::Contradiction {
                path: dir.to_owned(),
                contradiction,
            }),
        }
    }
}

/// Reads the profile in `dir` as far as it can be read, and says where its files do not belong together.
pub(crate) fn read_with_contradictions(
    dir: &Path,
) -> Result<(Profile, Vec<Contradiction>), DocumentError> {
    let (mut profile, mut contradictions, steady) = read_alone(dir)?;
    let Some(hash) = steady else {
        return Ok((profile, contradictions));
    };
    let dir = dir.join(STEADY_FOLDER);
    let (steady, of_steady, another) = read_alone(&dir)?;
    if ProfileDigest::of_folder(&dir)?.as_str() != hash {
        contradictions.push(Contradiction::SteadyChanged);
    }
    if another.is_some() {
        contradictions.push(Contradiction::SteadyInSteady);
    }
    contradictions.extend(of_steady);
    profile.steady = Some(Box::new(steady));
    Ok((profile, contradictions))
}

/// The same without the steady profile beside it, and the hash that it says that has, if there is one.
type ReadAlone = (Profile, Vec<Contradiction>, Option<String>);

fn read_alone(dir: &Path) -> Result<ReadAlone, DocumentError> {
    let path = dir.join(PROFILE_JSON);
    let bytes = read_file(&path)?;
    let Opened {
        header,
        additivity,
        moving,
        evaluations,
        soaks,
        energy,
        steady,
        hashes,
        version,
        has_digest,
    } = open(&path, &bytes)?;
    let of_samples = |processor: &str| header.origin_of_samples(processor);
    let mut reading = Reading {
        dir,
        hashes,
        contradictions: Vec::new(),
    };
    if has_digest {
        reading.compare_digest(&bytes)?;
    }

    let layers = match version {
        ..5 => reading.layers::<LayerRecord<'_>>(LAYERS)?,
        // Version 5 has had tensors beside cuts since caches of keys and values are measured, and shortcuts since what they
        // cost is told apart.
        _ if reading.has_columns(LAYERS_BESIDE_CUTS)? => {
            reading.layers::<LayerBesideCutsRecord<'_>>(LAYERS_BESIDE_CUTS)?
        }
        _ if reading.has_columns(LAYERS_WITH_SHORTCUTS)? => {
            reading.layers::<WithShortcuts<LayerRecord<'_>>>(LAYERS_WITH_SHORTCUTS)?
        }
        _ if reading.has_columns(LAYERS_BESIDE_CUTS_WITH_SHORTCUTS)? => {
            let table = LAYERS_BESIDE_CUTS_WITH_SHORTCUTS;
            reading.layers::<WithShortcuts<LayerBesideCutsRecord<'_>>>(table)?
        }
        _ => reading.layers::<LayerRecord<'_>>(LAYERS)?,
    };
    let times = reading.table(TIMES, |row: TimeRecord<'_>| {
        let found = row.origin;
        let row = LayerTimeRow::try_from(row)?;
        let expected = header.origin_of_times(&row.processor, row.method);
        Ok((row, Some((found, expected))))
    })?;
    let cuts = reading.table(CUTS, |row: CutRecord<'_>| {
        let found = row.origin;
        let row = super::CutRow::try_from(row)?;
        let expected = header.origin_of_times(&row.processor, row.method);
        Ok((row, Some((found, expected))))
    })?;
    let segments = reading.table(SEGMENTS, |row: SegmentRecord<'_>| {
        let found = row.origin;
        let row = super::SegmentRow::try_from(row)?;
        let expected = of_samples(&row.processor);
        Ok((row, Some((found, expected))))
    })?;
    let sample = |row: SampleRecord<'_>| {
        let found = row.origin;
        let row = Sample::try_from(row)?;
        let expected = of_samples(&row.processor);
        Ok((row, Some((found, expected))))
    };
    let samples = reading.table(SAMPLES, sample)?;
    let rejected = reading.table(REJECTED, sample)?;
    let blocks = match version {
        ..5 => reading.table(BLOCKS_V4, |row: BlockRecordV4<'_>| {
            let found = row.origin;
            let row = Block::try_from(row)?;
            let expected = of_samples(&row.processor);
            Ok((row, Some((found, expected))))
        })?,
        _ if reading.has_columns(BLOCKS_WITH_DISTURBANCE)? => {
            reading.table(BLOCKS_WITH_DISTURBANCE, |row: DisturbedBlockRecord<'_>| {
                let found = row.block.origin;
                let row = Block::try_from(row)?;
                let expected = of_samples(&row.processor);
                Ok((row, Some((found, expected))))
            })?
        }
        _ => reading.table(BLOCKS, |row: BlockRecord<'_>| {
            let found = row.origin;
            let row = Block::try_from(row)?;
            let expected = of_samples(&row.processor);
            Ok((row, Some((found, expected))))
        })?,
    };
    let combinations = reading.table(COMBINATIONS, |row: CombinationRecord<'_>| {
        let found = row.origin;
        let row = super::CombinationRow::try_from(row)?;
        let expected = header.origin_of_combination(&row);
        Ok((row, Some((found, expected))))
    })?;
    // Version 5 has had needs of memory since processors were measured whose memory is too small.
    let unsupported = match version >= 5 && reading.has_columns(UNSUPPORTED_IN_MEMORY)? {
        true => reading.table(UNSUPPORTED_IN_MEMORY, |row: InMemoryRecord<'_>| {
            let found = row.origin;
            let row = Unsupported::try_from(row)?;
            let expected = of_samples(&row.processor);
            Ok((row, Some((found, expected))))
        })?,
        false => reading.table(UNSUPPORTED, |row: UnsupportedRecord<'_>| {
            let found = row.origin;
            let row = Unsupported::try_from(row)?;
            let expected = of_samples(&row.processor);
            Ok((row, Some((found, expected))))
        })?,
    };
    let loads = reading.table(LOADS, |row: LoadRecord<'_>| {
        let found = row.origin;
        let row = Load::try_from(row)?;
        let expected = of_samples(&row.processor);
        Ok((row, Some((found, expected))))
    })?;
    let placements = reading.table(PLACEMENTS, |row: PlacementRecord<'_>| {
        let found = row.origin;
        let row = ProvedPlacement::try_from(row)?;
        let expected = of_samples(&row.processor);
        Ok((row, Some((found, expected))))
    })?;
    let probes = reading.table(PROBES, |row: ProbeRecord<'_>| {
        let found = row.origin;
        let row = ProbeSample::try_from(row)?;
        let expected = of_samples(&row.processor);
        Ok((row, Some((found, expected))))
    })?;

    let soak = reading.table(SOAK, |row: SoakRecord<'_>| {
        let found = row.origin;
        let row = SoakRow::try_from(row)?;
        let expected = of_samples(&row.processor);
        Ok((row, Some((found, expected))))
    })?;
    let minutes = reading.table(MINUTES, |row: MinuteRecord<'_>| {
        let found = row.origin;
        let row = MinuteRow::try_from(row)?;
        let expected = of_samples(&row.processor);
        Ok((row, Some((found, expected))))
    })?;

    let windows = reading.table(ENERGY, |row: EnergyRecord<'_>| {
        let found = row.origin;
        let row = EnergyWindow::try_from(row)?;
        let expected = of_samples(&row.processor);
        Ok((row, Some((found, expected))))
    })?;
    let layer_energies = reading.table(LAYER_ENERGY, |row: TimeRecord<'_>| {
        let found = row.origin;
        let row = LayerTimeRow::try_from(row)?;
        let expected = header.origin_of_times(&row.processor, Method::Graph);
        Ok((row, Some((found, expected))))
    })?;

    let profile = Profile {
        header,
        layers,
        times,
        cuts,
        segments,
        samples,
        rejected,
        blocks,
        combinations,
        unsupported,
        loads,
        placements,
        evaluations,
        additivity,
        probes,
        moving,
        soaking: Soaking {
            rows: soak,
            minutes,
            found: soaks,
        },
        energy: energy.map(|found| Energy {
            windows,
            layers: layer_energies,
            found,
        }),
        steady: None,
    };
    Ok((profile, reading.contradictions, steady))
}

/// The bytes of a file.
pub(crate) fn read_file(path: &Path) -> Result<Vec<u8>, DocumentError> {
    fs::read(path).map_err(|reason| DocumentError::Read {
        path: path.to_owned(),
        reason,
    })
}

struct Reading<'a> {
    dir: &'a Path,
    /// The SHA-256 of each table that there is, by its file.
    hashes: BTreeMap<&'static str, String>,
    contradictions: Vec<Contradiction>,
}

impl Reading<'_> {
    /// Whether `profile.json`, of these bytes, is the one that the profile was written with.
    fn compare_digest(&mut self, profile_json: &[u8]) -> Result<(), DocumentError> {
        let written = read_file(&self.dir.join(DIGEST_FILE))?;
        let found = ProfileDigest::of(profile_json);
        if written != found.line().as_bytes() {
            let contradiction = Contradiction::HeaderChanged { found };
            self.contradictions.push(contradiction);
        }
        Ok(())
    }

    /// Whether a table's file has these columns.
    fn has_columns(&self, table: Table) -> Result<bool, DocumentError> {
        let is_listed = self.hashes.contains_key(table.file);
        Ok(is_listed && table.has_columns(&read_file(&self.dir.join(table.file))?))
    }

    /// The layers, in a table whose rows say no origin.
    fn layers<R>(&mut self, table: Table) -> Result<Vec<Layer>, DocumentError>
    where
        R: DeserializeOwned + TryInto<Layer, Error = RowError>,
    {
        self.table(table, |row: R| Ok((row.try_into()?, None)))
    }

    /// The rows of one table; none where the version had no such table. `from_row` also says which origin a row
    /// states and which it should.
    fn table<R: DeserializeOwned, T>(
        &mut self,
        table: Table,
        from_row: impl Fn(R) -> Result<(T, Option<(Origin, Origin)>), RowError>,
    ) -> Result<Vec<T>, DocumentError> {
        let Some(hash) = self.hashes.get(table.file) else {
            return Ok(Vec::new());
        };
        let path = self.dir.join(table.file);
        let bytes = read_file(&path)?;
        if sha256(&bytes) != *hash {
            let file = table.file;
            self.contradictions
                .push(Contradiction::FileChanged { file });
        }
        let mut wrong_origin = None;
        let rows = table.decode(&path, &bytes, |row: R, line| {
            let (row, origins) = from_row(row)?;
            if let Some((found, expected)) = origins
                && found != expected
            {
                wrong_origin.get_or_insert(Contradiction::Origin {
                    file: table.file,
                    line,
                    found,
                    expected,
                });
            }
            Ok(row)
        })?;
        self.contradictions.extend(wrong_origin);
        Ok(rows)
    }
}
