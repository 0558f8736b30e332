//! Jobs bring their models: by content, resumable, limited, and never by a path.

use std::io::Write;
use std::net::TcpStream;

use layerlab_profiles::sha256;
use layerlab_tests::elsewhere::Guest;
use layerlab_tests::lab::Lab;
use layerlab_tests::web::WebClient;
use serde_json::json;

use super::super::{SIMULATED, wait_for_job};
use super::{models, started};

const JSON: &str = "application/json";

/// A lab on the web that has no models of its own for jobs, and takes files of at most 1 MiB.
fn without_models() -> Lab {
    Lab::new(&format!(
        "{SIMULATED}[web]\nlisten = \"127.0.0.1:0\"\nupload-mebibytes = 1\n"
    ))
}

fn uploads(lab: &Lab) -> Vec<String> {
    let folder = lab.state().join("lab/uploads");
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let names = entries.map(|entry| entry.expect("a file").file_name());
    let mut names: Vec<String> = names.filter_map(|name| name.into_string().ok()).collect();
    names.sort();
    names
}

/// What the lab answers to a `PUT` of a file, of which `head` is said and `body` is sent.
fn put(client: &WebClient, token: &str, hash: &str, head: &str, body: &[u8]) -> String {
    let request = format!(
        "PUT /api/v1/files/{hash} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n{head}\r\n\r\n",
        client.address
    );
    client.said_to(&[request.as_bytes(), body].concat())
}

fn status(said: &str) -> &str {
    said.split(' ').nth(1).unwrap_or_default()
}

#[test]
fn a_job_from_elsewhere_brings_its_model() {
    let lab = without_models();
    let (_daemon, nobody) = started(&lab);
    let url = format!("http://{}", nobody.address);
    let guest = Guest::of(&url).with_role(&lab, "operator");
    let viewer = Guest::of(&url).with_role(&lab, "viewer");
    let file = guest.path("night.toml");
    let rest = "[[devices]]\nserial = \"mate10pro\"\n[measure]\ndesign = \"local\"\n";
    let model = models().join("alexnet.onnx");
    let text = format!("models = [{model:?}]\ndeadline = \"8h\"\n{rest}");
    std::fs::write(&file, text).expect("room");
    let path = file.to_str().expect("UTF-8");
    viewer.fail(&["submit", path], 2, "the role operator");
    let said = guest.succeed(&["submit", "--wait", path]);
    assert!(said.contains("Job 1, night, is submitted"), "{said}");
    let kept = lab.kept();
    let spec = &kept.jobs[&1].spec;
    let content = std::fs::read(&model).expect("it is there");
    assert_eq!(spec.models[0].name, "alexnet");
    assert_eq!(spec.models[0].source_sha256, sha256(&content));
    assert!(spec.deadline.is_some());
    assert!(kept.runs[&1].profile.is_some());
    // The folder in which the model had its name is gone; the content is there for the next job.
    assert_eq!(uploads(&lab), [sha256(&content)]);
    assert!(guest.succeed(&["submit", path]).contains("--again"));
    // The same by hand, in JSON.
    let operator = nobody.with_role(&lab, "operator");
    let job = |name: &str, hash: &str| {
        json!({
            "models": [name], "devices": [{ "serial": "oneplus7" }], "measure": { "design": "local" },
            "files": { name: hash },
        })
        .to_string()
    };
    let submitted = operator.post("/api/v1/jobs", JSON, &job("net.onnx", &sha256(&content)));
    assert_eq!(submitted.status, 201, "{submitted:?}");
    assert_eq!(lab.kept().jobs[&2].spec.models[0].name, "net");
    for (name, hash, said) in [
        ("net.onnx", "0".repeat(64), "is not here"),
        ("net.onnx", "../../config.toml".to_owned(), "no SHA-256"),
        ("../net.onnx", sha256(&content), "`files`"),
        ("/etc/passwd", sha256(&content), "`files`"),
    ] {
        let refused = operator.post("/api/v1/jobs", JSON, &job(name, &hash));
        refused.is_problem(422, said);
    }
    let without = json!({ "models": ["alexnet.onnx"], "devices": [{ "serial": "mate10pro" }] });
    let refused = operator.post("/api/v1/jobs", JSON, &without.to_string());
    refused.is_problem(403, "web.models");
    wait_for_job(&lab);
}

#[test]
fn an_upload_that_broke_off_goes_on() {
    let lab = without_models();
    let (_daemon, nobody) = started(&lab);
    let token = lab.succeed(&["token", "create", "op", "--role", "operator"]);
    let (token, operator) = (token.trim(), nobody.with_token(&token));
    let content: Vec<u8> = (0..300_000_u32).map(|byte| byte as u8).collect();
    let hash = sha256(&content);
    let path = format!("/api/v1/files/{hash}");
    operator.get(&path).is_problem(404, "PUT");
    nobody.get(&path).is_problem(401, "");
    let length = |bytes: usize| format!("Content-Length: {bytes}");
    // The connection breaks in the middle.
    let half = &content[..100_000];
    let mut stream = TcpStream::connect(&nobody.address).expect("a lab");
    let head = format!(
        "PUT {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\nContent-Length: 300000\r\n\r\n",
        nobody.address
    );
    stream.write_all(head.as_bytes()).expect("it listens");
    stream.write_all(half).expect("it listens");
    drop(stream);
    lab.wait_for("what came", || {
        let there = operator.get(&path);
        there.status == 200 && there.json()["bytes"] == half.len()
    });
    assert_eq!(operator.get(&path).json()["whole"], false);
    assert_eq!(uploads(&lab), [format!("{hash}.part")]);
    let wrong = put(&nobody, token, &hash, &length(content.len()), &content);
    assert_eq!(status(&wrong), "409", "{wrong}");
    assert!(wrong.contains("?offset=100000"), "{wrong}");
    let rest = &content[half.len()..];
    let query = format!("{hash}?offset={}", half.len());
    let whole = put(&nobody, token, &query, &length(rest.len()), rest);
    assert_eq!(status(&whole), "201", "{whole}");
    assert_eq!(operator.get(&path).json()["whole"], true);
    assert_eq!(uploads(&lab), std::slice::from_ref(&hash));
    let again = put(&nobody, token, &hash, &length(content.len()), &content);
    assert_eq!(status(&again), "200", "{again}");
    // What is not what its hash says is not kept.
    let other = "0".repeat(64);
    let false_one = put(&nobody, token, &other, &length(4), b"evil");
    assert_eq!(status(&false_one), "422", "{false_one}");
    assert_eq!(uploads(&lab), [hash]);
}

#[test]
fn a_file_that_is_too_long_is_refused_before_it_is_sent() {
    let lab = without_models();
    let (_daemon, nobody) = started(&lab);
    let operator = lab.succeed(&["token", "create", "op", "--role", "operator"]);
    let viewer = lab.succeed(&["token", "create", "wall", "--role", "viewer"]);
    let hash = "0".repeat(64);
    let announced = |bytes: u64| format!("Content-Length: {bytes}");
    let operator = operator.trim();
    for bytes in [(1 << 20) + 1, 2_000_000_000] {
        let said = put(&nobody, operator, &hash, &announced(bytes), b"");
        assert_eq!(status(&said), "413", "{bytes}: {said}");
        assert!(said.contains("1 MiB at most"), "{said}");
    }
    let query = format!("{hash}?offset=1000000");
    let said = put(&nobody, operator, &query, &announced(100_000), b"");
    assert_eq!(status(&said), "413", "{said}");
    // One that does not say how long it is.
    let long = vec![b'x'; (1 << 20) + 1];
    let chunk = [
        format!("{:x}\r\n", long.len()).as_bytes(),
        &long,
        b"\r\n0\r\n\r\n",
    ]
    .concat();
    let said = put(
        &nobody,
        operator,
        &hash,
        "Transfer-Encoding: chunked",
        &chunk,
    );
    assert!(said.is_empty() || status(&said) == "413", "{said}");
    let said = put(&nobody, viewer.trim(), &hash, &announced(1), b"x");
    assert_eq!(status(&said), "403", "{said}");
    for hash in [
        "..%2f..%2fconfig.toml",
        "..",
        &"F".repeat(64),
        "abc",
        &format!("{hash}.part"),
    ] {
        let said = put(&nobody, operator, hash, &announced(1), b"x");
        assert!(said.starts_with("HTTP/1.1 4"), "{hash}: {said}");
    }
    lab.wait_for("an end of what is too long", || uploads(&lab).is_empty());
    // The command says so, too.
    let url = format!("http://{}", nobody.address);
    let guest = Guest::of(&url).with("LAYERLAB_TOKEN", operator);
    let file = guest.path("job.toml");
    let large = models().join("yolo-mini.onnx");
    assert!(std::fs::metadata(&large).expect("it is there").len() > 1 << 20);
    let job = format!("models = [{large:?}]\n[[devices]]\nserial = \"mate10pro\"\n");
    std::fs::write(&file, job).expect("room");
    guest.fail(
        &["submit", file.to_str().expect("UTF-8")],
        3,
        "1 MiB at most",
    );
}
