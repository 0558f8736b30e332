//! What passes between layerlab and a phone, cut off, damaged, stalled or late.

use std::path::PathBuf;
use std::time::Duration;

use layerlab_farm::adb::{AdbError, Content, Phone, Prover, Server};
use layerlab_profiles::sha256;
use layerlab_tests::farm::Farm;
use layerlab_tests::interposer::Fault;

use super::{Disguised, HOSTILE, local};

#[test]
fn a_push_that_is_cut_damaged_or_stalled_is_done_again() {
    // Into the file of an agent or of a model: requests and small answers are far shorter.
    let far = 300_000;
    for fault in [Fault::CutAfter(far), Fault::CorruptAt(far), Fault::Delay(5)] {
        let Some(lab) = Disguised::new("P1") else {
            return;
        };
        let run = |out: &str| {
            lab.interposer.spoil(fault, 1);
            let published = lab.profile(&lab.farm.path(out));
            assert!(
                matches!(fault, Fault::Delay(_)) || lab.interposer.left_to_spoil() == 0,
                "{fault:?} never came"
            );
            published
        };
        let local = local(&lab.farm, "pixel6");
        assert_eq!(run("agent"), local, "{fault:?}");
        // With the agent there already, it is the model that comes to harm.
        let files = lab.phone.storage().join("layerlab/files");
        std::fs::remove_dir_all(&files).expect("a model");
        assert_eq!(run("model").clockless(), local.clockless(), "{fault:?}");
        let models = std::fs::read_dir(&files).expect("a folder");
        let paths: Vec<PathBuf> = models.map(|file| file.expect("a file").path()).collect();
        let [model] = &paths[..] else {
            panic!("{paths:?}")
        };
        let found = sha256(&std::fs::read(model).expect("a model"));
        assert!(model.ends_with(&found), "{fault:?} left {found}");
    }
}

#[test]
fn a_journal_that_is_damaged_on_its_way_is_read_again() {
    let Some(lab) = Disguised::new("P1") else {
        return;
    };
    // The journal is many times as long, also where a busy machine reads it in several portions.
    lab.interposer.spoil(Fault::CorruptBackAt(2_000), 2);
    let published = lab.profile(&lab.farm.path("profile"));
    assert_eq!(published, local(&lab.farm, "pixel6"));
    assert_eq!(lab.interposer.left_to_spoil(), 0, "nothing was damaged");
}

/// By the deadline of a sign of life, which is the shortest, and not by one of those for work that may take a minute.
#[tokio::test(flavor = "multi_thread")]
async fn a_stalled_stream_is_given_up_in_time() {
    let Some(lab) = Disguised::new("P1") else {
        return;
    };
    let address = lab.interposer.address.to_string();
    let server = Server::given(address.parse().expect("an address")).into();
    let phone = Phone::find(&server, &lab.phone.address)
        .await
        .expect("it is ready");
    lab.interposer.spoil(Fault::StallAfter(0), 1);
    let error = phone.identity().await.expect_err("nothing passes");
    let AdbError::Deadline { deadline, .. } = &error else {
        panic!("{error}");
    };
    assert_eq!(*deadline, Duration::from_secs(5), "{error}");
    phone.identity().await.expect("the next one passes");
}

#[tokio::test(flavor = "multi_thread")]
async fn shell_keeps_status_output_and_errors_apart_and_ends_in_time() {
    let Some(farm) = Farm::new() else { return };
    let phone = farm.phone("P1");
    let phone = farm.connect(&phone).await;
    let output = phone
        .shell("cat; echo no >&2; exit 7", b"yes")
        .await
        .expect("a shell");
    assert_eq!((output.status, output.text().as_str()), (7, "yes"));
    assert_eq!(output.last_words(), "no");
    let short = Duration::from_millis(300);
    let error = phone
        .shell_within("sleep 60", b"", short)
        .await
        .expect_err("too long");
    assert!(
        matches!(&error, AdbError::Deadline { deadline, .. } if *deadline == short),
        "{error}"
    );
    // What was given up keeps nothing busy.
    phone.identity().await.expect("a sign of life");
    let name = "/data/local/tmp/; $(reboot) ' \" \n";
    phone
        .push(
            &Content::new(HOSTILE.as_bytes()),
            name,
            0o640,
            Prover::Phone,
        )
        .await
        .expect("pushed");
    assert_eq!(phone.pull(name).await.expect("pulled"), HOSTILE.as_bytes());
}
