//! Changes of a few bytes, whatever they mean.

use std::ops::Range;

use rand::Rng;
use rand_chacha::ChaCha8Rng;

/// Changes some bytes, or moves, removes or inserts a few of this file or of `other`.
pub(super) fn change_bytes(bytes: &mut Vec<u8>, other: &[u8], random: &mut ChaCha8Rng) {
    let range = range(bytes.len(), random);
    match random.random_range(0..7) {
        0 => {
            if let Some(byte) = bytes.get_mut(range.start) {
                *byte ^= 1 << random.random_range(0..8);
            }
        }
        1 => {
            if let Some(byte) = bytes.get_mut(range.start) {
                *byte = [0, 1, 0x7f, 0x80, 0xff, random.random()][random.random_range(0..6)];
            }
        }
        2 => drop(bytes.drain(range)),
        3 => {
            let copy = bytes[range.clone()].to_vec();
            bytes.splice(range.start..range.start, copy);
        }
        4 => {
            let piece = self::range(other.len(), random);
            bytes.splice(range, other[piece].iter().copied());
        }
        5 => {
            let count = random.random_range(1..9);
            let noise: Vec<u8> = (0..count).map(|_| random.random()).collect();
            bytes.splice(range.start..range.start, noise);
        }
        _ => bytes.truncate(range.start),
    }
}

/// A few bytes, or all from a place on.
fn range(length: usize, random: &mut ChaCha8Rng) -> Range<usize> {
    let start = random.random_range(0..=length);
    let longest = match random.random_range(0..4) {
        0 => length - start,
        _ => (length - start).min(16),
    };
    start..start + random.random_range(0..=longest)
}
