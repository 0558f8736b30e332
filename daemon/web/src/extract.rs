//! What requests bring, with problem documents for what cannot be read.

use std::time::Duration;

use axum::body::{Bytes, to_bytes};
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use crate::problem::Problem;

/// Longer bodies are nobody's: job files have at most so much.
const LONGEST_BODY: usize = 256 << 10;

/// A body comes within this.
const DEADLINE: Duration = Duration::from_secs(30);

/// The parameters of a path.
pub(crate) struct InPath<T>(pub(crate) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for InPath<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<InPath<T>, Problem> {
        let found = Path::<T>::from_request_parts(parts, state).await;
        found
            .map(|Path(found)| InPath(found))
            .map_err(|_| Problem::nothing_there())
    }
}

/// The parameters behind the path.
pub(crate) struct InQuery<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for InQuery<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<InQuery<T>, Problem> {
        let found = Query::<T>::from_request_parts(parts, state).await;
        let wrong = |error: axum::extract::rejection::QueryRejection| {
            let detail = format!("the parameters cannot be read: {}", error.body_text());
            Problem::usage(StatusCode::BAD_REQUEST, detail)
        };
        found.map(|Query(found)| InQuery(found)).map_err(wrong)
    }
}

/// The body, with its type as far as it says one.
pub(crate) struct WholeBody {
    pub(crate) content: Bytes,
    media_type: String,
}

impl WholeBody {
    /// Whether it says that it is of this type.
    pub(crate) fn is(&self, media_type: &str) -> bool {
        self.media_type == media_type
    }

    /// What it is, in JSON.
    pub(crate) fn json<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        if !self.is("application/json") {
            return Err(Problem::usage(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "the body must be JSON; send it with `Content-Type: application/json`",
            ));
        }
        serde_json::from_slice(&self.content)
            .map_err(|error| Problem::unusable(format!("the body cannot be read: {error}")))
    }
}

impl<S: Send + Sync> FromRequest<S> for WholeBody {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<WholeBody, Problem> {
        let media_type = request.headers().get(header::CONTENT_TYPE);
        let media_type = media_type.and_then(|it| it.to_str().ok()).unwrap_or("");
        let media_type = media_type.split(';').next().unwrap_or("").trim();
        let media_type = media_type.to_ascii_lowercase();
        let too_long = || {
            let detail = format!(
                "the body is longer than {} KiB; split it",
                LONGEST_BODY >> 10
            );
            Problem::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                crate::problem::ProblemKind::Input,
                detail,
            )
        };
        let announced = request.headers().get(header::CONTENT_LENGTH);
        let announced = announced.and_then(|it| it.to_str().ok()?.parse::<u64>().ok());
        if announced.is_some_and(|bytes| bytes > LONGEST_BODY as u64) {
            return Err(too_long());
        }
        match timeout(DEADLINE, to_bytes(request.into_body(), LONGEST_BODY)).await {
            Ok(Ok(content)) => Ok(WholeBody {
                content,
                media_type,
            }),
            // Either it broke, and nobody reads this, or it is longer than it may be.
            Ok(Err(_)) => Err(too_long()),
            Err(_) => {
                let detail = "the body did not come in time; send it faster";
                Err(Problem::usage(StatusCode::REQUEST_TIMEOUT, detail))
            }
        }
    }
}
