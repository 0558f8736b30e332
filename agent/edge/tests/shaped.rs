//! The shaper: a cut connection costs a sample's time and no sample, and none is faster than the shape allows.

#![allow(clippy::unwrap_used)]

mod common;
#[path = "common/shaping.rs"]
mod shaping;

use std::collections::BTreeSet;
use std::thread;
use std::time::Duration;

use common::{connect, patience, server, token};
use layerlab_edge::{Client, Cuts, MeasurePlan, ServerLimits, Shape, Shaper};
use layerlab_profiles::link::LinkRow;
use shaping::{measured, shaper};

/// Fifty connections that are cut somewhere: nothing hangs, and every sample is there once.
#[test]
fn fifty_cuts_leave_no_sample_out_and_double_none() {
    let server = server(ServerLimits::default());
    let cuts = Cuts {
        mean_bytes: 150_000,
        seed: 5,
    };
    let shaper = shaper(&server, 400_000_000, 1, Some(cuts));
    let plan = MeasurePlan {
        sizes: vec![8 << 10, 64 << 10],
        repeats: 60,
        echoes: 60,
        reconnections: 1_000,
        ..MeasurePlan::default()
    };
    let measured = measured(shaper.address(), &plan).unwrap();
    assert!(measured.connections > 50, "{}", measured.connections);
    let indices: BTreeSet<u32> = measured.samples.iter().map(|sample| sample.index).collect();
    assert_eq!(indices.len(), 60 + 2 * 2 * 60);
    assert_eq!(indices.len(), measured.samples.len());
    for pair in measured.samples.windows(2) {
        assert!(pair[0].started + pair[0].duration <= pair[1].started);
        assert!(pair[0].connection <= pair[1].connection);
    }
    LinkRow::all(&measured.samples, plan.connections).unwrap();
}

#[test]
fn a_link_that_is_always_cut_is_given_up() {
    let server = server(ServerLimits::default());
    let cuts = Cuts {
        mean_bytes: 20_000,
        seed: 5,
    };
    let shaper = shaper(&server, 400_000_000, 1, Some(cuts));
    let said = measured(shaper.address(), &MeasurePlan::default())
        .err()
        .unwrap()
        .to_string();
    assert!(said.contains("lost 11 times"), "{said}");
}

/// The same seed cuts at the same byte.
#[test]
fn cuts_are_drawn_from_the_seed() {
    let carried = |seed| {
        let server = server(ServerLimits::default());
        let cuts = Cuts {
            mean_bytes: 500_000,
            seed,
        };
        let shaper = shaper(&server, 1_000_000_000, 0, Some(cuts));
        let mut client = connect(shaper.address()).unwrap();
        // A few bytes at a time, so that where it is cut does not depend on how the system joins them.
        (0..).take_while(|_| client.echo().is_ok()).count()
    };
    assert_eq!(carried(1), carried(1));
    assert_ne!(carried(1), carried(2));
}

#[test]
fn what_stands_behind_the_shaper_and_is_not_there_is_a_lost_connection() {
    let gone = {
        let server = server(ServerLimits::default());
        server.address()
    };
    let shape = Shape {
        bandwidth_bps: 1_000_000,
        round_trip: Duration::ZERO,
        cuts: None,
    };
    let shaper = Shaper::start(gone, shape).unwrap();
    let by_way_of = [shaper.address()];
    let error = Client::connect_by_way_of(&by_way_of, "phone:1", &token(), "test 1", patience());
    let said = error.err().unwrap().to_string();
    assert!(
        said.contains("phone:1 was lost while saying hello"),
        "{said}"
    );
}

/// Many at once: none is faster than the shape allows.
#[test]
fn each_of_many_connections_is_slowed_down() {
    let server = server(ServerLimits::default());
    let shaper = shaper(&server, 20_000_000, 20, None);
    thread::scope(|threads| {
        let one = || connect(shaper.address()).unwrap().sink(100_000).unwrap();
        let all: Vec<_> = (0..8).map(|_| threads.spawn(one)).collect();
        for answer in all {
            // 40 ms of bytes and 20 ms of round trip.
            let duration = answer.join().unwrap().duration;
            assert!(duration >= Duration::from_millis(60), "{duration:?}");
        }
    });
}
