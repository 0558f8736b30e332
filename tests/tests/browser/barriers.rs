//! Nothing on a page keeps people from using it, as far as a program can tell: axe-core finds nothing serious, in either theme.

use layerlab_tests::browser::Browser;
use layerlab_tests::file;
use layerlab_tests::web_lab::LivelyLab;
use serde_json::Value;

/// Runs what was loaded, and gives what is wrong.
const RUN: &str = "const done = arguments[0]; axe.run().then((found) => done(found.violations), (error) => done(String(error)));";

/// What axe-core says of the page, a sentence for each thing that is seriously wrong.
fn barriers(browser: &Browser, axe: &str) -> Vec<String> {
    browser.does(axe);
    let found = browser.runs(RUN, vec![]);
    let found = found.as_array().unwrap_or_else(|| panic!("{found}"));
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let serious = found.iter().filter(|one| {
        ["serious", "critical"].contains(&one["impact"].as_str().unwrap_or("critical"))
    });
    let told = serious.map(|one| {
        let nodes = one["nodes"].as_array().into_iter().flatten();
        let nodes: Vec<String> = nodes
            .map(|node| text(&node["failureSummary"]) + " " + &text(&node["html"]))
            .collect();
        format!(
            "{}: {}: {}",
            text(&one["id"]),
            text(&one["help"]),
            nodes.join("; ")
        )
    });
    told.collect()
}

#[test]
#[ignore = "takes two minutes: make slow-test"]
fn no_page_has_a_serious_barrier() {
    let Some(browser) = Browser::open() else {
        return;
    };
    let axe = std::fs::read_to_string(file("vendor/axe-core/axe.min.js"))
        .expect("it is part of the repository");
    // What is known to be wrong is found, in this browser, under this lab's policy.
    let lab = LivelyLab::start();
    browser.goes_to(&format!("http://{}/login", lab.address));
    browser.does("document.querySelector('label').remove()");
    let found = barriers(&browser, &axe);
    assert!(
        found.iter().any(|one| one.starts_with("label:")),
        "{found:?}"
    );

    let mut all = Vec::new();
    lab.show(&browser, &[390, 1280], |shown| {
        let found = barriers(&browser, &axe).into_iter();
        all.extend(found.map(|barrier| format!("{shown}: {barrier}")));
    });
    assert!(all.is_empty(), "{}", all.join("\n"));
}
