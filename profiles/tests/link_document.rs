//! A published link: written, read again, and refused when anything of it was changed.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;

use layerlab_profiles::check::Severity;
use layerlab_profiles::document::{Host, Phone, Program};
use layerlab_profiles::link::{
    Exchange, LINK_FORMAT, LINK_JSON, LINK_VERSION, LinkDirection, LinkDocument, LinkHeader,
    LinkKind, LinkMethod, LinkPhone, LinkProvenance, LinkSample, LinkShape, MeasuredFrom,
    PhoneAttached, ServerTimes, TraceInterval, check_link, check_link_directory, link_name,
};
use layerlab_profiles::{Bytes, Nanos};

const SIZES: [u64; 2] = [16 << 10, 256 << 10];

fn header() -> LinkHeader {
    LinkHeader {
        format: LINK_FORMAT.to_owned(),
        version: LINK_VERSION,
        name: "lab".to_owned(),
        kind: LinkKind::Wifi,
        carrier: LinkKind::Wifi,
        shape: None,
        server: "192.168.1.2:7377".to_owned(),
        method: LinkMethod {
            transfer_bytes: SIZES.map(Bytes::from_bytes).to_vec(),
            repeats: 4,
            echoes: 7,
            echo_bytes: Bytes::from_bytes(64),
            connections: 1,
            gap_ns: Nanos::ZERO,
            seed: 3,
            requests: None,
        },
        connections: 1,
        provenance: LinkProvenance {
            started_at: "2026-01-01T00:00:00Z".to_owned(),
            finished_at: "2026-01-01T00:01:00Z".to_owned(),
            measured_from: MeasuredFrom::Host,
            program: Program {
                name: "layerlab".to_owned(),
                version: "0.1.0".to_owned(),
            },
            server_program: "layerlab 0.1.0".to_owned(),
            host: Host {
                system: "Linux".to_owned(),
                cpu: "one".to_owned(),
                logical_cores: 2,
                memory_bytes: Bytes::from_bytes(1 << 30),
            },
            phone: None,
        },
    }
}

fn phone() -> LinkPhone {
    LinkPhone {
        described: Phone {
            serial: "R58".to_owned(),
            ..Phone::default()
        },
        agent: Program {
            name: "layerlab-agent".to_owned(),
            version: "0.1.0".to_owned(),
        },
        attached: PhoneAttached::Cable,
        tunnelled: false,
    }
}

fn by_phone() -> LinkProvenance {
    LinkProvenance {
        measured_from: MeasuredFrom::Phone,
        phone: Some(phone()),
        ..header().provenance
    }
}

/// 8 Mbit/s and 50 ms, with up to a millisecond more.
fn samples() -> Vec<LinkSample> {
    let mut planned = vec![(Exchange::Echo, 64); 7];
    for size in SIZES {
        planned.extend([(Exchange::Upload, size); 4]);
        planned.extend([(Exchange::Download, size); 4]);
    }
    let mut now = 0;
    let sample = |(index, (exchange, bytes)): (u32, (Exchange, u64))| {
        let duration = 50_000_000 + bytes * 1_000 + u64::from(index * 7 % 5) * 200_000;
        let started = now;
        now += duration + 1_000;
        LinkSample {
            exchange,
            index,
            connection: 0,
            bytes: Bytes::from_bytes(bytes),
            started: Nanos::from_nanos(started),
            duration: Nanos::from_nanos(duration),
            server: ServerTimes {
                receive: Nanos::from_micros(40),
                queue: Nanos::from_micros(1),
                compute: Nanos::from_micros(1),
                send: Nanos::from_micros(60),
            },
        }
    };
    (0..).zip(planned).map(sample).collect()
}

fn traces() -> Vec<TraceInterval> {
    let interval = |place: u64| TraceInterval {
        direction: LinkDirection::Upload,
        start: Nanos::from_millis(100 * place),
        interval: Nanos::from_millis(100),
        bytes: Bytes::from_bytes(100_000 + place),
    };
    (0..3).map(interval).collect()
}

fn document() -> LinkDocument {
    LinkDocument::new(header(), samples(), traces()).unwrap()
}

fn errors(document: &LinkDocument) -> Vec<String> {
    let findings = check_link(document).into_iter();
    let errors = findings.filter(|it| it.severity == Severity::Error);
    errors.map(|it| it.to_string()).collect()
}

fn written(folder: &Path) -> LinkDocument {
    let document = document();
    document.write(folder).unwrap();
    document
}

#[test]
fn a_link_comes_back_from_its_files() {
    let folder = tempfile::tempdir().unwrap();
    let document = written(folder.path());
    let (read, findings) = check_link_directory(folder.path()).unwrap();
    assert_eq!(read, document);
    assert_eq!(findings, []);
    let links = fs::read_to_string(folder.path().join("links.csv")).unwrap();
    insta::assert_snapshot!("links", links);
    let json = fs::read_to_string(folder.path().join(LINK_JSON)).unwrap();
    // The last digit of a logarithm, and with it a hash, may be another on another machine.
    insta::with_settings!({filters => vec![("[0-9a-f]{64}", "SHA-256")]}, {
        insta::assert_snapshot!("link_json", json);
    });
    for (file, columns) in [
        (
            "link_samples.csv",
            "link,exchange,index,connection,bytes,started_ns,duration_ns,server_receive_ns,server_queue_ns,\
             server_compute_ns,server_send_ns,origin\n\
             lab,echo,0,0,64,0,50064000,40000,1000,1000,60000,measured\n",
        ),
        (
            "link_traces.csv",
            "link,direction,start_ns,interval_ns,bytes,origin\nlab,upload,0,100000000,100000,measured\n",
        ),
    ] {
        let text = fs::read_to_string(folder.path().join(file)).unwrap();
        assert!(text.starts_with(columns), "{text}");
    }
    // Nothing is written over what is there.
    let refused = document.write(folder.path()).unwrap_err();
    assert!(refused.to_string().contains("is not empty"), "{refused}");
}

/// As links were measured before there could be more.
#[test]
fn a_link_that_does_not_say_of_connections_was_measured_on_one() {
    let folder = tempfile::tempdir().unwrap();
    let document = written(folder.path());
    let path = folder.path().join(LINK_JSON);
    let json = fs::read_to_string(&path).unwrap();
    let mut older: serde_json::Value = serde_json::from_str(&json).unwrap();
    let method = older["method"].as_object_mut().unwrap();
    assert!(method.remove("connections").is_some());
    fs::write(&path, older.to_string()).unwrap();
    let (read, findings) = check_link_directory(folder.path()).unwrap();
    assert_eq!(read, document);
    assert_eq!(findings, []);
}

#[test]
fn a_link_that_a_phone_measured_says_which() {
    let header = LinkHeader {
        provenance: by_phone(),
        ..header()
    };
    let document = LinkDocument::new(header, samples(), traces()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    document.write(folder.path()).unwrap();
    let (read, findings) = check_link_directory(folder.path()).unwrap();
    assert_eq!(read, document);
    assert_eq!(findings, []);
}

#[test]
fn a_shaped_link_says_so_in_every_row() {
    let shaped = LinkHeader {
        kind: LinkKind::Shaped,
        shape: Some(LinkShape {
            bandwidth_bps: 8_000_000,
            round_trip_ns: Nanos::from_millis(50),
        }),
        ..header()
    };
    let document = LinkDocument::new(shaped, samples(), traces()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    document.write(folder.path()).unwrap();
    for (file, words) in [
        ("links.csv", ",derived-from-simulated"),
        ("links.csv", "lab,shaped,"),
        ("link_samples.csv", ",simulated"),
        ("link_traces.csv", ",simulated"),
    ] {
        let text = fs::read_to_string(folder.path().join(file)).unwrap();
        assert!(
            text.lines().skip(1).all(|line| line.contains(words)),
            "{file}: {text}"
        );
    }
    assert_eq!(check_link_directory(folder.path()).unwrap().1, []);
}

/// One number or word changed anywhere in a table is noticed by its hash, and by what follows from it.
#[test]
fn a_changed_table_is_noticed() {
    for (file, from, to, words) in [
        ("links.csv", "upload", "download", "not what follows"),
        (
            "links.csv",
            ",derived",
            ",measured",
            "the origin is measured, but derived",
        ),
        (
            "links.csv",
            "lab,wifi",
            "lab,ethernet",
            "the kind is ethernet, but wifi",
        ),
        (
            "link_samples.csv",
            "lab,echo",
            "lob,echo",
            "the link is another one",
        ),
        (
            "link_samples.csv",
            "lab,echo,0,0,64,0,50064000",
            "lab,echo,0,0,64,0,59064000",
            "began before",
        ),
        (
            "link_traces.csv",
            "100000000,100000,",
            "100000000,100009,",
            "was changed after",
        ),
        (
            "link_traces.csv",
            "upload,200000000",
            "upload,300000000",
            "do not follow one another",
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        written(folder.path());
        let path = folder.path().join(file);
        let text = fs::read_to_string(&path).unwrap();
        let changed = text.replacen(from, to, 1);
        assert_ne!(text, changed, "{file} has no {from}");
        fs::write(&path, changed).unwrap();
        let (_, findings) = check_link_directory(folder.path()).unwrap();
        let said: Vec<String> = findings.iter().map(ToString::to_string).collect();
        assert!(
            said.iter().any(|it| it.contains("was changed after")),
            "{file}: {said:?}"
        );
        assert!(
            said.iter().any(|it| it.contains(words)),
            "`{words}` is missing in {said:?}"
        );
    }
}

#[test]
fn what_is_no_link_is_refused_with_the_file_and_the_reason() {
    for (file, from, to, words) in [
        (
            LINK_JSON,
            "layerlab-link",
            "layerlab-profile",
            "is no measured link",
        ),
        (
            LINK_JSON,
            "\"version\": 1",
            "\"version\": 2",
            "update layerlab",
        ),
        (
            LINK_JSON,
            "\"connections\"",
            "\"conections\"",
            "docs/edge.md",
        ),
        (LINK_JSON, "\"files\"", "\"flies\"", "docs/edge.md"),
        (LINK_JSON, "{", "", "docs/edge.md"),
        ("links.csv", "bandwidth_bps", "bandwidth", "column 4"),
        ("links.csv", ",false,", ",true,", "unsteady"),
        (
            "link_samples.csv",
            "upload",
            "sideways",
            "link_samples.csv, line",
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        written(folder.path());
        let path = folder.path().join(file);
        let text = fs::read_to_string(&path).unwrap();
        let changed = text.replacen(from, to, 1);
        assert_ne!(text, changed, "{file} has no {from}");
        fs::write(&path, changed).unwrap();
        let said = check_link_directory(folder.path()).unwrap_err().to_string();
        assert!(said.contains(words), "`{words}` is missing in: {said}");
        assert!(said.contains(file), "{said}");
    }
    let nowhere = check_link_directory(Path::new("/nowhere")).unwrap_err();
    assert!(
        nowhere.to_string().contains("/nowhere/link.json"),
        "{nowhere}"
    );
}

/// What cannot be is not published, however it came about.
#[test]
fn a_link_that_contradicts_itself_is_an_error() {
    type Spoil = fn(&mut LinkDocument);
    let cases: [(Spoil, &str); 15] = [
        (|it| it.samples[1].index = 0, "samples have"),
        (|it| it.samples[1].index = 99, "samples have"),
        (
            |it| it.samples[3].connection = 1,
            "on a connection that is none",
        ),
        (|it| it.samples[2].started = Nanos::ZERO, "began before"),
        (
            |it| it.samples[2].server.compute = Nanos::from_millis(51),
            "all of it took",
        ),
        (|it| it.samples.truncate(22), "not the 23 of the method"),
        (|it| it.rows[0].fit.bandwidth_bps += 100, "not what follows"),
        (
            |it| it.header.name = "a\u{1b}b".to_owned(),
            "a link's name has",
        ),
        (
            |it| it.header.kind = LinkKind::Shaped,
            "although it was not shaped",
        ),
        (|it| it.header.kind = LinkKind::Cellular, "carried by wifi"),
        (
            |it| it.header.provenance.measured_from = MeasuredFrom::Phone,
            "does not say which",
        ),
        (
            |it| it.header.method.connections = 2,
            "1 connections were made, but its method has 2",
        ),
        (
            |it| it.header.provenance.phone = Some(phone()),
            "names a phone",
        ),
        (
            |it| {
                it.header.provenance = by_phone();
                (it.header.kind, it.header.carrier) = (LinkKind::UsbTunnel, LinkKind::UsbTunnel);
            },
            "the kind is wifi, cellular or ethernet",
        ),
        (
            |it| it.traces[1].start = Nanos::from_millis(150),
            "do not follow one another",
        ),
    ];
    assert_eq!(errors(&document()), Vec::<String>::new());
    for (spoil, words) in cases {
        let mut document = document();
        spoil(&mut document);
        let said = errors(&document).join("\n");
        assert!(said.contains(words), "`{words}` is missing in: {said}");
        assert!(said.contains("measure again"), "no remedy: {said}");
    }
}

#[test]
fn lost_connections_and_unsteady_links_are_warnings() {
    let mut lost = document();
    lost.header.connections = 3;
    let said: Vec<String> = check_link(&lost).iter().map(ToString::to_string).collect();
    assert_eq!(
        said,
        ["warning: connections were lost 2 times; see what cuts it, and measure again"]
    );
    let mut samples = samples();
    let mut now = 0;
    for sample in &mut samples {
        let slow = 1 + u64::from(sample.index % 2);
        let duration = sample.duration.as_nanos() * slow;
        (sample.started, sample.duration) = (Nanos::from_nanos(now), Nanos::from_nanos(duration));
        now += duration;
    }
    let unsteady = LinkDocument::new(header(), samples, Vec::new()).unwrap();
    let findings = check_link(&unsteady);
    assert!(
        findings.iter().all(|it| it.severity == Severity::Warning),
        "{findings:?}"
    );
    assert!(findings[0].sentence.contains("is unsteady"), "{findings:?}");
}

#[test]
fn names_are_fit_for_paths_and_terminals() {
    for good in ["lab", "lab-wifi_2.4", "A"] {
        assert_eq!(link_name(good).as_deref(), Ok(good));
    }
    let long = "x".repeat(65);
    for bad in ["", "..", ".lab", "-lab", "a/b", "a b", "a\nb", "é", &long] {
        assert!(link_name(bad).is_err(), "{bad:?}");
    }
}
