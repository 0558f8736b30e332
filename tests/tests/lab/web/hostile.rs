//! Who wants to do harm: paths that lead elsewhere, requests that never end, and clients that read nothing.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use layerlab_tests::lab::{Daemon, Lab};
use layerlab_tests::web::WebClient;

use super::super::SIMULATED;
use super::{models, on_the_web, started};

/// Longer than anything takes on a busy machine.
const DEADLINE: Duration = Duration::from_secs(120);

/// How much of the memory is the daemon's own.
fn resident_bytes(daemon: &Daemon) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", daemon.id()));
    let status = status.expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kibibytes = line.and_then(|line| line.trim().strip_suffix(" kB"));
    kibibytes.expect("a size").parse::<u64>().expect("a number") << 10
}

/// A lab that waits for nobody longer than a second.
fn impatient() -> Lab {
    Lab::new(&format!(
        "{SIMULATED}[web]\nlisten = \"127.0.0.1:0\"\ndrop-after = \"1s\"\nmodels = {:?}\n",
        models()
    ))
}

#[test]
fn no_parameter_of_a_path_leads_anywhere_else() {
    let lab = on_the_web(&models());
    let (_daemon, nobody) = started(&lab);
    let token = lab.succeed(&["token", "create", "root", "--role", "admin"]);
    let long = "a".repeat(5000);
    let tricks = [
        "..",
        ".",
        "../..",
        "%2e%2e",
        "..%2f..%2f..%2f..%2f..%2f..%2fetc%2fpasswd",
        "%2fetc%2fpasswd",
        "//etc/passwd",
        "..%5c..%5cconfig.toml",
        "..;/config.toml",
        "%252e%252e%252fconfig.toml",
        "%00",
        "profile.json%00",
        "%ff%fe",
        "%c0%ae%c0%ae",
        "-1",
        "0",
        "99999999999999999999999999",
        "1e3",
        "NaN",
        "%27%3b%20DROP%20TABLE%20job%3b--",
        "%3cscript%3e",
        "%0d%0aSet-Cookie:%20a=b",
        "%e2%80%ae",
        &long,
    ];
    let routes = [
        ("GET", "/api/v1/jobs/{}"),
        ("POST", "/api/v1/jobs/{}/pause"),
        ("POST", "/api/v1/jobs/{}/resume"),
        ("POST", "/api/v1/jobs/{}/cancel"),
        ("POST", "/api/v1/jobs/{}/retry"),
        ("GET", "/api/v1/runs/{}"),
        ("DELETE", "/api/v1/reservations/{}"),
        ("DELETE", "/api/v1/quarantine/{}"),
        ("GET", "/api/v1/profiles/{}"),
        ("GET", "/api/v1/profiles/{}/archive"),
        ("GET", "/api/v1/profiles/{}/files/profile.json"),
        ("GET", "/api/v1/profiles/1/files/{}"),
        ("GET", "/api/v1/profiles/{}/placements/0"),
        ("GET", "/api/v1/profiles/1/placements/{}"),
        ("DELETE", "/api/v1/tokens/{}"),
        ("GET", "/jobs/{}"),
        ("GET", "/runs/{}"),
        ("GET", "/profiles/{}"),
        ("GET", "/profiles/{}/explore"),
        ("GET", "/assets/{}"),
    ];
    for (method, route) in routes {
        for trick in tricks {
            let path = route.replace("{}", trick);
            let head = format!(
                "{method} {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
                nobody.address,
                token.trim()
            );
            let said = nobody.said_to(head.as_bytes());
            assert!(said.starts_with("HTTP/1.1 4"), "{method} {path}: {said}");
            assert!(!said.contains("root:"), "{method} {path}: {said}");
            let head = said.split("\r\n\r\n").next().unwrap_or_default();
            assert!(
                !head.to_ascii_lowercase().contains("set-cookie"),
                "{path}: {said}"
            );
            // In JSON that no browser takes for a page it may stand.
            let is_page = said.contains("content-type: text/html");
            assert!(!is_page || !said.contains("<script>"), "{path}: {said}");
        }
    }
    assert_eq!(nobody.get("/readyz").body, "ready\n");
    assert!(lab.succeed(&["token", "list"]).contains("root"));
}

#[test]
fn a_head_that_comes_letter_by_letter_is_not_waited_for() {
    let lab = impatient();
    let (_daemon, nobody) = started(&lab);
    let mut stream = TcpStream::connect(&nobody.address).expect("a lab");
    stream.set_nodelay(true).expect("one's own");
    let step = Duration::from_millis(50);
    stream.set_read_timeout(Some(step)).expect("a deadline");
    stream
        .write_all(b"GET /healthz HTTP/1.1\r\n")
        .expect("it listens");
    let begun = Instant::now();
    let ended = loop {
        assert!(begun.elapsed() < DEADLINE, "it is still waited for");
        if stream.write_all(b"X").is_err() {
            break begun.elapsed();
        }
        match stream.read(&mut [0; 1024]) {
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Ok(count) if count > 0 => {}
            Ok(_) | Err(_) => break begun.elapsed(),
        }
    };
    assert!(
        ended >= Duration::from_millis(500),
        "it had its time: {ended:?}"
    );
    assert_eq!(nobody.get("/healthz").body, "ok\n");
}

/// Clients that read nothing of the events, each of which is still there.
fn deaf(client: &WebClient, token: &str, count: usize) -> Vec<TcpStream> {
    let head = format!(
        "GET /api/v1/events?after=0 HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\r\n",
        client.address,
        token.trim()
    );
    let one = |_| {
        let mut stream = TcpStream::connect(&client.address).expect("a lab");
        stream.write_all(head.as_bytes()).expect("it listens");
        stream
    };
    (0..count).map(one).collect()
}

#[test]
fn who_reads_nothing_of_the_events_is_dropped_and_costs_bounded_memory() {
    const CLIENTS: usize = 20;
    const NOTE: usize = 50_000;
    const EVENTS: usize = 300;
    let lab = impatient().logging("warn,layerlab=info,layerlab_web=debug");
    let (daemon, nobody) = started(&lab);
    let operator = nobody.with_role(&lab, "operator");
    let token = lab.succeed(&["token", "create", "deaf", "--role", "viewer"]);
    let body = serde_json::json!({
        "device": "mate10pro", "until": "2100-01-01T00:00:00Z", "note": "x".repeat(NOTE),
    });
    let body = body.to_string();
    for _ in 0..EVENTS {
        let reserved = operator.post("/api/v1/reservations", "application/json", &body);
        assert_eq!(reserved.status, 204, "{reserved:?}");
        operator.delete("/api/v1/reservations/mate10pro");
    }
    let before = resident_bytes(&daemon);
    let streams = deaf(&nobody, &token, CLIENTS);
    let peer = |stream: &TcpStream| format!("peer={} ", stream.local_addr().expect("an address"));
    let peers: Vec<_> = streams.iter().map(peer).collect();
    lab.wait_for("clients that are dropped", || {
        let log = lab.log();
        let broken = log
            .lines()
            .filter(|line| line.contains("a connection from the web broke"));
        let broken: Vec<_> = broken.collect();
        let is_dropped = |peer: &String| broken.iter().any(|line| line.contains(peer));
        peers.iter().all(is_dropped)
    });
    let grown = resident_bytes(&daemon).saturating_sub(before);
    let all = (CLIENTS * EVENTS * NOTE) as u64;
    assert!(grown < all / 5, "{grown} bytes were kept for them of {all}");
    // They got a part, and an end.
    for mut stream in streams {
        stream.set_read_timeout(Some(DEADLINE)).expect("a deadline");
        let mut said = Vec::new();
        let _ = stream.read_to_end(&mut said);
        assert!(said.len() < EVENTS * NOTE, "{} bytes came", said.len());
    }
    // Others get all of it.
    let mut stream = operator.events(0);
    let last = lab.kept().last_event;
    while stream.next_event().expect("an event").0 < last {}
}

#[test]
fn wrong_tokens_cost_bounded_memory() {
    let lab = on_the_web(&models());
    let (daemon, nobody) = started(&lab);
    let viewer = nobody.with_role(&lab, "viewer");
    let guess = |guess: usize| {
        nobody
            .with_token(&format!("layerlab_{guess:064x}"))
            .get("/metrics")
    };
    // What the first ones cost is needed anyway.
    for number in 0..1000 {
        guess(number);
    }
    let before = resident_bytes(&daemon);
    for number in 1000..11_000 {
        assert!([401, 429].contains(&guess(number).status));
    }
    let grown = resident_bytes(&daemon).saturating_sub(before);
    assert!(grown < 8 << 20, "{grown} bytes");
    assert_eq!(viewer.get("/metrics").status, 200);
}
