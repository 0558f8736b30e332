//! Charts and comparisons show the numbers of the profiles.

use layerlab_lab::text_table::estimate;
use layerlab_profiles::compare::compare;
use layerlab_profiles::document::Profile;
use layerlab_tests::browser::Browser;
use layerlab_tests::web::WebClient;
use layerlab_tests::web_lab::{models, on_the_web, profile_of_run};

/// The arrow that leads to the next layer.
const NEXT: &str = "document.querySelector('.chart').dispatchEvent(\
    new KeyboardEvent('keydown', { key: 'ArrowRight', bubbles: true, cancelable: true }))";

#[test]
fn charts_and_comparisons_say_what_the_profiles_say() {
    let Some(browser) = Browser::open() else {
        return;
    };
    let lab = on_the_web(&models());
    let _daemon = lab.daemon();
    lab.wait_until_open();
    lab.wait_for_devices(2);
    let model = models().join("alexnet.onnx");
    lab.submit(&format!(
        "models = [{model:?}]\n[[devices]]\nserial = \"mate10pro\"\n[[devices]]\nserial = \"oneplus7\"\n\
         [measure]\ndesign = \"local\"\n"
    ));
    lab.succeed(&["job", "wait", "1", "--timeout", "5m"]);
    let address = WebClient::of(&lab).address;
    let token = lab.succeed(&["token", "create", "me", "--role", "viewer"]);
    browser.logs_in(&address, &token);

    let [one, other] =
        [1, 2].map(|run| Profile::read(&profile_of_run(&lab, run)).expect("a profile"));
    browser.goes_to(&format!("http://{address}/profiles/1"));
    // Computing, moving and cuts.
    browser.waits_for(
        "three charts",
        "document.querySelectorAll('.chart canvas').length == 3",
    );
    for layer in [1, 2, 3] {
        browser.does(NEXT);
        for (place, processor) in one.header.processors.iter().enumerate() {
            let mut rows = one.times.iter();
            let row = rows.find(|row| row.layer == layer && row.processor == processor.name);
            let time = estimate(&row.expect("a time").time.compute);
            // A series is three lines; the first is that of the layers.
            let css = format!(".u-legend .u-series:nth-child({}) .u-value", 2 + 3 * place);
            browser.waits_for(
                "the time of a layer",
                &format!("document.querySelector('{css}').textContent == '{time}'"),
            );
        }
    }

    browser.clicks_words("Compare");
    browser.waits_for("a comparison", "location.pathname == '/compare'");
    assert_eq!(browser.reads("location.search"), "?one=1&other=2");
    let differences = compare(&one, &other).expect("they are of one model");
    let significant: Vec<_> = differences
        .iter()
        .filter(|one| one.is_significant())
        .collect();
    let page = browser.text("main");
    let count = format!(
        "{} of {} numbers differ significantly",
        significant.len(),
        differences.len()
    );
    assert!(page.contains(&count), "{count}: {page}");
    let shown = "Array.from(document.querySelectorAll('td[data-head=Difference]'), (it) => it.textContent).join('; ')";
    let expected: Vec<String> = significant
        .iter()
        .map(|one| estimate(&one.difference))
        .collect();
    assert!(!expected.is_empty());
    assert_eq!(browser.reads(shown), expected.join("; "));
    shows_samples_and_blocks(&browser, &address, &one);
    chooses_profiles_to_compare(&browser, &address);
    browser.goes_to(&format!("http://{address}/compare?one=1&other=9"));
    let refused = browser.text("main");
    assert!(
        refused.contains("run 9 has published no profile"),
        "{refused}"
    );
}

/// The samples of the first segment, and how the run went, drawn and in words.
fn shows_samples_and_blocks(browser: &Browser, address: &str, profile: &Profile) {
    browser.goes_to(&format!("http://{address}/profiles/1"));
    browser.clicks_words("Samples");
    browser.waits_for("its samples", "location.pathname == '/profiles/1/samples'");
    browser.waits_for(
        "a histogram, and the samples in order",
        "document.querySelectorAll('.chart canvas').length == 2",
    );
    let first = &profile.segments[0];
    let page = browser.text("main");
    let median = format!("Median {}", first.summary.median);
    assert!(page.contains(&median), "{median}: {page}");
    browser.does(NEXT);
    let bin = "document.querySelector('.u-legend .u-series:nth-child(2) .u-value').textContent";
    browser.waits_for(
        "how many samples are in the first bin",
        &format!("Number({bin}) > 0"),
    );

    // The whole model on the other processor.
    let processor = &profile.header.processors[1].name;
    let of_processor = profile
        .segments
        .iter()
        .filter(|row| row.processor == *processor);
    let whole = of_processor
        .max_by_key(|row| row.segment.layers())
        .expect("segments");
    let named = format!("{}-{}", whole.segment.first(), whole.segment.last());
    let chosen = |name: &str| format!("new URLSearchParams(location.search).get('{name}')");
    browser.clicks("nav.choice a:last-child");
    browser.waits_for(
        "its samples",
        &format!("{} == '{processor}'", chosen("processor")),
    );
    browser.clicks(&format!("option[value='{named}']"));
    browser.clicks("form.filter button");
    browser.waits_for(
        "those of the whole model",
        &format!("{} == '{named}'", chosen("segment")),
    );
    let page = browser.text("main");
    let median = format!("Median {}", whole.summary.median);
    assert!(page.contains(&median), "{median}: {page}");

    browser.goes_to(&format!("http://{address}/profiles/1"));
    browser.clicks_words("How the run went");
    browser.waits_for(
        "its blocks",
        "location.pathname == '/profiles/1/conditions'",
    );
    // Each processor's sentinel, and the temperature: simulated phones tell no clocks.
    let charts = profile.header.processors.len() + 1;
    browser.waits_for(
        "its charts",
        &format!("document.querySelectorAll('.chart canvas').length == {charts}"),
    );
    browser.does(NEXT);
    let sentinel =
        "document.querySelector('.u-legend .u-series:nth-child(2) .u-value').textContent";
    assert_eq!(
        browser.reads(sentinel),
        profile.blocks[0].before.sentinel.to_string()
    );
    let rows = "document.querySelectorAll('div.table tbody tr').length";
    assert_eq!(browser.evaluates(rows), profile.blocks.len().min(50));
}

/// Ticks two profiles of the list.
fn chooses_profiles_to_compare(browser: &Browser, address: &str) {
    browser.goes_to(&format!("http://{address}/profiles"));
    for run in [2, 1] {
        browser.clicks(&format!("input[name=other][value='{run}']"));
    }
    browser.clicks_words("Compare those ticked");
    browser.waits_for("a comparison", "location.pathname == '/compare'");
    assert!(
        browser
            .text("main")
            .contains("numbers differ significantly")
    );
}
