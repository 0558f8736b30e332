//! From logging in to a plan: one person's way through the lab.

use layerlab_tests::browser::Browser;
use layerlab_tests::lab::Lab;
use layerlab_tests::web::WebClient;
use layerlab_tests::web_lab::{
    models, on_the_web, predicted, profile_of_run, put_one_with_accuracy,
};
use serde_json::Value;

/// The states that the badges of a job's runs show.
const STATES: &str =
    "Array.from(document.querySelectorAll('td[data-head=State] .badge'), (it) => it.textContent)";

/// Notes every state that a page shows, for as long as it is not loaded again.
const NOTE_STATES: &str = "window.seen = new Set(); \
    const note = () => document.querySelectorAll('td[data-head=State] .badge').forEach((it) => seen.add(it.textContent)); \
    note(); \
    new MutationObserver(note).observe(document.getElementById('content'), { childList: true, subtree: true });";

#[test]
fn somebody_takes_a_device_submits_a_job_explores_its_profile_and_plans() {
    let Some(browser) = Browser::open() else {
        return;
    };
    let lab = on_the_web(&models());
    let _daemon = lab.daemon();
    lab.wait_until_open();
    lab.wait_for_devices(2);
    lab.succeed(&["quarantine", "add", "mate10pro", "--reason", "it sulks"]);
    let address = WebClient::of(&lab).address;
    let token = lab.succeed(&["token", "create", "me", "--role", "operator"]);

    browser.goes_to(&format!("http://{address}/"));
    assert_eq!(browser.path(), "/login");
    browser.fills_in("#token", "wrong");
    browser.clicks("form.login button");
    browser.waits_for("a refusal", "document.querySelector('[role=alert]')");
    browser.fills_in("#token", token.trim());
    browser.clicks("form.login button");
    browser.waits_for("the first page", "location.pathname == '/'");
    let wall = browser.text("main");
    assert!(wall.contains("it sulks"), "{wall}");

    takes_a_device_and_gives_it_back(&browser, &lab);
    submits_a_job_and_sees_it_run(&browser, &lab, &address);
    let folder = profile_of_run(&lab, 1);
    // What the run measured is real work of a simulated phone; only accuracy, which takes minutes, comes from elsewhere.
    put_one_with_accuracy(&folder, "oneplus7/vocnet-mini");
    browser.goes_to(&format!("http://{address}/jobs/1"));
    browser.clicks("a[href='/profiles/1']");
    browser.waits_for("the profile", "location.pathname == '/profiles/1'");
    let profile = browser.text("main");
    assert!(
        profile.contains("vocnet-mini") && profile.contains("simulated"),
        "{profile}"
    );
    browser.clicks_words("Explore placements");
    browser.waits_for("the explorer", "location.pathname == '/profiles/1/explore'");
    explores(&browser, &folder);
    plans(&browser, &lab, &folder);
}

fn takes_a_device_and_gives_it_back(browser: &Browser, lab: &Lab) {
    browser.clicks_words("oneplus7");
    browser.waits_for("its page", "location.pathname == '/devices/oneplus7'");
    browser.fills_in("#until", "sometime");
    browser.fills_in("#note", "a demo");
    browser.clicks_words("Reserve");
    browser.waits_for("a refusal", "document.querySelector('[role=alert]')");
    let alert = browser.text("[role=alert]");
    assert!(alert.contains("`sometime` is no point in time"), "{alert}");
    browser.fills_in("#until", "8h");
    browser.clicks_words("Reserve");
    browser.waits_for(
        "a reservation",
        "!document.querySelector('[role=alert]') && document.querySelector('h1 .reserved')",
    );
    assert!(lab.succeed(&["reserve", "--list"]).contains("a demo"));
    browser.clicks_words("Give it back");
    browser.waits_for(
        "a device that is free",
        "document.querySelector('h1 .free')",
    );
    assert!(lab.kept().reservations.is_empty());
}

fn submits_a_job_and_sees_it_run(browser: &Browser, lab: &Lab, address: &str) {
    browser.clicks("nav a[href='/jobs']");
    browser.clicks_words("New job");
    browser.waits_for("the form", "location.pathname == '/jobs/new'");
    browser.fills_in("#name", "by browser");
    browser.clicks("input[value='yolo-small.onnx']");
    for device in ["mate10pro", "oneplus7"] {
        browser.clicks(&format!("input[value='{device}']"));
    }
    browser.clicks_words("Submit");
    browser.waits_for("the job", "location.pathname == '/jobs/1'");
    browser.does(NOTE_STATES);
    // One of the two devices is left alone, and the job says that it waits for it.
    browser.waits_for(
        "a run that is published",
        &format!("{STATES}.includes('done') || {STATES}.includes('published')"),
    );
    let page = browser.text("main");
    assert!(page.contains("it sulks"), "{page}");
    browser.in_another_window(|| {
        browser.goes_to(&format!("http://{address}/devices/mate10pro"));
        browser.clicks_words("Use it again");
        browser.waits_for(
            "a device that is used again",
            "!document.querySelector('h1 .quarantined')",
        );
    });
    assert!(!lab.succeed(&["quarantine", "list"]).contains("sulks"));
    browser.waits_for(
        "two profiles",
        "window.seen && document.querySelectorAll('td a[href^=\"/profiles/\"]').length == 2",
    );
    // Live, on the page that was never loaded again.
    let seen = browser.evaluates("Array.from(seen).sort()");
    let seen: Vec<&str> = seen
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    assert!(seen.contains(&"running"), "{seen:?}");
    assert!(lab.is_over());
}

fn explores(browser: &Browser, folder: &std::path::Path) {
    let total = |placement: &str| predicted(folder, placement).total().to_string();
    let shows = |placement: &str| {
        browser.waits_for(
            "the time of a placement",
            &format!(
                "document.querySelector('#result .total')?.textContent == '{}'",
                total(placement)
            ),
        );
    };
    shows("00000000000");
    let mut placement = "00000000000".to_owned();
    for layer in [1, 2, 6] {
        browser.clicks(&format!("input[name=layer{layer}][value='1']"));
        placement.replace_range(layer - 1..layer, "1");
        shows(&placement);
    }
    assert_eq!(placement, "11000100000");
    assert_eq!(
        browser.reads("location.search"),
        format!("?placement={placement}")
    );
    assert_ne!(total(&placement), total("00000000000"));
}

fn plans(browser: &Browser, lab: &Lab, folder: &std::path::Path) {
    browser.fills_in("input[name=limit]", "1500us");
    browser.clicks_words("Plan");
    browser.waits_for("a plan", "document.querySelector('.planned')");
    let folder = folder.to_str().expect("UTF-8");
    let line = ["plan", "max-accuracy", "--time", "1500us", "--json", folder];
    let answer: Value = serde_json::from_str(&lab.succeed(&line)).expect("JSON");
    let plan = &answer["outcomes"][0]["plan"];
    let placement = plan["combination"].as_str().expect("digits");
    let chosen =
        "Array.from(document.querySelectorAll('#layers input:checked'), (it) => it.value).join('')";
    assert_eq!(browser.reads(chosen), placement);
    let expected = predicted(std::path::Path::new(folder), placement).total();
    assert_eq!(
        Some(expected.as_nanos()),
        plan["time_ns"].as_i64(),
        "{plan}"
    );
    assert_eq!(browser.text("#result .total"), expected.to_string());
    let accuracy = format!("{:.4}", plan["accuracy"].as_f64().expect("a number"));
    let result = browser.text("#result");
    assert!(result.contains(&accuracy), "{accuracy}: {result}");
    follows_the_curve(browser);
}

/// The curve of all plans marks the placement at hand, and leads to the others.
fn follows_the_curve(browser: &Browser) {
    browser.waits_for(
        "the curve",
        "document.querySelector('#curve .chart canvas')",
    );
    let links = "JSON.parse(document.querySelector('#curve figure').dataset.chart).links";
    let here = "location.pathname + location.search";
    let key = |key: &str| {
        browser.does(&format!(
            "document.querySelector('#curve .chart').dispatchEvent(\
             new KeyboardEvent('keydown', {{ key: '{key}', bubbles: true, cancelable: true }}))"
        ));
    };
    let fastest = browser.reads(&format!("{links}[0]"));
    key("ArrowRight");
    key("Enter");
    browser.waits_for("the fastest placement", &format!("{here} == '{fastest}'"));
    // Moved to the CPU, its first layer leaves another mark, on the page that was never loaded again.
    browser.waits_for(
        "the curve",
        "document.querySelector('#curve .chart canvas')",
    );
    browser.does("window.isTheSame = true");
    let marked = "JSON.parse(document.querySelector('#curve figure').dataset.chart).series[1].values.findIndex((it) => it !== null)";
    assert_eq!(browser.evaluates(marked), 0);
    let first = "document.querySelector('input[name=layer1]:checked').value";
    let other = match browser.reads(first).as_str() {
        "0" => 1,
        _ => 0,
    };
    browser.clicks(&format!("input[name=layer1][value='{other}']"));
    browser.waits_for(
        "another mark",
        &format!("{marked} > 0 && document.querySelector('#curve .chart canvas')"),
    );
    assert_eq!(browser.evaluates("window.isTheSame"), true);
}
