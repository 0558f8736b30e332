//! A lab with a certificate is reached from other machines, by whoever trusts it.

use std::path::Path;

use layerlab_tests::certificate::Certificate;
use layerlab_tests::elsewhere::{Guest, fails, free_port};
use layerlab_tests::lab::Lab;
use ureq::tls::{RootCerts, TlsConfig};

use super::super::{SIMULATED, job};
use super::models;

/// A lab at all addresses of this machine that is called `localhost`, and its port.
fn encrypted(certificate: &Certificate) -> (Lab, u16) {
    let port = free_port();
    let web = format!(
        "[web]\nlisten = \"0.0.0.0:{port}\"\nmodels = {:?}\n{}",
        models(),
        certificate.configuration()
    );
    (Lab::new(&format!("{SIMULATED}{web}")), port)
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

#[test]
fn commands_ask_a_lab_that_proves_who_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let certificate = Certificate::of(&["localhost"], folder.path());
    let (lab, port) = encrypted(&certificate);
    let _daemon = lab.daemon();
    lab.wait_until_open();
    lab.wait_for_devices(2);
    lab.wait_for("a lab on the web", || {
        lab.log().contains(&format!("https://0.0.0.0:{port}"))
    });
    let url = format!("https://localhost:{port}");
    let token = lab.succeed(&["token", "create", "ada", "--role", "operator"]);
    let stranger = Guest::of(&url).with("LAYERLAB_TOKEN", token.trim());
    stranger.fail(&["jobs"], 4, "does not prove that it is the lab");
    let other = Certificate::of(&["localhost"], stranger.path("").as_path());
    stranger.fail(&["jobs", "--ca", text(&other.ca)], 4, "does not prove");
    // It is called otherwise than its certificate says.
    let address = format!("https://127.0.0.1:{port}");
    let wrong_name = ["jobs", "--lab", &address, "--ca", text(&certificate.ca)];
    stranger.fail(&wrong_name, 4, "does not prove");
    let plain = format!("http://localhost:{port}");
    let clear = stranger.run(&["jobs", "--lab", &plain]);
    assert_eq!(clear.status.code(), Some(4), "{clear:?}");
    assert!(
        stranger
            .succeed(&["jobs", "--ca", text(&certificate.ca)])
            .contains("No jobs.")
    );

    // Who logs in names the authority once.
    let guest = Guest::of(&url);
    let login = ["login", &url, "--ca", text(&certificate.ca)];
    let login = guest.run_with_input(&login, &token);
    assert!(login.status.success(), "{login:?}");
    let file = guest.path("job.toml");
    let on_one = "[[devices]]\nserial = \"mate10pro\"\n[measure]\ndesign = \"local\"\n";
    std::fs::write(&file, job("alexnet", on_one)).expect("room");
    guest.succeed(&["submit", "--wait", text(&file)]);
    let out = guest.path("profile");
    guest.succeed(&["profiles", "get", "1", "--out", text(&out)]);
    assert!(out.join("layers.csv").is_file());
    let environment = Guest::of(&url)
        .with("LAYERLAB_TOKEN", token.trim())
        .with("LAYERLAB_CA", text(&certificate.ca));
    environment.succeed(&["jobs", "--all"]);

    // A browser keeps the token for encrypted pages alone.
    let pem = std::fs::read(&certificate.ca).expect("it is there");
    let ca = ureq::tls::Certificate::from_pem(&pem).expect("a certificate");
    let tls = TlsConfig::builder().root_certs(RootCerts::new_with_certs(&[ca]));
    let agent = ureq::Agent::config_builder()
        .tls_config(tls.build())
        .max_redirects(0)
        .max_redirects_will_error(false)
        .build()
        .new_agent();
    let form = format!("token={}", token.trim());
    let login = agent.post(format!("{url}/login"));
    let login = login
        .content_type("application/x-www-form-urlencoded")
        .send(form);
    let login = login.expect("an answer");
    let cookie = login.headers().get("set-cookie").expect("a cookie");
    assert!(
        cookie.to_str().expect("text").ends_with("; Secure"),
        "{cookie:?}"
    );
}

#[test]
fn a_certificate_that_is_of_no_use_is_refused_in_a_sentence() {
    let folder = tempfile::tempdir().expect("a folder");
    let certificate = Certificate::of(&["localhost"], folder.path());
    let elsewhere = tempfile::tempdir().expect("a folder");
    let other = Certificate::of(&["localhost"], elsewhere.path());
    let empty = folder.path().join("empty.pem");
    std::fs::write(&empty, "").expect("room");
    let named = |cert: &Path, key: &Path| format!("cert = {cert:?}\nkey = {key:?}\n");
    for (lines, said) in [
        (format!("cert = {:?}\n", certificate.cert), "no `web.key`"),
        (format!("key = {:?}\n", certificate.key), "no `web.cert`"),
        (named(&empty, &certificate.key), "empty.pem"),
        (named(&certificate.cert, &empty), "empty.pem"),
        (named(&certificate.cert, &other.key), "belong together"),
        (named(Path::new("/missing.pem"), &other.key), "/missing.pem"),
        ("cert = \"cert.pem\"\n".to_owned(), "`web.cert`"),
    ] {
        let lab = Lab::new(&format!(
            "{SIMULATED}[web]\nlisten = \"127.0.0.1:0\"\n{lines}"
        ));
        let config = lab.path("config.toml");
        for command in [
            &["daemon", "--config"][..],
            &["config", "check", "--config"],
        ] {
            let line = [command, &[text(&config)]].concat();
            fails(&lab.run(&line), 3, said);
        }
    }
}
