//! Bytes that come back as they were: PNG, Zstandard and LZ4. What is unpacked may come from anywhere, and takes no more memory
//! than what it is to become.

use std::io::{Cursor, Read as _};

use png::{BitDepth, ColorType, Compression, Decoder, Encoder, Limits};
use ruzstd::decoding::StreamingDecoder;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

use super::CompressionError;
use super::tiles::Tiles;

/// What reading a picture may take beside its pixels.
const CHUNKS: usize = 1 << 16;

/// Zstandard's encoder refers back by at most this, whatever it packs.
const LEAST_WINDOW: usize = 1 << 20;

/// A grey picture of 8 bits as PNG.
pub(super) fn png(tiles: Tiles, picture: &[u8]) -> Result<Vec<u8>, CompressionError> {
    let side = |pixels: usize| u32::try_from(pixels).map_err(|_| CompressionError::TooLarge);
    let (width, height) = (side(tiles.picture_width())?, side(tiles.picture_height())?);
    let mut file = Vec::new();
    let mut encoder = Encoder::new(&mut file, width, height);
    encoder.set_color(ColorType::Grayscale);
    encoder.set_depth(BitDepth::Eight);
    encoder.set_compression(Compression::Balanced);
    let written = encoder.write_header().and_then(|mut writer| {
        writer.write_image_data(picture)?;
        writer.finish()
    });
    written.map_err(|_| CompressionError::TooLarge)?;
    Ok(file)
}

/// The pixels of such a PNG.
pub(super) fn from_png(tiles: Tiles, file: &[u8]) -> Result<Vec<u8>, CompressionError> {
    let damaged = |reason: png::DecodingError| CompressionError::Damaged {
        what: "PNG",
        reason: reason.to_string(),
    };
    let pixels = tiles.picture_width() * tiles.picture_height();
    let limits = Limits {
        bytes: pixels.saturating_add(CHUNKS),
    };
    let mut decoder = Decoder::new_with_limits(Cursor::new(file), limits);
    decoder.set_ignore_text_chunk(true);
    decoder.set_ignore_iccp_chunk(true);
    let header = decoder.read_header_info().map_err(damaged)?;
    let is_ours = header.width as usize == tiles.picture_width()
        && header.height as usize == tiles.picture_height()
        && header.color_type == ColorType::Grayscale
        && header.bit_depth == BitDepth::Eight
        && !header.interlaced;
    if !is_ours {
        return Err(CompressionError::OtherPicture);
    }
    let mut reader = decoder.read_info().map_err(damaged)?;
    let mut picture = vec![0; pixels];
    reader.next_frame(&mut picture).map_err(damaged)?;
    reader.finish().map_err(damaged)?;
    Ok(picture)
}

/// Bytes by Zstandard.
pub(super) fn zstd(bytes: &[u8]) -> Vec<u8> {
    compress_to_vec(bytes, CompressionLevel::Fastest)
}

/// The `length` bytes of which Zstandard made these.
pub(super) fn from_zstd(packed: &[u8], length: usize) -> Result<Vec<u8>, CompressionError> {
    let damaged = |reason: &dyn std::fmt::Display| CompressionError::Damaged {
        what: "Zstandard",
        reason: reason.to_string(),
    };
    let window = length.max(LEAST_WINDOW).next_power_of_two() as u64;
    let decoder = StreamingDecoder::new_with_max_window_size(packed, window);
    let mut decoder = decoder.map_err(|reason| damaged(&reason))?;
    let mut bytes = vec![0; length];
    let read = decoder.read_exact(&mut bytes);
    read.map_err(|reason| damaged(&reason))?;
    // Behind the last byte comes the end.
    let more = decoder.read(&mut [0]).map_err(|reason| damaged(&reason))?;
    match more == 0 && decoder.into_inner().is_empty() {
        true => Ok(bytes),
        false => Err(CompressionError::TooLong),
    }
}

/// Bytes by LZ4, one block.
pub(super) fn lz4(bytes: &[u8]) -> Vec<u8> {
    lz4_flex::block::compress(bytes)
}

/// The `length` bytes of which LZ4 made these.
pub(super) fn from_lz4(packed: &[u8], length: usize) -> Result<Vec<u8>, CompressionError> {
    let mut bytes = vec![0; length];
    let unpacked = lz4_flex::block::decompress_into(packed, &mut bytes);
    let unpacked = unpacked.map_err(|reason| CompressionError::Damaged {
        what: "LZ4",
        reason: reason.to_string(),
    })?;
    match unpacked == length {
        true => Ok(bytes),
        false => Err(CompressionError::CutOff),
    }
}
