//! A run's page shows samples as they come.

use layerlab_profiles::Segment;
use layerlab_profiles::document::{Profile, Sample};
use layerlab_tests::in_real_time;
use layerlab_tests::web::WebClient;
use layerlab_tests::web_lab::profile_of_run;

use super::super::{EACH, job, wait_for_job};
use super::{lab_with, opened};

/// What the page says of a block: the numbers of its order and of itself, and a row for each segment.
#[derive(Clone, Debug, PartialEq)]
struct Shown {
    order: u32,
    block: u32,
    rows: Vec<[String; 5]>,
}

/// What the page of the first run says of the block in progress, unless that is a probe's.
fn shown(viewer: &WebClient) -> Option<Shown> {
    let page = viewer.get("/runs/1").body;
    let (_, samples) = page.split_once("Samples as they come")?;
    let (numbers, rows) = samples.split_once("Whether a block counts")?;
    if numbers.contains("of a probe") {
        return None;
    }
    let mut numbers = numbers
        .split(|c: char| !c.is_ascii_digit())
        .filter(|it| !it.is_empty());
    // Behind the heading's tag.
    let mut number = || numbers.find_map(|digits| digits.parse().ok());
    let _heading: Option<u32> = number();
    let (block, order) = (number()?, number()?);
    let cells = rows.split("data-head=\"").skip(1).filter_map(|cell| {
        let (_, rest) = cell.split_once('>')?;
        Some(rest.split('<').next()?.to_owned())
    });
    let cells: Vec<String> = cells.collect();
    let rows = cells
        .chunks_exact(5)
        .map(|row| row.to_vec().try_into().expect("five cells"));
    Some(Shown {
        order,
        block,
        rows: rows.collect(),
    })
}

fn layers(segment: Segment) -> String {
    match (segment.first(), segment.last()) {
        (first, last) if first == last => format!("layer {first}"),
        (first, last) => format!("layers {first} to {last}"),
    }
}

#[test]
fn a_run_shows_its_samples_while_they_come() {
    let folder = tempfile::tempdir().expect("a folder");
    let slow = folder.path().join("slow.toml");
    std::fs::write(&slow, in_real_time("noisy")).expect("room");
    let lab = lab_with(&slow);
    let (_daemon, viewer) = opened(&lab);
    lab.submit(&job("alexnet", &(EACH.to_owned() + "samples = 60\n")));
    let mut first = None;
    lab.wait_for("samples", || {
        first = shown(&viewer);
        first.is_some()
    });
    let mut later = None;
    lab.wait_for("more samples", || {
        later = shown(&viewer);
        later.is_some() && later != first
    });
    wait_for_job(&lab);
    assert_eq!(shown(&viewer), None);
    let profile = Profile::read(&profile_of_run(&lab, 1)).expect("a profile");
    for Shown { order, block, rows } in [first, later].into_iter().flatten() {
        assert!(!rows.is_empty());
        for [segment, processor, count, last, _] in rows {
            let all = profile.samples.iter().chain(&profile.rejected);
            let is_shown = |one: &&Sample| {
                (one.order, one.block) == (order, block)
                    && (layers(one.segment), &one.processor) == (segment.clone(), &processor)
            };
            let samples: Vec<&Sample> = all.filter(is_shown).collect();
            let count: usize = count.parse().expect("a number");
            assert!(
                (1..=samples.len()).contains(&count),
                "{segment} on {processor}"
            );
            let durations: Vec<String> =
                samples.iter().map(|one| one.duration.to_string()).collect();
            assert!(durations.contains(&last), "{last} is none of {durations:?}");
        }
    }
}
