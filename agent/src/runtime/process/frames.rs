//! Frames between the agent and its child: the lengths of both parts, a message in JSON, and bytes.

use std::io::{self, Read, Write};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// A message is small: whoever announces a longer one does not speak this language.
const LONGEST_MESSAGE: u64 = 64 << 20;

/// Writes a message and its payload, whose parts follow one another.
pub(super) fn write_frame(
    writer: &mut impl Write,
    message: &impl Serialize,
    payload: &[&[u8]],
) -> io::Result<()> {
    let message = serde_json::to_vec(message)?;
    let length: usize = payload.iter().map(|part| part.len()).sum();
    writer.write_all(&(message.len() as u64).to_le_bytes())?;
    writer.write_all(&(length as u64).to_le_bytes())?;
    writer.write_all(&message)?;
    for part in payload {
        writer.write_all(part)?;
    }
    writer.flush()
}

/// Reads a message and its payload.
///
/// # Errors
/// What the other side's end or silence gives, and what it wrote that is no message.
pub(super) fn read_frame<M: DeserializeOwned>(reader: &mut impl Read) -> io::Result<(M, Vec<u8>)> {
    let mut length = [0; 8];
    reader.read_exact(&mut length)?;
    let message_length = u64::from_le_bytes(length);
    reader.read_exact(&mut length)?;
    let payload_length = u64::from_le_bytes(length);
    if message_length > LONGEST_MESSAGE {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("a message of {message_length} bytes is none"),
        ));
    }
    let mut message = vec![0; message_length as usize];
    reader.read_exact(&mut message)?;
    let mut payload = vec![0; payload_length as usize];
    reader.read_exact(&mut payload)?;
    Ok((serde_json::from_slice(&message)?, payload))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_comes_back_and_a_torn_one_does_not() {
        let mut stream = Vec::new();
        write_frame(&mut stream, &vec!["a", "b"], &[b"one", b"", b"two"]).expect("written");
        let (message, payload): (Vec<String>, _) =
            read_frame(&mut stream.as_slice()).expect("a frame");
        assert_eq!(message, ["a", "b"]);
        assert_eq!(payload, b"onetwo");
        for end in 0..stream.len() {
            let torn = read_frame::<Vec<String>>(&mut &stream[..end]);
            assert_eq!(
                torn.expect_err("torn").kind(),
                io::ErrorKind::UnexpectedEof,
                "{end}"
            );
        }
    }
}
