//! Every version of the format that was published. Each has a file that turns what its `profile.json` said into what
//! the newest says; a table that a version did not have is read as an empty one.

mod v3;
mod v4;

use std::path::Path;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::opened::Opened;
use super::wire::ProfileJson;
use super::{DocumentError, FORMAT, VERSION};
pub(super) use v4::{BLOCKS_V4, BlockRecordV4};

/// The oldest version that was published.
pub(super) const OLDEST: u32 = 3;

/// The two fields that say whether the rest can be understood.
#[derive(Deserialize)]
struct Preamble {
    format: Option<String>,
    version: Option<u64>,
}

/// Reads the `profile.json` at `path`, of whatever version it is.
pub(super) fn open(path: &Path, bytes: &[u8]) -> Result<Opened, DocumentError> {
    let preamble: Preamble = parse(path, bytes)?;
    if preamble.format.as_deref() != Some(FORMAT) {
        return Err(DocumentError::Format {
            path: path.to_owned(),
        });
    }
    match preamble.version {
        Some(3) => parse::<v3::ProfileJsonV3>(path, bytes).map(Opened::from),
        Some(4) => parse::<v4::ProfileJsonV4>(path, bytes).map(Opened::from),
        Some(version) if version > u64::from(VERSION) => Err(DocumentError::Newer {
            path: path.to_owned(),
            version,
        }),
        Some(version) if version < u64::from(OLDEST) => Err(DocumentError::NeverPublished {
            path: path.to_owned(),
            version,
        }),
        // A missing version is reported by the full reading, as any other missing field.
        _ => parse::<ProfileJson>(path, bytes).map(Opened::from),
    }
}

fn parse<T: DeserializeOwned>(path: &Path, bytes: &[u8]) -> Result<T, DocumentError> {
    serde_json::from_slice(bytes).map_err(|reason| DocumentError::Json {
        path: path.to_owned(),
        reason,
    })
}
