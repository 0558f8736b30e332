//! Tensors that cross cuts: compressed on this machine and on a simulated phone, checked, and refused.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use layerlab_tests::scenes::scenes;
use layerlab_tests::{layerlab, model, output, stderr, succeed};
use tempfile::TempDir;

use super::assert_fails;

const INPUT: i32 = 3;
const OUTPUT: i32 = 5;
const CHECK: i32 = 6;

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

    fn measure(&self, network: &Path, device: &str, name: &str, options: &[&str]) -> Command {
        let mut command = tensors("measure");
        command.arg("--model").arg(network);
        command.arg("--set").arg(&self.set);
        command.args(["--device", device]).args(options);
        command.arg("--out").arg(self.out(name));
        command
    }
}

fn tensors(command: &str) -> Command {
    let mut layerlab = layerlab();
    layerlab.args(["tensors", command]);
    layerlab
}

type Row = HashMap<String, String>;

fn rows(folder: &Path, file: &str) -> Vec<Row> {
    let mut reader = csv::Reader::from_path(folder.join(file)).expect("a table");
    reader
        .deserialize()
        .map(|row| row.expect("a row"))
        .collect()
}

fn number(row: &Row, column: &str) -> f64 {
    let text = &row[column];
    text.parse()
        .unwrap_or_else(|_| panic!("{column} is {text}"))
}

#[test]
fn the_tensors_of_a_trained_network_are_compressed_on_this_machine() {
    let place = Place::new(12);
    let said = succeed(&mut place.measure(&model("vocnet-mini"), "host", "host", &[]));
    for words in [
        "vocnet-mini on cpu",
        "12 pictures",
        "u8-png",
        "95 % interval",
    ] {
        assert!(said.contains(words), "`{words}` is missing in: {said}");
    }
    assert!(!said.contains("SIMULATED"), "{said}");
    let folder = place.out("host");
    let checked = succeed(tensors("check").arg(&folder));
    assert!(checked.contains("0 warnings"), "{checked}");

    let table = rows(&folder, "tensors.csv");
    let json = fs::read_to_string(folder.join("tensors.json")).expect("a file");
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["timed"], "device");
    // What fully connected layers give is named, and left out.
    let described = json["tensors"].as_array().expect("tensors");
    let left_out: Vec<_> = described
        .iter()
        .filter(|it| it["left_out"] == "one-axis")
        .collect();
    assert!(!left_out.is_empty());
    for tensor in left_out {
        assert!(table.iter().all(|row| row["tensor"] != tensor["tensor"]));
    }
    for row in &table {
        assert_eq!((&*row["origin"], &*row["pictures"]), ("derived", "12"));
        let elements = number(row, "bytes") / 4.0;
        let packed = number(row, "compressed_bytes");
        assert!(number(row, "compress_ns") > 0.0 && number(row, "decompress_ns") > 0.0);
        assert!(number(row, "zero_code_share") >= number(row, "zero_share"));
        assert!(number(row, "compressed_ci95_low_bytes") <= packed);
        match &*row["codec"] {
            "u8" => assert_eq!(packed, elements + 5.0),
            // Pictures without a border beside the objects become smaller; numbers that look random may not.
            "u8-png" => assert!(number(row, "ratio_to_8_bits") > 0.9, "{row:?}"),
            _ => assert!(packed < number(row, "bytes") * 1.1, "{row:?}"),
        }
    }
    // Pixels are whole numbers from 0 to 255: 8 bits hold the input almost as it is, and the answers to it.
    let accuracy = rows(&folder, "crossing_accuracy.csv");
    let at_input = &accuracy[0];
    assert_eq!((&*at_input["cut"], &*at_input["pictures"]), ("0", "12"));
    assert!(number(at_input, "changed_answers") <= 1.0, "{at_input:?}");
    for row in &accuracy {
        let loss = number(row, "score_32_bits") - number(row, "score");
        assert!((number(row, "loss") - loss).abs() < 1e-12);
        assert!(number(row, "loss_ci95_low") < number(row, "loss_ci95_high"));
    }

    let taken = output(&mut place.measure(&model("vocnet-mini"), "host", "host", &[]));
    assert_fails(&taken, OUTPUT, &["exists already", "--replace"]);
}

/// A simulated phone computes as this machine does: sizes are the same, and nothing is timed.
#[test]
fn no_time_of_this_machine_is_told_as_a_simulated_phones() {
    let place = Place::new(7);
    let options = ["--codecs", "u8-png,f32-lz4", "--processor", "cpu"];
    let network = model("vocnet-mini");
    let said = succeed(&mut place.measure(&network, "mate10pro", "phone", &options));
    for words in ["SIMULATED", "Nothing was timed"] {
        assert!(said.contains(words), "`{words}` is missing in: {said}");
    }
    let (folder, host) = (place.out("phone"), place.out("host"));
    succeed(tensors("check").arg(&folder));
    succeed(&mut place.measure(&network, "host", "host", &options[..2]));
    let samples = rows(&folder, "tensor_samples.csv");
    assert!(!samples.is_empty());
    for row in &samples {
        assert_eq!(
            (
                &*row["compress_ns"],
                &*row["decompress_ns"],
                &*row["origin"]
            ),
            ("", "", "simulated")
        );
    }
    // Additions in another order differ in the last bit, and then a byte or two.
    for (here, there) in rows(&host, "tensors.csv")
        .iter()
        .zip(rows(&folder, "tensors.csv"))
    {
        let (one, other) = (
            number(here, "compressed_bytes"),
            number(&there, "compressed_bytes"),
        );
        assert!((one / other - 1.0).abs() < 0.02, "{here:?} {there:?}");
        assert_eq!(
            (&here["codec"], &*there["compress_ns"]),
            (&there["codec"], "")
        );
    }
}

#[test]
fn one_changed_number_is_refused() {
    let place = Place::new(6);
    let options = ["--codecs", "u8-png", "--sizes-only"];
    succeed(&mut place.measure(&model("vocnet-mini"), "host", "out", &options));
    let folder = place.out("out");
    assert!(rows(&folder, "crossing_accuracy.csv").is_empty());
    let check = |more: &[&str]| output(tensors("check").arg(&folder).args(more));
    let table = folder.join("tensors.csv");
    let before = fs::read_to_string(&table).expect("a table");
    let row = &rows(&folder, "tensors.csv")[0];
    let bytes = &row["compressed_bytes"];
    let changed = before.replacen(&format!(",6,{bytes},"), ",6,1,", 1);
    assert_ne!(changed, before);
    fs::write(&table, changed).expect("room");
    assert_fails(&check(&[]), CHECK, &["contradicts itself", "errors"]);
    let findings = String::from_utf8(check(&["--json"]).stdout).expect("UTF-8");
    for words in ["tensors.csv was changed", "tensors.csv does not follow"] {
        assert!(findings.contains(words), "{findings}");
    }
    fs::write(&table, before).expect("room");
    succeed(tensors("check").arg(&folder));
    fs::remove_file(folder.join("tensor_samples.csv")).expect("there");
    assert_fails(&check(&[]), INPUT, &["tensor_samples.csv"]);
    let nothing = output(tensors("check").arg(place.out("nothing")));
    assert_fails(&nothing, INPUT, &["tensors.json"]);
}

#[test]
fn what_cannot_be_compressed_is_not_begun() {
    let place = Place::new(4);
    let vocnet = model("vocnet-mini");
    let fails = |command: &mut Command, code, words: &[&str]| {
        assert_fails(&output(command), code, words);
        assert!(!place.out("out").exists());
    };
    let usage = |command: &mut Command, word: &str| {
        let output = output(command);
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains(word), "{}", stderr(&output));
    };
    usage(
        &mut place.measure(&vocnet, "host", "out", &["--codecs", "gif"]),
        "no codec `gif`, but u8, u8-png",
    );
    let mut no_set = tensors("measure");
    no_set
        .arg("--model")
        .arg(&vocnet)
        .args(["--device", "host", "--out"]);
    usage(no_set.arg(place.out("out")), "--set");
    fails(
        &mut place.measure(&vocnet, "host", "out", &["--pictures", "5"]),
        INPUT,
        &["has 4 pictures", "5 cannot be answered"],
    );
    fails(
        &mut place.measure(&vocnet, "host", "out", &["--processor", "tpu"]),
        INPUT,
        &["no processor `tpu`"],
    );
    fails(
        &mut place.measure(&model("vgg16"), "host", "out", &[]),
        INPUT,
        &["the shape [3, 112, 112]", "vgg16 takes [[1, 3, 64, 64]]"],
    );
    fails(
        &mut place.measure(&model("yolo-mini"), "host", "out", &[]),
        INPUT,
        &["answers with 1470 values", "--sizes-only"],
    );
    // Of one pixel, every feature map is what a fully connected layer gives.
    let one_pixel = ["--dim", "H=1", "--dim", "W=1"];
    fails(
        &mut place.measure(&model("variants/symbolic-size"), "host", "out", &one_pixel),
        INPUT,
        &["no tensor of symbolic-size", "fully connected"],
    );
    let mut missing = tensors("measure");
    missing
        .arg("--model")
        .arg(&vocnet)
        .args(["--device", "host", "--set"]);
    missing.arg(place.out("no.set")).arg("--out");
    fails(missing.arg(place.out("out")), INPUT, &["no.set"]);
}
