//! Pairs of images, detectors after YOLO's first version, and classes of pixels, from the images to the published score, by the real programs on a
//! simulated device. The scores are compared with what is calculated here from the network's own answers, and with what follows
//! from the answers that are kept.

use std::path::{Path, PathBuf};
use std::process::Command;

use image::{GrayImage, ImageFormat, Luma, Rgb, RgbImage};
use layerlab_campaign::ModelFile;
use layerlab_model::answers;
use layerlab_profiles::accuracy::{EvaluationSet, Metric, Truth};
use layerlab_profiles::sha256;
use layerlab_tests::{device, layerlab, model, output, stderr, succeed};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

const INPUT: i32 = 3;
const OUTPUT: i32 = 5;

/// A folder for images, annotations and a set.
struct Bench(tempfile::TempDir);

impl Bench {
    fn new() -> Bench {
        Bench(tempfile::tempdir().expect("a folder"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// `layerlab set` of images of this size.
    fn make_set(&self, size: &str, options: &[&str]) -> String {
        let mut command = layerlab();
        command.arg("set").arg("--images").arg(self.0.path());
        command.args(["--size", size]).args(options);
        succeed(command.arg("--out").arg(self.path("a.set")))
    }

    fn set(&self) -> EvaluationSet {
        let bytes = std::fs::read(self.path("a.set")).expect("the set");
        EvaluationSet::from_bytes(&bytes).expect("a set")
    }

    /// `layerlab evaluate` of all layers on the accelerator.
    fn evaluate(&self, name: &str, layers: usize) -> Command {
        let mut command = layerlab();
        command.arg("evaluate").arg("--model").arg(model(name));
        command.arg("--device").arg(device("oneplus7"));
        command.arg("--set").arg(self.path("a.set"));
        command.args(["--combination", &"1".repeat(layers), "--json"]);
        command
    }

    /// The scores of all layers on the CPU, and of all on the accelerator, of which the answers are kept.
    fn scores(&self, name: &str, layers: usize) -> [f64; 2] {
        let all = "1".repeat(layers);
        let mut command = self.evaluate(name, layers);
        command.arg("--keep-answers").arg(self.path("kept"));
        let said = succeed(&mut command);
        let said: Value = serde_json::from_str(&said).expect("JSON");
        let score = |combination: &str| {
            let rows = said["combinations"].as_array().expect("rows");
            let row = rows.iter().find(|row| row["combination"] == combination);
            row.expect("a row")["score"].as_f64().expect("a score")
        };
        [score(&"0".repeat(layers)), score(&all)]
    }
}

/// The answers that were kept: by placement, by place in the set, of all images of the answer. The set's places are all there.
fn kept(bench: &Bench, name: &str, answers: usize) -> [Vec<Vec<f32>>; 2] {
    let read = |file| std::fs::read(bench.path("kept").join(file)).expect("it was kept");
    let (npy, header) = (read("answers.npy"), read("answers.json"));
    let header: Value = serde_json::from_slice(&header).expect("JSON");
    assert_eq!(header["sha256"], sha256(&npy));
    assert_eq!(header["model"], name);
    assert_eq!(header["device"]["simulated"], true);
    assert_eq!(header["evaluation"]["set"], "a");
    assert_eq!(header["answers"], json!((0..answers).collect::<Vec<_>>()));
    assert_eq!(header["placements"].as_array().map(Vec::len), Some(2));
    let data = 10 + usize::from(u16::from_le_bytes([npy[8], npy[9]]));
    let text = String::from_utf8_lossy(&npy[10..data]).into_owned();
    let values = (npy.len() - data) / 4 / 2 / answers;
    let shape = format!("'shape': (2, {answers}, {values}), }}");
    assert!(text.contains(&shape) && data % 64 == 0, "{text}");
    let number = |four: &[u8]| f32::from_le_bytes(four.try_into().expect("four"));
    let all: Vec<f32> = npy[data..].chunks_exact(4).map(number).collect();
    let mut placements = all.chunks_exact(answers * values).map(|placement| {
        let answers = placement.chunks_exact(values);
        answers.map(<[f32]>::to_vec).collect()
    });
    [0, 1].map(|_| placements.next().expect("two placements"))
}

fn open(name: &str) -> ModelFile {
    ModelFile::open(&model(name), &Default::default()).expect("a model")
}

/// A picture of blocks, of colours that `person` has in common, and of noise.
fn picture(side: u32, person: u64, noise: &mut impl Rng) -> RgbImage {
    let mut colours = ChaCha8Rng::seed_from_u64(person);
    let blocks: Vec<[u8; 3]> = (0..64).map(|_| colours.random()).collect();
    RgbImage::from_fn(side, side, |x, y| {
        let block = blocks[(y * 8 / side * 8 + x * 8 / side) as usize];
        Rgb(block.map(|colour| colour.saturating_add(noise.random_range(0..110))))
    })
}

const PEOPLE: [&str; 8] = ["Ada", "Bo", "Cy", "Di", "Ed", "Flo", "Gus", "Hal"];

/// Four images of each of eight people, and two folds of twelve pairs of each kind, of four people each.
fn pairs(bench: &Bench) -> PathBuf {
    let mut random = ChaCha8Rng::seed_from_u64(1);
    for (person, name) in (0..).zip(PEOPLE) {
        std::fs::create_dir(bench.path(name)).expect("a folder");
        for number in 1..=4 {
            let file = bench.path(name).join(format!("{name}_000{number}.jpg"));
            // What a file is called says nothing about what it is; PNG keeps the pixels.
            let picture = picture(32, person, &mut random);
            picture
                .save_with_format(file, ImageFormat::Png)
                .expect("room");
        }
    }
    let mut text = "2\t12\n".to_owned();
    for people in PEOPLE.chunks(4) {
        for name in people {
            for (one, other) in [(1, 2), (1, 3), (2, 4)] {
                text += &format!("{name}\t{one}\t{other}\n");
            }
        }
        for (place, name) in people.iter().enumerate() {
            for next in 1..4 {
                let other = people[(place + next) % 4];
                text += &format!("{name}\t{next}\t{other}\t4\n");
            }
        }
    }
    let path = bench.path("pairs.txt");
    std::fs::write(&path, text).expect("room");
    path
}

/// What `name` answers to the images of each answer, one after the other.
fn given(name: &str, set: &EvaluationSet) -> Vec<Vec<f32>> {
    let network = open(name).network;
    let all = (0..set.answers()).map(|answer| {
        let given = answers(&network, set.images(answer)).expect("answers");
        given.concat()
    });
    all.collect()
}

/// The cosine between the answers to each pair, and whether it shows the same person.
fn cosines(given: &[Vec<f32>], set: &EvaluationSet) -> Vec<(f64, bool)> {
    let product = |a: &[f32], b: &[f32]| -> f64 {
        let products = a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b));
        products.sum()
    };
    let pairs = given.iter().zip(&set.truths).map(|(both, truth)| {
        let (one, other) = both.split_at(both.len() / 2);
        let lengths = product(one, one).sqrt() * product(other, other).sqrt();
        (product(one, other) / lengths, *truth == Truth::Same(true))
    });
    pairs.collect()
}

/// How many pairs a threshold is right about.
fn right(cosines: &[(f64, bool)], threshold: f64) -> usize {
    let right = cosines
        .iter()
        .filter(|(cosine, same)| (*cosine >= threshold) == *same);
    right.count()
}

#[test]
fn a_threshold_is_chosen_on_one_half_of_the_pairs_and_judged_on_the_other() {
    let bench = Bench::new();
    let file = pairs(&bench).display().to_string();
    let verification = ["--pairs", &file, "--metric", "verification"];
    bench.make_set(
        "32x32",
        &[&verification[..], &["--threshold", "-0.5"]].concat(),
    );
    let all = bench.set();
    assert_eq!((all.answers(), all.image_count()), (48, 32));
    assert_eq!(all.metric, Metric::Verification { threshold: -0.5 });
    let all = cosines(&given("face", &all), &all);

    let face = model("face").display().to_string();
    let calibrate = ["--calibrate", &face, "--replace", "--json"];
    let said = bench.make_set("32x32", &[&verification[..], &calibrate].concat());
    let said: Value = serde_json::from_str(&said).expect("JSON");
    let set = bench.set();
    assert_eq!((set.answers(), set.image_count()), (24, 16));
    let Metric::Verification { threshold } = set.metric else {
        panic!("{:?}", set.metric);
    };
    let threshold = f64::from(threshold);
    let chosen = right(&all[..24], threshold);
    let others = (-1000..=1000).map(|step| right(&all[..24], f64::from(step) / 1000.0));
    assert_eq!(Some(chosen), others.max(), "at {threshold}");
    assert_eq!(said["calibration"]["pairs"], 24);
    assert_eq!(said["calibration"]["right"], chosen);
    assert_eq!(said["calibration"]["model"], "face");

    let judged = given("face", &set);
    assert_eq!(cosines(&judged, &set), all[24..]);
    let [on_cpu, on_npu] = bench.scores("face", 7);
    let expected = right(&all[24..], threshold) as f64 / 24.0;
    assert!((on_cpu - expected).abs() < 1e-6, "{on_cpu} and {expected}");
    assert!(on_cpu > 0.6, "the pairs can be told apart: {on_cpu}");
    let [of_cpu, of_npu] = kept(&bench, "face", 24);
    assert_eq!(of_cpu, judged);
    let expected = right(&cosines(&of_npu, &set), threshold) as f64 / 24.0;
    assert!((on_npu - expected).abs() < 1e-6, "{on_npu} and {expected}");

    // What is there is not replaced, and nothing is measured.
    let mut again = bench.evaluate("face", 7);
    let again = output(again.arg("--keep-answers").arg(bench.path("kept")));
    assert_eq!(again.status.code(), Some(OUTPUT), "{}", stderr(&again));
    assert!(stderr(&again).contains("kept"), "{}", stderr(&again));
}

/// Twenty pictures with three boxes each.
fn scenes(bench: &Bench) -> PathBuf {
    let mut random = ChaCha8Rng::seed_from_u64(2);
    let (mut images, mut annotations) = (Vec::new(), Vec::new());
    for id in 0..20_u64 {
        let name = format!("{id}.png");
        let drawn = picture(64, 100 + id, &mut random);
        drawn.save(bench.path(&name)).expect("room");
        images.push(json!({"id": id, "file_name": name, "width": 64, "height": 64}));
        for _ in 0..3 {
            let [width, height] = [0; 2].map(|_: i32| random.random_range(28..40));
            let [x, y] = [width, height].map(|side| random.random_range(0..64 - side));
            annotations.push(json!({
                "id": annotations.len(), "image_id": id, "category_id": random.random_range(1..=3),
                "bbox": [x, y, width, height], "iscrowd": 0,
            }));
        }
    }
    let categories = [1, 2, 3].map(|id| json!({"id": id, "name": format!("class {id}")}));
    let file = json!({"images": images, "annotations": annotations, "categories": categories});
    let path = bench.path("annotations.json");
    std::fs::write(&path, file.to_string()).expect("room");
    path
}

const CLASSES: usize = 3;

/// Left, top, right and bottom.
type Corners = [f64; 4];

fn overlap(a: Corners, b: Corners) -> f64 {
    let area =
        |[left, top, right, bottom]: Corners| (right - left).max(0.0) * (bottom - top).max(0.0);
    let both = [
        a[0].max(b[0]),
        a[1].max(b[1]),
        a[2].min(b[2]),
        a[3].min(b[3]),
    ];
    area(both) / (area(a) + area(b) - area(both))
}

/// Hits, and what was found and what was there, of one answer of 1 x (4 + classes) x N.
fn found(answer: &[f32], truth: &Truth, [threshold, suppress, least]: [f64; 3]) -> [usize; 3] {
    let Truth::Boxes(objects) = truth else {
        panic!("boxes");
    };
    let boxes = answer.len() / (4 + CLASSES);
    let number = |row: usize, place: usize| f64::from(answer[row * boxes + place]);
    let mut counts = [0, 0, objects.len()];
    for class in 0..CLASSES {
        let mut candidates: Vec<(f64, Corners)> = (0..boxes)
            .map(|place| {
                let [x, y, width, height] = [0, 1, 2, 3].map(|row| number(row, place) / 64.0);
                let (across, down) = (width / 2.0, height / 2.0);
                let corners = [x - across, y - down, x + across, y + down];
                (number(4 + class, place), corners)
            })
            .filter(|(score, _)| *score >= threshold)
            .collect();
        candidates.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mut free: Vec<Corners> = objects
            .iter()
            .filter(|object| object.class as usize == class)
            .map(|o| [o.x, o.y, o.x + o.width, o.y + o.height].map(f64::from))
            .collect();
        let mut kept: Vec<Corners> = Vec::new();
        for (_, corners) in candidates {
            if kept.iter().any(|other| overlap(*other, corners) > suppress) {
                continue;
            }
            kept.push(corners);
            counts[1] += 1;
            free.sort_by(|a, b| overlap(*a, corners).total_cmp(&overlap(*b, corners)));
            if free
                .last()
                .is_some_and(|best| overlap(*best, corners) >= least)
            {
                free.pop();
                counts[0] += 1;
            }
        }
    }
    counts
}

#[test]
fn a_detector_in_the_form_of_yolo_v8_is_judged_by_its_boxes() {
    let bench = Bench::new();
    let file = scenes(&bench).display().to_string();
    let detection = ["--coco", &file, "--metric", "detection", "--decoder"];
    let rules = [
        "yolo-v8",
        "--threshold",
        "0.5",
        "--nms",
        "0.45",
        "--match",
        "0.4",
    ];
    bench.make_set("64x64", &[&detection[..], &rules].concat());
    let set = bench.set();
    let network = open("yolo-v8-like").network;
    let judged = given("yolo-v8-like", &set);
    let sums = |given: &[Vec<f32>]| {
        let mut sums = [0; 3];
        for (answer, truth) in given.iter().zip(&set.truths) {
            let counts = found(answer, truth, [0.5, 0.45, 0.4]);
            sums.iter_mut()
                .zip(counts)
                .for_each(|(sum, count)| *sum += count);
        }
        sums
    };
    let score = |[hits, found, there]: [usize; 3]| 2.0 * hits as f64 / (found + there) as f64;
    let [hits, found, there] = sums(&judged);
    assert!(
        hits > 5 && found > hits && there == 60,
        "{hits} of {found} and {there}"
    );
    let expected = score(sums(&judged));
    let [on_cpu, on_npu] = bench.scores("yolo-v8-like", network.layer_count() as usize);
    assert!((on_cpu - expected).abs() < 1e-6, "{on_cpu} and {expected}");
    let [of_cpu, of_npu] = kept(&bench, "yolo-v8-like", 20);
    assert_eq!(of_cpu, judged);
    assert_ne!(of_npu, judged);
    let expected = score(sums(&of_npu));
    assert!((on_npu - expected).abs() < 1e-6, "{on_npu} and {expected}");

    // The same images for a detector in another form.
    for (decoder, words) in [
        ("yolo-v5", ["1x7x80", "1xNx8"]),
        ("ssd", ["1x7x80", "1xNx4 and 1xNx4"]),
        ("yolo-v1", ["560 values", "needs 637"]),
    ] {
        bench.make_set("64x64", &[&detection[..], &[decoder, "--replace"]].concat());
        refused(&bench.path("a.set"), "yolo-v8-like", &words);
    }
}

#[test]
fn a_segmentation_is_judged_pixel_by_pixel() {
    let bench = Bench::new();
    let mut random = ChaCha8Rng::seed_from_u64(3);
    std::fs::create_dir(bench.path("masks")).expect("a folder");
    for image in 0..6 {
        let name = format!("{image}.png");
        let drawn = picture(64, 200 + image, &mut random);
        drawn.save(bench.path(&name)).expect("room");
        let blocks: Vec<u8> = (0..64)
            .map(|_| [0, 1, 2, 255][random.random_range(0..4)])
            .collect();
        let mask = GrayImage::from_fn(64, 64, |x, y| Luma([blocks[(y / 8 * 8 + x / 8) as usize]]));
        mask.save(bench.path("masks").join(&name)).expect("room");
    }
    let folder = bench.path("masks").display().to_string();
    let options = [
        "--masks",
        &folder,
        "--classes",
        "sky,road,tree",
        "--metric",
        "pixel-accuracy",
    ];
    let said = bench.make_set("64x64", &options);
    assert!(said.starts_with("a: 6 images of 3 classes\n"), "{said}");
    let set = bench.set();
    let share = |given: &[Vec<f32>]| {
        let (mut right, mut all) = (0, 0);
        for (answer, image) in given.iter().zip(0..) {
            let mask = image::open(bench.path("masks").join(format!("{image}.png")));
            let mask = mask.expect("a mask").to_luma8();
            for (pixel, Luma([class])) in mask.pixels().enumerate() {
                if *class < 3 {
                    let values = [0, 1, 2].map(|class| answer[class * 64 * 64 + pixel]);
                    let own = usize::from(*class);
                    let mut others = (0..3).filter(|&other| other != own);
                    all += 1;
                    right += i32::from(others.all(|other| values[other] < values[own]));
                }
            }
        }
        f64::from(right) / f64::from(all)
    };
    let layers = open("pix2pix").network.layer_count() as usize;
    let [on_cpu, on_npu] = bench.scores("pix2pix", layers);
    let [of_cpu, of_npu] = kept(&bench, "pix2pix", 6);
    assert_eq!(of_cpu, given("pix2pix", &set));
    assert!((on_cpu - share(&of_cpu)).abs() < 1e-6, "{on_cpu}");
    assert!((on_npu - share(&of_npu)).abs() < 1e-6, "{on_npu}");

    // The mean over classes of intersection over union, of the answers that were kept.
    let mean_iou = |given: &[Vec<f32>]| -> f64 {
        let (mut both, mut either) = ([0_u32; 3], [0_u32; 3]);
        for (answer, image) in given.iter().zip(0..) {
            let mask = image::open(bench.path("masks").join(format!("{image}.png")));
            let mask = mask.expect("a mask").to_luma8();
            for (pixel, Luma([class])) in mask.pixels().enumerate() {
                let values = [0, 1, 2].map(|class| answer[class * 64 * 64 + pixel]);
                let most = values.into_iter().fold(f32::MIN, f32::max);
                let mut said = (0..3).filter(|&class| values[class] == most);
                // Of two that are as large neither is said.
                let said = said.next().filter(|_| said.next().is_none());
                for shown in (0..3).filter(|_| *class < 3) {
                    let (is_shown, is_said) = (usize::from(*class) == shown, said == Some(shown));
                    both[shown] += u32::from(is_shown && is_said);
                    either[shown] += u32::from(is_shown || is_said);
                }
            }
        }
        let shares = both
            .iter()
            .zip(either)
            .map(|(&both, either)| f64::from(both) / f64::from(either));
        shares.sum::<f64>() / 3.0
    };
    let header = std::fs::read(bench.path("kept").join("answers.json")).expect("it was kept");
    let header: Value = serde_json::from_slice(&header).expect("JSON");
    let overlaps = header["class_overlap"]
        .as_array()
        .expect("of each placement");
    for (overlap, answers) in overlaps.iter().zip([&of_cpu, &of_npu]) {
        let (said, expected) = (overlap["mean_iou"].as_f64(), mean_iou(answers));
        assert!(
            said.is_some_and(|said| (said - expected).abs() < 1e-12),
            "{overlap}"
        );
        assert_eq!(overlap["iou_of_classes"].as_array().map(Vec::len), Some(3));
    }
    assert_eq!((overlaps.len(), &overlaps[0]["loss"]), (2, &json!(0.0)));

    let smaller = [&options[..], &["--answer-size", "32x32", "--replace"]].concat();
    bench.make_set("64x64", &smaller);
    refused(&bench.path("a.set"), "pix2pix", &["1x3x64x64", "1x3x32x32"]);
}

/// `layerlab evaluate` refuses the set for the model, in one sentence with all of `words`.
#[track_caller]
fn refused(set: &Path, name: &str, words: &[&str]) {
    let mut command = layerlab();
    command.arg("evaluate").arg("--model").arg(model(name));
    command.arg("--device").arg(device("oneplus7"));
    let output = output(command.arg("--set").arg(set));
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(INPUT), "{said}");
    for word in words {
        assert!(said.contains(word), "`{word}` is missing in: {said}");
    }
    assert_eq!(said.trim_end().lines().count(), 1, "{said}");
}
