//! Evaluation sets as files: what was written is read again, and nothing else is.

use layerlab_profiles::accuracy::{
    Decoder, EvaluationSet, Metric, ObjectBox, Preprocessing, PriorGrid, Priors, Resize, SetError,
    SsdOutputs, Truth, Values,
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
            pairs: Vec::new(),
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
        pairs: Vec::new(),
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
    let cases: [(&str, &str, &[&str]); 10] = [
        (
            "layerlab-evaluation-set",
            "thesis",
            &["thesis", "layerlab set"],
        ),
        ("\"version\":1", "\"version\":3,\"new\":0", &["version 3"]),
        ("\"version\":1", "\"version\":0", &["version 0"]),
        ("\"version\":1", "\"version\":2,\"new\":0", &["new"]),
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
    assert_eq!(pair.image_count(), 2);
}

/// Three pairs of two images, of which each is there once.
fn shared() -> EvaluationSet {
    EvaluationSet {
        metric: Metric::Verification { threshold: 0.5 },
        classes: Vec::new(),
        truths: [true, false, true].map(Truth::Same).to_vec(),
        pairs: vec![[0, 1], [1, 0], [1, 1]],
        ..set()
    }
}

/// Boxes relative to an input that is 2 wide and 1 high.
fn detector() -> EvaluationSet {
    EvaluationSet {
        metric: Metric::DecodedDetection {
            decoder: Decoder::YoloV8 {
                width: 2,
                height: 1,
            },
            threshold: 0.25,
            suppress_above: 0.5,
            match_at_least: 0.5,
        },
        truths: vec![Truth::Boxes(Vec::new()); 2],
        ..set()
    }
}

/// Of an answer of 2 x 1.
fn pixels(runs: &[(Option<u32>, u32)]) -> EvaluationSet {
    let runs = runs.iter().map(|&run| run.into()).collect();
    EvaluationSet {
        metric: Metric::PixelAccuracy {
            width: 2,
            height: 1,
        },
        truths: vec![Truth::Pixels(runs); 2],
        ..set()
    }
}

#[test]
fn classes_of_pixels_are_runs_as_long_as_the_answer() {
    let set = pixels(&[(None, 1), (Some(1), 1)]);
    let bytes = set.to_bytes().expect("a set");
    assert_eq!(EvaluationSet::from_bytes(&bytes).expect("the set"), set);
    let text = String::from_utf8_lossy(&bytes);
    assert!(text.contains(r#""version":2"#), "{text}");
    assert!(text.contains(r#"{"pixels":[[null,1],[1,1]]}"#), "{text}");
    assert_refused(
        pixels(&[(Some(1), 1)]).to_bytes(),
        &["answer 0", "1 pixels, not 2x1"],
    );
    assert_refused(
        pixels(&[(Some(2), 2)]).to_bytes(),
        &["class 2", "there are 2"],
    );
}

#[test]
fn pairs_share_images() {
    assert_eq!(shared().answers(), 3);
    assert_eq!(shared().image_count(), 2);
    assert_eq!(shared().images(1), [[3.0, 4.0], [1.0, 2.0]]);
    assert_eq!(shared().images(2), [[3.0, 4.0], [3.0, 4.0]]);
}

#[test]
fn what_version_1_does_not_know_is_version_2() {
    let version = |set: &EvaluationSet| {
        let bytes = set.to_bytes().expect("a set");
        assert_eq!(EvaluationSet::from_bytes(&bytes).expect("the set"), *set);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let version = text.split("\"version\":").nth(1).expect("a version");
        (version[..1].to_owned(), text)
    };
    assert_eq!(version(&set()).0, "1");
    let (two, pairs) = version(&shared());
    assert_eq!(two, "2");
    assert!(pairs.contains(r#""pairs":[[0,1],[1,0],[1,1]]}"#), "{pairs}");
    let (two, decoded) = version(&detector());
    assert_eq!(two, "2");
    let metric = concat!(
        r#""metric":{"type":"decoded-detection","decoder":{"type":"yolo-v8","width":2,"height":1},"#,
        r#""threshold":0.25,"suppress_above":0.5,"match_at_least":0.5}"#
    );
    assert!(decoded.contains(metric), "{decoded}");
    for text in [pairs, decoded] {
        let older = text.replacen("\"version\":2", "\"version\":1", 1);
        assert_refused(
            EvaluationSet::from_bytes(older.as_bytes()),
            &["version 1 has no"],
        );
    }
}

#[test]
fn pairs_and_detectors_that_contradict_their_set_are_refused() {
    let mut few = shared();
    few.pairs.pop();
    assert_refused(few.to_bytes(), &["pair of images for each answer"]);
    let mut strange = set();
    strange.pairs = vec![[0, 1], [1, 0]];
    assert_refused(strange.to_bytes(), &["pair of images for each answer"]);
    let mut beyond = shared();
    beyond.pairs[0] = [0, 2];
    assert_refused(beyond.to_bytes(), &["4 bytes", "asks for 6"]);
    let mut other = detector();
    other.shape = vec![1, 2, 1];
    assert_refused(other.to_bytes(), &["an input that its images do not have"]);
    let with = |decoder| {
        let mut set = detector();
        if let Metric::DecodedDetection { decoder: old, .. } = &mut set.metric {
            *old = decoder;
        }
        set.to_bytes()
    };
    let ssd = |centre_variance, sizes| Decoder::Ssd {
        outputs: SsdOutputs::BoxesFirst,
        priors: Some(Priors {
            centre_variance,
            size_variance: 0.2,
            grids: vec![PriorGrid {
                columns: 1,
                rows: 1,
                step: None,
                sizes,
            }],
        }),
    };
    with(ssd(0.1, vec![[0.5, 0.5]])).expect("a set");
    assert_refused(with(ssd(0.0, vec![[0.5, 0.5]])), &["variance"]);
    assert_refused(with(ssd(0.1, vec![[0.5, -0.5]])), &["size"]);
    assert_refused(with(ssd(0.1, Vec::new())), &["no priors"]);
}
