//! What the other end says in words, made fit for a terminal.

/// The most characters that are taken of it.
const LONGEST: usize = 500;

/// `bytes` as text of one line: without control characters, and no longer than a sentence.
pub(crate) fn one_line(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let shown = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    shown.take(LONGEST).collect::<String>().trim().to_owned()
}
