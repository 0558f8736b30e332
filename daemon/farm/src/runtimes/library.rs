//! What a shared library says of itself: for which processors and whose C library it is, and which others it needs.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use elf::ElfStream;
use elf::abi::{DT_NEEDED, EM_386, EM_AARCH64, EM_ARM, EM_QDSP6, EM_X86_64};
use elf::endian::AnyEndian;
use serde::{Deserialize, Serialize};

use crate::agents::Linking;

/// The C libraries by which systems are told apart.
const OF_ANDROID: &str = "libc.so";
const OF_COMPUTERS: &str = "libc.so.6";

/// What stands for a binary interface where a library runs on Qualcomm's accelerator itself.
pub const HEXAGON: &str = "hexagon";

/// What a library runs on, beside a processor that understands it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LibrarySystem {
    /// Android's C library.
    Android,
    /// The C library of computers, which virtual phones have.
    Computer,
    /// Qualcomm's accelerator, whatever the phone's processor is.
    Hexagon,
}

impl LibrarySystem {
    /// What an agent that was linked so can load; nothing if it is static.
    pub fn of_agent(linking: Linking) -> Option<LibrarySystem> {
        match linking {
            Linking::Static => None,
            Linking::Android => Some(LibrarySystem::Android),
            Linking::Computer => Some(LibrarySystem::Computer),
        }
    }
}

impl fmt::Display for LibrarySystem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LibrarySystem::Android => "Android",
            LibrarySystem::Computer => "computers",
            LibrarySystem::Hexagon => "the Hexagon",
        })
    }
}

/// A library's own account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LibraryFacts {
    /// The binary interface, as Android names it; [`HEXAGON`] for Qualcomm's accelerator.
    pub(super) abi: String,
    /// `None` if it names no C library.
    pub(super) system: Option<LibrarySystem>,
    /// The names of the libraries that it needs.
    pub(super) needed: Vec<String>,
}

/// What the file at `library` says of itself; `None` if it is no library for a phone's or a computer's processor.
pub(super) fn facts(library: &Path) -> Option<LibraryFacts> {
    let file = BufReader::new(File::open(library).ok()?);
    let mut elf = ElfStream::<AnyEndian, BufReader<File>>::open_stream(file).ok()?;
    let abi = match elf.ehdr.e_machine {
        EM_AARCH64 => "arm64-v8a",
        EM_ARM => "armeabi-v7a",
        EM_X86_64 => "x86_64",
        EM_386 => "x86",
        EM_QDSP6 => HEXAGON,
        _ => return None,
    };
    let needed = needed(&mut elf).unwrap_or_default();
    let needs = |name: &str| needed.iter().any(|library| library == name);
    let system = if abi == HEXAGON {
        Some(LibrarySystem::Hexagon)
    } else if needs(OF_COMPUTERS) {
        Some(LibrarySystem::Computer)
    } else if needs(OF_ANDROID) {
        Some(LibrarySystem::Android)
    } else {
        None
    };
    Some(LibraryFacts {
        abi: abi.to_owned(),
        system,
        needed,
    })
}

fn needed(elf: &mut ElfStream<AnyEndian, BufReader<File>>) -> Option<Vec<String>> {
    let dynamic = elf.dynamic().ok()??;
    let needed = dynamic.iter().filter(|entry| entry.d_tag == DT_NEEDED);
    let places: Vec<usize> = needed.map(|entry| entry.d_val() as usize).collect();
    let (_, texts) = elf.dynamic_symbol_table().ok()??;
    let text = |place| texts.get(place).ok().map(str::to_owned);
    Some(places.into_iter().filter_map(text).collect())
}

/// How the release is written in Qualcomm's libraries.
const RELEASE: &[u8] = b"v2.";

/// The longest release.
const LONGEST_RELEASE: usize = 40;

/// Which release of Qualcomm's libraries the file at `library` says that it is of, such as `v2.51.0.260929181845`; many
/// say nothing.
pub(super) fn release(library: &Path) -> io::Result<Option<String>> {
    let mut reader = BufReader::with_capacity(1 << 20, File::open(library)?);
    // The end of what was read before, so that a release across two portions is seen.
    let mut text: Vec<u8> = Vec::new();
    loop {
        let portion = reader.fill_buf()?;
        let length = portion.len();
        text.extend_from_slice(portion);
        let found = text
            .windows(RELEASE.len())
            .enumerate()
            .filter(|(_, window)| *window == RELEASE)
            .find_map(|(at, _)| release_at(&text[at..]));
        if found.is_some() || length == 0 {
            return Ok(found);
        }
        reader.consume(length);
        let kept = text.len().saturating_sub(LONGEST_RELEASE);
        text.drain(..kept);
    }
}

/// A release at the beginning of `text`: three short numbers and the long one of a build.
fn release_at(text: &[u8]) -> Option<String> {
    let is_part = |byte: &&u8| byte.is_ascii_digit() || **byte == b'.';
    let rest = text[1..].iter().take_while(is_part).count();
    if rest + 1 >= text.len().min(LONGEST_RELEASE) {
        return None;
    }
    let release = std::str::from_utf8(&text[..=rest]).ok()?;
    let release = release.trim_end_matches('.');
    let mut numbers = release[1..].split('.');
    let short = numbers.by_ref().take(3).filter(|number| number.len() < 4);
    let is_release = short.count() == 3 && numbers.next()?.len() >= 6 && numbers.next().is_none();
    is_release.then(|| release.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_is_found_wherever_it_is_and_what_looks_like_one_is_not() {
        let of = |content: &[u8]| {
            let file = tempfile::NamedTempFile::new().expect("room");
            std::fs::write(file.path(), content).expect("room");
            release(file.path()).expect("readable")
        };
        let is = Some("v2.51.0.260929181845".to_owned());
        assert_eq!(of(b"\0v2.51.0.260929181845\0"), is);
        assert_eq!(of(b"QNN v2.51.0.260929181845. "), is);
        for none in ["v2.1.0", "v2.51.0.26", "v2.a", "", "v2."] {
            assert_eq!(of(format!("x{none}\0").as_bytes()), None, "{none}");
        }
        for before in (1 << 20) - 25..(1 << 20) + 2 {
            let mut content = vec![b'-'; before];
            content.extend_from_slice(b"v2.51.0.260929181845\0");
            assert_eq!(of(&content), is, "after {before} bytes");
        }
    }

    #[test]
    #[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
    fn a_program_says_what_it_is_for_and_a_text_nothing() {
        let this = std::env::current_exe().expect("this program's own path");
        let found = facts(&this).expect("a program for Linux");
        assert_eq!(
            (found.abi.as_str(), found.system),
            ("x86_64", Some(LibrarySystem::Computer))
        );
        assert!(found.needed.iter().any(|name| name == OF_COMPUTERS));
        let text = tempfile::NamedTempFile::new().expect("room");
        std::fs::write(text.path(), "text").expect("room");
        assert_eq!(facts(text.path()), None);
    }
}
