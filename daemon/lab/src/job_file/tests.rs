//! What a job file asks for, what is kept of it, and in which sentence one is refused.

use std::collections::BTreeMap;
use std::time::Duration;

use layerlab_profiles::accuracy::{EvaluationSet, Metric, Preprocessing, Resize, Truth, Values};
use layerlab_profiles::design::Design;
use layerlab_profiles::{Nanos, sha256};
use layerlab_protocol::MeterChoice;

mod link;
mod video;

use super::*;
use layerlab_campaign::{
    AccuracySettings, EnergySettings, SteadySettings, TimesSettings, VideoSettings,
};

const DEVICES: &str = "[[devices]]\nabi = 'arm64-v8a'\n";

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().expect("a folder"))
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, content).expect("written");
        path
    }

    fn copy(&self, model: &str, name: &str) {
        self.write(name, std::fs::read(test_model(model)).expect("a model"));
    }

    fn refused(&self, toml: &str) -> String {
        let path = self.write("job.toml", toml);
        let refused = JobFile::read(&path).and_then(|job| job.resolve(now()));
        let error = refused.expect_err(toml).to_string();
        let folder = format!("{}/", self.0.path().display());
        error.replace(&folder, "")
    }
}

fn test_model(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/models")
        .join(name)
}

fn now() -> Timestamp {
    "2026-11-20T20:00:00Z".parse().expect("an instant")
}

/// A set of one image for a model with this input and so many classes.
fn set(shape: &[usize], classes: usize) -> EvaluationSet {
    EvaluationSet {
        name: "one".to_owned(),
        metric: Metric::TopK { k: 1 },
        classes: (0..classes).map(|class| format!("c{class}")).collect(),
        preprocessing: Preprocessing {
            resize: Resize::Stretch,
            channels: "rgb".to_owned(),
            mean: Vec::new(),
            scale: 1.0,
        },
        shape: shape.to_vec(),
        truths: vec![Truth::Labels(vec![0])],
        pairs: Vec::new(),
        values: Values::U8(vec![0; shape.iter().product()]),
    }
}

/// A set that fits `model`.
fn set_for(model: &str) -> EvaluationSet {
    let network = ModelFile::open(&test_model(model), &BTreeMap::new())
        .expect("a model")
        .network;
    let shape = network.inputs()[0].shape.iter();
    let shape: Vec<usize> = shape.skip(1).map(|&axis| axis as usize).collect();
    let outputs = network.outputs().iter();
    set(
        &shape,
        outputs.map(|output| output.elements() as usize).sum(),
    )
}

#[test]
fn the_example_is_a_job_and_says_the_defaults() {
    let folder = Folder::new();
    let job = JobFile::read(&folder.write("example-job.toml", EXAMPLE)).expect("a job");
    assert_eq!(job.measure, MeasureSpec::default());
    let Some(accuracy) = job.accuracy else {
        panic!("it measures accuracy");
    };
    let set = accuracy.set.clone();
    assert_eq!(
        accuracy,
        Accuracy {
            set,
            ..Accuracy::default()
        }
    );
    assert_eq!(job.devices.len(), 2);
    let Content {
        repeats, priority, ..
    } = Content::default();
    assert_eq!(
        (job.content.repeats, job.content.priority),
        (repeats, priority)
    );
    // What has no default is there to be uncommented.
    let all: String = EXAMPLE
        .lines()
        .map(|line| match line.strip_prefix("# ") {
            Some(key)
                if key
                    .split_once(" = ")
                    .is_some_and(|(key, _)| !key.contains(' ')) =>
            {
                key
            }
            _ => line,
        })
        .flat_map(|line| [line, "\n"])
        .collect();
    let job = JobFile::read(&folder.write("all.toml", all)).expect("a job");
    assert!(job.content.window.is_some() && job.content.every.is_some());
    assert!(job.content.not_before.is_some() && job.content.deadline.is_some());
    assert!(
        job.accuracy
            .is_some_and(|accuracy| accuracy.answers == Some(1000))
    );
}

#[test]
fn a_job_is_resolved_and_its_files_are_hashed() {
    let folder = Folder::new();
    folder.copy("variants/residual.onnx", "residual.onnx");
    let bytes = set_for("variants/residual.onnx")
        .to_bytes()
        .expect("a file");
    folder.write("one.set", &bytes);
    let path = folder.write(
        "tonight.toml",
        r#"
        models = ["residual.onnx"]
        hosts = ['rack-1']
        repeats = 2
        priority = 5
        not-before = 2026-11-20T22:00:00+01:00
        deadline = "8h"
        window = "22:00-07:00 Europe/Berlin"
        profiles = "out"
        [[devices]]
        pool = "night"
        each = true
        [measure]
        design = "local"
        budget = "90s"
        visits = 7
        cool-down = "45m"
        steady = "30m"
        energy = "40s"
        energy-visits = 4
        [accuracy]
        set = "one.set"
        stop-at-percent = 1
        processors = ["cpu", "gpu", "npu"]
        "#,
    );
    let job = JobFile::read(&path).expect("a job");
    let ResolvedJob { spec, sizes, notes } = job.resolve(now()).expect("a spec");
    assert_eq!((spec.name.as_str(), spec.repeats), ("tonight", 2));
    assert_eq!(spec.hosts, ["rack-1"]);
    assert_eq!(spec.profiles, Some(folder.0.path().join("out")));
    let at = |text: &str| Some(text.parse().expect("an instant"));
    assert_eq!(spec.not_before, at("2026-11-20T21:00:00Z"));
    assert_eq!(spec.deadline, at("2026-11-21T04:00:00Z"));
    assert_eq!(spec.measure.design, Design::Local);
    assert_eq!(spec.measure.budget, Duration::from_secs(90));
    let settings = spec.measure.settings();
    assert_eq!(settings.visits, 7);
    let rest = Nanos::from_millis(45 * 60_000);
    assert_eq!(settings.hygiene.cool_down_deadline_ns, rest);
    let steady = SteadySettings::of(Nanos::from_millis(30 * 60_000));
    assert_eq!(settings.steady, steady.ok());
    let energy = EnergySettings {
        window: Nanos::from_millis(40_000),
        visits: 4,
        meter: MeterChoice::Any,
    };
    assert_eq!(settings.energy, Some(energy));
    assert!(spec.devices[0].each);

    let path = folder.0.path().join("residual.onnx");
    let model = ModelFile::open(&path, &BTreeMap::new()).expect("a model");
    let expected = ModelSpec {
        name: "residual".to_owned(),
        sha256: model.sha256,
        source_sha256: model.source_sha256,
        external_weights: model.external_weights,
        quantised: None,
        path,
    };
    assert_eq!(
        (&spec.models, &sizes),
        (&vec![expected], &vec![BTreeMap::new()])
    );
    assert_eq!((notes, spec.kind()), (Vec::new(), RunKind::Profile));
    let accuracy = spec.accuracy.as_ref().expect("accuracy");
    assert_eq!(accuracy.set_sha256, sha256(&bytes));
    assert_eq!(accuracy.path, folder.0.path().join("one.set"));
    let kept = std::fs::read_dir(folder.0.path())
        .expect("a folder")
        .count();
    assert_eq!(kept, 3, "the files that were there, and no copies");

    let settings = accuracy.settings();
    assert_eq!(settings.cpu.as_deref(), Some("cpu"));
    assert_eq!(settings.accelerators, ["gpu", "npu"]);

    let json = serde_json::to_string(&spec).expect("JSON");
    let back: JobSpec = serde_json::from_str(&json).expect("a spec");
    assert_eq!(back, spec);
}

#[test]
fn what_is_refused_is_said_in_a_sentence() {
    let folder = Folder::new();
    folder.copy("variants/residual.onnx", "net.onnx");
    folder.copy("variants/two-inputs.onnx", "two.onnx");
    folder.write("small.set", set(&[3, 2, 2], 4).to_bytes().expect("a set"));
    folder.write("no.set", "nothing");
    let with_net = |more: &str| format!("models = ['net.onnx']\n{more}\n{DEVICES}");
    let cases = [
        (
            "models = [".to_owned(),
            "job.toml is no TOML, line 1: unclosed array, expected `]`",
        ),
        (
            DEVICES.to_owned(),
            "`models`: there is nothing to profile; write a list of ONNX files",
        ),
        (
            "models = ['net.onnx']".to_owned(),
            "`devices`: there is nothing to profile on; write [[devices]]",
        ),
        (
            "models = ['net.onnx']\n[[devices]]\neach = true".to_owned(),
            "`devices`: one of them says nothing; under each [[devices]] write a serial",
        ),
        (
            "models = ['net.onnx']\n[[devices]]\nsrial = 'x'".to_owned(),
            "`devices.srial`: there is no such key; write `serial`, `soc`",
        ),
        (
            "models = ['net.onnx']\n[[devices]]\nandroid = 'new'".to_owned(),
            "`devices.android`: `new` is no requirement; write a version such as 14",
        ),
        (
            "models = ['net.onnx']\n[[devices]]\nandroid = 3.5".to_owned(),
            "`devices.android`: write a version such as 14",
        ),
        (
            with_net("modle = 'x'"),
            "job.toml: `modle`: there is no such key; write `name`, `models`",
        ),
        (
            format!("models = 'net.onnx'\n{DEVICES}"),
            "`models`: `\"net.onnx\"` cannot stand here; write a list in brackets",
        ),
        (
            format!("models = [{{ path = 'net.onnx' }}]\n{DEVICES}"),
            "`models`: write paths in quotes, or tables such as { file",
        ),
        (
            format!("models = [{{ file = 'net.onnx', dims = {{ N = 0 }} }}]\n{DEVICES}"),
            "`models`: 0 is no size of a dimension",
        ),
        (
            format!("models = ['~/net.onnx']\n{DEVICES}"),
            "`models`: `~` is not replaced in job files",
        ),
        (
            format!("models = ['missing.onnx']\n{DEVICES}"),
            "`models`: cannot read the model `missing.onnx`",
        ),
        (
            format!("models = ['net.onnx', 'net.onnx']\n{DEVICES}"),
            "`models`: `net.onnx` and `net.onnx` are the same model; leave one out",
        ),
        (with_net("name = ''"), "`name`: a name is missing"),
        (
            with_net("hosts = ['rack 1']"),
            "`hosts`: `rack 1` is no name of a host; write at most 63 letters, digits, dashes",
        ),
        (
            with_net("hosts = ['rack-1', 'rack-2', 'rack-1']"),
            "`hosts`: a host stands here twice; write each once",
        ),
        (
            with_net("repeats = 0"),
            "`repeats`: `0` is not how often something is done; write a whole number from 1 to 1000",
        ),
        (
            with_net("repeats = -1"),
            "`repeats`: `-1` cannot stand here; write a whole number of at least 0",
        ),
        (
            with_net("priority = 101"),
            "`priority`: `101` is out of range; write a whole number from -100 to 100",
        ),
        (
            with_net("window = 'at night'"),
            "`window`: `at` is no span of hours",
        ),
        (
            with_net("every = '0 22'"),
            "`every`: `0 22` has 2 of five fields",
        ),
        (
            with_net("not-before = 'soon'"),
            "`not-before`: `soon` is no point in time",
        ),
        (
            with_net("not-before = 7"),
            "`not-before`: `7` is no point in time",
        ),
        (
            with_net("deadline = 2026-11-20T19:00:00Z"),
            "`deadline`: Fri 20 Nov 19:00 is over; write a later point in time",
        ),
        (
            with_net("not-before = '2026-11-21T07:00Z'\ndeadline = '8h'"),
            "`deadline`: Sat 21 Nov 04:00 is not after `not-before`, Sat 21 Nov 07:00",
        ),
        (
            with_net("every = '@daily'\ndeadline = '8h'"),
            "`deadline`: it would be the same one whenever the job comes again; leave it or `every` out",
        ),
        (
            with_net("measure = 3"),
            "`measure`: `3` cannot stand here; write a table",
        ),
        (
            with_net("measure.design = 'best'"),
            "`measure.design`: `\"best\"` cannot stand here; write one of `prefix-suffix`",
        ),
        (
            with_net("measure.budget = 600"),
            "`measure.budget`: `600` cannot stand here; write a text in quotes",
        ),
        (
            with_net("measure.budget = 'long'"),
            "`measure.budget`: `long` is no duration",
        ),
        (
            with_net("measure.target-ci-percent = 0"),
            "`measure.target-ci-percent`: `0` is no width of an interval",
        ),
        (
            with_net("measure.samples = 0"),
            "`measure.samples`: `0` samples are none",
        ),
        (
            with_net("measure.visits = 2"),
            "`measure.visits`: `2` visits are too few to tell how they differ; write a whole number of at least 3",
        ),
        (
            with_net("measure.steady = '90s'"),
            "`measure.steady`: a device is kept busy for whole minutes",
        ),
        (
            with_net("measure.steady = 30"),
            "`measure.steady`: `30` cannot stand here; write a text in quotes",
        ),
        (
            with_net("measure.energy = '1ms'"),
            "`measure.energy`: a segment is run for",
        ),
        (
            with_net("measure = { energy = '30s', energy-visits = 1 }"),
            "`measure.energy-visits`: `1` visits are too few",
        ),
        (
            with_net("measure.energy-visits = 4"),
            "`measure.energy-visits`: energy is not measured; write `energy = \"30s\"` too",
        ),
        (
            with_net("measure.processors = ['cpu', 'cpu']"),
            "`measure.processors`: each processor needs a name of its own",
        ),
        (
            with_net("measure.sample = 3"),
            "`measure.sample`: there is no such key; write `processors`",
        ),
        (
            with_net("accuracy.placements = 3"),
            "`accuracy.set`: the evaluation set is missing",
        ),
        (
            with_net("accuracy.set = 'missing.set'"),
            "`accuracy.set`: cannot read `missing.set`",
        ),
        (
            with_net("accuracy.set = 'no.set'"),
            "`accuracy.set`: this is no evaluation set of layerlab",
        ),
        (
            with_net("accuracy.set = 'small.set'"),
            "`accuracy.set`: the model takes",
        ),
        (
            with_net("accuracy = { set = 'small.set', stop-at-percent = 100 }"),
            "`accuracy.stop-at-percent`: `100` is no width",
        ),
        (
            with_net("accuracy = { set = 'small.set', answers = 0 }"),
            "`accuracy.answers`: `0` answers are none",
        ),
        (
            with_net("accuracy = { set = 'small.set', processors = ['cpu'] }"),
            "`accuracy.processors`: a placement is on a CPU and one accelerator or more",
        ),
        (
            format!("models = ['two.onnx']\naccuracy.set = 'small.set'\n{DEVICES}"),
            "`accuracy.set`: the model `two` has 2 inputs",
        ),
    ];
    for (toml, expected) in cases {
        let message = folder.refused(&toml);
        assert!(message.contains(expected), "{toml}\n{message}");
        assert!(message.starts_with("job.toml"), "{message}");
        assert!(!message.contains('\n'), "{message}");
    }
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let error = JobFile::read(Path::new("nowhere.toml")).expect_err("no file");
    assert!(
        error
            .to_string()
            .starts_with("cannot read the job file nowhere.toml")
    );
}

#[test]
fn a_job_that_chooses_nothing_means_the_defaults_of_campaigns() {
    assert_eq!(MeasureSpec::default().settings(), TimesSettings::default());
    let accuracy = Accuracy::default();
    let spec = AccuracySpec {
        set_sha256: String::new(),
        path: accuracy.set,
        processors: accuracy.processors,
        placements: accuracy.placements,
        answers: accuracy.answers,
        stop_at_percent: accuracy.stop_at_percent,
        seed: accuracy.seed,
    };
    assert_eq!(spec.settings(), AccuracySettings::default());
}

#[test]
fn what_never_ends_or_is_longer_than_any_is_refused() {
    for endless in ["/dev/zero", "/dev/null", "/"] {
        let refused = JobFile::read(Path::new(endless)).expect_err("no file");
        let expected = format!("the job file {endless} is no regular file; write it into one");
        assert_eq!(refused.to_string(), expected);
    }
    let folder = Folder::new();
    let refused = folder.refused(&format!("models = ['/dev/zero']\n{DEVICES}"));
    assert!(
        refused.contains("`/dev/zero` is no regular file"),
        "{refused}"
    );
    let long = format!("{DEVICES}# {}", "x".repeat(300 << 10));
    let refused = folder.refused(&long);
    assert!(refused.contains("is longer than 256 KiB"), "{refused}");
}

#[test]
fn a_job_of_too_many_profiles_is_refused() {
    let folder = Folder::new();
    let toml = format!(
        "models = ['net.onnx']\nrepeats = 1000\n{}",
        DEVICES.repeat(11)
    );
    assert_eq!(
        folder.refused(&toml),
        "job.toml: `devices`: 1 of `models` on 11 of `devices`, 1000 times each, are 11000 profiles, and a job has at \
         most 10000; split it, or lower `repeats`"
    );
}
