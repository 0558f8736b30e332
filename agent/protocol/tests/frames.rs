//! The bytes of what was added to version 2 for frames of a video. Do not change them.

use layerlab_profiles::video::{FrameForm, FrameFormat};
use layerlab_profiles::{Bytes, Nanos, Segment};
use layerlab_protocol::{Entry, Event, FormAnswer, Order, Part, RunId, Work, decode, encode};

#[test]
fn an_agent_may_be_asked_to_answer_frames() {
    let (ab, set) = ("ab".repeat(32), "5e".repeat(32));
    let form = |side, format, quality| FrameForm {
        width: side,
        height: side,
        format,
        quality,
    };
    let order = Order {
        run: RunId::new("run").expect("a name"),
        number: 1,
        model_sha256: ab.clone(),
        quantised_sha256: None,
        processor: "npu".to_owned(),
        work: Work::AnswerFrames {
            set_sha256: set.clone(),
            images: vec![7, 3],
            forms: vec![
                form(45, FrameFormat::Png, None),
                form(90, FrameFormat::Jpeg, Some(75)),
            ],
            parts: Vec::new(),
        },
        seed: 1,
    };
    let line = format!(
        r#"{{"run":"run","number":1,"model_sha256":"{ab}","processor":"npu","work":{{"type":"answer_frames","set_sha256":"{set}","images":[7,3],"forms":[{{"width":45,"height":45,"format":"png"}},{{"width":90,"height":90,"format":"jpeg","quality":75}}]}},"seed":1}}"#
    );
    assert_eq!(encode(&order), format!("{line}\n"));
    assert_eq!(decode::<Order>(&line).expect("an order"), order);
    assert_eq!(order.files().collect::<Vec<_>>(), [&ab, &set]);

    let part = |first, last, processor: &str| Part {
        segment: Segment::new(first, last).expect("a segment"),
        processor: processor.to_owned(),
    };
    let placed = Work::AnswerFrames {
        set_sha256: set.clone(),
        images: vec![7],
        forms: Vec::new(),
        parts: vec![part(1, 4, "cpu"), part(5, 11, "npu")],
    };
    let line = format!(
        r#"{{"type":"answer_frames","set_sha256":"{set}","images":[7],"forms":[],"parts":[{{"segment":[1,4],"processor":"cpu"}},{{"segment":[5,11],"processor":"npu"}}]}}"#
    );
    assert_eq!(encode(&placed), format!("{line}\n"));
    assert_eq!(decode::<Work>(&line).expect("work"), placed);
}

#[test]
fn what_an_agent_says_of_frames() {
    let nanos = Nanos::from_nanos;
    let form = |class| FormAnswer {
        bytes: Bytes::from_bytes(900),
        resize_ns: nanos(1),
        encode_ns: nanos(2),
        decode_ns: nanos(3),
        upscale_ns: nanos(4),
        infer_ns: nanos(5),
        class,
    };
    let entry = Entry {
        sequence: 9,
        order: 1,
        event: Event::FramesAnswered {
            image: 7,
            infer_ns: nanos(6),
            score_bits: vec![0.5_f32.to_bits(), f32::NAN.to_bits()],
            forms: vec![form(Some(0)), form(None)],
        },
    };
    let line = r#"{"sequence":9,"order":1,"event":{"type":"frames_answered","image":7,"infer_ns":6,"score_bits":[1056964608,2143289344],"forms":[{"bytes":900,"resize_ns":1,"encode_ns":2,"decode_ns":3,"upscale_ns":4,"infer_ns":5,"class":0},{"bytes":900,"resize_ns":1,"encode_ns":2,"decode_ns":3,"upscale_ns":4,"infer_ns":5}]}}"#;
    assert_eq!(encode(&entry), format!("{line}\n"));
    assert_eq!(decode::<Entry>(line).expect("an entry"), entry);
}
