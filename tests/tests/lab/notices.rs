//! Whom the lab tells of a night: `layerlab report --send`, which does what the daemon does when the lab comes to rest.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::thread::JoinHandle;

use layerlab_tests::lab::Lab;

use super::SIMULATED;

const SECRET: &str = "T0-B0-secret";

/// Stands in for the host's mail system, which would send the mail: keeps it, or refuses it where there is a file that says so.
const SENDMAIL: &str = "#!/bin/sh\n[ \"$*\" = '-t -i' ] || exit 64\n[ -e \"$0.refuses\" ] && { echo 'no route to the mail hub' >&2; exit 75; }\ncat > \"$0.mail\"\n";

/// A lab that tells `report`, and whose `sendmail` is the one above.
fn lab(report: &str) -> Lab {
    let lab = Lab::new(&format!("{SIMULATED}[report]\n{report}"));
    let sendmail = lab.path("sendmail");
    std::fs::write(&sendmail, SENDMAIL).expect("room");
    std::fs::set_permissions(&sendmail, std::fs::Permissions::from_mode(0o755)).expect("our own");
    let mut path = lab.path("").into_os_string();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    lab.with_variable("PATH", path)
}

fn send(lab: &Lab) -> std::process::Output {
    let config = lab.path("config.toml");
    lab.run(&[
        "report",
        "--send",
        "--config",
        config.to_str().expect("UTF-8"),
    ])
}

/// Takes one request at this address, answers it with `status`, and gives its body.
fn receive(status: &'static str) -> (String, JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/{SECRET}", listener.local_addr().expect("bound"));
    let received = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a caller");
        let mut request = String::new();
        let mut part = [0; 4096];
        let body = loop {
            let count = stream.read(&mut part).expect("a request");
            request += std::str::from_utf8(&part[..count]).expect("ASCII");
            let Some((head, body)) = request.split_once("\r\n\r\n") else {
                continue;
            };
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("Content-Length: "));
            if length.is_some_and(|length| length.parse() == Ok(body.len())) {
                break body.to_owned();
            }
        };
        let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n");
        stream.write_all(answer.as_bytes()).expect("a caller");
        body
    });
    (url, received)
}

#[test]
fn a_report_goes_to_a_chat_and_by_mail() {
    let (url, received) = receive("200 OK");
    let lab = lab(&format!(
        "webhook = \"{url}\"\nwebhook-format = \"slack\"\nmail-to = [\"night@example.org\"]\nmail-from = \"lab@example.org\"\n"
    ));
    let daemon = lab.daemon();
    lab.wait_until_open();
    drop(daemon);
    let sent = send(&lab);
    assert!(sent.status.success(), "{sent:?}");
    let body: serde_json::Value =
        serde_json::from_str(&received.join().expect("a request")).expect("JSON");
    let text = body["text"].as_str().expect("a text");
    assert!(
        text.starts_with("*Nothing was asked for.*\n```\n"),
        "{text}"
    );
    let mail = std::fs::read_to_string(lab.path("sendmail.mail")).expect("a mail");
    assert!(mail.starts_with("From: lab@example.org\nTo: night@example.org\nSubject: layerlab: Nothing was asked for.\n"), "{mail}");
}

#[test]
fn who_was_not_told_is_said_without_a_secret() {
    let (url, received) = receive("403 Forbidden");
    let refusing = lab(&format!("webhook = \"{url}\"\n"));
    let daemon = refusing.daemon();
    refusing.wait_until_open();
    drop(daemon);
    let refused = send(&refusing);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(5), "{said}");
    assert!(said.contains("403") && !said.contains(SECRET), "{said}");
    assert_eq!(refused.stdout, b"", "nothing half said");
    let json = received.join().expect("a request");
    assert!(json.contains("\"headline\""), "the report itself: {json}");

    let mailing = lab("mail-to = [\"night@example.org\"]\n");
    let daemon = mailing.daemon();
    mailing.wait_until_open();
    drop(daemon);
    std::fs::write(mailing.path("sendmail.refuses"), "").expect("room");
    let refused = send(&mailing);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(5), "{said}");
    assert!(
        said.contains(
            "night@example.org was not told: sendmail refused the mail: no route to the mail hub"
        ),
        "{said}"
    );
}

#[test]
fn with_nobody_to_tell_sending_is_refused() {
    let lab = lab("webhook = \"\"\n");
    let refused = send(&lab);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(3), "{said}");
    assert!(said.contains("`webhook` or `mail-to`"), "{said}");
}
