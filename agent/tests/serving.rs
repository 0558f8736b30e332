//! Conversations with the real agent over its socket, as PROTOCOL.md tells them.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use layerlab_model::Network;
use layerlab_profiles::{Nanos, Segment, sha256};
use layerlab_protocol::{
    Entry, Event, FailureKind, Hygiene, MAX_LINE_BYTES, MeasureLink, Order, Part, Refusal,
    Rejection, Request, Response, RunId, TimingSettings, VERSION, WarmUp, Work, decode, encode,
};

const TOKEN: &str = "a secret";

/// Nothing here takes this long; a test that waits longer has hung.
const DEADLINE: Duration = Duration::from_secs(120);

/// An agent with a state folder that outlives it.
struct Agent {
    folder: tempfile::TempDir,
    /// The device that it plays; none on this machine itself.
    device: Option<PathBuf>,
    process: Child,
}

impl Agent {
    fn start() -> Agent {
        let folder = tempfile::tempdir().expect("a folder");
        Agent::start_in(folder, tests().join("devices/noisy.toml"))
    }

    /// An agent whose NPU does not have an operator.
    fn start_without(operator: &str) -> Agent {
        Agent::start_with(&format!("unsupported_operators = [\"{operator}\"]"))
    }

    /// An agent whose NPU has this line, in the place of one of the same key.
    fn start_with(line: &str) -> Agent {
        let folder = tempfile::tempdir().expect("a folder");
        let text = std::fs::read_to_string(tests().join("devices/noisy.toml")).expect("a device");
        let key = line.split(" = ").next().expect("a key");
        let others = text.lines().filter(|other| !other.starts_with(key));
        let text = others.collect::<Vec<_>>().join("\n");
        let npu = "name = \"npu\"\n";
        assert!(text.contains(npu));
        let device = folder.path().join("other.toml");
        std::fs::write(&device, text.replace(npu, &format!("{npu}{line}\n"))).expect("room");
        Agent::start_in(folder, device)
    }

    fn start_in(folder: tempfile::TempDir, device: PathBuf) -> Agent {
        let process = spawn(folder.path(), &device);
        Agent {
            folder,
            device: Some(device),
            process,
        }
    }

    fn start_on_this_machine() -> Agent {
        let folder = tempfile::tempdir().expect("a folder");
        let mut program = Command::new(AGENT);
        program
            .env_remove("LAYERLAB_QNN")
            .env_remove("LAYERLAB_ONNXRUNTIME");
        let process = spawn_by(&mut program, folder.path(), None);
        Agent {
            folder,
            device: None,
            process,
        }
    }

    fn kill(&mut self) {
        self.process.kill().expect("it runs");
        self.process.wait().expect("it was started here");
    }

    fn restart(&mut self) {
        let device = self.device.as_ref().expect("a device to play");
        self.process = spawn(self.folder.path(), device);
    }

    /// Puts alexnet where the agent looks for it.
    fn push_model(&self) -> String {
        let path = tests().join("models/alexnet.onnx");
        let onnx = Network::open(&path, &Default::default())
            .expect("a model")
            .to_onnx();
        let sha256 = sha256(&onnx);
        let files = self.folder.path().join("files");
        std::fs::write(files.join(&sha256), onnx).expect("room");
        sha256
    }

    fn connect(&self) -> Talk {
        let stream = UnixStream::connect(self.folder.path().join("socket")).expect("it listens");
        stream.set_read_timeout(Some(DEADLINE)).expect("a timeout");
        Talk {
            reader: BufReader::new(stream.try_clone().expect("a copy")),
            stream,
        }
    }

    /// A connection on which hello was said.
    fn greet(&self) -> Talk {
        let mut talk = self.connect();
        let hello = talk.ask(&Request::Hello {
            protocol: VERSION,
            token: TOKEN.to_owned(),
        });
        assert!(matches!(hello, Response::Hello { .. }), "{hello:?}");
        talk
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // It may have ended by itself, as one test wants.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

const AGENT: &str = env!("CARGO_BIN_EXE_layerlab-agent");

fn spawn(folder: &Path, device: &Path) -> Child {
    spawn_by(&mut Command::new(AGENT), folder, Some(device))
}

/// An agent that `program` becomes.
fn spawn_by(program: &mut Command, folder: &Path, device: Option<&Path>) -> Child {
    let mut process = program
        .arg("serve")
        .arg(format!("--listen=unix:{}", folder.join("socket").display()))
        .arg("--state")
        .arg(folder)
        .args(device.map(|_| "--device"))
        .args(device)
        .env("LAYERLAB_AGENT_TOKEN", TOKEN)
        .stdout(Stdio::piped())
        .spawn()
        .expect("the agent starts");
    let mut line = String::new();
    let stdout = process.stdout.take().expect("a pipe");
    BufReader::new(stdout)
        .read_line(&mut line)
        .expect("it says that it listens");
    assert_eq!(line, "listening\n");
    process
}

fn tests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the root")
        .join("tests")
}

struct Talk {
    reader: BufReader<UnixStream>,
    stream: UnixStream,
}

impl Talk {
    fn say(&mut self, line: &str) {
        self.stream
            .write_all(line.as_bytes())
            .expect("the agent reads");
    }

    /// The agent's next line; `None` when it closed the connection.
    fn hear(&mut self) -> Option<Response> {
        let mut line = String::new();
        match self.reader.read_line(&mut line) {
            Ok(0) => None,
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => None,
            Ok(_) => Some(decode(&line).expect("a response")),
            Err(error) => panic!("nothing heard: {error}"),
        }
    }

    fn ask(&mut self, request: &Request) -> Response {
        self.say(&encode(request));
        self.hear().expect("an answer")
    }

    #[track_caller]
    fn is_refused(&mut self, line: &str, expected: Refusal) {
        self.say(line);
        match self.hear() {
            Some(Response::Refused { refusal, message }) => {
                assert_eq!(refusal, expected, "{message}");
            }
            other => panic!("not refused: {other:?}"),
        }
    }

    /// The entries of the run from the one after `after` to the first for which `is_last` holds.
    fn follow(&mut self, after: u64, is_last: impl Fn(&Entry) -> bool) -> Vec<Entry> {
        self.follow_run(&run(), after, is_last)
    }

    fn follow_run(
        &mut self,
        run: &RunId,
        after: u64,
        is_last: impl Fn(&Entry) -> bool,
    ) -> Vec<Entry> {
        self.say(&encode(&Request::Follow {
            run: run.clone(),
            after,
        }));
        let mut entries = Vec::new();
        loop {
            let Some(Response::Entry { entry, .. }) = self.hear() else {
                panic!("no entry")
            };
            let last = is_last(&entry);
            entries.push(entry);
            if last {
                return entries;
            }
        }
    }
}

fn run() -> RunId {
    RunId::new("talk").expect("a name")
}

fn timing(samples_per_segment: u64) -> TimingSettings {
    TimingSettings {
        samples_per_segment,
        gap_ns: Nanos::from_micros(1),
        warm_up: WarmUp::default(),
        hygiene: Hygiene::default(),
    }
}

fn order(number: u32, sha256: &str, segments: &[(u32, u32)]) -> Order {
    let segment = |&(first, last): &(u32, u32)| Segment::new(first, last).expect("a segment");
    Order {
        run: run(),
        number,
        model_sha256: sha256.to_owned(),
        quantised_sha256: None,
        processor: "npu".to_owned(),
        work: Work::TimeSegments {
            segments: segments.iter().map(segment).collect(),
            timing: timing(5),
        },
        seed: 1,
    }
}

fn submit(order: &Order) -> Request {
    Request::Submit {
        order: order.clone(),
    }
}

fn samples(entries: &[Entry]) -> Vec<(u32, u64, u64)> {
    let sample = |entry: &Entry| match entry.event {
        Event::Sample {
            index, duration_ns, ..
        } => Some((entry.order, index, duration_ns.as_nanos())),
        _ => None,
    };
    entries.iter().filter_map(sample).collect()
}

#[test]
fn only_a_hello_of_this_version_with_the_token_opens_a_conversation() {
    let agent = Agent::start();
    let hello = |protocol, token: &str| {
        encode(&Request::Hello {
            protocol,
            token: token.to_owned(),
        })
    };
    let cases = [
        (hello(VERSION + 1, TOKEN), Refusal::Version),
        (hello(VERSION, "a guess"), Refusal::Token),
        (encode(&Request::Ping), Refusal::Malformed),
        ("GET / HTTP/1.1\n".to_owned(), Refusal::Malformed),
    ];
    for (line, refusal) in cases {
        let mut talk = agent.connect();
        talk.is_refused(&line, refusal);
        assert_eq!(
            talk.hear(),
            None,
            "the connection ends after a refused hello"
        );
    }
    assert_eq!(agent.greet().ask(&Request::Ping), Response::Pong);
}

#[test]
fn what_is_wrong_in_a_conversation_is_refused_and_the_conversation_goes_on() {
    let agent = Agent::start();
    let mut talk = agent.greet();
    talk.is_refused("nonsense\n", Refusal::Malformed);
    talk.is_refused(
        "{\"type\":\"follow\",\"run\":\"../x\",\"after\":0}\n",
        Refusal::Malformed,
    );
    let unknown = order(1, &"ab".repeat(32), &[(1, 1)]);
    talk.is_refused(&encode(&submit(&unknown)), Refusal::UnknownModel);
    let path = order(1, "../../etc/passwd", &[(1, 1)]);
    talk.is_refused(&encode(&submit(&path)), Refusal::UnknownModel);
    assert_eq!(talk.ask(&Request::Ping), Response::Pong);
}

#[test]
fn noise_is_never_taken_for_heat() {
    let agent = Agent::start_with("noise_proportional_sigma = 0.08");
    let sha256 = agent.push_model();
    let (mut blocks, mut rejected) = (0, 0);
    for seed in 0..200 {
        let mut talk = agent.greet();
        let run = RunId::new(format!("noisy-{seed}")).expect("a name");
        for number in 1..=3 {
            let order = Order {
                run: run.clone(),
                // Blocks are numbered anew in each order: with one seed for all, their sentinels would have the same noise.
                seed: 3 * seed + u64::from(number),
                ..order(number, &sha256, &[(1, 2), (3, 3)])
            };
            let accepted = talk.ask(&submit(&order));
            assert!(
                matches!(accepted, Response::Accepted { .. }),
                "{accepted:?}"
            );
        }
        let is_over = |entry: &Entry| match &entry.event {
            Event::Failed { .. } => true,
            event => entry.order == 3 && event.is_final(),
        };
        let entries = agent.greet().follow_run(&run, 0, is_over);
        let last = entries.last().map(|entry| &entry.event);
        assert!(
            matches!(last, Some(Event::Finished)),
            "seed {seed}: {last:?}"
        );
        for entry in &entries {
            if let Event::BlockEnded { rejection, .. } = &entry.event {
                blocks += 1;
                rejected += u32::from(rejection.is_some());
            }
        }
    }
    assert!(blocks >= 600, "{blocks}");
    // Both ends of a block are judged, and each wrongly once in a thousand times at most.
    assert!(rejected <= 4, "{rejected} of {blocks}");
}

/// No rest and no other loading makes the device as fast as it was in the first order. That is heat where all loadings are alike,
/// and a fast first one where they differ as far.
#[test]
fn slower_loadings_are_heat_unless_they_differ_as_far() {
    for (visit_sigma, is_heat) in [(0.0, true), (0.1, false)] {
        // A spike among a sentinel's runs would leave it open whether the sentinel has moved.
        let mut agent = Agent::start_with("spike_probability = 0.0");
        let sha256 = agent.push_model();
        let finish = |agent: &Agent, number: u32| {
            let mut talk = agent.greet();
            talk.ask(&submit(&order(number, &sha256, &[(1, 2), (3, 3)])));
            let entries = talk.follow(0, |one| one.order == number && one.event.is_final());
            entries.last().map(|entry| entry.event.clone())
        };
        assert_eq!(finish(&agent, 1), Some(Event::Finished));
        agent.kill();
        let device = agent.device.clone().expect("a device to play");
        let text = std::fs::read_to_string(device).expect("a device");
        let slower = format!(
            "{text}\n[machine_noise]\nvisit_sigma = {visit_sigma}\n[[machine_noise.switching]]\n\
             slowdowns = [1.5, 1.5]\nmean_holds_ns = [1_000_000_000, 1_000_000_000]\n"
        );
        let device = agent.folder.path().join("slower.toml");
        std::fs::write(&device, slower).expect("room");
        agent.device = Some(device);
        agent.restart();
        let last = finish(&agent, 2);
        let failed = matches!(
            &last,
            Some(Event::Failed { failure }) if failure.kind == FailureKind::Throttled
        );
        assert_eq!(failed, is_heat, "visits differ by {visit_sigma}: {last:?}");
        assert!(failed || last == Some(Event::Finished), "{last:?}");
    }
}

/// On this machine, on which a thread for each core never rests meanwhile.
#[test]
fn blocks_beside_other_programs_are_measured_again_a_few_times_and_then_count() {
    let agent = Agent::start_on_this_machine();
    let sha256 = agent.push_model();
    let order = Order {
        processor: "cpu:all".to_owned(),
        work: Work::TimeSegments {
            segments: vec![Segment::whole(2), Segment::single(3)],
            timing: TimingSettings {
                // Only what else runs is to be judged here.
                hygiene: Hygiene {
                    sentinel_tolerance_percent: 100_000,
                    throttling_counts: true,
                    ..Hygiene::default()
                },
                ..timing(2)
            },
        },
        ..order(1, &sha256, &[])
    };
    let is_over = AtomicBool::new(false);
    let entries = std::thread::scope(|scope| {
        let cores = std::thread::available_parallelism().expect("it is told");
        for _ in 0..cores.get() {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let mut talk = agent.greet();
        let accepted = talk.ask(&submit(&order));
        assert!(
            matches!(accepted, Response::Accepted { .. }),
            "{accepted:?}"
        );
        let entries = agent.greet().follow(0, |entry| entry.event.is_final());
        is_over.store(true, Ordering::Relaxed);
        entries
    });
    let ended: Vec<_> = entries
        .iter()
        .filter_map(|entry| match &entry.event {
            Event::BlockEnded {
                rejection,
                disturbance,
                ..
            } => Some((rejection.clone(), *disturbance)),
            _ => None,
        })
        .collect();
    assert_eq!(ended.len(), 4, "{entries:#?}");
    for (rejection, disturbance) in &ended[..3] {
        let disturbance = disturbance.expect("the machine tells");
        assert_eq!(
            *rejection,
            Some(Rejection::Disturbed {
                crowded_samples: disturbance.crowded_samples,
                samples: 4,
                stolen_percent: disturbance.stolen_percent,
            })
        );
        assert!(disturbance.is_too_much(4), "{disturbance:?}");
    }
    let (rejection, disturbance) = &ended[3];
    assert_eq!(*rejection, None);
    assert!(disturbance.expect("told").is_too_much(4));
    let last = entries.last().map(|entry| &entry.event);
    assert!(matches!(last, Some(Event::Finished)), "{last:?}");
}

#[test]
fn an_order_sent_twice_is_worked_off_once() {
    let agent = Agent::start();
    let sha256 = agent.push_model();
    let mut talk = agent.greet();
    let first = order(1, &sha256, &[(1, 2), (3, 3)]);
    for _ in 0..2 {
        assert_eq!(
            talk.ask(&submit(&first)),
            Response::Accepted {
                run: run(),
                order: 1
            }
        );
    }
    let other = order(1, &sha256, &[(4, 4)]);
    talk.is_refused(&encode(&submit(&other)), Refusal::Conflict);
    let entries = talk.follow(0, |entry| entry.event.is_final());
    let sequences: Vec<u64> = entries.iter().map(|entry| entry.sequence).collect();
    assert_eq!(sequences, (1..=entries.len() as u64).collect::<Vec<_>>());
    let mut indices: Vec<u64> = samples(&entries)
        .iter()
        .map(|&(_, index, _)| index)
        .collect();
    indices.sort_unstable();
    assert_eq!(indices, (0..10).collect::<Vec<_>>());
}

#[test]
fn an_order_that_cannot_be_done_fails_with_its_reason_and_the_next_one_is_done() {
    let agent = Agent::start();
    let sha256 = agent.push_model();
    let mut talk = agent.greet();
    let beyond = order(1, &sha256, &[(1, 99)]);
    let processor = Order {
        processor: "tpu".to_owned(),
        ..order(2, &sha256, &[(1, 1)])
    };
    // Placements of less than the whole model: one has a gap, one ends too soon.
    let placement = |number, segments: &[(u32, u32)]| {
        let part = |&(first, last): &(u32, u32)| Part {
            segment: Segment::new(first, last).expect("a segment"),
            processor: "cpu".to_owned(),
        };
        Order {
            work: Work::TimePlacement {
                parts: segments.iter().map(part).collect(),
                timing: timing(5),
                reload: false,
            },
            ..order(number, &sha256, &[])
        }
    };
    let gap = placement(3, &[(1, 1), (3, 11)]);
    let short = placement(4, &[(1, 2), (3, 10)]);
    let good = order(5, &sha256, &[(1, 1)]);
    for order in [beyond, processor, gap, short, good] {
        talk.ask(&submit(&order));
    }
    let entries = talk.follow(0, |entry| entry.order == 5 && entry.event.is_final());
    let ends: Vec<(u32, &Event)> = entries
        .iter()
        .filter(|entry| entry.event.is_final())
        .map(|entry| (entry.order, &entry.event))
        .collect();
    let reasons = [
        "layers 1..=99, but the model has 11",
        "`tpu`",
        "layers 1..=11 one after the other",
        "layers 1..=11 one after the other",
    ];
    assert_eq!(ends.len(), 5, "{ends:?}");
    for ((order, event), reason) in ends.iter().zip(reasons) {
        assert!(
            matches!(event, Event::Failed { failure }
                if failure.kind == FailureKind::Order && failure.message.contains(reason)),
            "order {order}: {event:?}"
        );
    }
    assert_eq!(ends[4], (5, &Event::Finished));
}

/// The layers of alexnet that have an operator.
fn layers_with(operator: &str) -> Vec<u32> {
    let network = Network::open(&tests().join("models/alexnet.onnx"), &Default::default());
    let network = network.expect("a model");
    let has = |layer: &u32| {
        network
            .operators(*layer)
            .iter()
            .any(|o| o.op_type == operator)
    };
    (1..=network.layer_count()).filter(has).collect()
}

/// What the journal says that processors cannot run, and why.
fn unsupported(entries: &[Entry]) -> Vec<(&str, (u32, u32), &str)> {
    let found = |entry| match entry {
        &Entry {
            event:
                Event::Unsupported {
                    ref processor,
                    segment,
                    ref reason,
                    ..
                },
            ..
        } => Some((processor.as_str(), segment.into(), reason.as_str())),
        _ => None,
    };
    entries.iter().filter_map(found).collect()
}

/// The segments that were sentinels instead of the whole model.
fn sentinels(entries: &[Entry]) -> Vec<Segment> {
    let sentinel = |entry: &Entry| match entry.event {
        Event::Sentinel { segment } => Some(segment),
        _ => None,
    };
    entries.iter().filter_map(sentinel).collect()
}

#[test]
fn a_survey_says_of_each_processor_which_layers_it_cannot_run_and_why() {
    let agent = Agent::start_without("LRN");
    let sha256 = agent.push_model();
    let survey = |number, processors: &[&str]| Order {
        work: Work::Survey {
            processors: processors.iter().map(|&name| name.to_owned()).collect(),
        },
        ..order(number, &sha256, &[])
    };
    let mut talk = agent.greet();
    for order in [survey(0, &["cpu", "npu"]), survey(1, &["tpu"])] {
        talk.ask(&submit(&order));
    }
    let entries = talk.follow(0, |entry| entry.order == 1 && entry.event.is_final());
    let lacking = layers_with("LRN");
    assert_eq!(lacking, [1, 3]);
    let found = unsupported(&entries);
    let segments: Vec<_> = found
        .iter()
        .map(|&(on, segment, _)| (on, segment))
        .collect();
    assert_eq!(segments, [("npu", (1, 1)), ("npu", (3, 3))]);
    for ((.., reason), layer) in found.iter().zip(lacking) {
        assert!(
            reason.starts_with("it has no LRN, which node `"),
            "{reason}"
        );
        assert!(
            reason.ends_with(&format!("` of layer {layer} is")),
            "{reason}"
        );
    }
    let ends: Vec<&Event> = entries
        .iter()
        .map(|entry| &entry.event)
        .filter(|event| event.is_final())
        .collect();
    assert!(
        matches!(&ends[..], [Event::Finished, Event::Failed { failure }]
            if failure.kind == FailureKind::Order && failure.message.contains("`tpu`")),
        "{ends:?}"
    );
}

#[test]
fn segments_that_a_processor_cannot_run_are_left_out_and_the_others_are_timed() {
    let mut agent = Agent::start_without("LRN");
    let sha256 = agent.push_model();
    let order = order(1, &sha256, &[(3, 3), (2, 2), (1, 11), (4, 5)]);
    let mut talk = agent.greet();
    talk.ask(&submit(&order));
    let is_end = |entry: &Entry| entry.event.is_final();
    let before = talk.follow(0, |entry| matches!(entry.event, Event::Sample { .. }));
    // What was found before an agent was killed is not said again.
    agent.kill();
    agent.restart();
    let entries = agent.greet().follow(0, is_end);
    assert_eq!(entries[..before.len()], before);
    assert_eq!(
        entries.last().map(|entry| &entry.event),
        Some(&Event::Finished)
    );
    let found: Vec<_> = unsupported(&entries)
        .into_iter()
        .map(|(on, segment, _)| (on, segment))
        .collect();
    assert_eq!(found, [("npu", (3, 3)), ("npu", (1, 11))]);
    // The longest stretch without LRN takes the whole model's place.
    assert_eq!(
        sentinels(&entries),
        [Segment::new(4, 11).expect("a segment")]
    );
    let mut indices: Vec<u64> = samples(&entries).iter().map(|sample| sample.1).collect();
    indices.sort_unstable();
    assert_eq!(indices, (5..10).chain(15..20).collect::<Vec<u64>>());
}

#[test]
fn a_placement_of_a_layer_that_its_processor_cannot_run_fails_as_unsupported() {
    let agent = Agent::start_without("LRN");
    let sha256 = agent.push_model();
    let lacking = layers_with("LRN");
    let placement = |number, on_npu: &dyn Fn(u32) -> bool| {
        let part = |layer| Part {
            segment: Segment::single(layer),
            processor: if on_npu(layer) { "npu" } else { "cpu" }.to_owned(),
        };
        Order {
            work: Work::TimePlacement {
                parts: (1..=11).map(part).collect(),
                timing: timing(5),
                reload: false,
            },
            ..order(number, &sha256, &[])
        }
    };
    let mut talk = agent.greet();
    let elsewhere = placement(1, &|layer| !lacking.contains(&layer));
    let there = placement(2, &|layer| layer == lacking[1]);
    for order in [elsewhere, there] {
        talk.ask(&submit(&order));
    }
    let entries = talk.follow(0, |entry| entry.order == 2 && entry.event.is_final());
    let ends: Vec<&Event> = entries
        .iter()
        .map(|entry| &entry.event)
        .filter(|event| event.is_final())
        .collect();
    let [Event::Finished, Event::Failed { failure }] = &ends[..] else {
        panic!("{ends:?}")
    };
    assert_eq!(failure.kind, FailureKind::Unsupported);
    let sentence = &failure.message;
    assert!(
        sentence.starts_with("npu cannot run layers 3..=3: it has no LRN, which node `"),
        "{sentence}"
    );
    assert!(
        sentence.ends_with("` of layer 3 is: place them on another processor"),
        "{sentence}"
    );
    assert!(
        !entries
            .iter()
            .any(|entry| entry.order == 2 && matches!(entry.event, Event::Loaded { .. })),
        "nothing is loaded in vain"
    );
}

#[test]
fn where_memory_does_not_hold_the_model_the_longest_segment_that_it_holds_is_the_sentinel() {
    let whole = |agent: &Agent| {
        let sha256 = agent.push_model();
        let mut talk = agent.greet();
        talk.ask(&submit(&order(1, &sha256, &[(1, 11)])));
        talk.follow(0, |entry| entry.event.is_final())
    };
    let entries = whole(&Agent::start());
    assert_eq!(sentinels(&entries), []);
    let needed = entries.iter().find_map(|entry| match entry.event {
        Event::Loaded { memory_bytes, .. } => Some(memory_bytes.as_bytes()),
        _ => None,
    });
    let needed = needed.expect("it was loaded");

    let agent = Agent::start_with(&format!("memory_bytes = {}", needed - 1));
    let sha256 = agent.push_model();
    let mut talk = agent.greet();
    for order in [1, 2].map(|number| order(number, &sha256, &[(1, 10)])) {
        talk.ask(&submit(&order));
    }
    let entries = talk.follow(0, |entry| entry.order == 2 && entry.event.is_final());
    // Both orders have the same, so that their blocks compare.
    let sentinels = sentinels(&entries);
    assert_eq!(sentinels, [Segment::new(1, 10).expect("a segment"); 2]);
    assert_eq!(samples(&entries).len(), 10);

    // An order for the model itself cannot be done.
    let entries = whole(&Agent::start_with(&format!(
        "memory_bytes = {}",
        needed - 1
    )));
    assert!(
        matches!(&entries.last().expect("an end").event, Event::Failed { failure }
            if failure.kind == FailureKind::OutOfMemory),
        "{entries:?}"
    );
}

/// What the NPU needs for all layers of alexnet.
fn needed_for_all() -> u64 {
    let agent = Agent::start_with("memory_bytes = 100_000_000");
    let sha256 = agent.push_model();
    let mut talk = agent.greet();
    talk.ask(&submit(&order(1, &sha256, &[(1, 11)])));
    let entries = talk.follow(0, |entry| entry.event.is_final());
    let needed = entries.iter().find_map(|entry| match entry.event {
        Event::Loaded { memory_bytes, .. } => Some(memory_bytes.as_bytes()),
        _ => None,
    });
    needed.expect("it was loaded")
}

/// The longest segment that fits leaves room for next to nothing.
fn barely_too_small() -> Agent {
    Agent::start_with(&format!("memory_bytes = {}", needed_for_all() - 1))
}

#[test]
fn a_sentinel_beside_which_nothing_fits_is_loaded_at_each_end_of_the_block() {
    let agent = barely_too_small();
    let sha256 = agent.push_model();
    let mut talk = agent.greet();
    talk.ask(&submit(&order(
        1,
        &sha256,
        &[(1, 2), (3, 3), (8, 8), (5, 6)],
    )));
    let entries = talk.follow(0, |entry| entry.event.is_final());
    assert_eq!(
        entries.last().map(|entry| &entry.event),
        Some(&Event::Finished)
    );
    let segment = |first, last| Segment::new(first, last).expect("a segment");
    let sentinel = segment(1, 10);
    // What was loaded before each block began and within it, and what took turns.
    let (mut loaded, mut blocks) = (Vec::new(), Vec::new());
    for entry in &entries {
        match &entry.event {
            Event::Loaded { segment, .. } => loaded.push(*segment),
            Event::BlockStarted { segments, .. } => {
                blocks.push((std::mem::take(&mut loaded), segments.clone(), Vec::new()));
            }
            Event::BlockEnded { rejection, .. } => {
                assert_eq!(*rejection, None);
                let within = std::mem::take(&mut loaded);
                blocks.last_mut().expect("a block").2 = within;
            }
            _ => {}
        }
    }
    // Layers 1 and 2 need nearly all of the memory; of the others only layer 8, which has no weights, fits beside it.
    let members = vec![segment(1, 2), segment(3, 3), segment(8, 8), segment(5, 6)];
    let before: Vec<Segment> = [sentinel].into_iter().chain(members.clone()).collect();
    assert_eq!(blocks, [(before, members, vec![sentinel])]);
    assert_eq!(samples(&entries).len(), 4 * 5);
}

#[test]
fn an_agent_that_is_killed_in_such_a_block_goes_on_with_it() {
    let segments = [(1, 2), (3, 3), (5, 6)];
    let all = {
        let agent = barely_too_small();
        let sha256 = agent.push_model();
        let mut talk = agent.greet();
        talk.ask(&submit(&order(1, &sha256, &segments)));
        samples(&talk.follow(0, |entry| entry.event.is_final()))
    };
    let mut agent = barely_too_small();
    let sha256 = agent.push_model();
    let mut talk = agent.greet();
    talk.ask(&submit(&order(1, &sha256, &segments)));
    talk.follow(0, |entry| matches!(entry.event, Event::Sample { .. }));
    agent.kill();
    agent.restart();
    let entries = agent.greet().follow(0, |entry| entry.event.is_final());
    assert_eq!(samples(&entries), all);
}

#[test]
fn a_placement_may_load_its_parts_when_they_are_needed() {
    let needed = needed_for_all();
    let limits = format!("memory_bytes = {}", needed * 6 / 10);
    let lines = format!("{limits}\nload_fixed_ns = 700_000");
    let agent = Agent::start_with(&lines);
    let sha256 = agent.push_model();
    let parts = || {
        let ends = [(1, 3, "npu"), (4, 4, "cpu"), (5, 9, "npu"), (10, 11, "cpu")];
        ends.map(|(first, last, processor): (u32, u32, &str)| Part {
            segment: Segment::new(first, last).expect("a segment"),
            processor: processor.to_owned(),
        })
    };
    let placement = |number, reload| Order {
        work: Work::TimePlacement {
            parts: parts().into(),
            timing: timing(5),
            reload,
        },
        ..order(number, &sha256, &[])
    };
    let mut talk = agent.greet();
    for order in [placement(1, false), placement(2, true)] {
        talk.ask(&submit(&order));
    }
    let entries = talk.follow(0, |entry| entry.order == 2 && entry.event.is_final());
    let ends: Vec<&Event> = entries
        .iter()
        .map(|entry| &entry.event)
        .filter(|event| event.is_final())
        .collect();
    let [Event::Failed { failure }, Event::Finished] = &ends[..] else {
        panic!("{ends:?}")
    };
    assert_eq!(failure.kind, FailureKind::OutOfMemory);
    let npu = |entry: &&Entry| {
        matches!(entry.event, Event::Sample { segment, duration_ns, .. }
            if entry.order == 2 && [1, 5].contains(&segment.first())
                && duration_ns > Nanos::from_micros(700))
    };
    assert_eq!(
        entries.iter().filter(npu).count(),
        2 * 5,
        "loading is part of each pass"
    );
}

#[test]
fn a_survey_says_the_shortest_segments_that_memory_does_not_hold() {
    for line in ["", "\ntells_memory = false"] {
        let agent = Agent::start_with(&format!("memory_bytes = 150_000{line}"));
        let sha256 = agent.push_model();
        let mut talk = agent.greet();
        let survey = Order {
            work: Work::Survey {
                processors: vec!["cpu".to_owned(), "npu".to_owned()],
            },
            ..order(1, &sha256, &[])
        };
        talk.ask(&submit(&survey));
        let entries = talk.follow(0, |entry| entry.event.is_final());
        let network = Network::open(&tests().join("models/alexnet.onnx"), &Default::default());
        let network = network.expect("a model");
        // Weights and the largest tensor, as 16-bit floats.
        let needed = |first: u32, last: u32| {
            let layers = &network.layers()[first as usize - 1..last as usize];
            let weights: u64 = layers
                .iter()
                .map(|one| one.parameter_bytes.as_bytes())
                .sum();
            let tensors = layers
                .iter()
                .flat_map(|one| [one.input_bytes, one.output_bytes]);
            weights.div_ceil(2) + tensors.max().expect("a layer").as_bytes().div_ceil(2)
        };
        let fits = |first, last| first > last || needed(first, last) <= 150_000;
        let all = (1..=11).flat_map(|first| (first..=11).map(move |last| (first, last)));
        let shortest = all.filter(|&(first, last)| {
            !fits(first, last) && fits(first + 1, last) && fits(first, last - 1)
        });
        let shortest: Vec<((u32, u32), u64)> = shortest
            .map(|(first, last)| ((first, last), needed(first, last)))
            .collect();
        assert!(shortest.len() > 2, "{shortest:?}");
        let found = entries.iter().filter_map(|entry| match &entry.event {
            Event::Unsupported {
                processor,
                segment,
                needed_bytes,
                ..
            } => {
                assert_eq!(processor, "npu");
                Some(((*segment).into(), needed_bytes.expect("memory").as_bytes()))
            }
            _ => None,
        });
        assert_eq!(found.collect::<Vec<((u32, u32), u64)>>(), shortest);
    }
}

#[test]
fn a_line_that_is_too_long_is_refused_and_ends_the_conversation() {
    let agent = Agent::start();
    let mut talk = agent.greet();
    talk.is_refused(&"x".repeat(MAX_LINE_BYTES + 1), Refusal::Malformed);
    assert_eq!(talk.hear(), None);
    assert_eq!(agent.greet().ask(&Request::Ping), Response::Pong);
}

#[test]
fn a_refusal_does_not_repeat_all_of_what_it_refuses() {
    let agent = Agent::start();
    let mut talk = agent.greet();
    let unknown = order(1, &"a".repeat(900_000), &[(1, 1)]);
    let Response::Refused { message, .. } = talk.ask(&submit(&unknown)) else {
        panic!("no model has such a name");
    };
    assert!(message.len() < 2_000, "{} bytes", message.len());
    assert!(message.ends_with(" …"), "{message}");
}

#[test]
fn connections_that_say_nothing_keep_no_daemon_out() {
    let agent = Agent::start();
    let idle: Vec<UnixStream> = (0..700).map(|_| agent.connect().stream).collect();
    assert_eq!(agent.greet().ask(&Request::Ping), Response::Pong);
    drop(idle);
    assert_eq!(agent.greet().ask(&Request::Ping), Response::Pong);
}

#[test]
fn an_agent_that_could_open_no_more_files_serves_again() {
    let mut agent = Agent::start();
    agent.kill();
    agent.process = spawn_by(
        // Fewer files than the connections that may wait.
        Command::new("sh")
            .args(["-c", "ulimit -n 48; exec \"$0\" \"$@\""])
            .arg(AGENT),
        agent.folder.path(),
        agent.device.as_deref(),
    );
    let idle: Vec<Talk> = (0..100).map(|_| agent.connect()).collect();
    drop(idle);
    assert_eq!(agent.greet().ask(&Request::Ping), Response::Pong);
}

#[test]
fn a_newer_connection_ends_the_older_one() {
    let agent = Agent::start();
    let mut older = agent.greet();
    let mut newer = agent.greet();
    assert_eq!(older.hear(), None);
    assert_eq!(newer.ask(&Request::Ping), Response::Pong);
}

#[test]
fn an_agent_that_is_killed_goes_on_where_its_journal_ends() {
    let mut agent = Agent::start();
    let sha256 = agent.push_model();
    let orders = [
        order(1, &sha256, &[(1, 11), (2, 5), (3, 3)]),
        order(2, &sha256, &[(1, 4), (6, 6)]),
    ];
    let is_end = |entry: &Entry| entry.order == 2 && entry.event.is_final();
    let mut talk = agent.greet();
    for order in &orders {
        talk.ask(&submit(order));
    }
    // Nobody is connected while it is killed and while it goes on.
    let before = talk.follow(0, |entry| {
        matches!(entry.event, Event::Sample { index: 2, .. })
    });
    drop(talk);
    agent.kill();
    agent.restart();
    let after = before.len() as u64;
    let rest = agent.greet().follow(after, is_end);
    assert_eq!(rest.first().map(|entry| entry.sequence), Some(after + 1));
    let mut interrupted = samples(&before);
    interrupted.extend(samples(&rest));
    interrupted.sort_unstable();

    let undisturbed = Agent::start();
    undisturbed.push_model();
    let mut talk = undisturbed.greet();
    for order in &orders {
        talk.ask(&submit(order));
    }
    let mut whole = samples(&talk.follow(0, is_end));
    whole.sort_unstable();
    assert_eq!(interrupted, whole);
}

/// In the first of each two of five rounds, whether it is the sentinel or not.
#[test]
fn a_long_segment_has_few_turns_beside_others_whenever_the_agent_is_killed() {
    for last in [11, 10] {
        let long = Segment::whole(last);
        let mut agent = Agent::start();
        let beside = order(1, &agent.push_model(), &[(1, 1), (2, 3)]);
        let Work::TimeSegments { segments, timing } = beside.work else {
            panic!("{beside:?} times no segments");
        };
        let beside = Order {
            work: Work::TimeBesideLong {
                segments,
                long,
                rounds: 2,
                timing,
            },
            ..beside
        };
        let mut talk = agent.greet();
        talk.ask(&submit(&beside));
        let mut entries = talk.follow(0, |entry| {
            matches!(entry.event, Event::Sample { index: 11, .. })
        });
        drop(talk);
        agent.kill();
        agent.restart();
        let after = entries.len() as u64;
        let rest = agent.greet().follow(after, |entry| entry.event.is_final());
        entries.extend(rest);
        let end = entries.last().map(|entry| &entry.event);
        assert!(matches!(end, Some(Event::Finished)), "{end:?}");
        let of_long = |entry: &&Entry| match entry.event {
            Event::Sample { segment, .. } => segment == long,
            _ => false,
        };
        assert_eq!(entries.iter().filter(of_long).count(), 3);
        let mut indices: Vec<u64> = samples(&entries)
            .iter()
            .map(|&(_, index, _)| index)
            .collect();
        indices.sort_unstable();
        assert_eq!(indices, (0..13).collect::<Vec<_>>());
    }
}

#[test]
fn a_parked_run_rests_between_blocks_until_an_order_of_it_is_submitted() {
    let mut agent = Agent::start();
    let sha256 = agent.push_model();
    // Long enough that it is still worked on when the host, which may be late, asks for it to be parked.
    let mut long = order(2, &sha256, &[(1, 4), (6, 6)]);
    if let Work::TimeSegments { timing, .. } = &mut long.work {
        timing.samples_per_segment = 20_000;
    }
    let orders = [order(1, &sha256, &[(1, 11), (2, 5), (3, 3)]), long];
    let park = |agent: &Agent| match agent.greet().ask(&Request::Park { run: run() }) {
        Response::Parked { entries, .. } => entries,
        other => panic!("{other:?}"),
    };
    let mut talk = agent.greet();
    for order in &orders {
        talk.ask(&submit(order));
    }
    talk.follow(0, |entry| matches!(entry.event, Event::Sample { .. }));
    let parked = park(&agent);
    // Another run is not parked, and a parked one stays so when the agent is killed.
    agent.kill();
    agent.restart();
    let mut other = order(1, &sha256, &[(2, 2)]);
    other.run = RunId::new("other").expect("letters");
    agent.greet().ask(&submit(&other));
    agent
        .greet()
        .follow_run(&other.run, 0, |entry| entry.event.is_final());
    assert_eq!(park(&agent), parked);

    let is_end = |entry: &Entry| entry.order == 2 && entry.event.is_final();
    let mut talk = agent.greet();
    talk.ask(&submit(&orders[1]));
    let all = talk.follow(0, is_end);
    let before = &all[..parked as usize];
    let last_of_block = before.iter().rev().find(|entry| {
        matches!(
            entry.event,
            Event::BlockStarted { .. } | Event::BlockEnded { .. }
        )
    });
    assert!(
        matches!(
            last_of_block.map(|entry| &entry.event),
            Some(Event::BlockEnded { .. })
        ),
        "{last_of_block:?}"
    );
    assert!(all.len() > before.len());

    let undisturbed = Agent::start();
    undisturbed.push_model();
    let mut talk = undisturbed.greet();
    for order in &orders {
        talk.ask(&submit(order));
    }
    let whole = talk.follow(0, is_end);
    let sorted = |entries: &[Entry]| {
        let mut samples = samples(entries);
        samples.sort_unstable();
        samples
    };
    assert_eq!(sorted(&all), sorted(&whole));
}

#[test]
fn no_link_is_measured_while_a_run_is_worked_on() {
    let agent = Agent::start();
    let mut long = order(1, &agent.push_model(), &[(1, 4)]);
    if let Work::TimeSegments { timing, .. } = &mut long.work {
        timing.samples_per_segment = 100_000;
    }
    let link = MeasureLink {
        // Nobody is asked.
        server: "127.0.0.1:9".to_owned(),
        token: "07".repeat(32),
        transfer_bytes: Vec::new(),
        repeats: 2,
        echoes: 6,
        connections: None,
        gap_ns: None,
        seed: 0,
        reconnections: 0,
        trace_ns: None,
        shape: None,
        requests: None,
    };
    let mut talk = agent.greet();
    talk.ask(&submit(&long));
    match talk.ask(&Request::MeasureLink { link: link.clone() }) {
        Response::Refused { refusal, message } => {
            assert_eq!(refusal, Refusal::Busy, "{message}");
            assert!(message.contains("wait until it has ended"), "{message}");
        }
        other => panic!("not refused: {other:?}"),
    }
    talk.ask(&Request::Forget { run: run() });
    // What was in progress ends with the inference.
    let end = Instant::now() + DEADLINE;
    loop {
        match talk.ask(&Request::MeasureLink { link: link.clone() }) {
            Response::LinkFailed { .. } => break,
            Response::Refused { .. } => assert!(Instant::now() < end, "still busy"),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_forgotten_run_is_gone_and_its_number_can_be_used_again() {
    let agent = Agent::start();
    let sha256 = agent.push_model();
    let mut talk = agent.greet();
    talk.ask(&submit(&order(1, &sha256, &[(1, 11)])));
    assert_eq!(
        talk.ask(&Request::Forget { run: run() }),
        Response::Forgotten { run: run() }
    );
    let journal = agent.folder.path().join("runs/talk.jsonl");
    assert!(!journal.exists());
    talk.ask(&submit(&order(1, &sha256, &[(2, 2)])));
    let entries = talk.follow(0, |entry| entry.event.is_final());
    assert_eq!(entries.first().map(|entry| entry.sequence), Some(1));
    assert_eq!(samples(&entries).len(), 5);
}

#[test]
fn an_agent_that_is_told_to_stop_ends_by_itself() {
    let mut agent = Agent::start();
    let mut talk = agent.greet();
    talk.say(&encode(&Request::Stop));
    assert_eq!(talk.hear(), None);
    assert!(agent.process.wait().expect("it was started here").success());
}
