//! Who does not read is dropped, and costs little until then.

use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::body::{Body, Bytes};
use futures_util::stream::repeat_with;
use tokio::io::AsyncWriteExt;

use super::*;

const CHUNK: usize = 16 << 10;

/// What the system's buffers of both ends hold at most, several times over.
const MOST_ON_ITS_WAY: usize = 64 << 20;

#[tokio::test]
async fn who_reads_nothing_is_dropped_and_costs_bounded_memory() {
    let made = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&made);
    let endless = move || async move {
        Body::from_stream(repeat_with(move || {
            count.fetch_add(CHUNK, Ordering::Relaxed);
            Ok::<_, Infallible>(Bytes::from_static(&[b'x'; CHUNK]))
        }))
    };
    let router = Router::new().route("/", get(endless));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("it listens");
    let mut client = TcpStream::connect(address).await.expect("it listens");
    let (stream, peer) = listener.accept().await.expect("a client");
    let question = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
    client.write_all(question).await.expect("it is taken");
    let (_ending, ends) = watch::channel(false);
    let patience = Duration::from_millis(200);
    let served = connection(patient(stream, patience), router, ends, patience, peer);
    let served = timeout(Duration::from_secs(60), served).await;
    served.expect("the client is dropped");
    let made = made.load(Ordering::Relaxed);
    assert!(made >= CHUNK, "it is answered first");
    assert!(
        made < MOST_ON_ITS_WAY,
        "{made} bytes were made for a client that reads none"
    );
    drop(client);
}
