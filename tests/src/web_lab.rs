//! Labs on the web, with what their pages show, and what the pages' numbers must be.

use std::net::TcpListener;
use std::path::{Path, PathBuf};

use layerlab_profiles::document::{ProcessorKind, Profile};
use layerlab_profiles::time_model::{PredictedTime, ProcessorTimes, TimeModel};

use crate::browser::{Browser, Theme};
use crate::lab::{Daemon, Lab};
use crate::root;
use crate::wait::wait_for;
use crate::web::WebClient;

/// The simulated devices of labs on the web.
const DEVICES: [&str; 2] = ["mate10pro", "oneplus7"];

/// A lab with two simulated devices on the web, where jobs may name files of the folder `models`.
pub fn on_the_web(models: &Path) -> Lab {
    listening(models, &DEVICES, 0, "")
}

/// The same, with more in its configuration.
pub fn on_the_web_with(models: &Path, more: &str) -> Lab {
    listening(models, &DEVICES, 0, more)
}

/// The same with these devices, by name or by file.
pub fn on_the_web_with_devices(devices: &[&str]) -> Lab {
    listening(&models(), devices, 0, "")
}

/// The same on a port that stays its own when its daemon is started again.
pub fn on_a_port_of_its_own(models: &Path) -> Lab {
    // Free a moment ago; the system gives it to nobody else who asks for any.
    let free = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
    listening(models, &DEVICES, free.expect("a port").port(), "")
}

fn listening(models: &Path, devices: &[&str], port: u16, more: &str) -> Lab {
    Lab::new(&format!(
        "[phones]\nlocal = {devices:?}\n[gates]\nload-percent = 100\n\
         [web]\nlisten = \"127.0.0.1:{port}\"\nmodels = {models:?}\n{more}"
    ))
}

/// The folder with the models of the tests.
pub fn models() -> PathBuf {
    root().join("tests/models")
}

/// The folder of a run's profile.
pub fn profile_of_run(lab: &Lab, run: i64) -> PathBuf {
    let profile = lab.kept().runs[&run].profile.clone();
    profile.expect("it is published")
}

/// Puts a profile with accuracy, one of those that ship with the repository, in the place of a published one: to measure it anew
/// would take minutes.
pub fn put_one_with_accuracy(folder: &Path, name: &str) {
    let with_accuracy = root().join("profiles/published").join(name);
    std::fs::remove_dir_all(folder).expect("it is there");
    std::fs::create_dir(folder).expect("room");
    for entry in std::fs::read_dir(with_accuracy).expect("it ships with the repository") {
        let file = entry.expect("a file").path();
        let name = file.file_name().expect("a name").to_owned();
        std::fs::copy(&file, folder.join(name)).expect("room");
    }
}

/// Has the daemon learn the accuracy of placements from a run's profile, and waits until it has; `clue` says more if it has not.
pub fn wait_until_learnt(client: &WebClient, run: i64, clue: impl Fn() -> String) {
    let path = format!("/api/v1/profiles/{run}/curve");
    let is_learnt = || {
        let unknown = client.get(&path).json()["unknown"].clone();
        !unknown
            .as_str()
            .is_some_and(|why| why.contains("being learnt"))
    };
    wait_for("an accuracy that is learnt", is_learnt, clue);
}

/// What a placement takes by the time model of a profile's CPU and its accelerator.
pub fn predicted(folder: &Path, placement: &str) -> PredictedTime {
    let profile = Profile::read(folder).expect("a profile");
    let on = |kind: ProcessorKind| {
        let mut processors = profile.header.processors.iter();
        let processor = processors.find(|one| one.kind == kind);
        let processor = processor.expect("there is one");
        let time = |layer: u32| {
            let mut rows = profile.times.iter();
            let row = rows.find(|row| row.processor == processor.name && row.layer == layer);
            row.map(|row| row.time)
        };
        let layers = profile.layers.iter();
        let times = layers.map(|layer| time(layer.number)).collect();
        ProcessorTimes { kind, times }
    };
    let model = TimeModel::of(vec![on(ProcessorKind::Cpu), on(ProcessorKind::Accelerator)]);
    let placement = placement.parse().expect("digits");
    model.expect("tables").predict(&placement).expect("a time")
}

/// A lab on the web in which much has happened, and something is happening.
pub struct LivelyLab {
    /// Where it listens.
    pub address: String,
    token: String,
    // In the order in which they end.
    _daemon: Daemon,
    _lab: Lab,
}

impl LivelyLab {
    /// Its pages, and what to call each in the name of a file.
    const PAGES: [(&str, &str); 21] = [
        ("login", "/login"),
        ("devices", "/"),
        ("device", "/devices/oneplus7"),
        ("device-left-alone", "/devices/mate10pro"),
        ("jobs", "/jobs"),
        ("all-jobs", "/jobs?all=true"),
        ("new-job", "/jobs/new"),
        ("job", "/jobs/1"),
        ("job-cancelled", "/jobs/2"),
        ("run", "/runs/1"),
        ("calendar", "/calendar"),
        ("profiles", "/profiles"),
        ("profile", "/profiles/1"),
        ("samples", "/profiles/1/samples?processor=npu"),
        ("conditions", "/profiles/1/conditions"),
        ("explorer", "/profiles/1/explore?placement=00110000000"),
        (
            "explorer-with-plans",
            "/profiles/6/explore?placement=00110000000",
        ),
        ("comparison", "/compare?one=1&other=2"),
        (
            "comparison-of-three",
            "/compare?one=1&other=2&other=5&all=true",
        ),
        ("report", "/report"),
        ("nothing-there", "/jobs/999"),
    ];

    /// Starts it, which takes some seconds.
    pub fn start() -> LivelyLab {
        let lab = on_the_web(&models());
        let daemon = lab.daemon();
        lab.wait_until_open();
        lab.wait_for_devices(2);
        let job = |name: &str, measure: &str| {
            let model = models().join("alexnet.onnx");
            let both = "[[devices]]\nserial = \"mate10pro\"\n[[devices]]\nserial = \"oneplus7\"\n";
            format!("name = {name:?}\nmodels = [{model:?}]\n{both}[measure]\n{measure}\n")
        };
        lab.submit(&job("two phones, one night", "design = \"adaptive\""));
        lab.succeed(&["job", "wait", "1", "--timeout", "5m"]);
        lab.submit(&job(
            "a slip of the finger",
            "design = \"grouped\"\nsamples = 4000",
        ));
        lab.succeed(&["job", "cancel", "2"]);
        lab.submit(&job("the same again", "design = \"local\""));
        lab.succeed(&["job", "wait", "3", "--timeout", "5m"]);
        put_one_with_accuracy(&profile_of_run(&lab, 6), "oneplus7/vocnet-mini");
        lab.succeed(&[
            "quarantine",
            "add",
            "mate10pro",
            "--reason",
            "its glass is broken",
        ]);
        let reserve = [
            "reserve",
            "mate10pro",
            "--from",
            "tomorrow 09:00",
            "--until",
            "tomorrow 17:00",
        ];
        lab.succeed(&[&reserve[..], &["--note", "a demo for visitors"]].concat());
        // Long enough to be seen at work.
        lab.submit(&job("a long one", "design = \"local\"\nsamples = 20000"));
        let nightly = "every = \"0 22 * * mon-fri\"\nwindow = \"22:00-07:00, weekdays\"\n";
        lab.submit(&(nightly.to_owned() + &job("every night", "design = \"local\"")));
        let token = lab.succeed(&["token", "create", "me", "--role", "operator"]);
        let client = WebClient::of(&lab);
        wait_until_learnt(&client.with_token(&token), 6, || lab.log());
        LivelyLab {
            address: client.address,
            token,
            _daemon: daemon,
            _lab: lab,
        }
    }

    /// Has a browser show each page on each width in each theme, and says what it is that is shown, such as `profile-390-dark`.
    pub fn show(&self, browser: &Browser, widths: &[u32], mut look: impl FnMut(&str)) {
        let mut is_logged_in = false;
        for theme in Theme::ALL {
            browser.shows_in(theme);
            for (name, path) in LivelyLab::PAGES {
                if path != "/login" && !is_logged_in {
                    browser.logs_in(&self.address, &self.token);
                    is_logged_in = true;
                }
                for width in widths {
                    browser.is_wide(*width);
                    browser.goes_to(&format!("http://{}{path}", self.address));
                    look(&format!("{name}-{width}-{}", theme.name()));
                }
            }
        }
    }
}
