//! What all pages have in common: their head, the way from one to another, and how they are sent.

use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use layerlab_farm::adb::Printable;
use layerlab_lab::store::StoreError;
use maud::{DOCTYPE, Markup, html};

use crate::problem::Problem;

/// Scripts, styles and connections come from the lab alone, and nothing that a name brings in runs or fetches anything.
/// Pictures may be part of the page.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
                      form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

/// A form that is sent to the lab says that it comes from the lab; other sites are told nothing.
const REFERRERS: &str = "same-origin";

/// The ways that lead from every page.
const WAYS: [(&str, &str); 5] = [
    ("/", "Devices"),
    ("/jobs", "Jobs"),
    ("/calendar", "Calendar"),
    ("/profiles", "Profiles"),
    ("/report", "Report"),
];

/// A page of the lab.
pub(super) struct Page {
    title: String,
    path: &'static str,
    is_live: bool,
    style: Option<&'static str>,
    scripts: Vec<&'static str>,
    content: Markup,
    forms: Markup,
    refused: Option<Refused>,
}

/// What somebody wanted from a page, and the lab refused.
struct Refused {
    problem: Problem,
    /// Where the page itself is, to be shown again from there.
    address: String,
}

impl Page {
    /// A page below one of the ways, such as `/jobs`.
    pub(super) fn new(title: impl Into<String>, path: &'static str, content: Markup) -> Page {
        Page {
            title: title.into(),
            path,
            is_live: false,
            style: None,
            scripts: Vec::new(),
            content,
            forms: Markup::default(),
            refused: None,
        }
    }

    /// One with forms below, which stay as they are filled in while the rest changes.
    #[must_use]
    pub(super) fn with_forms(self, forms: Markup) -> Page {
        Page { forms, ..self }
    }

    /// The page of `address` as the answer to something that was refused: it says why.
    #[must_use]
    pub(super) fn refusing(self, problem: Problem, address: impl Into<String>) -> Page {
        let address = address.into();
        Page {
            refused: Some(Refused { problem, address }),
            ..self
        }
    }

    /// One that shows what happens as it happens.
    #[must_use]
    pub(super) fn live(self) -> Page {
        Page {
            is_live: true,
            scripts: vec!["/assets/live.js"],
            ..self
        }
    }

    /// One with scripts of its own.
    #[must_use]
    pub(super) fn with_scripts(self, scripts: &[&'static str]) -> Page {
        Page {
            scripts: scripts.to_vec(),
            ..self
        }
    }

    /// One with a style of its own, beside that of all pages.
    #[must_use]
    pub(super) fn with_style(self, style: &'static str) -> Page {
        Page {
            style: Some(style),
            ..self
        }
    }

    fn html(&self) -> String {
        let is_here = |path: &str| (path == self.path).then_some("page");
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    title { (self.title) " · layerlab" }
                    link rel="icon" href="data:,";
                    link rel="stylesheet" href="/assets/page.css";
                    link rel="stylesheet" href="/assets/web.css";
                    @if let Some(style) = self.style { link rel="stylesheet" href=(style); }
                    @for script in &self.scripts { script src=(script) defer {} }
                }
                body {
                    header.site {
                        a.skip href="#content" { "Skip to content" }
                        a.home href="/" { "layerlab" }
                        @if !self.path.is_empty() {
                            nav aria-label="Pages" {
                                @for (path, name) in WAYS { a href=(path) aria-current=[is_here(path)] { (name) } }
                            }
                            @if self.is_live { span.live #connection role="status" { "not live" } }
                            form action="/logout" method="post" { button.quiet { "Log out" } }
                        }
                    }
                    main #content data-address=[self.refused.as_ref().map(|refused| &refused.address)] {
                        @if let Some(refused) = &self.refused {
                            p.trouble role="alert" { (Printable(refused.problem.told().1)) }
                        }
                        div #live { (self.content) }
                        (self.forms)
                    }
                }
            }
        };
        page.into_string()
    }
}

impl IntoResponse for Page {
    fn into_response(self) -> Response {
        let refused = self
            .refused
            .as_ref()
            .map(|refused| refused.problem.status());
        let headers = [
            (header::CONTENT_SECURITY_POLICY, POLICY),
            (header::REFERRER_POLICY, REFERRERS),
        ];
        (
            refused.unwrap_or(StatusCode::OK),
            headers,
            Html(self.html()),
        )
            .into_response()
    }
}

/// What went wrong, as a page.
pub(super) struct ProblemPage(pub(super) Problem);

impl From<Problem> for ProblemPage {
    fn from(problem: Problem) -> ProblemPage {
        ProblemPage(problem)
    }
}

impl From<StoreError> for ProblemPage {
    fn from(error: StoreError) -> ProblemPage {
        ProblemPage(error.into())
    }
}

impl IntoResponse for ProblemPage {
    fn into_response(self) -> Response {
        let (title, detail) = self.0.told();
        let content = html! {
            h1 { (title) }
            p { (Printable(detail)) }
            p { a href="/" { "To the devices" } }
        };
        (self.0.status(), Page::new(title, "/none", content)).into_response()
    }
}

/// What pages say of numbers that nobody measured.
pub(super) fn simulated_mark(simulated: bool, emulated: bool) -> Markup {
    html! {
        @if simulated {
            " " span.simulated title="Its times are modelled, not measured." { "simulated" }
        } @else if emulated {
            " " span.simulated title="A processor was emulated: its times are no device's." { "emulated" }
        }
    }
}

/// A state as a badge, in its colour.
pub(super) fn badge(state: &str) -> Markup {
    html! { span class={ "badge " (state) } { (state) } }
}
