//! Measuring a link: many exchanges in random order on a few connections.

use std::thread;
use std::time::{Duration, Instant};

use layerlab_profiles::Bytes;
use layerlab_profiles::link::{FitError, LinkDirection, LinkRow, LinkSample, TraceInterval};

use crate::cancel::Cancel;
use crate::client::{Answer, Client};
use crate::error::EdgeError;
use crate::plan::{MeasurePlan, Planned, TimedRequests};

/// A trace keeps so many times as much on its way as the link carries in a round trip, so that it never runs dry.
const WINDOWS: u64 = 2;

/// The least that a trace keeps on its way.
const SMALLEST_WINDOW: u64 = 64 << 10;

/// The most: what is on its way when a trace ends must still arrive.
const LARGEST_WINDOW: u64 = 8 << 20;

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

/// Measures as `plan` says, on connections that `connect` makes: those of the plan, and another for each that is lost. A lost
/// exchange is done again; none is counted twice. `cancel` ends it at once, or after the
/// rest in progress.
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
