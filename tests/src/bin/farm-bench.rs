//! What the farm costs, on virtual phones: `farm-bench push` sends one large file with `adb push` and
//! with layerlab in turns, `farm-bench phones [COUNT]` profiles on many phones at once in one process,
//! `farm-bench busy [SAMPLES]` says what phones do with their time in a job, `farm-bench cable [TURNS]` how soon it is seen
//! that a phone goes and comes. Prints Markdown tables.

#![expect(clippy::print_stdout, reason = "its tables are what it is for")]

#[path = "farm-bench/busy.rs"]
mod busy;
#[path = "farm-bench/cable.rs"]
mod cable;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use layerlab_agent::files::Files;
use layerlab_campaign::{InOut, KnownJournal, ModelFile, TimesSettings, measure_times};
use layerlab_farm::adb::{Content, Fleet, Phone, Prover, Server};
use layerlab_farm::{AdbLink, Policy};
use layerlab_profiles::Nanos;
use layerlab_profiles::design::Design;
use layerlab_profiles::design::over_budget::OverBudget;
use layerlab_protocol::{Entry, Event};
use layerlab_tests::farm::Farm;
use layerlab_tests::interposer::Interposer;
use layerlab_tests::process_usage::ProcessUsage;
use layerlab_tests::proof::table::markdown;
use layerlab_tests::virtual_phone::VirtualPhone;
use layerlab_tests::{in_real_time, model, succeed};
use rand::{RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;
use tokio::task::JoinSet;

/// The size of a large model.
const FILE_BYTES: usize = 200_000_000;

/// How often each way is taken.
const TURNS: usize = 20;

/// What adb's file is called on the phone; layerlab's has its hash for a name.
const BY_ADB: &str = "by-adb";

/// As many phones as one host has USB for.
const PHONES: usize = 32;

/// The idle time before each inference: a phone then gives some forty samples a second.
const GAP: Nanos = Nanos::from_micros(20_000);

/// Without the tools of virtual phones there is nothing to measure.
const UNAVAILABLE: u8 = 69;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let what = arguments.next().unwrap_or_default();
    let count = arguments.next().and_then(|count| count.parse().ok());
    let Some(farm) = Farm::new() else {
        return ExitCode::from(UNAVAILABLE);
    };
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    match what.as_str() {
        "push" => runtime.block_on(push(&farm)),
        "phones" => runtime.block_on(phones(&farm, count.unwrap_or(PHONES))),
        "busy" => busy::busy(&farm, count.unwrap_or(busy::SAMPLES)),
        "cable" => runtime.block_on(cable::cable(&farm, count.unwrap_or(cable::TURNS))),
        _ => {
            println!(
                "farm-bench push | farm-bench phones [COUNT] | farm-bench busy [SAMPLES] | farm-bench cable [TURNS]"
            );
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}

// -- one large file ----------------------------------------------------------------------------------------------------

async fn push(farm: &Farm) {
    // Of random bytes, like weights: nothing in it can be compressed.
    let mut bytes = vec![0; FILE_BYTES];
    ChaCha8Rng::seed_from_u64(200).fill_bytes(&mut bytes);
    let path = farm.path("file");
    std::fs::write(&path, &bytes).expect("room");
    let content = Content::new(&bytes);

    let virtual_phone = farm.phone("P1");
    let fleet = Fleet::open(&farm.settings()).await;
    let found = fleet.find(&virtual_phone.address).await.expect("a phone");
    let phone = Phone::new(&found.route, &found.row).expect("it is ready");

    let (mut by_adb, mut plain, mut adb_hash) = (Vec::new(), Vec::new(), Vec::new());
    let (mut pushes, mut transfers, mut proofs) = (Vec::new(), Vec::new(), Vec::new());
    for turn in 0..TURNS * 3 {
        // Models are new to a phone when they are sent. Replacing a file takes its file system a tenth of a second more.
        for name in [BY_ADB, content.sha256()] {
            let _ = std::fs::remove_file(virtual_phone.storage().join(name));
        }
        // In turns, since a machine's speed drifts; and each in each place of a turn.
        match (turn + turn / 3) % 3 {
            0 => {
                by_adb.push(seconds(|| adb_push(farm, &virtual_phone, &path, &[])));
                adb_hash.push(seconds(|| adb_sha256(farm, &virtual_phone)));
            }
            1 => plain.push(seconds(|| adb_push(farm, &virtual_phone, &path, &["-Z"]))),
            _ => {
                let to = format!("/data/local/tmp/{}", content.sha256());
                let begin = Instant::now();
                let pushed = phone.push(&content, &to, 0o600, Prover::Agent).await;
                pushes.push(begin.elapsed().as_secs_f64());
                transfers.push(pushed.expect("pushed").transfer.as_secs_f64());
                // By the agent's code, which has never seen the file.
                let files = Files::open(&virtual_phone.storage()).expect("a folder");
                proofs.push(seconds(|| files.prove(content.sha256()).expect("as sent")));
            }
        }
    }

    println!("{FILE_BYTES} bytes to a virtual phone, {TURNS} times each way, in turns\n");
    let row = |what: &str, times: &[f64]| {
        let (median, least, most) = (median(times), quantile(times, 0.0), quantile(times, 1.0));
        let numbers = [median, least, most].map(|seconds| format!("{seconds:.3}"));
        let speed = format!("{:.0}", FILE_BYTES as f64 / 1e6 / median);
        std::iter::once(what.to_owned())
            .chain(numbers)
            .chain([speed])
            .collect()
    };
    let (adb_and_hash, both) = (sums(&by_adb, &adb_hash), sums(&pushes, &proofs));
    let rows: [Vec<String>; 7] = [
        row("adb push", &by_adb),
        row("adb push -Z, without compression", &plain),
        row("adb push and adb shell sha256sum", &adb_and_hash),
        row("layerlab's push", &pushes),
        row("… of which the transfer", &transfers),
        row("the agent's proof, when it first uses the file", &proofs),
        row("layerlab's push and that proof", &both),
    ];
    let heads = ["way", "median s", "least s", "most s", "MB/s"];
    println!("{}", markdown(&heads, &rows));
    println!(
        "Medians of the turns' ratios: layerlab's push takes {:.2} of adb push and {:.2} of adb push -Z; with the proof \
         {:.2} of adb push, and {:.2} of adb push with a hash.",
        ratio(&pushes, &by_adb),
        ratio(&pushes, &plain),
        ratio(&both, &by_adb),
        ratio(&both, &adb_and_hash),
    );
    let again = again(farm, &virtual_phone).await;
    println!("Pushing again sends {again} bytes, which are questions.");
}

fn adb_push(farm: &Farm, phone: &VirtualPhone, path: &Path, options: &[&str]) {
    let mut command = farm.adb();
    command
        .args(["-s", &phone.address, "push"])
        .args(options)
        .arg(path);
    succeed(command.arg(format!("/data/local/tmp/{BY_ADB}")));
}

fn adb_sha256(farm: &Farm, phone: &VirtualPhone) {
    let mut command = farm.adb();
    command.args([
        "-s",
        &phone.address,
        "shell",
        &format!("sha256sum /data/local/tmp/{BY_ADB}"),
    ]);
    succeed(&mut command);
}

/// What goes to the phone, questions included, when a model is pushed that is there already.
async fn again(farm: &Farm, phone: &VirtualPhone) -> u64 {
    let bytes = std::fs::read(farm.path("file")).expect("a file");
    let sha256 = Content::new(&bytes).sha256().to_owned();
    let interposer = Interposer::before(farm.socket());
    let server = Server::given(interposer.address.to_string().parse().expect("an address")).into();
    let phone = Phone::find(&server, &phone.address).await.expect("a phone");
    let provision = farm.provision(&in_real_time("noisy"));
    let identity = phone.identity().await.expect("an answer");
    let installed = provision.install(&phone, &identity, "token").await;
    installed.expect("room for an agent");
    let push = async || {
        let before = interposer.sent();
        let pushed = provision.push_file(&phone, &sha256, &bytes);
        pushed.await.expect("room for a model");
        interposer.sent() - before
    };
    assert!(push().await > FILE_BYTES as u64);
    push().await
}

// -- many phones -------------------------------------------------------------------------------------------------------

async fn phones(farm: &Farm, count: usize) {
    let names: Vec<String> = (0..count).map(|number| format!("P{number}")).collect();
    let virtual_phones: Vec<VirtualPhone> = names.iter().map(|name| farm.phone(name)).collect();
    let model = ModelFile::open(&model("alexnet"), &Default::default()).expect("a model");
    let model = Arc::new(model);
    // Made once: it is stripped on the way.
    farm.agent();
    let before = ProcessUsage::own();
    let fleet = Fleet::open(&farm.settings()).await;
    let server = of_server(farm);
    let begin = Instant::now();
    let mut runs = JoinSet::new();
    for phone in &virtual_phones {
        let found = fleet.find(&phone.address).await.expect("a phone");
        let (state, provision) = (farm.state(), farm.provision(&in_real_time("noisy")));
        let model = Arc::clone(&model);
        runs.spawn(async move {
            let (serial, policy) = (&found.row.serial, Policy::default());
            let link = AdbLink::open(found.route, serial, provision, policy, &state).await;
            let mut samples = 0_u64;
            let mut count = |entry: &Entry| {
                samples += u64::from(matches!(entry.event, Event::Sample { .. }));
            };
            let link = link.expect("a phone that works");
            let journal = KnownJournal::fresh();
            let profile = measure_times(&link, &model, settings(), &journal, &mut count).await;
            profile.expect("a profile");
            samples
        });
    }
    let samples: u64 = runs.join_all().await.iter().sum();
    let wall = begin.elapsed();
    println!(
        "{count} virtual phones at once, {samples} samples of alexnet in {:.0} s\n",
        wall.as_secs_f64()
    );
    let row = |what: &str, before: &ProcessUsage, now: &ProcessUsage| {
        let cpu = now.cpu_s - before.cpu_s;
        let memory = now.peak_bytes as f64 - before.memory_bytes as f64;
        vec![
            what.to_owned(),
            format!("{cpu:.2}"),
            format!("{:.2}", 100.0 * cpu / wall.as_secs_f64() / count as f64),
            format!("{:.0}", 1e6 * cpu / samples as f64),
            format!("{:.1}", memory / 1e6),
            format!("{:.2}", memory / 1e6 / count as f64),
        ]
    };
    let rows = [
        row("daemon", &before, &ProcessUsage::own()),
        row("adb server", &server, &of_server(farm)),
    ];
    let heads = [
        "process",
        "CPU s",
        "% of a core per phone",
        "CPU µs per sample",
        "peak MB more",
        "MB per phone",
    ];
    println!("{}", markdown(&heads, &rows));
}

fn settings() -> TimesSettings {
    TimesSettings {
        design: Design::Grouped,
        samples_per_segment: 6,
        visits: TimesSettings::VISITS,
        gap: GAP,
        seed: 1,
        processors: Vec::new(),
        hygiene: layerlab_protocol::Hygiene {
            // So many phones on one machine are no steady devices.
            sentinel_tolerance_percent: 100_000,
            ..Default::default()
        },
        target: 0.02,
        budget: Nanos::ZERO,
        in_out: InOut::Symmetric,
        steady: None,
        energy: None,
        over_budget: OverBudget::Extend,
    }
}

fn of_server(farm: &Farm) -> ProcessUsage {
    let process = farm.server_process();
    ProcessUsage::of(process.trim()).expect("an adb server")
}

// -- arithmetic --------------------------------------------------------------------------------------------------------

fn seconds(work: impl FnOnce()) -> f64 {
    let begin = Instant::now();
    work();
    begin.elapsed().as_secs_f64()
}

fn sums(one: &[f64], other: &[f64]) -> Vec<f64> {
    std::iter::zip(one, other)
        .map(|(one, other)| one + other)
        .collect()
}

fn ratio(ours: &[f64], theirs: &[f64]) -> f64 {
    let ratios: Vec<f64> = std::iter::zip(ours, theirs)
        .map(|(ours, theirs)| ours / theirs)
        .collect();
    median(&ratios)
}

fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}

fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[((sorted.len() - 1) as f64 * share).round() as usize]
}
