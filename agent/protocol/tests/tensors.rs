//! The bytes of what was added to version 2 for tensors that are compressed. Do not change them.

use layerlab_profiles::accuracy::Tally;
use layerlab_profiles::tensors::TensorCodec;
use layerlab_profiles::{Bytes, Nanos};
use layerlab_protocol::{Entry, Event, Order, PackedTensor, Packing, RunId, Work, decode, encode};

#[test]
fn an_agent_may_be_asked_to_pack_tensors() {
    let (ab, set) = ("ab".repeat(32), "5e".repeat(32));
    let order = |judge| Order {
        run: RunId::new("run").expect("a name"),
        number: 1,
        model_sha256: ab.clone(),
        quantised_sha256: None,
        processor: "cpu".to_owned(),
        work: Work::PackTensors {
            set_sha256: set.clone(),
            images: vec![7, 3],
            codecs: TensorCodec::ALL.to_vec(),
            judge,
        },
        seed: 1,
    };
    for (judge, said) in [(false, ""), (true, r#","judge":true"#)] {
        let line = format!(
            r#"{{"run":"run","number":1,"model_sha256":"{ab}","processor":"cpu","work":{{"type":"pack_tensors","set_sha256":"{set}","images":[7,3],"codecs":["u8","u8-png","u8-zstd","u8-lz4","f32-zstd","f32-lz4"]{said}}},"seed":1}}"#
        );
        let order = order(judge);
        assert_eq!(encode(&order), format!("{line}\n"));
        assert_eq!(decode::<Order>(&line).expect("an order"), order);
        assert_eq!(order.files().collect::<Vec<_>>(), [&ab, &set]);
    }
}

#[test]
fn what_an_agent_says_of_tensors() {
    let packing = |time: Option<u64>| Packing {
        bytes: Bytes::from_bytes(900),
        compress_ns: time.map(Nanos::from_nanos),
        decompress_ns: time.map(|time| Nanos::from_nanos(time + 1)),
    };
    let entry = |zero_codes, time, judged: Option<Tally>| Entry {
        sequence: 9,
        order: 1,
        event: Event::TensorsPacked {
            image: 7,
            tensors: vec![PackedTensor {
                zeros: 2,
                zero_codes,
                packed: vec![packing(time)],
            }],
            whole: judged,
            crossed: judged.into_iter().collect(),
        },
    };
    let tally = Tally {
        hits: 1,
        false_alarms: 0,
        misses: 2,
    };
    let lines = [
        (
            entry(None, None, None),
            r#"{"sequence":9,"order":1,"event":{"type":"tensors_packed","image":7,"tensors":[{"zeros":2,"packed":[{"bytes":900}]}]}}"#,
        ),
        (
            entry(Some(3), Some(5), Some(tally)),
            r#"{"sequence":9,"order":1,"event":{"type":"tensors_packed","image":7,"tensors":[{"zeros":2,"zero_codes":3,"packed":[{"bytes":900,"compress_ns":5,"decompress_ns":6}]}],"whole":[1,0,2],"crossed":[[1,0,2]]}}"#,
        ),
    ];
    for (entry, line) in lines {
        assert_eq!(encode(&entry), format!("{line}\n"));
        assert_eq!(decode::<Entry>(line).expect("an entry"), entry);
    }
}
