//! Why a runtime cannot be added or removed, with the remedy: one sentence each.

use std::io;
use std::path::PathBuf;

use crate::adb::Printable;

/// Why a runtime for phones cannot be added, listed or removed.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeStoreError {
    /// The file or folder cannot be read.
    #[error("cannot read {}: {source}", file.display())]
    Unreadable {
        /// What was to be read.
        file: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It is none of what runtimes come as.
    #[error("{} is no Android archive (.aar), no Python wheel (.whl) and no folder of libraries; give one of these", file.display())]
    NotARuntime {
        /// What was given.
        file: PathBuf,
    },
    /// Something in it is not what it was when it was made.
    #[error("{} is damaged ({}); get it anew", file.display(), Printable(cause))]
    Damaged {
        /// The archive or folder.
        file: PathBuf,
        /// What shows it.
        cause: String,
    },
    /// No archive of a runtime's maker has such an entry.
    #[error("{} holds {}, {why}, which no runtime needs; get it from the runtime's maker", file.display(), Printable(entry))]
    Unsafe {
        /// The archive.
        file: PathBuf,
        /// The entry in it.
        entry: String,
        /// What is wrong with that entry.
        why: &'static str,
    },
    /// Unpacked, it would be larger than any runtime is.
    #[error("{} holds {found}, and at most {most} is taken; give the runtime's own archive or folder", file.display())]
    TooLarge {
        /// The archive or folder.
        file: PathBuf,
        /// How much it holds, with its unit.
        found: String,
        /// The limit, with its unit.
        most: String,
    },
    /// It holds no library that layerlab knows.
    #[error("{} holds no runtime: there is neither libonnxruntime.so nor a library of Qualcomm's QNN in it; docs/phones.md names files that hold one", file.display())]
    NothingKnown {
        /// The archive or folder.
        file: PathBuf,
    },
    /// A library lacks another one.
    #[error("{} is not whole: {} needs {}, which is not in it; get it anew, or give a folder with both", file.display(), Printable(library), Printable(missing))]
    Incomplete {
        /// The archive or folder.
        file: PathBuf,
        /// The library that needs another.
        library: String,
        /// The other.
        missing: String,
    },
    /// A library is in the folder of another binary interface, or for a machine that is none of a phone's.
    #[error("{} cannot be used: {} is {found}; get it anew from the runtime's maker", file.display(), Printable(library))]
    Misplaced {
        /// The archive or folder.
        file: PathBuf,
        /// The library.
        library: String,
        /// What it is.
        found: String,
    },
    /// Two libraries would be given the same name on a phone.
    #[error("{} holds several files {} for {abi} that differ; give the folder of one of them", file.display(), Printable(library))]
    Ambiguous {
        /// The archive or folder.
        file: PathBuf,
        /// The name of both.
        library: String,
        /// The binary interface of both.
        abi: String,
    },
    /// Qualcomm's libraries only work with those of the same release.
    #[error("{} mixes libraries of Qualcomm's releases {first} and {second}, which do not work together; take all from one", file.display())]
    MixedReleases {
        /// The archive or folder.
        file: PathBuf,
        /// The one release.
        first: String,
        /// The other.
        second: String,
    },
    /// A runtime of that name is there, and it is another one.
    #[error(
        "another {} is there already ({version}); remove that first (`layerlab runtime remove {}`), or give this one another name with --name",
        Printable(name),
        Printable(name)
    )]
    NameTaken {
        /// The name of both.
        name: String,
        /// The version of the one that is there.
        version: String,
    },
    /// A phone would have a choice.
    #[error(
        "{} has {library} for {abi} already, and a phone is given only one; `layerlab runtime remove {}` comes first",
        Printable(by),
        Printable(by)
    )]
    Provided {
        /// The library.
        library: String,
        /// The binary interface that both have it for.
        abi: String,
        /// The runtime that has it.
        by: String,
    },
    /// A name that cannot be a folder's.
    #[error(
        "`{}` is no name for a runtime; use letters, digits, dots, hyphens and underscores",
        Printable(name)
    )]
    BadName {
        /// The name given.
        name: String,
    },
    /// No runtime has that name.
    #[error(
        "there is no runtime `{}`; `layerlab runtime list` names those there are",
        Printable(name)
    )]
    Unknown {
        /// The name given.
        name: String,
    },
    /// Layerlab's own folder cannot be used.
    #[error("cannot use {}: {source}; free or mend it", path.display())]
    Store {
        /// The file or folder of layerlab's data that failed.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl RuntimeStoreError {
    /// Whether layerlab's own folder is at fault, not what was given.
    pub fn is_of_store(&self) -> bool {
        matches!(self, RuntimeStoreError::Store { .. })
    }
}
