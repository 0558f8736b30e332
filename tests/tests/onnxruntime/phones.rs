//! Runtimes on phones, all the way: the archives that their makers publish are built here from the libraries of the
//! wheels, added, given to a virtual phone through the real adb server, and measured there.

use std::path::{Path, PathBuf};
use std::process::Command;

use layerlab_farm::phone_runtimes::PhoneRuntimes;
use layerlab_farm::provision::Provision;
use layerlab_tests::farm::Farm;
use layerlab_tests::interposer::Interposer;
use layerlab_tests::library_file::archive;
use layerlab_tests::virtual_phone::VirtualPhone;
use layerlab_tests::{output, stderr, stdout, succeed};

use super::campaigns::profile_over;
use super::{SOC, folders};

/// A lab with one phone, with a server before the server that counts what is sent to it.
struct Lab {
    farm: Farm,
    phone: VirtualPhone,
    counting: Interposer,
    /// The libraries of ONNX Runtime and Qualcomm, as wheels have them.
    wheels: (PathBuf, PathBuf),
}

impl Lab {
    /// The phone says that its SoC is `soc` of `maker`.
    #[track_caller]
    fn new(soc: &str, maker: &str) -> Option<Lab> {
        let wheels = folders()?;
        let farm = Farm::new()?;
        let phone = farm.phone("P1");
        phone.set("prop.ro.soc.model", soc);
        phone.set("prop.ro.soc.manufacturer", maker);
        succeed(
            farm.layerlab()
                .args(["devices", "--adb-connect", &phone.address]),
        );
        let counting = Interposer::before(farm.socket());
        Some(Lab {
            farm,
            phone,
            counting,
            wheels,
        })
    }

    fn layerlab(&self) -> Command {
        let mut command = self.farm.layerlab();
        command.env("LAYERLAB_ADB_SERVER", self.counting.address.to_string());
        command
    }

    /// The archive `name` in the shape of Android's, with these files for this machine, which was added.
    fn added(&self, name: &str, files: &[&Path]) -> String {
        let contents: Vec<(String, Vec<u8>)> = files
            .iter()
            .map(|file| {
                let name = file.file_name().expect("a name").to_string_lossy();
                // Android's files have no version in their names.
                let name = if name.starts_with("libonnxruntime.so") {
                    "libonnxruntime.so"
                } else {
                    &name
                };
                (
                    format!("jni/x86_64/{name}"),
                    std::fs::read(file).expect("a library"),
                )
            })
            .collect();
        let entries: Vec<(&str, &[u8])> = contents
            .iter()
            .map(|(path, content)| (path.as_str(), content.as_slice()))
            .collect();
        let file = self.farm.path(name);
        archive(&file, &entries);
        succeed(self.layerlab().args(["runtime", "add"]).arg(&file))
    }

    fn add_onnxruntime(&self) -> PathBuf {
        let library = self.wheels.0.join("libonnxruntime.so.1.24.4");
        self.added("onnxruntime-android-1.24.4.aar", &[&library]);
        library
    }

    /// Qualcomm's provider, and in another archive the libraries that it needs.
    fn add_qualcomm(&self) {
        let qnn = &self.wheels.1;
        let plugin = qnn.join("libonnxruntime_providers_qnn.so");
        self.added("onnxruntime-android-qnn-2.7.0.aar", &[&plugin]);
        let mut files = vec![qnn.join("libQnnHtp.so"), qnn.join("libQnnSystem.so")];
        let bundled =
            std::fs::read_dir(qnn.with_file_name("onnxruntime_qnn.libs")).expect("of the wheel");
        files.extend(bundled.map(|file| file.expect("a file").path()));
        let files: Vec<&Path> = files.iter().map(PathBuf::as_path).collect();
        self.added("qnn-runtime-2.51.0.aar", &files);
    }

    /// The processors of the phone as `layerlab devices` lists them, what it says besides, and how much was sent.
    fn devices(&self) -> (Vec<String>, String, u64) {
        let before = self.counting.sent();
        let ended = output(self.layerlab().args(["devices", "--json"]));
        let sent = self.counting.sent() - before;
        let said = stderr(&ended);
        assert!(ended.status.success(), "{said}");
        let listed: serde_json::Value = serde_json::from_str(&stdout(&ended)).expect("JSON");
        let devices = listed.as_array().expect("a list").iter();
        let mut phones = devices.filter(|device| device["link"] == "adb");
        let phone = phones.next().expect("the phone is listed");
        let processors = phone["processors"].as_array().into_iter().flatten();
        let names = processors.map(|one| one["name"].as_str().expect("a name").to_owned());
        (names.collect(), said, sent)
    }

    /// The values of a variable in the processes on the phone of which the command line has `word`.
    fn variable(&self, word: &str, name: &str) -> Vec<String> {
        let script = format!(
            "for p in /proc/[0-9]*; do tr '\\0' ' ' <$p/cmdline 2>/dev/null | grep -q '[l]ayerlab-agent {word}' \
             && tr '\\0' '\\n' <$p/environ | grep '^{name}='; done; true"
        );
        let said = succeed(
            self.farm
                .adb()
                .args(["-s", &self.phone.address, "shell", &script]),
        );
        let values = said
            .lines()
            .filter_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        values.map(str::to_owned).collect()
    }

    /// The folder on the phone in which `library` lies.
    fn folder_of(&self, library: &str) -> String {
        let on_phone = self.phone.storage().join("layerlab/runtimes");
        let folders = std::fs::read_dir(on_phone)
            .expect("runtimes")
            .map(|folder| folder.expect("a folder"));
        let mut holders = folders.filter(|folder| folder.path().join(library).is_file());
        let holder = holders
            .next()
            .unwrap_or_else(|| panic!("no {library} on the phone"));
        format!(
            "/data/local/tmp/layerlab/runtimes/{}",
            holder.file_name().display()
        )
    }
}

/// Questions and orders take less; the smallest library takes more.
const MOST_WITHOUT_FILES: u64 = 200_000;

#[tokio::test(flavor = "multi_thread")]
async fn a_phone_is_given_onnx_runtime_once_and_measured_with_it() {
    let Some(lab) = Lab::new("VP1", "layerlab") else {
        return;
    };
    let (before, ..) = lab.devices();
    assert_eq!(
        before,
        <[&str; 0]>::default(),
        "nobody asks while there is no runtime"
    );
    let library = lab.add_onnxruntime();
    // What no Hexagon is there for stays here.
    lab.add_qualcomm();
    let library_size = std::fs::metadata(&library).expect("a library").len();
    let size = library_size + agent_size(&lab);
    let (first, said, sent) = lab.devices();
    assert!(
        first.iter().any(|name| name == "cpu:ort-all"),
        "{first:?}: {said}"
    );
    assert!(
        first.iter().all(|name| !name.starts_with("qnn")),
        "{first:?}"
    );
    assert!(
        sent > size && sent < size + MOST_WITHOUT_FILES,
        "{sent} bytes were sent, library and agent have {size}"
    );
    let (second, _, sent) = lab.devices();
    assert_eq!(second, first);
    assert!(sent < MOST_WITHOUT_FILES, "{sent} bytes were sent again");

    let folder = lab.folder_of("libonnxruntime.so");
    assert_eq!(lab.variable("serve", "LD_LIBRARY_PATH"), [folder]);
    assert_eq!(lab.variable("serve", "ORT_DISABLE_TELEMETRY"), ["1"]);
    assert_eq!(
        lab.variable("serve", "ADSP_LIBRARY_PATH"),
        <[&str; 0]>::default()
    );

    let provision = Provision {
        simulate: None,
        runtimes: PhoneRuntimes::in_folder(&lab.farm.path("data")),
        ..lab.farm.provision("")
    };
    let link = lab.farm.link(&lab.phone, provision).await;
    profile_over(&link, &lab.farm.path(""), &["cpu:ort-all"], None, |_| {}).await;
    drop(link);
    let out = lab.farm.path("profile");
    let checked = succeed(lab.layerlab().arg("check").arg(&out));
    assert!(checked.contains("a sound profile"), "{checked}");
    let json = std::fs::read_to_string(out.join("profile.json")).expect("profile.json");
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let processors = json["processors"].as_array().expect("processors").iter();
    let mut measured = processors.filter(|one| one["name"] == "cpu:ort-all");
    let libraries = measured.next().expect("it was measured")["runtime_libraries"].to_string();
    let content = std::fs::read(&library).expect("a library");
    let hash = layerlab_profiles::sha256(&content);
    assert!(
        libraries.contains("\"libonnxruntime.so\"") && libraries.contains(&hash),
        "{libraries}"
    );

    // A phone is given no more what was removed.
    for name in [
        "onnxruntime-android",
        "onnxruntime-android-qnn",
        "qnn-runtime",
    ] {
        succeed(lab.layerlab().args(["runtime", "remove", name]));
    }
    let (none, ..) = lab.devices();
    assert_eq!(none, before);
}

#[test]
fn a_phone_of_qualcomms_is_given_its_libraries_too_and_finds_them_in_their_folders() {
    let Some(lab) = Lab::new(SOC, "QTI") else {
        return;
    };
    lab.add_onnxruntime();
    lab.add_qualcomm();
    let (processors, said, _) = lab.devices();
    for name in ["cpu:ort-all", "qnn-htp-f16", "qnn-htp-i8"] {
        assert!(
            processors.iter().any(|one| one == name),
            "{name}: {processors:?}: {said}"
        );
    }
    let runtime = lab.folder_of("libonnxruntime.so");
    let (plugin, backend) = (
        lab.folder_of("libonnxruntime_providers_qnn.so"),
        lab.folder_of("libQnnHtp.so"),
    );
    assert!(runtime != plugin && plugin != backend);
    // As the agent has them, and as the processes have them in which it loads libraries.
    let all = format!("{runtime}:{plugin}:{backend}");
    assert_eq!(lab.variable("serve", "LD_LIBRARY_PATH"), [all]);
    assert_eq!(
        lab.variable("serve", "ADSP_LIBRARY_PATH"),
        [format!("{plugin};{backend}")]
    );
    let children = lab.variable("runtime-child", "ADSP_LIBRARY_PATH");
    assert!(!children.is_empty());
    assert!(
        children
            .iter()
            .all(|value| *value == format!("{plugin};{backend}")),
        "{children:?}"
    );
    let (again, _, sent) = lab.devices();
    assert_eq!(again, processors);
    assert!(sent < MOST_WITHOUT_FILES, "{sent} bytes were sent again");
}

#[test]
fn what_a_phone_cannot_use_is_said_once_and_the_rest_is_offered() {
    let Some(lab) = Lab::new("SM1", "QTI") else {
        return;
    };
    lab.add_onnxruntime();
    lab.add_qualcomm();
    let (processors, said, _) = lab.devices();
    assert!(
        processors.iter().any(|one| one == "cpu:ort-all"),
        "{processors:?}"
    );
    assert!(
        processors.iter().all(|name| !name.starts_with("qnn")),
        "{processors:?}"
    );
    let lines: Vec<&str> = said
        .lines()
        .filter(|line| line.contains("Hexagon"))
        .collect();
    assert_eq!(lines.len(), 1, "{said}");
    assert!(
        lines[0].contains("SM1") && lines[0].contains("P1@"),
        "{said}"
    );
    let asked = output(lab.layerlab().arg("doctor"));
    let (doctor, aside) = (stdout(&asked), stderr(&asked));
    assert!(doctor.contains("offers cpu:all (f32, tract"), "{doctor}");
    assert_eq!(
        doctor.matches("the Hexagon of SoC `SM1`").count(),
        1,
        "{doctor}"
    );
    assert!(!aside.contains("SM1"), "{aside}");

    // Without the provider, that is said instead.
    succeed(
        lab.layerlab()
            .args(["runtime", "remove", "onnxruntime-android-qnn"]),
    );
    let (processors, said, _) = lab.devices();
    assert!(
        processors.iter().any(|one| one == "cpu:ort-all"),
        "{processors:?}"
    );
    let missing = "libonnxruntime_providers_qnn.so was not added; layerlab runtime add FILE";
    assert!(said.contains(missing), "{said}");
    let doctor = stdout(&output(lab.layerlab().arg("doctor")));
    assert!(
        doctor.contains("libonnxruntime_providers_qnn.so was not added"),
        "{doctor}"
    );
    assert!(
        doctor.contains("is given onnxruntime-android 1.24.4"),
        "{doctor}"
    );
}

#[test]
fn a_library_that_was_changed_where_it_is_kept_is_not_sent() {
    let Some(lab) = Lab::new("VP1", "layerlab") else {
        return;
    };
    lab.add_onnxruntime();
    let kept = lab
        .farm
        .path("data/runtimes/onnxruntime-android/x86_64/computer/libonnxruntime.so");
    std::fs::write(&kept, "text").expect("its own");
    let (processors, said, sent) = lab.devices();
    assert_eq!(processors, <[&str; 0]>::default());
    assert!(
        said.contains("not what was added") && said.contains("layerlab runtime remove"),
        "{said}"
    );
    assert!(sent < MOST_WITHOUT_FILES + agent_size(&lab), "{sent}");
}

fn agent_size(lab: &Lab) -> u64 {
    std::fs::metadata(lab.farm.agent()).expect("an agent").len()
}
