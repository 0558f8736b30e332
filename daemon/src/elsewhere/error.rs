//! Why a lab elsewhere does not answer as it should.

use std::io;
use std::path::PathBuf;

use super::LabUrl;
use crate::exit::{Code, Failure};

#[derive(Debug, thiserror::Error)]
pub(crate) enum ElsewhereError {
    /// Nobody logged in.
    #[error(
        "there is no token for {0}; `layerlab login {0}` asks for one that `layerlab token create` made on the lab's host"
    )]
    NoToken(LabUrl),
    /// It is not valid any more, say.
    #[error("the lab at {url} refuses the token: {said}; `layerlab login {url}` takes another")]
    Token {
        /// The lab's.
        url: LabUrl,
        /// What it said.
        said: String,
    },
    /// The name leads nowhere.
    #[error("there is no host {}; see whether the URL {url} is right", url.host())]
    NoHost {
        /// The lab's.
        url: LabUrl,
    },
    /// Nobody listens there, or nothing gets through.
    #[error(
        "nothing answers at {url} ({reason}); see whether the daemon runs there and has that address under `web.listen`"
    )]
    Unreachable {
        /// The lab's.
        url: LabUrl,
        /// What the system said.
        reason: String,
    },
    /// It may be somebody else.
    #[error(
        "{url} does not prove that it is the lab ({reason}); if its certificate is the lab's own, name the file with it by \
         --ca FILE"
    )]
    Untrusted {
        /// The lab's.
        url: LabUrl,
        /// What is wrong with its certificate.
        reason: String,
    },
    /// Something else listens there.
    #[error("what answers at {url} is no layerlab lab ({reason}); see whether the URL is right")]
    NoLab {
        /// Where it is.
        url: LabUrl,
        /// How it answered.
        reason: String,
    },
    /// Both would not understand each other.
    #[error(
        "the lab at {url} runs layerlab {theirs}, and this is layerlab {}; use the same version here and there",
        env!("CARGO_PKG_VERSION")
    )]
    Version {
        /// The lab's.
        url: LabUrl,
        /// What it says of itself.
        theirs: String,
    },
    /// The network went away, or the lab's daemon ended.
    #[error(
        "the connection to {url} was lost ({reason}); see what was done by then, and ask again"
    )]
    Lost {
        /// The lab's.
        url: LabUrl,
        /// What the system said.
        reason: String,
    },
    /// The lab has no such thing.
    #[error("{said}")]
    Missing {
        /// What it said.
        said: String,
    },
    /// A file of one's own cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The lab refuses it.
    #[error("{said}")]
    Refused {
        /// The exit code of the same here.
        code: u8,
        /// Why, and what to do.
        said: String,
    },
    /// It is not for the web.
    #[error("this is asked on the lab's own host; leave --lab and LAYERLAB_LAB out there")]
    HostAlone,
    /// The lab answers what it should not.
    #[error(
        "the lab at {url} answers what layerlab does not understand: {reason}; are both of one version?"
    )]
    Strange {
        /// The lab's.
        url: LabUrl,
        /// What is strange.
        reason: String,
    },
    /// It cannot be asked with these.
    #[error("cannot take certificates from {}: {reason}; name a file with certificates in PEM", path.display())]
    Authority {
        /// The file that was named.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// Tokens cannot be kept or read.
    #[error("cannot keep tokens in {}: {source}", path.display())]
    Logins {
        /// The file with them.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Whoever may read them is let in by labs.
    #[error("others may read the tokens in {0}; `chmod 600 {0}` keeps them to you", path.display())]
    Readable {
        /// The file with them.
        path: PathBuf,
    },
}

impl ElsewhereError {
    /// Whether the lab may be there again in a while.
    pub(crate) fn may_pass(&self) -> bool {
        use ElsewhereError::{Lost, Refused, Unreachable};
        let cannot_now = Code::Device as u8;
        match self {
            Lost { .. } | Unreachable { .. } => true,
            Refused { code, .. } => *code == cannot_now,
            _ => false,
        }
    }
}

impl From<ElsewhereError> for Failure {
    fn from(error: ElsewhereError) -> Failure {
        use ElsewhereError::*;
        let code = match &error {
            HostAlone | NoToken(_) | Token { .. } => Code::Usage,
            Authority { .. } | Missing { .. } | Read { .. } => Code::Input,
            NoHost { .. } | Unreachable { .. } | Untrusted { .. } | NoLab { .. } => Code::Device,
            Version { .. } | Lost { .. } | Strange { .. } => Code::Device,
            Logins { .. } | Readable { .. } => Code::Output,
            Refused { code, .. } => match code {
                2 => Code::Usage,
                3 => Code::Input,
                5 => Code::Output,
                _ => Code::Device,
            },
        };
        Failure::new(code, error)
    }
}
