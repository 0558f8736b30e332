//! Runtimes for phones: what is kept of archives and folders, and what is refused. The libraries are small and load
//! nowhere; tests/onnxruntime/phones.rs has real ones.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use layerlab_profiles::sha256;
use layerlab_tests::library_file::{AARCH64, HEXAGON, X86_64, archive, library};
use layerlab_tests::{layerlab, output, stderr, succeed};
use tempfile::TempDir;

/// A user of layerlab who has added no runtime yet.
struct User {
    folder: TempDir,
}

impl User {
    fn new() -> User {
        let folder = tempfile::tempdir().expect("room");
        User { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn runtime(&self) -> Command {
        let mut command = layerlab();
        command
            .env("LAYERLAB_DATA", self.path("data"))
            .arg("runtime");
        command
    }

    fn add(&self, file: &Path) -> String {
        succeed(self.runtime().arg("add").arg(file))
    }

    /// Adding `file` is refused in one sentence with all of `words`, and leaves nothing behind.
    #[track_caller]
    fn refuses(&self, file: &Path, words: &[&str]) {
        let before = self.kept();
        let ended = output(self.runtime().arg("add").arg(file));
        let said = stderr(&ended);
        assert_eq!(ended.status.code(), Some(3), "{said}");
        assert_eq!(said.lines().count(), 1, "one sentence: {said}");
        for word in words {
            assert!(said.contains(word), "`{word}` is missing in: {said}");
        }
        assert_eq!(self.kept(), before, "{said}");
    }

    fn list(&self) -> String {
        succeed(self.runtime().arg("list"))
    }

    /// The files in the folder of runtimes.
    fn kept(&self) -> BTreeSet<String> {
        files(&self.path("data/runtimes"))
    }

    /// The archive of ONNX Runtime as its maker makes it: a library for each interface and one for Java beside it.
    fn onnxruntime(&self) -> PathBuf {
        let file = self.path("onnxruntime-android-1.24.3.aar");
        let (arm, intel) = (android(AARCH64), android(X86_64));
        archive(
            &file,
            &[
                ("AndroidManifest.xml", b"<manifest/>"),
                ("classes.jar", b"PK"),
                ("jni/arm64-v8a/libonnxruntime.so", &arm),
                (
                    "jni/arm64-v8a/libonnxruntime4j_jni.so",
                    &library(AARCH64, &["libonnxruntime.so", "libc.so"], ""),
                ),
                ("jni/x86_64/libonnxruntime.so", &intel),
                ("LICENSE", b"text"),
            ],
        );
        file
    }
}

/// A library for Android that needs nothing but the system's.
fn android(machine: u16) -> Vec<u8> {
    library(machine, &["libm.so", "libc.so"], "")
}

/// The same of this release of Qualcomm's.
fn of_release(machine: u16, release: &str) -> Vec<u8> {
    let needed: &[&str] = if machine == HEXAGON {
        &[]
    } else {
        &["libc.so"]
    };
    library(machine, needed, release)
}

fn files(folder: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name().into_string().expect("plain text");
        if entry.path().is_dir() {
            found.extend(
                files(&entry.path())
                    .iter()
                    .map(|inner| format!("{name}/{inner}")),
            );
        } else {
            found.insert(name);
        }
    }
    found
}

/// A file of an archive, by its path and content.
type Entry<'a> = (&'a str, &'a [u8]);

#[test]
fn an_archive_is_added_once_listed_and_removed() {
    let user = User::new();
    let file = user.onnxruntime();
    let empty = user.list();
    assert!(
        empty.contains("no runtime was added") && empty.contains("docs/phones.md"),
        "{empty}"
    );
    let added = user.add(&file);
    assert!(
        added.starts_with(
            "onnxruntime-android 1.24.3 was added for arm64-v8a, x86_64 (Android): 2 libraries, "
        ),
        "{added}"
    );
    let kept = [
        "onnxruntime-android/arm64-v8a/android/libonnxruntime.so",
        "onnxruntime-android/runtime.json",
        "onnxruntime-android/x86_64/android/libonnxruntime.so",
    ];
    assert_eq!(user.kept(), kept.map(str::to_owned).into());
    let manifest = user.path("data/runtimes/onnxruntime-android/runtime.json");
    let changed = || {
        std::fs::metadata(&manifest)
            .and_then(|file| file.modified())
            .expect("it is there")
    };
    let before = changed();
    let again = user.add(&file);
    assert_eq!(
        again,
        "onnxruntime-android 1.24.3 was there already; nothing has changed\n"
    );
    assert_eq!(changed(), before);
    let listed = user.list();
    for word in [
        "onnxruntime-android",
        "1.24.3",
        "arm64-v8a, x86_64 (Android)",
        "LICENSE",
    ] {
        assert!(listed.contains(word), "{word}: {listed}");
    }
    let json = succeed(user.runtime().args(["list", "--json"]));
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json[0]["licences"][0], "LICENSE");
    let hash = layerlab_profiles::sha256(&android(AARCH64));
    assert_eq!(json[0]["libraries"][0]["sha256"], hash);
    let removed = succeed(user.runtime().args(["remove", "onnxruntime-android"]));
    assert!(
        removed.starts_with("onnxruntime-android 1.24.3 was removed"),
        "{removed}"
    );
    assert_eq!(user.kept(), BTreeSet::new());
    assert_eq!(user.list(), empty);
    let unknown = output(user.runtime().args(["remove", "onnxruntime-android"]));
    let said = stderr(&unknown);
    assert_eq!(unknown.status.code(), Some(3), "{said}");
    assert!(
        said.contains("there is no runtime `onnxruntime-android`"),
        "{said}"
    );
}

#[test]
fn a_runtime_of_which_a_file_was_lost_is_whole_once_it_is_added_again() {
    let user = User::new();
    let file = user.onnxruntime();
    user.add(&file);
    let kept = user.kept();
    let library = "data/runtimes/onnxruntime-android/x86_64/android/libonnxruntime.so";
    std::fs::remove_file(user.path(library)).expect("its own");
    assert!(user.add(&file).contains("was added"));
    assert_eq!(user.kept(), kept);
}

#[test]
fn an_archive_that_was_damaged_is_refused() {
    let user = User::new();
    let file = user.onnxruntime();
    let whole = std::fs::read(&file).expect("an archive");
    let library = android(X86_64);
    let place = whole
        .windows(library.len())
        .position(|window| window == library);
    let place = place.expect("it is in there as it is");
    let mut flipped = whole.clone();
    flipped[place + library.len() - 1] ^= 1;
    std::fs::write(&file, &flipped).expect("room");
    user.refuses(
        &file,
        &["damaged", "jni/x86_64/libonnxruntime.so", "get it anew"],
    );
    std::fs::write(&file, &whole[..whole.len() / 2]).expect("room");
    user.refuses(&file, &["damaged", "get it anew"]);
    let text = user.path("a.txt");
    std::fs::write(&text, "text").expect("room");
    user.refuses(&text, &["no Android archive (.aar)"]);
    user.refuses(&user.path("none.aar"), &["cannot read", "none.aar"]);
    std::fs::create_dir(user.path("empty")).expect("room");
    user.refuses(&user.path("empty"), &["holds no runtime", "docs/phones.md"]);
}

#[test]
fn an_archive_that_lost_a_file_is_refused() {
    let user = User::new();
    let file = user.path("lost-1.aar");
    let release = "v2.40.0.250101000000";
    let of = |machine| of_release(machine, release);
    let java = library(AARCH64, &["libonnxruntime.so", "libc.so"], "");
    let bundled = library(AARCH64, &["libc++_shared.so", "libc.so"], "");
    let (backend, skel) = (of(AARCH64), of(HEXAGON));
    let folder = "jni/arm64-v8a";
    let path = |name: &str| format!("{folder}/{name}");
    let cases: [(&[Entry<'_>], &[&str]); 6] = [
        (
            &[("libonnxruntime4j_jni.so", &java)],
            &["libonnxruntime4j_jni.so needs libonnxruntime.so"],
        ),
        (
            &[("libonnxruntime.so", &bundled)],
            &["libonnxruntime.so needs libc++_shared.so"],
        ),
        (
            &[("libQnnHtp.so", &backend)],
            &["libQnnHtp.so needs libQnnSystem.so"],
        ),
        (
            &[("libQnnHtp.so", &backend), ("libQnnSystem.so", &backend)],
            &["libQnnHtp.so needs a libQnnHtpV…Stub.so"],
        ),
        (
            &[("libQnnHtpV75Stub.so", &backend)],
            &["libQnnHtpV75Stub.so needs libQnnHtpV75Skel.so"],
        ),
        (
            &[("libQnnHtpV75Skel.so", &skel)],
            &["libQnnHtpV75Skel.so needs libQnnHtpV75Stub.so"],
        ),
    ];
    for (entries, words) in cases {
        let paths: Vec<String> = entries.iter().map(|(name, _)| path(name)).collect();
        let entries: Vec<(&str, &[u8])> = paths
            .iter()
            .zip(entries)
            .map(|(path, (_, content))| (path.as_str(), *content))
            .collect();
        archive(&file, &entries);
        user.refuses(&file, words);
        user.refuses(&file, &["is not whole", "get it anew"]);
    }
}

#[test]
fn a_library_that_is_for_other_phones_than_its_folder_says_is_refused() {
    let user = User::new();
    let file = user.path("mixed-1.aar");
    archive(
        &file,
        &[("jni/arm64-v8a/libonnxruntime.so", &android(X86_64))],
    );
    user.refuses(
        &file,
        &["jni/arm64-v8a/libonnxruntime.so is a library for x86_64"],
    );
    archive(&file, &[("jni/arm64-v8a/libonnxruntime.so", b"text")]);
    user.refuses(&file, &["jni/arm64-v8a/libonnxruntime.so is no library"]);
    // Sparc.
    archive(&file, &[("jni/arm64-v8a/libonnxruntime.so", &android(2))]);
    user.refuses(&file, &["jni/arm64-v8a/libonnxruntime.so is no library"]);
    let nobodys = library(AARCH64, &["libm.so"], "");
    archive(&file, &[("jni/arm64-v8a/libonnxruntime.so", &nobodys)]);
    user.refuses(&file, &["neither for Android nor for a computer"]);
    archive(&file, &[("jni/../../libonnxruntime.so", &android(X86_64))]);
    user.refuses(&file, &["a path out of its own folder"]);
}

#[test]
fn of_qualcomms_libraries_those_that_phones_need_are_kept_and_all_are_of_one_release() {
    let user = User::new();
    let file = user.path("qnn-runtime-2.40.0.aar");
    let (one, other) = ("v2.40.0.250101000000", "v2.41.0.250201000000");
    let on_phone = of_release(AARCH64, one);
    let entries = |skel: &str| {
        let skel = of_release(HEXAGON, skel);
        archive(
            &file,
            &[
                ("jni/arm64-v8a/libQnnHtp.so", &on_phone),
                ("jni/arm64-v8a/libQnnSystem.so", &on_phone),
                ("jni/arm64-v8a/libQnnHtpPrepare.so", &on_phone),
                ("jni/arm64-v8a/libQnnCpu.so", &on_phone),
                ("jni/arm64-v8a/libQnnHtpV75Stub.so", &on_phone),
                ("jni/arm64-v8a/libQnnHtpV75Skel.so", &skel),
            ],
        );
    };
    entries(other);
    user.refuses(&file, &[one, other, "take all from one"]);
    entries(one);
    user.add(&file);
    let kept = [
        "qnn-runtime/arm64-v8a/android/libQnnHtp.so",
        "qnn-runtime/arm64-v8a/android/libQnnHtpPrepare.so",
        "qnn-runtime/arm64-v8a/android/libQnnHtpV75Stub.so",
        "qnn-runtime/arm64-v8a/android/libQnnSystem.so",
        "qnn-runtime/hexagon/accelerator/libQnnHtpV75Skel.so",
        "qnn-runtime/runtime.json",
    ];
    assert_eq!(user.kept(), kept.map(str::to_owned).into());
}

#[test]
fn what_is_at_odds_with_a_runtime_that_is_there_is_refused() {
    let user = User::new();
    user.add(&user.onnxruntime());
    let newer = user.path("onnxruntime-android-1.25.0.aar");
    archive(
        &newer,
        &[(
            "jni/arm64-v8a/libonnxruntime.so",
            &library(AARCH64, &["libc.so"], "newer"),
        )],
    );
    let remove = "layerlab runtime remove onnxruntime-android";
    user.refuses(
        &newer,
        &[
            "another onnxruntime-android is there already (1.24.3)",
            remove,
        ],
    );
    let other = user.path("other-1.aar");
    std::fs::rename(&newer, &other).expect("its own");
    user.refuses(
        &other,
        &[
            "onnxruntime-android has libonnxruntime.so for arm64-v8a already",
            remove,
        ],
    );
    // For a computer's system there is none yet.
    archive(
        &other,
        &[(
            "jni/x86_64/libonnxruntime.so",
            &library(X86_64, &["libc.so.6"], ""),
        )],
    );
    user.add(&other);
    let named = output(user.runtime().args(["add", "--name", "../x"]).arg(&other));
    assert!(
        stderr(&named).contains("`../x` is no name"),
        "{}",
        stderr(&named)
    );
}

#[test]
fn a_wheel_is_held_against_its_own_list_of_files() {
    let user = User::new();
    let file = user.path("onnxruntime-1.24.4-cp311-cp311-manylinux_2_28_x86_64.whl");
    let runtime = library(X86_64, &["libc.so.6", "libfoo-0123abcd.so.1"], "");
    let (foo, empty) = (
        library(X86_64, &["libc.so.6"], ""),
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    );
    let metadata = "Name: onnxruntime\nVersion: 1.24.4\nLicense: MIT License\n\nText\n";
    // The hash is that of nothing, in base64.
    let record = "onnxruntime/capi/libonnxruntime.so.1.24.4,sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,0\n";
    let runtime_path = "onnxruntime/capi/libonnxruntime.so.1.24.4";
    let entries = |record: &str, with_runtime: bool| {
        let mut entries: Vec<(&str, &[u8])> = vec![
            ("onnxruntime.libs/libfoo-0123abcd.so.1", &foo),
            ("onnxruntime-1.24.4.dist-info/METADATA", metadata.as_bytes()),
            ("onnxruntime-1.24.4.dist-info/RECORD", record.as_bytes()),
        ];
        if with_runtime {
            entries.push((runtime_path, &runtime));
        }
        archive(&file, &entries);
    };
    entries(record, true);
    assert_ne!(layerlab_profiles::sha256(&runtime), empty);
    user.refuses(&file, &["damaged", runtime_path, "list of files"]);
    entries(record, false);
    user.refuses(&file, &["damaged", "libonnxruntime.so.1.24.4 is missing"]);
    entries("", true);
    let added = user.add(&file);
    assert!(
        added.starts_with("onnxruntime 1.24.4 was added for x86_64 (computers): 2 libraries"),
        "{added}"
    );
    assert!(user.list().contains("MIT License"));
    assert!(
        user.kept()
            .contains("onnxruntime/x86_64/computer/libfoo-0123abcd.so.1")
    );
    // The same from a folder, which is called as the folder is.
    let folder = user.path("unpacked");
    std::fs::create_dir(&folder).expect("room");
    std::fs::write(folder.join("libonnxruntime.so.1.24.4"), &runtime).expect("room");
    user.refuses(
        &folder,
        &["needs libfoo-0123abcd.so.1", "a folder with both"],
    );
}

/// Answers one request after the other with this status and content, for as long as the test lasts.
fn serve(status: &'static str, content: Vec<u8>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut request = Vec::new();
            let mut part = [0; 4096];
            while !request.ends_with(b"\r\n\r\n") {
                let count = stream.read(&mut part).expect("a request");
                request.extend_from_slice(&part[..count]);
            }
            let head = format!(
                "HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n",
                content.len()
            );
            stream.write_all(head.as_bytes()).expect("a caller");
            stream.write_all(&content).expect("a caller");
        }
    });
    format!("http://user:secret@{address}/onnxruntime-android-1.24.3.aar")
}

#[test]
fn an_archive_is_fetched_and_taken_only_if_it_has_the_hash_that_was_named() {
    let user = User::new();
    let content = std::fs::read(user.onnxruntime()).expect("it was made");
    let (hash, other) = (sha256(&content), sha256(b"another"));
    let url = serve("200 OK", content);
    let add = |arguments: &[&str]| {
        let mut command = user.runtime();
        command.env("LAYERLAB_CACHE", user.path("cache"));
        output(command.arg("add").args(arguments))
    };
    let gone = serve("404 Not Found", Vec::new());
    for (arguments, code, words) in [
        (vec![url.as_str()], 2, "--sha256"),
        (
            vec![url.as_str(), "--sha256", &other],
            3,
            "it is damaged, or another file",
        ),
        (vec![gone.as_str(), "--sha256", &hash], 3, "404"),
    ] {
        let ended = add(&arguments);
        let said = stderr(&ended);
        assert_eq!(ended.status.code(), Some(code), "{said}");
        assert!(said.contains(words), "{said}");
        assert!(!said.contains("secret"), "{said}");
        assert_eq!(user.kept(), BTreeSet::new(), "{said}");
    }
    let ended = add(&[&url, "--sha256", &hash.to_uppercase()]);
    assert!(ended.status.success(), "{}", stderr(&ended));
    assert!(user.list().contains("1.24.3"), "{}", user.list());
    assert_eq!(
        files(&user.path("cache")),
        BTreeSet::new(),
        "nothing is left of the transfer"
    );
}
