//! A page that is watched shows the truth, also after the daemon was killed.

use layerlab_tests::browser::Browser;
use layerlab_tests::web::WebClient;
use layerlab_tests::web_lab::{models, on_a_port_of_its_own};

#[test]
fn a_page_outlives_the_daemon_and_shows_what_became_of_the_lab() {
    let Some(browser) = Browser::open() else {
        return;
    };
    let lab = on_a_port_of_its_own(&models());
    let daemon = lab.daemon();
    lab.wait_until_open();
    lab.wait_for_devices(2);
    let address = WebClient::of(&lab).address;
    let token = lab.succeed(&["token", "create", "wall", "--role", "viewer"]);
    browser.logs_in(&address, &token);
    browser.waits_for("a live page", "connection.dataset.state == 'live'");
    browser.waits_for(
        "two free devices",
        "document.querySelectorAll('.tile.free').length == 2",
    );
    // Whoever loads the page anew loses this.
    browser.does("window.isTheSame = true");
    daemon.kill();
    browser.waits_for("a page that says so", "connection.dataset.state == 'away'");
    // Meanwhile the lab changes, and nobody tells the page.
    lab.succeed(&[
        "quarantine",
        "add",
        "mate10pro",
        "--reason",
        "its glass is broken",
    ]);
    assert_eq!(
        browser.evaluates("document.querySelectorAll('.tile.free').length"),
        2
    );
    let _daemon = lab.daemon();
    browser.waits_for("a live page", "connection.dataset.state == 'live'");
    browser.waits_for(
        "the truth",
        "document.querySelector('.tile.quarantined')?.innerText.includes('its glass is broken')",
    );
    assert_eq!(browser.evaluates("window.isTheSame"), true);
    // It is live again.
    lab.wait_until_open();
    lab.succeed(&["quarantine", "lift", "mate10pro"]);
    browser.waits_for(
        "the next change",
        "document.querySelectorAll('.tile.free').length == 2",
    );
    assert_eq!(browser.evaluates("window.isTheSame"), true);
}
