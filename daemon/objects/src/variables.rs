//! What leads to an S3 server: the usual variables, from the environment or from a file that nobody else can read.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The variables that count, as other programs that use S3 know them.
const KNOWN: [&str; 10] = [
    ACCESS_KEY_ID,
    SECRET_ACCESS_KEY,
    "AWS_ALLOW_HTTP",
    "AWS_CA_BUNDLE",
    "AWS_DEFAULT_REGION",
    "AWS_ENDPOINT_URL",
    "AWS_ENDPOINT_URL_S3",
    "AWS_REGION",
    "AWS_SESSION_TOKEN",
    "AWS_VIRTUAL_HOSTED_STYLE_REQUEST",
];

pub(crate) const ACCESS_KEY_ID: &str = "AWS_ACCESS_KEY_ID";
pub(crate) const SECRET_ACCESS_KEY: &str = "AWS_SECRET_ACCESS_KEY";

/// Which S3 server it is, and the key for it.
#[derive(Clone, Default)]
pub struct S3Variables(BTreeMap<String, String>);

/// Names alone: values may be secret.
impl fmt::Debug for S3Variables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// Why a file's variables cannot be used. What stands in it is not said.
#[derive(Debug, thiserror::Error)]
pub enum VariablesError {
    /// It cannot be read.
    #[error("cannot read the file with the key for S3, {}: {source}; see that it is there and the daemon's user may read it", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Others may read it.
    #[error("others can read the file with the key for S3, {path}; `chmod 600 {path}` keeps it to its owner", path = path.display())]
    Open {
        /// The file.
        path: PathBuf,
    },
    /// A line of it is none.
    #[error(
        "line {line} of {} is no variable for S3; write NAME=VALUE with a name of {known}",
        path.display(), known = KNOWN.join(", ")
    )]
    Line {
        /// The file.
        path: PathBuf,
        /// The number of the line.
        line: usize,
    },
}

impl S3Variables {
    /// Those that count of `variables`, such as those of the environment. Empty ones do not.
    pub fn of(variables: impl IntoIterator<Item = (String, String)>) -> S3Variables {
        let counts =
            |(name, value): &(String, String)| KNOWN.contains(&name.as_str()) && !value.is_empty();
        S3Variables(variables.into_iter().filter(counts).collect())
    }

    /// Those of the environment. One that is no text does not count.
    pub fn of_environment() -> S3Variables {
        let all = std::env::vars_os();
        let texts = all.filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        S3Variables::of(texts)
    }

    /// Puts those in the file `path` over these, one `NAME=VALUE` a line; lines that are empty or begin with `#` say nothing.
    ///
    /// # Errors
    /// When it cannot be read, others can read it, or a line is no variable.
    pub fn with_file(mut self, path: &Path) -> Result<S3Variables, VariablesError> {
        let failed = |source| VariablesError::Read {
            path: path.to_owned(),
            source,
        };
        let metadata = fs::metadata(path).map_err(failed)?;
        if metadata.permissions().mode() & 0o077 != 0 {
            let path = path.to_owned();
            return Err(VariablesError::Open { path });
        }
        let text = fs::read_to_string(path).map_err(failed)?;
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let pair = line.split_once('=');
            let pair = pair.map(|(name, value)| (name.trim(), value.trim()));
            match pair.filter(|(name, value)| KNOWN.contains(name) && !value.is_empty()) {
                Some((name, value)) => self.0.insert(name.to_owned(), value.to_owned()),
                None => {
                    return Err(VariablesError::Line {
                        path: path.to_owned(),
                        line: index + 1,
                    });
                }
            };
        }
        Ok(self)
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let all = self.0.iter();
        all.map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str, mode: u32) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("s3");
        fs::write(&path, text).expect("room");
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("our own");
        (folder, path)
    }

    #[test]
    fn what_a_file_says_goes_before_the_environment_and_is_shown_to_nobody() {
        let pairs = [
            (ACCESS_KEY_ID, "old"),
            ("AWS_REGION", "eu-1"),
            ("AWS_PROFILE", "other"),
            ("AWS_SESSION_TOKEN", ""),
        ];
        let of_environment = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let text = "# the lab's\nAWS_ACCESS_KEY_ID = new\n\nAWS_SECRET_ACCESS_KEY=se=cret\n";
        let (_folder, path) = file(text, 0o600);
        let all = S3Variables::of(of_environment).with_file(&path);
        let all = all.expect("a private file");
        let expected = [
            (ACCESS_KEY_ID, "new"),
            ("AWS_REGION", "eu-1"),
            (SECRET_ACCESS_KEY, "se=cret"),
        ];
        assert_eq!(all.iter().collect::<Vec<_>>(), expected);
        let shown = format!("{all:?}");
        assert!(
            shown.contains(SECRET_ACCESS_KEY) && !shown.contains("cret"),
            "{shown}"
        );
    }

    #[test]
    fn a_file_that_others_can_read_or_nobody_is_refused_with_what_helps() {
        let refused = |text: &str, mode| {
            let (_folder, path) = file(text, mode);
            let error = S3Variables::default().with_file(&path);
            let error = error.expect_err("refused").to_string();
            error.replace(path.to_str().expect("UTF-8"), "FILE")
        };
        let key = "AWS_SECRET_ACCESS_KEY=secret";
        assert_eq!(
            refused(key, 0o640),
            "others can read the file with the key for S3, FILE; `chmod 600 FILE` keeps it to its owner"
        );
        for line in ["secret", "SECRET=secret", "AWS_REGION="] {
            let error = refused(&format!("{key}\n{line}"), 0o600);
            assert!(
                error.starts_with("line 2 of FILE is no variable for S3; write NAME=VALUE"),
                "{error}"
            );
            assert!(!error.contains("secret"), "{error}");
        }
        let missing = S3Variables::default().with_file(Path::new("/nowhere/s3"));
        let missing = missing.expect_err("no file").to_string();
        assert!(
            missing.starts_with("cannot read the file with the key for S3, /nowhere/s3: "),
            "{missing}"
        );
    }
}
