//! Pages for people, rendered here. A script only has them shown again when something happens. What is to be changed is sent
//! by plain forms, and goes through the same front desk as what the API and commands ask.

mod assets;
mod bins;
mod browsers;
mod calendar;
mod chart;
mod compare;
mod compare_chosen;
mod conditions;
mod conditions_charts;
mod curve;
mod device;
mod explore;
mod host_folders;
mod job;
mod jobs;
mod layout;
mod path;
mod posted;
mod profiles;
mod report;
mod run;
mod run_clock;
mod samples;
mod samples_charts;
mod session;
mod submit;
mod told;
mod visits;
mod wall;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post};

use crate::lab::WebState;
pub(crate) use browsers::for_browsers;

/// The pages. All but those that ask for a token take one.
pub(crate) fn routes(state: &WebState) -> Router<WebState> {
    Router::new()
        .route("/", get(wall::show))
        .route("/devices/{name}", get(device::show))
        .route(
            "/devices/{name}/{change}",
            get(device::back).post(device::change),
        )
        .route("/jobs", get(jobs::list).post(submit::take))
        .route("/jobs/new", get(submit::show))
        .route("/jobs/{id}", get(job::show))
        .route("/jobs/{id}/{change}", get(job::back).post(job::change))
        .route("/runs/{number}", get(run::show))
        .route("/profiles", get(profiles::list))
        .route("/profiles/{run}", get(profiles::show))
        .route("/profiles/{run}/conditions", get(conditions::show))
        .route("/profiles/{run}/explore", get(explore::show))
        .route("/profiles/{run}/samples", get(samples::show))
        .route("/compare", get(compare::show))
        .route("/calendar", get(calendar::show))
        .route("/report", get(report::show))
        .route_layer(from_fn_with_state(
            state.clone(),
            host_folders::without_host_folders,
        ))
        .route_layer(from_fn_with_state(state.clone(), session::with_session))
        .route("/login", get(session::ask).post(session::log_in))
        .route("/logout", post(session::log_out))
        .layer(DefaultBodyLimit::max(posted::LONGEST))
        .route("/assets/{name}", get(assets::asset))
}
