//! What went wrong, as a problem document (RFC 9457), in the terms of the command line's exit codes.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use layerlab_lab::store::StoreError;
use layerlab_lab::talk::{Answer, RefusalCode};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The kinds of problems; the command line ends with their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[repr(u8)]
pub enum ProblemKind {
    /// Something that should not happen.
    Internal = 1,
    /// The request itself is wrong: its path, its parameters, its token.
    Usage = 2,
    /// What was sent, or what it names, cannot be used.
    Input = 3,
    /// The lab cannot answer now.
    Device = 4,
    /// The result cannot be written.
    Output = 5,
}

/// A problem document.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct Problem {
    /// Names the kind of problem: `urn:layerlab:problem:` and the kind.
    #[serde(rename = "type")]
    kind_name: String,
    /// The kind in a few words.
    title: &'static str,
    /// The status of the answer.
    status: u16,
    /// What is wrong and what mends it, in a sentence.
    detail: String,
    /// The code with which the command line ends of the same.
    exit_code: u8,
    #[serde(skip)]
    retry_after_seconds: Option<u64>,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, kind: ProblemKind, detail: impl ToString) -> Problem {
        let (name, title) = match kind {
            ProblemKind::Internal => ("internal", "Something that should not happen"),
            ProblemKind::Usage => ("usage", "The request is wrong"),
            ProblemKind::Input => ("input", "What was sent or named cannot be used"),
            ProblemKind::Device => ("device", "The lab cannot answer now"),
            ProblemKind::Output => ("output", "The result cannot be written"),
        };
        Problem {
            kind_name: format!("urn:layerlab:problem:{name}"),
            title,
            status: status.as_u16(),
            detail: detail.to_string(),
            exit_code: kind as u8,
            retry_after_seconds: None,
        }
    }

    pub(crate) fn usage(status: StatusCode, detail: impl ToString) -> Problem {
        Problem::new(status, ProblemKind::Usage, detail)
    }

    pub(crate) fn not_found(detail: impl ToString) -> Problem {
        Problem::new(StatusCode::NOT_FOUND, ProblemKind::Input, detail)
    }

    pub(crate) fn nothing_there() -> Problem {
        let detail = "there is nothing at this path; pages begin at `/`, and /api/v1/openapi.json says what else there is";
        Problem::not_found(detail)
    }

    pub(crate) fn unusable(detail: impl ToString) -> Problem {
        Problem::new(StatusCode::UNPROCESSABLE_ENTITY, ProblemKind::Input, detail)
    }

    pub(crate) fn unavailable(detail: impl ToString) -> Problem {
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, ProblemKind::Device, detail)
    }

    pub(crate) fn internal(detail: impl ToString) -> Problem {
        Problem::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            ProblemKind::Internal,
            detail,
        )
    }

    pub(crate) fn refused(code: RefusalCode, message: impl ToString) -> Problem {
        use ProblemKind::{Device, Input, Output};
        let (status, kind) = match code {
            RefusalCode::UnknownJob | RefusalCode::UnknownDevice | RefusalCode::UnknownHost => {
                (StatusCode::NOT_FOUND, Input)
            }
            RefusalCode::WrongState | RefusalCode::FileChanged => (StatusCode::CONFLICT, Input),
            RefusalCode::WrongPeriod | RefusalCode::TooMuch => {
                (StatusCode::UNPROCESSABLE_ENTITY, Input)
            }
            RefusalCode::TooLong => (StatusCode::PAYLOAD_TOO_LARGE, Input),
            RefusalCode::NoCopy | RefusalCode::NoPublication => {
                (StatusCode::INSUFFICIENT_STORAGE, Output)
            }
            RefusalCode::NotShared
            | RefusalCode::TooLate
            | RefusalCode::NoRequest
            | RefusalCode::Ending
            | RefusalCode::StoreFailed => (StatusCode::SERVICE_UNAVAILABLE, Device),
        };
        Problem::new(status, kind, message)
    }

    /// An answer that is none to what was asked.
    pub(crate) fn unexpected(answer: Answer) -> Problem {
        match answer {
            Answer::Refused { code, message } => Problem::refused(code, message),
            other => {
                tracing::error!(?other, "the lab answers what was not asked");
                Problem::internal("the lab answers what was not asked; its log says what")
            }
        }
    }

    /// Whether it is of this status.
    pub(crate) fn is(&self, status: StatusCode) -> bool {
        self.status == status.as_u16()
    }

    /// The status of its answer.
    pub(crate) fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// Its kind in a few words, and what is wrong, for a page.
    pub(crate) fn told(&self) -> (&'static str, &str) {
        (self.title, &self.detail)
    }

    pub(crate) fn retry_after(mut self, seconds: u64) -> Problem {
        self.retry_after_seconds = Some(seconds);
        self
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Problem {
        tracing::warn!(%error, "the store cannot be read for the web");
        Problem::unavailable("the lab's store cannot be read now; the daemon's log says why")
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = self.status();
        let retry_after = self.retry_after_seconds;
        let mut response = (status, Json(&self)).into_response();
        // So that it can be told in another form.
        response.extensions_mut().insert(self);
        let headers = response.headers_mut();
        let kind = HeaderValue::from_static("application/problem+json");
        headers.insert(header::CONTENT_TYPE, kind);
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(seconds) = retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}
