//! Tokens: who has them, and taking them away. They are made on the lab's host alone.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use super::list::{Chosen, List};
use crate::access::Admin;
use crate::extract::{InPath, InQuery};
use crate::lab::WebState;
use crate::problem::Problem;
use crate::token::{Role, Token, TokenError};

/// Somebody who has a token.
#[derive(Serialize, ToSchema)]
pub(super) struct ShownToken {
    /// Who has it.
    name: String,
    /// What it allows.
    role: Role,
    /// When it was made.
    created: Timestamp,
    /// When it ends, if it does by itself.
    expires: Option<Timestamp>,
    /// When it was revoked, if it was.
    revoked: Option<Timestamp>,
}

impl From<Token> for ShownToken {
    fn from(token: Token) -> ShownToken {
        ShownToken {
            name: token.name,
            role: token.role,
            created: token.created,
            expires: token.expires,
            revoked: token.revoked,
        }
    }
}

impl From<TokenError> for Problem {
    fn from(error: TokenError) -> Problem {
        match error {
            TokenError::Unknown(_) => Problem::not_found(error),
            error => {
                tracing::error!(%error, "tokens cannot be read or written");
                Problem::unavailable("the lab cannot keep its tokens; the daemon's log says why")
            }
        }
    }
}

/// Who has tokens.
#[utoipa::path(
    get,
    path = "/api/v1/tokens",
    operation_id = "list_tokens",
    params(Chosen),
    responses(
        (status = OK, body = List<ShownToken>),
        (status = "4XX", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn list(
    State(state): State<WebState>,
    _: Admin,
    InQuery(chosen): InQuery<Chosen>,
) -> Result<Json<List<ShownToken>>, Problem> {
    let tokens = state.lab.tokens.clone();
    let tokens = tokio::task::spawn_blocking(move || tokens.list()).await;
    let tokens = tokens.map_err(Problem::internal)??;
    Ok(Json(List::of(tokens, &chosen, ShownToken::from)))
}

/// Revoke a token.
#[utoipa::path(
    delete,
    path = "/api/v1/tokens/{name}",
    operation_id = "revoke_token",
    params(("name" = String, Path, description = "Who has it")),
    responses(
        (status = NO_CONTENT, description = "It is revoked"),
        (status = "4XX", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn revoke(
    State(state): State<WebState>,
    _: Admin,
    InPath(name): InPath<String>,
) -> Result<StatusCode, Problem> {
    let tokens = state.lab.tokens.clone();
    let revoked = tokio::task::spawn_blocking(move || tokens.revoke(&name, Timestamp::now())).await;
    revoked.map_err(Problem::internal)??;
    Ok(StatusCode::NO_CONTENT)
}
