//! Pages of HTML that need no other file: reports of the lab, and what the demo found.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html};

/// The style of such pages.
pub const STYLE: &str = include_str!("page.css");

/// Even if markup came in by some name, it could neither run nor fetch anything.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";

/// A page with a title.
pub fn page(title: &str, body: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                title { "layerlab: " (title) }
                style { (PreEscaped(STYLE)) }
            }
            body { (body) }
        }
    };
    page.into_string()
}

/// A picture in SVG, which runs no scripts and fetches nothing there, whatever the file has become.
pub fn picture(svg: &[u8], words: &str) -> Markup {
    html! { img src={ "data:image/svg+xml;base64," (STANDARD.encode(svg)) } alt=(words); }
}
