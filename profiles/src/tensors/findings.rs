//! Is this document fit to publish? What follows from the pictures is calculated again.

use std::collections::HashSet;
use std::path::Path;

use super::{
    CrossingAnswer, LeftOut, TENSORS_FORMAT, TENSORS_VERSION, TensorCodec, TensorDescription,
    TensorsDocument, TensorsHeader, Timed, derived, drawn_pictures,
};
use crate::folder::{FolderError, FolderFinding};

/// Of fewer pictures there is no interval.
const FEW: u64 = 6;

/// More pictures than these has no set: of the smallest ones they have terabytes, and drawing from more would take the memory
/// of the machine.
const MOST_IMAGES: u64 = 10_000_000;

/// What 8 bits have in front of them.
const SCALE_AND_ZERO_POINT: u64 = 5;

/// Sentences that say the same of many rows are few.
const ENOUGH: usize = 3;

/// Everything doubtful about a document, errors first.
pub fn check_tensors(document: &TensorsDocument) -> Vec<FolderFinding> {
    let mut wrong = header(&document.header);
    wrong.extend(rows(document));
    wrong.extend(answers(document));
    wrong.extend(follows(document));
    let mut findings: Vec<FolderFinding> = wrong.into_iter().map(FolderFinding::error).collect();
    findings.extend(doubts(document));
    findings
}

/// Reads the document in `dir` and checks it.
///
/// # Errors
/// When it cannot be read.
pub fn check_tensors_directory(
    dir: &Path,
) -> Result<(TensorsDocument, Vec<FolderFinding>), FolderError> {
    let (document, contradictions) = TensorsDocument::read_with_contradictions(dir)?;
    let mut findings: Vec<FolderFinding> = contradictions
        .into_iter()
        .map(FolderFinding::error)
        .collect();
    findings.extend(check_tensors(&document));
    Ok((document, findings))
}

fn header(header: &TensorsHeader) -> Vec<String> {
    let mut wrong = Vec::new();
    if header.format != TENSORS_FORMAT || header.version != TENSORS_VERSION {
        let (format, version) = (&header.format, header.version);
        wrong.push(format!("it says that it is {format} {version}"));
    }
    if (header.timed == Timed::No) != header.device.simulated {
        wrong.push(
            "compressing is timed on devices, not on what plays a simulated one, and it says otherwise"
                .to_owned(),
        );
    }
    let codecs: HashSet<TensorCodec> = header.codecs.iter().copied().collect();
    if codecs.len() != header.codecs.len() || codecs.is_empty() {
        wrong.push("it names a codec twice, or none".to_owned());
    }
    let names: HashSet<&str> = header.tensors.iter().map(|it| it.tensor.as_str()).collect();
    if names.len() != header.tensors.len() {
        wrong.push("two of its tensors have one name".to_owned());
    }
    let odd = header.tensors.iter().find(|it| !is_sound(it, header));
    if let Some(tensor) = odd {
        wrong.push(format!(
            "the layers, the shape, the size or what is said of leaving out `{}` do not belong together",
            tensor.tensor
        ));
    }
    wrong
}

fn is_sound(tensor: &TensorDescription, header: &TensorsHeader) -> bool {
    let long = tensor.shape.iter().filter(|&&axis| axis > 1).count();
    let is_left_out = match tensor.left_out {
        None => long > 1,
        Some(LeftOut::OneAxis) => long <= 1,
        Some(LeftOut::NoFloats) => true,
    };
    let is_as_large = tensor.left_out == Some(LeftOut::NoFloats)
        || tensor.bytes.as_bytes() == tensor.elements().saturating_mul(4);
    let layers = header.model.layers;
    let mut consumers = tensor.consumer_layers.iter();
    is_left_out
        && is_as_large
        && tensor.producer_layer <= layers
        && consumers.all(|&layer| layer > tensor.producer_layer && layer <= layers)
}

/// The pictures that the seed draws; none of a set that is too large to be one.
fn drawn(header: &TensorsHeader) -> Vec<u64> {
    match header.set.images <= MOST_IMAGES {
        true => drawn_pictures(header.set.images, header.pictures, header.seed),
        false => Vec::new(),
    }
}

/// Each picture has a row of each tensor, and one of each codec.
fn rows(document: &TensorsDocument) -> Vec<String> {
    let header = &document.header;
    let mut wrong = Vec::new();
    let pictures = drawn(header);
    if pictures.is_empty() || pictures.len() as u64 != header.pictures {
        wrong.push("its set has no so many pictures".to_owned());
    }
    let tensors: Vec<&TensorDescription> = header.compressed().collect();
    let each = |image: u64| tensors.iter().map(move |tensor| (image, *tensor));
    let expected: Vec<(u64, &TensorDescription)> =
        pictures.iter().flat_map(|&it| each(it)).collect();
    let zeros = document.zeros.iter();
    let there: Vec<(u64, &str)> = zeros.map(|it| (it.image, it.tensor.as_str())).collect();
    let named = expected
        .iter()
        .map(|(image, it)| (*image, it.tensor.as_str()));
    if there != named.collect::<Vec<_>>() {
        wrong.push(
            "tensor_zeros.csv has not one row for each tensor of each picture that its seed draws"
                .to_owned(),
        );
        return wrong;
    }
    let packed = document.packed.iter();
    let there = packed.map(|it| (it.image, it.tensor.as_str(), it.codec));
    let all = expected.iter().flat_map(|(image, it)| {
        let codecs = header.codecs.iter();
        codecs.map(move |codec| (*image, it.tensor.as_str(), *codec))
    });
    if !there.eq(all) {
        wrong.push(
            "tensor_samples.csv has not one row for each codec of each tensor of each picture"
                .to_owned(),
        );
        return wrong;
    }
    for ((image, tensor), row) in expected.iter().zip(&document.zeros) {
        let elements = tensor.elements();
        let codes = row.zero_codes.unwrap_or(elements);
        if row.zeros > codes || codes > elements {
            wrong.push(format!(
                "`{}` of picture {image} has {elements} numbers, and {} and {codes} zeros",
                tensor.tensor, row.zeros
            ));
        }
    }
    let codecs = header.codecs.len();
    for (place, row) in document.packed.iter().enumerate() {
        let elements = expected[place / codecs].1.elements();
        let bytes = row.bytes.as_bytes();
        let is_whole = match row.codec {
            TensorCodec::U8 => bytes == elements + SCALE_AND_ZERO_POINT,
            _ => bytes > 0,
        };
        let is_timed = row.compress.is_some() && row.decompress.is_some();
        let is_not = row.compress.is_none() && row.decompress.is_none();
        let is_as_said = match header.timed {
            Timed::Device => is_timed,
            Timed::No => is_not,
        };
        if !(is_whole && is_as_said) {
            wrong.push(format!(
                "`{}` of picture {} by {} has no such size, or is timed otherwise than it says",
                row.tensor, row.image, row.codec
            ));
        }
    }
    wrong.truncate(ENOUGH);
    wrong
}

fn answers(document: &TensorsDocument) -> Option<String> {
    let header = &document.header;
    let cuts = header.cuts();
    let each = |image: u64| {
        let cuts = cuts.iter().copied().map(Some);
        std::iter::once(None)
            .chain(cuts)
            .map(move |cut| (image, cut))
    };
    let pictures = if header.judged {
        drawn(header)
    } else {
        Vec::new()
    };
    let expected: Vec<(u64, Option<u32>)> = pictures.into_iter().flat_map(each).collect();
    let there = |it: &CrossingAnswer| (it.image, it.cut);
    let there: Vec<(u64, Option<u32>)> = document.answers.iter().map(there).collect();
    (there != expected).then(|| {
        "crossing_answers.csv has not one row for each cut of each picture that was judged"
            .to_owned()
    })
}

fn follows(document: &TensorsDocument) -> Vec<String> {
    let header = &document.header;
    let mut wrong = Vec::new();
    if derived::tensors(header, &document.zeros, &document.packed) != document.tensors {
        wrong.push(
            "tensors.csv does not follow from tensor_zeros.csv and tensor_samples.csv".to_owned(),
        );
    }
    if derived::crossings(header, &document.answers) != document.crossings {
        wrong.push("crossing_accuracy.csv does not follow from crossing_answers.csv".to_owned());
    }
    wrong
}

fn doubts(document: &TensorsDocument) -> Vec<FolderFinding> {
    let pictures = document.header.pictures;
    let mut doubts = Vec::new();
    if pictures < FEW {
        doubts.push(FolderFinding::warning(
            format!("{pictures} pictures are too few for intervals"),
            "measure with a larger set, or more --pictures",
        ));
    }
    doubts
}

#[cfg(test)]
mod tests {
    use super::super::CrossingAccuracy;
    use super::super::records::{
        ANSWERS, AnswerRecord, CROSSINGS, CrossingRecord, PACKED, PackedRecord, TENSORS,
        TensorRecord, ZEROS, ZeroRecord,
    };
    use super::*;
    use crate::accuracy::{Metric, Tally};
    use crate::check::Severity;
    use crate::document::assert_columns_are_fields;
    use crate::document::{
        Clock, Device, Host, Numerics, Processor, ProcessorKind, Program, Provenance,
    };
    use crate::tensors::{PackedRow, TensorsModel, TensorsSet, ZeroRow};
    use crate::units::{Bytes, Nanos};

    fn program(name: &str) -> Program {
        Program {
            name: name.to_owned(),
            version: "1".to_owned(),
        }
    }

    fn header() -> TensorsHeader {
        let tensor = |name: &str, producer: u32, shape: &[u64]| {
            let elements: u64 = shape.iter().product();
            TensorDescription {
                tensor: name.to_owned(),
                producer_layer: producer,
                consumer_layers: if producer < 2 {
                    vec![producer + 1]
                } else {
                    Vec::new()
                },
                is_output: producer == 2,
                shape: shape.to_vec(),
                bytes: Bytes::from_bytes(4 * elements),
                left_out: (shape.len() == 2).then_some(LeftOut::OneAxis),
            }
        };
        TensorsHeader {
            format: TENSORS_FORMAT.to_owned(),
            version: TENSORS_VERSION,
            device: Device {
                name: "host".to_owned(),
                simulated: false,
                clock: Clock::Monotonic,
            },
            processor: Processor {
                name: "cpu".to_owned(),
                kind: ProcessorKind::Cpu,
                numerics: Numerics::F32,
                emulated: false,
                runtime: "test".to_owned(),
                runtime_version: "1".to_owned(),
                runtime_options: None,
                runtime_libraries: None,
                memory_bytes: None,
                threads: None,
                pinned_to_cores: None,
            },
            timed: Timed::Device,
            model: TensorsModel {
                name: "mini".to_owned(),
                sha256: "ab".repeat(32),
                quantised_sha256: None,
                layers: 2,
            },
            set: TensorsSet {
                name: "set".to_owned(),
                sha256: "cd".repeat(32),
                images: 40,
                metric: Metric::TopK { k: 1 },
            },
            codecs: vec![TensorCodec::U8, TensorCodec::U8Png],
            tensors: vec![
                tensor("image", 0, &[1, 3, 4, 4]),
                tensor("maps", 1, &[1, 8, 2, 2]),
                tensor("scores", 2, &[1, 10]),
            ],
            judged: true,
            seed: 3,
            pictures: 10,
            provenance: Provenance {
                started_at: "2026-01-01T00:00:00Z".to_owned(),
                finished_at: "2026-01-01T00:01:00Z".to_owned(),
                host_program: program("layerlab"),
                device_program: program("layerlab-agent"),
                run: "run".to_owned(),
                link: "local".to_owned(),
                device_system: "Linux".to_owned(),
                host: Host {
                    system: "Linux".to_owned(),
                    cpu: "a processor".to_owned(),
                    logical_cores: 2,
                    memory_bytes: Bytes::from_bytes(1 << 30),
                },
                phone: None,
                fitness: None,
            },
        }
    }

    fn document() -> TensorsDocument {
        let header = header();
        let (mut zeros, mut packed, mut answers) = (Vec::new(), Vec::new(), Vec::new());
        for image in drawn(&header) {
            for tensor in header.compressed() {
                zeros.push(ZeroRow {
                    image,
                    tensor: tensor.tensor.clone(),
                    zeros: image % 7,
                    zero_codes: Some(image % 7 + 1),
                });
                for &codec in &header.codecs {
                    let bytes = match codec {
                        TensorCodec::U8 => tensor.elements() + SCALE_AND_ZERO_POINT,
                        _ => 20 + image % 5,
                    };
                    packed.push(PackedRow {
                        image,
                        tensor: tensor.tensor.clone(),
                        codec,
                        bytes: Bytes::from_bytes(bytes),
                        compress: Some(Nanos::from_micros(9 + image)),
                        decompress: Some(Nanos::from_micros(3 + image)),
                    });
                }
            }
            for cut in [None, Some(0), Some(1)] {
                let is_wrong = u64::from(cut == Some(1) && image % 3 == 0);
                let tally = Tally {
                    hits: 1 - is_wrong,
                    false_alarms: is_wrong,
                    misses: is_wrong,
                };
                answers.push(CrossingAnswer { image, cut, tally });
            }
        }
        TensorsDocument::new(header, zeros, packed, answers)
    }

    fn errors(document: &TensorsDocument) -> Vec<String> {
        let findings = check_tensors(document).into_iter();
        let errors = findings.filter(|finding| finding.severity == Severity::Error);
        errors.map(|finding| finding.sentence).collect()
    }

    #[test]
    fn the_columns_are_the_fields() {
        let document = document();
        let header = &document.header;
        let tensor = TensorRecord::of(&document.tensors[0], header);
        assert_columns_are_fields(TENSORS, tensor);
        assert_columns_are_fields(ZEROS, ZeroRecord::of(&document.zeros[0], header));
        assert_columns_are_fields(PACKED, PackedRecord::of(&document.packed[0], header));
        let crossing = CrossingRecord::of(&document.crossings[0], header);
        assert_columns_are_fields(CROSSINGS, crossing);
        assert_columns_are_fields(ANSWERS, AnswerRecord::of(&document.answers[0], header));
    }

    #[test]
    fn what_follows_from_the_pictures_is_what_they_say() {
        let document = document();
        let png = &document.tensors[1];
        assert_eq!((png.codec, png.pictures), (TensorCodec::U8Png, 10));
        let sizes = document
            .packed
            .iter()
            .filter(|it| (it.tensor.as_str(), it.codec) == ("image", TensorCodec::U8Png));
        let all: u64 = sizes.map(|it| it.bytes.as_bytes()).sum();
        assert!((png.ratio_to_8_bits - 480.0 / all as f64).abs() < 1e-12);
        let zeros = document.zeros.iter().filter(|it| it.tensor == "image");
        let zeros: u64 = zeros.map(|it| it.zeros).sum();
        assert!((png.zero_share - zeros as f64 / 480.0).abs() < 1e-12);
        let [at_0, at_1]: [CrossingAccuracy; 2] = document.crossings.try_into().expect("two cuts");
        assert_eq!((at_0.changed, at_0.loss.value), (0, 0.0));
        assert!(at_0.loss.ci95.0 < 0.0 && at_0.loss.ci95.1 > 0.0);
        let wrong = drawn(&document.header)
            .iter()
            .filter(|it| *it % 3 == 0)
            .count() as u64;
        assert_eq!((at_1.changed, at_1.in_8_bits.hits), (wrong, 10 - wrong));
        assert!((at_1.loss.value - wrong as f64 / 10.0).abs() < 1e-12);
        assert_eq!(at_1.tensors, 1);
    }

    #[test]
    fn what_was_measured_is_sound_and_one_changed_number_is_found() {
        let sound = document();
        assert_eq!(errors(&sound), Vec::<String>::new());
        type Change = fn(&mut TensorsDocument);
        let changes: [(&str, Change); 15] = [
            ("layerlab-link", |it| {
                it.header.format = "layerlab-link".to_owned()
            }),
            ("timed on devices", |it| it.header.timed = Timed::No),
            ("timed on devices", |it| it.header.device.simulated = true),
            ("codec twice", |it| it.header.codecs.push(TensorCodec::U8)),
            ("one name", |it| {
                it.header.tensors[1].tensor = "image".to_owned()
            }),
            ("`maps`", |it| {
                it.header.tensors[1].bytes = Bytes::from_bytes(1)
            }),
            ("`maps`", |it| {
                it.header.tensors[1].consumer_layers = vec![1]
            }),
            ("`scores`", |it| it.header.tensors[2].left_out = None),
            ("seed", |it| it.header.seed += 1),
            ("numbers", |it| it.zeros[0].zeros = 49),
            ("no such size", |it| {
                it.packed[0].bytes = Bytes::from_bytes(52)
            }),
            ("timed otherwise", |it| it.packed[3].decompress = None),
            ("tensors.csv", |it| it.tensors[0].ratio_to_8_bits += 1e-9),
            ("crossing_answers.csv", |it| it.header.judged = false),
            ("crossing_accuracy.csv", |it| it.answers[1].tally.hits = 0),
        ];
        for (word, change) in changes {
            let mut changed = sound.clone();
            change(&mut changed);
            let found = errors(&changed);
            assert!(
                found.iter().any(|it| it.contains(word)),
                "{word}: {found:?}"
            );
        }
    }

    #[test]
    fn what_is_written_is_read_again_and_a_changed_file_is_noticed() {
        let folder = tempfile::tempdir().expect("a folder");
        let sound = document();
        sound.write(folder.path()).expect("room");
        let (read, findings) = check_tensors_directory(folder.path()).expect("readable");
        assert_eq!(read, sound);
        assert!(findings.is_empty(), "{findings:?}");
        for file in ["tensors.csv", "tensor_zeros.csv", "tensor_samples.csv"] {
            let path = folder.path().join(file);
            let before = std::fs::read_to_string(&path).expect("there");
            std::fs::write(&path, before.replacen("maps", "masp", 1)).expect("room");
            let (_, findings) = check_tensors_directory(folder.path()).expect("readable");
            let named = format!("{file} was changed");
            assert!(findings[0].sentence.contains(&named), "{findings:?}");
            assert!(findings.len() > 1, "{file}: {findings:?}");
            std::fs::write(&path, before).expect("room");
        }
        let json = folder.path().join("tensors.json");
        std::fs::write(&json, r#"{"format":"layerlab-tensors","version":9}"#).expect("room");
        let newer = check_tensors_directory(folder.path()).expect_err("newer");
        assert!(newer.to_string().contains("update layerlab"), "{newer}");
        std::fs::write(&json, r#"{"format":"layerlab-link"}"#).expect("room");
        let other = check_tensors_directory(folder.path()).expect_err("another document");
        assert!(matches!(other, FolderError::Format { .. }), "{other}");
    }
}
