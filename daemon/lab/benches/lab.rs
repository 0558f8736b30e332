//! What a decision of the lab costs with 10,000 queued jobs and 64 devices, and what it costs to open the store that holds
//! them. Prints the 99th percentile of decisions as they follow from one another, and the memory of it all.
#![allow(clippy::print_stdout, missing_docs)] // Criterion has no percentiles, and its macro no documentation.

use std::hint::black_box;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use jiff::{SignedDuration, Timestamp};
use layerlab_lab::config::Config;
use layerlab_lab::decide::decide;
use layerlab_lab::job::{JobSpec, ModelSpec, Selector};
use layerlab_lab::record::{Device, Kept, Spent};
use layerlab_lab::state::{LabState, Rules, StayOutcome};
use layerlab_lab::store::{Store, StorePlace};

const JOBS: usize = 10_000;
const DEVICES: usize = 64;

fn device(number: usize) -> Device {
    Device {
        name: format!("phone{number:02}"),
        serial: format!("phone{number:02}"),
        soc: Some(["kirin970", "sm8150", "tensor"][number % 3].to_owned()),
        abi: Some("arm64-v8a".to_owned()),
        android: Some(10 + number as u32 % 5),
        pools: if number < 32 {
            vec!["night".to_owned()]
        } else {
            Vec::new()
        },
        ..Device::default()
    }
}

/// The jobs differ in priority, window, devices and models, as those of many users do.
fn spec(number: usize) -> JobSpec {
    let selector = match number % 4 {
        0 => Selector {
            serial: Some(device(number / 4 % DEVICES).name),
            ..Selector::default()
        },
        1 => Selector {
            soc: Some("kirin970".to_owned()),
            ..Selector::default()
        },
        2 => Selector {
            android: Some(">= 12".parse().expect("a requirement")),
            ..Selector::default()
        },
        _ => Selector {
            pool: Some("night".to_owned()),
            ..Selector::default()
        },
    };
    let windows = [
        "22:00-07:00 Europe/Berlin",
        "always",
        "20:00-06:00 America/New_York, weekdays",
        "21:00-05:00 Asia/Kolkata",
    ];
    JobSpec {
        name: format!("job{number}"),
        models: vec![ModelSpec {
            name: "alexnet".to_owned(),
            sha256: format!("{number:064}"),
            ..ModelSpec::default()
        }],
        devices: vec![selector],
        repeats: 2,
        priority: (number % 3) as i32,
        window: Some(windows[number % 4].parse().expect("a window")),
        ..JobSpec::default()
    }
}

fn lab(now: Timestamp) -> LabState {
    let mut state = submitted(now);
    state.take_changes();
    state
}

/// With all changes still to be kept.
fn submitted(now: Timestamp) -> LabState {
    let mut state = LabState::new(Kept::default(), Rules::of(&Config::default()));
    state.devices((0..DEVICES).map(device).collect(), now);
    for number in 0..JOBS {
        state.submit(spec(number), true, now);
    }
    state
}

fn begin_all(state: &mut LabState, now: Timestamp) {
    for (run, device) in decide(state, now).start {
        state.begin(run, &device, now);
    }
    state.take_changes();
}

/// The median, the 99th percentile and the longest of some times.
fn percentiles(mut times: Vec<Duration>) -> [Duration; 3] {
    times.sort_unstable();
    let last = times.len() - 1;
    [times[last / 2], times[last * 99 / 100], times[last]]
}

fn peak_memory_mb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = peak.and_then(|peak| peak.trim().trim_end_matches(" kB").parse::<f64>().ok());
    kib.unwrap_or(f64::NAN) / 1024.0
}

fn decisions(criterion: &mut Criterion) {
    // All windows but Kolkata's are open.
    let now: Timestamp = "2026-11-20T02:00:00Z".parse().expect("an instant");
    let idle = lab(now);
    criterion.bench_function("decide: 10,000 jobs, 64 free devices", |bench| {
        bench.iter(|| decide(black_box(&idle), now));
    });
    let mut busy = lab(now);
    begin_all(&mut busy, now);
    criterion.bench_function("decide: 10,000 jobs, 64 busy devices", |bench| {
        bench.iter(|| decide(black_box(&busy), now));
    });

    // One run ends, and what follows is decided and begun: so the lab spends its night.
    let mut times = Vec::new();
    let mut at = now;
    for step in 0..5_000 {
        at += SignedDuration::from_secs(1);
        let name = device(step % DEVICES).name;
        let outcome = StayOutcome::Published {
            folder: PathBuf::from("/profiles/run"),
            findings: Vec::new(),
            verdict: None,
        };
        let began = Instant::now();
        busy.left(&name, outcome, Spent::default(), at);
        let decisions = decide(&busy, at);
        times.push(began.elapsed());
        for (run, device) in decisions.start {
            busy.begin(run, &device, at);
        }
        busy.take_changes();
    }
    let count = times.len();
    let [median, most, longest] = percentiles(times);
    println!(
        "one run ends and the next is chosen, {count} times: median {median:.2?}, 99th percentile {most:.2?}, longest \
         {longest:.2?}"
    );
    println!("peak memory of two such labs: {:.0} MB", peak_memory_mb());
}

fn opening(criterion: &mut Criterion) {
    let now: Timestamp = "2026-11-20T02:00:00Z".parse().expect("an instant");
    let folder = tempfile::tempdir().expect("a folder");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let (store, _) = Store::open(&StorePlace::in_folder(folder.path()))
            .await
            .expect("a store");
        let changes = submitted(now).take_changes();
        store.keep(changes).await.expect("room");
        store.close().await;
    });
    criterion.bench_function("open the store: 10,000 jobs", |bench| {
        bench.iter(|| {
            runtime.block_on(async {
                let (store, kept) = Store::open(&StorePlace::in_folder(folder.path()))
                    .await
                    .expect("a store");
                assert_eq!(kept.jobs.len(), JOBS);
                store.close().await;
            });
        });
    });
}

criterion_group!(benches, decisions, opening);
criterion_main!(benches);
