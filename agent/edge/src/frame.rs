//! A frame: a header of fixed length, then fields, then a payload.

/// The version of the protocol that this crate speaks. Both ends must speak the same.
pub const VERSION: u16 = 1;

/// The length of a header. It is the same in all versions, as is the frame that refuses.
pub const HEADER_BYTES: usize = 20;

/// The most bytes that a frame's fields have: a token and a name are a tenth of it.
pub const MAX_FIELDS_BYTES: u32 = 4096;

/// The most bytes that a frame's payload has: the largest tensor of a network of pictures, with room above it.
pub const MAX_PAYLOAD_BYTES: u64 = 64 << 20;

/// What every frame begins with.
const MAGIC: [u8; 4] = *b"LLeg";

/// What a frame is. Requests are below 256, replies above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum FrameKind {
    /// The first request: who asks, and the token.
    Hello = 1,
    /// Give these bytes back.
    Echo = 2,
    /// Take these bytes.
    Sink = 3,
    /// Give so many bytes.
    Source = 4,
    /// Run layers of a model. Servers without models refuse it, as the first of this version all did.
    Infer = 5,
    /// Have a picture answered. Servers that are older than it refuse it, as a kind that they do not know.
    Picture = 6,
    /// Run layers of a model on tensors that are packed, or pack what they give. Servers that are older than it refuse it.
    InferPacked = 7,
    /// The reply to hello.
    Welcome = 256,
    /// Bytes that were asked for.
    Data = 257,
    /// The request is done; with the server's times.
    Done = 258,
    /// The server will not; its last frame.
    Refused = 259,
    /// Tensors that were computed; before `done`, where layers were run.
    Tensors = 260,
    /// Tensors that were computed and packed, in the place of `tensors`.
    PackedTensors = 261,
}

impl FrameKind {
    /// All of them.
    pub const ALL: [FrameKind; 13] = [
        FrameKind::Hello,
        FrameKind::Echo,
        FrameKind::Sink,
        FrameKind::Source,
        FrameKind::Infer,
        FrameKind::Picture,
        FrameKind::InferPacked,
        FrameKind::Welcome,
        FrameKind::Data,
        FrameKind::Done,
        FrameKind::Refused,
        FrameKind::Tensors,
        FrameKind::PackedTensors,
    ];
}

/// The beginning of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHeader {
    /// What the frame is.
    pub kind: FrameKind,
    /// How many bytes of fields follow, at most [`MAX_FIELDS_BYTES`].
    pub fields_bytes: u32,
    /// How many bytes of payload follow those, at most [`MAX_PAYLOAD_BYTES`].
    pub payload_bytes: u64,
}

/// Bytes that begin no frame of this version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// They are no frame at all.
    #[error("these bytes are no frame of layerlab's edge protocol")]
    NotAFrame,
    /// They are a frame of another version.
    #[error(
        "this is version {theirs} of the edge protocol, and here is version {VERSION}: update the older layerlab"
    )]
    Version {
        /// The version that the frame states.
        theirs: u16,
    },
    /// The version has no such kind of frame.
    #[error(
        "this version {VERSION} of the edge protocol has no frames of kind {kind}: update the older layerlab"
    )]
    Kind {
        /// The kind that the frame states.
        kind: u16,
    },
    /// The fields or the payload are longer than any may be.
    #[error(
        "a frame of {fields} bytes of fields and {payload} bytes of payload is too long: {MAX_FIELDS_BYTES} and {MAX_PAYLOAD_BYTES} are the most"
    )]
    TooLong {
        /// The bytes of fields that it states.
        fields: u32,
        /// The bytes of payload that it states.
        payload: u64,
    },
}

impl FrameHeader {
    /// The header as bytes: magic, version, kind, length of fields, length of payload; the high byte first.
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4..6].copy_from_slice(&VERSION.to_be_bytes());
        bytes[6..8].copy_from_slice(&(self.kind as u16).to_be_bytes());
        bytes[8..12].copy_from_slice(&self.fields_bytes.to_be_bytes());
        bytes[12..].copy_from_slice(&self.payload_bytes.to_be_bytes());
        bytes
    }

    /// The header in `bytes`.
    ///
    /// # Errors
    /// When they are none of this version. A frame that refuses is read whatever its version, so that both ends of
    /// different versions can say so.
    pub fn decode(bytes: &[u8; HEADER_BYTES]) -> Result<FrameHeader, FrameError> {
        let [m0, m1, m2, m3, v0, v1, k0, k1, f0, f1, f2, f3, payload @ ..] = *bytes;
        if [m0, m1, m2, m3] != MAGIC {
            return Err(FrameError::NotAFrame);
        }
        let (theirs, kind) = (u16::from_be_bytes([v0, v1]), u16::from_be_bytes([k0, k1]));
        if theirs != VERSION && kind != FrameKind::Refused as u16 {
            return Err(FrameError::Version { theirs });
        }
        let known = FrameKind::ALL.into_iter().find(|&it| it as u16 == kind);
        let kind = known.ok_or(FrameError::Kind { kind })?;
        let fields = u32::from_be_bytes([f0, f1, f2, f3]);
        let payload = u64::from_be_bytes(payload);
        if fields > MAX_FIELDS_BYTES || payload > MAX_PAYLOAD_BYTES {
            return Err(FrameError::TooLong { fields, payload });
        }
        Ok(FrameHeader {
            kind,
            fields_bytes: fields,
            payload_bytes: payload,
        })
    }
}
