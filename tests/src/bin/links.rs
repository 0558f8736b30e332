//! How well are planted links recovered? `links [shaped]` fits simulated transfers over links of known bandwidth and round
//! trip, 200 times each, and counts how often the 95 % intervals hold the truth; with `shaped` it also measures all of these links over the
//! real shaper, as `layerlab link measure` does, side by side (a quarter of an hour). Prints the tables of
//! tests/reports/links.md, and fails if a shaped link is off by more than 3 % or 3 ms.

#![expect(clippy::print_stdout, reason = "its tables are what it is for")]

use std::net::{Ipv4Addr, TcpListener};
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use layerlab_edge::{
    Cancel, Client, MeasurePlan, Patience, Server, ServerLimits, Shape, Shaper, Token, measure,
};
use layerlab_profiles::link::{LinkRow, TimedTransfer, fit};
use layerlab_profiles::{Bytes, Nanos};
use layerlab_tests::proof::table::markdown;
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

const MBITS: [u64; 5] = [1, 3, 5, 10, 36];
const ROUND_TRIPS_MS: [u64; 3] = [75, 100, 150];
const RUNS: u64 = 200;
/// The promise: a share of the bandwidth, and milliseconds of the round trip.
const BANDWIDTH_WITHIN: f64 = 0.03;
const ROUND_TRIP_WITHIN_MS: f64 = 3.0;

/// What makes times differ from the truth.
#[derive(Clone, Copy)]
struct Noise {
    name: &'static str,
    /// A share of the time.
    share: f64,
    /// The same for all sizes, in ns.
    constant_ns: f64,
    /// How many transfers take half as long again.
    slow: f64,
    /// The same for all transfers of a connection, in ns.
    connection_ns: f64,
}

const NOISES: [Noise; 5] = [
    Noise {
        name: "1 % of the time",
        share: 0.01,
        constant_ns: 0.0,
        slow: 0.0,
        connection_ns: 0.0,
    },
    Noise {
        name: "1 ms",
        share: 0.0,
        constant_ns: 1e6,
        slow: 0.0,
        connection_ns: 0.0,
    },
    Noise {
        name: "0.5 % and 0.5 ms",
        share: 0.005,
        constant_ns: 5e5,
        slow: 0.0,
        connection_ns: 0.0,
    },
    Noise {
        name: "1 %, and one in twenty takes half as long again",
        share: 0.01,
        constant_ns: 0.0,
        slow: 0.05,
        connection_ns: 0.0,
    },
    Noise {
        name: "1 % of the time, and 1 ms between connections",
        share: 0.01,
        constant_ns: 0.0,
        slow: 0.0,
        connection_ns: 1e6,
    },
];

fn links() -> impl Iterator<Item = (u64, u64)> {
    MBITS
        .into_iter()
        .flat_map(|mbit| ROUND_TRIPS_MS.map(|millis| (mbit, millis)))
}

fn normal(rng: &mut ChaCha8Rng) -> f64 {
    // Box and Muller.
    let radius = (-2.0 * (1.0 - rng.random::<f64>()).ln()).sqrt();
    radius * (std::f64::consts::TAU * rng.random::<f64>()).cos()
}

fn transfers(mbit: u64, millis: u64, noise: Noise, seed: u64) -> Vec<TimedTransfer> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let plan = MeasurePlan::default();
    let repeats = plan.repeats as usize;
    let connections = plan.connections;
    let differences: Vec<f64> = (0..connections)
        .map(|_| noise.connection_ns * normal(&mut rng))
        .collect();
    let sizes = plan
        .sizes
        .iter()
        .flat_map(|&it| (0..repeats).map(move |place| (it, place as u32 % connections)));
    let transfer = |(size, connection): (u64, u32)| {
        let time = millis as f64 * 1e6
            + size as f64 * 8e3 / mbit as f64
            + differences[connection as usize];
        let mut noisy = time * (1.0 + noise.share * normal(&mut rng));
        noisy += noise.constant_ns * normal(&mut rng);
        if rng.random::<f64>() < noise.slow {
            noisy *= 1.5;
        }
        TimedTransfer {
            bytes: Bytes::from_bytes(size),
            duration: Nanos::from_nanos(noisy.max(0.0).round() as u64),
            connection,
        }
    };
    sizes.map(transfer).collect()
}

/// A row of the table of simulated transfers.
fn simulated(mbit: u64, millis: u64, noise: Noise) -> Vec<String> {
    let (mut held, mut worst) = ([0, 0], [0.0_f64, 0.0]);
    let connections = MeasurePlan::default().connections;
    for seed in 0..RUNS {
        let found =
            fit(&transfers(mbit, millis, noise, seed), connections).expect("fifty transfers");
        let (bps, nanos) = (mbit * 1_000_000, (millis * 1_000_000) as i64);
        let bandwidth = found.bandwidth_ci95_bps;
        held[0] += u64::from(bandwidth.is_some_and(|(low, high)| (low..=high).contains(&bps)));
        let trip = found.round_trip.ci95;
        let trip = trip.map(|(low, high)| low.as_nanos()..=high.as_nanos());
        held[1] += u64::from(trip.is_some_and(|trip| trip.contains(&nanos)));
        let off = found.bandwidth_bps as f64 / bps as f64 - 1.0;
        worst[0] = worst[0].max(100.0 * off.abs());
        let off = found.round_trip.value.as_nanos() - nanos;
        worst[1] = worst[1].max(off.abs() as f64 / 1e6);
    }
    let percent = |held: u64| format!("{:.1}", 100.0 * held as f64 / RUNS as f64);
    vec![
        noise.name.to_owned(),
        format!("{mbit} Mbit/s, {millis} ms"),
        percent(held[0]),
        percent(held[1]),
        format!("{:.2}", worst[0]),
        format!("{:.2}", worst[1]),
    ]
}

/// The rows of a link that is measured over the real shaper, and whether both are as good as promised.
fn shaped(server: &Server, token: &Token, mbit: u64, millis: u64) -> (Vec<Vec<String>>, bool) {
    let shape = Shape {
        bandwidth_bps: mbit * 1_000_000,
        round_trip: Duration::from_millis(millis),
        cuts: None,
    };
    let shaper = Shaper::start(server.address(), shape).expect("a port");
    let address = shaper.address().to_string();
    let connect = || Client::connect(&address, token, "links", Patience::default());
    let plan = MeasurePlan {
        seed: mbit * 1_000 + millis,
        ..MeasurePlan::default()
    };
    let measured = measure(connect, &address, &plan, &Cancel::default(), |_| {}).expect("a server");
    let rows = LinkRow::all(&measured.samples, plan.connections).expect("fifty transfers each way");
    let mut is_good = true;
    let row = |row: LinkRow| {
        let fit = row.fit;
        let bandwidth = fit.bandwidth_bps as f64 / 1e6;
        let off = bandwidth / mbit as f64 - 1.0;
        let trip = fit.round_trip.value.as_nanos() as f64 / 1e6;
        let off_ms = trip - millis as f64;
        is_good &= off.abs() <= BANDWIDTH_WITHIN && off_ms.abs() <= ROUND_TRIP_WITHIN_MS;
        let between = fit
            .bandwidth_ci95_bps
            .map_or_else(String::new, |(low, high)| {
                format!("{:.4} to {:.4}", low as f64 / 1e6, high as f64 / 1e6)
            });
        let trips = fit.round_trip.ci95.map_or_else(String::new, |(low, high)| {
            format!(
                "{:.2} to {:.2}",
                low.as_nanos() as f64 / 1e6,
                high.as_nanos() as f64 / 1e6
            )
        });
        vec![
            format!("{mbit} Mbit/s, {millis} ms"),
            row.direction.to_string(),
            format!("{bandwidth:.4}"),
            between,
            format!("{:+.2}", 100.0 * off),
            format!("{trip:.2}"),
            trips,
            format!("{off_ms:+.2}"),
            format!("{:.2}", row.echo.value.as_nanos() as f64 / 1e6),
            format!("{}", fit.residual_percent),
        ]
    };
    (rows.into_iter().map(row).collect(), is_good)
}

fn main() -> ExitCode {
    println!("## Simulated transfers\n");
    println!(
        "Share of {RUNS} runs, each with other noise, whose 95 % interval holds the truth, and the largest error of any.\n"
    );
    let simulated = NOISES
        .into_iter()
        .flat_map(|noise| links().map(move |(mbit, millis)| simulated(mbit, millis, noise)));
    let head = [
        "noise",
        "link",
        "B held, %",
        "L held, %",
        "B off, %",
        "L off, ms",
    ];
    println!("{}", markdown(&head, &simulated.collect::<Vec<_>>()));
    if std::env::args().nth(1).as_deref() != Some("shaped") {
        return ExitCode::SUCCESS;
    }

    let token = Token::random();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let program = "links".to_owned();
    let limits = ServerLimits::default();
    let server = Server::start(listener, token.clone(), program, limits).expect("a thread");
    let measured: Vec<(Vec<Vec<String>>, bool)> = thread::scope(|threads| {
        let one = |(mbit, millis)| {
            let (server, token) = (&server, &token);
            threads.spawn(move || shaped(server, token, mbit, millis))
        };
        let all: Vec<_> = links().map(one).collect();
        all.into_iter()
            .map(|it| it.join().expect("no panic"))
            .collect()
    });
    println!("## Over the real shaper\n");
    println!("One full measurement of each link, all at once on one machine.\n");
    let head = [
        "link",
        "direction",
        "B, Mbit/s",
        "95 %",
        "off, %",
        "L, ms",
        "95 %",
        "off, ms",
        "echo, ms",
        "residual, %",
    ];
    let rows: Vec<Vec<String>> = measured.iter().flat_map(|(rows, _)| rows.clone()).collect();
    println!("{}", markdown(&head, &rows));
    match measured.iter().all(|(_, is_good)| *is_good) {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}
