//! What is stored on phones: a full one, what goes first, and what is not sent again.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use layerlab_farm::Link;
use layerlab_farm::adb::Content;
use layerlab_farm::provision::Provision;
use layerlab_tests::farm::Farm;
use layerlab_tests::virtual_phone::VirtualPhone;
use layerlab_tests::{output, stderr, succeed};

use super::{Disguised, noisy, profile_on};

#[test]
fn a_full_phone_is_named_and_nothing_is_left_on_it() {
    let Some(farm) = Farm::new() else { return };
    let folder = farm.path("small");
    let phone = VirtualPhone::start_with(&folder, "small", &["--storage-bytes", "4194304"]);
    let out = farm.path("profile");
    let profile = || {
        let mut command = farm.layerlab();
        profile_on(&mut command, &phone.address, "pixel6", &out);
        command
    };
    let ended = output(&mut profile());
    let said = stderr(&ended);
    assert_eq!(ended.status.code(), Some(4), "{said}");
    assert!(
        said.contains("storage") && said.contains("full") && said.contains(&phone.serial),
        "{said}"
    );
    assert_eq!(said.lines().count(), 1, "one sentence: {said}");
    let find = [
        "-s",
        &phone.address,
        "shell",
        "find /data/local/tmp -type f",
    ];
    assert_eq!(succeed(farm.adb().args(find)), "", "left behind");
    assert!(!out.exists());
    // Room is made, and it works.
    phone.set("storage_free_bytes", "200000000");
    succeed(&mut profile());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_model_that_was_not_used_for_longest_goes_first() {
    let Some(farm) = Farm::new() else { return };
    let phone = farm.phone("P1");
    let provision = Provision {
        cache_bytes: 2_500_000,
        ..farm.provision(&noisy())
    };
    let link = farm.link(&phone, provision).await;
    link.connect().await.expect("an agent");
    let files = phone.storage().join("layerlab/files");
    let push = async |name: char| {
        let model = vec![name as u8; 1_000_000];
        let sha256 = Content::new(&model).sha256().to_owned();
        link.push_file(&sha256, &model).await.expect("pushed");
        let path = files.join(&sha256);
        let inode = std::fs::metadata(&path).expect("it is there").ino();
        (path, inode)
    };
    let (a, first) = push('a').await;
    assert_eq!(push('a').await.1, first, "sent again");
    let (b, _) = push('b').await;
    age(&a, 3 * HOUR);
    age(&b, 2 * HOUR);
    // Used again: it is the younger one now.
    push('a').await;
    let (c, _) = push('c').await;
    assert!(
        a.exists() && c.exists() && !b.exists(),
        "the one that was not used for longest goes"
    );
}

const HOUR: Duration = Duration::from_secs(3600);

/// Has a file or a folder last been changed so long ago.
fn age(path: &Path, age: Duration) {
    let file = std::fs::File::open(path).expect("it is there");
    let then = SystemTime::now() - age;
    file.set_modified(then).expect("its own");
}

#[test]
fn what_is_on_the_phone_is_not_sent_again() {
    let Some(lab) = Disguised::new("P1") else {
        return;
    };
    let run = |out: &str| {
        let before = lab.interposer.sent();
        lab.profile(&lab.farm.path(out));
        lab.interposer.sent() - before
    };
    let agent = std::fs::metadata(lab.farm.agent()).expect("an agent").len();
    let first = run("first");
    assert!(
        first > agent,
        "{first} bytes were sent, the agent has {agent}"
    );
    let agents = lab.phone.storage().join("layerlab");
    for (name, days) in [("of-last-year", 300), ("of-last-week", 7)] {
        std::fs::create_dir(agents.join(name)).expect("a folder");
        age(&agents.join(name), 24 * HOUR * days);
    }
    // What is sent again are questions and orders.
    let second = run("second");
    assert!(second < 100_000, "{second} bytes were sent again");
    assert!(agents.join("of-last-week").exists());
    assert!(!agents.join("of-last-year").exists(), "old agents go");
}
