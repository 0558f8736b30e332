//! A link that is to be measured, by this machine or by the phone whose agent was asked to.

use std::net::SocketAddr;

use crate::cancel::Cancel;
use crate::client::Client;
use crate::connection::Patience;
use crate::error::EdgeError;
use crate::measure::{Measured, Progress, measure};
use crate::plan::MeasurePlan;
use crate::shaper::{Shape, Shaper};
use crate::token::Token;

/// A link that is to be measured.
#[derive(Clone, Debug)]
pub struct LinkErrand {
    /// Where the server listens: `HOST:PORT`.
    pub server: String,
    /// The server's secret.
    pub token: Token,
    /// What this end calls itself to the server.
    pub program: String,
    /// What the link is slowed down to, if it is.
    pub shape: Option<Shape>,
    /// What is measured.
    pub plan: MeasurePlan,
}

impl LinkErrand {
    /// Sees whether the server is there and knows the token, without the shaper between, and at which address.
    ///
    /// # Errors
    /// When nobody listens there, it does not answer in time, speaks something else, or refuses the token.
    pub fn reach(&self) -> Result<SocketAddr, EdgeError> {
        Client::connect(
            &self.server,
            &self.token,
            &self.program,
            Patience::default(),
        )?
        .peer()
    }

    /// Measures the link to the server that was reached at `server`, until `cancel` ends it.
    ///
    /// # Errors
    /// As [`measure()`], and when the shaper cannot be started.
    pub fn measure(
        &self,
        server: SocketAddr,
        cancel: &Cancel,
        progress: impl FnMut(Progress),
    ) -> Result<Measured, EdgeError> {
        let shaper = self.shape.map(|shape| Shaper::start(server, shape));
        let shaper = shaper
            .transpose()
            .map_err(|source| EdgeError::Shaper { source })?;
        let way = shaper.as_ref().map_or(server, Shaper::address);
        let connect = || {
            let (address, token, program) = (&self.server, &self.token, &self.program);
            Client::connect_by_way_of(&[way], address, token, program, Patience::default())
        };
        measure(connect, &self.server, &self.plan, cancel, progress)
    }
}
