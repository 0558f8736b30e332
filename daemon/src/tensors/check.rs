//! `layerlab tensors check`: is what was measured of tensors sound?

use layerlab_profiles::tensors::check_tensors_directory;

use crate::exit::{Code, ExitWith, Failure};
use crate::findings::CheckFolderArgs;

pub(super) fn run(args: &CheckFolderArgs) -> Result<(), Failure> {
    let (tensors, findings) = check_tensors_directory(&args.folder).exit_with(Code::Input)?;
    let sound = format!(
        "a sound measurement of the tensors of {}: {} of them, {} pictures",
        tensors.header.model.name,
        tensors.header.compressed().count(),
        tensors.header.pictures
    );
    args.print(&findings, &sound)
}
