//! One message, one line.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// The longest line either side accepts. An order that times all segments of a 200-layer model is a
/// third of it; a longer line is garbage, not a message.
pub const MAX_LINE_BYTES: usize = 1 << 20;

/// A line that is no message.
#[derive(Debug, thiserror::Error)]
pub enum FramingError {
    /// The line is not JSON, or not a message of this version.
    #[error("not a message of protocol version {}: {source}", crate::VERSION)]
    Malformed {
        /// What the parser met.
        source: serde_json::Error,
    },
    /// The line is longer than any message.
    #[error("a line of more than {MAX_LINE_BYTES} bytes is no message")]
    TooLong,
}

/// `message` as one line, its line feed included.
pub fn encode<T: Serialize>(message: &T) -> String {
    // Serialising to memory fails only for maps with keys that are no strings; messages have no maps.
    let mut line = serde_json::to_string(message).expect("messages serialise");
    line.push('\n');
    line
}

/// The message on `line`, with or without its line feed.
pub fn decode<T: DeserializeOwned>(line: &str) -> Result<T, FramingError> {
    if line.len() > MAX_LINE_BYTES {
        return Err(FramingError::TooLong);
    }
    serde_json::from_str(line.trim_end_matches(['\n', '\r']))
        .map_err(|source| FramingError::Malformed { source })
}
