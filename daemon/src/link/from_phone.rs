//! A link measured from a phone: its agent connects to the server, and says what it measured when all of it is.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::anyhow;
use indicatif::ProgressBar;
use layerlab_edge::{LinkErrand, Measured, TensorShape, TimedRequests};
use layerlab_farm::adb::Printable;
use layerlab_farm::{AdbLink, Connection, ConnectionError, Link as _, Policy};
use layerlab_profiles::Bytes;
use layerlab_profiles::document::Program;
use layerlab_profiles::link::{LinkKind, LinkPhone, LinkSample, TraceInterval};
use layerlab_protocol::{MeasureLink, Refusal, Request, RequestsOverLink, Response, ShapedLink};
use tokio::time::timeout;

use super::tunnel::{Tunnel, port_here};
use crate::adb::{self, AdbArgs};
use crate::campaign::agent_program;
use crate::exit::{Code, ExitWith, Failure};

/// How long the agent may say nothing: longer than finding and greeting a server takes, and far longer than from one sign of
/// life to the next.
const SILENCE: Duration = Duration::from_secs(60);

/// A phone whose agent waits to be asked.
pub(super) struct PhoneEnd {
    link: AdbLink,
    connection: Connection,
}

impl PhoneEnd {
    /// Makes the phone called `name` ready.
    pub(super) async fn open(
        name: &str,
        agent: Option<PathBuf>,
        adb: &AdbArgs,
        policy: Policy,
    ) -> Result<PhoneEnd, Failure> {
        let link = adb::open_real_phone(name, agent_program(agent)?, adb, policy).await?;
        let connection = link.connect().await.exit_with(Code::Device)?;
        Ok(PhoneEnd { link, connection })
    }

    /// A tunnel from the phone to the server of `errand`, which is on this machine, and the errand by way of it.
    pub(super) async fn tunnel(&self, errand: &mut LinkErrand) -> Result<Tunnel, Failure> {
        let port = port_here(&errand.server)?;
        let phone = self.link.phone().await.exit_with(Code::Device)?;
        let tunnel = Tunnel::open(phone, port).await?;
        errand.server = tunnel.address();
        Ok(tunnel)
    }

    /// Has the agent measure. Dropping the future ends that.
    pub(super) async fn measure(
        mut self,
        errand: &LinkErrand,
        carrier: LinkKind,
        bar: &ProgressBar,
    ) -> Result<(Measured, LinkPhone), Failure> {
        let request = Request::MeasureLink {
            link: asked(errand),
        };
        let sent = self.connection.send(&request).await;
        sent.map_err(|error| self.lost(&error))?;
        let mut phone = None;
        let mut samples: Vec<LinkSample> = Vec::new();
        let mut traces: Vec<TraceInterval> = Vec::new();
        loop {
            match self.hear().await? {
                Response::LinkReached { loopback } => {
                    let found = self.described(loopback)?;
                    found.may_measure(carrier).map_err(|other| {
                        let server = &errand.server;
                        let error = anyhow!(
                            "{server} is not measured as {carrier}: {other}; say so by --kind"
                        );
                        Failure::new(Code::Usage, error)
                    })?;
                    phone = Some(found);
                }
                Response::LinkProgress { done, of } => {
                    bar.set_length(of);
                    bar.set_position(done);
                }
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
                    let error = anyhow!("{}: {}", self.name(), Printable(&message));
                    return Err(Failure::new(Code::Device, error));
                }
                Response::Refused { refusal, message } => {
                    return Err(self.refused(refusal, &message));
                }
                _ => return Err(self.other_answer()),
            }
        }
    }

    async fn hear(&mut self) -> Result<Response, Failure> {
        match timeout(SILENCE, self.connection.receive()).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) => Err(self.lost(&error)),
            Err(_) => {
                let error = anyhow!(
                    "the agent on {} has said nothing for {} s; see whether the phone is awake, and measure again",
                    self.name(),
                    SILENCE.as_secs()
                );
                Err(Failure::new(Code::Device, error))
            }
        }
    }

    fn name(&self) -> String {
        Printable(&self.link.name()).to_string()
    }

    fn described(&self, tunnelled: bool) -> Result<LinkPhone, Failure> {
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

    fn lost(&self, error: &ConnectionError) -> Failure {
        let error = anyhow!(
            "the agent on {} did not finish measuring, for {error}; see whether phone and agent still run, and measure \
             again",
            self.name()
        );
        Failure::new(Code::Device, error)
    }

    fn other_answer(&self) -> Failure {
        let error = anyhow!(
            "the agent on {} said something else than it was asked for; install the agent that came with layerlab",
            self.name()
        );
        Failure::new(Code::Device, error)
    }

    fn refused(&self, refusal: Refusal, message: &str) -> Failure {
        let remedy = match refusal {
            Refusal::Busy => "",
            _ => "; install the agent that came with layerlab",
        };
        let error = anyhow!(
            "the agent on {} refused: {}{remedy}",
            self.name(),
            Printable(message)
        );
        Failure::new(Code::Device, error)
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
