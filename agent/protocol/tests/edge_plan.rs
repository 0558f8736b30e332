//! The bytes of what was added to version 2 for running plans, and to it later for packed tensors. Do not change them.

use layerlab_profiles::link::LinkDirection;
use layerlab_profiles::tensors::TensorCodec;
use layerlab_profiles::{Nanos, Segment};
use layerlab_protocol::{
    EdgeAgreement, EdgeImages, EdgeInference, EdgePacking, EdgePart, EdgePlan, EdgeSide, Request,
    Response, ShapedLink, decode, encode,
};

fn plan() -> EdgePlan {
    let part = |first, last, side, processor: &str| EdgePart {
        segment: Segment::new(first, last).expect("in order"),
        side,
        processor: processor.to_owned(),
    };
    EdgePlan {
        server: "192.168.1.2:7377".to_owned(),
        token: "07".repeat(32),
        model_sha256: "ab".repeat(32),
        quantised_sha256: None,
        server_model_sha256: "cd".repeat(32),
        parts: vec![
            part(1, 3, EdgeSide::Phone, "npu"),
            part(4, 9, EdgeSide::Server, "cpu"),
        ],
        inferences: 30,
        warm_up: 3,
        rest_ns: None,
        seed: 1,
        shape: None,
        packings: Vec::new(),
        images: None,
    }
}

const PARTS: &str = r#""parts":[{"segment":[1,3],"side":"phone","processor":"npu"},{"segment":[4,9],"side":"server","processor":"cpu"}],"inferences":30,"warm_up":3"#;

#[test]
fn an_agent_may_be_asked_to_run_a_plan() {
    let (ab, cd, token) = ("ab".repeat(32), "cd".repeat(32), "07".repeat(32));
    let bare = format!(
        r#"{{"type":"run_edge_plan","plan":{{"server":"192.168.1.2:7377","token":"{token}","model_sha256":"{ab}","server_model_sha256":"{cd}",{PARTS},"seed":1}}}}"#
    );
    let full = format!(
        r#"{{"type":"run_edge_plan","plan":{{"server":"192.168.1.2:7377","token":"{token}","model_sha256":"{ab}","quantised_sha256":"{cd}","server_model_sha256":"{cd}",{PARTS},"rest_ns":20000000,"seed":1,"shape":{{"bandwidth_bps":5000000,"round_trip_ns":75000000}}}}}}"#
    );
    let packed = format!(
        r#"{{"type":"run_edge_plan","plan":{{"server":"192.168.1.2:7377","token":"{token}","model_sha256":"{ab}","server_model_sha256":"{cd}",{PARTS},"seed":1,"packings":[{{"after_layer":3,"direction":"upload","codec":"u8-png"}}],"images":{{"set_sha256":"{ab}","images":[2,0]}}}}}}"#
    );
    let with_all = EdgePlan {
        quantised_sha256: Some(cd),
        rest_ns: Some(Nanos::from_millis(20)),
        shape: Some(ShapedLink {
            bandwidth_bps: 5_000_000,
            round_trip_ns: Nanos::from_millis(75),
        }),
        ..plan()
    };
    let with_packed = EdgePlan {
        packings: vec![EdgePacking {
            after_layer: 3,
            direction: LinkDirection::Upload,
            codec: TensorCodec::U8Png,
        }],
        images: Some(EdgeImages {
            set_sha256: ab,
            images: vec![2, 0],
        }),
        ..plan()
    };
    for (plan, line) in [(plan(), bare), (with_all, full), (with_packed, packed)] {
        let request = Request::RunEdgePlan { plan };
        assert_eq!(encode(&request), format!("{line}\n"));
        assert_eq!(decode::<Request>(&line).expect("a request"), request);
    }
    assert!(
        !format!("{:?}", plan()).contains("0707"),
        "the secret is not shown"
    );
}

#[test]
fn what_an_agent_says_of_a_plan_that_it_ran() {
    let nanos = Nanos::from_nanos;
    let inferences = vec![EdgeInference {
        total_ns: nanos(21),
        phone_ns: nanos(1),
        upload_ns: nanos(2),
        queue_ns: nanos(3),
        server_ns: nanos(4),
        download_ns: nanos(5),
    }];
    let agreement = EdgeAgreement {
        processor: "cpu".to_owned(),
        elements: 1000,
        difference_ppb: 12,
    };
    let compared = Response::EdgePlanRan {
        inferences: inferences.clone(),
        agreement: Some(agreement),
        not_compared: None,
        server_program: "layerlab 0.1.0".to_owned(),
    };
    let not_compared = Response::EdgePlanRan {
        inferences,
        agreement: None,
        not_compared: Some("No room.".to_owned()),
        server_program: "layerlab 0.1.0".to_owned(),
    };
    const RAN: &str = r#"{"type":"edge_plan_ran","inferences":[{"total_ns":21,"phone_ns":1,"upload_ns":2,"queue_ns":3,"server_ns":4,"download_ns":5}]"#;
    const END: &str = r#""server_program":"layerlab 0.1.0"}"#;
    for (response, said) in [
        (
            compared,
            r#""agreement":{"processor":"cpu","elements":1000,"difference_ppb":12}"#,
        ),
        (not_compared, r#""not_compared":"No room.""#),
    ] {
        let line = format!("{RAN},{said},{END}");
        assert_eq!(encode(&response), format!("{line}\n"));
        assert_eq!(decode::<Response>(&line).expect("a response"), response);
    }
}
