//! A profile of a CPU and two accelerators: its accuracy on all three together, and plans from it.

use std::collections::BTreeSet;
use std::path::Path;

use layerlab_planners::profile::{
    Pair, ProfileError, accuracy_table, accuracy_table_of, tables, time_table, time_table_of,
};
use layerlab_planners::regress::{RidgeSettings, Settings};
use layerlab_planners::sweep::time_limits;
use layerlab_planners::{AccuracyModel, Algorithm, Problem, plan};
use layerlab_profiles::Placement;
use layerlab_profiles::accuracy::{Part, Tally, references, sample};
use layerlab_profiles::check::{Rule, check};
use layerlab_profiles::document::{Evaluation, EvaluationError, Judged, Profile};

const ALL: [&str; 3] = ["cpu", "gpu", "npu"];

/// A published profile whose device has a second accelerator, as fast as the first.
fn profile() -> Profile {
    let folder =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../profiles/published/oneplus7/vocnet-mini");
    let mut profile = Profile::read(&folder).expect("a published profile");
    fn twice<T: Clone>(rows: &mut Vec<T>, processor: impl Fn(&mut T) -> &mut String) {
        let mut more = rows.clone();
        more.retain_mut(|row| processor(row) == "npu");
        more.iter_mut()
            .for_each(|row| *processor(row) = "gpu".to_owned());
        rows.extend(more);
    }
    twice(&mut profile.header.processors, |row| &mut row.name);
    twice(&mut profile.header.measurements, |row| &mut row.processor);
    twice(&mut profile.times, |row| &mut row.processor);
    twice(&mut profile.samples, |row| &mut row.processor);
    profile
}

fn evaluation(profile: &Profile) -> Evaluation {
    Evaluation {
        accelerator: "gpu+npu".to_owned(),
        ..profile.evaluations[0].clone()
    }
}

/// Of 100 answers a layer on the GPU costs one and a layer on the NPU two.
fn judged(placement: Placement) -> Judged {
    let wrong: usize = placement
        .processors()
        .iter()
        .map(|&on| usize::from(on))
        .sum();
    let tally = |answer| match answer < wrong {
        true => Tally {
            hits: 0,
            false_alarms: 1,
            misses: 1,
        },
        false => Tally {
            hits: 1,
            false_alarms: 0,
            misses: 0,
        },
    };
    Judged {
        combination: placement,
        part: Part::Train,
        tallies: (0..100).map(tally).collect(),
    }
}

fn evaluated() -> Profile {
    let profile = profile();
    let layers = profile.header.model.layers;
    let all = references(layers, 3).into_iter();
    let all: BTreeSet<Placement> = all.chain(sample(layers, 3, 100, 1)).collect();
    let judged: Vec<Judged> = all.into_iter().map(judged).collect();
    let evaluation = evaluation(&profile);
    let evaluated = profile.with_evaluation(evaluation, &judged);
    evaluated.expect("a baseline and single layers")
}

fn contradictions(profile: &Profile) -> Vec<String> {
    let findings = check(profile).into_iter();
    let about = findings.filter(|finding| finding.rule == Rule::CombinationContradiction);
    about.map(|finding| finding.sentence).collect()
}

#[test]
fn the_accuracy_on_three_processors_is_published_beside_that_on_two() {
    let mut profile = evaluated();
    assert_eq!(contradictions(&profile), Vec::<String>::new());
    let (pair, found) = accuracy_table(&profile, Pair::default()).expect("as before");
    assert_eq!((pair.processors(), found.accelerator.as_str()), (2, "npu"));
    let (table, _) = accuracy_table_of(&profile, &ALL).expect("just evaluated");
    let layers = profile.layers.len();
    assert_eq!(table.single_losses()[..layers], vec![0.01; layers]);
    assert_eq!(table.single_losses()[layers..], vec![0.02; layers]);

    let of_three = |row: &&mut _| -> bool {
        let row: &layerlab_profiles::document::CombinationRow = row;
        row.accelerator == "gpu+npu" && row.part == Part::Train
    };
    let row = profile.combinations.iter_mut().find(of_three);
    row.expect("rows of three").combination = Placement::all_on(3, layers);
    let found = contradictions(&profile);
    assert!(found[0].contains("names processor 3"), "{found:?}");
}

#[test]
fn a_plan_on_three_processors_comes_from_a_profile() {
    let profile = evaluated();
    let times = time_table_of(&profile, &ALL).expect("times of all three");
    let (table, _) = accuracy_table_of(&profile, &ALL).expect("just evaluated");
    let settings = Settings::Ridge(RidgeSettings { penalty: 0.1 });
    let model = AccuracyModel::with(&profile.layers, &table, settings).expect("trains");
    let problem = Problem::new(&profile.layers, times, &table, Box::new(model)).expect("one model");
    let least = time_limits(&problem, 2)[0];
    let outcome = plan(&problem, least, Algorithm::Fastest).expect("a sensible question");
    let fastest = outcome.plan().expect("the fastest keeps its own time");
    assert!(fastest.time_ci95().is_some());
    assert_eq!(fastest.processors(), ALL);

    // A second accelerator like the first makes nothing faster.
    let pair = time_table(&profile, Pair::default()).expect("a pair");
    let (losses, _) = accuracy_table(&profile, Pair::default()).expect("as before");
    let model = AccuracyModel::with(&profile.layers, &losses, settings).expect("trains");
    let pair = Problem::new(&profile.layers, pair, &losses, Box::new(model)).expect("one model");
    assert_eq!(time_limits(&pair, 2)[0], least);
}

#[test]
fn what_was_not_measured_on_three_processors_is_named() {
    let profile = profile();
    let error = accuracy_table_of(&profile, &ALL).expect_err("measured in pairs");
    assert!(matches!(error, ProfileError::NoneTogether { .. }));
    assert!(
        error.to_string().contains("of cpu, gpu, npu together;"),
        "{error}"
    );
    let error = time_table_of(&profile, &["cpu", "tpu"]).expect_err("no such processor");
    assert_eq!(
        error.to_string(),
        "the profile has no processor `tpu`; it has cpu, npu, gpu"
    );
    let layers = profile.layers.len();
    let evaluate = |texts: &[&str]| {
        let placements = texts.iter().map(|text| format!("{text:0<layers$}"));
        let judged: Vec<Judged> = placements
            .map(|text| judged(text.parse().expect("digits")))
            .collect();
        let evaluation = evaluation(&profile);
        let evaluated = profile.clone().with_evaluation(evaluation, &judged);
        evaluated.expect_err("something is missing")
    };
    assert!(matches!(
        evaluate(&["0", "3"]),
        EvaluationError::Processor(_)
    ));
    assert_eq!(
        evaluate(&["0", "2"]).to_string(),
        "layer 1 was not evaluated alone on `gpu`; features need its loss"
    );
}

#[test]
fn planning_takes_the_processors_that_are_named_or_those_that_were_evaluated() {
    let profile = evaluated();
    let names = |cpu, accelerators: &[&str]| -> Result<Vec<String>, String> {
        let tables = tables(&profile, cpu, accelerators).map_err(|error| error.to_string())?;
        assert_eq!(tables.times.processors(), tables.accuracy.processors());
        let names = tables.evaluation.processors(&profile.header);
        Ok(names.into_iter().map(str::to_owned).collect())
    };
    let owned = |names: &[&str]| Ok(names.iter().map(ToString::to_string).collect());
    assert_eq!(names(None, &[]), owned(&["cpu", "npu"]), "the pair");
    assert_eq!(names(None, &["npu"]), owned(&["cpu", "npu"]));
    assert_eq!(names(None, &["gpu", "npu"]), owned(&ALL));
    assert_eq!(
        names(Some("cpu"), &["gpu"]).expect_err("measured with the npu alone"),
        "the profile has no measured combinations of cpu, gpu together; add them with `layerlab evaluate --profile`"
    );
    assert_eq!(
        names(None, &["tpu"]).expect_err("no such processor"),
        "the profile has no processor `tpu`; it has cpu, npu, gpu"
    );
    // Without accuracy of a pair, that of all three is taken.
    let mut together = profile.clone();
    together.evaluations.retain(|one| one.accelerator != "npu");
    together.combinations.retain(|row| row.accelerator != "npu");
    let found = tables(&together, None, &[]).expect("of three");
    assert_eq!(found.times.names().collect::<Vec<_>>(), ALL);
}

#[test]
fn what_is_put_side_by_side_takes_the_processors() {
    assert_eq!(Algorithm::to_compare(30, 2), Algorithm::in_figures());
    let named = |layers| -> Vec<&str> {
        let algorithms = Algorithm::to_compare(layers, 3).into_iter();
        algorithms.map(Algorithm::name).collect()
    };
    assert_eq!(named(12), ["all-cpu", "fastest", "exhaustive"]);
    assert_eq!(named(13), ["all-cpu", "fastest"]);
}
