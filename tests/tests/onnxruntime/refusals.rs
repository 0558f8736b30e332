//! What cannot be used is refused before anything is measured, in one sentence with the remedy.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use layerlab_agent::runtime::OnnxRuntimeOptions;
use layerlab_tests::succeed;

use super::{Lab, SOC, cpu_alone, folders, with_hexagon};

#[track_caller]
fn refused(options: OnnxRuntimeOptions, words: &[&str]) {
    let error = Lab::try_open(options).err().expect("it cannot be used");
    let sentence = error.to_string();
    assert!(!sentence.contains('\n'), "{sentence}");
    for word in words {
        assert!(
            sentence.contains(word),
            "`{sentence}` does not say `{word}`"
        );
    }
}

/// A folder with links to all that is in `folder` but for `without`.
fn copy_without(folder: &Path, without: &[&str]) -> tempfile::TempDir {
    let copy = tempfile::tempdir().expect("a folder");
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let name = entry.file_name();
        if !without.iter().any(|without| name == *without) {
            symlink(entry.path(), copy.path().join(name)).expect("a link");
        }
    }
    copy
}

#[test]
fn a_library_that_is_missing_or_is_none_is_refused() {
    let empty = tempfile::tempdir().expect("a folder");
    let options = cpu_alone(empty.path());
    refused(
        options.clone(),
        &[
            "there is no libonnxruntime.so in `",
            "pip install onnxruntime==1.24.4",
        ],
    );
    let library = empty.path().join("libonnxruntime.so");
    fs::write(&library, "a text").expect("a file");
    refused(
        options.clone(),
        &["is no library, and this machine needs a library for"],
    );
    // The header of a library for another machine: that of this program, with another number.
    let this = std::env::current_exe().expect("this program");
    let mut program = fs::read(this).expect("this program's file");
    let (other, name) = match cfg!(target_arch = "x86_64") {
        true => (0xb7, "aarch64"),
        false => (0x3e, "x86_64"),
    };
    program[18] = other;
    fs::write(&library, &program).expect("a file");
    refused(
        options,
        &[&format!("is a library for {name}, and this machine needs")],
    );
}

#[test]
fn another_library_is_not_taken_for_onnx_runtime() {
    let Some((onnxruntime, qnn)) = folders() else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let library = folder.path().join("libonnxruntime.so");
    fs::copy(
        onnxruntime.join("libonnxruntime_providers_shared.so"),
        library,
    )
    .expect("a copy");
    refused(
        cpu_alone(folder.path()),
        &["is not the library of ONNX Runtime"],
    );
    drop(qnn);
}

/// A library that C code makes, in the file `library`.
fn compiled(library: &Path, code: &str) {
    let source = library.with_extension("c");
    fs::write(&source, code).expect("a file");
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-Wl,-soname"]);
    compiler.arg(format!(
        "-Wl,{}",
        library.file_name().expect("a name").display()
    ));
    succeed(compiler.arg("-o").arg(library).arg(&source));
}

#[test]
fn an_onnx_runtime_that_is_too_old_or_too_new_is_refused() {
    for (version, words) in [
        ("1.20.1", "1.24 or a later one is needed: install 1.24.4"),
        // Newer ones have the older interfaces, too, as long as their makers like.
        (
            "1.99.0",
            "does not have version 24 of its interface any more: install 1.24.4",
        ),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let code = r#"
            struct base { const void *(*interface)(unsigned); const char *(*version)(void); };
            static const void *interface(unsigned version) { return (void *)0; }
            static const char *version(void) { return "VERSION"; }
            static const struct base base = { interface, version };
            const struct base *OrtGetApiBase(void) { return &base; }
        "#;
        let library = folder.path().join("libonnxruntime.so");
        compiled(&library, &code.replace("VERSION", version));
        let name = format!("is ONNX Runtime {version}");
        refused(
            cpu_alone(folder.path()),
            &["libonnxruntime.so", &name, words],
        );
    }
}

#[test]
fn a_library_without_the_provider_is_refused() {
    let Some((onnxruntime, qnn)) = folders() else {
        return;
    };
    let plugin = "libonnxruntime_providers_qnn.so";
    let folder = copy_without(&qnn, &[plugin]);
    compiled(&folder.path().join(plugin), "int nothing_of_a_provider;");
    let options = with_hexagon((onnxruntime, folder.path().to_owned()), SOC);
    refused(options, &[plugin, "onnxruntime-qnn==2.7.0"]);
}

#[test]
fn a_backend_of_another_qairt_is_refused() {
    let Some((onnxruntime, qnn)) = folders() else {
        return;
    };
    let backend = "libQnnHtp.so";
    let folder = copy_without(&qnn, &[backend]);
    // A backend whose interface has another main version, as Qualcomm numbers them.
    let code = r#"
        struct version { unsigned major, minor, patch; };
        struct interface { unsigned backend; const char *name; struct version core, own; void *functions[200]; };
        static const struct interface other = { 6, "HTP_QTI_AISW", { 1, 0, 0 }, { 1, 0, 0 }, { 0 } };
        static const struct interface *all[] = { &other };
        unsigned long QnnInterface_getProviders(const struct interface ***found, unsigned *count) {
            *found = all;
            *count = 1;
            return 0;
        }
    "#;
    compiled(&folder.path().join(backend), code);
    let options = with_hexagon((onnxruntime, folder.path().to_owned()), SOC);
    refused(options, &["qnn-htp-f16", backend, "onnxruntime-qnn==2.7.0"]);
}

#[test]
fn options_that_need_others_are_refused_without_them() {
    let alone = |set: fn(&mut OnnxRuntimeOptions)| {
        let mut options = OnnxRuntimeOptions::default();
        set(&mut options);
        options
    };
    refused(
        alone(|it| it.qnn = Some("/".into())),
        &["--qnn needs --onnxruntime"],
    );
    refused(
        alone(|it| it.emulate = Some(SOC.into())),
        &["--emulate needs --onnxruntime"],
    );
    let as_accelerator = alone(|it| it.as_accelerator = Some("cpu:ort-all".into()));
    refused(
        as_accelerator,
        &["not `cpu:ort-all`: choose one of cpu:all"],
    );
}

#[test]
fn what_is_to_be_emulated_must_be_known_and_there() {
    let Some((onnxruntime, qnn)) = folders() else {
        return;
    };
    let both = (onnxruntime.clone(), qnn.clone());
    refused(
        with_hexagon(both.clone(), "SM1"),
        &[
            "SoC `SM1`",
            "SM8350, SM8450, SM8550, SM8650, SM8750, SM8850",
        ],
    );
    let mut options = with_hexagon(both.clone(), SOC);
    options.emulate = None;
    refused(options, &["name the SoC to emulate with --emulate"]);
    let mut options = with_hexagon(both, SOC);
    options.qnn = None;
    refused(options, &["--emulate needs --qnn"]);
    for missing in ["libQnnHtp.so", "libonnxruntime_providers_qnn.so"] {
        let folder = copy_without(&qnn, &[missing]);
        let options = with_hexagon((onnxruntime.clone(), folder.path().to_owned()), SOC);
        refused(
            options,
            &[
                &format!("there is no {missing} in `"),
                "pip install onnxruntime-qnn==2.7.0",
            ],
        );
    }
    let mut options = cpu_alone(&onnxruntime);
    options.as_accelerator = Some("cpu".to_owned());
    refused(
        options,
        &["not `cpu`: choose one of cpu:all", "cpu:ort-all"],
    );
}

#[test]
fn a_backend_that_computes_elsewhere_is_refused_whatever_its_file_is_called() {
    let Some((onnxruntime, qnn)) = folders() else {
        return;
    };
    let by_itself = with_hexagon((onnxruntime.clone(), qnn.join("libQnnGpu.so")), SOC);
    refused(by_itself, &["computes on the GPU, not on the Hexagon"]);
    // QnnCpu is not among these libraries; Saver and Gpu are, and appear as the same provider, too.
    for (library, computes_on) in [("libQnnGpu.so", "the GPU"), ("libQnnSaver.so", "nothing")] {
        let folder = copy_without(&qnn, &["libQnnHtp.so"]);
        fs::copy(qnn.join(library), folder.path().join("libQnnHtp.so")).expect("a copy");
        let renamed = with_hexagon((onnxruntime.clone(), folder.path().to_owned()), SOC);
        refused(renamed, &[&format!("computes on {computes_on}")]);
    }
}
