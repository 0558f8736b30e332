//! Evaluation sets from images and what is said about them, by the real program; and whatever is wrong with them.

use std::path::{Path, PathBuf};
use std::process::Command;

use image::{Rgb, RgbImage};
use layerlab_profiles::accuracy::{
    Decoder, EvaluationSet, Metric, Resize, SsdOutputs, Truth, Values,
};
use layerlab_profiles::sha256;
use layerlab_tests::{file, layerlab, output, stderr, succeed};

use super::assert_fails;

const USAGE: i32 = 2;
const INPUT: i32 = 3;
const OUTPUT: i32 = 5;

const ANNOTATIONS: &str = r#"{
    "categories": [{"id": 2, "name": "dog"}, {"id": 1, "name": "cat"}],
    "images": [
        {"id": 1, "file_name": "one.png", "width": 8, "height": 4},
        {"id": 2, "file_name": "two.jpg", "width": 4, "height": 8}
    ],
    "annotations": [
        {"id": 1, "image_id": 1, "category_id": 2, "bbox": [2, 1, 4, 2], "iscrowd": 0},
        {"id": 2, "image_id": 2, "category_id": 1, "bbox": [0, 0, 4, 4], "iscrowd": 0},
        {"id": 3, "image_id": 2, "category_id": 2, "bbox": [0, 0, 4, 4], "iscrowd": 1}
    ]}"#;

/// A folder with two images and annotations of each kind, and a place for the set.
struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    fn new() -> Bench {
        let bench = Bench {
            folder: tempfile::tempdir().expect("a folder"),
        };
        for folder in ["images", "sets", "voc"] {
            std::fs::create_dir(bench.path(folder)).expect("a folder");
        }
        let save = |name: &str, width, height, colour| {
            let image = RgbImage::from_pixel(width, height, Rgb(colour));
            image.save(bench.path("images").join(name)).expect("room");
        };
        save("one.png", 8, 4, [1, 2, 3]);
        save("two.jpg", 4, 8, [128; 3]);
        bench.write("annotations.json", ANNOTATIONS);
        bench.write("labels.csv", "image,label\none.png,dog\ntwo.jpg,cat\n");
        let voc = "<annotation><filename>one.png</filename><size><width>8</width><height>4</height></size>
            <object><name>dog</name>
            <bndbox><xmin>3</xmin><ymin>2</ymin><xmax>6</xmax><ymax>3</ymax></bndbox></object></annotation>";
        bench.write("voc/one.xml", voc);
        bench
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, content).expect("room");
        path
    }

    /// `layerlab set` of 4 x 4 images by the file or folder that `option` names, judged by `metric`.
    fn set(&self, option: &str, name: &str, metric: &str) -> Command {
        let mut command = layerlab();
        command.arg("set").arg(option).arg(self.path(name));
        command.arg("--images").arg(self.path("images"));
        command.args(["--size", "4x4", "--metric", metric]);
        command.arg("--out").arg(self.out());
        command
    }

    fn out(&self) -> PathBuf {
        self.path("sets/pets.set")
    }

    fn read(&self) -> EvaluationSet {
        read(&self.out())
    }

    /// Runs `command`, which must fail with `code`, say one sentence with all of `words` in it, and write nothing.
    #[track_caller]
    fn fails(&self, command: &mut Command, code: i32, words: &[&str]) {
        assert_fails(&output(command), code, words);
        let left: Vec<_> = std::fs::read_dir(self.path("sets"))
            .expect("a folder")
            .collect();
        assert!(left.is_empty(), "left behind: {left:?}");
    }
}

fn read(path: &Path) -> EvaluationSet {
    let bytes = std::fs::read(path).expect("the set");
    EvaluationSet::from_bytes(&bytes).expect("a set")
}

#[test]
fn a_set_for_detection_and_what_is_said_about_it() {
    let bench = Bench::new();
    let mut command = bench.set("--coco", "annotations.json", "detection");
    let said = succeed(command.args(["--resize", "letterbox", "--channels", "bgr"]));
    let bytes = std::fs::read(bench.out()).expect("the set");
    let expected = format!(
        "pets: 2 images of 2 classes, 2 objects\neach 3x4x4 u8, {} bytes in all\nsha256 {}\n\
         1 annotations of crowds were left out\nWritten to {}\n",
        bytes.len(),
        sha256(&bytes),
        bench.out().display()
    );
    assert_eq!(said, expected);
    let set = bench.read();
    let Metric::Detection { grid, boxes, .. } = set.metric else {
        panic!("{:?}", set.metric);
    };
    assert_eq!((grid, boxes), (7, 2));
    assert_eq!(set.classes, ["cat", "dog"]);
    assert_eq!(set.preprocessing.resize, Resize::Letterbox);
    let Values::U8(values) = &set.values else {
        panic!("pixels as they are");
    };
    // Blue of the first image: a row of grey, two of the image, a row of grey.
    let rows = [[128; 4], [3; 4], [3; 4], [128; 4]].concat();
    assert_eq!(values[..16], rows);
    let Truth::Boxes(boxes) = &set.truths[0] else {
        panic!("{:?}", set.truths);
    };
    let object = &boxes[0];
    assert_eq!(
        (
            object.class,
            object.x,
            object.y,
            object.width,
            object.height
        ),
        (1, 0.25, 0.375, 0.5, 0.25)
    );
}

#[test]
fn the_same_from_pascal_voc_and_from_labels() {
    let bench = Bench::new();
    let mut command = bench.set("--voc", "voc", "detection");
    succeed(command.args(["--classes", "cat,dog", "--json"]));
    let voc = bench.read();
    let mut command = bench.set("--coco", "annotations.json", "detection");
    succeed(command.args(["--limit", "1", "--replace"]));
    assert_eq!(bench.read(), voc);
    let mut command = bench.set("--labels", "labels.csv", "top-1");
    succeed(command.args([
        "--mean",
        "1,2,3",
        "--scale",
        "-0.5",
        "--replace",
        "--name",
        "cats and dogs",
    ]));
    let set = bench.read();
    assert_eq!(set.name, "cats and dogs");
    assert_eq!(set.truths, [Truth::Labels(vec![1]), Truth::Labels(vec![0])]);
    let Values::F32(values) = &set.values else {
        panic!("fractions");
    };
    assert!(values[..48].iter().all(|value| *value == 0.0), "{values:?}");
    assert_eq!(values[48], -63.5);
    let mut command = bench.set("--coco", "annotations.json", "multi-label");
    let said = succeed(command.args(["--threshold", "0.25", "--replace", "--json"]));
    let said: serde_json::Value = serde_json::from_str(&said).expect("JSON");
    assert_eq!(said["images"], 2);
    assert_eq!(said["skipped_crowd"], 1);
    assert_eq!(said["metric"]["threshold"], 0.25);
    assert_eq!(bench.read().metric, Metric::MultiLabel { threshold: 0.25 });
}

#[test]
fn a_command_line_that_contradicts_itself() {
    let bench = Bench::new();
    let labels = |metric| bench.set("--labels", "labels.csv", metric);
    bench.fails(
        labels("top-1").args(["--grid", "7"]),
        USAGE,
        &["--grid", "detection"],
    );
    bench.fails(
        labels("top-1").args(["--threshold", "0.5"]),
        USAGE,
        &["--threshold", "multi-label"],
    );
    bench.fails(
        labels("top-1").args(["--mean", "1,2"]),
        USAGE,
        &["--mean", "2 values", "3 channels"],
    );
    bench.fails(labels("top-1").args(["--scale", "0"]), USAGE, &["--scale"]);
    bench.fails(
        labels("top-1").args(["--classes", "cat,cat"]),
        USAGE,
        &["--classes", "`cat`"],
    );
    bench.fails(
        &mut labels("detection"),
        USAGE,
        &["labels.csv", "--coco or --voc"],
    );
    bench.fails(
        labels("top-1").args(["--decoder", "yolo-v5"]),
        USAGE,
        &["--decoder", "detection", "leave it out"],
    );
    bench.fails(
        labels("detection").args(["--decoder", "yolo-v8", "--grid", "7"]),
        USAGE,
        &["--grid", "detection by yolo-v1"],
    );
    bench.fails(
        labels("detection").args(["--outputs", "scores-first"]),
        USAGE,
        &["--outputs", "--decoder ssd"],
    );
    bench.fails(
        labels("multi-label").args(["--threshold", "-0.5"]),
        USAGE,
        &["--threshold below 0", "verification"],
    );
    bench.fails(
        labels("top-1").args(["--calibrate", "m.onnx"]),
        USAGE,
        &["--calibrate", "verification"],
    );
    bench.fails(
        &mut labels("verification"),
        USAGE,
        &["--threshold", "--calibrate"],
    );
    bench.fails(
        labels("verification").args(["--threshold", "0.5"]),
        USAGE,
        &["labels.csv", "says nothing of pairs", "--pairs"],
    );
    let pairs = |metric| bench.set("--pairs", "pairs.txt", metric);
    bench.write("pairs.txt", "1\nAda\t1\t2\nAda\t1\tBo\t1\n");
    bench.fails(
        &mut pairs("top-1"),
        USAGE,
        &["pairs.txt", "--metric verification"],
    );
    bench.fails(
        labels("multi-label").args(["--answer-size", "4x4"]),
        USAGE,
        &["--answer-size", "pixel-accuracy"],
    );
    bench.fails(
        labels("pixel-accuracy").args(["--threshold", "0.5"]),
        USAGE,
        &["--threshold", "leave it out"],
    );
    bench.fails(
        &mut labels("pixel-accuracy"),
        USAGE,
        &["labels.csv", "--masks"],
    );
    bench.fails(
        &mut bench.set("--masks", "images", "pixel-accuracy"),
        USAGE,
        &["images", "--classes"],
    );
    bench.fails(
        &mut bench.set("--masks", "images", "top-1"),
        USAGE,
        &["images", "--metric pixel-accuracy"],
    );
    // What clap itself refuses takes it more than a sentence.
    for options in [
        ["--threshold", "-2"],
        ["--pairs", "pairs.txt"],
        ["--size", "4"],
        ["--size", "0x4"],
        ["--coco", "a.json"],
        ["--match", "2"],
    ] {
        let refused = output(labels("top-1").args(options));
        assert_eq!(refused.status.code(), Some(USAGE), "{}", stderr(&refused));
    }
}

#[test]
fn images_and_annotations_that_cannot_be_used() {
    let bench = Bench::new();
    bench.write("images/text.png", "no image");
    bench.write("secret.png", "not below the folder of images");
    bench.write("no.json", "{}");
    bench.write("cut.json", &ANNOTATIONS[..200]);
    bench.write("no.csv", "image,label\n");
    bench.write(
        "escapes.csv",
        "image,label\none.png,cat\n../secret.png,dog\n",
    );
    bench.write("missing.csv", "image,label\none.png,cat\nthree.png,dog\n");
    bench.write("text.csv", "image,label\none.png,cat\ntext.png,dog\n");
    bench.write("twice.csv", "image,label\none.png,cat\none.png,dog\n");
    bench.write("empty-box.json", ANNOTATIONS.replace("4, 2]", "0, 2]"));
    bench.write(
        "category.json",
        ANNOTATIONS.replace("\"category_id\": 1", "\"category_id\": 6"),
    );
    let cases: [(&str, &str, &str, &[&str]); 11] = [
        (
            "--coco",
            "absent.json",
            "detection",
            &["absent.json", "check the path"],
        ),
        ("--coco", "no.json", "detection", &["no.json", "images"]),
        ("--coco", "cut.json", "detection", &["cut.json", "line"]),
        (
            "--coco",
            "empty-box.json",
            "detection",
            &["annotation 1", "no width", "correct or remove"],
        ),
        (
            "--coco",
            "category.json",
            "detection",
            &["annotation 2", "category 6"],
        ),
        (
            "--voc",
            "images",
            "detection",
            &["images", "names no images"],
        ),
        (
            "--labels",
            "no.csv",
            "multi-label",
            &["no.csv", "names no images"],
        ),
        (
            "--labels",
            "escapes.csv",
            "multi-label",
            &["line 3", "../secret.png", "without `..`"],
        ),
        (
            "--labels",
            "missing.csv",
            "multi-label",
            &["line 3", "three.png", "--images"],
        ),
        (
            "--labels",
            "text.csv",
            "multi-label",
            &["line 3", "text.png", "no sound JPEG or PNG"],
        ),
        (
            "--labels",
            "twice.csv",
            "multi-label",
            &["line 3", "line 2", "one.png"],
        ),
    ];
    for (option, name, metric, words) in cases {
        bench.fails(&mut bench.set(option, name, metric), INPUT, words);
    }
    let missing = "1\nAda\t1\t2\nAda\t1\tBo\t1\n";
    for (text, words) in [
        ("1\nAda\t1\n", ["line 2", "correct or remove"]),
        (missing, ["line 2", "Ada_0001.jpg"]),
        ("2\t300\nAda\t1\t2\n", ["1200 pairs", "has 1:"]),
    ] {
        bench.write("pairs.txt", text);
        let mut command = bench.set("--pairs", "pairs.txt", "verification");
        bench.fails(command.args(["--threshold", "0.5"]), INPUT, &words);
    }
    let model = layerlab_tests::model("face").display().to_string();
    bench.write(
        "same.txt",
        "2\nAda\t1\t2\nAda\t1\t2\nAda\t1\t2\nAda\t1\t2\n",
    );
    std::fs::create_dir(bench.path("images/Ada")).expect("a folder");
    for number in 1..=2 {
        let image = RgbImage::from_pixel(4, 4, Rgb([number; 3]));
        let file = format!("images/Ada/Ada_000{number}.jpg");
        image.save(bench.path(&file)).expect("room");
    }
    let calibrated = |size: &str| {
        let mut command = layerlab();
        command
            .arg("set")
            .arg("--pairs")
            .arg(bench.path("same.txt"));
        command.arg("--images").arg(bench.path("images"));
        command.args(["--size", size, "--metric", "verification"]);
        command.args(["--calibrate", &model]);
        command.arg("--out").arg(bench.out());
        command
    };
    let (other, same) = (["1x3x32x32", "1x3x4x4"], ["2 pairs", "both kinds"]);
    bench.fails(&mut calibrated("4x4"), INPUT, &other);
    bench.fails(&mut calibrated("32x32"), INPUT, &same);
}

#[test]
fn priors_are_read_from_a_file_and_kept_in_the_set() {
    let bench = Bench::new();
    let ssd = |priors: &str| {
        bench.write("priors.json", priors);
        let mut command = bench.set("--coco", "annotations.json", "detection");
        command.args(["--decoder", "ssd", "--outputs", "scores-first"]);
        command.arg("--priors").arg(bench.path("priors.json"));
        command
    };
    let good = r#"{"centre_variance": 0.1, "size_variance": 0.2,
        "grids": [{"columns": 2, "rows": 3, "sizes": [[0.5, 0.25]]}]}"#;
    bench.fails(
        &mut ssd(&good.replace("0.25", "0")),
        INPUT,
        &["priors.json", "size", "not above 0", "correct it"],
    );
    bench.fails(
        &mut ssd(&good.replace("rows", "lines")),
        INPUT,
        &["priors.json", "lines", "docs/method.md"],
    );
    std::fs::remove_file(bench.path("priors.json")).expect("it was there");
    let mut absent = bench.set("--coco", "annotations.json", "detection");
    absent.args(["--decoder", "ssd", "--priors", "priors.json"]);
    bench.fails(&mut absent, INPUT, &["priors.json", "check the path"]);
    succeed(&mut ssd(good));
    let Metric::DecodedDetection {
        decoder,
        threshold,
        suppress_above,
        match_at_least,
    } = bench.read().metric
    else {
        panic!("{:?}", bench.read().metric);
    };
    assert_eq!(
        (threshold, suppress_above, match_at_least),
        (0.25, 0.5, 0.5)
    );
    let Decoder::Ssd {
        outputs,
        priors: Some(priors),
    } = decoder
    else {
        panic!("{decoder:?}");
    };
    assert_eq!(outputs, SsdOutputs::ScoresFirst);
    assert_eq!(priors.grids[0].sizes, [[0.5, 0.25]]);
}

#[test]
fn a_place_that_cannot_be_written() {
    let bench = Bench::new();
    let precious = bench.write("thesis.txt", "precious");
    let of = |out: &Path, options: &[&str]| {
        let mut command = layerlab();
        command
            .arg("set")
            .arg("--labels")
            .arg(bench.path("labels.csv"));
        command.arg("--images").arg(bench.path("images"));
        command
            .args(["--size", "4x4", "--metric", "top-1", "--out"])
            .arg(out);
        command.args(options);
        command
    };
    bench.fails(
        &mut of(&precious, &[]),
        OUTPUT,
        &["thesis.txt", "--replace"],
    );
    bench.fails(
        &mut of(&precious.join("set"), &[]),
        OUTPUT,
        &["thesis.txt", "--out"],
    );
    bench.fails(
        &mut of(&bench.path("images"), &["--replace"]),
        OUTPUT,
        &["images", "--out"],
    );
    assert_eq!(
        std::fs::read_to_string(&precious).expect("kept"),
        "precious"
    );
}

/// What three kinds of annotations say of the same thousand pictures.
#[test]
fn the_scenes_of_the_trained_models_are_the_same_from_all_formats() {
    let scenes = file("models/scenes");
    let folder = tempfile::tempdir().expect("a folder");
    let set = |annotations: [&str; 2], options: &[&str]| {
        let out = folder.path().join("scenes.set");
        let [option, name] = annotations;
        let mut command = layerlab();
        command.arg("set").arg(option).arg(scenes.join(name));
        command.arg("--images").arg(scenes.join("images"));
        command
            .args(["--size", "112x112", "--replace", "--out"])
            .arg(&out);
        succeed(command.args(options));
        read(&out)
    };
    let coco = ["--coco", "annotations.json"];
    let boxes = set(coco, &["--metric", "detection"]);
    assert_eq!((boxes.answers(), boxes.classes.len()), (1000, 20));
    let classes = boxes.classes.join(",");
    let labels = set(coco, &["--metric", "multi-label"]);
    let from_csv = ["--metric", "multi-label", "--classes", &classes];
    assert_eq!(set(["--labels", "labels.csv"], &from_csv), labels);
    let first_ten = set(coco, &["--metric", "detection", "--limit", "10"]);
    let from_voc = ["--metric", "detection", "--classes", &classes];
    assert_eq!(set(["--voc", "voc/Annotations"], &from_voc), first_ten);
}
