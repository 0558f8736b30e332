//! What a link carries, from transfers whose truth is planted.

#![allow(clippy::unwrap_used)]

use layerlab_profiles::link::{
    Exchange, FitError, LinkDirection, LinkRow, LinkSample, Moved, MovedOneWay, ServerTimes,
    TimedTransfer, fit, half_width_ns, small_exchanges,
};
use layerlab_profiles::{Bytes, Nanos};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

const SIZES: [u64; 5] = [16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20];

/// A link with its truth.
#[derive(Clone, Copy, Debug)]
struct Planted {
    bandwidth_bps: f64,
    round_trip_ns: f64,
}

/// The links of the papers' sweeps.
fn sweep() -> impl Iterator<Item = Planted> {
    [1.0, 3.0, 5.0, 10.0, 36.0].into_iter().flat_map(|mbit| {
        [75.0, 100.0, 150.0].map(|millis| Planted {
            bandwidth_bps: mbit * 1e6,
            round_trip_ns: millis * 1e6,
        })
    })
}

/// What makes times differ: a share of the time, the same for all sizes, in ns, and the same for all of a connection, in ns.
#[derive(Clone, Copy, Debug, Default)]
struct Noise {
    share: f64,
    constant_ns: f64,
    connection_ns: f64,
}

/// What `transfers` are timed on.
const CONNECTIONS: u32 = 5;

fn normal(rng: &mut impl Rng) -> f64 {
    // Box and Muller.
    let radius = (-2.0 * (1.0 - rng.random::<f64>()).ln()).sqrt();
    radius * (std::f64::consts::TAU * rng.random::<f64>()).cos()
}

fn transfers(planted: Planted, noise: Noise, seed: u64) -> Vec<TimedTransfer> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let differences = [0; CONNECTIONS as usize].map(|_| noise.connection_ns * normal(&mut rng));
    let sizes = SIZES.iter().flat_map(|&size| [size; 10]);
    sizes
        .enumerate()
        .map(|(place, size)| {
            let connection = place as u32 % CONNECTIONS;
            let time = planted.round_trip_ns + size as f64 * 8e9 / planted.bandwidth_bps;
            let noisy = time * (1.0 + noise.share * normal(&mut rng));
            let noisy = noisy + noise.constant_ns * normal(&mut rng);
            let noisy = noisy + differences[connection as usize];
            TimedTransfer {
                bytes: Bytes::from_bytes(size),
                duration: Nanos::from_nanos(noisy.round().max(0.0) as u64),
                connection,
            }
        })
        .collect()
}

#[test]
fn without_noise_the_truth_comes_back_to_the_nanosecond() {
    let none = Noise {
        share: 0.0,
        constant_ns: 0.0,
        ..Noise::default()
    };
    for planted in sweep() {
        let found = fit(&transfers(planted, none, 0), 1).unwrap();
        let bandwidth = found.bandwidth_bps as f64;
        assert!(
            (bandwidth / planted.bandwidth_bps - 1.0).abs() < 1e-6,
            "{planted:?}: {found:?}"
        );
        let off = found.round_trip.value.as_nanos() as f64 - planted.round_trip_ns;
        assert!(off.abs() <= 2.0, "{planted:?}: {found:?}");
        assert!(found.residual_percent < 0.01 && !found.is_unsteady());
    }
}

#[test]
fn the_sweeps_links_are_recovered_within_3_percent_and_3_ms() {
    let noise = Noise {
        share: 0.005,
        constant_ns: 3e5,
        ..Noise::default()
    };
    for (seed, planted) in (0..).zip(sweep()) {
        let found = fit(&transfers(planted, noise, seed), 1).unwrap();
        let off = found.bandwidth_bps as f64 / planted.bandwidth_bps - 1.0;
        assert!(off.abs() <= 0.03, "{planted:?}: {found:?}");
        let off_ns = found.round_trip.value.as_nanos() as f64 - planted.round_trip_ns;
        assert!(off_ns.abs() <= 3e6, "{planted:?}: {found:?}");
    }
}

/// In 92 to 98 of 100 runs, each of which has other noise, whether it grows with the time or not, and whether connections
/// differ or not. Where they do, one connection would not tell.
#[test]
fn intervals_hold_the_truth_as_often_as_they_say() {
    const RUNS: u64 = 1000;
    let noises = [
        (0.01, 0.0, 0.0, 1),
        (0.0, 1e6, 0.0, 1),
        (0.005, 5e5, 0.0, 1),
        (0.01, 0.0, 0.0, CONNECTIONS),
        (0.005, 5e5, 0.0, CONNECTIONS),
        (0.005, 5e5, 1e6, CONNECTIONS),
    ];
    for (share, constant_ns, connection_ns, connections) in noises {
        let noise = Noise {
            share,
            constant_ns,
            connection_ns,
        };
        for planted in sweep().step_by(4) {
            let (mut bandwidths, mut round_trips) = (0, 0);
            for seed in 0..RUNS {
                let found = fit(&transfers(planted, noise, seed), connections).unwrap();
                let (low, high) = found.bandwidth_ci95_bps.unwrap();
                let bandwidth = low as f64..=high as f64;
                bandwidths += u64::from(bandwidth.contains(&planted.bandwidth_bps));
                let (low, high) = found.round_trip.ci95.unwrap();
                let round_trip = low.as_nanos() as f64..=high.as_nanos() as f64;
                round_trips += u64::from(round_trip.contains(&planted.round_trip_ns));
            }
            for held in [bandwidths, round_trips] {
                let percent = 100.0 * held as f64 / RUNS as f64;
                assert!(
                    (92.0..=98.0).contains(&percent),
                    "{percent} % of {planted:?}, {noise:?}"
                );
            }
        }
    }
}

/// What a request takes of both: half of L, and the bytes of one way. Within the sizes that were measured, and of L alone.
#[test]
fn times_made_of_both_are_as_sure_as_they_say() {
    const RUNS: u64 = 1000;
    let planted = Planted {
        bandwidth_bps: 5e6,
        round_trip_ns: 75e6,
    };
    let noise = Noise {
        share: 0.005,
        constant_ns: 5e5,
        ..Noise::default()
    };
    for bytes in [600, 150_000, 2_000_000] {
        let mut held = 0;
        for seed in 0..RUNS {
            let transfers = transfers(planted, noise, seed);
            let found = fit(&transfers, 1).unwrap();
            let time = |round_trip_ns: f64, bandwidth: f64| {
                round_trip_ns / 2.0 + bytes as f64 * 8e9 / bandwidth
            };
            let truth = time(planted.round_trip_ns, planted.bandwidth_bps);
            let round_trip = found.round_trip.value.as_nanos() as f64;
            let predicted = time(round_trip, found.bandwidth_bps as f64);
            let samples = uploads(&transfers);
            let half_width = half_width_ns(&samples, 1, &uploaded(0.5, bytes)).unwrap();
            held += u64::from((predicted - truth).abs() <= half_width);
            let (low, high) = found.round_trip.ci95.unwrap();
            let alone = half_width_ns(&samples, 1, &uploaded(1.0, 0)).unwrap();
            assert!((alone - (high - low).as_nanos() as f64 / 2.0).abs() <= 1.0);
        }
        let percent = 100.0 * held as f64 / RUNS as f64;
        assert!((92.0..=98.0).contains(&percent), "{percent} % at {bytes}");
    }
}

fn uploads(transfers: &[TimedTransfer]) -> Vec<LinkSample> {
    let sample = |(index, transfer): (u32, &TimedTransfer)| LinkSample {
        exchange: Exchange::Upload,
        index,
        connection: transfer.connection,
        bytes: transfer.bytes,
        started: Nanos::ZERO,
        duration: transfer.duration,
        server: ServerTimes::default(),
    };
    (0..).zip(transfers).map(sample).collect()
}

fn uploaded(round_trips: f64, bytes: u64) -> Moved {
    Moved {
        upload: MovedOneWay {
            round_trips,
            bytes: bytes as f64,
        },
        ..Moved::default()
    }
}

/// What is predicted of one more connection, which differs as those differed that were measured.
#[test]
fn a_time_on_one_more_connection_is_as_sure_as_it_says() {
    const RUNS: u64 = 1000;
    let planted = Planted {
        bandwidth_bps: 20e6,
        round_trip_ns: 75e6,
    };
    let noise = Noise {
        share: 0.001,
        constant_ns: 5e4,
        connection_ns: 5e5,
    };
    let bytes = 150_000;
    let (mut held, mut by_one) = (0, 0);
    for seed in 0..RUNS {
        let transfers = transfers(planted, noise, seed);
        let found = fit(&transfers, CONNECTIONS).unwrap();
        let other = noise.connection_ns * normal(&mut ChaCha8Rng::seed_from_u64(RUNS + seed));
        let sending = |bandwidth: f64| bytes as f64 * 8e9 / bandwidth;
        let truth = planted.round_trip_ns + other + sending(planted.bandwidth_bps);
        let predicted =
            found.round_trip.value.as_nanos() as f64 + sending(found.bandwidth_bps as f64);
        let held_by = |connections| {
            let moved = uploaded(1.0, bytes);
            let half_width = half_width_ns(&uploads(&transfers), connections, &moved).unwrap();
            u64::from((predicted - truth).abs() <= half_width)
        };
        held += held_by(CONNECTIONS);
        by_one += held_by(1);
    }
    let percent = 100.0 * held as f64 / RUNS as f64;
    assert!((92.0..=98.0).contains(&percent), "{percent} %");
    assert!(by_one < RUNS / 2, "as if they had been one: {by_one}");
}

/// Something smaller than all transfers takes what the smallest exchanges take, which is told by none of the transfers.
#[test]
fn something_small_is_as_sure_as_the_smallest_exchanges() {
    const RUNS: u64 = 1000;
    const ECHOES: u32 = 30;
    let spread_ns = 2e5;
    let moved = Moved {
        small_round_trips: 1.0,
        ..Moved::default()
    };
    let echoes = |rng: &mut ChaCha8Rng| -> Vec<LinkSample> {
        let connections = [0; CONNECTIONS as usize].map(|_| spread_ns * normal(rng));
        let echo = |index: u32| LinkSample {
            exchange: Exchange::Echo,
            index,
            connection: index % CONNECTIONS,
            bytes: Bytes::from_bytes(64),
            started: Nanos::ZERO,
            duration: {
                let other = connections[(index % CONNECTIONS) as usize];
                Nanos::from_nanos((75e6 + other + 2e4 * normal(rng)).round() as u64)
            },
            server: ServerTimes::default(),
        };
        (0..ECHOES).map(echo).collect()
    };
    let mut held = 0;
    for seed in 0..RUNS {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let samples = echoes(&mut rng);
        let found = small_exchanges(&samples).duration().unwrap();
        let truth = 75e6 + spread_ns * normal(&mut rng);
        let half_width = half_width_ns(&samples, CONNECTIONS, &moved).unwrap();
        held += u64::from((found.as_nanos() as f64 - truth).abs() <= half_width);
    }
    let percent = 100.0 * held as f64 / RUNS as f64;
    assert!((92.0..=98.0).contains(&percent), "{percent} %");

    // Requests to run layers count in the place of echoes where there are some.
    let mut samples = echoes(&mut ChaCha8Rng::seed_from_u64(0));
    let echo = small_exchanges(&samples);
    assert_eq!((echo.exchange, echo.durations.len()), (Exchange::Echo, 30));
    for sample in samples.iter_mut().take(10) {
        sample.exchange = Exchange::Request;
        sample.server.compute = Nanos::from_micros(7);
    }
    let requests = small_exchanges(&samples);
    assert_eq!(requests.exchange, Exchange::Request);
    assert_eq!(requests.durations.len(), 10);
    assert_eq!(requests.computed, vec![Nanos::from_micros(7); 10]);
    assert_eq!(requests.computed(), Some(Nanos::from_micros(7)));
    assert_eq!(small_exchanges(&[]).duration(), None);
}

/// Two connections with a transfer of each size tell what differs between connections, although one alone gives no fit.
#[test]
fn two_connections_tell_what_differs_between_them() {
    let planted = Planted {
        bandwidth_bps: 20e6,
        round_trip_ns: 75e6,
    };
    let noise = Noise {
        connection_ns: 5e6,
        ..Noise::default()
    };
    let transfers: Vec<TimedTransfer> = (transfers(planted, noise, 1).into_iter())
        .filter(|it| it.connection < 2)
        .enumerate()
        .filter_map(|(place, it)| (place % 4 < 2).then_some(it))
        .collect();
    assert_eq!(transfers.len(), 10);
    let of =
        |connections| half_width_ns(&uploads(&transfers), connections, &uploaded(1.0, 0)).unwrap();
    assert!(of(2) > 5.0 * of(1), "{} and {}", of(2), of(1));
}

/// One transfer in twenty takes half as long again: the estimate barely moves.
#[test]
fn a_few_slow_transfers_do_not_move_the_fit() {
    let planted = Planted {
        bandwidth_bps: 5e6,
        round_trip_ns: 75e6,
    };
    let noise = Noise {
        share: 0.005,
        constant_ns: 0.0,
        ..Noise::default()
    };
    let mut slow = transfers(planted, noise, 1);
    for transfer in slow.iter_mut().step_by(20) {
        let nanos = transfer.duration.as_nanos();
        transfer.duration = Nanos::from_nanos(nanos + nanos / 2);
    }
    let found = fit(&slow, 1).unwrap();
    assert!(
        (found.bandwidth_bps as f64 / 5e6 - 1.0).abs() < 0.01,
        "{found:?}"
    );
    assert!(
        (found.round_trip.value.as_nanos() as f64 - 75e6).abs() < 1e6,
        "{found:?}"
    );
    assert!(!found.is_unsteady(), "{found:?}");
}

#[test]
fn a_link_that_is_now_fast_and_now_slow_is_unsteady() {
    let noise = Noise {
        share: 0.0,
        constant_ns: 0.0,
        ..Noise::default()
    };
    let fast = transfers(
        Planted {
            bandwidth_bps: 8e6,
            round_trip_ns: 50e6,
        },
        noise,
        0,
    );
    let slow = transfers(
        Planted {
            bandwidth_bps: 3e6,
            round_trip_ns: 90e6,
        },
        noise,
        0,
    );
    let both = fast.into_iter().zip(slow).enumerate();
    let both = both.map(|(place, (fast, slow))| if place % 2 == 0 { fast } else { slow });
    let found = fit(&both.collect::<Vec<_>>(), 1).unwrap();
    assert!(found.is_unsteady(), "{found:?}");
}

#[test]
fn transfers_that_tell_nothing_are_refused() {
    let one = |bytes, millis| TimedTransfer {
        bytes: Bytes::from_bytes(bytes),
        duration: Nanos::from_millis(millis),
        connection: 0,
    };
    for few in [Vec::new(), vec![one(1, 1); 20], vec![one(1, 1), one(2, 2)]] {
        assert!(
            matches!(fit(&few, 1), Err(FitError::TooFew { .. })),
            "{few:?}"
        );
    }
    let backwards: Vec<_> = (1..20).map(|size| one(size * 1000, 100 - size)).collect();
    assert_eq!(fit(&backwards, 1), Err(FitError::NotLonger));
    let nothing: Vec<_> = (1..20).map(|size| one(size, 0)).collect();
    assert_eq!(fit(&nothing, 1), Err(FitError::NotLonger));
}

#[test]
fn the_order_of_transfers_does_not_matter() {
    let noise = Noise {
        share: 0.02,
        constant_ns: 1e5,
        ..Noise::default()
    };
    let planted = sweep().next().unwrap();
    let forwards = transfers(planted, noise, 3);
    let mut shuffled = forwards.clone();
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    for place in (1..shuffled.len()).rev() {
        shuffled.swap(place, rng.random_range(0..=place));
    }
    let (one, other) = (fit(&forwards, 1).unwrap(), fit(&shuffled, 1).unwrap());
    let off = one
        .round_trip
        .value
        .as_nanos()
        .abs_diff(other.round_trip.value.as_nanos());
    assert!(off <= 10, "{one:?}, {other:?}");
}

/// Each direction has its own transfers, and both the same echoes.
#[test]
fn directions_are_told_apart() {
    let mut samples = Vec::new();
    let mut add = |exchange, bytes, millis| {
        samples.push(LinkSample {
            exchange,
            index: samples.len() as u32,
            connection: 0,
            bytes: Bytes::from_bytes(bytes),
            started: Nanos::ZERO,
            duration: Nanos::from_millis(millis),
            server: ServerTimes::default(),
        });
    };
    for round in 0..4 {
        for kilobytes in [10, 100] {
            add(Exchange::Upload, kilobytes * 1000, 50 + kilobytes * 8);
            add(Exchange::Download, kilobytes * 1000, 50 + kilobytes * 2);
        }
        add(Exchange::Echo, 64, 51 + round);
    }
    let rows = LinkRow::all(&samples, 1).unwrap();
    let found: Vec<_> = rows
        .iter()
        .map(|row| (row.direction, row.fit.bandwidth_bps))
        .collect();
    assert_eq!(
        found,
        [
            (LinkDirection::Upload, 1_000_000),
            (LinkDirection::Download, 4_000_000)
        ]
    );
    for row in &rows {
        assert_eq!(row.fit.round_trip.value.as_nanos(), 50_000_000);
        assert_eq!(row.echo.value.as_nanos(), 52_500_000);
        assert_eq!(row.samples, 8);
    }
}
