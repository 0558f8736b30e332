//! Tests of which libraries a phone is given, and of the environment that names them.

use super::*;
use crate::runtimes::{HEXAGON, sample};

const ARM: &str = "arm64-v8a";
const ON_PHONE: LibrarySystem = LibrarySystem::Android;

fn onnxruntime() -> AddedRuntime {
    let for_computers = (EMULATES, LibrarySystem::Computer, "libonnxruntime.so.1");
    sample(
        "ort",
        &[(ARM, ON_PHONE, "libonnxruntime.so"), for_computers],
    )
}

fn provider() -> AddedRuntime {
    sample(
        "provider",
        &[(ARM, ON_PHONE, "libonnxruntime_providers_qnn.so")],
    )
}

fn qnn() -> AddedRuntime {
    sample(
        "qnn",
        &[
            (ARM, ON_PHONE, "libQnnHtp.so"),
            (ARM, ON_PHONE, "libQnnSystem.so"),
            (HEXAGON, LibrarySystem::Hexagon, "libQnnHtpV75Skel.so"),
        ],
    )
}

fn with(runtimes: Vec<AddedRuntime>) -> PhoneRuntimes {
    PhoneRuntimes {
        runtimes: Arc::new(runtimes),
        ..PhoneRuntimes::default()
    }
}

fn snapdragon() -> Soc {
    Soc::from_properties("SM8650", "QTI", "qcom")
}

/// What is given, and the reasons why something is not.
fn on(
    runtimes: &PhoneRuntimes,
    abi: &str,
    linking: Linking,
    soc: &Soc,
) -> (Vec<String>, Vec<String>) {
    let suited = runtimes.suited(abi, linking, soc);
    let given = suited.given.iter().map(|(runtime, _)| runtime.name.clone());
    let reasons = suited
        .unsuited
        .into_iter()
        .map(|one| format!("{}; {}", one.reason, one.remedy));
    (given.collect(), reasons.collect())
}

#[test]
fn a_phone_is_given_what_its_processor_and_its_agent_can_load() {
    let all = with(vec![onnxruntime(), provider(), qnn()]);
    let tensor = Soc::from_properties("Tensor", "Google", "slider");
    let cases = [
        (
            ARM,
            Linking::Android,
            snapdragon(),
            vec!["ort", "provider", "qnn"],
        ),
        (ARM, Linking::Android, tensor.clone(), vec!["ort"]),
        (EMULATES, Linking::Computer, tensor, vec!["ort"]),
    ];
    for (abi, linking, soc, expected) in cases {
        let (given, unsuited) = on(&all, abi, linking, &soc);
        assert_eq!(given, expected, "{abi} {soc:?}");
        assert_eq!(unsuited, Vec::<String>::new(), "{abi} {soc:?}");
    }
    let nothing = (Vec::new(), Vec::new());
    assert_eq!(
        on(&with(Vec::new()), ARM, Linking::Static, &snapdragon()),
        nothing
    );
}

#[test]
fn what_a_phone_is_not_given_is_said_with_the_remedy() {
    let all = with(vec![onnxruntime(), provider(), qnn()]);
    let (given, unsuited) = on(&all, ARM, Linking::Static, &snapdragon());
    assert_eq!(given, Vec::<String>::new());
    assert_eq!(
        unsuited,
        [
            "its agent is static and loads no runtime (ort 1, provider 1, qnn 1 stay here); \
          make agent ABI=arm64-v8a ANDROID=1, with the Android NDK"
        ]
    );
    for (abi, linking) in [
        (EMULATES, Linking::Android),
        ("armeabi-v7a", Linking::Android),
        (ARM, Linking::Computer),
    ] {
        let (given, unsuited) = on(&all, abi, linking, &snapdragon());
        assert_eq!(given, Vec::<String>::new(), "{abi}");
        assert!(
            unsuited[0].starts_with(&format!("no ONNX Runtime for {abi} and ")),
            "{unsuited:?}"
        );
    }
    let missing = [
        (vec![onnxruntime(), provider()], "libQnnHtp.so"),
        (
            vec![onnxruntime(), qnn()],
            "libonnxruntime_providers_qnn.so",
        ),
    ];
    for (runtimes, library) in missing {
        let (_, unsuited) = on(&with(runtimes), ARM, Linking::Android, &snapdragon());
        let expected = format!(
            "its Hexagon is not offered: {library} was not added; layerlab runtime add FILE"
        );
        assert!(unsuited[0].starts_with(&expected), "{unsuited:?}");
    }
    let of = |mut runtime: AddedRuntime, release: &str| {
        runtime.qualcomm_release = Some(release.to_owned());
        runtime
    };
    let mixed = with(vec![
        onnxruntime(),
        of(provider(), "v2.40"),
        of(qnn(), "v2.41"),
    ]);
    let (_, unsuited) = on(&mixed, ARM, Linking::Android, &snapdragon());
    assert!(unsuited[0].contains("v2.40 and v2.41"), "{unsuited:?}");
}

#[test]
fn an_agent_is_told_where_its_libraries_are_and_the_hexagon_too() {
    let all = with(vec![onnxruntime(), provider(), qnn()]);
    let soc = snapdragon();
    let suited = all.suited(ARM, Linking::Android, &soc);
    let variables = suited.environment("/root", ARM, Linking::Android, &soc);
    let value = |name| {
        variables
            .iter()
            .find(|(other, _)| *other == name)
            .map(|(_, value)| value.as_str())
    };
    let folders: Vec<String> = suited
        .given
        .iter()
        .map(|(_, libraries)| folder("/root", libraries))
        .collect();
    assert_eq!(value("LD_LIBRARY_PATH"), Some(folders.join(":").as_str()));
    assert_eq!(
        value("ADSP_LIBRARY_PATH"),
        Some(folders[1..].join(";").as_str())
    );
    assert_eq!(value("LAYERLAB_ONNXRUNTIME"), Some(folders[0].as_str()));
    assert_eq!(value("LAYERLAB_QNN"), Some(folders[1].as_str()));
    assert_eq!(value("LAYERLAB_QNN_LIBRARIES"), Some(folders[2].as_str()));
    assert_eq!(value("ORT_DISABLE_TELEMETRY"), Some("1"));
    assert_eq!(value("LAYERLAB_EMULATE"), None, "a phone has the real one");
    let skel = suited.given[2]
        .1
        .iter()
        .any(|library| library.abi == HEXAGON);
    assert!(skel, "what runs on the Hexagon goes along");
}

#[test]
fn who_made_an_soc_is_read_from_what_phones_say() {
    let cases = [
        ("QTI", "qcom", true),
        ("Qualcomm", "", true),
        ("", "qcom", true),
        ("Google", "qcom", false),
        ("", "slider", false),
    ];
    for (maker, hardware, is_qualcomm) in cases {
        let soc = Soc::from_properties("X", maker, hardware);
        assert_eq!(soc.is_qualcomm, is_qualcomm, "{maker} {hardware}");
    }
}

#[test]
fn the_same_is_said_once() {
    let runtimes = PhoneRuntimes::default();
    runtimes.say("P1", "x");
    runtimes.clone().say("P1", "x");
    runtimes.say("P2", "x");
    assert_eq!(runtimes.said.lock().expect("no panic").len(), 2);
}
