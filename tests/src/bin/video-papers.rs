//! What do the papers' figures about video look like here? `video-papers cbo REPORT` and `video-papers fastva REPORT` replay the
//! papers' evaluations and write a page: figure by figure what the paper says of it, and whether that holds. The first also
//! measures vocnet-mini on a simulated phone and on this machine, by the commands that users have. A minute or two each.

#[path = "video-papers/calibrated.rs"]
mod calibrated;
#[path = "video-papers/cbo.rs"]
mod cbo;
#[path = "video-papers/cut_out.rs"]
mod cut_out;
#[path = "video-papers/decisions.rs"]
mod decisions;
#[path = "video-papers/fastva.rs"]
mod fastva;
#[path = "video-papers/replays.rs"]
mod replays;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let page = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["cbo", _] => cbo::page(),
        ["fastva", _] => fastva::page(),
        _ => return usage(),
    };
    std::fs::write(&arguments[1], page).expect("the report can be written");
    ExitCode::SUCCESS
}

#[expect(clippy::print_stderr, reason = "how to call it")]
fn usage() -> ExitCode {
    eprintln!("video-papers cbo|fastva REPORT");
    ExitCode::from(2)
}
