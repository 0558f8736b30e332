//! Posts to somebody's URL.
//!
//! `curl` does the sending: a TLS library of our own is much to build and to keep safe for one request a night.

use std::io::Write;
use std::process::Stdio;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

/// How long a try may take.
const DEADLINE_SECONDS: &str = "10";

/// `url` without what may be secret in it: all but its scheme and its host.
pub fn without_secrets(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    let is_all = host.len() == rest.len() || rest == format!("{host}/");
    format!("{scheme}://{host}{}", if is_all { "" } else { "/…" })
}

/// Posts `json` to `url`.
///
/// # Errors
/// Why it was not posted, without what may be secret in `url`.
pub async fn post(url: &str, json: &[u8]) -> Result<(), String> {
    let said = |error: std::io::Error| format!("curl cannot be run: {error}; install curl");
    let mut body = tempfile::NamedTempFile::new().map_err(said)?;
    body.write_all(json).map_err(said)?;
    let mut curl = Command::new("curl")
        // First, so that no file of the user's changes what the others mean.
        .arg("--disable")
        .args(["--silent", "--show-error", "--fail", "--globoff"])
        .args(["--proto", "=http,https", "--max-time", DEADLINE_SECONDS])
        .args([
            "--header",
            "Content-Type: application/json",
            "--output",
            "/dev/null",
        ])
        .arg("--data-binary")
        .arg(format!("@{}", body.path().display()))
        .args(["--config", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(said)?;
    if let Some(mut stdin) = curl.stdin.take() {
        // Not as an argument: whoever lists processes would read the secret that such URLs contain.
        let line = format!("url = \"{}\"\n", quoted(url));
        stdin.write_all(line.as_bytes()).await.map_err(said)?;
    }
    let ended = curl.wait_with_output().await.map_err(said)?;
    match ended.status.success() {
        true => Ok(()),
        // curl may quote what it was given.
        false => Err(String::from_utf8_lossy(&ended.stderr)
            .trim()
            .replace(url, &without_secrets(url))),
    }
}

/// `url` for the quotes of curl's configuration.
pub fn quoted(url: &str) -> String {
    let url = url.replace(['\r', '\n'], "");
    url.replace('\\', "\\\\").replace('"', "\\\"")
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use super::*;

    /// Takes one request, answers it with `status` and gives it back.
    fn serve(status: &'static str) -> (String, std::thread::JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/hook", listener.local_addr().expect("bound"));
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a caller");
            let mut request = Vec::new();
            let mut part = [0; 4096];
            while !request.ends_with(b"}") {
                let count = stream.read(&mut part).expect("a request");
                request.extend_from_slice(&part[..count]);
            }
            let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n");
            stream.write_all(answer.as_bytes()).expect("a caller");
            String::from_utf8(request).expect("text")
        });
        (url, server)
    }

    #[tokio::test]
    async fn json_is_posted() {
        let (url, server) = serve("200 OK");
        post(&url, b"{\"said\":\"Nothing was asked for.\"}")
            .await
            .expect("posted");
        let request = server.join().expect("a request");
        assert!(request.starts_with("POST /hook "), "{request}");
        assert!(
            request.contains("Content-Type: application/json"),
            "{request}"
        );
        assert!(request.contains("Nothing was asked for."), "{request}");
    }

    #[tokio::test]
    async fn a_refusal_is_said() {
        let (url, server) = serve("500 No");
        let refused = post(&url, b"{}").await.expect_err("refused");
        assert!(refused.contains("500"), "{refused}");
        server.join().expect("a request");
    }

    #[test]
    fn only_the_host_of_a_url_is_shown() {
        for (url, shown) in [
            (
                "https://hooks.example.org/T0/B0/secret",
                "https://hooks.example.org/…",
            ),
            (
                "https://me:secret@example.org:8443",
                "https://example.org:8443/…",
            ),
            ("http://example.org?token=secret", "http://example.org/…"),
            ("http://example.org", "http://example.org"),
        ] {
            assert_eq!(without_secrets(url), shown);
        }
    }

    #[test]
    fn a_url_ends_no_quote() {
        assert_eq!(
            quoted("http://a/\"\noutput = \"x"),
            "http://a/\\\"output = \\\"x"
        );
    }
}
