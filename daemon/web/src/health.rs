//! Whether the daemon lives, and whether it can work: for whatever watches it. Neither takes a token or tells anything else.

use axum::extract::State;

use crate::lab::WebState;
use crate::problem::Problem;

/// The daemon lives.
pub(crate) async fn healthz() -> &'static str {
    "ok\n"
}

/// The lab answers, and nothing keeps it from working.
pub(crate) async fn readyz(State(state): State<WebState>) -> Result<&'static str, Problem> {
    match state.status().await?.trouble {
        None => Ok("ready\n"),
        Some(trouble) => {
            tracing::debug!(trouble, "not ready");
            Err(Problem::unavailable(
                "the lab does not work; `layerlab watch` says why",
            ))
        }
    }
}
