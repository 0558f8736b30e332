//! What is no message is refused, never misread.

use layerlab_protocol::{MAX_LINE_BYTES, Request, RunId, decode, encode};
use proptest::prelude::*;

#[test]
fn unknown_messages_and_fields_are_refused() {
    for line in [
        "",
        "hello",
        r#"{"type":"dance"}"#,
        r#"{"type":"hello","protocol":1}"#,
        r#"{"type":"hello","protocol":1,"token":"a","more":1}"#,
        r#"{"type":"follow","run":"../../etc","after":0}"#,
        r#"{"type":"ping"} {"type":"ping"}"#,
    ] {
        assert!(decode::<Request>(line).is_err(), "{line}");
    }
}

#[test]
fn a_line_longer_than_any_message_is_refused() {
    let token = "a".repeat(MAX_LINE_BYTES);
    assert!(decode::<Request>(&encode(&Request::Hello { protocol: 1, token })).is_err());
}

#[test]
fn a_run_is_named_by_letters_digits_and_dashes() {
    assert!(RunId::new("2026-11-20_mate").is_ok());
    for name in ["", "a/b", "..", "a b", "naïve", "a\n", &"a".repeat(101)] {
        assert!(RunId::new(name).is_err(), "{name:?}");
    }
}

proptest! {
    #[test]
    fn a_message_is_one_line_whatever_it_contains(token in ".{0,40}[\n\r\u{2028}]{0,3}") {
        let message = Request::Hello { protocol: 1, token };
        let line = encode(&message);
        prop_assert_eq!(line.matches('\n').count(), 1);
        prop_assert_eq!(decode::<Request>(&line).expect("our own line"), message);
    }

    #[test]
    fn garbage_is_refused_without_panic(line in "\\PC{0,200}") {
        let _ = decode::<Request>(&line);
    }
}
