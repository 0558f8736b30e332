//! Which requests are looked at: those for this lab's own names, and from no other site. A page somewhere on the web can make
//! its reader's browser ask the lab, under a name of its own that leads to the lab's address; it cannot make it lie about these.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::VERSION_HEADER;
use crate::problem::Problem;

/// The names by which the lab is called.
#[derive(Clone, Debug)]
pub(crate) struct OwnHosts(Arc<BTreeSet<String>>);

impl OwnHosts {
    /// The names of a lab that listens at `address`, encrypted or not, and is also called `others`.
    pub(crate) fn new(address: SocketAddr, is_encrypted: bool, others: &[String]) -> OwnHosts {
        let usual = if is_encrypted { 443 } else { 80 };
        let port = address.port();
        let mut own = ["localhost", "127.0.0.1", "[::1]"]
            .map(str::to_owned)
            .to_vec();
        if !address.ip().is_unspecified() {
            // Nobody else's name leads a browser to ask for an address.
            own.push(match address.ip() {
                IpAddr::V4(ip) => ip.to_string(),
                IpAddr::V6(ip) => format!("[{ip}]"),
            });
        }
        let mut hosts: BTreeSet<String> = others.iter().cloned().collect();
        hosts.extend(own.iter().map(|host| format!("{host}:{port}")));
        if port == usual {
            hosts.extend(own);
        }
        OwnHosts(Arc::new(hosts))
    }

    fn has(&self, host: &str) -> bool {
        self.0.contains(&host.to_ascii_lowercase())
    }

    fn check(&self, request: &Request) -> Result<(), Problem> {
        let headers = request.headers();
        let named = request.uri().authority().map(|named| named.as_str());
        let host = one(headers, header::HOST)?;
        let hosts = [named, host].into_iter().flatten();
        if host.is_none() || !hosts.into_iter().all(|host| self.has(host)) {
            let detail = "this lab is not called so; ask for it by a name that `web.hosts` lists";
            return Err(Problem::usage(StatusCode::MISDIRECTED_REQUEST, detail));
        }
        let is_own = |origin: &str| {
            let host = origin.split_once("://").map(|(_, host)| host);
            host.is_some_and(|host| self.has(host))
        };
        let site = one(headers, HeaderName::from_static("sec-fetch-site"))?;
        let mode = one(headers, HeaderName::from_static("sec-fetch-mode"))?;
        // Somebody follows a link: a page is shown, to which the browser does not tell the token.
        let is_link = request.method() == Method::GET && mode == Some("navigate");
        let is_elsewhere = one(headers, header::ORIGIN)?.is_some_and(|origin| !is_own(origin));
        let is_from_elsewhere = matches!(site, Some("cross-site" | "same-site"));
        if is_elsewhere || is_from_elsewhere && !is_link {
            let detail = "this request comes from another site; only the lab's own pages and programs may ask it";
            return Err(Problem::usage(StatusCode::FORBIDDEN, detail));
        }
        Ok(())
    }
}

/// The value of a header that may be there once.
fn one(headers: &HeaderMap, name: HeaderName) -> Result<Option<&str>, Problem> {
    let mut values = headers.get_all(&name).iter();
    match (values.next().map(HeaderValue::to_str), values.next()) {
        (None, _) => Ok(None),
        (Some(Ok(value)), None) => Ok(Some(value)),
        _ => {
            let detail = format!("the header `{name}` is not one text; send it once");
            Err(Problem::usage(StatusCode::BAD_REQUEST, detail))
        }
    }
}

/// Refuses what is for another host or from another site. Whatever is answered runs no script and is kept by nobody, unless
/// the answer itself says so.
pub(crate) async fn guard(State(hosts): State<OwnHosts>, request: Request, next: Next) -> Response {
    let mut response = match hosts.check(&request) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    };
    let headers = response.headers_mut();
    let policy = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";
    for (name, value) in [
        (
            HeaderName::from_static(VERSION_HEADER),
            env!("CARGO_PKG_VERSION"),
        ),
        (header::CONTENT_SECURITY_POLICY, policy),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
    ] {
        let entry = headers.entry(name);
        entry.or_insert(HeaderValue::from_static(value));
    }
    response
}
