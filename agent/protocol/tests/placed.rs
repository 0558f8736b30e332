//! The bytes of what version 3 of the protocol says of where nodes were placed, and of quantised twins.
//!
//! DO NOT CHANGE a line of this file: a message that must look different belongs to a new version.

use layerlab_profiles::{Bytes, Nanos, Segment};
use layerlab_protocol::{Event, Order, Placed, PlacedNode, RunId, Work, decode, encode};

#[test]
fn where_the_nodes_of_a_loaded_segment_were_placed() {
    let event = Event::Loaded {
        processor: "npu".to_owned(),
        segment: Segment::single(2),
        load_ns: Nanos::from_nanos(10),
        memory_bytes: Bytes::from_bytes(20),
        compiled: Some(false),
        placed: Some(Placed {
            fallback_refused: true,
            backend: Some("libQnnHtp.so".to_owned()),
            nodes: vec![PlacedNode {
                name: "conv1".to_owned(),
                operator: "Conv".to_owned(),
                provider: "QNNExecutionProvider".to_owned(),
            }],
        }),
    };
    let line = r#"{"type":"loaded","processor":"npu","segment":[2,2],"load_ns":10,"memory_bytes":20,"compiled":false,"placed":{"fallback_refused":true,"backend":"libQnnHtp.so","nodes":[{"name":"conv1","operator":"Conv","provider":"QNNExecutionProvider"}]}}"#;
    assert_eq!(encode(&event), format!("{line}\n"));
    assert_eq!(
        decode::<Event>(line).expect("a message of version 3"),
        event
    );
}

#[test]
fn an_order_names_the_quantised_twin_of_its_model_which_is_one_of_its_files() {
    let order = Order {
        run: RunId::new("night-7").expect("a name"),
        number: 3,
        model_sha256: "ab".repeat(32),
        quantised_sha256: Some("18".repeat(32)),
        processor: "qnn-htp-i8".to_owned(),
        work: Work::Survey {
            processors: vec!["qnn-htp-i8".to_owned()],
        },
        seed: 1,
    };
    let line = encode(&order);
    let (model, twin) = ("ab".repeat(32), "18".repeat(32));
    let files =
        format!(r#""number":3,"model_sha256":"{model}","quantised_sha256":"{twin}","processor""#);
    assert!(line.contains(&files), "{line}");
    assert_eq!(
        decode::<Order>(&line).expect("a message of version 3"),
        order
    );
    assert_eq!(order.files().collect::<Vec<_>>(), [model, twin]);
}
