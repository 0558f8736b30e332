//! What placements lose of accuracy, by the real programs: sharing work changes no answer, nor does killing the
//! agent, and what is published is sound.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use layerlab_campaign::{
    Evaluated, EvaluationSettings, ModelFile, Passes, Placements, SetFile, Verification,
    VerificationSet, evaluate,
};
use layerlab_farm::discovery::Choice;
use layerlab_farm::local::LocalLink;
use layerlab_profiles::accuracy::{Part, Tally, references, sample};
use layerlab_profiles::document::{CombinationRow, Profile};
use layerlab_profiles::{Bytes, Placement, Segment};
use layerlab_protocol::{Entry, Event};
use layerlab_tests::watched::Watched;
use layerlab_tests::{agent_program, device, file, layerlab, model, output, root, stderr, succeed};

const INPUT: i32 = 3;
const PLENTY: Bytes = Bytes::from_bytes(1 << 30);

const LABELS: &[&str] = &["--metric", "multi-label"];
const BOXES: &[&str] = &["--metric", "detection", "--threshold", "0.25"];

/// A folder with an evaluation set of the first 30 scenes.
struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    fn new(size: &str, metric: &[&str]) -> Bench {
        let bench = Bench {
            folder: tempfile::tempdir().expect("a folder"),
        };
        let scenes = file("models/scenes");
        let mut command = layerlab();
        command.arg("set").args(metric);
        command.arg("--coco").arg(scenes.join("annotations.json"));
        command.arg("--images").arg(scenes.join("images"));
        command.args(["--size", size, "--limit", "30"]);
        succeed(command.arg("--out").arg(bench.path("scenes.set")));
        bench
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn set(&self) -> SetFile {
        SetFile::open(&self.path("scenes.set")).expect("a set")
    }

    /// `layerlab profile` with accuracy, which publishes `name`; times are measured no better than they must be.
    fn publish(&self, name: &str, seed: &str) -> Profile {
        let mut command = layerlab();
        command
            .arg("profile")
            .arg("--model")
            .arg(model("vocnet-mini"));
        command.arg("--device").arg(device("oneplus7"));
        command.args(["--design", "local", "--samples", "6", "--gap-us", "0"]);
        command.arg("--set").arg(self.path("scenes.set"));
        command.args([
            "--placements",
            "20",
            "--answers",
            "30",
            "--placement-seed",
            seed,
        ]);
        succeed(command.arg("--out").arg(self.path(name)));
        Profile::read(&self.path(name)).expect("a profile")
    }

    fn table(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name).join("combinations.csv")).expect("a table")
    }

    /// Runs `layerlab`, which must refuse its input with all of `words` and publish nothing.
    #[track_caller]
    fn refuses(&self, arguments: &[&str], model: &Path, set: &Path, words: &[&str]) {
        let out = self.path("never");
        let mut command = layerlab();
        command.arg(arguments[0]).arg("--model").arg(model);
        command.arg("--device").arg(device("oneplus7"));
        command.arg("--set").arg(set).args(&arguments[1..]);
        if arguments[0] == "profile" {
            command.arg("--out").arg(&out);
        }
        let output = output(&mut command);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(INPUT), "{said}");
        for word in words {
            assert!(said.contains(word), "`{word}` is not in: {said}");
        }
        assert!(!out.exists(), "something was published");
    }
}

fn link(name: &str) -> LocalLink {
    LocalLink::new(agent_program(), Choice::File(device(name))).expect("a state folder")
}

fn open(name: &str) -> ModelFile {
    ModelFile::open(&model(name), &Default::default()).expect("a model")
}

const TWO: &[&str] = &["cpu", "npu"];
const THREE: &[&str] = &["cpu", "gpu", "npu"];

/// So many random placements, and all layers on each processor.
fn settings(
    model: &ModelFile,
    processors: &[&str],
    random: usize,
    answers: usize,
    memory: Bytes,
) -> EvaluationSettings {
    let layers = model.network.layer_count();
    let count = processors.len() as u8;
    let references = references(layers, count).into_iter();
    let mut these: Vec<Placement> = references.take(processors.len()).collect();
    these.extend(sample(layers, count, random, 3));
    EvaluationSettings {
        processors: processors.iter().map(ToString::to_string).collect(),
        placements: Placements::These(these),
        seed: 1,
        answers: Some(answers),
        stop_at_half_width: None,
        memory,
        as_runs: false,
        keep_answers: false,
    }
}

/// Evaluates placements together and each alone: they must be judged the same, and cost less together.
async fn together_and_alone(
    name: &str,
    on: (&str, &[&str]),
    metric: &[&str],
    random: usize,
    answers: usize,
) {
    let (on, processors) = on;
    let set = Bench::new("112x112", metric).set();
    let model = open(name);
    let link = link(on);
    let mut found = Vec::new();
    for memory in [PLENTY, Bytes::from_bytes(1)] {
        let settings = settings(&model, processors, random, answers, memory);
        let evaluated = evaluate(&link, &model, &set, &settings, &mut |_: &Entry| {}).await;
        found.push(evaluated.expect("tallies"));
    }
    let (together, alone) = (&found[0], &found[1]);
    assert!(together.judged.len() > random);
    assert_eq!(together.judged, alone.judged);
    let (shared, each) = (&together.evaluation, &alone.evaluation);
    assert_eq!(each.executed_flop, each.naive_flop, "nothing is shared");
    assert_eq!(shared.naive_flop, each.naive_flop);
    assert!(shared.executed_flop < each.executed_flop, "{shared:?}");
}

#[tokio::test]
async fn vocnet_in_8_bits_answers_together_as_alone() {
    together_and_alone("vocnet-mini", ("oneplus7", TWO), LABELS, 12, 10).await;
}

#[tokio::test]
async fn yolo_in_8_bits_answers_together_as_alone() {
    together_and_alone("yolo-mini", ("oneplus7", TWO), BOXES, 8, 3).await;
}

#[tokio::test]
async fn vocnet_in_16_bits_answers_together_as_alone() {
    together_and_alone("vocnet-mini", ("mate10pro", TWO), LABELS, 8, 2).await;
}

#[tokio::test]
async fn yolo_in_16_bits_answers_together_as_alone() {
    together_and_alone("yolo-mini", ("mate10pro", TWO), BOXES, 4, 1).await;
}

#[tokio::test]
async fn vocnet_on_three_processors_answers_together_as_alone() {
    together_and_alone("vocnet-mini", ("trio", THREE), LABELS, 8, 2).await;
}

/// Evaluates and says which segments were loaded on which processor.
async fn with_loaded(settings: &EvaluationSettings) -> (Evaluated, BTreeSet<(String, Segment)>) {
    let set = Bench::new("112x112", LABELS).set();
    let (model, link) = (open("vocnet-mini"), link("oneplus7"));
    let mut loaded = BTreeSet::new();
    let mut follower = |entry: &Entry| {
        if let Event::Loaded {
            processor, segment, ..
        } = &entry.event
        {
            loaded.insert((processor.clone(), *segment));
        }
    };
    let evaluated = evaluate(&link, &model, &set, settings, &mut follower).await;
    (evaluated.expect("tallies"), loaded)
}

/// The runs of placements by the names of their processors.
fn runs(placements: &[&Placement]) -> BTreeSet<(String, Segment)> {
    let runs = placements.iter().flat_map(|placement| placement.runs());
    runs.map(|(run, on)| (TWO[usize::from(on)].to_owned(), run))
        .collect()
}

/// Simulated processors round after each layer, whoever else is in its segment, so that the answers are the same; what is
/// loaded is not.
#[tokio::test]
async fn as_runs_neighbours_on_one_processor_are_one_loaded_segment() {
    let model = open("vocnet-mini");
    let by_layers = settings(&model, TWO, 6, 5, PLENTY);
    let as_runs = EvaluationSettings {
        as_runs: true,
        ..by_layers.clone()
    };
    let Placements::These(these) = &as_runs.placements else {
        panic!("these placements");
    };
    let (evaluated, loaded) = with_loaded(&as_runs).await;
    assert_eq!(loaded, runs(&these.iter().collect::<Vec<_>>()));
    assert!(evaluated.evaluation.as_runs);
    let (layer_by_layer, loaded) = with_loaded(&by_layers).await;
    assert!(loaded.iter().all(|(_, segment)| segment.layers() == 1));
    assert!(!layer_by_layer.evaluation.as_runs);
    assert_eq!(evaluated.judged, layer_by_layer.judged);
    let executed = |evaluated: &Evaluated| evaluated.evaluation.executed_flop;
    assert!(executed(&evaluated) >= executed(&layer_by_layer));
    assert!(executed(&evaluated) <= evaluated.evaluation.naive_flop);
}

#[tokio::test]
async fn a_plan_s_accuracy_is_verified_as_it_runs() {
    let set = Bench::new("112x112", LABELS).set();
    let (model, link) = (open("vocnet-mini"), link("oneplus7"));
    let placement: Placement = "11110000111".parse().expect("digits");
    let verification = Verification {
        model: &model,
        placements: vec![placement.clone()],
        passes: Passes {
            samples: 3,
            ..Passes::on(TWO.iter().map(ToString::to_string).collect())
        },
        set: Some(VerificationSet {
            set: &set,
            seed: 1,
            answers: 3,
        }),
    };
    let mut loaded = BTreeSet::new();
    let mut follower = |entry: &Entry| {
        if let Event::Loaded {
            processor, segment, ..
        } = &entry.event
        {
            loaded.insert((processor.clone(), *segment));
        }
    };
    let verified = verification.run(&link, &mut follower).await;
    let evaluated = verified.expect("a verification").accuracy.expect("a set");
    assert!(evaluated.evaluation.as_runs);
    // Beside it, all layers on the CPU, which losses are measured against.
    let baseline: Placement = "00000000000".parse().expect("digits");
    assert_eq!(loaded, runs(&[&placement, &baseline]));
}

/// A placement's digits are places in the list of processors: in another order of the list the same placements have other
/// digits and the same answers.
#[tokio::test]
async fn placements_run_on_the_processors_that_their_digits_name() {
    let set = Bench::new("112x112", LABELS).set();
    let (model, link) = (open("vocnet-mini"), link("trio"));
    let swapped = |placement: &Placement| {
        let digit = |&digit: &u8| [0, 2, 1][usize::from(digit)];
        Placement::new(placement.processors().iter().map(digit).collect())
    };
    let mut settings = settings(&model, THREE, 4, 20, PLENTY);
    let given = evaluate(&link, &model, &set, &settings, &mut |_: &Entry| {}).await;
    settings.processors.swap(1, 2);
    if let Placements::These(these) = &mut settings.placements {
        *these = these.iter().map(swapped).collect();
    }
    let given_again = evaluate(&link, &model, &set, &settings, &mut |_: &Entry| {}).await;

    let tallies = |evaluated: Result<Evaluated, _>| -> Vec<(Placement, Vec<Tally>)> {
        let judged = evaluated.expect("tallies").judged.into_iter();
        judged.map(|one| (one.combination, one.tallies)).collect()
    };
    let (given, given_again) = (tallies(given), tallies(given_again));
    assert!(given.len() > 4);
    for ((placement, tallies), (again, tallies_again)) in given.iter().zip(&given_again) {
        assert_eq!((&swapped(placement), tallies), (again, tallies_again));
    }
    let all_on = |processor| {
        let found = given
            .iter()
            .find(|(placement, _)| placement.is_all_on(processor));
        &found.expect("a reference").1
    };
    assert_ne!(
        all_on(1),
        all_on(2),
        "16 and 8 bits answer alike, so that nothing was shown"
    );
}

/// Evaluates on an agent that is killed whenever one of `kill_at` answers has come. Returns also how often the
/// daemon had to connect.
async fn killed(set: &SetFile, kill_at: &[u64]) -> (Evaluated, u64) {
    let model = open("vocnet-mini");
    let link = Watched::new(link("oneplus7"));
    let settings = settings(&model, TWO, 3, 30, PLENTY);
    let mut kill_at: BTreeSet<u64> = kill_at.iter().copied().collect();
    let mut answers = 0;
    let mut on_entry = |entry: &Entry| {
        if matches!(entry.event, Event::Judged { .. }) {
            answers += 1;
            if kill_at.remove(&answers) {
                link.kill_agent();
            }
        }
    };
    let mut evaluated = evaluate(&link, &model, set, &settings, &mut on_entry)
        .await
        .expect("tallies");
    let provenance = evaluated.evaluation.provenance.take();
    assert_eq!(provenance.expect("it was noted").link, "local");
    assert_eq!(answers, 30, "each answer is reported once");
    assert!(kill_at.is_empty(), "never came to kill at {kill_at:?}");
    (evaluated, link.connections())
}

#[tokio::test(flavor = "multi_thread")]
async fn killing_the_agent_changes_no_tally() {
    let set = Bench::new("112x112", LABELS).set();
    let (undisturbed, connections) = killed(&set, &[]).await;
    assert_eq!(
        connections, 3,
        "the first asks who it is, the last has the agent forget the journal"
    );
    // The first order ends with answer 25.
    let (disturbed, connections) = killed(&set, &[1, 2, 13, 25, 26, 30]).await;
    assert!(
        connections > 4,
        "the agent was killed and connected to again, {connections} times"
    );
    assert_eq!(disturbed, undisturbed);
}

#[test]
fn a_profile_with_accuracy_is_sound_and_the_same_seed_gives_the_same_table() {
    let bench = Bench::new("112x112", LABELS);
    let profile = bench.publish("first", "7");
    let said = succeed(layerlab().arg("check").arg(bench.path("first")));
    assert!(
        said.contains("a sound simulated profile of vocnet-mini"),
        "{said}"
    );

    let layers = profile.header.model.layers;
    let rows = &profile.combinations;
    let of = |part| rows.iter().filter(|row| row.part == part).count();
    assert_eq!((of(Part::Train), of(Part::Test)), (17, 3));
    let row = |combination: &Placement| -> &CombinationRow {
        let mut rows = rows.iter();
        rows.find(|row| row.combination == *combination)
            .unwrap_or_else(|| panic!("no row of {combination}"))
    };
    let references = references(layers, 2);
    assert_eq!(references.len() as u32, layers + 2);
    for reference in &references {
        assert_eq!(row(reference).answers, 30);
    }
    let baseline = row(&references[0]);
    assert!(baseline.score > 0.8, "{baseline:?}");
    assert_eq!((baseline.loss, baseline.loss_ci95), (0.0, (0.0, 0.0)));
    let all = row(&references[1]);
    assert!(all.loss_ci95.0 > 0.0, "8 bits in all layers cost: {all:?}");
    assert_eq!(all.features.npu_layers, layers);

    bench.publish("again", "7");
    assert_eq!(bench.table("again"), bench.table("first"));
    bench.publish("other", "8");
    assert_ne!(bench.table("other"), bench.table("first"));
}

#[test]
fn a_set_of_another_shape_is_refused_with_both_before_anything_is_measured() {
    let bench = Bench::new("64x64", LABELS);
    let words = ["1x3x112x112", "1x3x64x64", "make the set again"];
    for command in ["evaluate", "profile"] {
        let set = bench.path("scenes.set");
        bench.refuses(&[command], &model("vocnet-mini"), &set, &words);
    }
}

#[test]
fn a_set_for_other_answers_is_refused_with_both_lengths() {
    let bench = Bench::new("112x112", BOXES);
    let set = bench.path("scenes.set");
    for command in ["evaluate", "profile"] {
        bench.refuses(&[command], &model("vocnet-mini"), &set, &["1470", "20 "]);
    }
}

#[test]
fn accuracy_without_an_accelerator_is_refused_before_anything_is_measured() {
    let bench = Bench::new("112x112", LABELS);
    bench.refuses(
        &["profile", "--processors", "cpu"],
        &model("vocnet-mini"),
        &bench.path("scenes.set"),
        &["needs an accelerator", "cpu"],
    );
}

#[test]
fn accuracy_beside_the_times_of_another_device_is_refused_with_both() {
    let bench = Bench::new("112x112", LABELS);
    let profile = root().join("profiles/published/mate10pro/vocnet-mini");
    let (profile, out) = (profile.display().to_string(), bench.path("never"));
    let out = out.display().to_string();
    let arguments = ["evaluate", "--profile", &profile, "--out", &out];
    let words = ["Mate 10 Pro", "OnePlus 7", "measure this one first"];
    bench.refuses(
        &arguments,
        &model("vocnet-mini"),
        &bench.path("scenes.set"),
        &words,
    );
}

#[test]
fn a_model_with_two_inputs_cannot_be_shown_images() {
    let bench = Bench::new("112x112", LABELS);
    let two = model("variants/two-inputs");
    let words = ["has 2 inputs"];
    bench.refuses(&["evaluate"], &two, &bench.path("scenes.set"), &words);
}

#[test]
fn a_placement_of_other_layers_is_refused_with_both_counts() {
    let bench = Bench::new("112x112", LABELS);
    bench.refuses(
        &["evaluate", "--combination", "0110"],
        &model("vocnet-mini"),
        &bench.path("scenes.set"),
        &["0110", "4 digits", "11 layers"],
    );
}

#[test]
fn a_file_that_is_no_set_is_refused_with_what_makes_one() {
    let bench = Bench::new("112x112", LABELS);
    for command in ["evaluate", "profile"] {
        let path = model("vocnet-mini");
        let words = ["no evaluation set", "layerlab set"];
        bench.refuses(&[command], &path, &path, &words);
    }
}
