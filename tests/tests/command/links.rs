//! Links: a server and who measures the way to it, over real sockets, and everything that can be wrong with either.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use layerlab_edge::{Reply, Request, Server, ServerLimits, Token};
use layerlab_tests::wait::wait_for;
use layerlab_tests::{layerlab, model, output, stderr, succeed};
use rustix::process::{Pid, Signal, kill_process};

use super::assert_fails;
use super::plan_edge_verified::Serving;

/// As few exchanges as a link is published of, on a link that is over soon.
const SOON: [&str; 6] = ["--shape", "400mbit,2ms", "--repeats", "2", "--echoes", "6"];

/// A folder with a token file.
pub(super) struct Place(pub(super) tempfile::TempDir);

impl Place {
    pub(super) fn new() -> Place {
        let place = Place(tempfile::tempdir().expect("a folder"));
        Token::read_or_make(&place.token()).expect("room");
        place
    }

    pub(super) fn token(&self) -> PathBuf {
        self.0.path().join("token")
    }

    fn out(&self) -> PathBuf {
        self.0.path().join("published/lab")
    }

    /// A server in this process, which knows the token.
    pub(super) fn server(&self) -> Server {
        let token = Token::read(&self.token()).expect("just made");
        let program = "layerlab test".to_owned();
        Server::start(listener(), token, program, ServerLimits::default()).expect("a thread")
    }

    fn measure(&self, server: impl ToString, options: &[&str]) -> Command {
        let mut command = layerlab();
        command.args(["link", "measure", &server.to_string(), "--name", "lab"]);
        command.arg("--token-file").arg(self.token());
        command.args(options).arg("--out").arg(self.out());
        command
    }

    /// Nothing was published, and nothing half of it is left.
    #[track_caller]
    fn assert_nothing_published(&self) {
        let published = self.0.path().join("published");
        let left = fs::read_dir(published).map_or(0, Iterator::count);
        assert_eq!(left, 0, "something was left");
    }
}

pub(super) fn listener() -> TcpListener {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port")
}

#[test]
fn a_shaped_link_is_measured_published_and_checked() {
    let place = Place::new();
    let server = place.server();
    let measure = |more: &[&str]| {
        let options = [&["--kind", "ethernet"], &SOON[..], more].concat();
        place.measure(server.address(), &options)
    };
    let said = succeed(&mut measure(&[]));
    for words in [
        "lab (shaped, simulated by layerlab's shaper)",
        "no phone",
        "upload: ",
        "download: ",
        "echo: ",
    ] {
        assert!(said.contains(words), "`{words}` is missing in: {said}");
    }
    let checked = succeed(layerlab().args(["link", "check"]).arg(place.out()));
    assert!(
        checked.contains("a sound measurement of the shaped link lab, 26 samples"),
        "{checked}"
    );
    let read = |file: &str| fs::read_to_string(place.out().join(file)).expect("a file");
    assert!(
        read("links.csv")
            .lines()
            .skip(1)
            .all(|line| line.starts_with("lab,shaped,"))
    );
    assert_eq!(read("link_traces.csv").lines().count(), 1);
    let json: serde_json::Value = serde_json::from_str(&read("link.json")).expect("JSON");
    assert_eq!(json["carrier"], "ethernet");
    assert_eq!(json["shape"]["bandwidth_bps"], 400_000_000);
    assert_eq!(json["provenance"]["measured_from"], "host");
    assert_eq!(json["provenance"]["server_program"], "layerlab test");

    // What is there is not replaced unasked, and stays as it was until what replaces it is whole.
    let before = read("link.json");
    assert_fails(
        &output(&mut measure(&[])),
        5,
        &["exists already", "--replace"],
    );
    assert_eq!(read("link.json"), before);
    let traced = succeed(&mut measure(&["--replace", "--json", "--trace", "300ms"]));
    let traced: serde_json::Value = serde_json::from_str(&traced).expect("JSON");
    assert_eq!(traced["simulated"], true);
    assert_eq!(traced["directions"].as_array().map(Vec::len), Some(2));
    assert_ne!(read("link.json"), before);
    assert_eq!(read("link_traces.csv").lines().count(), 1 + 2 * 3);
    succeed(layerlab().args(["link", "check"]).arg(place.out()));

    // A changed number is found.
    let links = read("links.csv").replace("upload,", "upload,1");
    fs::write(place.out().join("links.csv"), links).expect("room");
    let mut check = layerlab();
    assert_fails(
        &output(check.args(["link", "check"]).arg(place.out())),
        6,
        &["contradicts itself"],
    );
}

/// With a model, requests to run its last layer are timed beside echoes, and plans of it say what they take.
#[test]
fn requests_are_timed_where_the_server_has_the_model() {
    let place = Place::new();
    let serving = Serving::new(&place.token(), &model("vocnet-mini"));
    let path = model("vocnet-mini").display().to_string();
    let options = [&["--kind", "ethernet"], &SOON[..], &["--model", &path]].concat();
    let said = succeed(&mut place.measure(&serving.address, &options));
    let words = "the median of 6 that had layers 11 to 11 of vocnet-mini run on cpu:all, of which the server computed";
    assert!(said.contains(words), "{said}");
    let checked = succeed(layerlab().args(["link", "check"]).arg(place.out()));
    assert!(checked.contains("32 samples"), "{checked}");
    let read = |file: &str| fs::read_to_string(place.out().join(file)).expect("a file");
    let json: serde_json::Value = serde_json::from_str(&read("link.json")).expect("JSON");
    let requests = &json["method"]["requests"];
    assert_eq!(requests["count"], 6);
    let count = read("link_samples.csv").matches(",request,").count();
    assert_eq!(count, 6);

    // A sample less than was planned is found.
    let all = read("link.json").replace("\"count\": 6", "\"count\": 7");
    fs::write(place.out().join("link.json"), all).expect("room");
    let mut check = layerlab();
    let checked = output(check.args(["link", "check"]).arg(place.out()));
    assert_fails(&checked, 6, &["contradicts itself"]);
    let found = String::from_utf8_lossy(&checked.stdout);
    assert!(
        found.contains("32 samples that are not the 33 of the method"),
        "{found}"
    );
}

#[test]
fn requests_that_nobody_can_answer_are_one_sentence_and_nothing_is_published() {
    let place = Place::new();
    let server = place.server();
    let measure = |server: &dyn ToString, more: &[&str]| {
        let options = [&["--kind", "ethernet"], &SOON[..], more].concat();
        output(&mut place.measure(server.to_string(), &options))
    };
    let path = |name: &str| model(name).display().to_string();
    let serving = Serving::new(&place.token(), &model("vocnet-mini"));
    let cases: [(&dyn ToString, &[&str], i32, &str); 4] = [
        (
            &server.address(),
            &["--model", &path("vocnet-mini")],
            4,
            "started without --model",
        ),
        (
            &serving.address,
            &["--model", &path("object-mini")],
            4,
            "this server has no model",
        ),
        (
            &serving.address,
            &["--model", &path("vocnet-mini"), "--processor", "npu"],
            4,
            "no processor `npu`",
        ),
        (
            &serving.address,
            &["--model", "nowhere.onnx"],
            3,
            "nowhere.onnx",
        ),
    ];
    for (server, more, code, words) in cases {
        assert_fails(&measure(server, more), code, &[words]);
        place.assert_nothing_published();
    }
}

#[test]
fn a_link_that_was_not_shaped_is_measured() {
    let place = Place::new();
    let server = place.server();
    let options = ["--kind", "usb-tunnel", "--repeats", "3", "--echoes", "6"];
    let said = succeed(&mut place.measure(server.address(), &options));
    assert!(said.contains("lab (usb-tunnel)"), "{said}");
    let links = fs::read_to_string(place.out().join("links.csv")).expect("a table");
    assert!(
        links.lines().skip(1).all(|line| line.ends_with(",derived")),
        "{links}"
    );
}

/// Carries two connections to `server`: the one that looks whether it is there, and of the next so many bytes. Then it is
/// gone.
pub(super) fn dying(server: SocketAddr, bytes: u64) -> SocketAddr {
    let listener = listener();
    let address = listener.local_addr().expect("bound");
    thread::spawn(move || {
        let (probe, _) = listener.accept().expect("a client");
        carry(probe, server, u64::MAX);
        let (measuring, _) = listener.accept().expect("a client");
        drop(listener);
        carry(measuring, server, bytes);
    });
    address
}

/// A server that is gone once the client's second connection has brought this many bytes of answers. How many it brought is said
/// when it ends.
pub(super) fn answering(server: SocketAddr, most: u64) -> (SocketAddr, Receiver<u64>) {
    let listener = listener();
    let address = listener.local_addr().expect("bound");
    let (brought, bytes) = channel();
    thread::spawn(move || {
        let (probe, _) = listener.accept().expect("a client");
        carry(probe, server, u64::MAX);
        let (near, _) = listener.accept().expect("a client");
        drop(listener);
        let far = TcpStream::connect(server).expect("a server");
        thread::scope(|threads| {
            threads.spawn(|| {
                let _ = io::copy(&mut &near, &mut &far);
                let _ = far.shutdown(Shutdown::Write);
            });
            let answers = io::copy(&mut (&far).take(most), &mut &near);
            for stream in [&near, &far] {
                let _ = stream.shutdown(Shutdown::Both);
            }
            let _ = brought.send(answers.unwrap_or_default());
        });
    });
    (address, bytes)
}

fn carry(near: TcpStream, server: SocketAddr, bytes: u64) {
    let far = TcpStream::connect(server).expect("a server");
    let (mut back, mut forth) = (&far, &near);
    thread::scope(|threads| {
        threads.spawn(move || io::copy(&mut back, &mut forth));
        let _ = io::copy(&mut (&near).take(bytes), &mut &far);
        for stream in [&near, &far] {
            let _ = stream.shutdown(Shutdown::Both);
        }
    });
}

/// Answers whatever comes with `bytes`.
fn impostor(bytes: Vec<u8>) -> SocketAddr {
    let listener = listener();
    let address = listener.local_addr().expect("bound");
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, bytes) = (stream.expect("a client"), bytes.clone());
            // Each by itself: a client that connects again keeps its lost connection until it has a new one.
            thread::spawn(move || {
                let mut first = [0; 64];
                let _ = stream.read(&mut first);
                let _ = stream.write_all(&bytes);
                let _ = stream.shutdown(Shutdown::Write);
                let _ = io::copy(&mut stream, &mut io::sink());
            });
        }
    });
    address
}

#[test]
fn a_server_that_cannot_be_measured_is_one_sentence_and_nothing_is_published() {
    let place = Place::new();
    let server = place.server();
    let stranger = Place::new();
    let elsewhere = stranger.server();
    let gone = listener().local_addr().expect("bound");
    let mut newer = Request::Echo.encode();
    newer[5] = 9;
    let welcome = Reply::Welcome {
        program: "x".to_owned(),
    };
    let measure = |server: SocketAddr| place.measure(server, &["--kind", "ethernet"]);
    for (server, words) in [
        (
            gone,
            [
                "cannot reach an edge server",
                "start `layerlab edge-server` there",
            ],
        ),
        (
            impostor(newer),
            ["is no edge server of this layerlab", "version 9"],
        ),
        (
            elsewhere.address(),
            ["refused: the token", "copy the server's token file"],
        ),
        (
            impostor(b"220 mail ready\r\n".repeat(9)),
            ["is no edge server", "no frame"],
        ),
        (
            impostor(Vec::new()),
            ["was lost while saying hello", "measure again"],
        ),
        (
            impostor(welcome.encode()),
            ["was lost 11 times", "measure again"],
        ),
        (
            dying(server.address(), 1 << 20),
            ["was lost while", "measure again"],
        ),
    ] {
        let said = output(&mut measure(server));
        assert_fails(&said, 4, &words);
        assert!(
            stderr(&said).contains(&server.to_string()),
            "{}",
            stderr(&said)
        );
        place.assert_nothing_published();
    }
    let nowhere = output(&mut place.measure("nowhere", &["--kind", "wifi"]));
    assert_fails(
        &nowhere,
        4,
        &[
            "cannot reach an edge server at nowhere",
            "correct the address",
        ],
    );
}

#[test]
fn what_is_asked_for_wrongly_is_refused_before_anything_is_measured() {
    let place = Place::new();
    let server = place.server();
    let measure = |options: &[&str]| output(&mut place.measure(server.address(), options));
    for kind in ["wifi", "cellular"] {
        let words = ["this machine itself", "kind usb-tunnel"];
        assert_fails(&measure(&["--kind", kind]), 2, &words);
    }
    let usage = |output: &Output, words: &str| {
        assert_eq!(output.status.code(), Some(2), "{}", stderr(output));
        assert!(stderr(output).contains(words), "{}", stderr(output));
    };
    for (options, words) in [
        (&["--kind", "shaped"][..], "invalid value 'shaped'"),
        (
            &["--kind", "wifi", "--shape", "5mbit"],
            "such as 5mbit,75ms",
        ),
        (
            &["--kind", "wifi", "--shape", "5,75ms"],
            "kbit, mbit or gbit",
        ),
        (&["--kind", "wifi", "--trace", "1ms"], "such as 10s"),
        (&["--kind", "wifi", "--repeats", "1"], "2..=1000"),
        (&[], "--kind"),
    ] {
        usage(&measure(options), words);
    }
    let mut named = layerlab();
    named.args([
        "link", "measure", "a:1", "--kind", "wifi", "--out", "x", "--name", "../x",
    ]);
    usage(&output(&mut named), "such as lab-wifi");
    place.assert_nothing_published();
    assert_eq!(server.connections(), 0);
}

#[test]
fn a_token_file_that_is_none_is_refused_with_its_remedy() {
    let place = Place::new();
    let measure = || output(&mut place.measure("127.0.0.1:9", &["--kind", "ethernet"]));
    let serve = || {
        output(
            layerlab()
                .arg("edge-server")
                .arg("--token-file")
                .arg(place.token()),
        )
    };
    fs::set_permissions(place.token(), fs::Permissions::from_mode(0o640)).expect("ours");
    for refused in [measure(), serve()] {
        assert_fails(&refused, 3, &["its mode is 640", "make another"]);
    }
    fs::set_permissions(place.token(), fs::Permissions::from_mode(0o600)).expect("ours");
    fs::write(place.token(), "secret").expect("ours");
    for refused in [measure(), serve()] {
        assert_fails(&refused, 3, &["64 hexadecimal digits"]);
    }
    fs::remove_file(place.token()).expect("ours");
    assert_fails(
        &measure(),
        3,
        &["cannot read the token", "layerlab edge-server"],
    );
    place.assert_nothing_published();
    assert_fails(
        &output(layerlab().args(["link", "check"]).arg(place.0.path())),
        3,
        &["link.json"],
    );
}

/// The command with these options, and the address that it says it listens on.
pub(super) fn edge_server(token: &Path, options: &[&OsStr]) -> (Child, String) {
    let mut command = layerlab();
    command.args(["edge-server", "--listen", "127.0.0.1:0", "--token-file"]);
    let mut child = command
        .arg(token)
        .args(options)
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut line = String::new();
    let stdout = child.stdout.take().expect("piped");
    BufReader::new(stdout).read_line(&mut line).expect("UTF-8");
    let address = line
        .strip_prefix("Listening on ")
        .and_then(|it| it.split(' ').next());
    let address = address
        .unwrap_or_else(|| panic!("no address in {line}"))
        .to_owned();
    (child, address)
}

fn interrupt(child: &Child) {
    let pid = Pid::from_child(child);
    kill_process(pid, Signal::INT).expect("it runs");
}

#[test]
fn the_server_makes_a_secret_serves_and_ends_when_it_is_interrupted() {
    let place = Place::new();
    fs::remove_file(place.token()).expect("ours");
    let (mut server, address) = edge_server(&place.token(), &[]);
    let mode = fs::metadata(place.token())
        .expect("made")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    let options = [&["--kind", "ethernet"], &SOON[..]].concat();
    succeed(&mut place.measure(&address, &options));
    let mut second = layerlab();
    second.args(["edge-server", "--listen", &address, "--token-file"]);
    let refused = output(second.arg(place.token()));
    assert_fails(
        &refused,
        4,
        &["cannot listen on", "choose another --listen"],
    );
    interrupt(&server);
    let ended = server.wait().expect("it runs");
    assert_eq!(ended.code(), Some(0));
}

#[test]
fn an_interrupted_measurement_publishes_nothing() {
    let place = Place::new();
    let server = place.server();
    let options = ["--kind", "ethernet", "--shape", "64kbit,100ms"];
    let mut command = place.measure(server.address(), &options);
    let child = command.stderr(Stdio::piped()).spawn().expect("it starts");
    wait_for("a client", || server.connections() > 0, String::new);
    interrupt(&child);
    let said = child.wait_with_output().expect("it runs");
    assert_fails(
        &said,
        130,
        &["interrupted; nothing unfinished was published"],
    );
    place.assert_nothing_published();
}
