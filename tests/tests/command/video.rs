//! Frames of a video: measured on a simulated phone and on this machine, checked, calibrated, replayed and streamed.

mod measured;
mod placements;
mod refusals;
mod replays;
mod streams;

use std::path::{Path, PathBuf};
use std::process::Command;

use layerlab_tests::scenes::scenes;
use layerlab_tests::{layerlab, model, succeed};
use tempfile::TempDir;

/// A folder with an evaluation set of so many of the committed scenes.
struct Place {
    folder: TempDir,
    set: PathBuf,
}

impl Place {
    fn new(images: u32) -> Place {
        let folder = tempfile::tempdir().expect("a folder");
        let set = scenes(folder.path(), images, &["--metric", "multi-label"]);
        Place { folder, set }
    }

    fn out(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Measures vocnet-mini's answers on a device.
    fn measure(&self, device: &str, name: &str, options: &[&str]) -> Command {
        let mut command = video("measure");
        command.arg("--model").arg(model("vocnet-mini"));
        command.arg("--set").arg(&self.set);
        command.args(["--device", device]).args(options);
        command.arg("--out").arg(self.out(name));
        command
    }

    /// A measured phone, and this machine as its server.
    fn phone_and_server(&self, options: &[&str]) -> (PathBuf, PathBuf) {
        succeed(&mut self.measure("mate10pro", "phone", options));
        succeed(&mut self.measure("host", "server", options));
        (self.out("phone"), self.out("server"))
    }
}

fn video(command: &str) -> Command {
    let mut layerlab = layerlab();
    layerlab.args(["video", command]);
    layerlab
}

/// The rows of a table by its columns' names.
fn rows(folder: &Path, file: &str) -> Vec<std::collections::HashMap<String, String>> {
    let mut reader = csv::Reader::from_path(folder.join(file)).expect("a table");
    let rows = reader.deserialize().map(|row| row.expect("a row"));
    rows.collect()
}
