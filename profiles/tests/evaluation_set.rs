//! Evaluation sets as files: what was written is read again, and nothing else is.

use layerlab_profiles::accuracy::{
    EvaluationSet, Metric, ObjectBox, Preprocessing, Resize, SetError, Truth, Values,
};
use layerlab_profiles::sha256;
use proptest::collection::vec;
use proptest::prelude::*;

const CLASSES: u32 = 3;

fn any_metric_and_truths(answers: usize) -> impl Strategy<Value = (Metric, Vec<Truth>)> {
    let labels = vec(0..CLASSES, 0..4).prop_map(Truth::Labels);
    let share = 0.0..1.0_f32;
    let object = (
        0..CLASSES,
        [share.clone(), share.clone(), share.clone(), share],
    );
    let object = object.prop_map(|(class, [x, y, width, height])| ObjectBox {
        class,
        x,
        y,
        width,
        height,
    });
    let boxes = vec(object, 0..4).prop_map(Truth::Boxes);
    let detection = Metric::Detection {
        grid: 7,
        boxes: 2,
        threshold: 0.2,
        suppress_above: 0.5,
        match_at_least: 0.5,
    };
    let of = move |metric: Metric, truth: BoxedStrategy<Truth>| {
        (Just(metric), vec(truth, answers)).boxed()
    };
    prop_oneof![
        of(Metric::TopK { k: 5 }, labels.clone().boxed()),
        of(Metric::MultiLabel { threshold: 0.1 }, labels.boxed()),
        of(detection, boxes.boxed()),
        of(
            Metric::Verification { threshold: 0.7 },
            any::<bool>().prop_map(Truth::Same).boxed()
        ),
    ]
}

prop_compose! {
    fn any_set()(
        answers in 0..4_usize,
        shape in [1..4_usize, 1..4, 1..4],
    )(
        (metric, truths) in any_metric_and_truths(answers),
        shape in Just(shape),
        bytes in vec(any::<u8>(), answers * 2 * shape.iter().product::<usize>()),
        whole in any::<bool>(),
        name in "\\PC{0,12}",
        mean in vec(0.0..255.0_f32, 0..4),
        scale in 0.001..1.0_f32,
    ) -> EvaluationSet {
        let pixels = truths.len() * metric.images_per_answer() * shape.iter().product::<usize>();
        let bytes = &bytes[..pixels];
        EvaluationSet {
            name,
            metric,
            classes: vec!["red\nring".to_owned(), "blue \"disc\"".to_owned(), "".to_owned()],
            preprocessing: Preprocessing {
                resize: Resize::Letterbox,
                channels: "bgr".to_owned(),
                mean,
                scale,
            },
            shape: shape.to_vec(),
            truths,
            values: match whole {
                true => Values::U8(bytes.to_vec()),
                false => Values::F32(bytes.iter().map(|&byte| f32::from(byte) / 255.0).collect()),
            },
        }
    }
}

proptest! {
    #[test]
    fn what_was_written_is_read_again(set in any_set()) {
        let bytes = set.to_bytes().expect("a set");
        prop_assert_eq!(EvaluationSet::from_bytes(&bytes).expect("the set"), set);
    }

    #[test]
    fn a_set_that_is_cut_off_is_refused(set in any_set(), kept in 0.0..1.0_f64) {
        let bytes = set.to_bytes().expect("a set");
        let kept = (bytes.len() as f64 * kept) as usize;
        prop_assert!(EvaluationSet::from_bytes(&bytes[..kept]).is_err());
    }

    #[test]
    fn whatever_the_bytes_reading_ends(bytes in vec(any::<u8>(), 0..200)) {
        prop_assert!(EvaluationSet::from_bytes(&bytes).is_err());
    }
}

/// Two images of 1 x 1 x 2.
fn set() -> EvaluationSet {
    EvaluationSet {
        name: "two".to_owned(),
        metric: Metric::TopK { k: 1 },
        classes: vec!["a".to_owned(), "b".to_owned()],
        preprocessing: Preprocessing {
            resize: Resize::Stretch,
            channels: "gray".to_owned(),
            mean: Vec::new(),
            scale: 1.0,
        },
        shape: vec![1, 1, 2],
        truths: vec![Truth::Labels(vec![0]), Truth::Labels(vec![1])],
        values: Values::U8(vec![1, 2, 3, 4]),
    }
}

#[track_caller]
fn assert_refused(result: Result<impl std::fmt::Debug, SetError>, words: &[&str]) {
    let said = result.expect_err("refused").to_string();
    for word in words {
        assert!(said.contains(word), "`{word}` is missing in: {said}");
    }
}

#[test]
fn the_file_is_a_line_of_json_and_then_the_values() {
    let bytes = set().to_bytes().expect("a set");
    let end = bytes
        .iter()
        .position(|&byte| byte == b'\n')
        .expect("a line");
    assert_eq!(
        String::from_utf8_lossy(&bytes[..end]),
        concat!(
            r#"{"format":"layerlab-evaluation-set","version":1,"name":"two","metric":{"type":"top-k","k":1},"#,
            r#""classes":["a","b"],"preprocessing":{"resize":"stretch","channels":"gray","mean":[],"scale":1.0},"#,
            r#""shape":[1,1,2],"values":"u8","truths":[{"labels":[0]},{"labels":[1]}]}"#
        )
    );
    assert_eq!(bytes[end + 1..], [1, 2, 3, 4]);
    assert_eq!(sha256(&bytes).len(), 64);
}

#[test]
fn another_header_is_refused_by_name() {
    let text = String::from_utf8(set().to_bytes().expect("a set")).expect("ASCII");
    let cases: [(&str, &str, &[&str]); 8] = [
        (
            "layerlab-evaluation-set",
            "thesis",
            &["thesis", "layerlab set"],
        ),
        ("\"version\":1", "\"version\":2,\"new\":0", &["version 2"]),
        ("\"name\":\"two\",", "", &["name"]),
        ("\"u8\"", "\"f16\"", &["f16"]),
        ("\"u8\"", "\"f32\"", &["4 bytes", "16"]),
        ("[1,1,2]", "[1,1,18446744073709551615]", &["too large"]),
        (
            "\"labels\":[1]",
            "\"labels\":[2]",
            &["answer 1", "class 2", "there are 2"],
        ),
        ("\"labels\":[1]", "\"boxes\":[]", &["answer 1", "kind"]),
    ];
    for (good, bad, words) in cases {
        let changed = text.replacen(good, bad, 1);
        assert_ne!(changed, text);
        assert_refused(EvaluationSet::from_bytes(changed.as_bytes()), words);
    }
    assert_refused(EvaluationSet::from_bytes(b""), &["no first line"]);
}

#[test]
fn a_set_that_contradicts_itself_is_not_written() {
    let mut short = set();
    short.values = Values::U8(vec![1, 2, 3]);
    assert_refused(short.to_bytes(), &["3 bytes", "asks for 4"]);
    let mut unknown = set();
    unknown.truths[0] = Truth::Labels(vec![7]);
    assert_refused(unknown.to_bytes(), &["class 7"]);
    let mut pair = set();
    pair.metric = Metric::Verification { threshold: 0.5 };
    assert_refused(pair.to_bytes(), &["kind"]);
}

#[test]
fn an_answers_images_are_its_own() {
    assert_eq!(set().images(1), [[3.0, 4.0]]);
    let mut pair = set();
    pair.metric = Metric::Verification { threshold: 0.5 };
    pair.truths = vec![Truth::Same(true)];
    assert_eq!(pair.answers(), 1);
    assert_eq!(pair.images(0), [[1.0, 2.0], [3.0, 4.0]]);
}
