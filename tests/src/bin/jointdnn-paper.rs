//! What do the figures of JointDNN's paper look like here? `jointdnn-paper REPORT [FOLDER]` has the paper's kinds of networks made,
//! profiles each on this machine and on a simulated phone, by the commands that users have, plans over the paper's 3G, 4G
//! and Wi-Fi, and writes a page: figure by figure what the paper says of it, and whether that holds. It fails if a plan does not
//! add up. Networks and profiles are kept in FOLDER, if there is one, and those that lie there are not made again. It measures time:
//! nothing else should run beside it. Takes about twenty minutes, and 2 GB of disk; making the networks needs Python
//! (tests/models/README.md): that of tests/models/.venv, or what the variable PYTHON names.

#[path = "jointdnn-paper/case.rs"]
mod case;
#[path = "jointdnn-paper/figures.rs"]
mod figures;
#[path = "jointdnn-paper/networks.rs"]
mod networks;
#[path = "jointdnn-paper/planner.rs"]
mod planner;
#[path = "jointdnn-paper/profiles.rs"]
mod profiles;
#[path = "jointdnn-paper/tables.rs"]
mod tables;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use self::planner::Planner;

#[expect(clippy::print_stderr, reason = "how to call it, and what is wrong")]
fn main() -> ExitCode {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let temporary = tempfile::tempdir().expect("a folder for temporary files");
    let (report, folder): (&Path, &Path) = match &arguments[..] {
        [report] => (report, temporary.path()),
        [report, folder] => (report, folder),
        _ => {
            eprintln!("jointdnn-paper REPORT [FOLDER]");
            return ExitCode::from(2);
        }
    };
    let measured = match profiles::measure(folder) {
        Ok(measured) => measured,
        Err(why) => {
            eprintln!("{why}");
            return ExitCode::FAILURE;
        }
    };
    let mut planner = Planner::default();
    let page = figures::page(&measured, &mut planner);
    for fault in &planner.faults {
        eprintln!("{fault}");
    }
    std::fs::write(report, page).expect("the report can be written");
    match planner.faults.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}
