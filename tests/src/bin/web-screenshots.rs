//! Pictures of each page of the lab in a real browser, to be looked at: on a phone, a computer and a large screen, in both themes.
//!
//! Usage: web-screenshots FOLDER

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "it says where the pictures are, or what is missing"
)]

use std::path::PathBuf;
use std::process::ExitCode;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use layerlab_tests::browser::Browser;
use layerlab_tests::web_lab::LivelyLab;

/// Of a phone, a computer and a large screen, in pixels of CSS.
const WIDTHS: [u32; 3] = [390, 1280, 2560];

fn main() -> ExitCode {
    let Some(folder) = std::env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("usage: web-screenshots FOLDER");
        return ExitCode::from(2);
    };
    let Some(browser) = Browser::open() else {
        return ExitCode::from(69);
    };
    std::fs::create_dir_all(&folder).expect("room for pictures");
    let lab = LivelyLab::start();
    let mut pictures = 0;
    lab.show(&browser, &WIDTHS, |shown| {
        let picture = STANDARD.decode(browser.picture()).expect("base64");
        std::fs::write(folder.join(format!("{shown}.png")), picture).expect("room for a picture");
        pictures += 1;
    });
    println!("{pictures} pictures are in {}", folder.display());
    ExitCode::SUCCESS
}
