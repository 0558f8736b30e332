//! Who looks at pages: a browser keeps the token in a cookie that no script sees and no other site makes it send.

use axum::Form;
use axum::extract::{Query, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};
use maud::html;
use serde::Deserialize;

use super::layout::{Page, ProblemPage};
use super::path::encoded;
use crate::access::{self, COOKIE, Peer};
use crate::lab::WebState;
use crate::problem::Problem;

/// A wall screen stays logged in for so many seconds, unless its token ends or is revoked.
const MAX_AGE_SECONDS: u32 = 90 * 24 * 3600;

/// Lets browsers pass that have a valid token; others are asked for one.
pub(crate) async fn with_session(
    State(state): State<WebState>,
    mut request: Request,
    next: Next,
) -> Response {
    match access::admit(&state, &mut request).await {
        Ok(()) => next.run(request).await,
        Err(problem) if problem.is(StatusCode::UNAUTHORIZED) => {
            let wanted = request.uri().path_and_query();
            let wanted = wanted.map_or("/", |wanted| wanted.as_str());
            Redirect::to(&format!("/login?to={}", encoded(wanted))).into_response()
        }
        Err(problem) => ProblemPage(problem).into_response(),
    }
}

/// The page that is wanted.
#[derive(Deserialize)]
pub(super) struct Wanted {
    #[serde(default)]
    to: String,
}

/// Asks for a token.
pub(super) async fn ask(Query(wanted): Query<Wanted>) -> Page {
    form(&wanted.to, None)
}

fn form(to: &str, refused: Option<&str>) -> Page {
    let content = html! {
        h1 { "Log in" }
        @if let Some(refused) = refused { p.bad role="alert" { (refused) } }
        form.login action="/login" method="post" {
            input type="hidden" name="to" value=(to);
            label for="token" { "Token" }
            input #token type="password" name="token" autocomplete="current-password" required autofocus;
            button { "Log in" }
        }
        p.note { "On the lab's host, " code { "layerlab token create NAME --role viewer" } " makes one." }
    };
    Page::new("Log in", "", content)
}

/// What the form sends.
#[derive(Deserialize)]
pub(super) struct Login {
    token: String,
    #[serde(default)]
    to: String,
}

/// Keeps the token in a cookie if it is valid.
pub(super) async fn log_in(
    State(state): State<WebState>,
    peer: Peer,
    Form(login): Form<Login>,
) -> Response {
    let secret = login.token.trim();
    match access::known(&state, Some(secret.to_owned()), peer).await {
        Ok(_) => with_cookie(&state, secret, MAX_AGE_SECONDS, own_path(&login.to)),
        Err(problem) => {
            let (_, detail) = problem.told();
            (problem.status(), form(&login.to, Some(detail))).into_response()
        }
    }
}

/// Forgets the token.
pub(super) async fn log_out(State(state): State<WebState>) -> Response {
    with_cookie(&state, "", 0, "/login")
}

fn with_cookie(state: &WebState, secret: &str, seconds: u32, to: &str) -> Response {
    let secure = if state.is_encrypted { "; Secure" } else { "" };
    let cookie =
        format!("{COOKIE}={secret}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}{secure}");
    // A token that was found has letters, digits and `_` alone.
    match HeaderValue::try_from(cookie) {
        Ok(cookie) => {
            let mut headers = HeaderMap::new();
            headers.insert(header::SET_COOKIE, cookie);
            (headers, Redirect::to(to)).into_response()
        }
        Err(error) => ProblemPage(Problem::internal(error)).into_response(),
    }
}

/// The page of this lab that is wanted; the first one if another site's is.
fn own_path(to: &str) -> &str {
    let is_own = to.starts_with('/')
        && !to[1..].starts_with(['/', '\\'])
        && to.bytes().all(|byte| byte.is_ascii_graphic());
    if is_own { to } else { "/" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_leads_to_pages_of_this_lab_alone() {
        for own in ["/", "/jobs/4?page=2"] {
            assert_eq!(own_path(own), own);
        }
        for other in [
            "",
            "//evil.example",
            "/\\evil.example",
            "https://evil.example",
            "/a\nb",
        ] {
            assert_eq!(own_path(other), "/", "{other:?}");
        }
    }
}
