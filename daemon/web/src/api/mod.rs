//! `/api/v1`: each path with its description, from which the description of the whole follows.

mod devices;
mod events;
mod files;
mod hosts;
mod jobs;
mod list;
mod plans;
mod profiles;
mod reports;
mod reservations;
mod runs;
mod snapshot;
mod tokens;

use std::time::Duration;

use axum::Json;
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tokio::time::timeout;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{Components, OpenApi, PathItem, RefOr};
use utoipa::{Modify, OpenApi as _};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::lab::WebState;
use crate::problem::Problem;

/// Longer than the lab takes for anything that it is asked, a job with large models included.
const DEADLINE: Duration = Duration::from_secs(660);

#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "layerlab",
        description = "A lab that profiles neural networks on phones, layer by layer. Every path takes a token; what \
                       goes wrong is told as a problem document (RFC 9457)."
    ),
    security(("token" = [])),
    modifiers(&WithTokens)
)]
struct Api;

struct WithTokens;

impl Modify for WithTokens {
    fn modify(&self, api: &mut OpenApi) {
        let scheme = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
        let components = api.components.get_or_insert_with(Components::default);
        components.add_security_scheme("token", SecurityScheme::Http(scheme));
    }
}

pub(crate) fn routes() -> OpenApiRouter<WebState> {
    OpenApiRouter::with_openapi(Api::openapi())
        .routes(routes!(devices::list))
        .routes(routes!(hosts::list))
        .routes(routes!(jobs::list, jobs::submit))
        .routes(routes!(jobs::show))
        .routes(routes!(jobs::pause))
        .routes(routes!(jobs::resume))
        .routes(routes!(jobs::cancel))
        .routes(routes!(jobs::retry))
        .routes(routes!(runs::show))
        .routes(routes!(reservations::list, reservations::reserve))
        .routes(routes!(reservations::release))
        .routes(routes!(devices::quarantined, devices::quarantine))
        .routes(routes!(devices::lift))
        .routes(routes!(profiles::list))
        .routes(routes!(profiles::show))
        .routes(routes!(profiles::file))
        .routes(routes!(profiles::archive))
        .routes(routes!(files::show, files::put))
        .routes(routes!(plans::explore))
        .routes(routes!(plans::curve))
        .routes(routes!(plans::plan))
        .routes(routes!(reports::show))
        .routes(routes!(events::stream))
        .routes(routes!(snapshot::show))
        .routes(routes!(snapshot::own_token))
        .routes(routes!(tokens::list))
        .routes(routes!(tokens::revoke))
}

/// The description of the API in the terms of OpenAPI, as JSON.
pub fn description() -> String {
    let mut text = described().to_pretty_json().unwrap_or_default();
    text.push('\n');
    text
}

pub(crate) async fn openapi() -> Json<OpenApi> {
    Json(described())
}

/// Every answer has a description, which OpenAPI requires: what most have in common is said here.
fn described() -> OpenApi {
    let (_, mut api) = routes().split_for_parts();
    let items = api.paths.paths.values_mut();
    let operations = items.flat_map(|item| {
        let PathItem {
            get,
            post,
            put,
            delete,
            ..
        } = item;
        [get, post, put, delete].into_iter().flatten()
    });
    for (status, answer) in operations.flat_map(|operation| &mut operation.responses.responses) {
        if let RefOr::T(answer) = answer
            && answer.description.is_empty()
        {
            let says = match status.as_str() {
                "4XX" => "Refused, for the reason that the problem document says",
                "5XX" => "The lab failed, as the problem document says",
                "201" => "What was made",
                _ => "What was asked for",
            };
            says.clone_into(&mut answer.description);
        }
    }
    api
}

/// Whatever happens, whoever asks is answered.
pub(crate) async fn within_time(request: Request, next: Next) -> Response {
    match timeout(DEADLINE, next.run(request)).await {
        Ok(response) => response,
        Err(_) => Problem::unavailable("the lab has not answered in time; ask again later")
            .into_response(),
    }
}
