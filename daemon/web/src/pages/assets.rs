//! The styles and scripts of pages; part of the program, so that a lab without a network shows them. The library that draws charts
//! is uPlot, as its makers publish it.

use axum::extract::Path;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use layerlab_profiles::sha256;

use crate::problem::Problem;

const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

const ASSETS: [(&str, &str, &str); 7] = [
    ("page.css", CSS, layerlab_lab::page::STYLE),
    ("web.css", CSS, include_str!("../../assets/web.css")),
    ("live.js", SCRIPT, include_str!("../../assets/live.js")),
    (
        "explore.js",
        SCRIPT,
        include_str!("../../assets/explore.js"),
    ),
    ("charts.js", SCRIPT, include_str!("../../assets/charts.js")),
    (
        "uPlot.iife.min.js",
        SCRIPT,
        include_str!("../../assets/uplot/uPlot.iife.min.js"),
    ),
    (
        "uPlot.min.css",
        CSS,
        include_str!("../../assets/uplot/uPlot.min.css"),
    ),
];

/// One of them. Whoever has it asks whether it is still the same.
pub(super) async fn asset(Path(name): Path<String>, headers: HeaderMap) -> Response {
    let Some((_, kind, content)) = ASSETS.iter().find(|(known, ..)| *known == name) else {
        return Problem::not_found("there is no such file; only pages name these").into_response();
    };
    let tag = format!("\"{}\"", sha256(content.as_bytes()));
    let kept = [
        (header::ETAG, tag.as_str()),
        (header::CACHE_CONTROL, "no-cache"),
    ];
    let known = headers.get(header::IF_NONE_MATCH);
    if known.is_some_and(|known| known.as_bytes() == tag.as_bytes()) {
        return (StatusCode::NOT_MODIFIED, kept).into_response();
    }
    (kept, [(header::CONTENT_TYPE, *kind)], *content).into_response()
}
