//! Published profiles as Parquet tables, for DuckDB and pandas (docs/analysis.md): a folder of three tables, to which each profile
//! adds a file of its own.

mod column;
mod error;
mod export;
mod lab_run;
mod layers;
mod place;
mod samples;
mod segments;
mod source;

pub use error::ExportError;
pub use export::{ExportedRows, export, exported_profiles};
pub use lab_run::LabRun;
