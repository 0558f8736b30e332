//! Is this document fit to publish? What follows from scores and frames is calculated again.

use std::collections::BTreeSet;
use std::path::Path;

use super::document::{confidence, is_hit, labels};
use super::{
    Coded, Confidence, FrameForm, Half, VIDEO_FORMAT, VIDEO_VERSION, VideoDocument,
    VideoDocumentError, derived, halves, top,
};
use crate::Segment;
use crate::accuracy::Metric;
use crate::folder::FolderFinding;

/// Confidences that were calculated twice may differ by this: another machine's exponentials differ in the last bit.
const SAME: f64 = 1e-9;

/// Fewer answers than these in a half say little about calibration.
const FEW: usize = 100;

/// More images than these has no set: of the smallest pictures they have terabytes, and drawing from more would take the
/// memory of the machine.
const MOST_IMAGES: u64 = 10_000_000;

/// Everything doubtful about a document, errors first.
pub fn check_video(document: &VideoDocument) -> Vec<FolderFinding> {
    let mut wrong = header(document);
    wrong.extend(answers(document));
    wrong.extend(frames(document));
    let mut findings: Vec<FolderFinding> = wrong.into_iter().map(FolderFinding::error).collect();
    findings.extend(doubts(document));
    findings
}

/// Reads the document in `dir` and checks it.
///
/// # Errors
/// When it cannot be read.
pub fn check_video_directory(
    dir: &Path,
) -> Result<(VideoDocument, Vec<FolderFinding>), VideoDocumentError> {
    let (document, contradictions) = VideoDocument::read_with_contradictions(dir)?;
    let mut findings: Vec<FolderFinding> = contradictions
        .into_iter()
        .map(FolderFinding::error)
        .collect();
    findings.extend(check_video(&document));
    Ok((document, findings))
}

fn header(document: &VideoDocument) -> Vec<String> {
    let header = &document.header;
    let mut wrong = Vec::new();
    if header.format != VIDEO_FORMAT || header.version != VIDEO_VERSION {
        let (format, version) = (&header.format, header.version);
        wrong.push(format!("it says that it is {format} {version}"));
    }
    if (header.coded == Coded::PlayingMachine) != header.device.simulated {
        wrong.push(
            "it names another machine that encoded than the kind of its device has".to_owned(),
        );
    }
    let parts = header.placement.iter().map(|part| part.segment);
    if Segment::chained(parts).is_none() {
        wrong.push("the parts of its placement do not follow each other".to_owned());
    }
    if !matches!(
        header.set.metric,
        Metric::TopK { .. } | Metric::MultiLabel { .. }
    ) {
        wrong.push("its metric knows no classes to be confident of".to_owned());
    }
    let vectors = document.answers.iter().map(|it| it.scores.as_slice());
    let found = Confidence::of(&header.set.metric, vectors);
    if found != header.confidence {
        wrong.push(
            "the way from scores to probabilities is not the one that the scores need".to_owned(),
        );
    }
    wrong
}

fn answers(document: &VideoDocument) -> Vec<String> {
    let header = &document.header;
    let mut wrong = Vec::new();
    if header.answers != document.answers.len() as u64 {
        let (said, there) = (header.answers, document.answers.len());
        wrong.push(format!(
            "it says that it has {said} answers, and has {there}"
        ));
    }
    let of = |half: Half| {
        let own = document.answers.iter().filter(move |it| it.half == half);
        own.map(|answer| answer.image).collect::<Vec<u64>>()
    };
    if drawn(document) != Some((of(Half::Calibration), of(Half::Test))) {
        wrong.push("its images and their halves are not those that its seed draws".to_owned());
    }
    let classes = header.set.classes.len() as u32;
    let odd = document.answers.iter().find(|answer| {
        let follows = answer.predicted == top(&answer.scores)
            && (answer.confidence - confidence(header, answer)).abs() <= SAME;
        !follows || answer.labels.iter().any(|&label| label >= classes)
    });
    if let Some(answer) = odd {
        let image = answer.image;
        wrong.push(format!(
            "what was predicted of image {image}, or how sure that was, does not follow from its scores, or its label is no class"
        ));
    }
    wrong
}

/// The halves that the seed draws; none of a set that is too large to be one.
fn drawn(document: &VideoDocument) -> Option<(Vec<u64>, Vec<u64>)> {
    let header = &document.header;
    let images = header.set.images;
    (images <= MOST_IMAGES).then(|| halves(images, header.answers, header.seed))
}

fn frames(document: &VideoDocument) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut seen = BTreeSet::new();
    let labels = labels(&document.answers);
    for frame in &document.frames {
        let (image, form) = (frame.image, frame.form);
        if !seen.insert((image, form)) {
            wrong.push(format!("image {image} is there twice as {form}"));
        }
        if frame.hit != is_hit(&labels, frame) {
            wrong.push(format!(
                "whether image {image} as {form} was hit does not follow from its labels"
            ));
        }
        if wrong.len() > 3 {
            break;
        }
    }
    let images: BTreeSet<u64> = seen.iter().map(|(image, _)| *image).collect();
    if seen.len() != images.len() * document.times.len() {
        wrong.push("not every frame is there in every form".to_owned());
    }
    if let Some((calibration, test)) = drawn(document) {
        let drawn = test.into_iter().chain(calibration);
        let first: BTreeSet<u64> = drawn.take(images.len()).collect();
        if images != first {
            wrong.push("the images of its frames are not the first that its seed draws".to_owned());
        }
    }
    let camera = &document.header.set;
    let too_large = |form: &FrameForm| form.width > camera.width || form.height > camera.height;
    if let Some(form) = document.forms().find(too_large) {
        let (width, height) = (camera.width, camera.height);
        wrong.push(format!(
            "{form} is larger than the camera's {width}x{height}"
        ));
    }
    if derived::accuracies(&document.frames) != document.accuracies {
        wrong.push("resolution_accuracy.csv does not follow from frames.csv".to_owned());
    }
    if derived::times(&document.frames) != document.times {
        wrong.push("resolution_times.csv does not follow from frames.csv".to_owned());
    }
    wrong
}

fn doubts(document: &VideoDocument) -> Vec<FolderFinding> {
    let few = document.answers.len() / 2;
    let mut doubts = Vec::new();
    if few < FEW {
        doubts.push(FolderFinding::warning(
            format!("each half has about {few} answers, which say little about calibration"),
            "measure with a larger set, or more --answers",
        ));
    }
    doubts
}

#[cfg(test)]
mod tests {
    use super::super::tests::document;
    use super::*;
    use crate::check::Severity;
    use crate::folder::FolderError;

    fn errors(document: &VideoDocument) -> Vec<String> {
        let findings = check_video(document).into_iter();
        let errors = findings.filter(|finding| finding.severity == Severity::Error);
        errors.map(|finding| finding.sentence).collect()
    }

    #[test]
    fn what_was_measured_is_sound_and_one_changed_number_is_found() {
        let sound = document();
        assert_eq!(errors(&sound), Vec::<String>::new());
        type Change = fn(&mut VideoDocument);
        let changes: [(&str, Change); 11] = [
            ("layerlab-link", |it| {
                it.header.format = "layerlab-link".to_owned()
            }),
            ("machine", |it| it.header.coded = Coded::Device),
            ("scores need", |it| {
                it.header.confidence = Confidence::Sigmoid
            }),
            ("answers", |it| it.header.answers += 1),
            ("seed", |it| it.header.seed += 1),
            ("seed", |it| it.answers[0].half = Half::Test),
            ("predicted", |it| it.answers[3].confidence += 0.01),
            ("predicted", |it| it.answers[3].labels.push(99)),
            ("hit", |it| it.frames[1].hit = !it.frames[1].hit),
            ("resolution_accuracy.csv", |it| {
                it.accuracies[0].ci95.0 += 0.01
            }),
            ("resolution_times.csv", |it| {
                it.frames[2].encode = crate::Nanos::from_millis(900)
            }),
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
        let (read, findings) = check_video_directory(folder.path()).expect("readable");
        assert_eq!(read, sound);
        let errors = |findings: &[FolderFinding]| {
            let errors = findings.iter().filter(|it| it.severity == Severity::Error);
            errors.map(|it| it.sentence.clone()).collect::<Vec<_>>()
        };
        assert_eq!(errors(&findings), Vec::<String>::new());

        let scores = folder.path().join("answers.f32");
        let mut bytes = std::fs::read(&scores).expect("there");
        bytes[1] ^= 0x10;
        std::fs::write(&scores, &bytes).expect("room");
        let (_, findings) = check_video_directory(folder.path()).expect("readable");
        let found = errors(&findings);
        assert!(found[0].contains("answers.f32"), "{found:?}");

        bytes.pop();
        std::fs::write(&scores, &bytes).expect("room");
        let cut = check_video_directory(folder.path()).expect_err("cut off");
        assert!(matches!(cut, VideoDocumentError::Scores { .. }), "{cut}");

        let json = folder.path().join("video.json");
        std::fs::write(&json, r#"{"format":"layerlab-video","version":9}"#).expect("room");
        let newer = check_video_directory(folder.path()).expect_err("newer");
        assert!(newer.to_string().contains("update layerlab"), "{newer}");
        std::fs::write(&json, r#"{"format":"layerlab-link"}"#).expect("room");
        let other = check_video_directory(folder.path()).expect_err("another document");
        assert!(
            matches!(
                other,
                VideoDocumentError::Folder(FolderError::Format { .. })
            ),
            "{other}"
        );
    }
}
