//! What frames mean.

use layerlab_profiles::Nanos;
use layerlab_profiles::link::ServerTimes;

use crate::frame::{FrameHeader, FrameKind, MAX_PAYLOAD_BYTES};
use crate::infer::{InferRequest, TensorShape, parse_shapes, payload_bytes, shape_fields};
use crate::packed::{PackedBytes, PackedRequest, parse_packed};
use crate::picture::PictureRequest;
use crate::text::one_line;
use crate::token::{TOKEN_BYTES, Token};

/// The payload of an echo.
pub const ECHO_BYTES: u64 = 64;

/// The bytes of four times.
const TIMES_BYTES: usize = 32;

/// What the client asks for. The payload, if there is one, follows the frame's fields.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// Always the first: the secret that both ends know, and what the client calls itself.
    Hello {
        /// The secret.
        token: Token,
        /// The client's program.
        program: String,
    },
    /// [`ECHO_BYTES`] bytes of payload, to be given back.
    Echo,
    /// Bytes of payload to be taken and forgotten.
    Sink {
        /// How many.
        bytes: u64,
    },
    /// Bytes to be sent.
    Source {
        /// How many.
        bytes: u64,
    },
    /// Layers to be run on the tensors that are the payload.
    Infer(InferRequest),
    /// A whole network to be run on the picture that is the payload.
    Picture(PictureRequest),
    /// Layers to be run on the tensors that the payload has packed.
    InferPacked(PackedRequest),
}

/// What the server replies. A payload follows the fields of `Data`, `Tensors` and `PackedTensors` alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// To hello: what the server calls itself.
    Welcome {
        /// The server's program.
        program: String,
    },
    /// The bytes that were asked for.
    Data {
        /// How many.
        bytes: u64,
    },
    /// The tensors that were computed, which are the payload.
    Tensors {
        /// Their shapes.
        tensors: Vec<TensorShape>,
    },
    /// The same, packed.
    PackedTensors {
        /// Their shapes once they are unpacked.
        tensors: Vec<TensorShape>,
        /// Their bytes, which are the payload.
        packed: PackedBytes,
    },
    /// The request is done.
    Done(ServerTimes),
    /// It is not, and nothing else will be.
    Refused {
        /// Why, in a sentence.
        sentence: String,
    },
}

/// A frame of a known kind that does not mean anything.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// Its fields or its payload are not as the kind has them.
    #[error(
        "a frame `{kind:?}` does not have {fields} bytes of fields and {payload} bytes of payload"
    )]
    Malformed {
        /// What the frame is.
        kind: FrameKind,
        /// How many bytes of fields it has.
        fields: u32,
        /// How many bytes of payload it has.
        payload: u64,
    },
    /// It is none that this end is sent.
    #[error("a frame `{kind:?}` is for the other end")]
    OtherEnd {
        /// What the frame is.
        kind: FrameKind,
    },
}

fn frame(kind: FrameKind, fields: &[u8], payload_bytes: u64) -> Vec<u8> {
    let header = FrameHeader {
        kind,
        // What is written here has far fewer than 2^32 bytes.
        fields_bytes: fields.len() as u32,
        payload_bytes,
    };
    let mut bytes = header.encode().to_vec();
    bytes.extend_from_slice(fields);
    bytes
}

impl Request {
    /// The frame without its payload.
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Request::Hello { token, program } => {
                let mut fields = token.bytes().to_vec();
                fields.extend_from_slice(program.as_bytes());
                frame(FrameKind::Hello, &fields, 0)
            }
            Request::Echo => frame(FrameKind::Echo, &[], ECHO_BYTES),
            Request::Sink { bytes } => frame(FrameKind::Sink, &[], *bytes),
            Request::Source { bytes } => frame(FrameKind::Source, &bytes.to_be_bytes(), 0),
            Request::Infer(asked) => {
                // One without such a number is malformed, and so is one with any other.
                let payload = asked.payload_bytes().unwrap_or(u64::MAX);
                frame(FrameKind::Infer, &asked.fields(), payload)
            }
            Request::Picture(asked) => frame(FrameKind::Picture, &asked.fields(), asked.bytes),
            Request::InferPacked(asked) => {
                let payload = asked.tensors.payload_bytes().unwrap_or(u64::MAX);
                frame(FrameKind::InferPacked, &asked.fields(), payload)
            }
        }
    }

    /// The request of a frame with these fields.
    ///
    /// # Errors
    /// When the fields or the payload's length are not as the kind has them, or the frame is a reply.
    pub fn decode(header: FrameHeader, fields: &[u8]) -> Result<Request, MessageError> {
        let malformed = Err(malformed(header));
        match (header.kind, header.payload_bytes, fields) {
            (FrameKind::Hello, 0, _) => match fields.split_first_chunk::<TOKEN_BYTES>() {
                Some((token, program)) => Ok(Request::Hello {
                    token: Token::new(*token),
                    program: one_line(program),
                }),
                None => malformed,
            },
            (FrameKind::Echo, ECHO_BYTES, []) => Ok(Request::Echo),
            (FrameKind::Sink, bytes, []) => Ok(Request::Sink { bytes }),
            (FrameKind::Source, 0, _) => match fields.try_into().map(u64::from_be_bytes) {
                Ok(bytes) if bytes <= MAX_PAYLOAD_BYTES => Ok(Request::Source { bytes }),
                _ => malformed,
            },
            (FrameKind::Infer, bytes, _) => match InferRequest::parse(fields) {
                Some(asked) if asked.payload_bytes() == Some(bytes) => Ok(Request::Infer(asked)),
                _ => malformed,
            },
            (FrameKind::Picture, bytes, _) => match PictureRequest::parse(fields, bytes) {
                Some(asked) => Ok(Request::Picture(asked)),
                None => malformed,
            },
            (FrameKind::InferPacked, bytes, _) => match PackedRequest::parse(fields) {
                Some(asked) if asked.tensors.payload_bytes() == Some(bytes) => {
                    Ok(Request::InferPacked(asked))
                }
                _ => malformed,
            },
            (FrameKind::Hello | FrameKind::Echo | FrameKind::Sink | FrameKind::Source, _, _) => {
                malformed
            }
            (kind, _, _) => Err(MessageError::OtherEnd { kind }),
        }
    }
}

impl Reply {
    /// The frame without its payload.
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Reply::Welcome { program } => frame(FrameKind::Welcome, program.as_bytes(), 0),
            Reply::Data { bytes } => frame(FrameKind::Data, &[], *bytes),
            Reply::Tensors { tensors } => {
                let payload = payload_bytes(tensors).unwrap_or(u64::MAX);
                frame(FrameKind::Tensors, &shape_fields(tensors), payload)
            }
            Reply::PackedTensors { tensors, packed } => {
                let mut fields = shape_fields(tensors);
                fields.extend(packed.fields());
                let payload = packed.payload_bytes().unwrap_or(u64::MAX);
                frame(FrameKind::PackedTensors, &fields, payload)
            }
            Reply::Done(times) => {
                let times = [times.receive, times.queue, times.compute, times.send];
                let fields = times.map(|time| time.as_nanos().to_be_bytes()).concat();
                frame(FrameKind::Done, &fields, 0)
            }
            Reply::Refused { sentence } => frame(FrameKind::Refused, sentence.as_bytes(), 0),
        }
    }

    /// The reply of a frame with these fields.
    ///
    /// # Errors
    /// When the fields or the payload's length are not as the kind has them, or the frame is a request.
    pub fn decode(header: FrameHeader, fields: &[u8]) -> Result<Reply, MessageError> {
        match (header.kind, header.payload_bytes, fields) {
            (FrameKind::Welcome, 0, program) => Ok(Reply::Welcome {
                program: one_line(program),
            }),
            (FrameKind::Data, bytes, []) => Ok(Reply::Data { bytes }),
            (FrameKind::Done, 0, fields) if fields.len() == TIMES_BYTES => {
                let time = |place: usize| {
                    let mut bytes = [0; 8];
                    bytes.copy_from_slice(&fields[place * 8..place * 8 + 8]);
                    Nanos::from_nanos(u64::from_be_bytes(bytes))
                };
                Ok(Reply::Done(ServerTimes {
                    receive: time(0),
                    queue: time(1),
                    compute: time(2),
                    send: time(3),
                }))
            }
            (FrameKind::Tensors, bytes, fields) => match parse_shapes(fields) {
                Some(tensors) if payload_bytes(&tensors) == Some(bytes) => {
                    Ok(Reply::Tensors { tensors })
                }
                _ => Err(malformed(header)),
            },
            (FrameKind::PackedTensors, bytes, fields) => match parse_packed(fields) {
                Some((tensors, packed)) if packed.payload_bytes() == Some(bytes) => {
                    Ok(Reply::PackedTensors { tensors, packed })
                }
                _ => Err(malformed(header)),
            },
            (FrameKind::Refused, 0, sentence) => Ok(Reply::Refused {
                sentence: one_line(sentence),
            }),
            (FrameKind::Welcome | FrameKind::Data | FrameKind::Done | FrameKind::Refused, _, _) => {
                Err(malformed(header))
            }
            (kind, _, _) => Err(MessageError::OtherEnd { kind }),
        }
    }
}

fn malformed(header: FrameHeader) -> MessageError {
    MessageError::Malformed {
        kind: header.kind,
        fields: header.fields_bytes,
        payload: header.payload_bytes,
    }
}
