//! A real server over real sockets that runs layers on this machine's processors.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use layerlab_agent::ModelWithTwin;
use layerlab_agent::device::Host;
use layerlab_agent::edge_models::{EdgeModels, crossing};
use layerlab_agent::runtime::{OnnxRuntimeOptions, RuntimesSetup};
use layerlab_agent::runtime::{Runtimes, registry, timing_input};
use layerlab_agent::wire_tensors::{from_wire, to_wire};
use layerlab_edge::hash_bytes;
use layerlab_edge::{
    Client, EdgeError, InferRequest, Inferred, Models, Patience, PictureRequest, Request, Server,
    ServerLimits, Stretch, TensorShape, Token,
};
use layerlab_model::Network;
use layerlab_profiles::accuracy::Picture;
use layerlab_profiles::video::FrameFormat;
use layerlab_profiles::{Segment, sha256};

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../tests/models")
        .join(name)
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

/// The processors that every machine has.
fn processors() -> Vec<String> {
    runtimes().processors().map(|it| it.name.clone()).collect()
}

fn models(files: &[&str]) -> EdgeModels {
    let files: Vec<PathBuf> = files.iter().map(|name| file(name)).collect();
    EdgeModels::open(&files, &BTreeMap::new(), runtimes()).unwrap()
}

fn server(models: impl Models + 'static, limits: ServerLimits) -> Server {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let models: Box<dyn Models> = Box::new(models);
    Server::start_with(listener, token(), "test 1".to_owned(), limits, Some(models)).unwrap()
}

fn token() -> Token {
    Token::new([7; 32])
}

fn connect(address: SocketAddr) -> Client {
    let patience = Patience {
        silence: Duration::from_secs(60),
        ..Patience::default()
    };
    Client::connect(&address.to_string(), &token(), "test 1", patience).unwrap()
}

struct Known {
    network: Network,
    hash: [u8; 32],
}

fn known(name: &str) -> Known {
    Known {
        network: Network::open(&file(name), &BTreeMap::new()).unwrap(),
        hash: hash_bytes(&sha256(&std::fs::read(file(name)).unwrap())).unwrap(),
    }
}

impl Known {
    /// Layers from `first` on, to the ends of these stretches, all on one processor.
    fn asked(&self, first: u32, lasts: &[u32], processor: &str) -> InferRequest {
        let stretch = |&last: &u32| Stretch {
            last,
            processor: processor.to_owned(),
        };
        InferRequest {
            model: self.hash,
            first,
            stretches: lasts.iter().map(stretch).collect(),
            tensors: crossing(&self.network.takes(self.segment(first, lasts))).unwrap(),
        }
    }

    /// The layers of all stretches, as far as the network has them.
    fn segment(&self, first: u32, lasts: &[u32]) -> Segment {
        let last = lasts[lasts.len() - 1].min(self.network.layer_count());
        Segment::new(first, last).unwrap()
    }

    fn payload(&self, first: u32, lasts: &[u32]) -> Vec<u8> {
        let takes = self.network.takes(self.segment(first, lasts));
        to_wire(&timing_input(&takes, 1)).unwrap()
    }

    fn leaves(&self, first: u32, lasts: &[u32]) -> Vec<TensorShape> {
        crossing(&self.network.gives(self.segment(first, lasts))).unwrap()
    }
}

#[test]
fn layers_give_there_what_they_give_here() {
    // The last takes caches in the middle and gives them there.
    const NAMES: [&str; 3] = ["alexnet.onnx", "inception.onnx", "gpt2-decode.onnx"];
    let server = server(models(&NAMES), ServerLimits::default());
    let mut client = connect(server.address());
    let processor = &processors()[0];
    for name in NAMES {
        let known = known(name);
        let last = known.network.layer_count();
        let model = ModelWithTwin::alone(Arc::new(
            Network::open(&file(name), &BTreeMap::new()).unwrap(),
        ));
        // From within, where several tensors may cross, in one stretch and in two, and to within.
        for (first, lasts) in [(2, vec![last]), (3, vec![4, last]), (1, vec![2])] {
            let segment = known.segment(first, &lasts);
            let takes = known.network.takes(segment);
            if let Err(sentence) = crossing(&takes) {
                assert!(sentence.contains("input_ids is of i64"), "{sentence}");
                continue;
            }
            let (asked, payload) = (
                known.asked(first, &lasts, processor),
                known.payload(first, &lasts),
            );
            let gives = known.leaves(first, &lasts);
            let (inferred, answer) = client.infer(asked, &payload, &gives).unwrap();
            let mut session = runtimes().load(processor, &model, segment).unwrap();
            let here = session.outputs(&timing_input(&takes, 1)).unwrap();
            let there = from_wire(&known.network.gives(segment), &inferred.payload).unwrap();
            assert_eq!(there.len(), here.len(), "{name} {segment}");
            for (here, there) in here.iter().zip(&there) {
                let pairs = here.to_floats().into_iter().zip(there.to_floats());
                let (difference, largest) = pairs.fold((0_f32, 0_f32), |(d, m), (a, b)| {
                    (d.max((a - b).abs()), m.max(a.abs()))
                });
                assert!(
                    difference <= 1e-4 * largest,
                    "{name} {segment}: {difference} of {largest}"
                );
                assert!(largest > 0.0, "{name} {segment}");
            }
            assert!(Duration::from(answer.server.total()) <= answer.duration);
            assert!(Duration::from(answer.server.compute) > Duration::ZERO);
        }
    }
}

/// A picture with an edge and a gradient, of the network's size, as a PNG.
fn picture(network: &Network, edge: u32) -> (image::RgbImage, Vec<u8>) {
    let [_, _, height, width] = network.inputs()[0].shape[..] else {
        panic!("it takes pictures");
    };
    let picture = image::RgbImage::from_fn(width as u32, height as u32, |x, y| {
        image::Rgb([x as u8, y as u8, if x > edge { 200 } else { 30 }])
    });
    let mut file = std::io::Cursor::new(Vec::new());
    picture
        .write_to(&mut file, image::ImageFormat::Png)
        .unwrap();
    (picture, file.into_inner())
}

fn asked_of(known: &Known, processor: &str, file: &[u8]) -> PictureRequest {
    PictureRequest {
        model: known.hash,
        processor: processor.to_owned(),
        format: FrameFormat::Png,
        channels: "bgr".to_owned(),
        mean: vec![104.0, 117.0, 123.0],
        scale: 0.25,
        bytes: file.len() as u64,
    }
}

/// Two pictures leave before the first is answered, and the answers are those that the network gives here.
#[test]
fn pictures_are_answered_in_their_order_as_they_are_here() {
    let server = server(models(&["alexnet.onnx"]), ServerLimits::default());
    let (known, processor) = (known("alexnet.onnx"), processors()[0].clone());
    let (mut sender, mut receiver) = connect(server.address()).pictures().unwrap();
    let pictures = [20, 90].map(|edge| picture(&known.network, edge));
    for (_, file) in &pictures {
        let asked = asked_of(&known, &processor, file);
        sender.send(asked, file).unwrap();
    }
    let network = Network::open(&file("alexnet.onnx"), &BTreeMap::new()).unwrap();
    let model = ModelWithTwin::alone(Arc::new(network));
    let whole = Segment::whole(known.network.layer_count());
    let mut session = runtimes().load(&processor, &model, whole).unwrap();
    let mut answers = Vec::new();
    for (picture, file) in pictures {
        let preprocessing = asked_of(&known, &processor, &file).preprocessing();
        let values = preprocessing.input(&Picture {
            width: picture.width(),
            height: picture.height(),
            channels: 3,
            bytes: picture.into_raw(),
        });
        let bytes = values
            .unwrap()
            .iter()
            .flat_map(|it| it.to_le_bytes())
            .collect::<Vec<u8>>();
        let inputs = from_wire(known.network.inputs(), &bytes).unwrap();
        let here = to_wire(&session.outputs(&inputs).unwrap()).unwrap();
        let (there, server) = receiver.answer().unwrap();
        assert_eq!(there.payload, here);
        assert!(Duration::from(server.compute) > Duration::ZERO);
        answers.push(here);
    }
    assert_ne!(answers[0], answers[1], "the two pictures differ");
}

#[test]
fn a_picture_that_cannot_be_answered_is_refused_in_one_sentence() {
    let server = server(models(&["alexnet.onnx"]), ServerLimits::default());
    let (alexnet, processor) = (known("alexnet.onnx"), processors()[0].clone());
    let (_, file) = picture(&alexnet.network, 20);
    let sound = asked_of(&alexnet, &processor, &file);
    let mut unknown = sound.clone();
    unknown.model = known("inception.onnx").hash;
    let mut nowhere = sound.clone();
    nowhere.processor = "tpu".to_owned();
    let mut grey = sound.clone();
    grey.channels = "gray".to_owned();
    let mut jpeg = sound.clone();
    jpeg.format = FrameFormat::Jpeg;
    for (asked, words) in [
        (unknown, "no model"),
        (nowhere, "no processor `tpu`"),
        (grey, "channels"),
        (jpeg, "cannot be decoded"),
    ] {
        let (mut sender, mut receiver) = connect(server.address()).pictures().unwrap();
        // Whether all of it was taken before it was refused is chance.
        let _ = sender.send(asked.clone(), &file);
        match receiver.answer() {
            Err(EdgeError::Refused { sentence, .. }) => {
                assert!(
                    sentence.contains(words),
                    "`{words}` is missing in: {sentence}"
                );
            }
            other => panic!("{asked:?}: {other:?}"),
        }
    }
    let (mut sender, _receiver) = connect(server.address()).pictures().unwrap();
    let refused = sender.send(sound, &file[1..]).unwrap_err();
    assert!(matches!(refused, EdgeError::NoPicture), "{refused}");
}

#[test]
fn what_cannot_be_run_is_refused_in_one_sentence_that_says_what_can() {
    let server = server(models(&["alexnet.onnx"]), ServerLimits::default());
    let (alexnet, processor) = (known("alexnet.onnx"), &processors()[0]);
    let last = alexnet.network.layer_count();
    let other = known("inception.onnx").asked(1, &[2], processor);
    let beyond = alexnet.asked(1, &[last + 1], processor);
    let nowhere = alexnet.asked(1, &[2], "tpu");
    let mut flat = alexnet.asked(1, &[2], processor);
    let elements = flat.tensors[0].bytes().unwrap() / 4;
    flat.tensors = vec![TensorShape(vec![u32::try_from(elements).unwrap()])];
    let mut small = alexnet.asked(1, &[2], processor);
    small.tensors[0].0[0] = 0;
    for (asked, words) in [
        (other, "no model"),
        (beyond, "layers"),
        (nowhere, "no processor `tpu`"),
        (flat, "has the shapes"),
        (small, "has the shapes"),
    ] {
        let payload = vec![0; usize::try_from(asked.payload_bytes().unwrap()).unwrap()];
        let refused = connect(server.address()).infer(asked.clone(), &payload, &[]);
        match refused {
            Err(EdgeError::Refused { sentence, .. }) => {
                assert!(
                    sentence.contains(words),
                    "`{words}` is missing in: {sentence}"
                );
            }
            other => panic!("{asked:?}: {other:?}"),
        }
    }
    let mut large = alexnet.asked(1, &[2], processor);
    large.tensors = vec![TensorShape(vec![1 << 20, 1 << 10])];
    let refused = connect(server.address())
        .infer(large, &[], &[])
        .unwrap_err();
    assert!(matches!(refused, EdgeError::NoFrame { .. }), "{refused}");
}

/// Eighteen segments of one layer each and more: the server keeps sixteen.
#[test]
fn segments_stay_loaded_up_to_a_bound() {
    let models = models(&["inception.onnx"]);
    let (known, processor) = (known("inception.onnx"), &processors()[0]);
    let count = known.network.layer_count();
    let mut parts = 0;
    for first in 1..=count {
        for last in first..=count.min(first + 1) {
            let asked = known.asked(first, &[last], processor);
            models.accepts(&asked).unwrap();
            models.prepare(&asked).unwrap();
            models.prepare(&asked).unwrap();
            parts += 1;
            assert_eq!(models.loaded_segments(), parts.min(16));
        }
    }
    assert!(parts > 16, "{parts}");
}

/// Models that compute when they are told to.
struct Gate {
    inner: EdgeModels,
    entered: Arc<Barrier>,
    leave: Arc<Barrier>,
}

impl Models for Gate {
    fn accepts(&self, asked: &InferRequest) -> Result<(), String> {
        self.inner.accepts(asked)
    }

    fn prepare(&self, asked: &InferRequest) -> Result<(), String> {
        self.inner.prepare(asked)
    }

    fn run(&self, asked: &InferRequest, payload: &[u8]) -> Result<Inferred, String> {
        if asked.last() == 3 {
            panic!("a runtime that panics");
        }
        self.entered.wait();
        self.leave.wait();
        self.inner.run(asked, payload)
    }
}

fn gate() -> (Gate, Arc<Barrier>, Arc<Barrier>) {
    let (entered, leave) = (Arc::new(Barrier::new(2)), Arc::new(Barrier::new(2)));
    let gate = Gate {
        inner: models(&["alexnet.onnx"]),
        entered: Arc::clone(&entered),
        leave: Arc::clone(&leave),
    };
    (gate, entered, leave)
}

fn until(what: &str, holds: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < end, "{what}");
        thread::yield_now();
    }
}

#[test]
fn one_computes_at_a_time_and_the_others_time_in_the_queue_is_counted() {
    let (gate, entered, leave) = gate();
    let server = server(gate, ServerLimits::default());
    let (known, processor) = (known("alexnet.onnx"), processors()[0].clone());
    let address = server.address();
    let infer = || {
        let mut client = connect(address);
        let (asked, payload) = (known.asked(1, &[2], &processor), known.payload(1, &[2]));
        client
            .infer(asked, &payload, &known.leaves(1, &[2]))
            .unwrap()
            .1
    };
    thread::scope(|threads| {
        let first = threads.spawn(infer);
        entered.wait();
        let held = Instant::now();
        let second = threads.spawn(infer);
        until("the second waits", || server.waiting() == 1);
        let waits = Instant::now();
        // Links are measured meanwhile.
        connect(address).echo().unwrap();
        let (held, waits) = (held.elapsed(), waits.elapsed());
        leave.wait();
        let first = first.join().unwrap();
        entered.wait();
        leave.wait();
        let second = second.join().unwrap();
        assert!(Duration::from(first.server.compute) >= held, "{first:?}");
        assert!(Duration::from(second.server.queue) >= waits, "{second:?}");
    });
}

/// Neither a client that goes while it waits, nor a runtime that panics, leaves the turn taken.
#[test]
fn who_goes_in_the_middle_and_what_panics_leave_nothing_behind() {
    let (gate, entered, leave) = gate();
    let server = server(gate, ServerLimits::default());
    let (known, processor) = (known("alexnet.onnx"), processors()[0].clone());
    let address = server.address();
    let (asked, payload) = (known.asked(1, &[2], &processor), known.payload(1, &[2]));
    let hello = Request::Hello {
        token: token(),
        program: "test 1".to_owned(),
    };
    let whole = [
        hello.encode(),
        Request::Infer(asked.clone()).encode(),
        payload.clone(),
    ]
    .concat();
    // In the middle of the request, and, while another computes, in the queue.
    let mut half = TcpStream::connect(address).unwrap();
    half.write_all(&whole[..whole.len() - 1]).unwrap();
    drop(half);
    thread::scope(|threads| {
        let first = threads.spawn(|| {
            let mut client = connect(address);
            client
                .infer(asked.clone(), &payload, &known.leaves(1, &[2]))
                .unwrap();
        });
        entered.wait();
        let mut queued = TcpStream::connect(address).unwrap();
        queued.write_all(&whole).unwrap();
        // It is welcome, so that it is served; then it goes.
        queued.read_exact(&mut [0; 26]).unwrap();
        drop(queued);
        leave.wait();
        first.join().unwrap();
    });
    until("all are gone", || server.connections() == 0);
    let panics = known.asked(1, &[3], &processor);
    let refused = connect(address)
        .infer(panics, &payload, &known.leaves(1, &[3]))
        .unwrap_err();
    assert!(
        refused
            .to_string()
            .contains("the runtime on this server failed"),
        "{refused}"
    );
    thread::scope(|threads| {
        threads.spawn(|| {
            entered.wait();
            leave.wait();
        });
        connect(address)
            .infer(asked.clone(), &payload, &known.leaves(1, &[2]))
            .unwrap();
    });
}

#[test]
fn who_waits_too_long_for_the_turn_is_told_so() {
    let (gate, entered, leave) = gate();
    let limits = ServerLimits {
        queue: Duration::from_millis(50),
        ..ServerLimits::default()
    };
    let server = server(gate, limits);
    let (known, processor) = (known("alexnet.onnx"), processors()[0].clone());
    let (asked, payload) = (known.asked(1, &[2], &processor), known.payload(1, &[2]));
    let address = server.address();
    thread::scope(|threads| {
        let first = threads.spawn(|| {
            connect(address)
                .infer(asked.clone(), &payload, &known.leaves(1, &[2]))
                .unwrap();
        });
        entered.wait();
        let refused = connect(address).infer(asked.clone(), &payload, &known.leaves(1, &[2]));
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains("busy for 0.05 s"), "{refused}");
        leave.wait();
        first.join().unwrap();
    });
}
