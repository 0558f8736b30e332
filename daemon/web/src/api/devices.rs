//! Devices: what they are doing, and which are left alone.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use jiff::Timestamp;
use layerlab_farm::quarantine::Entry;
use layerlab_lab::gates::Readings;
use layerlab_lab::talk::{Answer, DeviceStatus, Request};
use layerlab_lab::when;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::list::{Chosen, List};
use crate::access::Operator;
use crate::extract::{InPath, InQuery, WholeBody};
use crate::lab::WebState;
use crate::problem::Problem;

/// A device, and what it is doing.
#[derive(Serialize, ToSchema)]
pub(super) struct ShownDevice {
    /// What to call it in requests.
    name: String,
    /// Its own serial.
    serial: String,
    /// The host that has it, or had it last, where several share the lab; of another host than the one that answers, less is known.
    host: Option<String>,
    /// What it is, for a person.
    description: String,
    /// Whether it is simulated: its times are then modelled, not measured.
    simulated: bool,
    /// The names of its processors, once an agent on it has told them.
    processors: Option<Vec<String>>,
    /// What it is doing, or what keeps it from that.
    #[schema(example = "free")]
    state: String,
    /// When it came into that state.
    since: Timestamp,
    /// Why, for a person.
    reason: Option<String>,
    /// The number of the run that it has.
    run: Option<i64>,
    /// How many samples and answers of the run there are.
    done: Option<u64>,
    /// Of how many, if that is known.
    of: Option<u64>,
    /// When it will be free, as far as past runs tell.
    free_at: Option<Timestamp>,
    /// When it was last looked at, which is before each run; the numbers that follow are from then.
    read_at: Option<Timestamp>,
    /// How full its battery is, if it has one and tells.
    battery_level_percent: Option<u8>,
    /// How warm its battery is, in degrees Celsius.
    battery_temperature_celsius: Option<f64>,
    /// What it says about its heat, from 0 (none) to 6 (shutdown).
    thermal_status: Option<u8>,
}

impl From<DeviceStatus> for ShownDevice {
    fn from(status: DeviceStatus) -> ShownDevice {
        let device = status.device;
        let read = status.read.as_ref();
        let readings = read.map(|read| &read.readings);
        ShownDevice {
            name: device.name,
            serial: device.serial,
            host: status.host,
            description: device.description,
            simulated: device.simulated,
            processors: device.processors,
            state: status.state.to_string(),
            since: status.since,
            reason: status.reason,
            run: status.run,
            done: status.progress.map(|(done, _)| done),
            of: status.progress.and_then(|(_, of)| of),
            free_at: status.free_at,
            read_at: read.map(|read| read.at),
            battery_level_percent: readings.and_then(|it| it.battery_level_percent),
            battery_temperature_celsius: readings.and_then(Readings::battery_temperature_celsius),
            thermal_status: readings.and_then(|it| it.thermal_status),
        }
    }
}

/// The devices of the lab, and what they are doing.
#[utoipa::path(
    get,
    path = "/api/v1/devices",
    operation_id = "list_devices",
    params(Chosen),
    responses(
        (status = OK, body = List<ShownDevice>),
        (status = "4XX", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn list(
    State(state): State<WebState>,
    InQuery(chosen): InQuery<Chosen>,
) -> Result<Json<List<ShownDevice>>, Problem> {
    let devices = state.status().await?.devices;
    Ok(Json(List::of(devices, &chosen, ShownDevice::from)))
}

/// A phone that is left alone for a while.
#[derive(Serialize, ToSchema)]
pub(super) struct ShownQuarantine {
    /// The phone's name.
    device: String,
    /// Why, for a person.
    reason: String,
    /// Since when.
    since: Timestamp,
    /// When it is used again.
    until: Timestamp,
    /// Whose decision it is, for a person, where several hosts share the lab.
    #[schema(example = "host `rack-1`")]
    by: Option<String>,
}

impl From<Entry> for ShownQuarantine {
    fn from(entry: Entry) -> ShownQuarantine {
        let instant = |at: i64| Timestamp::from_second(at).unwrap_or(Timestamp::MAX);
        ShownQuarantine {
            since: instant(entry.since.unix_timestamp()),
            until: instant(entry.until.unix_timestamp()),
            device: entry.phone,
            reason: entry.reason,
            by: entry.by,
        }
    }
}

/// The phones that are left alone now.
#[utoipa::path(
    get,
    path = "/api/v1/quarantine",
    operation_id = "list_quarantined",
    params(Chosen),
    responses(
        (status = OK, body = List<ShownQuarantine>),
        (status = "4XX", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn quarantined(
    State(state): State<WebState>,
    InQuery(chosen): InQuery<Chosen>,
) -> Result<Json<List<ShownQuarantine>>, Problem> {
    let entries = state.quarantined().await?;
    Ok(Json(List::of(entries, &chosen, ShownQuarantine::from)))
}

/// Which phone is to be left alone.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewQuarantine {
    /// The phone's name or serial.
    device: String,
    /// Why, for a person.
    reason: String,
    /// For how long.
    #[serde(rename = "for")]
    #[schema(example = "2h")]
    period: String,
}

/// Leave a phone alone for a while.
#[utoipa::path(
    post,
    path = "/api/v1/quarantine",
    operation_id = "quarantine_device",
    request_body = NewQuarantine,
    responses(
        (status = CREATED, body = Vec<ShownQuarantine>),
        (status = "4XX", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn quarantine(
    State(state): State<WebState>,
    Operator(by): Operator,
    body: WholeBody,
) -> Result<(StatusCode, Json<Vec<ShownQuarantine>>), Problem> {
    let wanted: NewQuarantine = body.json()?;
    let period: Duration = when::period(&wanted.period)
        .map_err(|error| Problem::unusable(format!("`for`: {error}")))?;
    let request = Request::Quarantine {
        phone: wanted.device,
        reason: wanted.reason,
        period,
    };
    let entries = match state.ask(request, Some(&by)).await? {
        Answer::Quarantine { entries } => entries,
        other => return Err(Problem::unexpected(other)),
    };
    let shown = entries.into_iter().map(ShownQuarantine::from).collect();
    Ok((StatusCode::CREATED, Json(shown)))
}

/// Use a phone again that is left alone.
#[utoipa::path(
    delete,
    path = "/api/v1/quarantine/{device}",
    operation_id = "lift_quarantine",
    params(("device" = String, Path, description = "The phone, as the list of those that are left alone names it")),
    responses(
        (status = NO_CONTENT, description = "It is used again"),
        (status = "4XX", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn lift(
    State(state): State<WebState>,
    Operator(by): Operator,
    InPath(phone): InPath<String>,
) -> Result<StatusCode, Problem> {
    match state.ask(Request::Lift { phone }, Some(&by)).await? {
        Answer::Done => Ok(StatusCode::NO_CONTENT),
        other => Err(Problem::unexpected(other)),
    }
}
