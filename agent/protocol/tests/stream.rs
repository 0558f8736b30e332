//! The bytes of what was added to version 2 for streams of frames. Do not change them.

use layerlab_profiles::video::{FrameForm, FrameFormat};
use layerlab_profiles::{Bytes, Nanos};
use layerlab_protocol::{
    FrameStream, PhoneAnswer, Request, Response, SentFrame, ServerAnswer, ShapedLink,
    StreamedFrame, decode, encode,
};

fn stream() -> FrameStream {
    FrameStream {
        server: "192.168.1.2:7377".to_owned(),
        token: "07".repeat(32),
        model_sha256: "ab".repeat(32),
        quantised_sha256: None,
        processor: "npu".to_owned(),
        server_model_sha256: "cd".repeat(32),
        server_processor: "cpu".to_owned(),
        set_sha256: "ef".repeat(32),
        images: vec![4, 2],
        forms: vec![FrameForm {
            width: 45,
            height: 45,
            format: FrameFormat::Png,
            quality: None,
        }],
        settings: "{}".to_owned(),
        seed: 1,
        shape: None,
    }
}

#[test]
fn an_agent_may_be_asked_to_stream() {
    let [ab, cd, ef, token] = ["ab", "cd", "ef", "07"].map(|digits| digits.repeat(32));
    let line = |twin: &str, shape: &str| {
        format!(
            r#"{{"type":"stream_frames","stream":{{"server":"192.168.1.2:7377","token":"{token}","model_sha256":"{ab}",{twin}"processor":"npu","server_model_sha256":"{cd}","server_processor":"cpu","set_sha256":"{ef}","images":[4,2],"forms":[{{"width":45,"height":45,"format":"png"}}],"settings":"{{}}","seed":1{shape}}}}}"#
        )
    };
    let with_all = FrameStream {
        quantised_sha256: Some(cd.clone()),
        shape: Some(ShapedLink {
            bandwidth_bps: 5_000_000,
            round_trip_ns: Nanos::from_millis(75),
        }),
        ..stream()
    };
    let twin = format!(r#""quantised_sha256":"{cd}","#);
    let shape = r#","shape":{"bandwidth_bps":5000000,"round_trip_ns":75000000}"#;
    for (stream, line) in [(stream(), line("", "")), (with_all, line(&twin, shape))] {
        let request = Request::StreamFrames { stream };
        assert_eq!(encode(&request), format!("{line}\n"));
        assert_eq!(decode::<Request>(&line).expect("a request"), request);
    }
    assert!(
        !format!("{:?}", stream()).contains("0707"),
        "the secret is not shown"
    );
}

#[test]
fn what_an_agent_says_of_a_stream() {
    let nanos = Nanos::from_nanos;
    let nothing = StreamedFrame {
        ready_ns: None,
        decided_ns: nanos(0),
        phone: None,
        sent: None,
    };
    let all = StreamedFrame {
        ready_ns: Some(nanos(1)),
        decided_ns: nanos(2),
        phone: Some(PhoneAnswer {
            answered_ns: nanos(3),
            infer_ns: nanos(4),
            class: 5,
            confidence_ppb: 6,
        }),
        sent: Some(SentFrame {
            form: 7,
            bytes: Bytes::from_bytes(8),
            sent_ns: nanos(9),
            answer: Some(ServerAnswer {
                answered_ns: nanos(10),
                class: Some(11),
                server_ns: [12, 13, 14, 15].map(nanos),
            }),
        }),
    };
    let frames = Response::StreamedFrames {
        frames: vec![nothing, all],
    };
    let ended = |lost| Response::StreamEnded {
        frames: 2,
        slower: 1,
        lost,
        server_program: "layerlab 0.1.0".to_owned(),
    };
    for (response, line) in [
        (
            frames,
            r#"{"type":"streamed_frames","frames":[{"decided_ns":0},{"ready_ns":1,"decided_ns":2,"phone":{"answered_ns":3,"infer_ns":4,"class":5,"confidence_ppb":6},"sent":{"form":7,"bytes":8,"sent_ns":9,"answer":{"answered_ns":10,"class":11,"server_ns":[12,13,14,15]}}}]}"#,
        ),
        (
            ended(None),
            r#"{"type":"stream_ended","frames":2,"slower":1,"server_program":"layerlab 0.1.0"}"#,
        ),
        (
            ended(Some("Gone.".to_owned())),
            r#"{"type":"stream_ended","frames":2,"slower":1,"lost":"Gone.","server_program":"layerlab 0.1.0"}"#,
        ),
    ] {
        assert_eq!(encode(&response), format!("{line}\n"));
        assert_eq!(decode::<Response>(line).expect("a response"), response);
    }
}
