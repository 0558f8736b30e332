//! Measuring a link: what the daemon asks the phone's agent for, and what it is told.

use layerlab_profiles::link;
use layerlab_profiles::units::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

/// A link to an edge server that the agent is to measure from where it is.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeasureLink {
    /// Where the server listens, as the phone reaches it: `HOST:PORT`.
    pub server: String,
    /// The server's secret, in hexadecimal digits. The agent keeps it no longer than it measures.
    pub token: String,
    /// The sizes of the transfers, each way.
    pub transfer_bytes: Vec<Bytes>,
    /// How many transfers of each size, each way.
    pub repeats: u32,
    /// How many echoes.
    pub echoes: u32,
    /// How many connections share the exchanges evenly; absent, one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<u32>,
    /// The rest before each exchange; absent, none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap_ns: Option<Nanos>,
    /// What the order of the exchanges is drawn from.
    pub seed: u64,
    /// How often a lost connection is made again.
    pub reconnections: u32,
    /// How long a trace is recorded each way, if one is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_ns: Option<Nanos>,
    /// What the agent's shaper slows the link down to, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shape: Option<ShapedLink>,
    /// The requests to run layers that are timed, too, if any are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<RequestsOverLink>,
}

/// Requests to run layers of a model that the server has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestsOverLink {
    /// How many.
    pub count: u32,
    /// The SHA-256 of the model's file.
    pub model_sha256: String,
    /// The first layer.
    pub first_layer: u32,
    /// The last.
    pub last_layer: u32,
    /// The server's processor.
    pub processor: String,
    /// The axes of each tensor that goes up.
    pub inputs: Vec<Vec<u32>>,
    /// The axes of each that comes down.
    pub outputs: Vec<Vec<u32>>,
}

/// Never the secret itself.
impl std::fmt::Debug for MeasureLink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("MeasureLink");
        shown.field("server", &self.server);
        shown.finish_non_exhaustive()
    }
}

/// What a link is slowed down to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShapedLink {
    /// Bit/s, each way.
    pub bandwidth_bps: u64,
    /// The delay that is added to a round trip.
    pub round_trip_ns: Nanos,
}

/// Something that was exchanged with the server, and timed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exchanged {
    /// What was exchanged.
    pub exchange: ExchangeKind,
    /// Its place in the random order, counted from 0.
    pub index: u32,
    /// The connection that it was timed on, counted from 0.
    pub connection: u32,
    /// Payload one way; of an echo, each way.
    pub bytes: Bytes,
    /// Since the measurement began.
    pub started_ns: Nanos,
    /// From the first write until the answer had come.
    pub duration_ns: Nanos,
    /// The server's own times: receive, queue, compute and send.
    pub server_ns: [Nanos; 4],
}

/// What was exchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExchangeKind {
    /// A few bytes there and back.
    Echo,
    /// Many bytes to the server.
    Upload,
    /// Many bytes from the server.
    Download,
    /// A request to run layers, and what they give.
    Request,
}

/// What the full link carried in one interval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Carried {
    /// Which way.
    pub direction: TraceDirection,
    /// Since the trace of this direction began.
    pub start_ns: Nanos,
    /// How long the interval is.
    pub interval_ns: Nanos,
    /// What arrived.
    pub bytes: Bytes,
}

/// Which way a trace goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TraceDirection {
    /// To the server.
    Upload,
    /// From the server.
    Download,
}

impl From<link::LinkSample> for Exchanged {
    fn from(sample: link::LinkSample) -> Exchanged {
        let server = sample.server;
        Exchanged {
            exchange: match sample.exchange {
                link::Exchange::Echo => ExchangeKind::Echo,
                link::Exchange::Upload => ExchangeKind::Upload,
                link::Exchange::Download => ExchangeKind::Download,
                link::Exchange::Request => ExchangeKind::Request,
            },
            index: sample.index,
            connection: sample.connection,
            bytes: sample.bytes,
            started_ns: sample.started,
            duration_ns: sample.duration,
            server_ns: [server.receive, server.queue, server.compute, server.send],
        }
    }
}

impl From<Exchanged> for link::LinkSample {
    fn from(exchanged: Exchanged) -> link::LinkSample {
        let [receive, queue, compute, send] = exchanged.server_ns;
        link::LinkSample {
            exchange: match exchanged.exchange {
                ExchangeKind::Echo => link::Exchange::Echo,
                ExchangeKind::Upload => link::Exchange::Upload,
                ExchangeKind::Download => link::Exchange::Download,
                ExchangeKind::Request => link::Exchange::Request,
            },
            index: exchanged.index,
            connection: exchanged.connection,
            bytes: exchanged.bytes,
            started: exchanged.started_ns,
            duration: exchanged.duration_ns,
            server: link::ServerTimes {
                receive,
                queue,
                compute,
                send,
            },
        }
    }
}

impl From<link::TraceInterval> for Carried {
    fn from(interval: link::TraceInterval) -> Carried {
        Carried {
            direction: match interval.direction {
                link::LinkDirection::Upload => TraceDirection::Upload,
                link::LinkDirection::Download => TraceDirection::Download,
            },
            start_ns: interval.start,
            interval_ns: interval.interval,
            bytes: interval.bytes,
        }
    }
}

impl From<Carried> for link::TraceInterval {
    fn from(carried: Carried) -> link::TraceInterval {
        link::TraceInterval {
            direction: match carried.direction {
                TraceDirection::Upload => link::LinkDirection::Upload,
                TraceDirection::Download => link::LinkDirection::Download,
            },
            start: carried.start_ns,
            interval: carried.interval_ns,
            bytes: carried.bytes,
        }
    }
}
