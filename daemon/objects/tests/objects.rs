//! Files in a folder and in a bucket of a real S3 server: the same, and each server that cannot be used says why.

#[path = "../../../tests/src/certificate.rs"]
#[expect(
    dead_code,
    unreachable_pub,
    reason = "it is shared with the tests of the whole"
)]
mod certificate;
#[path = "../../../tests/src/gate.rs"]
#[expect(
    dead_code,
    unreachable_pub,
    reason = "it is shared with the tests of the whole"
)]
mod gate;
#[path = "../../../tests/src/s3_server.rs"]
#[expect(
    dead_code,
    unreachable_pub,
    reason = "it is shared with the tests of the whole"
)]
mod s3_server;
#[path = "../../../tests/src/skip.rs"]
#[expect(unreachable_pub, reason = "it is shared with the tests of the whole")]
mod skip;

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::time::Duration;

use certificate::Certificate;
use gate::Gate;
use layerlab_objects::{Objects, ObjectsError, ObjectsPlace, S3Variables};
use layerlab_profiles::sha256;
use s3_server::{S3Server, s3_server};
use tempfile::TempDir;

/// Has each of the tests that are named done in a folder and in a bucket.
macro_rules! in_both {
    ($($test:ident),* $(,)?) => {
        mod in_a_folder {
            $(#[tokio::test]
            async fn $test() {
                super::$test(super::Place::in_a_folder()).await;
            })*
        }
        mod in_a_bucket {
            $(#[tokio::test]
            async fn $test() {
                if let Some(place) = super::Place::in_a_bucket() {
                    super::$test(place).await;
                }
            })*
        }
    };
}

in_both!(
    what_is_kept_comes_back,
    what_was_altered_is_not_given,
    what_was_cut_short_is_mended_by_who_has_it,
    a_note_is_written_once,
    a_place_proves_itself_again_and_again,
);

/// Files, and where they are for somebody else.
struct Place {
    objects: Objects,
    raw: Raw,
}

enum Raw {
    Folder(TempDir),
    Bucket(&'static S3Server, String),
}

impl Place {
    fn in_a_folder() -> Place {
        let folder = tempfile::tempdir().expect("a folder");
        let place = ObjectsPlace::Folder(folder.path().join("new/objects"));
        Place {
            objects: Objects::open(&place, &S3Variables::default()).expect("a folder"),
            raw: Raw::Folder(folder),
        }
    }

    fn in_a_bucket() -> Option<Place> {
        let server = s3_server()?;
        let bucket = server.bucket();
        Some(Place {
            objects: opened(&bucket, &http(server.address), &[]).expect("a bucket"),
            raw: Raw::Bucket(server, bucket),
        })
    }

    /// Puts content under a hash, whatever that is.
    fn alter(&self, hash: &str, content: &[u8]) {
        let name = format!("sha256/{}/{hash}", &hash[..2]);
        match &self.raw {
            Raw::Folder(folder) => {
                let path: PathBuf = folder.path().join("new/objects").join(name);
                std::fs::write(path, content).expect("it is there");
            }
            Raw::Bucket(server, bucket) => server.put(bucket, &format!("lab/{name}"), content),
        }
    }
}

fn http(address: SocketAddr) -> String {
    format!("http://{address}")
}

fn opened(bucket: &str, endpoint: &str, more: &[(&str, &str)]) -> Result<Objects, ObjectsError> {
    let place = format!("s3://{bucket}/lab").parse().expect("a bucket");
    let usual = [
        ("AWS_ACCESS_KEY_ID", "key"),
        ("AWS_SECRET_ACCESS_KEY", "secret"),
        ("AWS_ENDPOINT_URL", endpoint),
    ];
    let all = usual.iter().chain(more);
    let all = all.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Objects::open(&place, &S3Variables::of(all))
}

async fn what_is_kept_comes_back(place: Place) {
    let objects = &place.objects;
    // More than one packet, and nothing at all.
    for content in [vec![7; 3 << 20], Vec::new()] {
        let hash = sha256(&content);
        let missing = objects.fetch(&hash).await.expect_err("nothing is there");
        let sentence = format!("{hash} is not in {}", objects.place());
        assert_eq!(missing.to_string(), sentence);
        for _ in 0..2 {
            objects.keep(&hash, content.clone()).await.expect("room");
        }
        assert_eq!(objects.fetch(&hash).await, Ok(content));
    }
}

async fn what_was_altered_is_not_given(place: Place) {
    let (objects, hash) = (&place.objects, sha256(b"content"));
    objects
        .keep(&hash, b"content".to_vec())
        .await
        .expect("room");
    place.alter(&hash, b"CONTENT");
    let altered = objects.fetch(&hash).await.expect_err("altered");
    let sentence = format!(
        "{hash} in {} was altered; remove it there, and submit the job again",
        objects.place()
    );
    assert_eq!(altered.to_string(), sentence);
}

async fn what_was_cut_short_is_mended_by_who_has_it(place: Place) {
    let (objects, hash) = (&place.objects, sha256(b"content"));
    objects
        .keep(&hash, b"content".to_vec())
        .await
        .expect("room");
    place.alter(&hash, b"cont");
    objects
        .keep(&hash, b"content".to_vec())
        .await
        .expect("room");
    assert_eq!(objects.fetch(&hash).await, Ok(b"content".to_vec()));
}

async fn a_note_is_written_once(place: Place) {
    let (objects, name) = (&place.objects, "runs/lab/run-1.json");
    let write = |content: &str| objects.write_new(name, content.as_bytes().to_vec());
    assert_eq!(write("first").await, Ok(true));
    assert_eq!(write("second").await, Ok(false));
    assert_eq!(objects.note_of(name).await, Ok(b"first".to_vec()));
    let missing = objects.note_of("runs/lab/run-2.json").await;
    assert!(
        matches!(missing, Err(ObjectsError::Missing { .. })),
        "{missing:?}"
    );
}

async fn a_place_proves_itself_again_and_again(place: Place) {
    for _ in 0..2 {
        assert_eq!(place.objects.prove().await, Ok(()));
    }
}

#[tokio::test]
async fn a_server_that_replaces_what_is_there_is_not_used() {
    let Some(server) = s3_server() else { return };
    let gate = Gate::before(server.address, |sent| {
        // The header has another name for the server, which does not know it.
        let (name, other) = (b"if-none-match", b"x-none-at-all");
        let places = 0..sent.len().saturating_sub(name.len());
        for at in places {
            let found = &mut sent[at..at + name.len()];
            if found.eq_ignore_ascii_case(name) {
                found.copy_from_slice(other);
            }
        }
    });
    let bucket = server.bucket();
    let objects = opened(&bucket, &http(gate.address), &[]).expect("a bucket");
    let refused = objects.prove().await.expect_err("it replaces everything");
    assert_eq!(
        refused.to_string(),
        format!(
            "the server of s3://{bucket}/lab does not know conditional writes (If-None-Match), without which two hosts could \
             publish over each other; use one that does"
        )
    );
    assert!(!refused.may_pass());
}

#[tokio::test]
async fn a_bucket_that_is_not_there_and_a_key_that_is_not_known_are_named() {
    let Some(server) = S3Server::new(&[]) else {
        return;
    };
    let endpoint = http(server.address);
    let missing = opened("nowhere", &endpoint, &[]).expect("a name");
    let refused = missing.prove().await.expect_err("no bucket");
    assert_eq!(
        refused.to_string(),
        "there is no bucket s3://nowhere/lab; make it, or name another by `objects`"
    );
    assert!(!refused.may_pass());
    let bucket = server.bucket();
    server.know_nobody();
    let unknown = opened(&bucket, &endpoint, &[]).expect("a bucket");
    let refused = unknown.prove().await.expect_err("an unknown key");
    let sentence = refused.to_string();
    assert!(
        sentence.starts_with(&format!(
            "s3://{bucket}/lab refuses the key in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY ("
        )) && !sentence.contains("secret"),
        "{sentence}"
    );
    assert!(!refused.may_pass());
}

#[tokio::test]
async fn a_server_that_is_away_is_not_waited_for_and_is_used_again_when_it_is_back() {
    let Some(server) = s3_server() else { return };
    let gate = Gate::before(server.address, |_| {});
    let bucket = server.bucket();
    let objects = opened(&bucket, &http(gate.address), &[]).expect("a bucket");
    let hash = sha256(b"content");
    let keep = || objects.keep(&hash, b"content".to_vec());
    gate.close();
    let away = keep().await.expect_err("nobody is there");
    let sentence = away.to_string();
    let beginning = format!("s3://{bucket}/lab cannot be reached: ");
    assert!(sentence.starts_with(&beginning), "{sentence}");
    assert!(away.may_pass());
    gate.open();
    keep().await.expect("it is back");
    assert_eq!(objects.fetch(&hash).await, Ok(b"content".to_vec()));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_says_nothing_is_given_up() {
    // It takes connections, and that is all.
    let silent = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let address = silent.local_addr().expect("it is bound");
    let objects = opened("lab", &http(address), &[]).expect("a bucket");
    let hash = sha256(b"");
    let asking = objects.fetch(&hash);
    let asked = tokio::time::timeout(Duration::from_secs(60), asking).await;
    let away = asked.expect("a deadline").expect_err("nothing was said");
    assert!(away.may_pass(), "{away}");
}

#[tokio::test]
async fn a_server_that_nobody_vouches_for_is_not_talked_to() {
    let folder = tempfile::tempdir().expect("a folder");
    let certificate = Certificate::of(&["localhost"], folder.path());
    let Some(server) = S3Server::new(&[&certificate.cert, &certificate.key]) else {
        return;
    };
    let endpoint = format!("https://localhost:{}", server.address.port());
    let unknown = opened("lab", &endpoint, &[]).expect("a bucket");
    let refused = unknown.prove().await.expect_err("nobody vouches for it");
    let sentence = refused.to_string();
    assert!(sentence.contains("certificate"), "{sentence}");
    let ca = certificate.ca.to_str().expect("UTF-8");
    let known = opened("lab", &endpoint, &[("AWS_CA_BUNDLE", ca)]).expect("a bucket");
    // It is talked to, and has no bucket.
    let answer = known.prove().await.expect_err("no bucket");
    assert!(matches!(answer, ObjectsError::NoBucket { .. }), "{answer}");
}
