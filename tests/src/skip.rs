//! Tests for which a part is missing: they fail in CI, and are loudly skipped elsewhere.

use std::io::Write;
use std::sync::{Mutex, PoisonError};

/// Names the file in which `tests/run` counts what is skipped.
const RECORD: &str = "LAYERLAB_SKIPPED";

/// Says that the test at hand is skipped because `part` is missing, and why or how to get it. In CI it fails instead.
#[track_caller]
pub fn skip(part: &str, remedy: &str) {
    // Spread over lines by the tool that wrote it, perhaps.
    let remedy = remedy.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        !is_ci(),
        "{part} cannot be had here, and in CI nothing is skipped: {remedy}"
    );
    static SAID: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let mut said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
    let sentence = format!("{part}: {remedy}\n");
    let mut is_known = said.contains(&sentence);
    if let Some(record) = std::env::var_os(RECORD) {
        // Other test programs come after this one and skip for the same reason.
        is_known |= std::fs::read_to_string(&record).is_ok_and(|text| text.contains(&sentence));
        let record = std::fs::File::options()
            .create(true)
            .append(true)
            .open(record);
        let written = record.and_then(|mut record| record.write_all(sentence.as_bytes()));
        written.expect("the record of what is skipped");
    }
    if !is_known {
        // Not with eprint!, which cargo hides for tests that pass.
        let _ = write!(std::io::stderr(), "\nSKIPPED, all that needs {sentence}\n");
        said.push(sentence);
    }
}

/// Whether nothing may be skipped.
fn is_ci() -> bool {
    std::env::var_os("CI").is_some_and(|ci| !ci.is_empty() && ci != "false")
}
