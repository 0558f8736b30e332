//! Reports: what the lab was asked for in a stretch of time, and what came of it.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use jiff::{SignedDuration, Timestamp};
use layerlab_lab::query;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::extract::InQuery;
use crate::lab::WebState;
use crate::problem::Problem;

/// Of which time.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct Period {
    /// The beginning; a day before the end if it is not said.
    since: Option<Timestamp>,
    /// The end; now if it is not said.
    until: Option<Timestamp>,
}

/// What the lab was asked for, and what came of it.
#[derive(Serialize, ToSchema)]
pub(super) struct ShownReport {
    /// All in one sentence.
    headline: String,
    /// The report as `layerlab report --json` prints it.
    #[schema(value_type = Object)]
    report: serde_json::Value,
}

/// What the lab was asked for in a stretch of time, and what came of it.
#[utoipa::path(
    get,
    path = "/api/v1/report",
    operation_id = "show_report",
    params(Period),
    responses(
        (status = OK, body = ShownReport),
        (status = "4XX", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn show(
    State(state): State<WebState>,
    InQuery(period): InQuery<Period>,
) -> Result<Json<ShownReport>, Problem> {
    let until = period.until.unwrap_or_else(Timestamp::now);
    let day_before = || {
        until
            .checked_sub(SignedDuration::from_hours(24))
            .unwrap_or(Timestamp::MIN)
    };
    let since = period.since.unwrap_or_else(day_before);
    if until < since {
        let detail = "the period ends before it begins; give a later `until`";
        return Err(Problem::usage(StatusCode::BAD_REQUEST, detail));
    }
    let mut report = query::report(&state.lab.reader, since, until).await?;
    let read = tokio::task::spawn_blocking(move || {
        report.read_profiles(false);
        report
    });
    let report = read.await.map_err(Problem::internal)?;
    Ok(Json(ShownReport {
        headline: report.headline.clone(),
        report: serde_json::to_value(&report).map_err(Problem::internal)?,
    }))
}
