//! `layerlab link check`: is a measured link sound?

use std::path::Path;

use layerlab_profiles::link::{LinkDocument, check_link_directory};

use crate::exit::{Code, ExitWith, Failure};
use crate::findings::{CheckFolderArgs, note_or_refuse};

/// Reads a measured link; says what is doubtful of it, and refuses what contradicts itself.
pub(crate) fn sound_link(folder: &Path) -> Result<LinkDocument, Failure> {
    let (link, findings) = check_link_directory(folder).exit_with(Code::Input)?;
    note_or_refuse(folder, &findings)?;
    Ok(link)
}

pub(super) fn run(args: &CheckFolderArgs) -> Result<(), Failure> {
    let (link, findings) = check_link_directory(&args.folder).exit_with(Code::Input)?;
    let sound = format!(
        "a sound measurement of the {} link {}, {} samples",
        link.header.kind,
        link.header.name,
        link.samples.len()
    );
    args.print(&findings, &sound)
}
