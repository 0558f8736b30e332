//! What walking placements together saves: 300 random placements of yolo-mini, all layers on either processor and
//! each single one, on the simulated OnePlus; once together, and once each by itself. The evaluation set is that of
//! `layerlab set --coco tests/models/scenes/annotations.json --images tests/models/scenes/images --size 112x112
//! --metric detection --threshold 0.25`. Fails unless both ways judge every answer alike.

#![expect(clippy::print_stdout, reason = "its figures are what it is for")]

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use layerlab_campaign::{Evaluated, EvaluationSettings, ModelFile, Placements, SetFile, evaluate};
use layerlab_farm::discovery::Choice;
use layerlab_farm::local::LocalLink;
use layerlab_profiles::Bytes;
use layerlab_protocol::Entry;
use layerlab_tests::{agent_program, file};

const PLACEMENTS: usize = 300;
const ANSWERS: usize = 20;
/// As `layerlab evaluate` has it.
const TOGETHER: Bytes = Bytes::from_bytes(256 << 20);
/// Holds no placement, and one is walked in any case.
const ALONE: Bytes = Bytes::from_bytes(1);

/// Evaluates with so much memory, by an agent of its own.
async fn run(
    model: &ModelFile,
    set: &SetFile,
    answers: usize,
    memory: Bytes,
) -> (Evaluated, Duration) {
    let device = Choice::File(file("devices/oneplus7.toml"));
    let link = LocalLink::new(agent_program(), device).expect("a state folder");
    let settings = EvaluationSettings {
        processors: vec!["cpu".to_owned(), "npu".to_owned()],
        placements: Placements::Random(PLACEMENTS),
        seed: 1,
        answers: Some(answers),
        stop_at_half_width: None,
        as_runs: false,
        keep_answers: false,
        memory,
    };
    let started = Instant::now();
    let evaluated = evaluate(&link, model, set, &settings, &mut |_: &Entry| {}).await;
    (evaluated.expect("tallies"), started.elapsed())
}

#[tokio::main]
async fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let Some(path) = arguments.next().map(PathBuf::from) else {
        println!("usage: walk SET [ANSWERS]");
        return ExitCode::from(2);
    };
    let answers = match arguments.next() {
        Some(text) => match text.to_string_lossy().parse() {
            Ok(answers) => answers,
            Err(_) => {
                println!("ANSWERS is a number");
                return ExitCode::from(2);
            }
        },
        None => ANSWERS,
    };
    let model = ModelFile::open(&file("models/yolo-mini.onnx"), &Default::default());
    let model = model.expect("a model");
    let set = SetFile::open(&path).expect("an evaluation set");
    // Built before the clock starts.
    agent_program();

    let (together, shared) = run(&model, &set, answers, TOGETHER).await;
    let evaluation = &together.evaluation;
    println!(
        "{} placements, {} answers each",
        together.judged.len(),
        evaluation.answers
    );
    println!(
        "together: {:.1} s, {:.2} % of the operations executed",
        shared.as_secs_f64(),
        100.0 * evaluation.executed_flop as f64 / evaluation.naive_flop as f64
    );
    let (alone, each) = run(&model, &set, answers, ALONE).await;
    println!(
        "alone:    {:.1} s, {:.2} times as long",
        each.as_secs_f64(),
        each.as_secs_f64() / shared.as_secs_f64()
    );
    if together.judged != alone.judged {
        println!("the two are judged differently");
        return ExitCode::FAILURE;
    }
    println!("every answer is judged alike");
    ExitCode::SUCCESS
}
