//! Calibration against what scikit-learn made of the same scores (recorded by recorded/record.py), its errors against those that
//! pycalib and MAPIE find (recorded/record_errors.py), and the choice of one.

use std::path::Path;

use layerlab_planners::video::calibration::{
    Answers, CalibrationError, CalibrationMethod, Calibrator, FEWEST_POSITIVES, Isotonic,
    OneVsRest, Platt, Reliability, Top1, choose,
};
use proptest::prelude::*;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::Value;

fn recorded(file: &str) -> Value {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/video/recorded");
    let path = folder.join(file);
    let text = std::fs::read_to_string(path).expect("committed");
    serde_json::from_str(&text).expect("a document")
}

fn truths(value: &Value) -> Vec<bool> {
    let list = value.as_array().expect("a list").iter();
    list.map(|value| value.as_bool().expect("a truth"))
        .collect()
}

fn numbers(value: &Value) -> Vec<f64> {
    let list = value.as_array().expect("a list").iter();
    list.map(|value| value.as_f64().expect("a number"))
        .collect()
}

/// Calls `compare` with the scores of each recorded case, whether they were right, and what is recorded of it.
fn for_each_case(compare: impl Fn(&[f64], &[bool], &[f64], &Value)) {
    let recorded = recorded("calibration.json");
    let cases = recorded["cases"].as_array().expect("a list");
    assert_eq!(cases.len(), 4);
    for case in cases {
        let probes = numbers(&recorded["probes"]);
        compare(
            &numbers(&case["scores"]),
            &truths(&case["right"]),
            &probes,
            case,
        );
    }
}

fn assert_near(ours: &[f64], theirs: &[f64], tolerance: f64) {
    assert_eq!(ours.len(), theirs.len());
    for (ours, theirs) in ours.iter().zip(theirs) {
        assert!((ours - theirs).abs() < tolerance, "{ours} {theirs}");
    }
}

#[test]
fn platt_has_the_curve_of_scikit_learn() {
    for_each_case(|scores, right, probes, case| {
        let platt = Platt::train(scores, right).expect("trains");
        let ours: Vec<f64> = probes
            .iter()
            .map(|&score| platt.probability(score))
            .collect();
        let theirs = &case["platt"];
        assert_near(&ours, &numbers(&theirs["probabilities"]), 1e-4);
        // Theirs stops where the likelihood hardly changes: the parameters agree less than the curves do.
        let parameter = |name: &str| theirs[name].as_f64().expect("a number");
        assert_near(
            &[platt.slope(), platt.offset()],
            &[parameter("slope"), parameter("offset")],
            1e-3,
        );
    });
}

#[test]
fn isotonic_has_the_curve_of_scikit_learn() {
    for_each_case(|scores, right, probes, case| {
        let isotonic = Isotonic::train(scores, right).expect("trains");
        let ours = |at: &[f64]| -> Vec<f64> {
            at.iter()
                .map(|&score| isotonic.probability(score))
                .collect()
        };
        assert_near(&ours(probes), &numbers(&case["isotonic"]), 1e-12);
        assert_near(&ours(scores), &numbers(&case["isotonic_at_scores"]), 1e-12);
    });
}

/// Recorded by recorded/record_errors.py.
#[test]
fn errors_are_those_of_pycalib_and_mapie() {
    let recorded = recorded("errors.json");
    let cases = recorded["cases"].as_array().expect("a list");
    assert_eq!(cases.len(), 4);
    for case in cases {
        let reliability = Reliability::of(&numbers(&case["confidences"]), &truths(&case["right"]));
        let reliability = reliability.expect("probabilities");
        let theirs = ["expected_error", "maximum_error"].map(|name| case[name].as_f64());
        let ours = [reliability.expected_error(), reliability.maximum_error()];
        assert_near(&ours, &theirs.map(|error| error.expect("a number")), 1e-12);
    }
}

/// Softmax vectors of three classes that are surer than they are right; class 2 is scored far too low.
fn simulated(count: usize, seed: u64) -> Answers {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let (mut scores, mut labels) = (Vec::new(), Vec::new());
    for _ in 0..count {
        let label = random.random_range(0..3);
        let mut logit = |class: usize| {
            let shown = if class == label { 2.0 } else { 0.0 };
            let low = if class == 2 { 3.0 } else { 0.0 };
            (2.0 * (shown + random.random_range(-1.5..1.5_f64)) - low).exp()
        };
        let odds = [0, 1, 2].map(&mut logit);
        let sum: f64 = odds.iter().sum();
        scores.push(odds.map(|odds| odds / sum).to_vec());
        labels.push(label);
    }
    Answers::new(scores, labels).expect("one network's")
}

#[test]
fn the_calibration_with_the_least_held_out_error_is_chosen() {
    let (train, held_out) = (simulated(800, 1), simulated(800, 2));
    let chosen = choose(&train, &held_out).expect("answers");
    assert_eq!(chosen.trials().len(), 5);
    let error = chosen.best().reliability.expected_error();
    for trial in chosen.trials() {
        assert!(error <= trial.reliability.expected_error());
        let changes = matches!(trial.calibrator, Calibrator::OneVsRest(_));
        assert_eq!(trial.changed_answers > 0.0, changes, "{:?}", trial.method);
    }
    let uncalibrated = &chosen.trials()[0];
    assert_eq!(uncalibrated.method, None);
    assert!(error < uncalibrated.reliability.expected_error() / 2.0);
    // What the wrongly scored class lost, models for each class give back.
    assert!(chosen.trials()[1].accuracy > uncalibrated.accuracy + 0.02);
}

#[test]
fn logits_have_no_uncalibrated_confidence() {
    let logits = |label| (vec![-3.0 + label as f64, 2.0], label);
    let (scores, labels) = [0, 1, 1, 0].map(logits).into_iter().unzip();
    let answers = Answers::new(scores, labels).expect("finite");
    let chosen = choose(&answers, &answers).expect("answers");
    assert!(chosen.trials().iter().all(|trial| trial.method.is_some()));
    assert!(Calibrator::Uncalibrated.answer(&[-3.0, 2.0]).is_err());
}

#[test]
fn rare_classes_share_a_pooled_model() {
    let images = [FEWEST_POSITIVES, FEWEST_POSITIVES - 1, 2];
    let (mut scores, mut labels) = (Vec::new(), Vec::new());
    for (class, &images) in images.iter().enumerate() {
        for image in 0..images {
            let mut vector = vec![0.05 * image as f64; 3];
            vector[class] += 0.3;
            scores.push(vector);
            labels.push(class);
        }
    }
    let answers = Answers::new(scores.clone(), labels.clone()).expect("one network's");
    let trained = OneVsRest::train(CalibrationMethod::Platt, &answers).expect("trains");
    assert_eq!(trained.pooled_classes().collect::<Vec<_>>(), [1, 2]);
    // The pooled model is that of both classes' scores together.
    let pooled = |class: usize| scores.iter().map(move |vector| vector[class]);
    let shown = |class: usize| labels.iter().map(move |&label| label == class);
    let together: Vec<f64> = pooled(1).chain(pooled(2)).collect();
    let right: Vec<bool> = shown(1).chain(shown(2)).collect();
    let expected = Platt::train(&together, &right).expect("trains");
    let calibrated = trained.calibrated(&[0.4, 0.4, 0.2]).expect("three scores");
    assert_eq!(
        calibrated[1..],
        [0.4, 0.2].map(|score| expected.probability(score))
    );
    assert_ne!(calibrated[0], calibrated[1]);
}

#[test]
fn what_cannot_be_calibrated_is_refused_in_a_sentence() {
    use CalibrationError as E;
    let train = |scores: &[f64], right: &[bool]| Platt::train(scores, right).err();
    assert_eq!(train(&[], &[]), Some(E::NoAnswers));
    assert_eq!(
        train(&[0.5, f64::NAN], &[true; 2]),
        Some(E::NotFinite { answer: 1 })
    );
    let lengths = E::Lengths {
        scores: 1,
        labels: 2,
    };
    assert_eq!(Isotonic::train(&[0.5], &[true; 2]).err(), Some(lengths));
    assert!(matches!(
        Reliability::of(&[0.5, 1.5], &[true; 2]),
        Err(E::NoProbability { answer: 1, .. })
    ));
    let answers = |scores: Vec<Vec<f64>>, labels| Answers::new(scores, labels).err();
    assert_eq!(answers(vec![], vec![]), Some(E::NoAnswers));
    assert_eq!(answers(vec![vec![]], vec![0]), Some(E::NoAnswers));
    assert!(matches!(
        answers(vec![vec![0.5], vec![]], vec![0, 0]),
        Some(E::Classes { .. })
    ));
    assert!(matches!(
        answers(vec![vec![0.5]], vec![1]),
        Some(E::Label { .. })
    ));
    let trained = Top1::train(CalibrationMethod::Isotonic, &simulated(9, 3)).expect("trains");
    assert_eq!(trained.answer(&[]), Err(E::NoAnswers));
    assert_eq!(
        trained.answer(&[f64::INFINITY]),
        Err(E::NotFinite { answer: 0 })
    );
}

proptest! {
    #[test]
    fn any_finite_scores_have_probabilities_that_do_not_fall(
        rows in prop::collection::vec((prop::num::f64::NORMAL | prop::num::f64::ZERO, any::<bool>()), 1..40),
        probe in prop::num::f64::NORMAL,
    ) {
        let (scores, right): (Vec<f64>, Vec<bool>) = rows.into_iter().unzip();
        let isotonic = Isotonic::train(&scores, &right).expect("finite");
        let platt = Platt::train(&scores, &right).expect("finite");
        for p in [isotonic.probability(probe), platt.probability(probe)] {
            prop_assert!((0.0..=1.0).contains(&p), "{p}");
        }
        prop_assert!(isotonic.knots().windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1));
    }
}
