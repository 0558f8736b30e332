//! What a tensor is made of before it crosses a link.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// How a tensor of 32-bit floats is packed. Each packing gives its numbers back: those in 32 bits bit by bit, those in 8 bits as
/// they were rounded to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TensorCodec {
    /// Rounded to 8 bits, one byte for each number: the baseline of jointdnn §4.2.
    U8,
    /// Rounded to 8 bits, the channels tiled into one grey picture, as PNG (jointdnn §4.2).
    U8Png,
    /// Rounded to 8 bits, by Zstandard.
    U8Zstd,
    /// Rounded to 8 bits, by LZ4.
    U8Lz4,
    /// The floats as they are, by Zstandard.
    F32Zstd,
    /// The floats as they are, by LZ4.
    F32Lz4,
}

/// A text that names no codec.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no codec `{name}`, but {}", TensorCodec::ALL.map(TensorCodec::name).join(", "))]
pub struct UnknownCodec {
    /// The text.
    name: String,
}

impl TensorCodec {
    /// All of them.
    pub const ALL: [TensorCodec; 6] = [
        TensorCodec::U8,
        TensorCodec::U8Png,
        TensorCodec::U8Zstd,
        TensorCodec::U8Lz4,
        TensorCodec::F32Zstd,
        TensorCodec::F32Lz4,
    ];

    /// What tables and users call it.
    pub const fn name(self) -> &'static str {
        match self {
            TensorCodec::U8 => "u8",
            TensorCodec::U8Png => "u8-png",
            TensorCodec::U8Zstd => "u8-zstd",
            TensorCodec::U8Lz4 => "u8-lz4",
            TensorCodec::F32Zstd => "f32-zstd",
            TensorCodec::F32Lz4 => "f32-lz4",
        }
    }

    /// Whether the numbers are rounded to 8 bits.
    pub const fn is_eight_bit(self) -> bool {
        !matches!(self, TensorCodec::F32Zstd | TensorCodec::F32Lz4)
    }
}

impl fmt::Display for TensorCodec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for TensorCodec {
    type Err = UnknownCodec;
    fn from_str(text: &str) -> Result<TensorCodec, UnknownCodec> {
        let mut all = TensorCodec::ALL.into_iter();
        all.find(|codec| codec.name() == text)
            .ok_or_else(|| UnknownCodec {
                name: text.to_owned(),
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_codec_has_one_name_for_tables_and_users() {
        for codec in TensorCodec::ALL {
            assert_eq!(codec.name().parse(), Ok(codec));
            let said = serde_json::to_string(&codec).expect("a word");
            assert_eq!(said, format!("\"{codec}\""));
        }
        let unknown = "gif".parse::<TensorCodec>().expect_err("none");
        assert!(unknown.to_string().contains("`gif`, but u8, u8-png"));
    }
}
