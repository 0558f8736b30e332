//! Jobs that measure frames, and in which sentence one is refused.

use super::*;

const MODEL: &str = "vocnet-mini.onnx";

/// A folder with a model and a set of so many images for it, as a camera of `side` pixels would have taken them.
fn folder(images: usize, side: usize) -> Folder {
    let folder = Folder::new();
    folder.copy(MODEL, "net.onnx");
    let set = frames(images, side);
    folder.write("frames.set", set.to_bytes().expect("a set"));
    folder
}

fn frames(images: usize, side: usize) -> EvaluationSet {
    let set = set(&[3, side, side], 20);
    EvaluationSet {
        metric: Metric::MultiLabel { threshold: 0.5 },
        truths: vec![Truth::Labels(vec![0]); images],
        values: Values::U8(vec![0; images * 3 * side * side]),
        ..set
    }
}

fn job(more: &str) -> String {
    format!("models = ['net.onnx']\n{DEVICES}[video]\n{more}")
}

#[test]
fn a_job_of_frames_is_resolved_and_says_what_is_left_out() {
    let folder = folder(4, 134);
    let resolved = |more: &str| {
        let path = folder.write("tonight.toml", job(more));
        let job = JobFile::read(&path).expect("a job");
        assert_eq!(job.kind(), RunKind::Video);
        job.resolve(now()).expect("a spec")
    };
    let ResolvedJob { spec, notes, .. } = resolved("set = 'frames.set'\n");
    assert_eq!(spec.kind(), RunKind::Video);
    let [note] = notes.as_slice() else {
        panic!("one note: {notes:?}")
    };
    assert!(note.contains("frames of 179, 224 pixels"), "{note}");
    let video = spec.video.as_ref().expect("frames");
    let bytes = frames(4, 134).to_bytes().expect("a set");
    assert_eq!(video.set_sha256, sha256(&bytes));
    assert_eq!(video.path, folder.0.path().join("frames.set"));
    let usual = VideoSettings {
        processor: None,
        parts: Vec::new(),
        answers: None,
        frames: VideoSettings::FRAMES,
        seed: VideoSettings::SEED,
    };
    assert_eq!(video.settings(), usual);
    let chosen = "set = 'frames.set'\nprocessor = 'npu'\nanswers = 3\nframes = 2\nseed = 9\n";
    let chosen = resolved(chosen).spec;
    let expected = VideoSettings {
        processor: Some("npu".to_owned()),
        parts: Vec::new(),
        answers: Some(3),
        frames: 2,
        seed: 9,
    };
    assert_eq!(
        chosen.video.as_ref().map(VideoSpec::settings),
        Some(expected)
    );

    // Other frames are other work, wherever the set lies.
    assert_ne!(spec.content_sha256(), chosen.content_sha256());
    let mut elsewhere = spec.clone();
    elsewhere.video.as_mut().expect("frames").path = "elsewhere.set".into();
    assert_eq!(spec.content_sha256(), elsewhere.content_sha256());
    let json = serde_json::to_string(&spec).expect("JSON");
    let back: JobSpec = serde_json::from_str(&json).expect("a spec");
    assert_eq!(back, spec);
}

#[test]
fn the_example_says_the_defaults_of_frames() {
    let (head, _) = EXAMPLE
        .split_once("# How times are measured")
        .expect("a section");
    let video: String = EXAMPLE
        .lines()
        .filter_map(|line| line.strip_prefix("#     "))
        .flat_map(|line| [line, "\n"])
        .collect();
    let folder = Folder::new();
    let path = folder.write("example.toml", format!("{head}{video}"));
    let video = JobFile::read(&path).expect("a job").video.expect("frames");
    let (set, processor, answers) = (video.set.clone(), Some("npu".to_owned()), Some(1000));
    assert_eq!(
        video,
        Video {
            set,
            processor,
            answers,
            ..Video::default()
        }
    );
}

#[test]
fn frames_that_cannot_be_measured_are_refused_in_a_sentence() {
    let folder = folder(4, 45);
    folder.copy("variants/two-inputs.onnx", "two.onnx");
    folder.copy("yolo-small.onnx", "boxes.onnx");
    folder.write("no.set", "nothing");
    let write = |name: &str, set: EvaluationSet| {
        folder.write(name, set.to_bytes().expect("a set"));
    };
    write("one.set", frames(1, 45));
    write(
        "grey.set",
        EvaluationSet {
            preprocessing: Preprocessing {
                channels: "gray".to_owned(),
                ..frames(2, 45).preprocessing
            },
            shape: vec![1, 45, 45],
            values: Values::U8(vec![0; 2 * 45 * 45]),
            ..frames(2, 45)
        },
    );
    write(
        "few.set",
        EvaluationSet {
            classes: vec!["cat".to_owned(), "dog".to_owned()],
            ..frames(2, 45)
        },
    );
    let with = |model: &str, more: &str| {
        let toml = job(&format!("set = 'frames.set'\n{more}"));
        toml.replace("net.onnx", model)
    };
    let of_set = |set: &str| job(&format!("set = '{set}'\n"));
    let cases = [
        (
            job(""),
            "`video.set`: the evaluation set is missing, whose images are the frames",
        ),
        (
            of_set("missing.set"),
            "`video.set`: cannot read `missing.set`",
        ),
        (
            of_set("no.set"),
            "`video.set`: this is no evaluation set of layerlab",
        ),
        (of_set("one.set"), "`video.set`: `one` has one image"),
        (
            of_set("grey.set"),
            "`video.set`: net takes images of 3 channels, and those of `one` have 1",
        ),
        (
            of_set("few.set"),
            "`video.set`: net answers with 20 scores, and `one` has 2 classes",
        ),
        (with("boxes.onnx", ""), "answers with 1470 scores"),
        (with("two.onnx", ""), "takes no images"),
        (
            with("net.onnx", "answers = 1"),
            "`video.answers`: half of the answers judges",
        ),
        (
            with("net.onnx", "answers = 5"),
            "`video.answers`: `one` has 4 images, and 5 cannot be answered",
        ),
        (
            with("net.onnx", "answers = -1"),
            "`video.answers`: `-1` cannot stand here",
        ),
        (
            with("net.onnx", "frames = 0"),
            "`video.frames`: `0` frames are none",
        ),
        (
            with("net.onnx", "processor = ' '"),
            "`video.processor`: a processor needs a name",
        ),
        (
            with("net.onnx", "sides = [45]"),
            "`video.sides`: there is no such key; write `set`, `processor`",
        ),
        (
            with("net.onnx", "[measure]\nseed = 2"),
            "`measure`: a job with [video] publishes no profiles",
        ),
        (
            with("net.onnx", "[accuracy]\nset = 'frames.set'"),
            "`accuracy`: a job with [video] publishes no profiles",
        ),
        (
            format!(
                "repeats = 1000\n{}",
                job("set = 'frames.set'").replace(DEVICES, &DEVICES.repeat(11))
            ),
            "are 11000 video measurements",
        ),
    ];
    for (toml, expected) in cases {
        let message = folder.refused(&toml);
        assert!(message.contains(expected), "{toml}\n{message}");
        assert!(message.starts_with("job.toml"), "{message}");
        assert!(!message.contains('\n'), "{message}");
    }
    let boxes = EvaluationSet {
        metric: Metric::Detection {
            grid: 7,
            boxes: 2,
            threshold: 0.2,
            suppress_above: 0.5,
            match_at_least: 0.5,
        },
        truths: vec![Truth::Boxes(Vec::new()); 2],
        ..frames(2, 45)
    };
    write("boxes.set", boxes);
    let message = folder.refused(&of_set("boxes.set"));
    assert!(
        message.contains("`video.set`: a confidence is that of a class"),
        "{message}"
    );
}

#[test]
fn a_job_of_frames_brings_its_set() {
    let folder = folder(2, 45);
    let path = folder.write("night.toml", job("set = 'frames.set'\n"));
    let outgoing = OutgoingJob::read(&path, &[], now()).expect("a job");
    let names: Vec<&str> = outgoing
        .files
        .iter()
        .map(|file| file.name.as_str())
        .collect();
    assert_eq!(names, ["frames.set", "net.onnx"]);
    let there = Folder::new();
    for file in &outgoing.files {
        there.write(&file.name, std::fs::read(&file.path).expect("a file"));
    }
    let sent = SentJob::parse(&outgoing.text).expect("the same job");
    let taken = sent
        .within(there.0.path())
        .and_then(|job| job.resolve(now()));
    let own = JobFile::read(&path).and_then(|job| job.resolve(now()));
    let hash = |job: Result<ResolvedJob, TomlFileError>| job.expect("a job").spec.content_sha256();
    assert_eq!(hash(taken), hash(own));

    // No path leads elsewhere.
    let text = outgoing
        .text
        .replace("\"frames.set\"\n", "\"../frames.set\"\n");
    assert_ne!(text, outgoing.text);
    let sent = SentJob::parse(&text).expect("a job");
    let error = sent.within(there.0.path()).expect_err("a path").to_string();
    assert!(
        error.contains("`video.set`: `../frames.set` is a path"),
        "{error}"
    );
}
