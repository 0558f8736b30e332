//! Who may only look is told nothing of where things lie on the lab's host: reasons and reports may name files there.

use std::path::PathBuf;

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use maud::html;

use super::layout::ProblemPage;
use crate::access::Caller;
use crate::lab::WebState;
use crate::problem::Problem;

/// Leaves the lab's folders out of the pages of viewers.
pub(super) async fn without_host_folders(
    State(state): State<WebState>,
    request: Request,
    next: Next,
) -> Response {
    let caller = request.extensions().get::<Caller>();
    let is_told = caller.is_some_and(Caller::may_change);
    let response = next.run(request).await;
    if is_told {
        return response;
    }
    let (parts, body) = response.into_parts();
    let page = to_bytes(body, usize::MAX).await.map_err(Problem::internal);
    let page = page.and_then(|page| String::from_utf8(page.into()).map_err(Problem::internal));
    match page {
        Ok(page) => Response::from_parts(parts, Body::from(without(&state.lab.folders, page))),
        Err(problem) => ProblemPage(problem).into_response(),
    }
}

fn without(folders: &[PathBuf], page: String) -> String {
    folders.iter().fold(page, |page, folder| {
        // As it is written on a page.
        let written = html! { (folder.display()) }.into_string();
        page.replace(&written, "…")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_left_out_wherever_a_page_names_it() {
        let folders = ["/home/a&b/state", "/srv/models"].map(PathBuf::from);
        let page = "<p>in /home/a&amp;b/state/lab/run-1, of /srv/models/a.onnx; /srv stays</p>";
        let expected = "<p>in …/lab/run-1, of …/a.onnx; /srv stays</p>";
        assert_eq!(without(&folders, page.to_owned()), expected);
    }
}
