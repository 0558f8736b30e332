//! Measuring a link to an edge server from where the agent is, while the daemon that asked for it listens.

use std::io;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use layerlab_edge::{
    Cancel, EdgeError, InferRequest, LinkErrand, MAX_PAYLOAD_BYTES, MeasurePlan, Measured,
    Progress, Shape, Stretch, TensorShape, TimedRequests, Token, hash_bytes,
};
use layerlab_protocol::{MeasureLink, RequestsOverLink, Response};

use crate::reach::{PROGRAM, with_signs_of_life};

/// How long a measurement whose daemon is gone may take to end: longer than it waits for a server to take a connection.
const ENDING: Duration = Duration::from_secs(30);

/// Samples in one message, which is then a quarter of the longest line.
const SAMPLES_AT_ONCE: usize = 1_000;

/// Who measures a link: one at a time, for two would share what carries them.
#[derive(Debug, Default)]
pub struct LinkTurn {
    /// The number of the connection that asked for it.
    holder: Mutex<Option<u64>>,
    freed: Condvar,
}

/// The one turn. It ends when this is dropped.
#[derive(Debug)]
pub struct TakenTurn<'a>(&'a LinkTurn);

impl LinkTurn {
    /// Takes the turn for the connection of this number, unless that one has it already. Another connection that has it is
    /// over, and so is soon what it measures.
    pub fn take(&self, connection: u64) -> Option<TakenTurn<'_>> {
        let is_ending = |holder: &mut Option<u64>| holder.is_some_and(|other| other != connection);
        let waited = self
            .freed
            .wait_timeout_while(self.lock(), ENDING, is_ending);
        let mut holder = waited.map_or_else(|poisoned| poisoned.into_inner().0, |(it, _)| it);
        if holder.is_some() {
            return None;
        }
        *holder = Some(connection);
        Some(TakenTurn(self))
    }

    fn lock(&self) -> MutexGuard<'_, Option<u64>> {
        // It is replaced as a whole.
        self.holder.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for TakenTurn<'_> {
    fn drop(&mut self) {
        *self.0.lock() = None;
        self.0.freed.notify_all();
    }
}

/// What is asked for, as the client of edge servers has it.
///
/// # Errors
/// When it is nothing that can be measured, in a sentence.
pub fn errand(asked: MeasureLink) -> Result<LinkErrand, String> {
    let token = Token::from_hex(&asked.token).ok_or("what should be a token is none")?;
    let sizes: Vec<u64> = asked
        .transfer_bytes
        .iter()
        .map(|it| it.as_bytes())
        .collect();
    if sizes.iter().any(|&bytes| bytes > MAX_PAYLOAD_BYTES) {
        return Err(format!(
            "no transfer has more than {MAX_PAYLOAD_BYTES} bytes"
        ));
    }
    Ok(LinkErrand {
        server: asked.server,
        token,
        program: PROGRAM.to_owned(),
        shape: asked.shape.map(|shape| Shape {
            bandwidth_bps: shape.bandwidth_bps,
            round_trip: shape.round_trip_ns.into(),
            cuts: None,
        }),
        plan: MeasurePlan {
            sizes,
            repeats: asked.repeats,
            echoes: asked.echoes,
            connections: asked.connections.unwrap_or(1),
            gap: asked.gap_ns.map_or(Duration::ZERO, Into::into),
            seed: asked.seed,
            trace: asked.trace_ns.map(Into::into),
            reconnections: asked.reconnections,
            requests: asked.requests.map(requests).transpose()?,
        },
    })
}

/// Requests to run layers, as the client of edge servers has them. Only the hash of their model is known here.
fn requests(asked: RequestsOverLink) -> Result<TimedRequests, String> {
    let shapes = |tensors: Vec<Vec<u32>>| tensors.into_iter().map(TensorShape).collect();
    let model =
        hash_bytes(&asked.model_sha256).ok_or("what should be a model's SHA-256 is none")?;
    let infer = InferRequest {
        model,
        first: asked.first_layer,
        stretches: vec![Stretch {
            last: asked.last_layer,
            processor: asked.processor,
        }],
        tensors: shapes(asked.inputs),
    };
    match infer.fits_a_frame() && infer.payload_bytes().is_some() {
        true => Ok(TimedRequests {
            count: asked.count,
            model: String::new(),
            asked: infer,
            expected: shapes(asked.outputs),
        }),
        false => Err("no request holds what is to be run".to_owned()),
    }
}

/// Measures, and says so by `send`, until it is done, fails, `cancel` ends it or nothing can be sent any more. The turn is
/// over before the last of it is said: who hears that may ask again.
///
/// # Errors
/// When nothing can be sent any more.
pub fn measure(
    errand: &LinkErrand,
    turn: TakenTurn<'_>,
    cancel: &Cancel,
    send: &(impl Fn(Response) -> io::Result<()> + Sync),
) -> io::Result<()> {
    let server = match errand.reach() {
        Ok(server) => server,
        Err(error) => {
            drop(turn);
            return send(failed(&error));
        }
    };
    let loopback = server.ip().to_canonical().is_loopback();
    send(Response::LinkReached { loopback })?;
    let done = Mutex::new((0, 0));
    let progress = || *done.lock().unwrap_or_else(PoisonError::into_inner);
    let measured = with_signs_of_life(cancel, send, progress, || {
        errand.measure(server, cancel, |progress| {
            if let Progress::Exchanges { done: now, of } = progress {
                *done.lock().unwrap_or_else(PoisonError::into_inner) = (now as u64, of as u64);
            }
        })
    });
    drop(turn);
    match measured {
        Ok(measured) => tell(measured, send),
        Err(error) => send(failed(&error)),
    }
}

fn failed(error: &EdgeError) -> Response {
    Response::LinkFailed {
        message: error.to_string(),
    }
}

/// All that was measured, and at last that this was all.
fn tell(measured: Measured, send: &impl Fn(Response) -> io::Result<()>) -> io::Result<()> {
    let end = Response::LinkMeasured {
        samples: measured.samples.len() as u64,
        intervals: measured.traces.len() as u64,
        connections: measured.connections,
        server_program: measured.server_program,
    };
    for samples in measured.samples.chunks(SAMPLES_AT_ONCE) {
        let samples = samples.iter().cloned().map(Into::into).collect();
        send(Response::LinkSamples { samples })?;
    }
    for intervals in measured.traces.chunks(SAMPLES_AT_ONCE) {
        let intervals = intervals.iter().cloned().map(Into::into).collect();
        send(Response::LinkTraces { intervals })?;
    }
    send(end)
}
