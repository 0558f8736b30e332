//! Measuring a link: many exchanges in random order on a few connections.

use std::thread;
use std::time::{Duration, Instant};

use layerlab_profiles::Bytes;
use layerlab_profiles::link::{
    Exchange, FitError, LinkDirection, LinkMethod, LinkRow, LinkSample, RequestMethod,
    TraceInterval,
};
use rand::SeedableRng as _;
use rand::seq::SliceRandom as _;
use rand_chacha::ChaCha8Rng;

use crate::cancel::Cancel;
use crate::client::{Answer, Client};
use crate::error::EdgeError;
use crate::infer::{InferRequest, TensorShape, payload_bytes};
use crate::message::ECHO_BYTES;

/// A trace keeps so many times as much on its way as the link carries in a round trip, so that it never runs dry.
const WINDOWS: u64 = 2;

/// The least that a trace keeps on its way.
const SMALLEST_WINDOW: u64 = 64 << 10;

/// The most: what is on its way when a trace ends must still arrive.
const LARGEST_WINDOW: u64 = 8 << 20;

/// What is to be measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeasurePlan {
    /// The sizes of the transfers, each way, in bytes.
    pub sizes: Vec<u64>,
    /// How many transfers of each size, each way.
    pub repeats: u32,
    /// How many echoes.
    pub echoes: u32,
    /// How many connections share all exchanges evenly.
    pub connections: u32,
    /// The rest before each exchange: what has rested longer is slower to answer, a radio above all.
    pub gap: Duration,
    /// What the order of the exchanges on each connection is drawn from.
    pub seed: u64,
    /// How long a trace is recorded each way, if one is.
    pub trace: Option<Duration>,
    /// How often a lost connection is made again.
    pub reconnections: u32,
    /// The requests to run layers that are timed, too, if any are.
    pub requests: Option<TimedRequests>,
}

/// Requests to run layers on tensors of zeros, all the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimedRequests {
    /// How many.
    pub count: u32,
    /// The model's name.
    pub model: String,
    /// What the server runs, on one processor.
    pub asked: InferRequest,
    /// The tensors that come back.
    pub expected: Vec<TensorShape>,
}

impl TimedRequests {
    fn request_bytes(&self) -> u64 {
        self.asked.payload_bytes().unwrap_or(0)
    }

    /// What a document says of them.
    pub fn method(&self) -> RequestMethod {
        let processors = self.asked.stretches.iter().map(|it| it.processor.as_str());
        let model_sha256 = self.asked.model.iter();
        RequestMethod {
            count: self.count,
            model: self.model.clone(),
            model_sha256: model_sha256.map(|byte| format!("{byte:02x}")).collect(),
            first_layer: self.asked.first,
            last_layer: self.asked.last(),
            processor: processors.collect(),
            request_bytes: Bytes::from_bytes(self.request_bytes()),
            answer_bytes: Bytes::from_bytes(payload_bytes(&self.expected).unwrap_or(0)),
        }
    }
}

impl Default for MeasurePlan {
    fn default() -> MeasurePlan {
        MeasurePlan {
            sizes: vec![16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20],
            repeats: 10,
            echoes: 200,
            connections: 5,
            gap: Duration::ZERO,
            seed: 0,
            trace: None,
            // A link that is lost more often than once in ten seconds is no link to plan with.
            reconnections: 10,
            requests: None,
        }
    }
}

/// An exchange that is to be timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Planned<'a> {
    Echo,
    Transfer(LinkDirection, u64),
    Request(&'a TimedRequests),
}

impl Planned<'_> {
    fn exchange(self) -> Exchange {
        match self {
            Planned::Echo => Exchange::Echo,
            Planned::Transfer(direction, _) => direction.into(),
            Planned::Request(_) => Exchange::Request,
        }
    }

    /// What a sample says of its size.
    fn bytes(self) -> u64 {
        match self {
            Planned::Echo => ECHO_BYTES,
            Planned::Transfer(_, bytes) => bytes,
            Planned::Request(requests) => requests.request_bytes(),
        }
    }
}

/// What was measured.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Every exchange, in the order in which they were timed.
    pub samples: Vec<LinkSample>,
    /// The trace, upload first.
    pub traces: Vec<TraceInterval>,
    /// How many connections were made.
    pub connections: u32,
    /// What the server calls itself.
    pub server_program: String,
}

/// How far a measurement is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// So many of all exchanges are done.
    Exchanges {
        /// How many are done.
        done: usize,
        /// How many there are.
        of: usize,
    },
    /// A trace is being recorded.
    Trace(LinkDirection),
}

impl MeasurePlan {
    /// What a document says of it.
    pub fn method(&self) -> LinkMethod {
        LinkMethod {
            transfer_bytes: self.sizes.iter().map(|&it| Bytes::from_bytes(it)).collect(),
            repeats: self.repeats,
            echoes: self.echoes,
            echo_bytes: Bytes::from_bytes(ECHO_BYTES),
            connections: self.connections,
            gap_ns: self.gap.into(),
            seed: self.seed,
            requests: self.requests.as_ref().map(TimedRequests::method),
        }
    }

    /// The exchanges of each connection in their random order.
    fn exchanges<'a>(&'a self) -> Vec<Vec<Planned<'a>>> {
        let mut shares = vec![Vec::new(); self.connections.max(1) as usize];
        let mut share_out = |one: Planned<'a>, count: u32| {
            let connections = shares.len();
            for place in 0..count as usize {
                shares[place % connections].push(one);
            }
        };
        share_out(Planned::Echo, self.echoes);
        if let Some(requests) = &self.requests {
            share_out(Planned::Request(requests), requests.count);
        }
        for direction in LinkDirection::ALL {
            for &size in &self.sizes {
                share_out(Planned::Transfer(direction, size), self.repeats);
            }
        }
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        for share in &mut shares {
            share.shuffle(&mut rng);
        }
        shares
    }

    /// The size of transfers that are not counted, of those that are timed the middle one.
    fn warming_bytes(&self) -> u64 {
        let mut sizes = self.sizes.clone();
        sizes.sort_unstable();
        sizes.get(sizes.len() / 2).copied().unwrap_or(0)
    }
}

/// Measures as `plan` says, on connections that `connect` makes: those of the plan, and another for each that is lost. A lost
/// exchange is done again; none is counted twice. `cancel` ends it at once, or after the rest
/// in progress.
///
/// # Errors
/// When the server cannot be reached, answers something else, connections are lost too often, or it was cancelled.
pub fn measure(
    connect: impl Fn() -> Result<Client, EdgeError>,
    address: &str,
    plan: &MeasurePlan,
    cancel: &Cancel,
    progress: impl FnMut(Progress),
) -> Result<Measured, EdgeError> {
    let connect = || {
        let client = connect()?;
        client.cut_by(cancel)?;
        Ok(client)
    };
    let measured = measure_with(connect, address, plan, cancel, progress);
    // What it has a copy of would keep the connection open.
    cancel.release();
    match measured {
        // What was cut looks lost.
        Err(_) if cancel.is_cancelled() => Err(EdgeError::Cancelled {
            address: address.to_owned(),
        }),
        measured => measured,
    }
}

fn measure_with(
    connect: impl Fn() -> Result<Client, EdgeError>,
    address: &str,
    plan: &MeasurePlan,
    cancel: &Cancel,
    mut progress: impl FnMut(Progress),
) -> Result<Measured, EdgeError> {
    let began = Instant::now();
    let mut line = Connected {
        client: connect()?,
        connect,
        address,
        warming_bytes: plan.warming_bytes(),
        requests: plan.requests.as_ref(),
        made: 1,
        lost: 0,
        most_lost: plan.reconnections,
        cancel,
    };
    line.warm()?;
    let shares = plan.exchanges();
    let of = shares.iter().map(Vec::len).sum();
    let mut samples: Vec<LinkSample> = Vec::with_capacity(of);
    for (place, share) in shares.iter().enumerate() {
        if place > 0 {
            line.connect_anew()?;
        }
        for &planned in share {
            let done = samples.len();
            progress(Progress::Exchanges { done, of });
            thread::sleep(plan.gap);
            let (connection, answer) = line.exchange(planned)?;
            samples.push(LinkSample {
                exchange: planned.exchange(),
                index: done as u32,
                connection,
                bytes: Bytes::from_bytes(planned.bytes()),
                started: answer.started.duration_since(began).into(),
                duration: answer.duration.into(),
                server: answer.server,
            });
        }
    }
    let mut traces = Vec::new();
    if let Some(lasting) = plan.trace {
        for direction in LinkDirection::ALL {
            progress(Progress::Trace(direction));
            let window = window(&samples, direction).unwrap_or(SMALLEST_WINDOW);
            traces.extend(line.trace(direction, window, lasting)?);
        }
    }
    Ok(Measured {
        samples,
        traces,
        connections: line.made,
        server_program: line.client.server_program().to_owned(),
    })
}

/// What must be on its way at once for the link to be full.
fn window(samples: &[LinkSample], direction: LinkDirection) -> Result<u64, FitError> {
    let rows = LinkRow::all(samples, 1)?;
    let row = rows.iter().find(|row| row.direction == direction);
    let carried = row.map_or(0.0, |row| {
        let round_trip = row.fit.round_trip.value.as_nanos().max(0);
        row.fit.bandwidth_bps as f64 / 8e9 * round_trip as f64
    });
    let window = (carried as u64).saturating_mul(WINDOWS);
    Ok(window.clamp(SMALLEST_WINDOW, LARGEST_WINDOW))
}

/// A client that is replaced when its connection is lost, or has had its share.
struct Connected<'a, C> {
    client: Client,
    connect: C,
    address: &'a str,
    warming_bytes: u64,
    requests: Option<&'a TimedRequests>,
    made: u32,
    lost: u32,
    most_lost: u32,
    cancel: &'a Cancel,
}

impl<C: Fn() -> Result<Client, EdgeError>> Connected<'_, C> {
    /// The first exchanges of a connection are slower than others, for it finds out how much the link carries; these are not
    /// counted.
    fn warm(&mut self) -> Result<(), EdgeError> {
        let (bytes, requests) = (self.warming_bytes, self.requests);
        self.again_when_lost(|client| warm(client, bytes, requests))
    }

    /// Ends the connection and makes another.
    fn connect_anew(&mut self) -> Result<(), EdgeError> {
        let connected = (self.connect)();
        self.made += 1;
        match connected {
            Ok(client) => self.client = client,
            Err(error) if error.is_lost_connection() && !self.cancel.is_cancelled() => {
                return self.connect_again();
            }
            Err(error) => return Err(error),
        }
        self.warm()
    }

    /// One exchange, and the connection that it was done on.
    fn exchange(&mut self, planned: Planned<'_>) -> Result<(u32, Answer), EdgeError> {
        let answer = self.again_when_lost(|client| match planned {
            Planned::Echo => client.echo(),
            Planned::Transfer(LinkDirection::Upload, bytes) => client.sink(bytes),
            Planned::Transfer(LinkDirection::Download, bytes) => client.source(bytes),
            Planned::Request(requests) => client.have_layers_run(requests),
        })?;
        Ok((self.made - 1, answer))
    }

    fn trace(
        &mut self,
        direction: LinkDirection,
        window: u64,
        lasting: Duration,
    ) -> Result<Vec<TraceInterval>, EdgeError> {
        self.again_when_lost(|client| client.trace(direction, window, lasting))
    }

    fn again_when_lost<T>(
        &mut self,
        mut attempt: impl FnMut(&mut Client) -> Result<T, EdgeError>,
    ) -> Result<T, EdgeError> {
        loop {
            match attempt(&mut self.client) {
                Err(error) if self.cancel.is_cancelled() => return Err(error),
                Err(error) if error.is_lost_connection() => match self.connect_again() {
                    Ok(()) => {}
                    // That it was there, and was lost, says more than that it is not there.
                    Err(EdgeError::NotReached { .. }) => return Err(error),
                    Err(again) => return Err(again),
                },
                done => return done,
            }
        }
    }

    /// Makes another connection in the place of one that was lost.
    fn connect_again(&mut self) -> Result<(), EdgeError> {
        loop {
            if self.lost >= self.most_lost {
                return Err(EdgeError::LostTooOften {
                    address: self.address.to_owned(),
                    times: self.lost + 1,
                });
            }
            self.lost += 1;
            let connected = (self.connect)();
            self.made += 1;
            let warm = connected.and_then(|mut client| {
                warm(&mut client, self.warming_bytes, self.requests)?;
                Ok(client)
            });
            match warm {
                Err(error) if error.is_lost_connection() && !self.cancel.is_cancelled() => {}
                Err(error) => return Err(error),
                Ok(client) => {
                    self.client = client;
                    return Ok(());
                }
            }
        }
    }
}

fn warm(
    client: &mut Client,
    bytes: u64,
    requests: Option<&TimedRequests>,
) -> Result<(), EdgeError> {
    client.echo()?;
    client.sink(bytes)?;
    client.source(bytes)?;
    // The first has the server load the layers.
    if let Some(requests) = requests {
        client.have_layers_run(requests)?;
    }
    Ok(())
}

impl Client {
    fn have_layers_run(&mut self, requests: &TimedRequests) -> Result<Answer, EdgeError> {
        let bytes = usize::try_from(requests.request_bytes()).unwrap_or(0);
        let (asked, expected) = (requests.asked.clone(), &requests.expected);
        let (_, answer) = self.infer(asked, &vec![0; bytes], expected)?;
        Ok(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::infer::Stretch;

    #[test]
    fn exchanges_are_those_of_the_plan_in_an_order_of_the_seed() {
        let plan = MeasurePlan::default();
        let all = plan.exchanges();
        assert_eq!(all.len(), 5);
        assert_eq!(all, plan.exchanges());
        let other = MeasurePlan {
            seed: 1,
            ..MeasurePlan::default()
        };
        assert_ne!(all, other.exchanges());
        let sorted = |share: Vec<Planned<'_>>| {
            let kinds = share.into_iter().map(|it| (it.exchange(), it.bytes()));
            let mut kinds: Vec<(Exchange, u64)> = kinds.collect();
            kinds.sort_unstable();
            kinds
        };
        let first = sorted(all[0].clone());
        assert_eq!(first.len(), 40 + 2 * 5 * 2);
        for share in all.into_iter().chain(other.exchanges()) {
            assert_eq!(sorted(share), first);
        }
    }

    #[test]
    fn requests_are_shared_out_and_described_as_they_are_asked() {
        let requests = TimedRequests {
            count: 7,
            model: "alexnet".to_owned(),
            asked: InferRequest {
                model: [0xab; 32],
                first: 10,
                stretches: vec![Stretch {
                    last: 11,
                    processor: "cpu:all".to_owned(),
                }],
                tensors: vec![TensorShape(vec![1, 128])],
            },
            expected: vec![TensorShape(vec![1, 20])],
        };
        let plan = MeasurePlan {
            requests: Some(requests),
            ..MeasurePlan::default()
        };
        let shares = plan.exchanges();
        let counts = shares.iter().map(|share| {
            let requests = share.iter().filter(|it| it.exchange() == Exchange::Request);
            requests.map(|it| it.bytes()).collect::<Vec<u64>>()
        });
        let counts: Vec<Vec<u64>> = counts.collect();
        let lengths: Vec<usize> = counts.iter().map(Vec::len).collect();
        assert_eq!(lengths, [2, 2, 1, 1, 1]);
        assert!(counts.iter().flatten().all(|&bytes| bytes == 4 * 128));
        let method = plan.method().requests.expect("they are timed");
        assert_eq!(method.model_sha256, "ab".repeat(32));
        assert_eq!((method.first_layer, method.last_layer), (10, 11));
        assert_eq!(method.processor, "cpu:all");
        let bytes = [method.request_bytes, method.answer_bytes];
        assert_eq!(bytes.map(Bytes::as_bytes), [512, 80]);
    }

    #[test]
    fn what_cannot_be_shared_evenly_is_shared_as_evenly_as_can_be() {
        let plan = MeasurePlan {
            sizes: vec![8, 16],
            repeats: 3,
            echoes: 5,
            connections: 2,
            ..MeasurePlan::default()
        };
        let lengths: Vec<usize> = plan.exchanges().iter().map(Vec::len).collect();
        assert_eq!(lengths, [3 + 2 * 2 * 2, 2 + 2 * 2]);
    }
}
