//! The lab as commands elsewhere read it, and whose token they send.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use layerlab_lab::query::{JobsAsked, Snapshot};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::access::Caller;
use crate::extract::InQuery;
use crate::lab::WebState;
use crate::problem::Problem;
use crate::token::Role;

/// What of the lab.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    /// Jobs that are over, too.
    #[serde(default)]
    all: bool,
    /// The job of this number alone, with what happened to it.
    job: Option<i64>,
}

/// The lab in its own terms, as `layerlab --lab` reads it: each version of layerlab has its own. Others are better served by
/// the other paths, whose answers stay as they are.
#[utoipa::path(
    get,
    path = "/api/v1/snapshot",
    operation_id = "show_snapshot",
    params(Wanted),
    responses(
        (status = OK, body = serde_json::Value),
        (status = "4XX", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn show(
    State(state): State<WebState>,
    InQuery(wanted): InQuery<Wanted>,
) -> Result<Json<Snapshot>, Problem> {
    let asked = match (wanted.job, wanted.all) {
        (None, false) => JobsAsked::Open,
        (None, true) => JobsAsked::All,
        (Some(id), false) => JobsAsked::One(id),
        (Some(_), true) => {
            let detail = "`job` and `all` exclude each other; leave one out";
            return Err(Problem::usage(StatusCode::BAD_REQUEST, detail));
        }
    };
    let status = state.status().await?;
    Ok(Json(Snapshot::of(&state.lab.reader, status, asked).await?))
}

/// Whose token a request has.
#[derive(Serialize, ToSchema)]
pub(super) struct OwnToken {
    /// Who has it.
    name: String,
    /// What it allows.
    role: Role,
}

/// Whose token this request has, and what it allows.
#[utoipa::path(
    get,
    path = "/api/v1/token",
    operation_id = "show_own_token",
    responses(
        (status = OK, body = OwnToken),
        (status = "4XX", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn own_token(caller: Caller) -> Json<OwnToken> {
    let (name, role) = caller.told();
    Json(OwnToken { name, role })
}
