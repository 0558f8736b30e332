//! Pages for people, rendered here. A script only has them shown again when something happens.

mod assets;
mod explore;
mod jobs;
mod layout;
mod profiles;
mod report;
mod run;
mod session;
mod told;
mod wall;

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post};

use crate::lab::WebState;

/// The pages. All but those that ask for a token take one.
pub(crate) fn routes(state: &WebState) -> Router<WebState> {
    Router::new()
        .route("/", get(wall::show))
        .route("/jobs", get(jobs::list))
        .route("/jobs/{id}", get(jobs::show))
        .route("/runs/{number}", get(run::show))
        .route("/profiles", get(profiles::list))
        .route("/profiles/{run}", get(profiles::show))
        .route("/profiles/{run}/explore", get(explore::show))
        .route("/report", get(report::show))
        .route_layer(from_fn_with_state(state.clone(), session::with_session))
        .route("/login", get(session::ask).post(session::log_in))
        .route("/logout", post(session::log_out))
        .route("/assets/{name}", get(assets::asset))
}
