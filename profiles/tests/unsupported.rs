//! A processor that cannot run some layers is measured, derived and checked on the others.

use crate::common;

use std::collections::BTreeMap;

use common::{NPU, good_profile, header, layers, measured, planted, samples};
use layerlab_profiles::check::check;
use layerlab_profiles::derive::Includes;
use layerlab_profiles::design::Design;
use layerlab_profiles::document::{BuildError, LayerTimeRow, Method, Profile, Unsupported};
use layerlab_profiles::{Bytes, Segment, SupportedLayers};

/// The good profile of an accelerator that cannot run `layer`, measured by `design` on the layers that it can run.
fn without(layer: u32, design: Design, method: Method) -> Profile {
    let supported = SupportedLayers::without(3, [Segment::single(layer)]);
    let mut header = header();
    header.measurements[1].design = Design::Grouped;
    let mut samples = samples(&header);
    let asked: Vec<Segment> = design.iter_on(&supported).collect();
    samples.retain(|sample| sample.processor != NPU || asked.contains(&sample.segment));
    let npu = &mut header.measurements[1];
    (npu.design, npu.method) = (design, method);
    npu.sentinel = supported.longest();
    let mut measured = measured(samples);
    measured.unsupported.push(Unsupported {
        processor: NPU.to_owned(),
        segment: Segment::single(layer),
        reason: "it lacks an operator".to_owned(),
        needed: None,
    });
    Profile::build(header, layers(), measured).expect("every segment that can run has samples")
}

fn times(profile: &Profile) -> Vec<&LayerTimeRow> {
    let rows = profile.times.iter();
    rows.filter(|row| row.processor == NPU).collect()
}

#[test]
fn a_layer_that_cannot_run_has_no_times_and_nothing_is_doubtful_about_the_others() {
    for (design, method) in [
        (Design::PrefixSuffix, Method::Differencing),
        (Design::Grouped, Method::Differencing),
        (Design::Local, Method::Graph),
        (Design::Grouped, Method::Graph),
    ] {
        for layer in 1..=3 {
            let profile = without(layer, design, method);
            let numbers: Vec<u32> = times(&profile).iter().map(|row| row.layer).collect();
            let others: Vec<u32> = (1..=3).filter(|&other| other != layer).collect();
            assert_eq!(numbers, others);
            assert_eq!(check(&profile), [], "{design} without {layer}");
            let cuts: Vec<u32> = profile.cuts.iter().map(|row| row.after_layer).collect();
            let between: &[u32] = match (method, layer) {
                (Method::Graph, 1) => &[2],
                (Method::Graph, 3) => &[1],
                _ => &[],
            };
            assert_eq!(cuts, between, "{design} without {layer}");
        }
    }
}

/// The stretch begins after a layer that runs elsewhere: entering it costs what entering a model does.
#[test]
fn the_times_of_a_stretch_are_those_of_a_model_of_its_own() {
    let profile = without(1, Design::PrefixSuffix, Method::Differencing);
    let [second, third] = times(&profile)[..] else {
        panic!("two layers have times");
    };
    let segment = |first, last| planted(NPU, Segment::new(first, last).expect("ascending")) as i64;
    let cut = (segment(2, 2) + segment(3, 3) - segment(2, 3)) / 2;
    assert_eq!(second.time.compute.value.as_nanos(), segment(2, 2) - cut);
    assert_eq!(third.time.compute.value.as_nanos(), segment(3, 3) - cut);
    let merged = |to_processor, from_processor| Includes {
        to_processor,
        from_processor,
    };
    assert_eq!(second.time.compute_includes, merged(true, false));
    assert_eq!(third.time.compute_includes, merged(false, true));
}

#[test]
fn a_profile_says_why_a_layer_cannot_run() {
    let profile = without(2, Design::Local, Method::Graph);
    assert_eq!(
        profile.why_unsupported(NPU, 2),
        Some("it lacks an operator")
    );
    assert_eq!(profile.why_unsupported(NPU, 1), None);
    assert!(
        profile.fit(NPU).is_none(),
        "each stretch has one of its own"
    );
}

#[test]
fn what_is_missing_is_named_by_its_layers_in_the_model() {
    let mut profile = without(1, Design::PrefixSuffix, Method::Differencing);
    profile
        .samples
        .retain(|sample| sample.processor != NPU || sample.segment != Segment::single(3));
    let error = common::try_rebuilt(profile).expect_err("a segment is missing");
    assert!(error.to_string().contains("layers 3..=3"), "{error}");
}

#[test]
fn samples_of_what_cannot_run_make_no_profile() {
    let mut profile = good_profile();
    profile.unsupported.push(Unsupported {
        processor: NPU.to_owned(),
        segment: Segment::single(3),
        reason: "it lacks an operator".to_owned(),
        needed: None,
    });
    let error = common::try_rebuilt(profile).expect_err("layer 3 was measured");
    assert!(
        matches!(error, BuildError::RanUnsupported { .. }),
        "{error}"
    );
}

/// The good profile of an accelerator whose memory does not hold layers 1 to `last` together.
fn in_small_memory(last: u32) -> Profile {
    let mut header = header();
    let too_large = Segment::new(1, last).expect("ascending");
    let supported = SupportedLayers::in_memory(3, [], [too_large]);
    header.measurements[1].design = Design::Grouped;
    let mut samples = samples(&header);
    let asked: Vec<Segment> = Design::Local.iter_on(&supported).collect();
    samples.retain(|sample| sample.processor != NPU || asked.contains(&sample.segment));
    // What does not fit was never asked for, so that no index is left out.
    let mut next: BTreeMap<u32, u64> = BTreeMap::new();
    for sample in samples.iter_mut().filter(|one| one.processor == NPU) {
        let index = next.entry(sample.order).or_default();
        sample.index = *index;
        *index += 1;
    }
    header.processors[1].memory_bytes = Some(Bytes::from_bytes(100));
    let npu = &mut header.measurements[1];
    (npu.design, npu.method) = (Design::Local, Method::Graph);
    npu.sentinel = supported.largest();
    let mut measured = measured(samples);
    measured.loads.retain(|load| load.processor != NPU);
    measured.unsupported.push(Unsupported {
        processor: NPU.to_owned(),
        segment: too_large,
        reason: "101 B of memory are needed, and there are 100 B".to_owned(),
        needed: Some(Bytes::from_bytes(101)),
    });
    Profile::build(header, layers(), measured).expect("every segment that fits has samples")
}

#[test]
fn layers_that_do_not_fit_together_have_times_all_the_same() {
    for last in [2, 3] {
        let profile = in_small_memory(last);
        assert_eq!(check(&profile), [], "layers 1 to {last} do not fit");
        let numbers: Vec<u32> = times(&profile).iter().map(|row| row.layer).collect();
        assert_eq!(numbers, [1, 2, 3]);
        let cuts: Vec<u32> = profile.cuts.iter().map(|row| row.after_layer).collect();
        let expected: &[u32] = if last == 2 { &[2] } else { &[1, 2] };
        assert_eq!(
            cuts, expected,
            "no time tells what the cut costs in a pair that does not fit"
        );
        let on_npu = profile.whole_model_times()[1];
        assert_eq!(on_npu, None, "the whole cannot run there");
        assert_eq!(profile.fit(NPU).is_some(), last == 3);
    }
}

#[test]
fn what_is_said_not_to_fit_needs_more_than_there_is_and_was_not_measured() {
    let mut profile = in_small_memory(3);
    profile.header.processors[1].memory_bytes = Some(Bytes::from_bytes(101));
    let findings = check(&profile);
    let says = |text: &str| findings.iter().any(|one| one.to_string().contains(text));
    assert!(
        says("need 101 B, which its memory of 101 B holds"),
        "{findings:?}"
    );
    let mut profile = good_profile();
    profile.unsupported.push(Unsupported {
        processor: NPU.to_owned(),
        segment: Segment::new(1, 2).expect("ascending"),
        reason: "101 B of memory are needed, and there are 100 B".to_owned(),
        needed: Some(Bytes::from_bytes(101)),
    });
    let findings = check(&profile);
    let says = |text: &str| findings.iter().any(|one| one.to_string().contains(text));
    assert!(says("layers 1..=2 have samples on `npu`"), "{findings:?}");
}

#[test]
fn only_profiles_of_too_small_a_memory_say_what_is_needed() {
    for (profile, says_needs) in [
        (in_small_memory(3), true),
        (without(2, Design::Local, Method::Graph), false),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        profile.write(folder.path()).expect("an empty folder");
        let table =
            std::fs::read_to_string(folder.path().join("unsupported.csv")).expect("a table");
        assert_eq!(table.contains("needed_bytes"), says_needs, "{table}");
        assert_eq!(Profile::read(folder.path()).expect("a profile"), profile);
    }
}
