//! What every row says of where it comes from: the profile, the device, the processor, and when.

use std::path::Path;

use jiff::Timestamp;
use jiff::civil::{Date, date};
use layerlab_profiles::document::{Numerics, Processor, ProcessorKind, Profile, ProfileDigest};
use layerlab_profiles::soak::Thermal;
use parquet::data_type::ByteArray;

use crate::column::Column;
use crate::error::ExportError;
use crate::lab_run::LabRun;
use crate::place::night;

/// A row of a table, of whatever kind.
pub(crate) trait TableRow {
    /// Where it comes from.
    fn source(&self) -> &Source;
}

/// Where the rows of one processor of a profile come from. Texts are shared by all rows.
pub(crate) struct Source {
    pub(crate) name: String,
    pub(crate) night: Date,
    profile_digest: ByteArray,
    model_sha256: ByteArray,
    device: ByteArray,
    simulated: bool,
    emulated: bool,
    thermal: ByteArray,
    fit: Option<bool>,
    phone_serial: Option<ByteArray>,
    phone_model: Option<ByteArray>,
    soc: Option<ByteArray>,
    android: Option<ByteArray>,
    build: Option<ByteArray>,
    processor: ByteArray,
    processor_kind: ByteArray,
    numerics: ByteArray,
    runtime: ByteArray,
    runtime_version: ByteArray,
    host: Option<ByteArray>,
    host_system: ByteArray,
    host_cpu: ByteArray,
    lab: Option<ByteArray>,
    run: Option<i64>,
    run_id: ByteArray,
    started: Timestamp,
    finished: Timestamp,
}

impl Source {
    /// Of each processor of `profile`, which lies in `folder`, in its order; `host` is the name of its lab's host, if that is
    /// known.
    pub(crate) fn of_all(
        profile: &Profile,
        digest: &ProfileDigest,
        folder: &Path,
        host: Option<&str>,
    ) -> Result<Vec<Source>, ExportError> {
        let processors = profile.header.processors.iter();
        processors
            .map(|processor| Source::of(profile, processor, digest, folder, host))
            .collect()
    }

    fn of(
        profile: &Profile,
        processor: &Processor,
        digest: &ProfileDigest,
        folder: &Path,
        host: Option<&str>,
    ) -> Result<Source, ExportError> {
        let header = &profile.header;
        let provenance = &header.provenance;
        let phone = provenance.phone.as_ref();
        let of_lab = LabRun::of(&provenance.run);
        let instant = |text: &str| {
            text.parse().map_err(|reason| ExportError::Time {
                folder: folder.to_owned(),
                text: text.to_owned(),
                reason,
            })
        };
        let optional = |text: Option<&String>| text.map(|text| ByteArray::from(text.as_str()));
        let started = instant(&provenance.started_at)?;
        Ok(Source {
            name: processor.name.clone(),
            night: night(started),
            profile_digest: digest.as_str().into(),
            model_sha256: header.model.sha256.as_str().into(),
            device: header.device.name.as_str().into(),
            simulated: header.simulated,
            emulated: processor.emulated,
            thermal: match header.thermal {
                Thermal::Cold => "cold",
                Thermal::Steady => "steady",
            }
            .into(),
            fit: (provenance.fitness.as_ref()).map(|fitness| fitness.not_fit.is_empty()),
            phone_serial: phone.map(|phone| phone.serial.as_str().into()),
            phone_model: optional(phone.and_then(|phone| phone.model.as_ref())),
            soc: optional(phone.and_then(|phone| phone.soc.as_ref())),
            android: optional(phone.and_then(|phone| phone.android.as_ref())),
            build: optional(phone.and_then(|phone| phone.build.as_ref())),
            processor: processor.name.as_str().into(),
            processor_kind: match processor.kind {
                ProcessorKind::Cpu => "cpu",
                ProcessorKind::Accelerator => "accelerator",
            }
            .into(),
            numerics: match processor.numerics {
                Numerics::F32 => "f32",
                Numerics::F16 => "f16",
                Numerics::I8 => "i8",
            }
            .into(),
            runtime: processor.runtime.as_str().into(),
            runtime_version: processor.runtime_version.as_str().into(),
            host: host.map(ByteArray::from),
            host_system: provenance.host.system.as_str().into(),
            host_cpu: provenance.host.cpu.as_str().into(),
            lab: optional(of_lab.as_ref().map(|of| &of.lab)),
            run: of_lab.map(|of| of.run),
            run_id: provenance.run.as_str().into(),
            started,
            finished: instant(&provenance.finished_at)?,
        })
    }
}

/// The columns with which the rows of each table begin.
pub(crate) fn source_columns<R: TableRow>() -> Vec<Column<R>> {
    vec![
        Column::text("profile_digest", |row: &R| {
            Some(row.source().profile_digest.clone())
        })
        .required(),
        Column::text("model_sha256", |row: &R| {
            Some(row.source().model_sha256.clone())
        })
        .required(),
        Column::text("device", |row: &R| Some(row.source().device.clone())).required(),
        Column::flag("simulated", |row: &R| Some(row.source().simulated)).required(),
        Column::flag("emulated", |row: &R| Some(row.source().emulated)).required(),
        Column::text("thermal", |row: &R| Some(row.source().thermal.clone())).required(),
        Column::flag("fit", |row: &R| row.source().fit),
        Column::text("phone_serial", |row: &R| row.source().phone_serial.clone()),
        Column::text("phone_model", |row: &R| row.source().phone_model.clone()),
        Column::text("soc", |row: &R| row.source().soc.clone()),
        Column::text("android", |row: &R| row.source().android.clone()),
        Column::text("build", |row: &R| row.source().build.clone()),
        Column::text("processor", |row: &R| Some(row.source().processor.clone())).required(),
        Column::text("processor_kind", |row: &R| {
            Some(row.source().processor_kind.clone())
        })
        .required(),
        Column::text("numerics", |row: &R| Some(row.source().numerics.clone())).required(),
        Column::text("runtime", |row: &R| Some(row.source().runtime.clone())).required(),
        Column::text("runtime_version", |row: &R| {
            Some(row.source().runtime_version.clone())
        })
        .required(),
        Column::text("host", |row: &R| row.source().host.clone()),
        Column::text("host_system", |row: &R| {
            Some(row.source().host_system.clone())
        })
        .required(),
        Column::text("host_cpu", |row: &R| Some(row.source().host_cpu.clone())).required(),
        Column::text("lab", |row: &R| row.source().lab.clone()),
        Column::whole("run", |row: &R| row.source().run),
        Column::text("run_id", |row: &R| Some(row.source().run_id.clone())).required(),
        Column::instant("started_at", |row: &R| {
            Some(row.source().started.as_microsecond())
        })
        .required(),
        Column::instant("finished_at", |row: &R| {
            Some(row.source().finished.as_microsecond())
        })
        .required(),
        Column::day("night", |row: &R| Some(days_since_1970(row.source().night))).required(),
    ]
}

fn days_since_1970(day: Date) -> i32 {
    let days = day.since(date(1970, 1, 1)).map(|span| span.get_days());
    days.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_counted_from_1970() {
        for (day, expected) in [
            ("1970-01-01", 0),
            ("1969-12-31", -1),
            ("2026-11-26", 20_783),
        ] {
            let day: Date = day.parse().expect("a day");
            assert_eq!(days_since_1970(day), expected);
        }
    }
}
