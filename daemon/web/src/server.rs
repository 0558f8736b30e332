//! Serves connections: so many at once, each with limits on what it sends and on its time, until the daemon ends.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::http::{Extensions, HeaderMap, StatusCode, Version, header};
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::get;
use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use layerlab_lab::config::WebConfig;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_io_timeout::TimeoutStream;
use tokio_rustls::TlsAcceptor;
use tower_http::compression::CompressionLayer;

use crate::access::{Peer, with_token};
use crate::api;
use crate::guard::{OwnHosts, guard};
use crate::health::{healthz, readyz};
use crate::lab::{WebLab, WebState};
use crate::metrics::metrics;
use crate::pages;
use crate::problem::Problem;
use crate::tls::acceptor;
use crate::{WebError, check_address};

/// Connections at once; more wait in the system's queue. Each page that is looked at keeps one for its events.
const MOST_CONNECTIONS: usize = 512;

/// Longer heads are nobody's.
const LONGEST_HEAD: usize = 32 << 10;

/// A connection ends after this, whatever it is doing: longer than any answer takes but streams, which go on with another.
const LONGEST_CONNECTION: Duration = Duration::from_secs(900);

/// Answers that are on their way when the daemon ends have so long.
const FAREWELL: Duration = Duration::from_secs(5);

/// The lab's door to the web.
pub struct WebServer {
    listener: TcpListener,
    address: SocketAddr,
    hosts: OwnHosts,
    tls: Option<TlsAcceptor>,
    is_encrypted: bool,
    /// The head of a request comes within this, or the connection ends; so does one on which nothing is asked, or of whose
    /// answer nothing is read though the system's buffers are full.
    patience: Duration,
}

impl fmt::Debug for WebServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WebServer").field(&self.url()).finish()
    }
}

impl WebServer {
    /// Listens as the configuration says; none if it says nowhere.
    pub async fn bind(config: &WebConfig) -> Result<Option<WebServer>, WebError> {
        let Some(address) = check_address(config)? else {
            return Ok(None);
        };
        let tls = acceptor(config)?;
        let failed = |source| WebError::Listen { address, source };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Some(WebServer {
            listener,
            address,
            hosts: OwnHosts::new(address, tls.is_some(), &config.hosts),
            is_encrypted: config.behind_proxy || tls.is_some(),
            tls,
            patience: config.drop_after,
        }))
    }

    /// What it is called by whoever asks it at the address at which it listens.
    pub fn url(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }

    /// Serves until `stop` changes or is dropped, and ends when the answers on their way are sent.
    pub async fn serve(self, lab: WebLab, mut stop: watch::Receiver<bool>) {
        let state = WebState {
            lab: Arc::new(lab),
            failures: Arc::default(),
            explorers: Arc::default(),
            ending: stop.clone(),
            is_encrypted: self.is_encrypted,
        };
        let router = router(state, self.hosts);
        let room = Arc::new(Semaphore::new(MOST_CONNECTIONS));
        let mut connections = JoinSet::new();
        loop {
            while connections.try_join_next().is_some() {}
            let accepted = tokio::select! {
                accepted = accept(&self.listener, &room) => accepted,
                _ = stop.changed() => break,
            };
            match accepted {
                Ok((stream, peer, place)) => {
                    let (router, stop) = (router.clone(), stop.clone());
                    let (tls, patience) = (self.tls.clone(), self.patience);
                    connections.spawn(async move {
                        let stream = patient(stream, patience);
                        let router = router.layer(Extension(Peer(peer)));
                        match tls {
                            None => connection(stream, router, stop, patience, peer).await,
                            // Who does not get on with that would keep the place of another.
                            Some(tls) => match timeout(patience, tls.accept(stream)).await {
                                Ok(Ok(stream)) => {
                                    connection(stream, router, stop, patience, peer).await
                                }
                                Ok(Err(error)) => tracing::debug!(%peer, %error, "no TLS"),
                                Err(_) => tracing::debug!(%peer, "TLS took too long"),
                            },
                        }
                        drop(place);
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot take a connection from the web");
                    // There are no descriptors left, say.
                    tokio::time::sleep(Duration::from_millis(200)).await;
                }
            }
        }
        let ended = async { while connections.join_next().await.is_some() {} };
        let _ = timeout(FAREWELL, ended).await;
    }
}

type Place = tokio::sync::OwnedSemaphorePermit;

async fn accept(
    listener: &TcpListener,
    room: &Arc<Semaphore>,
) -> io::Result<(TcpStream, SocketAddr, Place)> {
    let place = room.clone().acquire_owned().await;
    let place = place.map_err(io::Error::other)?;
    let (stream, peer) = listener.accept().await?;
    Ok((stream, peer, place))
}

/// A stream that ends when nobody reads what is written.
fn patient(stream: TcpStream, patience: Duration) -> Pin<Box<TimeoutStream<TcpStream>>> {
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(patience));
    Box::pin(stream)
}

async fn connection(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    router: Router,
    mut stop: watch::Receiver<bool>,
    patience: Duration,
    peer: SocketAddr,
) {
    let service = TowerToHyperService::new(router);
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(patience)
        .max_buf_size(LONGEST_HEAD)
        .serve_connection(TokioIo::new(stream), service);
    let mut serving = std::pin::pin!(serving);
    let served = timeout(LONGEST_CONNECTION, async {
        tokio::select! {
            served = serving.as_mut() => return served,
            _ = stop.changed() => serving.as_mut().graceful_shutdown(),
        }
        serving.await
    });
    match served.await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%peer, %error, "a connection from the web broke"),
        Err(_) => tracing::debug!(%peer, "a connection from the web took too long"),
    }
}

fn router(state: WebState, hosts: OwnHosts) -> Router {
    let (api, _) = api::routes().split_for_parts();
    let api = api.route("/metrics", get(metrics));
    let api = api.route_layer(from_fn_with_state(state.clone(), with_token));
    let api = api.layer(CompressionLayer::new().compress_when(is_text));
    Router::new()
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .route("/api/v1/openapi.json", get(api::openapi))
        .merge(api)
        .merge(pages::routes(&state))
        .fallback(nothing_there)
        .method_not_allowed_fallback(not_so)
        .layer(from_fn(api::within_time))
        .layer(from_fn(pages::for_browsers))
        .layer(from_fn_with_state(hosts, guard))
        .with_state(state)
}

/// Tables and JSON become several times shorter; archives are compressed already, and events are to come at once.
fn is_text(_: StatusCode, _: Version, headers: &HeaderMap, _: &Extensions) -> bool {
    let kind = headers.get(header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or("");
    ["application/json", "text/csv", "text/plain"]
        .iter()
        .any(|text| kind.starts_with(text))
}

async fn nothing_there() -> Problem {
    Problem::nothing_there()
}

async fn not_so() -> Problem {
    let detail = "this path does not take that method; /api/v1/openapi.json says which it takes";
    Problem::usage(StatusCode::METHOD_NOT_ALLOWED, detail)
}

#[cfg(test)]
mod tests;
