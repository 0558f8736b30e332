//! The hosts of a lab over the web.

use layerlab_tests::elsewhere::Guest;
use layerlab_tests::postgres::postgres;
use layerlab_tests::web::WebClient;

use super::super::{SIMULATED, job};
use super::{host, host_with};
use layerlab_tests::lab::Lab;

const WEB: &str = "[web]\nlisten = \"127.0.0.1:0\"\n";

#[test]
fn devices_are_shown_host_by_host_with_whether_these_are_alive() {
    let Some(server) = postgres() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let shared = folder.path().to_str().expect("UTF-8");
    let url = server.database();
    let one = host_with("rack-1", &url, shared, ["a", "b"], WEB);
    let two = host("rack-2", &url, shared, ["c", "d"]);
    let (first, second) = (one.daemon(), two.daemon());
    for lab in [&one, &two] {
        lab.wait_until_open();
        lab.wait_for_devices(4);
    }
    let nobody = WebClient::of(&one);
    let viewer = nobody.with_role(&one, "viewer");
    assert_eq!(nobody.get("/api/v1/hosts").status, 401);
    let hosts = viewer.get("/api/v1/hosts").json();
    assert_eq!(hosts["all"], 2);
    assert_eq!(hosts["items"][1]["name"], "rack-2");
    assert_eq!(hosts["items"][1]["lease"], "alive");
    assert_eq!(hosts["items"][1]["devices"][0], format!("{shared}/c.toml"));
    let guest = Guest::of(&format!("http://{}", nobody.address)).with_role(&one, "viewer");
    assert_eq!(guest.succeed(&["hosts"]), one.succeed(&["hosts"]));

    // Each device stands below its host.
    let racks = || {
        let page = viewer.get("/").body;
        let racks = page.split("<section class=\"rack\">").skip(1);
        racks.map(str::to_owned).collect::<Vec<_>>()
    };
    one.wait_for("the devices of both hosts", || {
        racks()
            .iter()
            .all(|rack| rack.matches("class=\"tile free\"").count() == 2)
    });
    let [of_one, of_two] = racks().try_into().expect("two hosts");
    assert!(
        of_one.contains("rack-1") && of_one.contains("badge alive"),
        "{of_one}"
    );
    assert!(
        of_one.contains("a.toml") && !of_one.contains("c.toml"),
        "{of_one}"
    );
    assert!(
        of_two.contains("rack-2") && of_two.contains("d.toml"),
        "{of_two}"
    );
    let devices = viewer.get("/api/v1/devices").json();
    let devices = devices["items"].as_array().expect("a list");
    let of: Vec<_> = devices
        .iter()
        .map(|device| device["host"].as_str())
        .collect();
    let (first_host, second_host) = (Some("rack-1"), Some("rack-2"));
    assert_eq!(of, [first_host, first_host, second_host, second_host]);

    // What another host works on is known from the store.
    let on_c = format!(
        "[[devices]]\nserial = \"{shared}/c.toml\"\n[measure]\ndesign = \"local\"\nsamples = 20000\n"
    );
    one.submit(&job("alexnet", &on_c));
    one.wait_for("a busy device elsewhere", || {
        racks()[1].contains("class=\"tile busy\"") && racks()[1].contains("href=\"/runs/1\"")
    });
    // One that nothing is heard of.
    second.kill();
    let silent =
        "UPDATE layerlab.hosts SET lease_until = layerlab.lab_time() - 60 WHERE name = 'rack-2'";
    server.sql(&url, silent);
    one.wait_for("a host that is lost", || {
        let lost = &racks()[1];
        lost.contains("badge lost") && lost.matches("class=\"tile gone\"").count() == 2
    });
    let said = &racks()[1];
    assert!(said.contains("host `rack-2` is lost since"), "{said}");
    let calendar = viewer.get("/calendar").body;
    assert!(
        calendar.contains("By the clock of host rack-1"),
        "{calendar}"
    );
    first.stop();
}

#[test]
fn the_devices_of_a_lab_of_one_host_stand_below_none() {
    let lab = Lab::new(&format!("{SIMULATED}{WEB}"));
    let daemon = lab.daemon();
    lab.wait_until_open();
    lab.wait_for_devices(2);
    let viewer = WebClient::of(&lab).with_role(&lab, "viewer");
    let page = viewer.get("/").body;
    assert!(!page.contains("class=\"rack\""), "{page}");
    assert_eq!(
        page.matches("<li class=\"tile free\"><h2>").count(),
        2,
        "{page}"
    );
    assert_eq!(viewer.get("/api/v1/hosts").json()["all"], 0);
    assert!(
        viewer
            .get("/calendar")
            .body
            .contains("By the clock of the lab's host")
    );
    let guest = Guest::of(&format!("http://{}", viewer.address)).with_role(&lab, "viewer");
    let said = guest.succeed(&["hosts"]);
    assert_eq!(said, "That lab has one host: its store is a file.\n");
    daemon.stop();
}
