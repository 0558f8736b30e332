//! Links that are shaped, and measured.

use std::net::SocketAddr;
use std::time::Duration;

use layerlab_edge::{
    Cancel, Cuts, EdgeError, MeasurePlan, Measured, Server, Shape, Shaper, measure,
};

use crate::common::connect;

/// A slow link to `server`.
pub(crate) fn shaper(
    server: &Server,
    bandwidth_bps: u64,
    millis: u64,
    cuts: Option<Cuts>,
) -> Shaper {
    let shape = Shape {
        bandwidth_bps,
        round_trip: Duration::from_millis(millis),
        cuts,
    };
    Shaper::start(server.address(), shape).expect("a port and a thread")
}

/// Measures the link to what listens at `by_way_of`.
pub(crate) fn measured(by_way_of: SocketAddr, plan: &MeasurePlan) -> Result<Measured, EdgeError> {
    let address = by_way_of.to_string();
    measure(
        || connect(by_way_of),
        &address,
        plan,
        &Cancel::default(),
        |_| {},
    )
}
