//! What is timed runs in a process of its own for each visit, and gives the same answers there.

// A test that fails to unwrap has failed.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use layerlab_agent::ModelWithTwin;
use layerlab_agent::device::Host;
use layerlab_agent::runtime::{
    OnnxRuntimeOptions, Runtimes, RuntimesSetup, Session, registry, timing_input,
};
use layerlab_model::Network;
use layerlab_profiles::{Nanos, Segment};

/// The runtimes of this machine, whose child processes end with it. A scratch folder of its own tells its children from those of
/// other tests.
struct Lab {
    runtimes: Runtimes,
    model: ModelWithTwin,
    scratch: tempfile::TempDir,
}

impl Lab {
    fn open(model: &str) -> Lab {
        let scratch = tempfile::tempdir().unwrap();
        let setup = RuntimesSetup {
            onnxruntime: OnnxRuntimeOptions::default(),
            program: PathBuf::from(env!("CARGO_BIN_EXE_layerlab-agent")),
            scratch: scratch.path().to_owned(),
            compiled: None,
        };
        let path = format!(
            "{}/../tests/models/{model}.onnx",
            env!("CARGO_MANIFEST_DIR")
        );
        let network = Network::open(path.as_ref(), &BTreeMap::new()).unwrap();
        Lab {
            runtimes: registry::runtimes(Host::new().cores(), &setup).unwrap(),
            model: ModelWithTwin::alone(Arc::new(network)),
            scratch,
        }
    }

    fn load_timed(&mut self, segment: Segment) -> Box<dyn Session> {
        let timed = self.runtimes.load_timed("cpu:all", &self.model, segment);
        timed.unwrap()
    }

    fn children(&self) -> BTreeSet<u32> {
        children_in(self.scratch.path())
    }
}

/// The processes that work in this folder.
fn children_in(folder: &Path) -> BTreeSet<u32> {
    let folder = folder.canonicalize().unwrap();
    let processes = std::fs::read_dir("/proc").unwrap();
    let number = |name: std::ffi::OsString| name.to_str()?.parse().ok();
    processes
        .filter_map(|entry| number(entry.ok()?.file_name()))
        .filter(|process: &u32| {
            let works_in = std::fs::read_link(format!("/proc/{process}/cwd"));
            works_in.is_ok_and(|place| place == folder)
        })
        .collect()
}

#[test]
fn each_visit_has_a_process_of_its_own() {
    let mut lab = Lab::open("vocnet-mini");
    assert_eq!(lab.children(), BTreeSet::new());
    let mut seen: BTreeSet<u32> = BTreeSet::new();
    for _ in 0..3 {
        lab.runtimes.begin_visit();
        let sessions = [1, 2].map(|layer| lab.load_timed(Segment::single(layer)));
        let here = lab.children();
        assert_eq!(here.len(), 1, "all of a visit are in one");
        assert!(seen.is_disjoint(&here), "{here:?} was there before");
        seen.extend(here);
        drop(sessions);
    }
    drop(lab.runtimes);
    assert_eq!(children_in(lab.scratch.path()), BTreeSet::new());
}

#[test]
fn what_is_timed_answers_as_what_is_not() {
    let mut lab = Lab::open("inception");
    let layers = lab.model.model().layer_count();
    for segment in [
        Segment::whole(layers),
        Segment::single(3),
        Segment::new(2, layers / 2).unwrap(),
    ] {
        let inputs = timing_input(&lab.model.model().takes(segment), 7);
        let mut here = lab.runtimes.load("cpu:all", &lab.model, segment).unwrap();
        let expected = here.outputs(&inputs).unwrap();
        let mut timed = lab.load_timed(segment);
        let inference = timed.run(&inputs).unwrap();
        assert_eq!(inference.outputs, expected, "{segment}");
        assert!(inference.duration > Nanos::ZERO && timed.load_time() > Nanos::ZERO);
        assert_eq!((timed.placed(), timed.compiled()), (None, None));
    }
}

#[test]
fn a_process_that_is_killed_costs_one_retry() {
    let mut lab = Lab::open("vocnet-mini");
    let segment = Segment::single(1);
    let inputs = timing_input(lab.model.model().inputs(), 7);
    let mut timed = lab.load_timed(segment);
    let before = timed.run(&inputs).unwrap().outputs;
    for child in lab.children() {
        let killed = Command::new("kill")
            .arg("-9")
            .arg(child.to_string())
            .status();
        assert!(killed.unwrap().success());
    }
    assert_eq!(timed.run(&inputs).unwrap().outputs, before);
    assert_eq!(lab.children().len(), 1);
}

#[test]
fn inputs_that_do_not_fit_are_an_error_of_one_line() {
    let mut lab = Lab::open("vgg16");
    let error = lab.load_timed(Segment::single(2)).run(&[]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot run layers 2..=2 on cpu:all: number of inputs: 0 given, 1 wanted"
    );
}
