//! Reservations: devices that people take from the lab for a while.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use jiff::Timestamp;
use layerlab_lab::query::open_reservations;
use layerlab_lab::record::Reservation;
use layerlab_lab::talk::{Answer, Request};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::list::{Chosen, List};
use crate::access::Operator;
use crate::extract::{InPath, InQuery, WholeBody};
use crate::lab::WebState;
use crate::problem::Problem;

/// A device that somebody has taken, or will.
#[derive(Serialize, ToSchema)]
pub(super) struct ShownReservation {
    /// Its number, unique in the whole lab.
    id: i64,
    /// The device's name.
    device: String,
    /// When the device is taken from the lab.
    from: Timestamp,
    /// When the lab has it back, unless it is released before.
    until: Timestamp,
    /// For whom or what.
    note: String,
}

impl From<&Reservation> for ShownReservation {
    fn from(reservation: &Reservation) -> ShownReservation {
        ShownReservation {
            id: reservation.id,
            device: reservation.device.clone(),
            from: reservation.from,
            until: reservation.until,
            note: reservation.note.clone(),
        }
    }
}

/// The reservations that are not over, in the order in which they begin.
#[utoipa::path(
    get,
    path = "/api/v1/reservations",
    operation_id = "list_reservations",
    params(Chosen),
    responses(
        (status = OK, body = List<ShownReservation>),
        (status = "4XX", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn list(
    State(state): State<WebState>,
    InQuery(chosen): InQuery<Chosen>,
) -> Result<Json<List<ShownReservation>>, Problem> {
    let kept = state.lab.reader.unfinished().await?;
    let reserved = open_reservations(&kept, Timestamp::now());
    Ok(Json(List::of(reserved, &chosen, ShownReservation::from)))
}

/// Which device is to be taken.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewReservation {
    /// The device's name or serial.
    device: String,
    /// From when; now if it is not said.
    from: Option<Timestamp>,
    /// Until when.
    until: Timestamp,
    /// For whom or what.
    #[serde(default)]
    note: String,
}

/// Take a device from the lab for a while.
#[utoipa::path(
    post,
    path = "/api/v1/reservations",
    operation_id = "reserve_device",
    request_body = NewReservation,
    responses(
        (status = NO_CONTENT, description = "It is reserved"),
        (status = "4XX", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn reserve(
    State(state): State<WebState>,
    Operator(by): Operator,
    body: WholeBody,
) -> Result<StatusCode, Problem> {
    let wanted: NewReservation = body.json()?;
    let request = Request::Reserve {
        device: wanted.device,
        from: wanted.from.unwrap_or_else(Timestamp::now),
        until: wanted.until,
        note: wanted.note,
    };
    match state.ask(request, Some(&by)).await? {
        Answer::Done => Ok(StatusCode::NO_CONTENT),
        other => Err(Problem::unexpected(other)),
    }
}

/// Give a reserved device back to the lab.
#[utoipa::path(
    delete,
    path = "/api/v1/reservations/{device}",
    operation_id = "release_device",
    params(("device" = String, Path, description = "The device's name or serial")),
    responses(
        (status = NO_CONTENT, description = "The lab has it back"),
        (status = "4XX", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn release(
    State(state): State<WebState>,
    Operator(by): Operator,
    InPath(device): InPath<String>,
) -> Result<StatusCode, Problem> {
    match state.ask(Request::Release { device }, Some(&by)).await? {
        Answer::Done => Ok(StatusCode::NO_CONTENT),
        other => Err(Problem::unexpected(other)),
    }
}
