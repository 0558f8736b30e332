//! The hosts that share the lab.

use axum::Json;
use axum::extract::State;
use jiff::Timestamp;
use layerlab_lab::query::{ListedHost, listed_hosts};
use layerlab_lab::record::LeaseState;
use serde::Serialize;
use utoipa::ToSchema;

use super::list::{Chosen, List};
use crate::extract::InQuery;
use crate::lab::WebState;
use crate::problem::Problem;

/// A host of the lab, and what it is doing.
#[derive(Serialize, ToSchema)]
pub(super) struct ShownHost {
    /// What the host is called in the lab.
    name: String,
    /// Whether it may work on the lab's runs: `alive`, `lost` if nothing was heard of it for two minutes, or `ended`.
    #[schema(example = "alive")]
    lease: String,
    /// When it was lost, or ended; nothing while it is alive.
    since: Option<Timestamp>,
    /// When the store heard of it last.
    seen: Timestamp,
    /// The names of the devices that it has, or had last.
    devices: Vec<String>,
    /// How many runs are on its devices; of one that is not alive, as far as is known.
    running: usize,
    /// How many runs that it left between two blocks wait for its devices.
    parked: usize,
    /// Its time zone by its name, if that has one: windows that name none are meant in it.
    zone: Option<String>,
    /// The version of its daemon.
    version: String,
    /// What its machine calls itself.
    machine: String,
    /// The process of its daemon, if it has one.
    process: Option<u32>,
}

impl From<ListedHost> for ShownHost {
    fn from(host: ListedHost) -> ShownHost {
        let lease = match host.lease {
            LeaseState::Alive => "alive",
            LeaseState::Lost => "lost",
            LeaseState::Ended => "ended",
        };
        ShownHost {
            name: host.name,
            lease: lease.to_owned(),
            since: host.since,
            seen: host.seen,
            devices: host.devices,
            running: host.running,
            parked: host.parked,
            zone: host.zone,
            version: host.version,
            machine: host.machine,
            process: host.process,
        }
    }
}

/// The hosts that share the lab, by their names; none if its store is a file, which one host has.
#[utoipa::path(
    get,
    path = "/api/v1/hosts",
    operation_id = "list_hosts",
    params(Chosen),
    responses(
        (status = OK, body = List<ShownHost>),
        (status = "4XX", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn list(
    State(state): State<WebState>,
    InQuery(chosen): InQuery<Chosen>,
) -> Result<Json<List<ShownHost>>, Problem> {
    let reader = &state.lab.reader;
    let hosts = reader.hosts().await?;
    let kept = reader.unfinished().await?;
    let hosts = listed_hosts(hosts, &kept, Timestamp::now());
    Ok(Json(List::of(hosts, &chosen, ShownHost::from)))
}
