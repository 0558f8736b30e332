//! A real server over real sockets: what it answers, and whom it turns away.

#![allow(clippy::unwrap_used)]

mod common;

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use common::{connect, connect_with, patience, server, token};
use layerlab_edge::{
    Cancel, Client, EdgeError, HEADER_BYTES, InferRequest, MAX_PAYLOAD_BYTES, MeasurePlan,
    Patience, Reply, Request, ServerLimits, Stretch, TensorShape, Token, measure,
};

/// What the server says to who sends `bytes`, until it closes the connection.
fn said_to(address: SocketAddr, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    stream.write_all(bytes).unwrap();
    let mut said = Vec::new();
    stream.read_to_end(&mut said).unwrap();
    String::from_utf8_lossy(&said).into_owned()
}

fn infer() -> Request {
    let stretch = Stretch {
        last: 1,
        processor: "cpu".to_owned(),
    };
    Request::Infer(InferRequest {
        model: [0; 32],
        first: 1,
        stretches: vec![stretch],
        tensors: vec![TensorShape(vec![0])],
    })
}

fn hello(token: Token) -> Vec<u8> {
    let program = "test 1".to_owned();
    Request::Hello { token, program }.encode()
}

#[test]
fn a_client_that_knows_the_token_is_answered_with_the_servers_times() {
    let server = server(ServerLimits::default());
    let mut client = connect(server.address()).unwrap();
    assert_eq!(client.server_program(), "test 1");
    let mut answers = vec![client.echo().unwrap()];
    for bytes in [0, 1, 65_536, 65_537, 3 << 20] {
        answers.push(client.sink(bytes).unwrap());
        answers.push(client.source(bytes).unwrap());
    }
    for answer in &answers {
        let at_server = Duration::from(answer.server.total());
        assert!(at_server <= answer.duration, "{answer:?}");
        assert!(at_server > Duration::ZERO, "{answer:?}");
    }
    // Sending is told from receiving.
    let [sunk, sourced] = answers[answers.len() - 2..] else {
        unreachable!("there are eleven")
    };
    assert!(sunk.server.receive > sunk.server.send, "{sunk:?}");
    assert!(sourced.server.send > sourced.server.receive, "{sourced:?}");
}

#[test]
fn fifty_clients_are_answered_at_once() {
    let server = server(ServerLimits::default());
    let mut clients: Vec<Client> = (0..50)
        .map(|_| connect(server.address()).unwrap())
        .collect();
    thread::scope(|threads| {
        for client in &mut clients {
            threads.spawn(|| {
                for _ in 0..5 {
                    client.echo().unwrap();
                    client.sink(100_000).unwrap();
                    client.source(100_000).unwrap();
                }
            });
        }
    });
    assert_eq!(server.connections(), 50);
}

#[test]
fn whoever_speaks_something_else_is_told_so_in_one_sentence_and_closed() {
    let server = server(ServerLimits::default());
    let mut newer = Request::Echo.encode();
    newer[5] = 9;
    let mut unknown = Request::Echo.encode();
    unknown[7] = 99;
    let mut long = Request::Echo.encode();
    long[8] = 1;
    let known = |request: Request| [hello(token()), request.encode()].concat();
    let cases = [
        (
            b"GET / HTTP/1.1\r\nHost: phone\r\n\r\n".to_vec(),
            "no frame",
        ),
        (vec![0; 3_000_000], "no frame"),
        (newer, "version 9"),
        (unknown, "kind 99"),
        (long, "too long"),
        (Request::Echo.encode(), "hello first"),
        (hello(Token::new([8; 32])), "the token is not this server's"),
        (known(infer()), "without --model"),
        (
            [hello(token()), hello(token())].concat(),
            "hello was said already",
        ),
        ([hello(token()), vec![1; 20]].concat(), "no frame"),
        (
            known(Request::Source {
                bytes: MAX_PAYLOAD_BYTES + 1,
            }),
            "does not have",
        ),
        (
            [hello(token()), Reply::Data { bytes: 0 }.encode()].concat(),
            "for the other end",
        ),
    ];
    for (bytes, words) in cases {
        let said = said_to(server.address(), &bytes);
        assert!(said.contains(words), "`{words}` is missing in: {said:?}");
        let (_, sentence) = said.rsplit_once("LLeg").unwrap();
        assert_eq!(sentence.lines().count(), 1, "{sentence:?}");
    }
    // Nobody else was harmed.
    connect(server.address()).unwrap().echo().unwrap();
}

#[test]
fn a_client_with_another_token_learns_what_to_do() {
    let server = server(ServerLimits::default());
    let refused = connect_with(&Token::new([8; 32]), server.address())
        .err()
        .unwrap();
    let said = refused.to_string();
    assert!(matches!(refused, EdgeError::Refused { .. }), "{said}");
    assert!(said.contains("copy the server's token file"), "{said}");
}

#[test]
fn whoever_says_nothing_is_told_so_and_closed() {
    let limits = ServerLimits {
        hello: Duration::from_millis(200),
        idle: Duration::from_millis(300),
        ..ServerLimits::default()
    };
    let server = server(limits);
    let began = Instant::now();
    assert!(said_to(server.address(), &[]).contains("silent or slow"));
    // Byte by byte does not help: the deadline is for all of it.
    assert!(said_to(server.address(), &hello(token())[..30]).contains("silent or slow"));
    assert!(began.elapsed() >= 2 * limits.hello);
    // After hello, it may be silent for a while.
    assert!(said_to(server.address(), &hello(token())).contains("silent or slow"));
}

#[test]
fn too_many_are_told_so() {
    let limits = ServerLimits {
        connections: 2,
        ..ServerLimits::default()
    };
    let server = server(limits);
    let two = [
        connect(server.address()).unwrap(),
        connect(server.address()).unwrap(),
    ];
    let said = connect(server.address()).err().unwrap().to_string();
    assert!(said.contains("2 connections already"), "{said}");
    drop(two);
    // A connection that was closed makes room as soon as its thread has seen it.
    let deadline = Instant::now() + Duration::from_secs(60);
    while let Err(error) = connect(server.address()) {
        assert!(Instant::now() < deadline, "{error}");
        thread::yield_now();
    }
}

/// Answers every connection with `bytes`, after it has read `reads` bytes, and closes it.
fn impostor(reads: usize, bytes: Vec<u8>) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut read = vec![0; reads];
            let _ = stream.read_exact(&mut read);
            let _ = stream.write_all(&bytes);
            let _ = stream.shutdown(Shutdown::Write);
            // Until the other end has read it.
            let _ = stream.read_to_end(&mut read);
        }
    });
    address
}

#[test]
fn what_is_no_edge_server_is_recognised_whatever_it_says() {
    let hello_bytes = hello(token()).len();
    let welcome = Reply::Welcome {
        program: "test 1".to_owned(),
    };
    let mut newer = welcome.encode();
    newer[5] = 9;
    let echoed = |reply: &Reply| [welcome.encode(), reply.encode()].concat();
    let cases = [
        (
            b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(),
            "is no edge server",
        ),
        (newer, "version 9 of the edge protocol"),
        (Request::Echo.encode(), "for the other end"),
        (Vec::new(), "was lost while saying hello"),
        (
            welcome.encode()[..10].to_vec(),
            "was lost while saying hello",
        ),
        (welcome.encode(), "was lost while waiting for an echo"),
        (
            echoed(&Reply::Data { bytes: 63 }),
            "answered something else while waiting",
        ),
        (echoed(&welcome), "answered something else while waiting"),
    ];
    for (bytes, words) in cases {
        let address = impostor(hello_bytes, bytes);
        let error = connect(address).and_then(|mut client| client.echo());
        let said = error.err().unwrap().to_string();
        assert!(said.contains(words), "`{words}` is missing in: {said}");
        assert!(said.contains(&address.to_string()), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}

#[test]
fn a_server_that_is_not_there_or_says_nothing_is_not_waited_for_in_vain() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let hasty = Patience {
        silence: Duration::from_millis(100),
        ..patience()
    };
    // It accepts, for its system does, and never answers.
    let silent = Client::connect(&address.to_string(), &token(), "test 1", hasty);
    let said = silent.err().unwrap().to_string();
    assert!(said.contains("did not answer within 0.1 s"), "{said}");
    drop(listener);
    let said = connect(address).err().unwrap().to_string();
    assert!(
        said.contains("start `layerlab edge-server` there"),
        "{said}"
    );
    for nowhere in ["", "nowhere", "127.0.0.1:no"] {
        let error = Client::connect(nowhere, &token(), "test 1", patience());
        let said = error.err().unwrap().to_string();
        assert!(said.contains("correct the address"), "{nowhere}: {said}");
    }
}

/// The server is dropped while it is measured: one sentence, and soon.
#[test]
fn a_server_that_dies_in_the_middle_ends_the_measurement() {
    let server = server(ServerLimits::default());
    let address = server.address();
    let mut running = Some(server);
    let plan = MeasurePlan::default();
    let measured = measure(
        || connect(address),
        &address.to_string(),
        &plan,
        &Cancel::default(),
        |progress| {
            if let layerlab_edge::Progress::Exchanges { done: 30, .. } = progress {
                running = None;
            }
        },
    );
    let said = measured.err().unwrap().to_string();
    assert!(said.contains("was lost while"), "{said}");
    assert!(said.contains("measure again"), "{said}");
}

/// The header says how long what follows is, and nothing is read beyond it.
#[test]
fn requests_may_follow_one_another_without_waiting() {
    let server = server(ServerLimits::default());
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    let sink = [Request::Sink { bytes: 3 }.encode(), b"abc".to_vec()].concat();
    let all = [hello(token()), sink.repeat(100)].concat();
    stream.write_all(&all).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut said = Vec::new();
    stream.read_to_end(&mut said).unwrap();
    let welcome = Reply::Welcome {
        program: "test 1".to_owned(),
    };
    let done = HEADER_BYTES + 32;
    assert_eq!(said.len(), welcome.encode().len() + 100 * done);
}
