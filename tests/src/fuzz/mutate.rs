//! Changes of real files: bytes, numbers in text, lines, and fields of protobuf messages.

use std::ops::Range;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::bytes::change_bytes;
use super::protobuf;

/// No more changes than this: a file that is changed everywhere is refused at its first byte.
const MOST_CHANGES: u32 = 6;

/// Numbers at the ends of what types hold, and what is no number.
const NUMBERS: [&str; 16] = [
    "0",
    "-1",
    "1",
    "255",
    "256",
    "65536",
    "2147483647",
    "2147483648",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "1e308",
    "1e-320",
    "nan",
    "-0.0",
];

/// What a value of text can be replaced by.
const WORDS: [&str; 14] = [
    "null", "true", "\"\"", "[]", "{}", "[[", "inf", "\\u0000", "é", "\u{202e}", ",", "\n", "=",
    "\"",
];

/// What a file is, as far as changes are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Lines of text.
    Text,
    /// A protobuf message.
    Protobuf,
}

/// Input number `index`: one of `seeds`, changed.
pub fn input(format: Format, seeds: &[Vec<u8>], index: u64) -> Vec<u8> {
    let mut random = ChaCha8Rng::seed_from_u64(index);
    let mut bytes = pick(&mut random, seeds).clone();
    for _ in 0..random.random_range(1..=MOST_CHANGES) {
        let other = pick(&mut random, seeds);
        match (format, random.random_range(0..4)) {
            (Format::Protobuf, 0..=2) => protobuf::change(&mut bytes, other, &mut random),
            (Format::Text, 0..=2) => change_text(&mut bytes, &mut random),
            _ => change_bytes(&mut bytes, other, &mut random),
        }
    }
    bytes
}

fn pick<'a>(random: &mut ChaCha8Rng, seeds: &'a [Vec<u8>]) -> &'a Vec<u8> {
    &seeds[random.random_range(0..seeds.len())]
}

/// Replaces a number or a word, or moves, removes or repeats a line.
fn change_text(bytes: &mut Vec<u8>, random: &mut ChaCha8Rng) {
    let is_number = |byte: &u8| byte.is_ascii_digit() || b".-+e".contains(byte);
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || b"_.-+\"".contains(byte);
    let number = NUMBERS[random.random_range(0..NUMBERS.len())].as_bytes();
    match random.random_range(0..6) {
        0 | 1 => {
            let numbers = runs(bytes, |byte| byte.is_ascii_digit());
            if let Some(place) = one_of(&numbers, random) {
                let place = widened(bytes, place, is_number);
                bytes.splice(place, number.iter().copied());
            }
        }
        2 => {
            let word = WORDS[random.random_range(0..WORDS.len())];
            if let Some(place) = one_of(&runs(bytes, is_word), random) {
                bytes.splice(place, word.bytes());
            }
        }
        3 => {
            let words = runs(bytes, is_word);
            if let (Some(from), Some(to)) = (one_of(&words, random), one_of(&words, random)) {
                let copy = bytes[from].to_vec();
                bytes.splice(to, copy);
            }
        }
        what => {
            let mut lines: Vec<Vec<u8>> = bytes
                .split_inclusive(|&byte| byte == b'\n')
                .map(<[u8]>::to_vec)
                .collect();
            if lines.is_empty() {
                return;
            }
            let line = lines.remove(random.random_range(0..lines.len()));
            if what == 4 {
                let place = random.random_range(0..=lines.len());
                lines.insert(place, line.clone());
                if random.random() {
                    lines.insert(place, line);
                }
            }
            *bytes = lines.concat();
        }
    }
}

/// Where the bytes are of this kind, as long as possible.
fn runs(bytes: &[u8], kind: impl Fn(&u8) -> bool) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for (place, byte) in bytes.iter().enumerate() {
        match runs.last_mut() {
            _ if !kind(byte) => {}
            Some(last) if last.end == place => last.end += 1,
            _ => runs.push(place..place + 1),
        }
    }
    runs
}

fn widened(bytes: &[u8], place: Range<usize>, kind: impl Fn(&u8) -> bool) -> Range<usize> {
    let before = bytes[..place.start]
        .iter()
        .rev()
        .take_while(|byte| kind(byte))
        .count();
    let after = bytes[place.end..]
        .iter()
        .take_while(|byte| kind(byte))
        .count();
    place.start - before..place.end + after
}

fn one_of(ranges: &[Range<usize>], random: &mut ChaCha8Rng) -> Option<Range<usize>> {
    match ranges.len() {
        0 => None,
        count => Some(ranges[random.random_range(0..count)].clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_is_the_same_whenever_it_is_asked_for_and_other_inputs_differ() {
        let seeds = vec![
            b"name = \"a device\"\nclock = 17\n\n[[processors]]\nname = \"npu\"\nfixed_cost_ns = 250_000\n".to_vec(),
            b"[noise]\nproportional_sigma = 1.5\nfloor_ns = 40\nspike_share = 0.01\n".to_vec(),
        ];
        let all: Vec<Vec<u8>> = (0..1_000)
            .map(|index| input(Format::Text, &seeds, index))
            .collect();
        assert_eq!(input(Format::Text, &seeds, 17), all[17]);
        let mut different = all.clone();
        different.sort();
        different.dedup();
        assert!(different.len() > 700, "{}", different.len());
        let unchanged = all.iter().filter(|input| seeds.contains(input)).count();
        assert!(unchanged < 200, "{unchanged}");
    }

    #[test]
    fn numbers_are_replaced_whole() {
        let text = b"x = -1.5e3\n";
        let place = widened(text, 5..6, |byte| {
            byte.is_ascii_digit() || b".-+e".contains(byte)
        });
        assert_eq!(&text[place], b"-1.5e3");
        assert_eq!(runs(b"a12b3", |byte| byte.is_ascii_digit()), [1..3, 4..5]);
    }

    #[test]
    fn nothing_at_all_can_be_changed_too() {
        for index in 0..200 {
            input(Format::Text, &[Vec::new()], index);
            input(Format::Protobuf, &[Vec::new()], index);
        }
    }
}
