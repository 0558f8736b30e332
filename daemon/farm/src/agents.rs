//! Agents for phones: where they lie, and which of a phone's libraries each can load.

use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};

use elf::ElfStream;
use elf::abi::PT_INTERP;
use elf::endian::AnyEndian;

use crate::adb::{AdbError, Content, Phone};

/// The agent's file in the folder of its binary interface.
const AGENT: &str = "layerlab-agent";

/// Where agents come from.
#[derive(Clone, Debug)]
pub struct Agents {
    /// The folder with `ABI/layerlab-agent`, made by `make agent`.
    pub folder: PathBuf,
    /// The host's own agent, for phones with the host's processor and C library: virtual ones.
    pub of_host: PathBuf,
}

/// What an agent finds libraries with, which decides which ones it can load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Linking {
    /// It has all that it needs, runs on any phone with its processor, and can load nothing.
    Static,
    /// It is for Android's own C library, and can load a phone's runtimes.
    Android,
    /// It is for the C library of computers, which virtual phones have.
    Computer,
}

impl Agents {
    /// Where agents for phones are, a folder for each binary interface: this user's own, and those that were installed with
    /// the program.
    fn folders(&self) -> impl Iterator<Item = PathBuf> {
        let prefix = self.of_host.parent().and_then(Path::parent);
        let installed = prefix.map(|prefix| prefix.join("lib/layerlab/agents"));
        [Some(self.folder.clone()), installed].into_iter().flatten()
    }

    /// All agents for phones, by binary interface. Where there are several for one, the one that phones get.
    pub fn all(&self) -> Vec<(String, PathBuf)> {
        let mut abis: Vec<String> = self
            .folders()
            .filter_map(|folder| std::fs::read_dir(folder).ok())
            .flatten()
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .collect();
        abis.sort();
        abis.dedup();
        let with_agent = |abi: String| self.built(&abi).map(|agent| (abi, agent));
        abis.into_iter().filter_map(with_agent).collect()
    }

    /// The agent that was built for phones with the binary interface `abi`.
    pub fn built(&self, abi: &str) -> Option<PathBuf> {
        let agents = self.folders().map(|folder| folder.join(abi).join(AGENT));
        agents.into_iter().find(|agent| agent.is_file())
    }

    /// The agent's program for phones with the binary interface `abi`, whether it is there or not.
    pub fn program(&self, abi: &str) -> PathBuf {
        match self.built(abi) {
            Some(built) => built,
            None if abi == std::env::consts::ARCH => self.of_host.clone(),
            // Where it is missed.
            None => self.folder.join(abi).join(AGENT),
        }
    }

    /// The agent for a phone with the binary interface `abi`.
    ///
    /// # Errors
    /// When there is none, or the phone names no binary interface.
    pub(crate) fn content(&self, phone: &Phone, abi: &str) -> Result<Content<'static>, AdbError> {
        let none = |reason: String| AdbError::NoAgent {
            name: phone.name().to_owned(),
            abi: abi.to_owned(),
            reason,
        };
        // The name comes from the phone, and becomes a path.
        let is_name = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
        if abi.is_empty() || !abi.chars().all(is_name) {
            return Err(none("the phone names no processor".to_owned()));
        }
        let path = self.program(abi);
        Content::file(&path).map_err(|error| none(format!("{}: {error}", path.display())))
    }
}

impl Linking {
    /// How the agent in this file was linked; `None` if it is no program for Linux.
    pub fn of(agent: &Path) -> Option<Linking> {
        let mut elf = ElfStream::<AnyEndian, File>::open_stream(File::open(agent).ok()?).ok()?;
        let is_interpreter = |segment: &&elf::segment::ProgramHeader| segment.p_type == PT_INTERP;
        let Some(interpreter) = elf.segments().iter().find(is_interpreter).copied() else {
            return Some(Linking::Static);
        };
        let path = elf.segment_data(&interpreter).ok()?;
        let is_android = path.starts_with(b"/system/bin/linker");
        Some(if is_android {
            Linking::Android
        } else {
            Linking::Computer
        })
    }
}

impl fmt::Display for Linking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Linking::Static => "static",
            Linking::Android => "for Android's libraries",
            Linking::Computer => "for a computer's libraries",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERPRETER: &[u8] = b"/lib64/ld-linux-x86-64.so.2\0";

    /// This test's own program with one change, as an agent.
    fn changed(change: impl FnOnce(&mut Vec<u8>)) -> Option<Linking> {
        let this = std::env::current_exe().expect("this program's own path");
        let mut program = std::fs::read(this).expect("this program");
        change(&mut program);
        let file = tempfile::NamedTempFile::new().expect("room");
        std::fs::write(file.path(), program).expect("room");
        Linking::of(file.path())
    }

    /// Where `bytes` are in `program` for the first time.
    fn place(program: &[u8], bytes: &[u8]) -> usize {
        let found = program
            .windows(bytes.len())
            .position(|window| window == bytes);
        found.expect("a program for x86-64 Linux with its own loader")
    }

    #[test]
    #[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
    fn how_an_agent_was_linked_is_read_from_its_program() {
        assert_eq!(changed(|_| {}), Some(Linking::Computer));
        let android = changed(|program| {
            let at = place(program, INTERPRETER);
            let linker = b"/system/bin/linker64";
            program[at..at + INTERPRETER.len()].fill(0);
            program[at..at + linker.len()].copy_from_slice(linker);
        });
        assert_eq!(android, Some(Linking::Android));
        let without_interpreter = changed(|program| {
            let headers = usize::from_le_bytes(program[32..40].try_into().expect("8 bytes"));
            let (size, count) = (program[54], program[56]);
            for header in (0..usize::from(count)).map(|n| headers + n * usize::from(size)) {
                if program[header..header + 4] == PT_INTERP.to_le_bytes() {
                    program[header..header + 4].fill(0);
                }
            }
        });
        assert_eq!(without_interpreter, Some(Linking::Static));
        assert_eq!(changed(Vec::clear), None);
        assert_eq!(Linking::of(Path::new("/no/such/agent")), None);
    }

    #[test]
    fn an_agent_of_the_users_own_goes_before_an_installed_one() {
        let prefix = tempfile::tempdir().expect("room");
        let put = |folder: &str, abi: &str| {
            let folder = prefix.path().join(folder).join(abi);
            std::fs::create_dir_all(&folder).expect("room");
            std::fs::write(folder.join(AGENT), "").expect("room");
        };
        put("lib/layerlab/agents", "arm64-v8a");
        put("lib/layerlab/agents", "x86_64");
        put("own", "x86_64");
        let agents = Agents {
            folder: prefix.path().join("own"),
            of_host: prefix.path().join("bin/layerlab-agent"),
        };
        let all = agents.all();
        let named: Vec<(&str, bool)> = all
            .iter()
            .map(|(abi, path)| (abi.as_str(), path.starts_with(&agents.folder)))
            .collect();
        assert_eq!(named, [("arm64-v8a", false), ("x86_64", true)]);
        assert_eq!(agents.built("x86"), None);
    }
}
