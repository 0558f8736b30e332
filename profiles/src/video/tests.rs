//! What integration tests cannot see: rows as they lie on disk.

#[path = "../../tests/common/video.rs"]
mod example;

pub(super) use example::document;

use super::records::{
    ACCURACIES, ANSWERS, AccuracyRecord, AnswerRecord, FRAMES, FrameRecord, TIMES, TimesRecord,
};
use crate::document::assert_columns_are_fields;

#[test]
fn the_columns_are_the_fields() {
    let document = document();
    let header = &document.header;
    assert_columns_are_fields(ANSWERS, AnswerRecord::from((&document.answers[0], header)));
    assert_columns_are_fields(FRAMES, FrameRecord::from((&document.frames[0], header)));
    let accuracy = &document.accuracies[0];
    assert_columns_are_fields(ACCURACIES, AccuracyRecord::from((accuracy, header)));
    assert_columns_are_fields(TIMES, TimesRecord::from((&document.times[0], header)));
}
