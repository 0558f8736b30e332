//! `layerlab profiles get`: a copy of a published profile, proved to be what the lab published.

use std::fs;
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};

use layerlab_campaign::publish::Staging;
use layerlab_lab::query::indexed_profiles;
use layerlab_lab::record::RunNumber;
use layerlab_profiles::document::{Profile, ProfileDigest, STEADY_FOLDER};
use zip::ZipArchive;

use crate::elsewhere::Elsewhere;
use crate::exit::{Code, ExitWith, Failure};
use crate::which_lab::Lab;
use crate::{lab, output};

/// More than any file of a profile has.
const MOST_BYTES: u64 = 1 << 30;

pub(super) async fn run(
    lab: &Lab,
    run: RunNumber,
    out: &Path,
    replace: bool,
) -> Result<(), Failure> {
    let staging = Staging::prepare(out, replace).exit_with(Code::Output)?;
    let digest = match lab {
        Lab::Here => from_here(run, staging.folder()).await?,
        Lab::Elsewhere(lab) => from_elsewhere(lab, run, staging.folder()).await?,
    };
    prove(run, staging.folder(), &digest)?;
    staging.publish_as_it_is().exit_with(Code::Output)?;
    output::print(format_args!(
        "The profile of run {run} is in {} ({}).",
        out.display(),
        digest.short()
    ))
}

/// Copies the files, and says which digest they should have.
async fn from_here(run: RunNumber, to: &Path) -> Result<ProfileDigest, Failure> {
    let profiles = indexed_profiles(&lab::kept().await?, None, None);
    let profile = profiles.into_iter().find(|profile| profile.run == run);
    let folder = profile.map(|profile| profile.folder).ok_or_else(|| {
        let error = anyhow::anyhow!(
            "run {run} has published no profile; `layerlab profiles list` says which have"
        );
        Failure::new(Code::Input, error)
    })?;
    let digest = ProfileDigest::of_folder(&folder).exit_with(Code::Input)?;
    for (from, name) in files(&folder).exit_with(Code::Input)? {
        let content = fs::read(from).exit_with(Code::Input)?;
        put(to, &name, &content).exit_with(Code::Output)?;
    }
    Ok(digest)
}

/// The files of a profile's folder, with their names in it.
fn files(folder: &Path) -> io::Result<Vec<(PathBuf, String)>> {
    let mut files = Vec::new();
    for within in ["", STEADY_FOLDER] {
        let folder = folder.join(within);
        if !folder.is_dir() {
            continue;
        }
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let name = entry.file_name().into_string();
            if let (true, Ok(name)) = (entry.file_type()?.is_file(), name) {
                let name = match within {
                    "" => name,
                    within => format!("{within}/{name}"),
                };
                files.push((entry.path(), name));
            }
        }
    }
    Ok(files)
}

async fn from_elsewhere(
    lab: &Elsewhere,
    run: RunNumber,
    to: &Path,
) -> Result<ProfileDigest, Failure> {
    let digest = lab.profile(run).await?.digest;
    let digest = digest.and_then(|digest| ProfileDigest::try_from(digest).ok());
    let digest = digest.ok_or_else(|| {
        let error = anyhow::anyhow!("the folder of the profile of run {run} is gone at the lab");
        Failure::new(Code::Input, error)
    })?;
    unpack(lab.archive(run).await?, to)?;
    Ok(digest)
}

/// Puts what is packed into the folder `to`; nothing of it leads elsewhere.
fn unpack(archive: Vec<u8>, to: &Path) -> Result<(), Failure> {
    let broken = |reason: &dyn std::fmt::Display| {
        let error = anyhow::anyhow!("the archive that came is none of a profile: {reason}");
        Failure::new(Code::Check, error)
    };
    let mut archive = ZipArchive::new(Cursor::new(archive)).map_err(|error| broken(&error))?;
    for place in 0..archive.len() {
        let file = archive.by_index(place).map_err(|error| broken(&error))?;
        let name = file.name().to_owned();
        if !is_own(&name) || !file.is_file() {
            return Err(broken(&format_args!(
                "it has a file `{}`",
                name.escape_debug()
            )));
        }
        let mut content = Vec::new();
        let read = file.take(MOST_BYTES).read_to_end(&mut content);
        read.map_err(|error| broken(&error))?;
        put(to, &name, &content).exit_with(Code::Output)?;
    }
    Ok(())
}

/// Whether a file of a profile may be called so.
fn is_own(name: &str) -> bool {
    let of_steady = name.strip_prefix(STEADY_FOLDER);
    let alone = of_steady.and_then(|rest| rest.strip_prefix('/'));
    let alone = alone.unwrap_or(name);
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    !alone.is_empty() && !alone.starts_with('.') && alone.chars().all(allowed)
}

fn put(folder: &Path, name: &str, content: &[u8]) -> io::Result<()> {
    let path = folder.join(name);
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::write(path, content)
}

/// That what came is what the lab published: its digest is the lab's, and all tables are those that it names.
fn prove(run: RunNumber, folder: &Path, digest: &ProfileDigest) -> Result<(), Failure> {
    let came = ProfileDigest::of_folder(folder).exit_with(Code::Check)?;
    if came != *digest {
        let error = anyhow::anyhow!(
            "what came of the profile of run {run} has the digest {}, and the lab's has {}; nothing was kept",
            came.short(),
            digest.short()
        );
        return Err(Failure::new(Code::Check, error));
    }
    Profile::read(folder).map(drop).exit_with(Code::Check)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use zip::ZipWriter;
    use zip::write::SimpleFileOptions;

    fn packed(name: &str) -> Vec<u8> {
        let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
        archive
            .start_file(name, SimpleFileOptions::default())
            .expect("room");
        archive.write_all(b"x").expect("room");
        archive.finish().expect("room").into_inner()
    }

    #[test]
    fn no_file_of_an_archive_leads_out_of_the_folder() {
        let folder = tempfile::tempdir().expect("a folder");
        let inner = folder.path().join("inner");
        fs::create_dir(&inner).expect("room");
        for name in [
            "../x",
            "/x",
            "a/../../x",
            "steady/../../x",
            "steady/a/b",
            "..",
            "steady/..",
            ".x",
            "a\\x",
            "",
        ] {
            unpack(packed(name), &inner).expect_err(name);
        }
        unpack(b"no archive".to_vec(), &inner).expect_err("no archive");
        let entries = |folder: &Path| fs::read_dir(folder).expect("there").count();
        assert_eq!((entries(folder.path()), entries(&inner)), (1, 0));
        for name in ["profile.json", "steady/layers.csv"] {
            unpack(packed(name), &inner).expect(name);
            assert_eq!(fs::read(inner.join(name)).expect("it is there"), b"x");
        }
    }
}
