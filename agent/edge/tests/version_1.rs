//! The bytes of version 1. Do not change them: phones and servers of different ages must understand each other, or say
//! that they do not.

use layerlab_edge::{
    FrameError, FrameHeader, FrameKind, HEADER_BYTES, InferRequest, MAX_FIELDS_BYTES,
    MAX_PAYLOAD_BYTES, PackedBytes, PackedRequest, PictureRequest, Reply, Request, Stretch,
    TensorShape, Token, VERSION,
};
use layerlab_profiles::Nanos;
use layerlab_profiles::link::ServerTimes;
use layerlab_profiles::tensors::TensorCodec;
use layerlab_profiles::video::FrameFormat;
use proptest::prelude::*;

fn token() -> Token {
    Token::new(std::array::from_fn(|place| place as u8))
}

/// Layers 3 to 5 on one processor and layer 6 on another, on two tensors.
fn infer() -> InferRequest {
    let stretch = |last, processor: &str| Stretch {
        last,
        processor: processor.to_owned(),
    };
    InferRequest {
        model: std::array::from_fn(|place| place as u8),
        first: 3,
        stretches: vec![stretch(5, "cpu:tract-all"), stretch(6, "npu")],
        tensors: vec![TensorShape(vec![1, 5]), TensorShape(vec![])],
    }
}

/// A JPEG of a thousand bytes.
fn picture() -> PictureRequest {
    PictureRequest {
        model: std::array::from_fn(|place| place as u8),
        processor: "npu".to_owned(),
        format: FrameFormat::Jpeg,
        channels: "rgb".to_owned(),
        mean: vec![104.0, 117.0, 123.0],
        scale: 0.5,
        bytes: 1000,
    }
}

/// The same layers on tensors of 9 and 3 bytes, and an answer that is a picture of 8 bits.
fn packed() -> PackedRequest {
    PackedRequest {
        layers: infer(),
        answer: Some(TensorCodec::U8Png),
        tensors: PackedBytes {
            codec: Some(TensorCodec::F32Zstd),
            lengths: vec![9, 3],
        },
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The header and the fields of a frame's bytes.
fn parts(bytes: &[u8]) -> (FrameHeader, &[u8]) {
    let (header, fields) = bytes.split_first_chunk::<HEADER_BYTES>().expect("a header");
    (FrameHeader::decode(header).expect("a header"), fields)
}

#[test]
fn the_bytes_of_requests() {
    let hello = Request::Hello {
        token: token(),
        program: "layerlab 0.1.0".to_owned(),
    };
    for (request, bytes) in [
        (
            hello,
            "4c4c6567\
             0001\
             0001\
             0000002e\
             0000000000000000\
             000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\
             6c617965726c616220302e312e30",
        ),
        (Request::Echo, "4c4c656700010002000000000000000000000040"),
        (
            Request::Sink { bytes: 4 << 20 },
            "4c4c656700010003000000000000000000400000",
        ),
        (
            Request::Source { bytes: 16 << 10 },
            "4c4c6567000100040000000800000000000000000000000000004000",
        ),
        (
            Request::Infer(infer()),
            "4c4c6567\
             0001\
             0005\
             00000050\
             0000000000000018\
             000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\
             00000003\
             0002\
             00000005000d6370753a74726163742d616c6c\
             0000000600036e7075\
             0002\
             00020000000100000005\
             0000",
        ),
        (
            Request::Picture(picture()),
            "4c4c6567\
             0001\
             0006\
             0000003d\
             00000000000003e8\
             000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\
             00036e7075\
             0003726762\
             02\
             3f000000\
             0003\
             42d0000042ea000042f60000",
        ),
        (
            Request::InferPacked(packed()),
            "4c4c6567\
             0001\
             0007\
             00000062\
             000000000000000c\
             000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\
             00000003\
             0002\
             00000005000d6370753a74726163742d616c6c\
             0000000600036e7075\
             0002\
             00020000000100000005\
             0000\
             02\
             05\
             0000000000000009\
             0000000000000003",
        ),
    ] {
        let encoded = request.encode();
        assert_eq!(hex(&encoded), bytes, "{request:?}");
        let (header, fields) = parts(&encoded);
        assert_eq!(Request::decode(header, fields), Ok(request));
    }
}

#[test]
fn the_bytes_of_replies() {
    let nanos = Nanos::from_nanos;
    let times = ServerTimes {
        receive: nanos(1),
        queue: nanos(2),
        compute: nanos(3),
        send: nanos(0x0102_0304_0506_0708),
    };
    for (reply, bytes) in [
        (
            Reply::Welcome {
                program: "layerlab 0.1.0".to_owned(),
            },
            "4c4c6567000101000000000e00000000000000006c617965726c616220302e312e30",
        ),
        (
            Reply::Data { bytes: 64 },
            "4c4c656700010101000000000000000000000040",
        ),
        (
            Reply::Tensors {
                tensors: vec![TensorShape(vec![1, 5]), TensorShape(vec![])],
            },
            "4c4c6567000101040000000e0000000000000018\
             0002\
             00020000000100000005\
             0000",
        ),
        (
            Reply::PackedTensors {
                tensors: vec![TensorShape(vec![1, 5])],
                packed: PackedBytes {
                    codec: None,
                    lengths: vec![20],
                },
            },
            "4c4c656700010105000000150000000000000014\
             0001\
             00020000000100000005\
             00\
             0000000000000014",
        ),
        (
            Reply::Done(times),
            "4c4c656700010102000000200000000000000000\
             0000000000000001000000000000000200000000000000030102030405060708",
        ),
        (
            Reply::Refused {
                sentence: "no".to_owned(),
            },
            "4c4c6567000101030000000200000000000000006e6f",
        ),
    ] {
        let encoded = reply.encode();
        assert_eq!(hex(&encoded), bytes, "{reply:?}");
        let (header, fields) = parts(&encoded);
        assert_eq!(Reply::decode(header, fields), Ok(reply));
    }
}

/// A refusal of any version is read: it says which layerlab to update.
#[test]
fn another_version_is_named_and_its_refusal_is_read() {
    let mut echo: [u8; HEADER_BYTES] = Request::Echo.encode().try_into().expect("a header");
    echo[4..6].copy_from_slice(&7_u16.to_be_bytes());
    assert_eq!(
        FrameHeader::decode(&echo),
        Err(FrameError::Version { theirs: 7 })
    );
    let refused = Reply::Refused {
        sentence: "this is version 7".to_owned(),
    };
    let mut bytes = refused.encode();
    bytes[4..6].copy_from_slice(&7_u16.to_be_bytes());
    let (header, fields) = parts(&bytes);
    assert_eq!(Reply::decode(header, fields), Ok(refused));
    assert_eq!(
        VERSION, 1,
        "a new version has a file of its own beside this"
    );
}

#[test]
fn lengths_above_the_limits_are_refused() {
    let header = |fields_bytes, payload_bytes| {
        let header = FrameHeader {
            kind: FrameKind::Infer,
            fields_bytes,
            payload_bytes,
        };
        FrameHeader::decode(&header.encode())
    };
    assert!(header(MAX_FIELDS_BYTES, MAX_PAYLOAD_BYTES).is_ok());
    assert!(header(MAX_FIELDS_BYTES + 1, 0).is_err());
    assert!(header(0, MAX_PAYLOAD_BYTES + 1).is_err());
    // A SOURCE asks for what a frame must hold.
    let source = Request::Source {
        bytes: MAX_PAYLOAD_BYTES + 1,
    };
    let bytes = source.encode();
    let (header, fields) = parts(&bytes);
    assert!(Request::decode(header, fields).is_err());
}

#[test]
fn what_the_other_end_says_cannot_write_to_a_terminal() {
    let bytes = Reply::Refused {
        sentence: format!("\u{1b}[2Jgone\nnow{}", "x".repeat(3000)),
    }
    .encode();
    let (header, fields) = parts(&bytes);
    match Reply::decode(header, fields) {
        Ok(Reply::Refused { sentence }) => {
            assert!(sentence.starts_with("[2Jgone now"), "{sentence}");
            assert_eq!(
                sentence.chars().count(),
                499,
                "the leading blank is trimmed"
            );
        }
        other => panic!("{other:?}"),
    }
}

/// Infer was refused, whatever its fields, by the first servers of this version. What has no meaning still is.
/// What plans charge for a request beside its tensors and a round trip (`measured_link` in planners/src/edge).
#[test]
fn how_long_the_frames_of_a_usual_request_are() {
    let request = InferRequest {
        model: [0; 32],
        first: 1,
        stretches: vec![Stretch {
            last: 8,
            processor: "cpu:all".to_owned(),
        }],
        tensors: vec![TensorShape(vec![1, 3, 64, 64])],
    };
    let answer = Reply::Tensors {
        tensors: vec![TensorShape(vec![1, 20])],
    };
    let done = Reply::Done(ServerTimes::default());
    let (up, down) = (
        Request::Infer(request).encode().len(),
        answer.encode().len() + done.encode().len(),
    );
    assert_eq!((up, down), (91, 84));
    let sink = Request::Sink { bytes: 0 }.encode().len();
    let source = Request::Source { bytes: 0 }.encode().len();
    let data = Reply::Data { bytes: 0 }.encode().len();
    let done = done.encode().len();
    // Half of the round trip of an upload, and half of a download's.
    assert_eq!(up - (sink + source) / 2, 67);
    assert_eq!(down - (2 * done + data) / 2, 22);
}

#[test]
fn layers_that_are_not_in_order_and_tensors_of_another_size_are_refused() {
    let decoded = |asked: &InferRequest, payload_bytes: Option<u64>| {
        let bytes = Request::Infer(asked.clone()).encode();
        let (header, fields) = parts(&bytes);
        let payload_bytes = payload_bytes.unwrap_or(header.payload_bytes);
        let header = FrameHeader {
            payload_bytes,
            ..header
        };
        Request::decode(header, fields)
    };
    assert!(decoded(&infer(), None).is_ok());
    assert!(infer().fits_a_frame());
    for wrong in [0, 20, 28, MAX_PAYLOAD_BYTES] {
        assert!(decoded(&infer(), Some(wrong)).is_err(), "{wrong} bytes");
    }
    let without = |change: fn(&mut InferRequest)| {
        let mut asked = infer();
        change(&mut asked);
        assert!(decoded(&asked, None).is_err(), "{asked:?}");
        assert!(!asked.fits_a_frame(), "{asked:?}");
    };
    without(|asked| asked.first = 0);
    without(|asked| asked.first = 6);
    without(|asked| asked.stretches.clear());
    without(|asked| asked.stretches[1].last = 5);
    without(|asked| asked.stretches[0].processor = "\u{1b}[2J".to_owned());
    let many = InferRequest {
        tensors: vec![TensorShape(vec![1; 100]); 11],
        ..infer()
    };
    assert!(
        !many.fits_a_frame(),
        "its fields have more than 4,096 bytes"
    );
    let empty = FrameHeader {
        kind: FrameKind::Infer,
        fields_bytes: 0,
        payload_bytes: 0,
    };
    assert!(Request::decode(empty, &[]).is_err());
    let largest = |axis| TensorShape(vec![axis, 1 << 10]).bytes();
    assert_eq!(largest(1 << 14), Some(MAX_PAYLOAD_BYTES));
    assert_eq!(largest((1 << 14) + 1), None);
    assert_eq!(largest(u32::MAX), None);
}

#[test]
fn what_codecs_are_called_in_frames() {
    for (codec, number) in [
        (None, 0),
        (Some(TensorCodec::U8), 1),
        (Some(TensorCodec::U8Png), 2),
        (Some(TensorCodec::U8Zstd), 3),
        (Some(TensorCodec::U8Lz4), 4),
        (Some(TensorCodec::F32Zstd), 5),
        (Some(TensorCodec::F32Lz4), 6),
    ] {
        let reply = Reply::PackedTensors {
            tensors: Vec::new(),
            packed: PackedBytes {
                codec,
                lengths: Vec::new(),
            },
        };
        let bytes = reply.encode();
        let (header, fields) = parts(&bytes);
        assert_eq!(fields, [0, 0, number]);
        assert_eq!(Reply::decode(header, fields), Ok(reply));
    }
}

#[test]
fn what_is_no_request_with_packed_tensors_is_refused() {
    let decoded = |asked: &PackedRequest, cut: usize, payload_bytes: u64| {
        let bytes = Request::InferPacked(asked.clone()).encode();
        let (header, fields) = parts(&bytes[..bytes.len() - cut]);
        let header = FrameHeader {
            payload_bytes,
            ..header
        };
        Request::decode(header, fields)
    };
    assert_eq!(
        decoded(&packed(), 0, 12),
        Ok(Request::InferPacked(packed()))
    );
    assert!(packed().fits_a_frame());
    for cut in [1, 8, 16, 17, 18, 20] {
        assert!(
            decoded(&packed(), cut, 12).is_err(),
            "{cut} bytes are missing"
        );
    }
    for payload in [0, 11, 13, 24] {
        assert!(
            decoded(&packed(), 0, payload).is_err(),
            "{payload} bytes of payload"
        );
    }
    let with = |payload: u64, change: &dyn Fn(&mut PackedRequest)| {
        let mut asked = packed();
        change(&mut asked);
        assert!(decoded(&asked, 0, payload).is_err(), "{asked:?}");
    };
    // Without a codec each tensor has the bytes of its numbers.
    with(12, &|asked| asked.tensors.codec = None);
    with(9, &|asked| {
        asked.tensors.lengths.pop();
    });
    with(12, &|asked| asked.layers.first = 0);
    // Few bytes that would become more than a frame holds.
    with(12, &|asked| {
        asked.layers.tensors[0] = TensorShape(vec![1 << 30])
    });
    let as_they_are = PackedBytes {
        codec: None,
        lengths: vec![20, 4],
    };
    let plain = PackedRequest {
        tensors: as_they_are,
        ..packed()
    };
    assert!(decoded(&plain, 0, 24).is_ok());
    // No number of a codec.
    let mut bytes = Request::InferPacked(packed()).encode();
    let place = bytes.len() - 17;
    bytes[place] = 7;
    let (header, fields) = parts(&bytes);
    assert!(Request::decode(header, fields).is_err());
}

#[test]
fn what_is_no_request_for_a_picture_is_refused() {
    let decoded = |asked: &PictureRequest, cut: usize| {
        let bytes = Request::Picture(asked.clone()).encode();
        let (header, fields) = parts(&bytes[..bytes.len() - cut]);
        Request::decode(header, fields)
    };
    assert_eq!(decoded(&picture(), 0), Ok(Request::Picture(picture())));
    assert!(picture().fits_a_frame());
    for cut in [1, 4, 12, 14, 18, 19, 24, 29] {
        assert!(decoded(&picture(), cut).is_err(), "{cut} bytes are missing");
    }
    let with = |change: fn(&mut PictureRequest)| {
        let mut asked = picture();
        change(&mut asked);
        assert!(decoded(&asked, 0).is_err(), "{asked:?}");
        assert!(!asked.fits_a_frame(), "{asked:?}");
    };
    with(|asked| asked.scale = f32::NAN);
    with(|asked| asked.mean[1] = f32::INFINITY);
    with(|asked| asked.processor = "\u{1b}[2J".to_owned());
    let large = PictureRequest {
        bytes: MAX_PAYLOAD_BYTES + 1,
        ..picture()
    };
    assert!(!large.fits_a_frame());
}

proptest! {
    /// Whatever comes, it is a frame within the limits or a refusal.
    #[test]
    fn no_bytes_are_a_frame_beyond_the_limits(
        tail: [u8; HEADER_BYTES - 8],
        kind: u16,
        fields in proptest::collection::vec(any::<u8>(), 0..100),
    ) {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..6].copy_from_slice(b"LLeg\0\x01");
        bytes[6..8].copy_from_slice(&(kind % 300).to_be_bytes());
        bytes[8..].copy_from_slice(&tail);
        // Seldom would a number drawn at random be a length.
        bytes[8..10].fill(0);
        bytes[12..17].fill(0);
        if let Ok(header) = FrameHeader::decode(&bytes) {
            prop_assert!(header.fields_bytes <= MAX_FIELDS_BYTES);
            prop_assert!(header.payload_bytes <= MAX_PAYLOAD_BYTES);
            let _ = Request::decode(header, &fields);
            let _ = Reply::decode(header, &fields);
        }
    }
}
