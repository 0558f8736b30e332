//! The metrics against scikit-learn, torchvision and pycocotools; `recorded/metrics.py` says which of them counted what.

use layerlab_profiles::accuracy::{BadAnswer, Metric, ObjectBox, Tally, Truth};
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
struct Case {
    name: String,
    metric: Metric,
    classes: usize,
    answers: Vec<Answer>,
    score: f64,
}

#[derive(Deserialize)]
struct Answer {
    values: Vec<Vec<Value>>,
    truth: Truth,
    tally: Tally,
}

fn cases() -> Vec<Case> {
    serde_json::from_str(include_str!("recorded/metrics.json")).expect("what metrics.py writes")
}

/// JSON has no word for NaN and infinities; they are recorded as text.
fn number(value: &Value) -> f32 {
    match value {
        Value::String(text) => text.parse().expect("NaN or an infinity"),
        value => value.as_f64().expect("a number") as f32,
    }
}

impl Case {
    fn judge(&self, answer: &Answer) -> Tally {
        let values: Vec<Vec<f32>> = answer
            .values
            .iter()
            .map(|values| values.iter().map(number).collect())
            .collect();
        let values: Vec<&[f32]> = values.iter().map(Vec::as_slice).collect();
        self.metric
            .judge(self.classes, &values, &answer.truth)
            .expect("an answer of the metric's form")
    }
}

#[test]
fn each_answer_is_judged_as_the_libraries_do() {
    for case in cases() {
        for (place, answer) in case.answers.iter().enumerate() {
            assert_eq!(
                case.judge(answer),
                answer.tally,
                "answer {place} of `{}`",
                case.name
            );
        }
    }
}

#[test]
fn the_score_of_all_answers_is_that_of_the_libraries() {
    for case in cases() {
        let tally: Tally = case.answers.iter().map(|answer| case.judge(answer)).sum();
        let (ours, theirs) = (tally.score(), case.score);
        assert!(
            (ours - theirs).abs() < 1e-12,
            "`{}`: {ours} and {theirs}",
            case.name
        );
    }
}

#[test]
fn every_metric_is_recorded_with_hits_false_alarms_and_misses() {
    let cases = cases();
    let has = |wanted: fn(&Metric) -> bool| {
        let tally: Tally = cases
            .iter()
            .filter(|case| wanted(&case.metric))
            .flat_map(|case| case.answers.iter().map(|answer| answer.tally))
            .sum();
        tally.hits > 10 && tally.false_alarms > 10 && tally.misses > 10
    };
    assert!(has(|metric| *metric == Metric::TopK { k: 1 }));
    assert!(has(|metric| *metric == Metric::TopK { k: 5 }));
    assert!(has(|metric| matches!(metric, Metric::MultiLabel { .. })));
    assert!(has(|metric| matches!(metric, Metric::Detection { .. })));
    assert!(has(|metric| matches!(metric, Metric::Verification { .. })));
}

const RIGHT: (u64, u64, u64) = (1, 0, 0);
const WRONG: (u64, u64, u64) = (0, 1, 1);

fn judged(metric: &Metric, classes: usize, values: &[f32], truth: Truth) -> (u64, u64, u64) {
    let tally = metric.judge(classes, &[values], &truth);
    tally.expect("an answer of the metric's form").into()
}

#[test]
fn a_tie_for_the_last_place_counts_against_the_true_class() {
    let of = |k, values: &[f32]| judged(&Metric::TopK { k }, 4, values, Truth::Labels(vec![2]));
    assert_eq!(of(1, &[0.1, 0.5, 0.5, 0.1]), WRONG);
    assert_eq!(of(2, &[0.1, 0.5, 0.5, 0.1]), RIGHT);
    assert_eq!(of(2, &[0.5, 0.5, 0.5, 0.1]), WRONG);
    assert_eq!(of(4, &[0.5; 4]), RIGHT);
}

#[test]
fn an_answer_of_nothing_but_nan_is_wrong() {
    let nan = [f32::NAN; 4];
    let label = || Truth::Labels(vec![2]);
    assert_eq!(judged(&Metric::TopK { k: 1 }, 4, &nan, label()), WRONG);
    assert_eq!(judged(&Metric::TopK { k: 4 }, 4, &nan, label()), WRONG);
    let multi_label = Metric::MultiLabel { threshold: 0.5 };
    assert_eq!(judged(&multi_label, 4, &nan, label()), (0, 3, 1));
    let (one, other) = (nan.as_slice(), [1.0; 4]);
    for same in [true, false] {
        let verification = Metric::Verification { threshold: 0.5 };
        let found = verification.judge(0, &[one, &other], &Truth::Same(same));
        assert_eq!(found, Ok(WRONG.into()));
    }
    let answer = [f32::NAN; 7];
    let object = Truth::Boxes(vec![object(0, 0.25, 0.25, 0.5, 0.5)]);
    assert_eq!(judged(&one_cell(1), 2, &answer, object), (0, 0, 1));
}

#[test]
fn labels_where_there_are_none() {
    let metric = Metric::MultiLabel { threshold: 0.5 };
    let of = |values: &[f32]| judged(&metric, 3, values, Truth::Labels(Vec::new()));
    assert_eq!(of(&[0.1, 0.2, 0.3]), (0, 0, 0));
    assert_eq!(of(&[0.1, 0.5, 0.9]), (0, 2, 0));
    assert_eq!(Tally::default().score(), 1.0);
}

#[test]
fn answers_without_an_angle_between_them_are_wrong() {
    let metric = Metric::Verification { threshold: -1.0 };
    let (zero, one) = ([0.0; 3], [1.0; 3]);
    let found = metric.judge(0, &[&zero, &one], &Truth::Same(true));
    assert_eq!(found, Ok(WRONG.into()));
    let found = metric.judge(0, &[&one, &one], &Truth::Same(true));
    assert_eq!(found, Ok(RIGHT.into()));
}

fn object(class: u32, x: f32, y: f32, width: f32, height: f32) -> ObjectBox {
    ObjectBox {
        class,
        x,
        y,
        width,
        height,
    }
}

/// A grid of one cell with so many boxes.
fn one_cell(boxes: u32) -> Metric {
    Metric::Detection {
        grid: 1,
        boxes,
        threshold: 0.2,
        suppress_above: 0.5,
        match_at_least: 0.5,
    }
}

/// One cell's answer: the classes' probabilities, and boxes of a confidence, around a place, of a size.
fn answer(probabilities: &[f32], boxes: &[(f32, [f32; 4])]) -> Vec<f32> {
    let confidences = boxes.iter().map(|(confidence, _)| *confidence);
    let shapes = boxes.iter().flat_map(|(_, [x, y, width, height])| {
        [
            x + width / 2.0,
            y + height / 2.0,
            width.sqrt(),
            height.sqrt(),
        ]
    });
    let probabilities = probabilities.iter().copied();
    probabilities.chain(confidences).chain(shapes).collect()
}

const PLACE: [f32; 4] = [0.25, 0.25, 0.5, 0.5];

#[test]
fn a_detector_that_finds_nothing_misses_everything() {
    let nothing = answer(&[1.0, 0.0], &[(0.1, PLACE)]);
    let objects = |number| Truth::Boxes(vec![object(0, 0.25, 0.25, 0.5, 0.5); number]);
    assert_eq!(judged(&one_cell(1), 2, &nothing, objects(2)), (0, 0, 2));
    assert_eq!(judged(&one_cell(1), 2, &nothing, objects(0)), (0, 0, 0));
    let something = answer(&[1.0, 0.0], &[(0.9, PLACE)]);
    assert_eq!(judged(&one_cell(1), 2, &something, objects(0)), (0, 1, 0));
}

#[test]
fn one_object_is_found_once_and_by_its_own_class() {
    let there = || Truth::Boxes(vec![object(0, 0.25, 0.25, 0.5, 0.5)]);
    // Both overlap the object by 0.6 and each other by a third: neither silences the other.
    let (left, right) = ([0.125, 0.25, 0.5, 0.5], [0.375, 0.25, 0.5, 0.5]);
    let twice = answer(&[1.0, 0.0], &[(0.9, left), (0.9, right)]);
    assert_eq!(judged(&one_cell(2), 2, &twice, there()), (1, 1, 0));
    // The same place twice is one detection, even at the same score.
    let once = answer(&[1.0, 0.0], &[(0.9, PLACE), (0.9, PLACE)]);
    assert_eq!(judged(&one_cell(2), 2, &once, there()), (1, 0, 0));
    let other = answer(&[0.0, 1.0], &[(0.9, PLACE), (0.0, PLACE)]);
    assert_eq!(judged(&one_cell(2), 2, &other, there()), (0, 1, 1));
}

#[test]
fn a_box_without_area_finds_nothing() {
    let point = answer(&[1.0, 0.0], &[(0.9, [0.5, 0.5, 0.0, 0.0])]);
    let there = Truth::Boxes(vec![object(0, 0.5, 0.5, 0.0, 0.0)]);
    assert_eq!(judged(&one_cell(1), 2, &point, there), (0, 1, 1));
}

#[test]
fn an_answer_of_another_form_is_refused() {
    let truth = Truth::Labels(vec![0]);
    let top_1 = Metric::TopK { k: 1 };
    let said = |judged: Result<Tally, _>| {
        judged
            .map_err(|error: BadAnswer| error.to_string())
            .expect_err("refused")
    };
    let long = said(top_1.judge(3, &[&[0.0; 4]], &truth));
    assert!(
        long.contains("4 values") && long.contains("needs 3"),
        "{long}"
    );
    said(top_1.judge(3, &[&[0.0; 3], &[0.0; 3]], &truth));
    said(top_1.judge(3, &[&[0.0; 3]], &Truth::Same(true)));
    let verification = Metric::Verification { threshold: 0.5 };
    let uneven = said(verification.judge(0, &[&[0.0; 4], &[0.0; 3]], &Truth::Same(true)));
    assert!(
        uneven.contains("3 values") && uneven.contains("needs 4"),
        "{uneven}"
    );
    let huge = Metric::Detection {
        grid: u32::MAX,
        boxes: u32::MAX,
        threshold: 0.2,
        suppress_above: 0.5,
        match_at_least: 0.5,
    };
    said(huge.judge(20, &[&[0.0; 3]], &Truth::Boxes(Vec::new())));
}
