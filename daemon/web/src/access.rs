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
use crate::token::{Role, Token};

/// Where a connection comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer(pub(crate) SocketAddr);

/// The cookie in which browsers keep the token.
pub(crate) const COOKIE: &str = "layerlab";

/// Who asks.
#[derive(Clone, Debug)]
pub(crate) struct Caller(Token);

impl Caller {
    fn allowed(self, needed: Role) -> Result<Caller, Problem> {
        let role = self.0.role;
        if role >= needed {
            return Ok(self);
        }
        let detail = format!(
            "this takes the role {needed}, and your token has {role}; ask for another token"
        );
        Err(Problem::usage(StatusCode::FORBIDDEN, detail))
    }

    /// Who has the token, and what it allows.
    pub(crate) fn told(self) -> (String, Role) {
        (self.0.name, self.0.role)
    }

    /// Whether the token allows to change what the lab does.
    pub(crate) fn may_change(&self) -> bool {
        self.0.role >= Role::Operator
    }

    /// Whether the token still allows anything: an answer that goes on for long may outlive it.
    pub(crate) async fn is_still_valid(&self, state: &WebState) -> bool {
        let (tokens, token) = (state.lab.tokens.clone(), self.0.clone());
        let valid = tokio::task::spawn_blocking(move || tokens.has(&token, Timestamp::now()));
        matches!(valid.await, Ok(Ok(true)))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Caller, Problem> {
        let caller = parts.extensions.get::<Caller>().cloned();
        caller.ok_or_else(|| Problem::internal("a request came by without a token"))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Peer {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Peer, Problem> {
        let peer = parts.extensions.get::<Peer>().copied();
        peer.ok_or_else(|| Problem::internal("a request came from nowhere"))
    }
}

/// Somebody who may change what the lab does.
pub(crate) struct Operator(pub(crate) String);

/// Somebody who may see and revoke tokens.
pub(crate) struct Admin;

impl<S: Send + Sync> FromRequestParts<S> for Operator {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Operator, Problem> {
        let caller = Caller::from_request_parts(parts, state).await?;
        Ok(Operator(caller.allowed(Role::Operator)?.0.name))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Admin {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Admin, Problem> {
        let caller = Caller::from_request_parts(parts, state).await?;
        caller.allowed(Role::Admin).map(|_| Admin)
    }
}

/// Lets requests pass that have a valid token.
pub(crate) async fn with_token(
    State(state): State<WebState>,
    mut request: Request,
    next: Next,
) -> Result<Response, Problem> {
    admit(&state, &mut request).await?;
    Ok(next.run(request).await)
}

/// Notes in a request who asks, if its token is valid.
pub(crate) async fn admit(state: &WebState, request: &mut Request) -> Result<(), Problem> {
    let Some(peer) = request.extensions().get::<Peer>().copied() else {
        return Err(Problem::internal("a request came from nowhere"));
    };
    let headers = request.headers();
    let secret = bearer(headers)
        .or_else(|| cookie(headers))
        .map(str::to_owned);
    let caller = known(state, secret, peer).await?;
    request.extensions_mut().insert(caller);
    Ok(())
}

/// Whose token a secret is, if it is valid.
pub(crate) async fn known(
    state: &WebState,
    secret: Option<String>,
    Peer(peer): Peer,
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
        return Ok(Caller(token));
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

fn cookie(headers: &HeaderMap) -> Option<&str> {
    let cookies = headers.get_all(header::COOKIE).iter();
    let cookies = cookies.filter_map(|cookies| cookies.to_str().ok());
    let mut cookies = cookies.flat_map(|cookies| cookies.split(';'));
    cookies.find_map(|one| match one.trim().split_once('=') {
        Some((COOKIE, secret)) if !secret.is_empty() => Some(secret),
        _ => None,
    })
}
