//! Tensors made smaller before they cross a link (jointdnn §4.2), and made tensors again. Pure: bytes in, bytes out.
//!
//! A packed tensor does not say what shape it has: whoever unpacks it knows that from the network, and so how much memory it
//! may take. In 8 bits it begins with its scale, a 32-bit float with the low byte first, and its zero point, one byte.

mod eight_bit;
mod lossless;
mod tiles;

use layerlab_model::ElementType;
use layerlab_profiles::tensors::TensorCodec;

pub use self::eight_bit::Affine;
pub use self::tiles::Tiles;
use crate::runtime::{Tensor, TensorError};

/// Why a tensor was not packed or unpacked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompressionError {
    /// Other elements than floats of 32 bits do not cross links.
    #[error("only tensors of f32 cross a link, and this one is of {element}")]
    Element {
        /// What its elements are.
        element: ElementType,
    },
    /// An infinite number has no code.
    #[error(
        "it has numbers that are not finite, which 8 bits cannot hold; let it cross as 32-bit floats"
    )]
    NotFinite,
    /// No picture is so large.
    #[error("it is too large for a picture; choose another codec")]
    TooLarge,
    /// There are fewer bytes than it needs.
    #[error("what came is cut off")]
    CutOff,
    /// There are more bytes than it needs.
    #[error("what came is longer than the tensor")]
    TooLong,
    /// Codes would mean nothing.
    #[error("what came has a scale that is no positive number")]
    Scale,
    /// It is a picture, but not of this tensor.
    #[error("what came is no grey picture of the tensor's size")]
    OtherPicture,
    /// It cannot be read.
    #[error("what came is no sound {what}: {reason}")]
    Damaged {
        /// What it should have been.
        what: &'static str,
        /// Where it is not.
        reason: String,
    },
    /// It is something else than was sent.
    #[error("{codec} did not give back what was sent; this is an error of layerlab")]
    NotBack {
        /// What packed and unpacked it.
        codec: TensorCodec,
    },
    /// What came has another shape than it should.
    #[error(transparent)]
    Tensor(#[from] TensorError),
}

/// The bytes in which `tensor` crosses a link.
///
/// # Errors
/// When its elements are no 32-bit floats, or are to be rounded to 8 bits and are not finite.
pub fn compress(codec: TensorCodec, tensor: &Tensor) -> Result<Vec<u8>, CompressionError> {
    let element = tensor.element();
    if element != ElementType::F32 {
        return Err(CompressionError::Element { element });
    }
    let values = tensor.to_floats();
    let little = || -> Vec<u8> { values.iter().flat_map(|it| it.to_le_bytes()).collect() };
    match codec {
        TensorCodec::F32Zstd => return Ok(lossless::zstd(&little())),
        TensorCodec::F32Lz4 => return Ok(lossless::lz4(&little())),
        TensorCodec::U8 | TensorCodec::U8Png | TensorCodec::U8Zstd | TensorCodec::U8Lz4 => {}
    }
    let affine = Affine::of(&values)?;
    let codes = affine.codes(&values);
    let mut packed = affine.to_bytes().to_vec();
    packed.extend(match codec {
        TensorCodec::U8Png => {
            let tiles = Tiles::of(tensor.shape());
            lossless::png(tiles, &tiles.tiled(&codes, affine.zero_point()))?
        }
        TensorCodec::U8Zstd => lossless::zstd(&codes),
        TensorCodec::U8Lz4 => lossless::lz4(&codes),
        TensorCodec::U8 | TensorCodec::F32Zstd | TensorCodec::F32Lz4 => codes,
    });
    Ok(packed)
}

/// The tensor of this shape that crossed a link as `packed`.
///
/// # Errors
/// When it is no such tensor.
pub fn decompress(
    codec: TensorCodec,
    shape: &[usize],
    packed: &[u8],
) -> Result<Tensor, CompressionError> {
    let numbers = shape
        .iter()
        .try_fold(1_usize, |all, &axis| all.checked_mul(axis));
    let bytes = numbers.and_then(|numbers| numbers.checked_mul(size_of::<f32>()));
    let (Some(numbers), Some(bytes)) = (numbers, bytes) else {
        return Err(CompressionError::TooLarge);
    };
    let floats = |little: Vec<u8>| {
        let (fours, _) = little.as_chunks::<4>();
        tensor(
            shape,
            &fours
                .iter()
                .map(|it| f32::from_le_bytes(*it))
                .collect::<Vec<f32>>(),
        )
    };
    match codec {
        TensorCodec::F32Zstd => return floats(lossless::from_zstd(packed, bytes)?),
        TensorCodec::F32Lz4 => return floats(lossless::from_lz4(packed, bytes)?),
        TensorCodec::U8 | TensorCodec::U8Png | TensorCodec::U8Zstd | TensorCodec::U8Lz4 => {}
    }
    let (affine, packed) = Affine::split_from(packed)?;
    let codes = match codec {
        TensorCodec::U8Png => {
            let tiles = Tiles::of(shape);
            tiles.untiled(&lossless::from_png(tiles, packed)?)
        }
        TensorCodec::U8Zstd => lossless::from_zstd(packed, numbers)?,
        TensorCodec::U8Lz4 => lossless::from_lz4(packed, numbers)?,
        TensorCodec::U8 | TensorCodec::F32Zstd | TensorCodec::F32Lz4 => packed.to_vec(),
    };
    if codes.len() < numbers {
        return Err(CompressionError::CutOff);
    }
    if codes.len() > numbers {
        return Err(CompressionError::TooLong);
    }
    tensor(shape, &affine.values(&codes))
}

/// The tensor as 8 bits give it back.
///
/// # Errors
/// As [`compress`].
pub fn rounded(tensor: &Tensor) -> Result<Tensor, CompressionError> {
    decompress(
        TensorCodec::U8,
        tensor.shape(),
        &compress(TensorCodec::U8, tensor)?,
    )
}

fn tensor(shape: &[usize], values: &[f32]) -> Result<Tensor, CompressionError> {
    Ok(Tensor::from_floats(
        ElementType::F32,
        shape.to_vec(),
        values,
    )?)
}
