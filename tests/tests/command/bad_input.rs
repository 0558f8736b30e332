//! Whatever is wrong with the input gives one clear sentence that names the thing, its own exit code,
//! and leaves nothing half-written.

use std::path::{Path, PathBuf};
use std::process::Command;

use layerlab_tests::small_disk::small_disk;
use layerlab_tests::{FEW, device, layerlab, model, output, profile, succeed};

use super::assert_fails;

const INPUT: i32 = 3;
const DEVICE: i32 = 4;
const OUTPUT: i32 = 5;
const CHECK: i32 = 6;

/// A folder with a good model and a good device in it, and a place for the profile.
struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    fn new() -> Bench {
        Bench::on(&std::env::temp_dir())
    }

    fn on(disk: &Path) -> Bench {
        let folder = tempfile::tempdir_in(disk).expect("a folder");
        std::fs::create_dir(folder.path().join("published")).expect("a folder");
        Bench { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, content).expect("room");
        path
    }

    fn profile(&self, model: &Path, device: &Path) -> Command {
        let mut command = layerlab();
        let out = self.path("published/profile");
        profile(&mut command, FEW, model, device, &out);
        command
    }

    /// Runs `command`, which must fail with `code`, say one sentence with all of `words` in it, and
    /// leave nothing where the profile should be.
    #[track_caller]
    fn fails(&self, command: &mut Command, code: i32, words: &[&str]) {
        assert_fails(&output(command), code, words);
        let left: Vec<_> = std::fs::read_dir(self.path("published"))
            .expect("a folder")
            .collect();
        assert!(left.is_empty(), "left behind: {left:?}");
    }
}

fn alexnet() -> PathBuf {
    model("alexnet")
}

fn symmetric() -> PathBuf {
    device("symmetric-exact")
}

#[test]
fn a_model_that_cannot_be_used() {
    let bench = Bench::new();
    let whole = std::fs::read(alexnet()).expect("the model");
    let text = bench.write("text.onnx", "this is no model\n");
    let truncated = bench.write("truncated.onnx", &whole[..whole.len() / 2]);
    let empty = bench.write("empty.onnx", "");
    let cases: [(PathBuf, &[&str]); 7] = [
        (bench.path("absent.onnx"), &["absent.onnx"]),
        (text, &["text.onnx"]),
        (truncated, &["truncated.onnx"]),
        (empty, &["empty.onnx"]),
        (model("variants/unknown-operator"), &["Swirl"]),
        (model("variants/symbolic-size"), &["--dim", "H"]),
        (model("variants/no-layers"), &["no-layers"]),
    ];
    for (model, words) in cases {
        bench.fails(&mut bench.profile(&model, &symmetric()), INPUT, words);
    }
}

#[test]
fn a_dimension_that_the_model_does_not_have() {
    let bench = Bench::new();
    let model = model("variants/symbolic-size");
    let mut command = bench.profile(&model, &symmetric());
    bench.fails(
        command.args(["--dim", "H=8", "--dim", "Q=8"]),
        INPUT,
        &["Q", "W"],
    );
}

#[test]
fn a_device_that_cannot_be_used() {
    let bench = Bench::new();
    let good = std::fs::read_to_string(symmetric()).expect("the device");
    let field = "convolution_flop_per_s = 1e9";
    assert!(good.contains(field));
    let missing = bench.write("missing.toml", good.replacen(field, "", 1));
    let negative = bench.write(
        "negative.toml",
        good.replacen(field, "convolution_flop_per_s = -1.0", 1),
    );
    let unknown = bench.write("unknown.toml", format!("colour = \"red\"\n{good}"));
    for device in [&missing, &negative] {
        let name = device
            .file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        let words = [name.as_str(), "convolution_flop_per_s"];
        bench.fails(&mut bench.profile(&alexnet(), device), INPUT, &words);
    }
    bench.fails(
        &mut bench.profile(&alexnet(), &unknown),
        INPUT,
        &["unknown.toml", "colour"],
    );
    bench.fails(
        &mut bench.profile(&alexnet(), &bench.path("absent.toml")),
        INPUT,
        &["absent.toml"],
    );
    bench.fails(
        &mut bench.profile(&alexnet(), Path::new("mate20")),
        INPUT,
        &["mate20", "devices"],
    );
}

#[test]
fn an_output_folder_that_exists() {
    let bench = Bench::new();
    let existing = bench.path("existing");
    std::fs::create_dir(&existing).expect("a folder");
    std::fs::write(existing.join("thesis.txt"), "precious").expect("room");
    let mut command = layerlab();
    bench.fails(
        profile(&mut command, FEW, alexnet(), symmetric(), &existing),
        OUTPUT,
        &["existing", "--replace"],
    );
    assert_eq!(
        std::fs::read_to_string(existing.join("thesis.txt")).expect("kept"),
        "precious"
    );
}

#[test]
fn an_output_folder_that_cannot_be_made() {
    let bench = Bench::new();
    let file = bench.write("file", "");
    let mut command = layerlab();
    bench.fails(
        profile(
            &mut command,
            FEW,
            alexnet(),
            symmetric(),
            &file.join("profile"),
        ),
        OUTPUT,
        &["file", "--out"],
    );
}

/// A file system of a few pages.
#[test]
fn an_output_folder_on_a_full_disk() {
    let Some(disk) = small_disk("32k", "bad_input::an_output_folder_on_a_full_disk") else {
        return;
    };
    let bench = Bench::on(&disk);
    bench.fails(
        &mut bench.profile(&alexnet(), &symmetric()),
        OUTPUT,
        &["cannot write", "nothing was published"],
    );
}

#[test]
fn an_agent_that_is_none() {
    let bench = Bench::new();
    let cases = [
        ("dies", "the runtime's licence has expired"),
        ("version", "version 7"),
        ("hello-of-version", "version 7"),
        ("nonsense", "not a message"),
    ];
    for (behaviour, word) in cases {
        let mut command = bench.profile(&alexnet(), &symmetric());
        command
            .arg("--agent")
            .arg(env!("CARGO_BIN_EXE_fake-agent"))
            .env("LAYERLAB_FAKE", behaviour);
        bench.fails(&mut command, DEVICE, &[word]);
    }
    let mut command = bench.profile(&alexnet(), &symmetric());
    bench.fails(
        command.args(["--agent", "/nowhere/agent"]),
        DEVICE,
        &["/nowhere/agent", "--agent"],
    );
}

#[test]
fn a_profile_that_is_none_or_contradicts_itself() {
    let bench = Bench::new();
    for command in ["check", "show"] {
        assert_fails(
            &output(layerlab().arg(command).arg(bench.path("absent"))),
            INPUT,
            &["absent"],
        );
    }
    let published = bench.path("good");
    let mut command = layerlab();
    succeed(profile(
        &mut command,
        FEW,
        alexnet(),
        symmetric(),
        &published,
    ));
    let times = std::fs::read_to_string(published.join("times.csv")).expect("times");
    let contradiction = times.replacen(",robust,", ",differencing,", 1);
    assert_ne!(contradiction, times);
    std::fs::write(published.join("times.csv"), contradiction).expect("room");
    let checked = output(layerlab().arg("check").arg(&published));
    assert_fails(&checked, CHECK, &["contradicts itself"]);
}
