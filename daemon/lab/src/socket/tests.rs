//! Requests are answered, and what is none is refused.

use std::os::unix::fs::PermissionsExt;

use tokio::io::AsyncWriteExt;
use tokio::io::BufReader;
use tokio::net::UnixStream;

use super::*;
use crate::talk::{Answer, RefusalCode, Request};

/// What the daemon says to `bytes`.
async fn said(state: &Path, bytes: &[u8]) -> Answer {
    let mut stream = UnixStream::connect(path(state).expect("a path"))
        .await
        .expect("a daemon");
    // It may have refused before it has read all.
    let _ = stream.write_all(bytes).await;
    let line = line(BufReader::new(stream)).await.expect("a line");
    serde_json::from_slice(&line.expect("an answer")).expect("JSON")
}

fn state() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

#[tokio::test]
async fn a_request_is_answered_while_others_dawdle() {
    let state = state();
    let listener = Listener::bind(state.path()).expect("a socket");
    let path = path(state.path()).expect("a path");
    let mode = std::fs::metadata(&path)
        .expect("there")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    // One says nothing, one half a line.
    let _silent = UnixStream::connect(&path).await.expect("connected");
    let mut slow = UnixStream::connect(&path).await.expect("connected");
    slow.write_all(b"{\"request\"").await.expect("written");
    let server = async {
        let (request, reply) = listener.accept().await;
        assert_eq!(request, Request::Cancel { job: 7 });
        reply.send(Answer::Status(Box::default())).await;
    };
    let (answer, ()) = tokio::join!(ask(state.path(), &Request::Cancel { job: 7 }), server);
    assert_eq!(answer.expect("an answer"), Answer::Status(Box::default()));
}

#[tokio::test]
async fn what_is_no_request_is_refused() {
    let state = state();
    let listener = Listener::bind(state.path()).expect("a socket");
    let long = vec![b'x'; (LONGEST_LINE + 2) as usize];
    let none = (RefusalCode::NoRequest, "no request of layerlab's");
    for (bytes, (expected_code, expected)) in [
        (b"hello\n".as_slice(), none),
        (b"{\"request\":\"dance\"}\n", none),
        (b"{\"request\":\"cancel\"}\n", none),
        (&long, (RefusalCode::TooLong, "longer than 16 MiB")),
    ] {
        let Answer::Refused { code, message } = said(state.path(), bytes).await else {
            panic!("it is refused");
        };
        assert!(message.contains(expected), "{message}");
        assert_eq!(code, expected_code);
    }
    // It still works, and who is not answered is told so.
    let server = async { drop(listener.accept().await) };
    let (answer, ()) = tokio::join!(ask(state.path(), &Request::Status), server);
    let Ok(Answer::Refused { code, message }) = answer else {
        panic!("it is refused");
    };
    assert_eq!(code, RefusalCode::Ending);
    assert!(message.contains("is ending"), "{message}");
}

#[tokio::test]
async fn without_a_daemon_one_is_asked_for() {
    let state = state();
    let no_daemon = || async {
        let error = ask(state.path(), &Request::Status).await.expect_err("none");
        assert_eq!(
            error.to_string(),
            "no layerlab daemon runs here; start it with `layerlab daemon`"
        );
    };
    no_daemon().await;
    let listener = Listener::bind(state.path()).expect("a socket");
    let second = Listener::bind(state.path()).expect_err("one is enough");
    assert_eq!(second.kind(), io::ErrorKind::AddrInUse);
    drop(listener);
    no_daemon().await;
    // One that was killed leaves its socket.
    let path = path(state.path()).expect("a path");
    drop(std::os::unix::net::UnixListener::bind(&path).expect("a socket"));
    assert!(path.exists());
    no_daemon().await;
    Listener::bind(state.path()).expect("replaced");
}

#[test]
fn a_path_that_is_too_long_is_refused_with_a_remedy() {
    let error = path(Path::new(&format!("/{}", "x".repeat(100)))).expect_err("too long");
    assert!(error.to_string().contains("LAYERLAB_STATE"), "{error}");
    let exact = LONGEST_PATH - "//lab/daemon.socket".len();
    path(Path::new(&format!("/{}", "x".repeat(exact)))).expect("just fits");
}
