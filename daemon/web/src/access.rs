//! Whose token a request has, and what it allows.

use std::net::SocketAddr;
use std::time::Instant;

use axum::extract::{FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use jiff::Timestamp;

use crate::failures::PERIOD;
use crate::lab::WebState;
use crate::problem::Problem;
use crate::token::Role;

/// Where a connection comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer(pub(crate) SocketAddr);

/// Who asks.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub(crate) name: String,
    role: Role,
}

impl Caller {
    fn allowed(self, needed: Role) -> Result<Caller, Problem> {
        if self.role >= needed {
            return Ok(self);
        }
        let role = self.role;
        let detail = format!(
            "this takes the role {needed}, and your token has {role}; ask for another token"
        );
        Err(Problem::usage(StatusCode::FORBIDDEN, detail))
    }
}

/// Somebody who may change what the lab does.
pub(crate) struct Operator(pub(crate) String);

/// Somebody who may see and revoke tokens.
pub(crate) struct Admin;

impl<S: Send + Sync> FromRequestParts<S> for Operator {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Operator, Problem> {
        Ok(Operator(caller(parts)?.allowed(Role::Operator)?.name))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Admin {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Admin, Problem> {
        caller(parts)?.allowed(Role::Admin).map(|_| Admin)
    }
}

fn caller(parts: &Parts) -> Result<Caller, Problem> {
    let caller = parts.extensions.get::<Caller>().cloned();
    caller.ok_or_else(|| Problem::internal("a request came by without a token"))
}

/// Lets requests pass that have a valid token.
pub(crate) async fn with_token(
    State(state): State<WebState>,
    mut request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let Some(Peer(peer)) = request.extensions().get().copied() else {
        return Err(Problem::internal("a request came from nowhere"));
    };
    let secret = bearer(request.headers()).map(str::to_owned);
    let caller = known(&state, secret, peer).await?;
    request.extensions_mut().insert(caller);
    Ok(next.run(request).await)
}

async fn known(
    state: &WebState,
    secret: Option<String>,
    peer: SocketAddr,
) -> Result<Caller, Problem> {
    let refused = |detail| Problem::usage(StatusCode::UNAUTHORIZED, detail);
    let Some(secret) = secret else {
        let detail = "this takes a token; send `Authorization: Bearer TOKEN` with one that `layerlab token create` made";
        return Err(refused(detail));
    };
    let tokens = state.lab.tokens.clone();
    let found = tokio::task::spawn_blocking(move || tokens.find(&secret, Timestamp::now())).await;
    let found = found.map_err(Problem::internal)?.map_err(|error| {
        tracing::error!(%error, "nobody is let in");
        Problem::unavailable("the lab cannot read its tokens; the daemon's log says why")
    })?;
    if let Some(token) = found {
        return Ok(Caller {
            name: token.name,
            role: token.role,
        });
    }
    match state.failures.note(peer.ip(), Instant::now()) {
        false => Err(refused(
            "this token is wrong, over or revoked; ask the lab's owner for another",
        )),
        true => {
            let detail =
                "too many wrong tokens came from there; wait a minute, or send a valid one";
            Err(Problem::usage(StatusCode::TOO_MANY_REQUESTS, detail).retry_after(PERIOD.as_secs()))
        }
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, secret) = headers
        .get(header::AUTHORIZATION)?
        .to_str()
        .ok()?
        .split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| secret.trim())
}
