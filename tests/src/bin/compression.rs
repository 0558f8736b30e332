//! How much smaller do tensors become that cross a cut, and what do 8 bits cost? `compression REPORT FOLDER` has this machine compress
//! the tensors of ten networks by `layerlab tensors measure`, as users would, and writes a page beside what the JointDNN paper says
//! (§4.2, Figure 14). FOLDER is what `tests/reports/photographs/make.py` made: an AlexNet and a VGG16 that others trained on
//! photographs. The trained networks carry what is claimed; it fails unless the ratio correlates with the share of zeros in each of
//! them that has zeros, and over all of them, as in the paper's. Takes a quarter of an hour.

#![expect(clippy::print_stderr, reason = "how far it has come is what it says")]

#[expect(dead_code, reason = "ranges are found for another report")]
#[path = "video-papers/cut_out.rs"]
mod cut_out;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use cut_out::CutOut;
use layerlab_profiles::tensors::{
    TensorCodec, TensorRow, TensorsDocument, check_tensors_directory,
};
use layerlab_tests::proof::table::markdown;
use layerlab_tests::{layerlab, model, root, succeed};

/// What is called a high correlation.
const LEAST_CORRELATION: f64 = 0.8;
/// The paper's largest and mean ratio (§4.2).
const PAPER_LARGEST: f64 = 5.8;
const PAPER_MEAN: f64 = 3.5;

/// Where a network's weights come from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Weights {
    /// Trained by this project on drawn scenes.
    Ours,
    /// Trained by others on photographs.
    Others,
    /// Drawn.
    Random,
}

impl Weights {
    fn text(self) -> &'static str {
        match self {
            Weights::Ours => "trained",
            Weights::Others => "trained by others",
            Weights::Random => "random",
        }
    }
}

/// A network and the pictures that it answers.
struct Subject {
    name: &'static str,
    weights: Weights,
    model: PathBuf,
    set: PathBuf,
    pictures: &'static str,
}

/// What was measured of a network.
struct Told {
    name: &'static str,
    weights: Weights,
    measured: TensorsDocument,
}

impl Told {
    fn is_trained(&self) -> bool {
        self.weights != Weights::Random
    }

    fn rows(&self, codec: TensorCodec) -> Vec<&TensorRow> {
        let rows = self.measured.tensors.iter();
        rows.filter(|row| row.codec == codec).collect()
    }

    /// Whether its activations are zero now and then.
    fn has_zeros(&self) -> bool {
        let mut given = self.given(TensorCodec::U8Png).into_iter();
        given.any(|row| row.zero_share > 0.01)
    }

    /// The tensors that layers give, without the picture itself.
    fn given(&self, codec: TensorCodec) -> Vec<&TensorRow> {
        let rows = self.rows(codec).into_iter();
        rows.filter(|row| row.tensor.producer_layer > 0).collect()
    }
}

/// The committed scenes in a network's size.
fn scenes(folder: &Path, side: u32, metric: &str) -> PathBuf {
    let scenes = root().join("tests/models/scenes");
    let out = folder.join(format!("{side}-{metric}.set"));
    let mut set = layerlab();
    set.arg("set").arg("--coco");
    set.arg(scenes.join("annotations.json"));
    set.arg("--images").arg(scenes.join("images"));
    set.args(["--size", &format!("{side}x{side}"), "--metric", metric]);
    if metric == "detection" {
        set.args(["--grid", "7"]);
    }
    succeed(set.arg("--out").arg(&out));
    out
}

/// The photographs in the size of the networks that others trained.
fn photographs(made: &Path, folder: &Path) -> PathBuf {
    let out = folder.join("photographs.set");
    let mean = fs::read_to_string(made.join("mean.txt")).expect("make.py wrote it");
    let mut set = layerlab();
    set.args(["set", "--metric", "top-1", "--size", "224x224", "--labels"]);
    set.arg(made.join("labels.csv")).arg("--images");
    set.arg(made.join("pictures")).args(["--mean", mean.trim()]);
    set.args(["--scale", &(1.0 / 127.5).to_string()]);
    succeed(set.arg("--out").arg(&out));
    out
}

fn subjects(made: &Path, folder: &Path) -> Vec<Subject> {
    let objects = folder.join("objects");
    fs::create_dir(&objects).expect("room");
    let of = |name, weights, set: &Path, pictures| Subject {
        name,
        weights,
        model: match weights {
            Weights::Others => made.join(format!("{name}.onnx")),
            _ => model(name),
        },
        set: set.to_owned(),
        pictures,
    };
    let (labels, boxes) = (
        scenes(folder, 112, "multi-label"),
        scenes(folder, 112, "detection"),
    );
    let (large, small) = (
        scenes(folder, 115, "multi-label"),
        scenes(folder, 64, "multi-label"),
    );
    let photographs = photographs(made, folder);
    vec![
        of(
            "alexnet-of-photographs",
            Weights::Others,
            &photographs,
            "30",
        ),
        of("vgg16-of-photographs", Weights::Others, &photographs, "30"),
        of("vocnet-mini", Weights::Ours, &labels, "1000"),
        of("vgg-mini", Weights::Ours, &labels, "1000"),
        of("yolo-mini", Weights::Ours, &boxes, "1000"),
        of(
            "object-mini",
            Weights::Ours,
            &CutOut::new(&objects).measured,
            "900",
        ),
        of("alexnet", Weights::Random, &large, "12"),
        of("vgg16", Weights::Random, &small, "12"),
        of("resnet50", Weights::Random, &small, "12"),
        of("inception", Weights::Random, &small, "12"),
    ]
}

fn told(subject: &Subject, folder: &Path) -> Told {
    eprintln!("compressing the tensors of {}", subject.name);
    let out = folder.join(subject.name);
    let mut command = layerlab();
    command.args(["tensors", "measure", "--device", "host", "--pictures"]);
    command.arg(subject.pictures).arg("--model");
    command.arg(&subject.model).arg("--set").arg(&subject.set);
    if subject.weights != Weights::Ours {
        command.arg("--sizes-only");
    }
    succeed(command.arg("--out").arg(&out));
    succeed(layerlab().args(["tensors", "check"]).arg(&out));
    let (measured, _) = check_tensors_directory(&out).expect("it was just published");
    Told {
        name: subject.name,
        weights: subject.weights,
        measured,
    }
}

/// Pearson's correlation; nothing where one side does not vary.
fn correlation(pairs: &[(f64, f64)]) -> Option<f64> {
    let count = pairs.len() as f64;
    let (x, y) = (
        pairs.iter().map(|it| it.0).sum::<f64>() / count,
        pairs.iter().map(|it| it.1).sum::<f64>() / count,
    );
    let sum = |of: &dyn Fn(f64, f64) -> f64| -> f64 {
        pairs.iter().map(|&(a, b)| of(a - x, b - y)).sum()
    };
    let (both, first, second) = (sum(&|a, b| a * b), sum(&|a, _| a * a), sum(&|_, b| b * b));
    (first > 0.0 && second > 0.0).then(|| both / (first * second).sqrt())
}

fn ratio_and_zeros(rows: &[&TensorRow]) -> Vec<(f64, f64)> {
    let pair = |row: &&TensorRow| (row.ratio_to_8_bits, row.zero_share);
    rows.iter().map(pair).collect()
}

fn ratio_and_zero_codes(rows: &[&TensorRow]) -> Vec<(f64, f64)> {
    let pair = |row: &&TensorRow| Some((row.ratio_to_8_bits, row.zero_code_share?));
    rows.iter().filter_map(pair).collect()
}

fn said(correlation: Option<f64>) -> String {
    correlation.map_or("-".to_owned(), |it| format!("{it:.2}"))
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let values: Vec<f64> = values.collect();
    values.iter().sum::<f64>() / values.len() as f64
}

fn largest(rows: &[&TensorRow]) -> f64 {
    rows.iter()
        .map(|row| row.ratio_to_8_bits)
        .fold(0.0, f64::max)
}

fn percent(share: f64) -> String {
    format!("{:.1}", 100.0 * share)
}

/// One line for each network.
fn networks(all: &[Told]) -> String {
    let rows: Vec<Vec<String>> = all
        .iter()
        .map(|one| {
            let png = one.given(TensorCodec::U8Png);
            let ratio = |codec| {
                let rows = one.given(codec);
                format!("{:.2}", mean(rows.iter().map(|row| row.ratio_to_8_bits)))
            };
            vec![
                one.name.to_owned(),
                one.weights.text().to_owned(),
                one.measured.header.pictures.to_string(),
                png.len().to_string(),
                percent(mean(png.iter().map(|row| row.zero_share))),
                ratio(TensorCodec::U8Png),
                format!("{:.2}", largest(&png)),
                ratio(TensorCodec::U8Zstd),
                ratio(TensorCodec::U8Lz4),
                ratio(TensorCodec::F32Zstd),
                ratio(TensorCodec::F32Lz4),
                said(correlation(&ratio_and_zeros(&png))),
                said(correlation(&ratio_and_zero_codes(&png))),
            ]
        })
        .collect();
    let heads = [
        "network",
        "weights",
        "pictures",
        "tensors",
        "zeros, %",
        "PNG",
        "largest",
        "Zstandard",
        "LZ4",
        "f32 Zstandard",
        "f32 LZ4",
        "r, zeros",
        "r, zero codes",
    ];
    markdown(&heads, &rows)
}

/// Each tensor of a network.
fn tensors(one: &Told) -> String {
    let codecs = [
        TensorCodec::U8Zstd,
        TensorCodec::U8Lz4,
        TensorCodec::F32Zstd,
        TensorCodec::F32Lz4,
    ];
    let others = codecs.map(|codec| one.rows(codec));
    let rows: Vec<Vec<String>> = one
        .rows(TensorCodec::U8Png)
        .iter()
        .enumerate()
        .map(|(place, png)| {
            let shape: Vec<String> = png.tensor.shape.iter().map(ToString::to_string).collect();
            let mut row = vec![
                format!("`{}`", png.tensor.tensor),
                png.tensor.producer_layer.to_string(),
                shape.join("x"),
                percent(png.zero_share),
                png.zero_code_share.map_or("-".to_owned(), percent),
                format!("{:.2}", png.ratio_to_8_bits),
            ];
            let others = others.iter().map(|rows| rows[place].ratio_to_8_bits);
            row.extend(others.map(|ratio| format!("{ratio:.2}")));
            row
        })
        .collect();
    let heads = [
        "tensor",
        "layer",
        "shape",
        "zeros, %",
        "zero codes, %",
        "PNG",
        "Zstandard",
        "LZ4",
        "f32 Zstandard",
        "f32 LZ4",
    ];
    markdown(&heads, &rows)
}

/// What 8 bits cost at each cut of a network.
fn accuracy(one: &Told) -> String {
    let rows: Vec<Vec<String>> = one
        .measured
        .crossings
        .iter()
        .map(|row| {
            vec![
                row.cut.to_string(),
                row.tensors.to_string(),
                row.pictures.to_string(),
                row.in_32_bits.hits.to_string(),
                row.in_8_bits.hits.to_string(),
                row.changed.to_string(),
                format!("{:.4}", row.scores.1),
                format!("{:.4}", row.scores.0),
                format!("{:+.4}", row.loss.value),
                format!("{:+.4} to {:+.4}", row.loss.ci95.0, row.loss.ci95.1),
            ]
        })
        .collect();
    let heads = [
        "cut",
        "tensors",
        "pictures",
        "hits in 32 bits",
        "hits in 8 bits",
        "changed answers",
        "score in 32 bits",
        "score in 8 bits",
        "loss",
        "95 % interval",
    ];
    markdown(&heads, &rows)
}

/// How fast each codec is on this machine: bytes of floats over the median times of all tensors together.
fn speeds(all: &[Told]) -> String {
    let rows: Vec<Vec<String>> = TensorCodec::ALL
        .iter()
        .map(|&codec| {
            let rows: Vec<&TensorRow> = all.iter().flat_map(|one| one.rows(codec)).collect();
            let bytes: u64 = rows.iter().map(|row| row.tensor.bytes.as_bytes()).sum();
            let speed = |of: fn(&TensorRow) -> Option<u64>| {
                let nanos: u64 = rows.iter().filter_map(|row| of(row)).sum();
                format!("{:.0}", 1e3 * bytes as f64 / nanos as f64)
            };
            vec![
                codec.to_string(),
                speed(|row| row.compress.map(|it| it.0.as_nanos())),
                speed(|row| row.decompress.map(|it| it.0.as_nanos())),
            ]
        })
        .collect();
    markdown(&["codec", "to pack, MB/s", "to unpack, MB/s"], &rows)
}

/// A row of what the paper says.
fn statement(says: &str, holds: bool, found: String) -> Vec<String> {
    let here = if holds { "yes" } else { "**no**" };
    vec![says.to_owned(), here.to_owned(), found]
}

fn statements(all: &[Told]) -> String {
    let trained: Vec<&Told> = all.iter().filter(|one| one.is_trained()).collect();
    let all_of = |networks: &[&Told]| -> Vec<TensorRow> {
        let rows = networks.iter().flat_map(|it| it.given(TensorCodec::U8Png));
        rows.cloned().collect()
    };
    // A leaky ReLU gives no zeros.
    let with_zeros: Vec<&Told> = trained
        .iter()
        .copied()
        .filter(|one| one.has_zeros())
        .collect();
    let mut rows: Vec<Vec<String>> = trained
        .iter()
        .map(|one| {
            let png = one.given(TensorCodec::U8Png);
            let says = format!(
                "the ratio correlates with the share of zeros ({})",
                one.name
            );
            match correlation(&ratio_and_zeros(&png)).filter(|_| one.has_zeros()) {
                Some(found) => statement(
                    &says,
                    found >= LEAST_CORRELATION,
                    format!(
                        "r = {found:.2} over {} tensors (to be at least {LEAST_CORRELATION})",
                        png.len()
                    ),
                ),
                None => statement(
                    &says,
                    false,
                    "its leaky ReLU gives no zeros to correlate with".to_owned(),
                ),
            }
        })
        .collect();
    let png = all_of(&trained);
    let png: Vec<&TensorRow> = png.iter().collect();
    let found = correlation(&ratio_and_zeros(&png)).unwrap_or(0.0);
    rows.push(statement(
        "the same over all trained networks",
        found >= LEAST_CORRELATION,
        format!("r = {found:.2} over {} tensors", png.len()),
    ));
    let png = all_of(&with_zeros);
    let png: Vec<&TensorRow> = png.iter().collect();
    let found = correlation(&ratio_and_zeros(&png)).unwrap_or(0.0);
    rows.push(statement(
        "the same over those that have zeros",
        found >= LEAST_CORRELATION,
        format!("r = {found:.2} over {} tensors", png.len()),
    ));
    let sparse = png
        .iter()
        .filter(|row| (0.5..=0.9).contains(&row.zero_share));
    let sparse = sparse.count();
    rows.push(statement(
        "50 to 90 % of the neurons behind a ReLU are zero",
        sparse * 2 > png.len(),
        format!(
            "so are those of {sparse} of {} tensors, pooled ones among them",
            png.len()
        ),
    ));
    let png = all_of(&trained);
    let png: Vec<&TensorRow> = png.iter().collect();
    let (mean, largest) = (
        mean(png.iter().map(|row| row.ratio_to_8_bits)),
        largest(&png),
    );
    rows.push(statement(
        &format!("PNG makes tensors up to {PAPER_LARGEST} times smaller"),
        largest >= PAPER_LARGEST,
        format!("up to {largest:.1} times"),
    ));
    rows.push(statement(
        &format!("on average {PAPER_MEAN} times"),
        mean >= PAPER_MEAN,
        format!("{mean:.1} times"),
    ));
    let worst = trained.iter().flat_map(|one| {
        let rows = one.measured.crossings.iter();
        rows.map(|row| (row.loss, row.cut, one.name))
    });
    let worst = worst.max_by(|one, other| one.0.value.total_cmp(&other.0.value));
    let (loss, cut, of) = worst.expect("our networks are judged");
    rows.push(statement(
        "few bits cost no more than 1 % of the accuracy",
        loss.value <= 0.01,
        format!(
            "at most {:.4} ({:+.4} to {:+.4}), at cut {cut} of {of}",
            loss.value, loss.ci95.0, loss.ci95.1
        ),
    ));
    let mut page = "| the paper says | here | found |\n| --- | --- | --- |\n".to_owned();
    for row in rows {
        // Writing to a text does not fail.
        let _ = writeln!(page, "| {} |", row.join(" | "));
    }
    page
}

fn page(all: &[Told]) -> String {
    let mut page = String::from(
        "# Tensors that cross a cut, compressed\n\n\
         `python tests/reports/photographs/make.py FOLDER` and `cargo tool compression tests/reports/compression.md FOLDER` made this page. \
         This machine ran ten networks by tract and compressed each tensor that crosses a cut, by `layerlab tensors measure`: rounded to 8 \
         bits, with its channels tiled nearly square, as PNG, as in Eshratifar, Abrishami and Pedram, \"JointDNN\" (§4.2, Figure 14); and by \
         Zstandard and LZ4. Ratios are against one byte for each number, as in the paper, also where 32-bit floats are kept (there, 0.25 is no \
         gain). What fully connected layers give is left out. Each tensor that was unpacked was compared with what was packed, bit by bit.\n\n\
         The paper's AlexNet and VGG16 are large, trained on ImageNet and fed by photographs. Three kinds of networks are beside them:\n\n\
         - **Trained by others, on photographs**: alexnet-of-photographs and vgg16-of-photographs have the convolutions of AlexNet and VGG16 at \
         full width, without batch normalisation like the paper's. They learnt from pieces of photographs which of two looks more like a third \
         (Ghildyal and Liu, \"Shift-tolerant Perceptual Similarity Metric\", ECCV 2022), not to classify, and blur before each step to a smaller \
         map. They answer 30 crops of six photographs. What fully connected layers would follow is not there.\n\
         - **Trained**: small ones of this project's own, and what they see is drawn. vocnet-mini is an AlexNet of a quarter of its width, and \
         vgg-mini a VGG16 of an eighth; yolo-mini has leaky ReLUs, and so no zeros; object-mini has four tensors. Small tensors become \
         smaller by less, whatever is in them: a PNG has some 60 bytes beside its pixels, and most of vocnet-mini's tensors have 1,600 to 3,500 \
         numbers. Channels of vocnet-mini and vgg-mini were given unequal sizes after training (tests/models/MODELS.md), which no network of the \
         paper was: it makes small channels all but zero at 8 bits.\n\
         - **Random**: the other four. Their zeros are those of noise, so that their lines say what the codecs do with it, and nothing of trained \
         networks.\n\n\
         ## What the paper says, and the trained networks\n\n",
    );
    page += &statements(all);
    page += "\n## Networks\n\nMeans over the tensors that layers give; r is Pearson's correlation of PNG's ratio with the share of numbers that \
             are zero, and with the share of 8-bit codes that are that of zero.\n\n";
    page += &networks(all);
    page += "\n## What 8 bits cost\n\nAt each cut its tensors were rounded to 8 bits, and the layers behind it answered. The loss is the score in \
             32 bits less that in 8, with its paired 95 % interval. Hits are classes (vocnet-mini and vgg-mini), boxes \
             (yolo-mini) or pictures (object-mini).\n";
    for one in all.iter().filter(|one| one.weights == Weights::Ours) {
        page += &format!("\n### {}\n\n{}", one.name, accuracy(one));
    }
    page += "\n## Tensors\n\nThe first one, of layer 0, is the picture itself.\n";
    for one in all {
        let weights = match one.is_trained() {
            true => "",
            false => " (random weights)",
        };
        page += &format!("\n### {}{weights}\n\n{}", one.name, tensors(one));
    }
    page += "\n## Speed on this machine\n\nOne thread, medians over the pictures, bytes of 32-bit floats per time over all tensors. This is a development \
             build of layerlab on a virtual machine that had other work: it says which codec is the slower one, and nothing of any phone.\n\n";
    page + &speeds(all)
}

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let (Some(report), Some(made)) = (arguments.next(), arguments.next()) else {
        eprintln!(
            "name the file of the report, and the folder that tests/reports/photographs/make.py made"
        );
        return ExitCode::from(2);
    };
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let subjects = subjects(Path::new(&made), folder.path());
    let all: Vec<Told> = subjects.iter().map(|it| told(it, folder.path())).collect();
    fs::write(report, page(&all)).expect("room for the report");
    let with_zeros = all.iter().filter(|one| one.is_trained() && one.has_zeros());
    let mut groups: Vec<Vec<&TensorRow>> = with_zeros
        .map(|one| one.given(TensorCodec::U8Png))
        .collect();
    groups.push(groups.concat());
    let is_high = |rows: &Vec<&TensorRow>| {
        correlation(&ratio_and_zeros(rows)).is_some_and(|found| found >= LEAST_CORRELATION)
    };
    match groups.iter().all(is_high) {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}
