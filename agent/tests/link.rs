//! Links that the real agent is asked to measure, over its socket, as PROTOCOL.md tells it.

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use layerlab_edge::{Server, ServerLimits, Token};
use layerlab_profiles::{Bytes, Nanos};
use layerlab_protocol::{
    MeasureLink, Refusal, Request, Response, ShapedLink, VERSION, decode, encode,
};

const SECRET: &str = "a secret";

/// Nothing here takes this long; a test that waits longer has hung.
const DEADLINE: Duration = Duration::from_secs(120);

struct Agent {
    folder: tempfile::TempDir,
    process: Child,
}

impl Agent {
    /// An agent on this machine itself.
    fn start() -> Agent {
        let folder = tempfile::tempdir().expect("a folder");
        let mut command = Command::new(env!("CARGO_BIN_EXE_layerlab-agent"));
        // No link has anything to do with the runtimes that other tests ask for.
        for name in ["LAYERLAB_ONNXRUNTIME", "LAYERLAB_QNN", "LAYERLAB_EMULATE"] {
            command.env_remove(name);
        }
        let mut process = command
            .arg("serve")
            .arg(format!(
                "--listen=unix:{}",
                folder.path().join("socket").display()
            ))
            .arg("--state")
            .arg(folder.path())
            .env("LAYERLAB_AGENT_TOKEN", SECRET)
            .stdout(Stdio::piped())
            .spawn()
            .expect("the agent starts");
        let mut stdout = BufReader::new(process.stdout.take().expect("a pipe"));
        let mut line = String::new();
        while !line.ends_with("listening\n") {
            let read = stdout.read_line(&mut line);
            assert!(read.expect("UTF-8") > 0, "it ended: {line}");
        }
        Agent { folder, process }
    }

    /// A connection on which hello was said.
    fn greet(&self) -> Talk {
        let stream = UnixStream::connect(self.folder.path().join("socket")).expect("it listens");
        stream.set_read_timeout(Some(DEADLINE)).expect("a timeout");
        let mut talk = Talk {
            reader: BufReader::new(stream.try_clone().expect("a copy")),
            stream,
        };
        talk.say(&Request::Hello {
            protocol: VERSION,
            token: SECRET.to_owned(),
        });
        let hello = talk.hear();
        assert!(matches!(hello, Response::Hello { .. }), "{hello:?}");
        talk
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

struct Talk {
    reader: BufReader<UnixStream>,
    stream: UnixStream,
}

impl Talk {
    fn say(&mut self, request: &Request) {
        let line = encode(request);
        self.stream.write_all(line.as_bytes()).expect("it reads");
    }

    fn hear(&mut self) -> Response {
        let mut line = String::new();
        self.reader.read_line(&mut line).expect("an answer");
        decode(&line).expect("a response")
    }

    fn measure(&mut self, link: &MeasureLink) {
        self.say(&Request::MeasureLink { link: link.clone() });
    }
}

fn server() -> Server {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let (token, limits) = (Token::new([7; 32]), ServerLimits::default());
    Server::start(listener, token, "test 1".to_owned(), limits).expect("a thread")
}

fn link(server: &Server) -> MeasureLink {
    MeasureLink {
        server: server.address().to_string(),
        token: "07".repeat(32),
        transfer_bytes: vec![Bytes::from_bytes(1_000), Bytes::from_bytes(100_000)],
        repeats: 2,
        echoes: 6,
        connections: None,
        gap_ns: None,
        seed: 3,
        reconnections: 10,
        trace_ns: None,
        shape: None,
        requests: None,
    }
}

/// One whose measurement takes minutes.
fn slow(server: &Server) -> MeasureLink {
    MeasureLink {
        shape: Some(ShapedLink {
            bandwidth_bps: 64_000,
            round_trip_ns: Nanos::from_millis(100),
        }),
        echoes: 10_000,
        ..link(server)
    }
}

/// Waits until somebody is connected to `server`, or nobody is.
#[track_caller]
fn wait_until_measured(server: &Server, is_measured: bool) {
    let end = Instant::now() + DEADLINE;
    while (server.connections() > 0) != is_measured {
        assert!(Instant::now() < end, "measured should be {is_measured}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn every_exchange_is_told_once_when_all_is_measured() {
    let (agent, server) = (Agent::start(), server());
    let mut talk = agent.greet();
    let traced = MeasureLink {
        trace_ns: Some(Nanos::from_millis(200)),
        ..link(&server)
    };
    talk.measure(&traced);
    let mut said = Vec::new();
    while !matches!(said.last(), Some(Response::LinkMeasured { .. })) {
        match talk.hear() {
            Response::LinkProgress { .. } => {}
            response => said.push(response),
        }
    }
    let [
        Response::LinkReached { loopback: true },
        Response::LinkSamples { samples },
        Response::LinkTraces { intervals },
        Response::LinkMeasured {
            samples: 14,
            intervals: 4,
            connections: 1,
            server_program,
        },
    ] = &said[..]
    else {
        panic!("{said:?}");
    };
    assert_eq!(server_program, "test 1");
    let indices: Vec<u32> = samples.iter().map(|sample| sample.index).collect();
    assert_eq!(indices, (0..14).collect::<Vec<u32>>());
    assert_eq!(intervals.len(), 4);
    wait_until_measured(&server, false);

    // And once more on the same connection.
    talk.measure(&link(&server));
    let reached = talk.hear();
    assert!(
        matches!(reached, Response::LinkReached { .. }),
        "{reached:?}"
    );
}

#[test]
fn one_link_is_measured_at_a_time_and_as_long_as_its_daemon_listens() {
    let (agent, server) = (Agent::start(), server());
    let mut first = agent.greet();
    first.measure(&slow(&server));
    let reached = first.hear();
    assert!(
        matches!(reached, Response::LinkReached { .. }),
        "{reached:?}"
    );
    first.measure(&link(&server));
    loop {
        match first.hear() {
            Response::LinkProgress { .. } => {}
            Response::Refused { refusal, message } => {
                assert_eq!(refusal, Refusal::Busy, "{message}");
                assert!(message.contains("wait until"), "{message}");
                break;
            }
            other => panic!("{other:?}"),
        }
    }
    // The first goes on.
    wait_until_measured(&server, true);
    // Its daemon goes: what is waited for is cut, however long it would have taken.
    drop(first);
    wait_until_measured(&server, false);
    let mut second = agent.greet();
    second.measure(&slow(&server));
    let reached = second.hear();
    assert!(
        matches!(reached, Response::LinkReached { .. }),
        "{reached:?}"
    );
    wait_until_measured(&server, true);
    // A newer daemon takes the place of the older one.
    let mut third = agent.greet();
    wait_until_measured(&server, false);
    third.measure(&link(&server));
    assert!(
        matches!(third.hear(), Response::LinkReached { .. }),
        "the turn is free again"
    );
}

#[test]
fn what_cannot_be_measured_is_said_in_a_sentence() {
    let (agent, server) = (Agent::start(), server());
    let mut talk = agent.greet();
    let right = link(&server);
    let of_another = MeasureLink {
        token: "08".repeat(32),
        ..right.clone()
    };
    talk.measure(&of_another);
    match talk.hear() {
        Response::LinkFailed { message } => assert!(message.contains("the token"), "{message}"),
        other => panic!("{other:?}"),
    }
    drop(server);
    talk.measure(&right);
    match talk.hear() {
        Response::LinkFailed { message } => {
            assert!(
                message.contains("start `layerlab edge-server`"),
                "{message}"
            );
        }
        other => panic!("{other:?}"),
    }
    let no_token = MeasureLink {
        token: "secret".to_owned(),
        ..right.clone()
    };
    let too_large = MeasureLink {
        transfer_bytes: vec![Bytes::from_bytes(1 << 40)],
        ..right
    };
    for malformed in [no_token, too_large] {
        talk.measure(&malformed);
        match talk.hear() {
            Response::Refused { refusal, message } => {
                assert_eq!(refusal, Refusal::Malformed, "{message}");
                assert!(!message.contains("secret"), "{message}");
            }
            other => panic!("{other:?}"),
        }
    }
    // All this is no reason to go.
    talk.say(&Request::Ping);
    assert_eq!(talk.hear(), Response::Pong);
}
