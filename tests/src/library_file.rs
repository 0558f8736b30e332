//! Shared libraries of a few hundred bytes, which say what they are for and load nowhere; and the archives that runtimes
//! come in.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

/// The number of x86-64 processors in ELF files.
pub const X86_64: u16 = 62;
/// That of 64-bit ARM processors.
pub const AARCH64: u16 = 183;
/// That of Qualcomm's accelerator.
pub const HEXAGON: u16 = 164;

const HEADER: usize = 64;
const SECTION: usize = 64;

/// A library for processors of this number that needs these others, with a text in it. It has the three sections in which
/// one says so: the names, the symbols, and what the loader is told.
pub fn library(machine: u16, needed: &[&str], text: &str) -> Vec<u8> {
    let mut names = vec![0];
    let mut dynamic: Vec<u8> = Vec::new();
    for library in needed {
        entry(&mut dynamic, 1, names.len() as u64);
        names.extend_from_slice(library.as_bytes());
        names.push(0);
    }
    entry(&mut dynamic, 0, 0);
    // Texts of the library's own are none of the loader's.
    names.extend_from_slice(text.as_bytes());
    names.push(0);
    let symbols = vec![0; 24];
    // What a section is, the section with its names, and how large one of its entries is.
    let sections: [(u32, u32, u64, &[u8]); 3] = [
        (3, 0, 0, &names),
        (11, 1, 24, &symbols),
        (6, 1, 16, &dynamic),
    ];
    let mut table = vec![0; SECTION];
    let mut contents = Vec::new();
    for (kind, names, size_of_entry, content) in sections {
        let place = HEADER + contents.len();
        table.extend_from_slice(&section(kind, names, size_of_entry, place, content.len()));
        contents.extend_from_slice(content);
        contents.resize(contents.len().next_multiple_of(8), 0);
    }
    let mut file = b"\x7fELF\x02\x01\x01".to_vec();
    file.resize(16, 0);
    for number in [3, machine] {
        file.extend_from_slice(&number.to_le_bytes());
    }
    file.extend_from_slice(&1_u32.to_le_bytes());
    for number in [0, 0, (HEADER + contents.len()) as u64] {
        file.extend_from_slice(&number.to_le_bytes());
    }
    file.extend_from_slice(&0_u32.to_le_bytes());
    for number in [HEADER as u16, 0, 0, SECTION as u16, 4, 1] {
        file.extend_from_slice(&number.to_le_bytes());
    }
    [file, contents, table].concat()
}

fn entry(dynamic: &mut Vec<u8>, tag: u64, value: u64) {
    dynamic.extend_from_slice(&tag.to_le_bytes());
    dynamic.extend_from_slice(&value.to_le_bytes());
}

fn section(kind: u32, names: u32, size_of_entry: u64, place: usize, size: usize) -> Vec<u8> {
    let mut header = vec![0; 4];
    header.extend_from_slice(&kind.to_le_bytes());
    for number in [0, 0, place as u64, size as u64] {
        header.extend_from_slice(&number.to_le_bytes());
    }
    header.extend_from_slice(&names.to_le_bytes());
    header.extend_from_slice(&0_u32.to_le_bytes());
    for number in [8, size_of_entry] {
        header.extend_from_slice(&number.to_le_bytes());
    }
    header
}

/// An archive with these files, by their paths in it. They are not made smaller, so that each is found in it as it is.
pub fn archive(file: &Path, entries: &[(&str, &[u8])]) {
    let mut writer = ZipWriter::new(File::create(file).expect("room"));
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    for (path, content) in entries {
        writer.start_file(*path, options).expect("an entry");
        writer.write_all(content).expect("room");
    }
    writer.finish().expect("an archive");
}
