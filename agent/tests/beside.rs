//! Networks that the real agent runs together with a real server, over its socket, as PROTOCOL.md tells it.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use layerlab_agent::device::Host;
use layerlab_agent::edge_models::EdgeModels;
use layerlab_agent::runtime::{OnnxRuntimeOptions, RuntimesSetup};
use layerlab_agent::runtime::{Runtimes, registry};
use layerlab_edge::{
    InferRequest, Inferred, Models, PackedAnswer, PackedRequest, Server, ServerLimits, TensorShape,
    Token, payload_bytes,
};
use layerlab_model::Network;
use layerlab_profiles::link::LinkDirection;
use layerlab_profiles::tensors::TensorCodec;
use layerlab_profiles::{Nanos, Segment, sha256};
use layerlab_protocol::{
    EdgeImages, EdgeInference, EdgePacking, EdgePart, EdgePlan, EdgeSide, Refusal, Request,
    Response, ShapedLink, VERSION, decode, encode,
};

const SECRET: &str = "a secret";

/// Nothing here takes this long; a test that waits longer has hung.
const DEADLINE: Duration = Duration::from_secs(120);

fn file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../tests")
        .join(path)
}

struct Agent {
    folder: tempfile::TempDir,
    process: Child,
    reader: BufReader<UnixStream>,
    stream: UnixStream,
}

impl Agent {
    /// An agent on this machine, or one that plays a device, with a connection on which hello was said.
    fn start(device: Option<&str>) -> Agent {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_layerlab-agent"));
        for name in ["LAYERLAB_ONNXRUNTIME", "LAYERLAB_QNN", "LAYERLAB_EMULATE"] {
            command.env_remove(name);
        }
        let socket = folder.path().join("socket");
        command.arg("serve");
        command.arg(format!("--listen=unix:{}", socket.display()));
        command.arg("--state").arg(folder.path());
        if let Some(device) = device {
            command.arg("--device").arg(file(device));
        }
        command.env("LAYERLAB_AGENT_TOKEN", SECRET);
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut stdout = BufReader::new(process.stdout.take().unwrap());
        let mut line = String::new();
        while !line.ends_with("listening\n") {
            assert!(stdout.read_line(&mut line).unwrap() > 0, "it ended: {line}");
        }
        let stream = UnixStream::connect(socket).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        let mut agent = Agent {
            folder,
            process,
            reader: BufReader::new(stream.try_clone().unwrap()),
            stream,
        };
        agent.say(&Request::Hello {
            protocol: VERSION,
            token: SECRET.to_owned(),
        });
        assert!(matches!(agent.hear(), Response::Hello { .. }));
        agent
    }

    fn say(&mut self, request: &Request) {
        self.stream.write_all(encode(request).as_bytes()).unwrap();
    }

    fn hear(&mut self) -> Response {
        let mut line = String::new();
        self.reader.read_line(&mut line).unwrap();
        decode(&line).unwrap()
    }

    /// Puts the model where its files are.
    fn has(&self, model: &Model) {
        let path = self.folder.path().join("files").join(&model.sent);
        std::fs::write(path, model.network.to_onnx()).unwrap();
    }

    /// What it says in the end.
    fn runs(&mut self, plan: &EdgePlan) -> Response {
        self.say(&Request::RunEdgePlan { plan: plan.clone() });
        loop {
            match self.hear() {
                Response::LinkReached { loopback } => assert!(loopback),
                Response::LinkProgress { done, of } => assert!(done <= of),
                other => return other,
            }
        }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

struct Model {
    network: Network,
    /// As it is sent to phones.
    sent: String,
    /// As the server knows it.
    source: String,
}

fn model() -> Model {
    let path = file("models/inception.onnx");
    let network = Network::open(&path, &BTreeMap::new()).unwrap();
    Model {
        sent: sha256(&network.to_onnx()),
        source: sha256(&std::fs::read(path).unwrap()),
        network,
    }
}

fn runtimes() -> Runtimes {
    let none = RuntimesSetup {
        onnxruntime: OnnxRuntimeOptions::default(),
        program: PathBuf::new(),
        scratch: std::env::temp_dir(),
        compiled: None,
    };
    registry::runtimes(Host::new().cores(), &none).unwrap()
}

fn here() -> String {
    runtimes().processors().next().unwrap().name.clone()
}

fn models() -> EdgeModels {
    EdgeModels::open(
        &[file("models/inception.onnx")],
        &BTreeMap::new(),
        runtimes(),
    )
    .unwrap()
}

fn serve(models: impl Models + 'static) -> Server {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let (token, limits) = (Token::new([7; 32]), ServerLimits::default());
    let models: Box<dyn Models> = Box::new(models);
    Server::start_with(listener, token, "test 1".to_owned(), limits, Some(models)).unwrap()
}

fn plan(model: &Model, server: &Server, parts: &[(u32, u32, EdgeSide, &str)]) -> EdgePlan {
    let part = |&(first, last, side, processor): &(u32, u32, EdgeSide, &str)| EdgePart {
        segment: Segment::new(first, last).unwrap(),
        side,
        processor: processor.to_owned(),
    };
    EdgePlan {
        server: server.address().to_string(),
        token: "07".repeat(32),
        model_sha256: model.sent.clone(),
        quantised_sha256: None,
        server_model_sha256: model.source.clone(),
        parts: parts.iter().map(part).collect(),
        inferences: 6,
        warm_up: 1,
        rest_ns: None,
        seed: 1,
        shape: None,
        packings: Vec::new(),
        images: None,
    }
}

/// The sum of an inference's parts.
fn sum(of: &EdgeInference) -> Nanos {
    of.phone_ns + of.upload_ns + of.queue_ns + of.server_ns + of.download_ns
}

#[test]
fn phone_server_phone_gives_what_the_phone_gives_alone() {
    let (model, server, cpu) = (model(), serve(models()), here());
    let (phone, remote) = (EdgeSide::Phone, EdgeSide::Server);
    let last = model.network.layer_count();
    let split = [
        (1, 2, phone, cpu.as_str()),
        (3, 4, remote, &cpu),
        (5, last - 1, remote, &cpu),
        (last, last, phone, &cpu),
    ];
    let mut agent = Agent::start(None);
    agent.has(&model);
    let shaped = EdgePlan {
        shape: Some(ShapedLink {
            bandwidth_bps: 400_000_000,
            round_trip_ns: Nanos::from_millis(20),
        }),
        ..plan(&model, &server, &split)
    };
    let all_there = [(1, last, remote, cpu.as_str())];
    for (plan, is_on_phone) in [
        (plan(&model, &server, &split), true),
        (shaped, true),
        (plan(&model, &server, &all_there), false),
    ] {
        let Response::EdgePlanRan {
            inferences,
            agreement: Some(agreement),
            not_compared: None,
            server_program,
        } = agent.runs(&plan)
        else {
            panic!("it did not run");
        };
        assert_eq!(server_program, "test 1");
        assert_eq!(inferences.len(), 6);
        for one in &inferences {
            assert!(sum(one) <= one.total_ns, "{one:?}");
            assert!(one.server_ns > Nanos::ZERO, "{one:?}");
            assert_eq!(one.phone_ns > Nanos::ZERO, is_on_phone, "{one:?}");
            if plan.shape.is_some() {
                assert!(one.download_ns >= Nanos::from_millis(20), "{one:?}");
            }
        }
        assert_eq!(agreement.processor, cpu);
        assert!(agreement.elements > 0);
        assert!(agreement.difference_ppb < 100_000, "{agreement:?}");
    }
    let end = Instant::now() + DEADLINE;
    while server.connections() > 0 {
        assert!(Instant::now() < end, "something is left");
        thread::yield_now();
    }
}

/// Notes what crossed packed, both ways, and answers nothing else.
struct PackedAlone {
    models: EdgeModels,
    crossed: Sender<[Crossed; 2]>,
}

/// What tensors were packed by, and how many bytes they had then and once they were unpacked.
type Crossed = (Option<TensorCodec>, u64, u64);

impl Models for PackedAlone {
    fn accepts(&self, asked: &InferRequest) -> Result<(), String> {
        self.models.accepts(asked)
    }

    fn prepare(&self, asked: &InferRequest) -> Result<(), String> {
        self.models.prepare(asked)
    }

    fn run(&self, _: &InferRequest, _: &[u8]) -> Result<Inferred, String> {
        Err("it came as it is".to_owned())
    }

    fn run_packed(&self, asked: &PackedRequest, payload: &[u8]) -> Result<PackedAnswer, String> {
        let answer = self.models.run_packed(asked, payload)?;
        let bytes = |shapes: &[TensorShape]| payload_bytes(shapes).unwrap();
        let up = (
            asked.tensors.codec,
            payload.len() as u64,
            bytes(&asked.layers.tensors),
        );
        let down = (
            answer.packed.codec,
            answer.payload.len() as u64,
            bytes(&answer.tensors),
        );
        let _ = self.crossed.send([up, down]);
        Ok(answer)
    }
}

#[test]
fn tensors_cross_packed_and_what_keeps_all_bits_gives_the_same_result() {
    let (tell, told) = channel();
    let crossed = PackedAlone {
        models: models(),
        crossed: tell,
    };
    let (model, server, cpu) = (model(), serve(crossed), here());
    let last = model.network.layer_count();
    let split = [
        (1, 2, EdgeSide::Phone, cpu.as_str()),
        (3, last - 1, EdgeSide::Server, &cpu),
        (last, last, EdgeSide::Phone, &cpu),
    ];
    let packing = |after_layer, direction, codec| EdgePacking {
        after_layer,
        direction,
        codec,
    };
    let (up, down) = (LinkDirection::Upload, LinkDirection::Download);
    let mut agent = Agent::start(None);
    agent.has(&model);
    for (packings, codecs) in [
        (
            vec![
                packing(2, up, TensorCodec::F32Zstd),
                packing(last - 1, down, TensorCodec::F32Lz4),
            ],
            [Some(TensorCodec::F32Zstd), Some(TensorCodec::F32Lz4)],
        ),
        (
            vec![packing(2, up, TensorCodec::U8)],
            [Some(TensorCodec::U8), None],
        ),
    ] {
        let plan = EdgePlan {
            packings,
            ..plan(&model, &server, &split)
        };
        let Response::EdgePlanRan {
            inferences,
            agreement: Some(agreement),
            ..
        } = agent.runs(&plan)
        else {
            panic!("it did not run");
        };
        assert!(
            inferences.iter().all(|one| sum(one) <= one.total_ns),
            "{inferences:?}"
        );
        let is_rounded = codecs[0] == Some(TensorCodec::U8);
        match is_rounded {
            true => assert!((1..500_000_000).contains(&agreement.difference_ppb)),
            false => assert!(agreement.difference_ppb < 100_000, "{agreement:?}"),
        }
        let exchanges: Vec<[Crossed; 2]> = told.try_iter().collect();
        assert_eq!(exchanges.len(), 7, "with one to warm up");
        for [up, down] in exchanges {
            assert_eq!([up.0, down.0], codecs);
            if is_rounded {
                // A byte for each number, and five that say what they mean.
                assert!(up.1 < up.2 / 3, "{up:?}");
                assert_eq!(down.1, down.2);
            }
        }
    }
    let with = |packings: Vec<EdgePacking>, images: Option<EdgeImages>| EdgePlan {
        packings,
        images,
        ..plan(&model, &server, &split)
    };
    let nothing_there = with(vec![packing(4, up, TensorCodec::U8)], None);
    match agent.runs(&nothing_there) {
        Response::LinkFailed { message } => assert!(
            message.contains("packs the upload of what leaves layer 4"),
            "{message}"
        ),
        other => panic!("{other:?}"),
    }
    let images = EdgeImages {
        set_sha256: "ab".repeat(32),
        images: vec![0],
    };
    let lacks = Refusal::UnknownModel;
    let refused = agent.runs(&with(Vec::new(), Some(images)));
    assert!(
        matches!(&refused, Response::Refused { refusal, .. } if *refusal == lacks),
        "{refused:?}"
    );
}

#[test]
fn a_simulated_phone_s_time_is_simulated_and_added_to_what_was_measured() {
    let (model, server, cpu) = (model(), serve(models()), here());
    let last = model.network.layer_count();
    let parts = [
        (1, 3, EdgeSide::Phone, "cpu"),
        (4, last, EdgeSide::Server, cpu.as_str()),
    ];
    let run = || {
        let mut agent = Agent::start(Some("devices/mate10pro.toml"));
        agent.has(&model);
        match agent.runs(&plan(&model, &server, &parts)) {
            Response::EdgePlanRan { inferences, .. } => inferences,
            other => panic!("{other:?}"),
        }
    };
    let (one, other) = (run(), run());
    for inference in one.iter().chain(&other) {
        assert_eq!(inference.total_ns, sum(inference));
    }
    let phone = |run: &[EdgeInference]| run.iter().map(|it| it.phone_ns).collect::<Vec<_>>();
    assert_eq!(
        phone(&one),
        phone(&other),
        "the same seed, the same simulated times"
    );
}

/// A simulated phone's rest takes no time, but its server is real.
#[test]
fn before_each_inference_all_rest_as_long_as_was_asked_for() {
    let (model, server, cpu) = (model(), serve(models()), here());
    let parts = [(
        1,
        model.network.layer_count(),
        EdgeSide::Server,
        cpu.as_str(),
    )];
    let rest = Duration::from_millis(50);
    for device in [None, Some("devices/mate10pro.toml")] {
        let mut agent = Agent::start(device);
        agent.has(&model);
        let rested = EdgePlan {
            rest_ns: Some(rest.into()),
            ..plan(&model, &server, &parts)
        };
        let began = Instant::now();
        let ran = agent.runs(&rested);
        assert!(matches!(ran, Response::EdgePlanRan { .. }), "{ran:?}");
        assert!(began.elapsed() >= rest * (rested.warm_up + rested.inferences));
    }
}

/// Answers other numbers than the network's.
struct Wrong(EdgeModels);

impl Models for Wrong {
    fn accepts(&self, asked: &InferRequest) -> Result<(), String> {
        self.0.accepts(asked)
    }

    fn prepare(&self, asked: &InferRequest) -> Result<(), String> {
        self.0.prepare(asked)
    }

    fn run(&self, asked: &InferRequest, payload: &[u8]) -> Result<Inferred, String> {
        let mut inferred = self.0.run(asked, payload)?;
        for float in inferred.payload.chunks_exact_mut(4) {
            let value = f32::from_le_bytes(float.try_into().unwrap());
            float.copy_from_slice(&(value + 0.5).to_le_bytes());
        }
        Ok(inferred)
    }
}

#[test]
fn a_server_that_computes_something_else_is_found_out() {
    let (model, server, cpu) = (model(), serve(Wrong(models())), here());
    let last = model.network.layer_count();
    let mut agent = Agent::start(None);
    agent.has(&model);
    let ran = agent.runs(&plan(&model, &server, &[(1, last, EdgeSide::Server, &cpu)]));
    let Response::EdgePlanRan { agreement, .. } = ran else {
        panic!("{ran:?}");
    };
    assert!(agreement.unwrap().difference_ppb > 100_000_000);
}

#[test]
fn what_cannot_be_run_is_said_in_one_sentence() {
    let (model, server, cpu) = (model(), serve(models()), here());
    let last = model.network.layer_count();
    let mut agent = Agent::start(None);
    let whole = plan(&model, &server, &[(1, last, EdgeSide::Server, &cpu)]);
    let refused = agent.runs(&whole);
    let lacks = Refusal::UnknownModel;
    assert!(
        matches!(&refused, Response::Refused { refusal, .. } if *refusal == lacks),
        "{refused:?}"
    );
    agent.has(&model);
    let closed = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let nobody = closed.local_addr().unwrap().to_string();
    drop(closed);
    let with = |change: &dyn Fn(&mut EdgePlan)| {
        let mut plan = whole.clone();
        change(&mut plan);
        plan
    };
    for (plan, words) in [
        (
            with(&|plan| plan.server.clone_from(&nobody)),
            "start `layerlab edge-server`",
        ),
        (
            with(&|plan| plan.token = "08".repeat(32)),
            "the token is not",
        ),
        (with(&|plan| plan.token.clear()), "a token is none"),
        (
            with(&|plan| plan.server_model_sha256 = "ab".repeat(32)),
            "has no model abababababab",
        ),
        (
            with(&|plan| plan.parts[0].processor = "tpu".to_owned()),
            "no processor `tpu`",
        ),
        (with(&|plan| plan.parts.clear()), "one after the other"),
        (
            with(&|plan| plan.parts[0].segment = Segment::new(2, last).unwrap()),
            "one after the other",
        ),
        (with(&|plan| plan.inferences = 0), "once to"),
    ] {
        match agent.runs(&plan) {
            Response::LinkFailed { message } => {
                assert!(
                    message.contains(words),
                    "`{words}` is missing in: {message}"
                );
                assert_eq!(message.lines().count(), 1, "{message}");
            }
            other => panic!("{words}: {other:?}"),
        }
    }
    assert!(
        matches!(agent.runs(&whole), Response::EdgePlanRan { .. }),
        "it still works"
    );
}

/// A daemon that goes ends its plan, so that the next can run one.
#[test]
fn a_plan_ends_with_the_connection_that_asked_for_it() {
    let (model, server, cpu) = (model(), serve(models()), here());
    let last = model.network.layer_count();
    let mut agent = Agent::start(None);
    agent.has(&model);
    let parts = [(1, last, EdgeSide::Server, cpu.as_str())];
    let long = EdgePlan {
        inferences: 2_000,
        shape: Some(ShapedLink {
            bandwidth_bps: 64_000,
            round_trip_ns: Nanos::from_millis(1_000),
        }),
        ..plan(&model, &server, &parts)
    };
    agent.say(&Request::RunEdgePlan { plan: long });
    while !matches!(agent.hear(), Response::LinkReached { .. }) {}
    let socket = agent.folder.path().join("socket");
    agent.stream.shutdown(std::net::Shutdown::Both).unwrap();
    agent.stream = UnixStream::connect(socket).unwrap();
    agent.stream.set_read_timeout(Some(DEADLINE)).unwrap();
    agent.reader = BufReader::new(agent.stream.try_clone().unwrap());
    agent.say(&Request::Hello {
        protocol: VERSION,
        token: SECRET.to_owned(),
    });
    assert!(matches!(agent.hear(), Response::Hello { .. }));
    let ran = agent.runs(&plan(&model, &server, &parts));
    assert!(matches!(ran, Response::EdgePlanRan { .. }), "{ran:?}");
}
