//! What went wrong, for people: who looks with a browser is told it on a page, and programs get the problem document.

use axum::extract::Request;
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::layout::ProblemPage;
use crate::problem::Problem;

/// Makes pages of the problems that browsers are told, but of none of the API's.
pub(crate) async fn for_browsers(request: Request, next: Next) -> Response {
    let is_for_people =
        !request.uri().path().starts_with("/api/") && takes_pages(request.headers());
    let mut response = next.run(request).await;
    let problem = response.extensions_mut().remove::<Problem>();
    let Some(problem) = problem.filter(|_| is_for_people) else {
        return response;
    };
    let (told, content) = ProblemPage(problem).into_response().into_parts();
    let (mut parts, _) = response.into_parts();
    // Such as when to ask again, and whose token is missing.
    parts.headers.extend(told.headers);
    Response::from_parts(parts, content)
}

fn takes_pages(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter();
    let mut accepted = accepted.filter_map(|kinds| kinds.to_str().ok());
    accepted.any(|kinds| kinds.contains("text/html"))
}
