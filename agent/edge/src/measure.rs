//! Measuring a link: many exchanges in random order on one connection.

use std::time::{Duration, Instant};

use layerlab_profiles::Bytes;
use layerlab_profiles::link::{
    Exchange, FitError, LinkDirection, LinkMethod, LinkRow, LinkSample, TraceInterval,
};
use rand::SeedableRng as _;
use rand::seq::SliceRandom as _;
use rand_chacha::ChaCha8Rng;

use crate::cancel::Cancel;
use crate::client::{Answer, Client};
use crate::error::EdgeError;
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
    /// What the order of all exchanges is drawn from.
    pub seed: u64,
    /// How long a trace is recorded each way, if one is.
    pub trace: Option<Duration>,
    /// How often a lost connection is made again.
    pub reconnections: u32,
}

impl Default for MeasurePlan {
    fn default() -> MeasurePlan {
        MeasurePlan {
            sizes: vec![16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20],
            repeats: 10,
            echoes: 200,
            seed: 0,
            trace: None,
            // A link that is lost more often than once in ten seconds is no link to plan with.
            reconnections: 10,
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
            seed: self.seed,
        }
    }

    /// All exchanges in their random order.
    fn exchanges(&self) -> Vec<(Exchange, u64)> {
        let mut all = vec![(Exchange::Echo, ECHO_BYTES); self.echoes as usize];
        for direction in LinkDirection::ALL {
            for &size in &self.sizes {
                let one = (Exchange::from(direction), size);
                all.extend(std::iter::repeat_n(one, self.repeats as usize));
            }
        }
        all.shuffle(&mut ChaCha8Rng::seed_from_u64(self.seed));
        all
    }
}

/// Measures as `plan` says, on connections that `connect` makes: one, and another for each that is lost. A lost exchange is
/// done again; none is counted twice. `cancel` ends it at once, whatever it waits for.
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
        made: 1,
        most: plan.reconnections.saturating_add(1),
        cancel,
    };
    line.warm()?;
    let exchanges = plan.exchanges();
    let mut samples = Vec::with_capacity(exchanges.len());
    for (place, &(exchange, bytes)) in (0_u32..).zip(&exchanges) {
        let of = exchanges.len();
        let done = samples.len();
        progress(Progress::Exchanges { done, of });
        let (connection, answer) = line.exchange(exchange, bytes)?;
        samples.push(LinkSample {
            exchange,
            index: place,
            connection,
            bytes: Bytes::from_bytes(bytes),
            started: answer.started.duration_since(began).into(),
            duration: answer.duration.into(),
            server: answer.server,
        });
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
    let rows = LinkRow::all(samples)?;
    let row = rows.iter().find(|row| row.direction == direction);
    let carried = row.map_or(0.0, |row| {
        let round_trip = row.fit.round_trip.value.as_nanos().max(0);
        row.fit.bandwidth_bps as f64 / 8e9 * round_trip as f64
    });
    let window = (carried as u64).saturating_mul(WINDOWS);
    Ok(window.clamp(SMALLEST_WINDOW, LARGEST_WINDOW))
}

/// A client that is replaced when its connection is lost.
struct Connected<'a, C> {
    client: Client,
    connect: C,
    address: &'a str,
    made: u32,
    most: u32,
    cancel: &'a Cancel,
}

impl<C: Fn() -> Result<Client, EdgeError>> Connected<'_, C> {
    /// The first exchange of a connection is slower than others; it is not counted.
    fn warm(&mut self) -> Result<(), EdgeError> {
        self.again_when_lost(|client| client.echo()).map(|_| ())
    }

    /// One exchange, and the connection that it was done on.
    fn exchange(&mut self, exchange: Exchange, bytes: u64) -> Result<(u32, Answer), EdgeError> {
        let answer = self.again_when_lost(|client| match exchange {
            Exchange::Echo => client.echo(),
            Exchange::Upload => client.sink(bytes),
            Exchange::Download => client.source(bytes),
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

    fn connect_again(&mut self) -> Result<(), EdgeError> {
        loop {
            if self.made >= self.most {
                return Err(EdgeError::LostTooOften {
                    address: self.address.to_owned(),
                    times: self.made,
                });
            }
            let connected = (self.connect)();
            self.made += 1;
            let warm = connected.and_then(|mut client| client.echo().map(|_| client));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exchanges_are_those_of_the_plan_in_an_order_of_the_seed() {
        let plan = MeasurePlan::default();
        let all = plan.exchanges();
        assert_eq!(all.len(), 200 + 2 * 5 * 10);
        assert_eq!(all, plan.exchanges());
        let other = MeasurePlan { seed: 1, ..plan };
        assert_ne!(all, other.exchanges());
        let sorted = |mut all: Vec<(Exchange, u64)>| {
            all.sort_unstable();
            all
        };
        assert_eq!(sorted(all), sorted(other.exchanges()));
    }
}
