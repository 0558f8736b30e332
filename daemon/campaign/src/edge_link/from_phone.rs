//! A link measured from a phone: its agent connects to the server, and says what it measured when all of it is.

use std::time::Duration;

use layerlab_edge::{LinkErrand, Measured, TensorShape, TimedRequests};
use layerlab_farm::adb::Printable;
use layerlab_farm::{AdbLink, Connection, ConnectionError, Link as _};
use layerlab_profiles::Bytes;
use layerlab_profiles::document::Program;
use layerlab_profiles::link::{LinkKind, LinkPhone, LinkSample, TraceInterval};
use layerlab_protocol::{MeasureLink, Refusal, Request, RequestsOverLink, Response, ShapedLink};
use tokio::time::timeout;

use super::LinkCampaignError;

/// How long the agent may say nothing: longer than finding and greeting a server takes, and far longer than from one sign of
/// life to the next.
const SILENCE: Duration = Duration::from_secs(60);

/// A phone whose agent waits to be asked.
pub(super) struct PhoneEnd<'a> {
    link: &'a AdbLink,
    connection: Connection,
}

impl PhoneEnd<'_> {
    /// Connects to the agent.
    pub(super) async fn connect(link: &AdbLink) -> Result<PhoneEnd<'_>, LinkCampaignError> {
        let connection = link.connect().await?;
        Ok(PhoneEnd { link, connection })
    }

    /// Has the agent measure. Dropping the future ends that.
    pub(super) async fn measure(
        mut self,
        errand: &LinkErrand,
        carrier: LinkKind,
        progress: impl Fn(u64, u64),
    ) -> Result<(Measured, LinkPhone), LinkCampaignError> {
        let request = Request::MeasureLink {
            link: asked(errand),
        };
        let sent = self.connection.send(&request).await;
        sent.map_err(|error| self.lost(error))?;
        let mut phone = None;
        let mut samples: Vec<LinkSample> = Vec::new();
        let mut traces: Vec<TraceInterval> = Vec::new();
        loop {
            match self.hear().await? {
                Response::LinkReached { loopback } => {
                    let found = self.described(loopback)?;
                    found.may_measure(carrier).map_err(|other| {
                        let server = errand.server.clone();
                        LinkCampaignError::OtherKind {
                            server,
                            carrier,
                            other,
                        }
                    })?;
                    phone = Some(found);
                }
                Response::LinkProgress { done, of } => progress(done, of),
                Response::LinkSamples { samples: next } => {
                    samples.extend(next.into_iter().map(LinkSample::from));
                }
                Response::LinkTraces { intervals } => {
                    traces.extend(intervals.into_iter().map(TraceInterval::from));
                }
                Response::LinkMeasured {
                    samples: sent,
                    intervals,
                    connections,
                    server_program,
                } => {
                    let Some(phone) = phone else {
                        return Err(self.other_answer());
                    };
                    if (sent, intervals) != (samples.len() as u64, traces.len() as u64) {
                        return Err(self.other_answer());
                    }
                    let measured = Measured {
                        samples,
                        traces,
                        connections,
                        server_program,
                    };
                    return Ok((measured, phone));
                }
                Response::LinkFailed { message } => {
                    return Err(LinkCampaignError::ServerOfPhone {
                        phone: self.name(),
                        message: Printable(&message).to_string(),
                    });
                }
                Response::Refused { refusal, message } => {
                    return Err(self.refused(refusal, &message));
                }
                _ => return Err(self.other_answer()),
            }
        }
    }

    async fn hear(&mut self) -> Result<Response, LinkCampaignError> {
        match timeout(SILENCE, self.connection.receive()).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) => Err(self.lost(error)),
            Err(_) => Err(LinkCampaignError::Silent {
                phone: self.name(),
                silence: SILENCE,
            }),
        }
    }

    fn name(&self) -> String {
        Printable(&self.link.name()).to_string()
    }

    fn described(&self, tunnelled: bool) -> Result<LinkPhone, LinkCampaignError> {
        Ok(LinkPhone {
            described: self.link.described().ok_or_else(|| self.other_answer())?,
            agent: Program {
                name: "layerlab-agent".to_owned(),
                version: self.connection.hello.agent_version.clone(),
            },
            attached: self.link.attached(),
            tunnelled,
        })
    }

    fn lost(&self, source: ConnectionError) -> LinkCampaignError {
        LinkCampaignError::Lost {
            phone: self.name(),
            source,
        }
    }

    fn other_answer(&self) -> LinkCampaignError {
        LinkCampaignError::OtherAnswer { phone: self.name() }
    }

    fn refused(&self, refusal: Refusal, message: &str) -> LinkCampaignError {
        let (phone, message) = (self.name(), Printable(message).to_string());
        match refusal {
            Refusal::Busy => LinkCampaignError::Busy { phone, message },
            _ => LinkCampaignError::Refused { phone, message },
        }
    }
}

fn asked(errand: &LinkErrand) -> MeasureLink {
    let plan = &errand.plan;
    MeasureLink {
        server: errand.server.clone(),
        token: errand.token.to_hex(),
        transfer_bytes: plan.sizes.iter().map(|&it| Bytes::from_bytes(it)).collect(),
        repeats: plan.repeats,
        echoes: plan.echoes,
        connections: Some(plan.connections),
        gap_ns: Some(plan.gap.into()),
        seed: plan.seed,
        reconnections: plan.reconnections,
        trace_ns: plan.trace.map(Into::into),
        shape: errand.shape.map(|shape| ShapedLink {
            bandwidth_bps: shape.bandwidth_bps,
            round_trip_ns: shape.round_trip.into(),
        }),
        requests: plan.requests.as_ref().map(requests),
    }
}

fn requests(timed: &TimedRequests) -> RequestsOverLink {
    let method = timed.method();
    let axes = |tensors: &[TensorShape]| tensors.iter().map(|it| it.0.clone()).collect();
    RequestsOverLink {
        count: timed.count,
        model_sha256: method.model_sha256,
        first_layer: method.first_layer,
        last_layer: method.last_layer,
        processor: method.processor,
        inputs: axes(&timed.asked.tensors),
        outputs: axes(&timed.expected),
    }
}
