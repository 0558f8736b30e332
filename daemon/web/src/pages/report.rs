//! What became of the night.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use axum::extract::State;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use layerlab_lab::query::{indexed_profiles, report};
use maud::html;
use serde::Deserialize;

use super::layout::{Page, ProblemPage};
use crate::extract::InQuery;
use crate::lab::WebState;
use crate::problem::Problem;

/// A night and the morning after it.
const USUAL_HOURS: u16 = 16;

/// Longer reports are not read.
const MOST_HOURS: u16 = 24 * 31;

/// Of how many hours.
#[derive(Deserialize)]
pub(super) struct Period {
    hours: Option<u16>,
}

/// The report of the last hours.
pub(super) async fn show(
    State(state): State<WebState>,
    InQuery(period): InQuery<Period>,
) -> Result<Page, ProblemPage> {
    let hours = period.hours.unwrap_or(USUAL_HOURS).clamp(1, MOST_HOURS);
    let until = Timestamp::now();
    let since = until.checked_sub(SignedDuration::from_hours(hours.into()));
    let since = since.map_err(Problem::internal)?;
    let mut report = report(&state.lab.reader, since, until).await?;
    let kept = state.lab.reader.all().await?;
    let runs: BTreeMap<PathBuf, i64> = indexed_profiles(&kept, None, None)
        .into_iter()
        .map(|profile| (profile.folder, profile.run))
        .collect();
    let body = tokio::task::spawn_blocking(move || {
        report.read_profiles(true);
        let link = |folder: &Path| Some(format!("/profiles/{}", runs.get(folder)?));
        report.body(&TimeZone::system(), &link)
    });
    let body = body.await.map_err(Problem::internal)?;
    let content = html! {
        nav.choice aria-label="Period" {
            @for (length, name) in [(USUAL_HOURS, "last night"), (24, "a day"), (7 * 24, "a week"), (MOST_HOURS, "a month")] {
                a href={ "/report?hours=" (length) } aria-current=[(length == hours).then_some("true")] { (name) }
            }
        }
        (body)
    };
    Ok(Page::new("Report", "/report", content))
}
