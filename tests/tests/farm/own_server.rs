//! Our own adb server: other users of this host cannot reach it, and all of ours can, also at once.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;

use futures_util::future::join_all;
use layerlab_farm::adb::Fleet;
use layerlab_tests::farm::Farm;
use layerlab_tests::{output, stderr, succeed};

/// The numbers of the sockets that listen on ports of this host.
fn listening() -> BTreeSet<String> {
    const LISTENS: &str = "0A";
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"];
    let tables = tables.map(|table| fs::read_to_string(table).unwrap_or_default());
    let rows = tables.iter().flat_map(|table| table.lines().skip(1));
    let rows = rows.map(|row| row.split_whitespace().collect::<Vec<_>>());
    let listens = rows.filter(|row| row.get(3) == Some(&LISTENS));
    listens.map(|row| format!("socket:[{}]", row[9])).collect()
}

/// What the process has open.
fn open_files(process: &str) -> BTreeSet<String> {
    let files = fs::read_dir(format!("/proc/{process}/fd")).expect("our own process");
    let links = files.filter_map(|file| fs::read_link(file.ok()?.path()).ok());
    links
        .map(|link| link.to_string_lossy().into_owned())
        .collect()
}

#[test]
fn our_server_has_no_port_and_its_folder_is_closed_to_others() {
    let Some(farm) = Farm::new() else { return };
    let _phone = farm.phone("P1");
    succeed(farm.layerlab().arg("devices"));
    let socket = farm.socket();
    let folder = socket.parent().expect("a folder");
    let mode = fs::metadata(folder).expect("a folder").permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    let (open, listening) = (open_files(&farm.server_process()), listening());
    assert!(
        !listening.is_empty(),
        "the virtual phone listens, if nothing else"
    );
    let ports: Vec<&String> = open.intersection(&listening).collect();
    assert!(ports.is_empty(), "{ports:?}");
    let listed = succeed(farm.adb().arg("devices"));
    assert!(listed.starts_with("List of devices"), "{listed}");
}

/// The server's queue of those who knock is short.
#[tokio::test(flavor = "multi_thread")]
async fn many_ask_our_server_at_once_and_all_are_answered() {
    let Some(farm) = Farm::new() else { return };
    let fleet = Fleet::open(&farm.settings()).await;
    assert!(fleet.problems.is_empty(), "{:?}", fleet.problems);
    let server = fleet.servers().next().expect("ours");
    let answers = join_all((0..200).map(|_| server.version())).await;
    for answer in answers {
        answer.expect("an answer");
    }
}

#[test]
fn a_state_folder_with_a_path_that_no_socket_can_have_is_refused_in_a_sentence() {
    let Some(farm) = Farm::new() else { return };
    let folder = farm.path(&"state".repeat(20));
    let mut command = farm.layerlab();
    let ended = output(command.env("LAYERLAB_STATE", folder).arg("doctor"));
    let said = String::from_utf8_lossy(&ended.stdout).into_owned() + &stderr(&ended);
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        said.contains("set LAYERLAB_STATE to a folder with a shorter path"),
        "{said}"
    );
    assert_eq!(ended.status.code(), Some(4), "{said}");
}
