//! What went wrong with files in an object store, and what helps.

use std::error::Error;
use std::time::Duration;

use object_store::Error as StoreError;

use crate::ObjectsPlace;

/// Why files cannot be kept, fetched or named.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ObjectsError {
    /// A variable is missing.
    #[error(
        "{needed} is not set, and without it no S3 server lets anybody in; set it for the daemon, or write it into a file that \
         `objects-credentials-file` names"
    )]
    NoKey {
        /// The variable's name.
        needed: &'static str,
    },
    /// It leads to no server.
    #[error(
        "AWS_ENDPOINT_URL is no URL of a server; write one such as https://s3.example, without a key in it"
    )]
    Endpoint,
    /// It would be sent over a network for all to read.
    #[error(
        "what goes to {host} is not encrypted; begin AWS_ENDPOINT_URL with https://, or set AWS_ALLOW_HTTP=true if everybody on \
         that network may read it"
    )]
    Plain {
        /// The server.
        host: String,
    },
    /// Another variable cannot be.
    #[error("the variables AWS_… for S3 cannot be used: {reason}")]
    Settings {
        /// Which, and why.
        reason: String,
    },
    /// The folder cannot be used.
    #[error(
        "cannot use the folder {place}: {reason}; let the daemon's user write there, or name another by `objects`"
    )]
    Folder {
        /// The folder.
        place: String,
        /// What the system said.
        reason: String,
    },
    /// There is no such bucket.
    #[error("there is no bucket {place}; make it, or name another by `objects`")]
    NoBucket {
        /// The bucket that was to be used.
        place: String,
    },
    /// The server lets nobody with this key do that.
    #[error(
        "{place} refuses the key in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY ({reason}); give one that may read and write there"
    )]
    Refused {
        /// The bucket.
        place: String,
        /// What the server said.
        reason: String,
    },
    /// What is there already would be replaced.
    #[error(
        "the server of {place} does not know conditional writes (If-None-Match), without which two hosts could publish over each \
         other; use one that does"
    )]
    NotConditional {
        /// The bucket.
        place: String,
    },
    /// Nobody answers, or only that it cannot be done now.
    #[error("{place} cannot be reached: {reason}")]
    Away {
        /// The bucket or the folder.
        place: String,
        /// What was noticed.
        reason: String,
    },
    /// It is not there.
    #[error("{name} is not in {place}")]
    Missing {
        /// The bucket or the folder.
        place: String,
        /// The file's hash or name.
        name: String,
    },
    /// It is another than was put there.
    #[error("{name} in {place} was altered; remove it there, and submit the job again")]
    Altered {
        /// The bucket or the folder.
        place: String,
        /// The file's hash.
        name: String,
    },
}

impl ObjectsError {
    /// Whether it may go by itself, so that trying again makes sense.
    pub fn may_pass(&self) -> bool {
        matches!(self, ObjectsError::Away { .. })
    }

    /// What `error`, about the file `name`, means.
    pub(crate) fn of(place: &ObjectsPlace, name: &str, error: &StoreError) -> ObjectsError {
        let reason = deepest(error);
        let name = name.to_owned();
        let at = place.to_string();
        match (error, place) {
            (_, ObjectsPlace::Bucket { .. }) if reason.contains("NoSuchBucket") => {
                ObjectsError::NoBucket { place: at }
            }
            (StoreError::NotFound { .. }, _) => ObjectsError::Missing { place: at, name },
            (_, ObjectsPlace::Folder(_)) => ObjectsError::Folder { place: at, reason },
            (StoreError::PermissionDenied { .. } | StoreError::Unauthenticated { .. }, _) => {
                ObjectsError::Refused { place: at, reason }
            }
            (StoreError::NotImplemented { .. }, _) => ObjectsError::NotConditional { place: at },
            _ if reason.contains("501 Not Implemented") => {
                ObjectsError::NotConditional { place: at }
            }
            _ => ObjectsError::Away { place: at, reason },
        }
    }

    /// Nothing came within `deadline`.
    pub(crate) fn late(place: &ObjectsPlace, deadline: Duration) -> ObjectsError {
        ObjectsError::Away {
            place: place.to_string(),
            reason: format!("it takes longer than {} s", deadline.as_secs()),
        }
    }
}

/// The last cause of an error in a line, and of a server's answer its code and its message.
pub(crate) fn deepest(error: &dyn Error) -> String {
    let mut last = error;
    while let Some(source) = last.source() {
        last = source;
    }
    let text = last.to_string();
    let (before, answer) = match text.find('<') {
        Some(at) => text.split_at(at),
        None => (text.as_str(), ""),
    };
    let told = |tag: &str| {
        let (_, rest) = answer.split_once(&format!("<{tag}>"))?;
        Some(rest.split_once("</")?.0)
    };
    let before = before.trim().trim_end_matches(':');
    let parts = [Some(before), told("Code"), told("Message")];
    let said: Vec<&str> = parts.into_iter().flatten().collect();
    said.join(": ")
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{0}")]
    struct Said(&'static str, #[source] Option<Box<Said>>);

    #[test]
    fn what_a_server_answers_is_told_in_a_line() {
        let answer = "Server returned non-2xx status code: 403 Forbidden: <?xml version='1.0'?>\n<Error>\n  \
                      <Code>AccessDenied</Code>\n  <Message>Access\n  Denied</Message></Error>";
        let error = Said("outer", Some(Box::new(Said(answer, None))));
        assert_eq!(
            deepest(&error),
            "Server returned non-2xx status code: 403 Forbidden: AccessDenied: Access Denied"
        );
        let error = Said(
            "outer",
            Some(Box::new(Said("refused (os error 111)", None))),
        );
        assert_eq!(deepest(&error), "refused (os error 111)");
    }
}
