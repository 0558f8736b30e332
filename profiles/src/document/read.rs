//! Reading a profile from its files.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::opened::Opened;
use super::versions::open;
use super::wire::{
    BLOCKS, BlockRecord, COMBINATIONS, CUTS, CombinationRecord, CutRecord, LAYERS, LOADS,
    LayerRecord, LoadRecord, REJECTED, SAMPLES, SEGMENTS, SampleRecord, SegmentRecord, TIMES,
    Table, TimeRecord, UNSUPPORTED, UnsupportedRecord,
};
use super::{
    Block, Contradiction, DocumentError, LayerTimeRow, Load, Origin, PROFILE_JSON, Profile, Sample,
    Unsupported,
};
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
    let path = dir.join(PROFILE_JSON);
    let Opened {
        header,
        additivity,
        evaluations,
        hashes,
    } = open(&path, &read_file(&path)?)?;
    let of_samples = header.origin_of_samples();
    let mut reading = Reading {
        dir,
        hashes,
        contradictions: Vec::new(),
    };

    let layers = reading.table(LAYERS, |row: LayerRecord<'_>| {
        Ok((Layer::try_from(row)?, None))
    })?;
    let times = reading.table(TIMES, |row: TimeRecord<'_>| {
        let found = row.origin;
        let row = LayerTimeRow::try_from(row)?;
        let expected = header.origin_of_times(row.method);
        Ok((row, Some((found, expected))))
    })?;
    let cuts = reading.table(CUTS, |row: CutRecord<'_>| {
        let found = row.origin;
        let row = super::CutRow::try_from(row)?;
        let expected = header.origin_of_times(row.method);
        Ok((row, Some((found, expected))))
    })?;
    let segments = reading.table(SEGMENTS, |row: SegmentRecord<'_>| {
        let found = row.origin;
        let row = super::SegmentRow::try_from(row)?;
        Ok((row, Some((found, of_samples))))
    })?;
    let sample = |row: SampleRecord<'_>| {
        let found = row.origin;
        Ok((Sample::try_from(row)?, Some((found, of_samples))))
    };
    let samples = reading.table(SAMPLES, sample)?;
    let rejected = reading.table(REJECTED, sample)?;
    let blocks = reading.table(BLOCKS, |row: BlockRecord<'_>| {
        let found = row.origin;
        Ok((Block::try_from(row)?, Some((found, of_samples))))
    })?;
    let combinations = reading.table(COMBINATIONS, |row: CombinationRecord<'_>| {
        let found = row.origin;
        Ok((
            super::CombinationRow::try_from(row)?,
            Some((found, of_samples)),
        ))
    })?;
    let unsupported = reading.table(UNSUPPORTED, |row: UnsupportedRecord<'_>| {
        let found = row.origin;
        Ok((Unsupported::try_from(row)?, Some((found, of_samples))))
    })?;
    let loads = reading.table(LOADS, |row: LoadRecord<'_>| {
        let found = row.origin;
        Ok((Load::try_from(row)?, Some((found, of_samples))))
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
        evaluations,
        additivity,
    };
    Ok((profile, reading.contradictions))
}

fn read_file(path: &Path) -> Result<Vec<u8>, DocumentError> {
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
    /// The rows of one table; none where the version had no such table. `from_row` also says which origin a row
    /// states and which it should.
    fn table<R: serde::de::DeserializeOwned, T>(
        &mut self,
        table: Table,
        from_row: impl Fn(R) -> Result<(T, Option<(Origin, Origin)>), super::RowError>,
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
