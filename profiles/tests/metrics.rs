//! The metrics against scikit-learn, torchvision and pycocotools; `recorded/metrics.py` says which of them counted what.
//! Detectors after YOLO's first version and pixels against NumPy (`recorded/detectors.py`, `recorded/pixels.py`).

use layerlab_profiles::accuracy::{
    BadAnswer, Decoder, Metric, ObjectBox, PriorGrid, Priors, SsdOutputs, Tally, Truth,
};
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
    let read = |text| -> Vec<Case> { serde_json::from_str(text).expect("what the scripts write") };
    let mut cases = read(include_str!("recorded/metrics.json"));
    cases.extend(read(include_str!("recorded/detectors.json")));
    cases.extend(read(include_str!("recorded/pixels.json")));
    cases
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
    assert!(has(|metric| matches!(metric, Metric::PixelAccuracy { .. })));
    let decoders: [fn(&Decoder) -> bool; 4] = [
        |decoder| matches!(decoder, Decoder::YoloV5 { .. }),
        |decoder| matches!(decoder, Decoder::YoloV8 { .. }),
        |decoder| matches!(decoder, Decoder::Ssd { priors: None, .. }),
        |decoder| {
            matches!(
                decoder,
                Decoder::Ssd {
                    priors: Some(_),
                    ..
                }
            )
        },
    ];
    for is_it in decoders {
        let recorded = cases.iter().filter(
            |case| matches!(&case.metric, Metric::DecodedDetection { decoder, .. } if is_it(decoder)),
        );
        let tallies = recorded.flat_map(|case| case.answers.iter().map(|answer| answer.tally));
        let tally: Tally = tallies.sum();
        assert!(
            tally.hits > 10 && tally.false_alarms > 10 && tally.misses > 4,
            "{tally:?}"
        );
    }
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

fn decoded(decoder: Decoder) -> Metric {
    Metric::DecodedDetection {
        decoder,
        threshold: 0.25,
        suppress_above: 0.5,
        match_at_least: 0.5,
    }
}

/// Two priors.
fn priors() -> Priors {
    Priors {
        centre_variance: 0.1,
        size_variance: 0.2,
        grids: vec![PriorGrid {
            columns: 2,
            rows: 1,
            step: None,
            sizes: vec![[0.5, 0.5]],
        }],
    }
}

/// Those of a network's outputs.
type Shapes<'a> = &'a [&'a [u64]];

#[test]
fn a_detector_with_other_outputs_is_refused_with_both() {
    let pixels = (640, 480);
    let (width, height) = pixels;
    let five = decoded(Decoder::YoloV5 { width, height });
    let eight = decoded(Decoder::YoloV8 { width, height });
    let ssd = |outputs, priors| decoded(Decoder::Ssd { outputs, priors });
    let boxes_first = ssd(SsdOutputs::BoxesFirst, None);
    let scores_first = ssd(SsdOutputs::ScoresFirst, Some(priors()));
    let good: [(&Metric, Shapes); 4] = [
        (&five, &[&[1, 100, 8]]),
        (&eight, &[&[1, 7, 100]]),
        (&boxes_first, &[&[1, 100, 4], &[1, 100, 4]]),
        (&scores_first, &[&[1, 2, 4], &[1, 2, 4]]),
    ];
    let asked = |metric: &Metric, shapes: Shapes| {
        let shapes: Vec<Vec<u64>> = shapes.iter().map(|shape| shape.to_vec()).collect();
        metric.accept_outputs(3, &shapes)
    };
    for (metric, shapes) in good {
        assert_eq!(asked(metric, shapes), Ok(()), "{metric:?}");
    }
    let bad: [(&Metric, Shapes, &[&str]); 8] = [
        (&five, &[&[1, 8, 100]], &["1x8x100", "1xNx8"]),
        (&five, &[&[1, 100, 7]], &["1x100x7", "1xNx8"]),
        (&five, &[&[800]], &["are 800,", "1xNx8"]),
        (&eight, &[&[1, 100, 7]], &["1x100x7", "1x7xN"]),
        (
            &eight,
            &[&[1, 7, 100], &[1, 7, 100]],
            &["1x7x100 and 1x7x100"],
        ),
        (
            &boxes_first,
            &[&[1, 100, 4], &[1, 99, 4]],
            &["1xNx4 and 1xNx4"],
        ),
        (&boxes_first, &[&[1, 100, 8]], &["are 1x100x8,"]),
        (
            &scores_first,
            &[&[1, 3, 4], &[1, 3, 4]],
            &["24 values", "needs 16"],
        ),
    ];
    for (metric, shapes, words) in bad {
        let said = asked(metric, shapes).expect_err("refused").to_string();
        for word in words {
            assert!(said.contains(word), "`{word}` is missing in: {said}");
        }
    }
    let pixels = Metric::PixelAccuracy {
        width: 8,
        height: 6,
    };
    assert_eq!(asked(&pixels, &[&[1, 3, 6, 8]]), Ok(()));
    let turned = asked(&pixels, &[&[1, 3, 8, 6]]).expect_err("refused");
    let turned = turned.to_string();
    assert!(
        turned.contains("1x3x8x6,") && turned.contains("takes 1x3x6x8"),
        "{turned}"
    );
    // What is judged is as long as boxes are.
    let long = five.judge(3, &[&[0.0; 9]], &Truth::Boxes(Vec::new()));
    assert_eq!(long, Err(BadAnswer::NotBoxes { found: 9, each: 8 }));
}

#[test]
fn an_answer_of_zeros_to_priors_is_the_priors() {
    let metric = decoded(Decoder::Ssd {
        outputs: SsdOutputs::BoxesFirst,
        priors: Some(priors()),
    });
    let there = |x| Truth::Boxes(vec![object(0, x, 0.25, 0.5, 0.5)]);
    // Two boxes of zeros; of each the background's score and that of the only class.
    let second = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.9, 0.1, 0.2, 0.8];
    assert_eq!(judged(&metric, 1, &second, there(0.5)), (1, 0, 0));
    assert_eq!(judged(&metric, 1, &second, there(0.0)), (0, 1, 1));
}
