//! Reading a profile from its files.

use std::fs;
use std::path::Path;

use serde::Deserialize;

use super::wire::{
    BLOCKS, BlockRow, COMBINATIONS, CUTS, CombinationRow, CutRow, LAYERS, LayerRow, ProfileJson,
    REJECTED, SAMPLES, SEGMENTS, SampleRow, SegmentRow, TIMES, Table, TimeRow,
};
use super::{
    Block, Contradiction, DocumentError, FORMAT, Header, LayerTimeRow, Origin, PROFILE_JSON,
    Profile, Sample, VERSION,
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
    let json = read_json(dir)?;
    let files = json.files.clone();
    let additivity = json.additivity.clone();
    let evaluations = json.evaluations.clone();
    let header = Header::from(json);
    let of_samples = header.origin_of_samples();
    let mut reading = Reading {
        dir,
        contradictions: Vec::new(),
    };

    let layers = reading.table(LAYERS, &files.layers, |row: LayerRow<'_>| {
        Ok((Layer::try_from(row)?, None))
    })?;
    let times = reading.table(TIMES, &files.times, |row: TimeRow<'_>| {
        let found = row.origin;
        let row = LayerTimeRow::try_from(row)?;
        let expected = header.origin_of_times(row.method);
        Ok((row, Some((found, expected))))
    })?;
    let cuts = reading.table(CUTS, &files.cuts, |row: CutRow<'_>| {
        let found = row.origin;
        let row = super::CutRow::try_from(row)?;
        let expected = header.origin_of_times(row.method);
        Ok((row, Some((found, expected))))
    })?;
    let segments = reading.table(SEGMENTS, &files.segments, |row: SegmentRow<'_>| {
        let found = row.origin;
        let row = super::SegmentRow::try_from(row)?;
        Ok((row, Some((found, of_samples))))
    })?;
    let sample = |row: SampleRow<'_>| {
        let found = row.origin;
        Ok((Sample::try_from(row)?, Some((found, of_samples))))
    };
    let samples = reading.table(SAMPLES, &files.samples, sample)?;
    let rejected = reading.table(REJECTED, &files.rejected, sample)?;
    let blocks = reading.table(BLOCKS, &files.blocks, |row: BlockRow<'_>| {
        let found = row.origin;
        Ok((Block::try_from(row)?, Some((found, of_samples))))
    })?;
    let combinations = reading.table(
        COMBINATIONS,
        &files.combinations,
        |row: CombinationRow<'_>| {
            let found = row.origin;
            Ok((
                super::CombinationRow::try_from(row)?,
                Some((found, of_samples)),
            ))
        },
    )?;

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
        evaluations,
        additivity,
    };
    Ok((profile, reading.contradictions))
}

/// The two fields that say whether the rest can be understood.
#[derive(Deserialize)]
struct Preamble {
    format: Option<String>,
    version: Option<u64>,
}

fn read_json(dir: &Path) -> Result<ProfileJson, DocumentError> {
    let path = dir.join(PROFILE_JSON);
    let bytes = read_file(&path)?;
    let malformed = |reason| DocumentError::Json {
        path: path.clone(),
        reason,
    };
    let preamble: Preamble = serde_json::from_slice(&bytes).map_err(malformed)?;
    if preamble.format.as_deref() != Some(FORMAT) {
        return Err(DocumentError::Format { path });
    }
    match preamble.version {
        Some(version) if version != u64::from(VERSION) => {
            Err(DocumentError::Version { path, version })
        }
        // A missing version is reported by the full reading, as any other missing field.
        _ => serde_json::from_slice(&bytes).map_err(malformed),
    }
}

fn read_file(path: &Path) -> Result<Vec<u8>, DocumentError> {
    fs::read(path).map_err(|reason| DocumentError::Read {
        path: path.to_owned(),
        reason,
    })
}

struct Reading<'a> {
    dir: &'a Path,
    contradictions: Vec<Contradiction>,
}

impl Reading<'_> {
    /// The rows of one table. `from_row` also says which origin a row states and which it should.
    fn table<R: serde::de::DeserializeOwned, T>(
        &mut self,
        table: Table,
        hash: &str,
        from_row: impl Fn(R) -> Result<(T, Option<(Origin, Origin)>), super::RowError>,
    ) -> Result<Vec<T>, DocumentError> {
        let path = self.dir.join(table.file);
        let bytes = read_file(&path)?;
        if sha256(&bytes) != hash {
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
