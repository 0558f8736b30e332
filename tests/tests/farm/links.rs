//! Links that phones measure: from the real adbd, through a tunnel and without, and all that ends a measurement early.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use layerlab_edge::{Server, ServerLimits, Token};
use layerlab_tests::farm::Farm;
use layerlab_tests::skip::skip;
use layerlab_tests::virtual_phone::VirtualPhone;
use layerlab_tests::wait::wait_for;
use layerlab_tests::{output, stderr, succeed};
use rustix::process::{Pid, Signal, kill_process};

/// A lab with a phone, and a server beside it.
struct Beside {
    farm: Farm,
    phone: VirtualPhone,
    server: Server,
}

/// What takes minutes to measure.
const SLOW: [&str; 2] = ["--shape", "64kbit,100ms"];

/// As few exchanges as a link is published of, on a link that is over soon.
const SOON: [&str; 6] = ["--shape", "400mbit,2ms", "--repeats", "2", "--echoes", "6"];

/// A server at `ip` that knows the lab's token.
fn serve(farm: &Farm, ip: IpAddr) -> Server {
    let token = Token::read_or_make(&farm.path("token")).expect("room");
    let listener = TcpListener::bind((ip, 0)).expect("a port");
    let (program, limits) = ("layerlab test".to_owned(), ServerLimits::default());
    Server::start(listener, token, program, limits).expect("a thread")
}

impl Beside {
    /// The server listens at `ip`.
    fn new(ip: IpAddr) -> Option<Beside> {
        let farm = Farm::new()?;
        let phone = farm.phone("P1");
        Some(Beside {
            phone,
            server: serve(&farm, ip),
            farm,
        })
    }

    fn here() -> Option<Beside> {
        Beside::new(Ipv4Addr::LOCALHOST.into())
    }

    fn out(&self) -> PathBuf {
        self.farm.path("published/lab")
    }

    /// The phone measures the way to `server`.
    fn measure(&self, server: SocketAddr, kind: &str, options: &[&str]) -> Command {
        let mut command = self.farm.layerlab();
        command.args(["link", "measure", &server.to_string(), "--name", "lab"]);
        command.args(["--device", &self.phone.address]);
        command.args(["--adb-connect", &self.phone.address]);
        command.args(["--kind", kind, "--no-reboot", "--patience", "1s"]);
        command.arg("--token-file").arg(self.farm.path("token"));
        command.args(options).arg("--out").arg(self.out());
        command
    }

    /// Measures slowly through a tunnel, until `then` was done while it does.
    fn disturbed(&self, then: impl FnOnce(&Child)) -> Output {
        let options = [&["--tunnel"], &SLOW[..]].concat();
        let mut command = self.measure(self.server.address(), "network-tunnel", &options);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().expect("it starts");
        // The first only looks whether the server is there.
        wait_for("a phone", || self.server.connections() > 0, String::new);
        then(&child);
        child.wait_with_output().expect("it runs")
    }

    fn reverse(&self, arguments: &[&str]) -> String {
        let mut adb = self.farm.adb();
        adb.args(["-s", &self.phone.address, "reverse"]);
        succeed(adb.args(arguments)).trim().to_owned()
    }

    fn json(&self) -> serde_json::Value {
        let text = fs::read(self.out().join("link.json")).expect("published");
        serde_json::from_slice(&text).expect("JSON")
    }

    /// Nothing was published, and nothing half of it is left; the phone measures no more.
    #[track_caller]
    fn assert_nothing_left(&self) {
        let published = self.farm.path("published");
        let left = fs::read_dir(published).map_or(0, Iterator::count);
        assert_eq!(left, 0, "something was left");
        let alone = || self.server.connections() == 0;
        wait_for("the phone to measure no more", alone, String::new);
    }
}

/// The command failed with `code`, and its last sentence has all of `words` in it.
#[track_caller]
fn assert_fails(output: &Output, code: i32, words: &[&str]) {
    let said = stderr(output);
    assert_eq!(output.status.code(), Some(code), "{said}");
    let last = said.lines().last().unwrap_or_default();
    assert!(last.starts_with("layerlab: "), "{said}");
    assert!(!said.contains("panicked"), "{said}");
    for word in words {
        assert!(last.contains(word), "`{word}` is missing in: {said}");
    }
}

#[test]
fn a_phone_measures_its_link_through_a_tunnel_that_comes_and_goes_with_the_command() {
    let Some(beside) = Beside::here() else { return };
    let options = ["--tunnel", "--repeats", "3", "--echoes", "6"];
    let measure = || beside.measure(beside.server.address(), "network-tunnel", &options);
    let said = succeed(&mut measure());
    assert!(
        said.contains("lab (network-tunnel): from the phone P1 to 127.0.0.1:"),
        "{said}"
    );
    assert_eq!(beside.reverse(&["--list"]), "");
    let mut check = beside.farm.layerlab();
    let checked = succeed(check.args(["link", "check"]).arg(beside.out()));
    assert!(
        checked.contains("a sound measurement of the network-tunnel link lab, 36 samples"),
        "{checked}"
    );
    let json = beside.json();
    let provenance = &json["provenance"];
    assert_eq!(provenance["measured_from"], "phone");
    assert_eq!(provenance["phone"]["described"]["serial"], "P1");
    assert_eq!(provenance["phone"]["agent"]["name"], "layerlab-agent");
    assert_eq!(provenance["phone"]["attached"], "network");
    assert_eq!(provenance["phone"]["tunnelled"], true);
    assert_eq!(provenance["server_program"], "layerlab test");
    let server = beside.server.address().to_string();
    assert_eq!(json["server"], server.as_str());
    let links = fs::read_to_string(beside.out().join("links.csv")).expect("a table");
    let mut rows = links.lines().skip(1);
    assert!(rows.all(|row| row.ends_with(",derived")), "{links}");

    // What somebody says of it afterwards is noticed.
    let path = beside.out().join("link.json");
    let text = fs::read_to_string(&path).expect("published");
    fs::write(
        &path,
        text.replace("\"tunnelled\": true", "\"tunnelled\": false"),
    )
    .expect("room");
    let mut check = beside.farm.layerlab();
    let changed = output(check.args(["link", "check"]).arg(beside.out()));
    assert_fails(&changed, 6, &["contradicts itself"]);
}

#[test]
fn a_tunnel_that_somebody_else_made_is_said_to_be_one() {
    let Some(beside) = Beside::here() else { return };
    succeed(
        beside
            .farm
            .layerlab()
            .args(["devices", "--adb-connect", &beside.phone.address]),
    );
    let to = format!("tcp:{}", beside.server.address().port());
    let port: u16 = beside.reverse(&["tcp:0", &to]).parse().expect("a port");
    let tunnel = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    for kind in ["wifi", "cellular", "ethernet", "usb-tunnel"] {
        let said = output(&mut beside.measure(tunnel, kind, &SOON));
        let words = [
            "only a tunnel leads to a server",
            "the kind is network-tunnel",
            &format!("not measured as {kind}"),
        ];
        assert_fails(&said, 2, &words);
        beside.assert_nothing_left();
    }
    succeed(&mut beside.measure(tunnel, "network-tunnel", &SOON));
    let json = beside.json();
    assert_eq!(json["kind"], "shaped");
    assert_eq!(json["carrier"], "network-tunnel");
    assert_eq!(json["provenance"]["measured_from"], "phone");
    // It is not ours to close.
    assert!(beside.reverse(&["--list"]).contains(&to));
}

/// An address of this machine that is not its loopback.
fn own_address() -> Option<IpAddr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    // Nothing is sent: it only says from where it would be.
    socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9)).ok()?;
    let ip = socket.local_addr().ok()?.ip();
    (!ip.is_loopback() && !ip.is_unspecified()).then_some(ip)
}

#[test]
fn a_phone_measures_its_link_without_a_tunnel_with_an_adb_server_and_without() {
    let Some(ip) = own_address() else {
        return skip(
            "a network address of this machine",
            "connect it to a network",
        );
    };
    let Some(beside) = Beside::new(ip) else {
        return;
    };
    let server = beside.server.address();
    for kind in ["usb-tunnel", "network-tunnel"] {
        let said = output(&mut beside.measure(server, kind, &SOON));
        assert_fails(&said, 2, &["wifi, cellular or ethernet"]);
    }
    let elsewhere = output(&mut beside.measure(server, "network-tunnel", &["--tunnel"]));
    assert_fails(&elsewhere, 2, &["leave out the tunnel"]);
    beside.assert_nothing_left();
    let options = [&["--json", "--trace", "300ms"], &SOON[..]].concat();
    let said = succeed(&mut beside.measure(server, "ethernet", &options));
    let said: serde_json::Value = serde_json::from_str(&said).expect("JSON");
    assert_eq!(said["measured_from"], "phone");
    assert_eq!(said["phone"]["described"]["serial"], "P1");
    assert_eq!(said["phone"]["tunnelled"], false);
    let traces = fs::read_to_string(beside.out().join("link_traces.csv")).expect("a table");
    assert_eq!(traces.lines().count(), 1 + 2 * 3);

    let directly = |options: &[&str]| {
        let mut command = beside.measure(server, "ethernet", options);
        command.env("LAYERLAB_ADB", "").arg("--direct");
        command
    };
    succeed(&mut directly(&[&["--replace"], &SOON[..]].concat()));
    assert_eq!(beside.json()["provenance"]["phone"]["tunnelled"], false);
    let here: SocketAddr = (Ipv4Addr::LOCALHOST, server.port()).into();
    let mut tunnel = beside.measure(here, "network-tunnel", &["--tunnel", "--replace"]);
    let refused = output(tunnel.env("LAYERLAB_ADB", "").arg("--direct"));
    assert_fails(
        &refused,
        4,
        &["without an adb server", "use one (no --direct)"],
    );
}

#[test]
fn what_cannot_be_measured_is_one_sentence_and_nothing_is_published() {
    let Some(beside) = Beside::here() else { return };
    let gone = serve(&beside.farm, Ipv4Addr::LOCALHOST.into()).address();
    let said = output(&mut beside.measure(gone, "network-tunnel", &SOON));
    assert_fails(
        &said,
        4,
        &[
            "P1: cannot reach an edge server",
            "start `layerlab edge-server`",
        ],
    );
    let here = beside.server.address();
    let another = beside.farm.path("another");
    Token::read_or_make(&another).expect("room");
    let mut wrong = beside.measure(here, "network-tunnel", &SOON);
    fs::rename(&another, beside.farm.path("token")).expect("ours");
    let said = output(&mut wrong);
    assert_fails(&said, 4, &["P1: the edge server", "refused: the token"]);
    let of_no_phone = |device: &str| {
        let mut command = beside.farm.layerlab();
        command.args(["link", "measure", "127.0.0.1:9", "--name", "lab"]);
        command.args(["--kind", "usb-tunnel", "--device", device]);
        command.arg("--token-file").arg(beside.farm.path("token"));
        output(command.arg("--out").arg(beside.out()))
    };
    for device in ["host", "pixel6"] {
        let words = [device, "is no phone and has no link", "leave it out"];
        assert_fails(&of_no_phone(device), 2, &words);
    }
    assert_fails(&of_no_phone("P9"), 3, &["P9", "layerlab devices"]);
    beside.assert_nothing_left();
}

#[test]
fn an_agent_that_is_killed_in_the_middle_is_one_sentence_and_nothing_is_published() {
    let Some(beside) = Beside::here() else { return };
    let said = beside.disturbed(|_| {
        let kill = "kill -KILL $(cat /data/local/tmp/layerlab/*/agent.pid)";
        let mut adb = beside.farm.adb();
        succeed(adb.args(["-s", &beside.phone.address, "shell", kill]));
    });
    assert_fails(
        &said,
        4,
        &["the agent on P1 did not finish measuring", "measure again"],
    );
    beside.assert_nothing_left();
    assert_eq!(beside.reverse(&["--list"]), "");
    // The next one starts the agent again, and has each exchange once.
    let options = [&["--tunnel"], &SOON[..]].concat();
    succeed(&mut beside.measure(beside.server.address(), "network-tunnel", &options));
    let samples = fs::read_to_string(beside.out().join("link_samples.csv")).expect("a table");
    assert_eq!(samples.lines().count(), 1 + 26);
}

#[test]
fn a_server_that_dies_in_the_middle_is_one_sentence_and_nothing_is_published() {
    let Some(beside) = Beside::here() else { return };
    let dying = serve(&beside.farm, Ipv4Addr::LOCALHOST.into());
    let options = [&["--tunnel"], &SLOW[..]].concat();
    let mut command = beside.measure(dying.address(), "network-tunnel", &options);
    let child = command.stderr(Stdio::piped()).spawn().expect("it starts");
    wait_for("a phone", || dying.connections() > 0, String::new);
    drop(dying);
    let said = child.wait_with_output().expect("it runs");
    assert_fails(&said, 4, &["P1: ", "the edge server at", "measure again"]);
    beside.assert_nothing_left();
}

#[test]
fn a_phone_that_is_unplugged_or_a_command_that_is_interrupted_ends_the_measurement() {
    let Some(beside) = Beside::here() else { return };
    let said = beside.disturbed(|child| {
        kill_process(Pid::from_child(child), Signal::INT).expect("it runs");
    });
    assert_fails(
        &said,
        130,
        &["interrupted; nothing unfinished was published"],
    );
    beside.assert_nothing_left();
    assert_eq!(beside.reverse(&["--list"]), "");
    let said = beside.disturbed(|_| beside.phone.unplug());
    assert_fails(
        &said,
        4,
        &["the agent on P1 did not finish measuring", "measure again"],
    );
    beside.assert_nothing_left();
    beside.phone.plug();
    // On a busy machine it is a while until a phone answers, for which these commands do not wait.
    let connect = || {
        let mut adb = beside.farm.adb();
        output(adb.args(["connect", &beside.phone.address]))
    };
    let answers = || String::from_utf8_lossy(&connect().stdout).contains("connected to");
    wait_for("a phone that answers", answers, String::new);
    let options = [&["--tunnel"], &SOON[..]].concat();
    succeed(&mut beside.measure(beside.server.address(), "network-tunnel", &options));
}
