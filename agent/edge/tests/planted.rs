//! What a shaped link is told to be is what is measured of it. These tests time what they do, so that they run one at a time,
//! and in a process of their own, beside which `cargo test` runs no other.

#![allow(clippy::unwrap_used)]

mod common;
#[path = "common/shaping.rs"]
mod shaping;

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use common::server;
use layerlab_edge::{MeasurePlan, ServerLimits};
use layerlab_profiles::Bytes;
use layerlab_profiles::link::{Exchange, LinkDirection, LinkRow, LinkSample};
use shaping::{measured, shaper};

/// How often a link is measured. A shaper or a fit that is wrong is wrong each time.
const ATTEMPTS: usize = 5;

/// These tests time what they do.
fn alone() -> MutexGuard<'static, ()> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Has what it is about measured until nothing is wrong with it.
fn holds(mut attempt: impl FnMut() -> Vec<String>) {
    let mut each_time = Vec::new();
    for _ in 0..ATTEMPTS {
        let wrong = attempt();
        if wrong.is_empty() {
            return;
        }
        each_time.push(wrong);
    }
    panic!("wrong in each of {ATTEMPTS} attempts: {each_time:#?}");
}

/// As many exchanges of each kind and size as `plan` has, the quickest there are: other work on this machine makes threads
/// wake up late, which is no part of the link.
fn quickest(plan: &MeasurePlan, samples: &[LinkSample]) -> Vec<LinkSample> {
    let mut sorted = samples.to_vec();
    sorted.sort_by_key(|sample| sample.duration);
    let mut counts: BTreeMap<(Exchange, Bytes), u32> = BTreeMap::new();
    sorted.retain(|sample| {
        let count = counts.entry((sample.exchange, sample.bytes)).or_default();
        *count += 1;
        let most = match sample.exchange {
            Exchange::Echo => plan.echoes,
            _ => plan.repeats,
        };
        *count <= most
    });
    sorted
}

/// What is wrong with what was measured of a link of so many Mbit/s and milliseconds.
fn wrong_of(mbit: u64, millis: u64, row: &LinkRow) -> Vec<String> {
    let mut wrong = Vec::new();
    let bandwidth = row.fit.bandwidth_bps as f64 / 1e6;
    if (bandwidth / mbit as f64 - 1.0).abs() > 0.03 {
        wrong.push(format!("{mbit} Mbit/s became {row:?}"));
    }
    for estimate in [row.fit.round_trip, row.echo] {
        let found = estimate.value.as_nanos() as f64 / 1e6;
        if (found - millis as f64).abs() > 3.0 {
            wrong.push(format!("{millis} ms became {row:?}"));
        }
    }
    if row.fit.is_unsteady() {
        wrong.push(format!("unsteady: {row:?}"));
    }
    wrong
}

/// Fewer and smaller transfers than `layerlab link measure` times; tests/reports/links.md has all links at full length.
fn recovered(mbit: u64, millis: u64) {
    let server = server(ServerLimits::default());
    let shaper = shaper(&server, mbit * 1_000_000, millis, None);
    let plan = MeasurePlan {
        sizes: vec![16 << 10, 64 << 10, 512 << 10],
        repeats: 4,
        echoes: 7,
        ..MeasurePlan::default()
    };
    let _alone = alone();
    let mut samples = Vec::new();
    holds(|| {
        samples.extend(measured(shaper.address(), &plan).unwrap().samples);
        let rows = LinkRow::all(&quickest(&plan, &samples), plan.connections).unwrap();
        assert_eq!(rows.len(), 2);
        rows.iter()
            .flat_map(|row| wrong_of(mbit, millis, row))
            .collect()
    });
}

#[test]
fn a_link_of_36_mbit_s_and_75_ms_is_recovered_within_3_percent_and_3_ms() {
    recovered(36, 75);
}

#[test]
fn a_link_of_10_mbit_s_and_100_ms_is_recovered_within_3_percent_and_3_ms() {
    recovered(10, 100);
}

#[test]
fn a_trace_counts_what_a_full_link_carries() {
    let server = server(ServerLimits::default());
    let shaper = shaper(&server, 8_000_000, 50, None);
    let plan = MeasurePlan {
        sizes: vec![16 << 10, 128 << 10],
        repeats: 3,
        echoes: 0,
        trace: Some(Duration::from_millis(1_500)),
        ..MeasurePlan::default()
    };
    let _alone = alone();
    holds(|| {
        let traces = measured(shaper.address(), &plan).unwrap().traces;
        let mut wrong = Vec::new();
        for direction in LinkDirection::ALL {
            let bytes = traces.iter().filter(|it| it.direction == direction);
            let bytes: Vec<u64> = bytes.map(|it| it.bytes.as_bytes()).collect();
            assert_eq!(bytes.len(), 15, "{direction}");
            // 8 Mbit/s are 100 kB in 100 ms; of them, 52 of each 4,168 are headers or acknowledgements.
            let all: u64 = bytes.iter().sum();
            if !(1_300_000..=1_500_000).contains(&all) {
                wrong.push(format!("{direction}: {bytes:?}"));
            }
        }
        wrong
    });
}
