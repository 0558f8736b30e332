//! A link to an edge server, measured from this machine or by a phone's agent, up to the document that is published
//! (docs/edge.md). It has no journal: a measurement that ends before its time is begun anew.

mod error;
mod from_host;
mod from_phone;
mod tunnel;
mod written_shape;

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use layerlab_edge::{LinkErrand, MeasurePlan, Measured, TRACE_INTERVAL, TimedRequests, Token};
use layerlab_farm::AdbLink;
use layerlab_profiles::link::{
    LINK_FORMAT, LINK_VERSION, LinkDocument, LinkHeader, LinkKind, LinkPhone, LinkProvenance,
    MeasuredFrom,
};
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

use super::host::host;
use super::provenance::{rfc3339, this_program};
use super::settings::TimesSettings;
use from_phone::PhoneEnd;

pub use error::LinkCampaignError;
pub use tunnel::{Tunnel, TunnelElsewhere, port_here};
pub use written_shape::{WrittenShape, bits_per_second};

/// Which link to measure, and how.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkSettings {
    /// What the link is called in its tables.
    pub name: String,
    /// What carries it, as whoever asks for it knows.
    pub carrier: LinkKind,
    /// Where the server listens, as whoever measures reaches it: `HOST:PORT`.
    pub server: String,
    /// The file with the server's secret, which nobody but its owner may be able to read.
    pub token_file: PathBuf,
    /// Whether a phone reaches a server on this machine through adb.
    pub tunnel: bool,
    /// What the link is slowed down to, if it is.
    pub shape: Option<WrittenShape>,
    /// How many transfers of each size, each way.
    pub repeats: u32,
    /// How many echoes.
    pub echoes: u32,
    /// How many connections share the exchanges; as many as are usual if it is not said, and no more than `repeats`.
    pub connections: Option<u32>,
    /// The rest before each exchange, in microseconds.
    pub gap_us: u64,
    /// How long a trace is recorded each way, if one is.
    pub trace: Option<Duration>,
    /// What the order of the exchanges is drawn from.
    pub seed: u64,
}

impl LinkSettings {
    /// How many transfers of each size there may be, each way.
    pub const REPEATS: RangeInclusive<u32> = 2..=1000;
    /// How many echoes there may be.
    pub const ECHOES: RangeInclusive<u32> = 6..=10_000;
    /// How many connections there may be.
    pub const CONNECTIONS: RangeInclusive<u32> = 1..=1000;
    /// How many microseconds of rest there may be before each exchange.
    pub const GAPS_US: RangeInclusive<u64> = 0..=1_000_000;
    /// How long a trace may be: from one interval to an hour.
    pub const TRACES: RangeInclusive<Duration> = TRACE_INTERVAL..=Duration::from_secs(3600);
    /// So many transfers of each size are timed.
    pub const USUAL_REPEATS: u32 = 10;
    /// So many echoes are timed.
    pub const USUAL_ECHOES: u32 = 200;
    /// So many microseconds rests a link: as many as a processor before each inference.
    pub const USUAL_GAP_US: u64 = TimesSettings::GAP_US;
    /// What the order of the exchanges is drawn from.
    pub const USUAL_SEED: u64 = 0;

    /// The link called `name` to `server`, measured as it usually is.
    pub fn usual(
        name: String,
        carrier: LinkKind,
        server: String,
        token_file: PathBuf,
    ) -> LinkSettings {
        LinkSettings {
            name,
            carrier,
            server,
            token_file,
            tunnel: false,
            shape: None,
            repeats: LinkSettings::USUAL_REPEATS,
            echoes: LinkSettings::USUAL_ECHOES,
            connections: None,
            gap_us: LinkSettings::USUAL_GAP_US,
            trace: None,
            seed: LinkSettings::USUAL_SEED,
        }
    }

    /// The bytes of the smallest transfers.
    pub fn smallest_transfer() -> u64 {
        MeasurePlan::default().sizes.into_iter().min().unwrap_or(0)
    }

    /// Whether each connection has a transfer of each size.
    pub fn has_enough_repeats(&self) -> bool {
        self.plan().connections <= self.repeats
    }

    fn plan(&self) -> MeasurePlan {
        let usual = MeasurePlan::default();
        MeasurePlan {
            repeats: self.repeats,
            echoes: self.echoes,
            connections: self
                .connections
                .unwrap_or(usual.connections.min(self.repeats)),
            gap: Duration::from_micros(self.gap_us),
            seed: self.seed,
            trace: self.trace,
            ..usual
        }
    }
}

/// What this program calls itself to the other end.
pub fn program_for_server() -> String {
    let program = this_program();
    format!("{} {}", program.name, program.version)
}

/// One measurement of a link.
pub struct LinkCampaign {
    settings: LinkSettings,
    errand: LinkErrand,
}

impl LinkCampaign {
    /// Reads the server's secret.
    ///
    /// # Errors
    /// When the token file is not there, is open to others, or holds something else.
    pub fn prepare(settings: LinkSettings) -> Result<LinkCampaign, LinkCampaignError> {
        let errand = LinkErrand {
            server: settings.server.clone(),
            token: Token::read(&settings.token_file)?,
            program: program_for_server(),
            shape: settings.shape.map(WrittenShape::shape),
            plan: settings.plan(),
        };
        Ok(LinkCampaign { settings, errand })
    }

    /// Has requests to run layers timed, too.
    pub fn with_requests(mut self, requests: Option<TimedRequests>) -> LinkCampaign {
        self.errand.plan.requests = requests;
        self
    }

    /// Measures from this machine, and tells `progress` how many of all exchanges are done. Dropping the future ends it.
    ///
    /// # Errors
    /// When the server cannot be reached, is not what it is said to be, or is lost again and again.
    pub async fn measure_here(
        &self,
        progress: impl Fn(u64, u64) + Send + 'static,
    ) -> Result<LinkDocument, LinkCampaignError> {
        let began = OffsetDateTime::now_utc();
        let measured = from_host::measure(self.errand.clone(), self.settings.carrier, progress);
        self.document(began, measured.await?, None)
    }

    /// Has the agent of the phone behind `link` measure. Dropping the future ends it, and closes the tunnel if there is one.
    ///
    /// # Errors
    /// As [`LinkCampaign::measure_here`], and when the phone or its agent is not there, is busy or is lost in the middle.
    pub async fn measure_from(
        &self,
        link: &AdbLink,
        progress: impl Fn(u64, u64) + Send + 'static,
    ) -> Result<LinkDocument, LinkCampaignError> {
        let phone = PhoneEnd::connect(link).await?;
        let mut errand = self.errand.clone();
        let _tunnel = match self.settings.tunnel {
            true => {
                let port = port_here(&errand.server)?;
                let phone = link.phone().await.map_err(LinkCampaignError::phone)?;
                let tunnel = Tunnel::open(phone, port).await;
                let tunnel = tunnel.map_err(LinkCampaignError::phone)?;
                errand.server = tunnel.address();
                Some(tunnel)
            }
            false => None,
        };
        let began = OffsetDateTime::now_utc();
        let measured = phone.measure(&errand, self.settings.carrier, progress);
        let (measured, phone) = measured.await?;
        self.document(began, measured, Some(phone))
    }

    fn document(
        &self,
        began: OffsetDateTime,
        measured: Measured,
        phone: Option<LinkPhone>,
    ) -> Result<LinkDocument, LinkCampaignError> {
        let settings = &self.settings;
        let header = LinkHeader {
            format: LINK_FORMAT.to_owned(),
            version: LINK_VERSION,
            name: settings.name.clone(),
            kind: settings
                .shape
                .map_or(settings.carrier, |_| LinkKind::Shaped),
            carrier: settings.carrier,
            shape: settings.shape.map(WrittenShape::published),
            server: settings.server.clone(),
            method: self.errand.plan.method(),
            connections: measured.connections,
            provenance: LinkProvenance {
                started_at: rfc3339(began),
                finished_at: rfc3339(OffsetDateTime::now_utc()),
                measured_from: match phone {
                    Some(_) => MeasuredFrom::Phone,
                    None => MeasuredFrom::Host,
                },
                program: this_program(),
                server_program: measured.server_program,
                host: host(),
                phone,
            },
        };
        let document = LinkDocument::new(header, measured.samples, measured.traces);
        document.map_err(|source| LinkCampaignError::Undescribed {
            server: settings.server.clone(),
            source,
        })
    }
}
