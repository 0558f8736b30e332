//! What forms send, and from whom it is taken: somebody whose token may change the lab, on a page of the lab itself. The
//! cookie alone proves the first and not the second.

use std::time::Duration;

use axum::Form;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use tokio::time::timeout;

use super::layout::ProblemPage;
use crate::access::Operator;
use crate::problem::Problem;

/// A form comes within this.
const DEADLINE: Duration = Duration::from_secs(30);

/// A job file has at most 256 KiB; a form writes each byte as up to three.
pub(super) const LONGEST: usize = 3 * (256 << 10);

/// The fields of a form that may change the lab, and whose token it came with.
pub(super) struct Posted {
    /// The name of the token.
    pub(super) by: String,
    fields: Vec<(String, String)>,
}

impl Posted {
    /// What a field says, without the blanks around it; nothing if it is empty.
    pub(super) fn field(&self, name: &str) -> Option<&str> {
        self.fields(name).next()
    }

    /// What all fields of a name say, such as boxes that are ticked.
    pub(super) fn fields(&self, name: &str) -> impl Iterator<Item = &str> {
        let named = self.fields.iter().filter(move |(known, _)| known == name);
        let values = named.map(|(_, value)| value.trim());
        values.filter(|value| !value.is_empty())
    }
}

impl<S: Send + Sync> FromRequest<S> for Posted {
    type Rejection = ProblemPage;

    async fn from_request(request: Request, state: &S) -> Result<Posted, ProblemPage> {
        let (mut parts, body) = request.into_parts();
        let operator = own_operator(&mut parts, state).await;
        let request = Request::from_parts(parts, body);
        let form = Form::<Vec<(String, String)>>::from_request(request, state);
        // A refused form is read as well: a connection ends on which something is left unread, and with it what the browser asks
        // for next.
        let form = timeout(DEADLINE, form).await;
        let Operator(by) = operator?;
        match form {
            Ok(Ok(Form(fields))) => Ok(Posted { by, fields }),
            Ok(Err(error)) => {
                let detail = format!("the form cannot be read: {}", error.body_text());
                Err(Problem::usage(error.status(), detail).into())
            }
            Err(_) => {
                let detail = "the form did not come in time; send it again";
                Err(Problem::usage(StatusCode::REQUEST_TIMEOUT, detail).into())
            }
        }
    }
}

async fn own_operator<S: Send + Sync>(parts: &mut Parts, state: &S) -> Result<Operator, Problem> {
    if !says_where_from(&parts.headers) {
        let detail = "this does not say from which page it comes; send forms from the lab's own pages, or ask /api/v1";
        return Err(Problem::usage(StatusCode::FORBIDDEN, detail));
    }
    Operator::from_request_parts(parts, state).await
}

/// Whether a browser says from where a form comes. If it does, the guard has seen that it is from here: what names another site
/// does not come so far. A browser that says nothing might send it for anybody.
fn says_where_from(headers: &HeaderMap) -> bool {
    let site = headers.get("sec-fetch-site");
    headers.contains_key(header::ORIGIN) || site.is_some_and(|site| site == "same-origin")
}
