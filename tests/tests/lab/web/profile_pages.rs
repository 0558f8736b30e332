//! Pages of one profile and of several: samples, how the run went and comparisons say what the profiles say.

use std::collections::BTreeSet;

use layerlab_profiles::compare::{Difference, compare};
use layerlab_profiles::document::{Profile, Sample};
use layerlab_tests::device;
use layerlab_tests::web::WebClient;
use layerlab_tests::web_lab::{on_the_web_with_devices, profile_of_run, put_one_with_accuracy};
use serde_json::Value;

use super::super::{job, wait_for_job};
use super::{models, on_the_web, started};

fn page(client: &WebClient, path: &str) -> String {
    let answered = client.get(path);
    assert_eq!(answered.status, 200, "{path}: {answered:?}");
    assert!(answered.body.contains("simulated"), "{path}: {answered:?}");
    answered.body
}

#[track_caller]
fn is_refused(client: &WebClient, path: &str, status: u16, said: &str) {
    let answered = client.get(path);
    assert_eq!(answered.status, status, "{path}: {answered:?}");
    assert!(answered.body.contains(said), "{path}: {answered:?}");
}

/// What the charts of a page draw, by their titles.
fn chart(page: &str, title: &str) -> Value {
    let charts = page.split("data-chart=\"").skip(1);
    let mut of_title = charts.filter(|rest| rest.contains(&format!("<figcaption>{title}<")));
    let rest = of_title.next().unwrap_or_else(|| panic!("{title}: {page}"));
    let json = rest.split('"').next().unwrap_or_default();
    let json = json
        .replace("&quot;", "\"")
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&");
    serde_json::from_str(&json).expect("JSON")
}

/// The numbers of one of its series.
fn values(chart: &Value, name: &str) -> Vec<f64> {
    let mut series = chart["series"].as_array().expect("series").iter();
    let series = series.find(|series| series["name"] == name);
    let values = series.map(|series| series["values"].as_array().expect("values"));
    values
        .into_iter()
        .flatten()
        .filter_map(Value::as_f64)
        .collect()
}

#[test]
fn samples_and_blocks_are_shown_with_those_that_do_not_count() {
    let heats = device("heats");
    let lab = on_the_web_with_devices(&[heats.to_str().expect("UTF-8"), "oneplus7"]);
    let (_daemon, nobody) = started(&lab);
    let viewer = nobody.with_role(&lab, "viewer");
    let each =
        "[[devices]]\nabi = \"x86_64\"\neach = true\n[measure]\ndesign = \"local\"\ngap-us = 0\n";
    lab.submit(&job("yolo-small", each));
    wait_for_job(&lab);
    let profiles = [1, 2].map(|run| {
        (
            run,
            Profile::read(&profile_of_run(&lab, run)).expect("a profile"),
        )
    });
    let hot = profiles
        .iter()
        .find(|(_, profile)| !profile.rejected.is_empty());
    let (run, profile) = hot.expect("the one that heats");

    let Sample {
        processor, segment, ..
    } = &profile.rejected[0];
    let is_meant = |sample: &&Sample| sample.processor == *processor && sample.segment == *segment;
    let row = profile
        .segments
        .iter()
        .find(|row| row.processor == *processor && row.segment == *segment);
    let summary = row.expect("it has samples that count").summary;
    let samples = format!("/profiles/{run}/samples");
    let shown = page(
        &viewer,
        &format!(
            "{samples}?processor={processor}&segment={}-{}",
            segment.first(),
            segment.last()
        ),
    );
    let visits = profile
        .samples
        .iter()
        .filter(is_meant)
        .map(|sample| (sample.order, sample.block));
    let visits: BTreeSet<(u32, u32)> = visits.collect();
    let (low, high) = summary.median_ci95.expect("an interval");
    let rejected = profile.rejected.iter().filter(is_meant).count();
    for words in [
        format!(
            "Median <strong>{}</strong>, 95 % interval {low} to {high}",
            summary.median
        ),
        format!("of {} samples in {} visits", summary.count, visits.len()),
        format!("with {rejected} more samples w"),
        "no: the device throttled".to_owned(),
    ] {
        assert!(shown.contains(&words), "{words}: {shown}");
    }
    let histogram = chart(&shown, "How long inferences took");
    assert_eq!(
        values(&histogram, "samples").iter().sum::<f64>() as u64,
        summary.count
    );
    let in_order = chart(&shown, "One after another");
    assert_eq!(values(&in_order, "rejected").len(), rejected);
    let turns = ["visits 1, 3, …", "visits 2, 4, …"].map(|name| values(&in_order, name).len());
    assert_eq!(turns.iter().sum::<usize>() as u64, summary.count);
    // Without a choice the first segment is shown.
    assert!(page(&viewer, &samples).contains("Layer 1, "));
    is_refused(
        &viewer,
        &format!("{samples}?processor=gpu"),
        404,
        "no samples of `gpu`; choose one of cpu, npu",
    );
    is_refused(
        &viewer,
        &format!("{samples}?processor=npu&segment=2-29"),
        404,
        "were not timed",
    );
    is_refused(
        &viewer,
        &format!("{samples}?segment=3-1"),
        422,
        "`3-1` is no segment",
    );
    is_refused(
        &viewer,
        "/profiles/9/samples",
        404,
        "run 9 has published no profile",
    );

    let conditions = format!("/profiles/{run}/conditions");
    let shown = page(&viewer, &conditions);
    let bad = profile
        .blocks
        .iter()
        .filter(|block| block.rejection.is_some())
        .count();
    for words in [
        &format!(
            "<strong>{bad} of {}</strong> blocks do not count",
            profile.blocks.len()
        ),
        "as the device throttled",
        "The device does not tell its clocks.",
    ] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    for processor in &profile.header.processors {
        let blocks = profile
            .blocks
            .iter()
            .filter(|block| block.processor == processor.name);
        let (all, bad): (Vec<_>, Vec<_>) = (
            blocks.clone().collect(),
            blocks.filter(|block| block.rejection.is_some()).collect(),
        );
        let sentinel = chart(&shown, &format!("Sentinel on {}", processor.name));
        assert_eq!(values(&sentinel, "sentinel").len(), 2 * all.len());
        assert_eq!(
            values(&sentinel, "of a rejected block").len(),
            2 * bad.len()
        );
        let times = sentinel["at"]
            .as_array()
            .expect("times")
            .iter()
            .filter_map(Value::as_f64);
        assert!(times.is_sorted(), "{sentinel}");
    }
    let hottest = values(&chart(&shown, "Temperature"), "hottest sensor")
        .into_iter()
        .fold(0.0, f64::max);
    assert!(hottest > 45.0, "it throttles from there on: {hottest}");
    let only_bad = page(&viewer, &format!("{conditions}?rejected=true"));
    assert_eq!(only_bad.matches("data-head=\"Block\"").count(), bad.min(50));
    let profile_page = page(&viewer, &format!("/profiles/{run}"));
    for link in [samples, conditions] {
        assert!(
            profile_page.contains(&format!("href=\"{link}\"")),
            "{link}: {profile_page}"
        );
    }
}

#[test]
fn one_profile_is_compared_with_several_others() {
    let lab = on_the_web(&models());
    let (_daemon, nobody) = started(&lab);
    let viewer = nobody.with_role(&lab, "viewer");
    let each = "[[devices]]\nabi = \"x86_64\"\neach = true\n[measure]\ndesign = \"local\"\n";
    lab.submit(&job("alexnet", &format!("repeats = 2\n{each}")));
    wait_for_job(&lab);
    let profiles =
        [1, 2, 3, 4].map(|run| Profile::read(&profile_of_run(&lab, run)).expect("a profile"));
    let [one, others @ ..] = &profiles;
    let all_of = |other: &Profile| compare(one, other).expect("they are of one model");
    let shown = page(&viewer, "/compare?one=1&other=2&other=3&other=4");
    let mut different = BTreeSet::new();
    let mut all = BTreeSet::new();
    for (run, other) in (2..).zip(others) {
        let differences = all_of(other);
        let key = |one: &Difference| (one.processor.clone(), one.layer, one.quantity.name());
        let significant: Vec<_> = differences
            .iter()
            .filter(|one| one.is_significant())
            .collect();
        different.extend(significant.iter().map(|one| key(one)));
        all.extend(differences.iter().map(key));
        let words = format!(
            "{} of {} numbers differ significantly",
            significant.len(),
            differences.len()
        );
        let of_run = shown
            .split(&format!("<dt>Run {run}</dt>"))
            .nth(1)
            .and_then(|rest| rest.split("</dd>").next());
        assert!(
            of_run.is_some_and(|said| said.contains(&words)),
            "{words}: {shown}"
        );
    }
    assert!(!different.is_empty() && different.len() < all.len());
    assert!(shown.contains("each pair of profiles by itself"), "{shown}");
    // Of two runs on the same phone next to nothing differs, of another phone nearly everything: the rows are of all others.
    let rows = |page: &str| page.matches("data-head=\"What\"").count();
    assert_eq!(rows(&shown), different.len().min(50));
    let everything = page(&viewer, "/compare?one=1&other=2&other=3&other=4&all=true");
    assert_eq!(rows(&everything), all.len().min(50));
    for processor in &one.header.processors {
        let computing = chart(
            &shown,
            &format!("Computing on {}: each less the one", processor.name),
        );
        assert_eq!(computing["series"].as_array().map(Vec::len), Some(3));
    }
    let led = "/compare?one=3&amp;other=1&amp;other=2&amp;other=4";
    assert!(shown.contains(led), "{shown}");

    // Forms lead there, and what they cannot mean is said.
    assert_eq!(
        page(&viewer, "/profiles").matches("name=\"other\"").count(),
        4
    );
    assert_eq!(
        page(&viewer, "/profiles/1")
            .matches("name=\"other\"")
            .count(),
        3
    );
    for (query, said) in [
        ("", "choose two or more"),
        ("one=1", "choose another one as well"),
        ("one=1&other=2&other=2", "profile 2 is chosen twice"),
        (
            "one=1&other=2&other=3&other=4&other=5&other=6&other=7",
            "choose 5 at most",
        ),
        ("one=1&other=%3Cscript%3E", "`&lt;script&gt;` is no run"),
    ] {
        is_refused(&viewer, &format!("/compare?{query}"), 400, said);
    }
    is_refused(
        &viewer,
        "/compare?one=1&other=9",
        404,
        "run 9 has published no profile",
    );
    put_one_with_accuracy(&profile_of_run(&lab, 4), "oneplus7/vocnet-mini");
    is_refused(
        &viewer,
        "/compare?one=1&other=2&other=4",
        422,
        "the profile of run 4 cannot be compared: the profiles are of different models",
    );
}
