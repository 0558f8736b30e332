//! What happens in the lab: one stream, in the order of the store. A stream that breaks goes on where it broke.

use std::collections::VecDeque;
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Sse;
use axum::response::sse::{Event as SentEvent, KeepAlive};
use futures_util::stream::{Stream, unfold};
use jiff::Timestamp;
use layerlab_lab::record::{Event, What};
use layerlab_lab::store::StoreError;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use utoipa::{IntoParams, ToSchema};

use crate::access::Caller;
use crate::extract::InQuery;
use crate::lab::WebState;
use crate::problem::Problem;

/// A silent stream says so often that it lives; proxies end connections that are silent for a minute.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// So many events of each stream are in memory at most.
const MOST_AT_ONCE: u32 = 64;

/// Something that happened.
#[derive(Serialize, ToSchema)]
pub(super) struct ShownEvent {
    /// Counts all events of the lab, from 1.
    number: i64,
    /// When it happened.
    at: Timestamp,
    /// The job that it is about.
    job: Option<i64>,
    /// The run that it is about.
    run: Option<i64>,
    /// The device that it is about.
    device: Option<String>,
    /// What kind of event it is.
    #[schema(example = "published")]
    kind: String,
    /// What happened, for a person.
    what: String,
}

impl From<&Event> for ShownEvent {
    fn from(event: &Event) -> ShownEvent {
        ShownEvent {
            number: event.number,
            at: event.at,
            job: event.job,
            run: event.run,
            device: event.device.clone(),
            kind: kind(&event.what),
            what: event.what.to_string(),
        }
    }
}

/// The name of a kind of event, as it is written in JSON.
fn kind(what: &What) -> String {
    let written = serde_json::to_value(what).unwrap_or_default();
    written["kind"].as_str().unwrap_or_default().to_owned()
}

/// Where the stream begins.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct Beginning {
    /// Begin after the event of this number; 0 is the very beginning. Without it, the stream begins now.
    #[param(minimum = 0)]
    after: Option<i64>,
}

/// What happens in the lab, as it happens: server-sent events, whose `id` is the event's number and whose `data` is an event
/// in JSON. Who sends the last number back as `Last-Event-ID`, as browsers do, misses nothing.
#[utoipa::path(
    get,
    path = "/api/v1/events",
    operation_id = "stream_events",
    params(
        Beginning,
        ("last-event-id" = Option<i64>, Header, description = "Begin after the event of this number; goes before `after`"),
    ),
    responses(
        (status = OK, description = "Events, without end", body = ShownEvent, content_type = "text/event-stream"),
        (status = "4XX", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn stream(
    State(state): State<WebState>,
    caller: Caller,
    InQuery(beginning): InQuery<Beginning>,
    headers: HeaderMap,
) -> Result<Sse<impl Stream<Item = Result<SentEvent, axum::Error>>>, Problem> {
    let mut last_event = state.lab.last_event.clone();
    let newest = *last_event.borrow_and_update();
    let after = last_seen(&headers)?.or(beginning.after).unwrap_or(newest);
    let stream = EventStream {
        state,
        caller,
        last_event,
        // A number that is still to come is from before the lab had a new store.
        after: after.clamp(0, newest),
        read: VecDeque::new(),
    };
    let events = unfold(stream, |mut stream| async move {
        let event = stream.next().await?;
        Some((sent(&event), stream))
    });
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)))
}

fn last_seen(headers: &HeaderMap) -> Result<Option<i64>, Problem> {
    let Some(value) = headers.get("last-event-id") else {
        return Ok(None);
    };
    let number = value.to_str().ok().and_then(|text| text.parse().ok());
    number.map(Some).ok_or_else(|| {
        let detail = "`Last-Event-ID` is no number of an event; send the `id` of the last event, or leave it out";
        Problem::usage(StatusCode::BAD_REQUEST, detail)
    })
}

fn sent(event: &Event) -> Result<SentEvent, axum::Error> {
    SentEvent::default()
        .id(event.number.to_string())
        .json_data(ShownEvent::from(event))
}

/// Where a client is in the lab's events. It is asked for the next one only when the one before is on its way: what a slow
/// client has not read yet waits in the store.
struct EventStream {
    state: WebState,
    caller: Caller,
    last_event: watch::Receiver<i64>,
    after: i64,
    read: VecDeque<Event>,
}

impl EventStream {
    /// The next event, when it happens; nothing when the stream ends.
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.read.pop_front() {
                self.after = event.number;
                return Some(event);
            }
            if *self.last_event.borrow_and_update() > self.after {
                match self.more().await {
                    Ok(events) if !events.is_empty() => self.read = events.into(),
                    // The client comes again, and goes on where it was.
                    _ => return None,
                }
                continue;
            }
            let ending = &mut self.state.ending;
            tokio::select! {
                changed = self.last_event.changed() => changed.ok()?,
                _ = ending.wait_for(|is_ending| *is_ending) => return None,
            }
        }
    }

    /// What happened since, unless the client's token is not valid any more.
    async fn more(&self) -> Result<Vec<Event>, StoreError> {
        if !self.caller.is_still_valid(&self.state).await {
            return Ok(Vec::new());
        }
        let reader = &self.state.lab.reader;
        let events = reader.events_after(self.after, MOST_AT_ONCE).await;
        events.inspect_err(|error| tracing::warn!(%error, "a stream of events ends"))
    }
}
