//! Who may not ask is not answered, and who only wants to do harm does little.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use layerlab_tests::lab::Lab;

use super::super::SIMULATED;
use super::{models, on_the_web, started};

const JSON: &str = "application/json";
const DEVICES: &str = "/api/v1/devices";

#[test]
fn only_a_valid_token_opens_the_api() {
    let lab = on_the_web(&models());
    let (_daemon, nobody) = started(&lab);
    nobody.get(DEVICES).is_problem(401, "Authorization: Bearer");
    assert_eq!(nobody.get(DEVICES).header("www-authenticate"), "Bearer");
    for wrong in ["", "wrong", &format!("layerlab_{}", "0".repeat(64))] {
        nobody.with_token(wrong).get(DEVICES).is_problem(401, "");
    }
    let token = lab.succeed(&["token", "create", "guest", "--role", "viewer"]);
    let guest = nobody.with_token(&token);
    assert_eq!(guest.get(DEVICES).status, 200);
    lab.succeed(&["token", "revoke", "guest"]);
    guest.get(DEVICES).is_problem(401, "revoked");
    // One that ends by itself.
    let line = [
        "token",
        "create",
        "brief",
        "--role",
        "viewer",
        "--expires",
        "1s",
    ];
    let brief = nobody.with_token(&lab.succeed(&line));
    lab.wait_for("the end of a token", || brief.get(DEVICES).status == 401);
    let listed = lab.succeed(&["token", "list"]);
    assert!(
        listed.contains("revoked") && listed.contains("over since"),
        "{listed}"
    );
    assert!(!listed.contains("layerlab_"), "{listed}");
    assert!(!lab.log().contains("layerlab_0"), "{}", lab.log());
    assert_eq!(
        lab.run(&["token", "revoke", "guest"]).status.code(),
        Some(3)
    );
}

#[test]
fn a_role_allows_what_it_says() {
    let lab = on_the_web(&models());
    let (_daemon, nobody) = started(&lab);
    let viewer = nobody.with_role(&lab, "viewer");
    let operator = nobody.with_role(&lab, "operator");
    let admin = nobody.with_role(&lab, "admin");
    for path in [
        "jobs",
        "jobs/1/cancel",
        "jobs/1/pause",
        "jobs/1/resume",
        "jobs/1/retry",
        "reservations",
        "quarantine",
    ] {
        let path = format!("/api/v1/{path}");
        viewer.post(&path, JSON, "{}").is_problem(403, "operator");
        assert_ne!(operator.post(&path, JSON, "{}").status, 403);
    }
    for path in ["reservations/mate10pro", "quarantine/mate10pro"] {
        viewer
            .delete(&format!("/api/v1/{path}"))
            .is_problem(403, "operator");
    }
    operator.get("/api/v1/tokens").is_problem(403, "admin");
    operator
        .delete("/api/v1/tokens/the.viewer")
        .is_problem(403, "admin");
    assert_eq!(viewer.get(DEVICES).status, 200);
    let tokens = admin.get("/api/v1/tokens");
    assert_eq!(tokens.json()["all"], 3);
    assert!(!tokens.body.contains("sha256"), "{tokens:?}");
    assert_eq!(admin.delete("/api/v1/tokens/the.viewer").status, 204);
    viewer.get(DEVICES).is_problem(401, "revoked");
    admin
        .delete("/api/v1/tokens/the.viewer")
        .is_problem(404, "the.viewer");
}

#[test]
fn many_wrong_tokens_are_told_to_wait_and_keep_nobody_out() {
    let lab = on_the_web(&models());
    let (_daemon, nobody) = started(&lab);
    let viewer = nobody.with_role(&lab, "viewer");
    let guesses = 10_000;
    let mut told_to_wait = 0;
    for guess in 0..guesses {
        let answered = nobody
            .with_token(&format!("layerlab_{guess:064x}"))
            .get(DEVICES);
        match answered.status {
            401 => {}
            429 => {
                assert_eq!(answered.header("retry-after"), "60");
                told_to_wait += 1;
            }
            _ => panic!("{answered:?}"),
        }
    }
    // However slowly they came, some came within a minute of twenty others.
    assert!(told_to_wait > 0);
    assert_eq!(viewer.get(DEVICES).status, 200);
}

#[test]
fn another_host_and_another_site_are_refused() {
    let lab = on_the_web(&models());
    let (_daemon, nobody) = started(&lab);
    let token = lab.succeed(&["token", "create", "op", "--role", "operator"]);
    let own = nobody.address.clone();
    let port = own.rsplit_once(':').expect("a port").1;
    let ask = |request: &str, headers: &str| {
        let token = token.trim();
        let head = format!(
            "{request} HTTP/1.1\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n{headers}\r\n"
        );
        let said = nobody.said_to(head.as_bytes());
        let status = said.split(' ').nth(1).unwrap_or_default().to_owned();
        (status, said)
    };
    let get = format!("GET {DEVICES}");
    for host in [
        own.clone(),
        format!("localhost:{port}"),
        format!("LOCALHOST:{port}"),
        format!("[::1]:{port}"),
    ] {
        let (status, said) = ask(&get, &format!("Host: {host}\r\n"));
        assert_eq!(status, "200", "{said}");
    }
    for headers in [
        "Host: evil.example\r\n".to_owned(),
        format!("Host: evil.example:{port}\r\n"),
        format!("Host: {own}.evil.example\r\n"),
        "Host: localhost:1\r\n".to_owned(),
        "Host: \r\n".to_owned(),
        String::new(),
    ] {
        let (status, said) = ask(&get, &headers);
        assert!(
            ["400", "421"].contains(&status.as_str()),
            "{headers:?}: {said}"
        );
    }
    let (status, said) = ask(&get, &format!("Host: {own}\r\nHost: evil.example\r\n"));
    assert_eq!(status, "400", "{said}");
    let elsewhere = format!("GET http://evil.example{DEVICES}");
    let (status, said) = ask(&elsewhere, &format!("Host: {own}\r\n"));
    assert_eq!(status, "421", "{said}");
    let post = "POST /api/v1/jobs/1/cancel";
    for (headers, expected) in [
        (format!("Origin: http://{own}\r\n"), "404"),
        ("Origin: https://evil.example\r\n".to_owned(), "403"),
        ("Origin: null\r\n".to_owned(), "403"),
        ("Sec-Fetch-Site: cross-site\r\n".to_owned(), "403"),
        ("Sec-Fetch-Site: same-origin\r\n".to_owned(), "404"),
    ] {
        let (status, said) = ask(
            post,
            &format!("Host: {own}\r\nContent-Length: 0\r\n{headers}"),
        );
        assert_eq!(status, expected, "{headers:?}: {said}");
    }
}

#[test]
fn long_and_slow_requests_cost_little() {
    let lab = on_the_web(&models());
    let (_daemon, nobody) = started(&lab);
    let token = lab.succeed(&["token", "create", "op", "--role", "operator"]);
    // Heads that never end, from more clients than are served at once.
    let mut slow: Vec<TcpStream> = (0..200)
        .map(|_| {
            let mut stream = TcpStream::connect(&nobody.address).expect("a lab");
            stream
                .write_all(b"GET /healthz HTTP/1.1\r\nX-")
                .expect("it listens");
            stream
        })
        .collect();
    // All others are answered all the same, once those have had their time.
    assert_eq!(nobody.get("/healthz").body, "ok\n");
    for stream in &mut slow {
        stream
            .set_read_timeout(Some(Duration::from_secs(120)))
            .expect("a deadline");
        let mut said = Vec::new();
        // The lab ends the connection; whether with a word or without is its business.
        match stream.read_to_end(&mut said) {
            Ok(_) => {}
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset),
        }
    }
    let long = "#".repeat((256 << 10) + 1);
    // One that only says that it is 2 GB long is refused before it is sent.
    let head = format!(
        "POST /api/v1/jobs HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Type: application/toml\r\nConnection: close\r\nContent-Length: 2000000000\r\n\r\n",
        nobody.address,
        token.trim()
    );
    let said = nobody.said_to(head.as_bytes());
    assert!(said.starts_with("HTTP/1.1 413"), "{said}");
    // One without an announced length is read up to the limit.
    let chunk = format!("{:x}\r\n{long}\r\n0\r\n\r\n", long.len());
    let chunked = head.replace("Content-Length: 2000000000", "Transfer-Encoding: chunked");
    let announced = head.replace("2000000000", &long.len().to_string());
    for request in [format!("{chunked}{chunk}"), format!("{announced}{long}")] {
        let said = nobody.said_to(request.as_bytes());
        // The lab does not read all of it, and the end of the connection may overtake the answer.
        assert!(
            said.is_empty() || said.starts_with("HTTP/1.1 413"),
            "{said}"
        );
    }
    assert!(lab.kept().jobs.is_empty());
    let head = format!(
        "GET /healthz HTTP/1.1\r\nHost: {}\r\nX: {}\r\n\r\n",
        nobody.address,
        "x".repeat(100_000)
    );
    let said = nobody.said_to(head.as_bytes());
    assert!(
        said.is_empty() || said.starts_with("HTTP/1.1 431"),
        "{said}"
    );
    assert_eq!(nobody.get("/healthz").body, "ok\n");
}

#[test]
fn an_address_that_others_reach_is_refused() {
    let lab = Lab::new(&format!("{SIMULATED}[web]\nlisten = \"0.0.0.0:0\"\n"));
    let config = lab.path("config.toml");
    let config = config.to_str().expect("UTF-8");
    for command in [
        &["daemon", "--config", config][..],
        &["config", "check", "--config", config],
    ] {
        let refused = lab.run(command);
        assert_eq!(refused.status.code(), Some(3), "{command:?}");
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(
            said.contains("not encrypted") && said.contains("behind-proxy"),
            "{said}"
        );
    }
}
