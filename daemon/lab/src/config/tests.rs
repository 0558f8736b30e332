//! The default file is the documentation; other files change single keys, or are refused in a sentence.

use std::ffi::OsString;
use std::path::Path;

use super::*;
use crate::notice::Notice;

/// Reads `text` as a user's file.
fn load(text: &str) -> Result<Loaded, String> {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("config.toml");
    std::fs::write(&file, text).expect("room");
    let loaded = Config::load(Some(&file), |_| None);
    // The folder's name is another one each time.
    loaded.map_err(|error| {
        let folder = format!("{}/", folder.path().display());
        error.to_string().replace(&folder, "")
    })
}

#[test]
fn the_default_file_gives_every_key() {
    let default = Config::default();
    assert_eq!(default.lab.window, Window::ALWAYS);
    assert_eq!(default.lab.keep_journals, Duration::from_secs(30 * 86400));
    assert_eq!(default.gates.thermal_status, ThermalStatus::Light);
    assert_eq!(default.report.webhook, None);
    assert_eq!(Notice::all(&default.report), []);
    let policy = layerlab_farm::Policy::default();
    assert_eq!(default.phones.patience, policy.patience);
    assert_eq!(default.phones.reboot, policy.may_reboot);
    assert_eq!(default.attempts.quarantine, policy.quarantine);
    let loaded = load("").expect("nothing to refuse");
    assert_eq!(loaded.config, default);
    assert_eq!(load(DEFAULT).expect("it is right").changes, []);
}

#[test]
fn every_key_of_the_default_file_is_explained() {
    let lines: Vec<&str> = DEFAULT.lines().collect();
    for pair in lines.windows(2) {
        if pair[1].contains(" = ") && !pair[1].starts_with('#') {
            assert!(pair[0].starts_with('#'), "{} has no comment", pair[1]);
        }
    }
}

#[test]
fn the_folders_of_profiles_and_reports_are_the_data_folder_s_unless_said() {
    let folders = Folders {
        state: PathBuf::from("/state"),
        data: PathBuf::from("/data"),
        cache: PathBuf::from("/cache"),
    };
    let default = Config::default();
    assert_eq!(default.profiles(&folders), Path::new("/data/profiles"));
    assert_eq!(default.reports(&folders), Path::new("/data/reports"));
    let own = load("lab.profiles = '/srv/profiles'\nreport.folder = '/srv/reports'");
    let own = own.expect("folders").config;
    assert_eq!(own.profiles(&folders), Path::new("/srv/profiles"));
    assert_eq!(own.reports(&folders), Path::new("/srv/reports"));
}

#[test]
fn the_store_is_in_the_state_folder_unless_said() {
    let folders = Folders {
        state: PathBuf::from("/state"),
        data: PathBuf::from("/data"),
        cache: PathBuf::from("/cache"),
    };
    let default = Config::default().store(&folders);
    assert_eq!(default.to_string(), "/state/lab/lab.sqlite");
    let url = "postgres://layerlab@db.example/layerlab";
    let on_a_server = load(&format!("lab.store = '{url}'")).expect("a configuration");
    assert_eq!(on_a_server.config.store(&folders).to_string(), url);
}

#[test]
fn a_file_overrides_single_keys() {
    let loaded = load(
        r#"
        [lab]
        window = "22:00-07:00 Europe/Berlin, weekdays"
        log = "human"
        [gates]
        battery-temperature-celsius = 35.5
        load-percent = 100
        thermal-status = "none"
        charging = "required"
        [phones]
        adb-servers = ["lab2:5037", "[::1]:5037"]
        local = ["host", "pixel6"]
        [phones.simulate]
        emulator-5554 = "pixel6"
        [phones.pools]
        night = ["emulator-5554", "R58M12ABCDE"]
        "#,
    )
    .expect("a configuration");
    let window = "22:00-07:00 Europe/Berlin, weekdays".parse();
    let mut expected = Config::default();
    expected.lab.window = window.expect("a window");
    expected.gates.battery_temperature_celsius = 35.5;
    expected.gates.load_percent = 100;
    expected.gates.thermal_status = ThermalStatus::None;
    expected.gates.charging = Charging::Required;
    let address = |text: &str| text.parse().expect("an address");
    expected.phones.adb_servers = vec![address("lab2:5037"), address("[::1]:5037")];
    expected.phones.local = vec!["host".to_owned(), "pixel6".to_owned()];
    let phone = "emulator-5554".to_owned();
    let (phones, pools) = (&mut expected.phones.simulate, &mut expected.phones.pools);
    phones.insert(phone.clone(), "pixel6".to_owned());
    pools.insert("night".to_owned(), vec![phone, "R58M12ABCDE".to_owned()]);
    assert_eq!(loaded.config, expected);
    let keys: Vec<&str> = loaded.changes.iter().map(|change| &*change.key).collect();
    assert!(keys.contains(&"gates.load-percent"), "{keys:?}");
    // As it is by default.
    assert!(!keys.contains(&"lab.log"), "{keys:?}");
    assert_eq!(keys.len(), 9);
}

#[test]
fn what_is_refused_is_said_in_a_sentence() {
    for (text, message) in [
        (
            "[gates\n",
            "config.toml is no TOML, line 1: unclosed table, expected `]`",
        ),
        (
            "[gates]\npol = '1m'",
            "config.toml: `gates.pol` is unknown; `gates.poll` is the nearest key that there is, and `layerlab config \
             default` explains all of them",
        ),
        (
            "[gate]\npoll = '1m'",
            "config.toml: `gate` is unknown; `gates` is the nearest key that there is, and `layerlab config default` \
             explains all of them",
        ),
        (
            "patience = '1m'",
            "config.toml: `patience` is unknown; `phones.patience` is the nearest key that there is, and `layerlab \
             config default` explains all of them",
        ),
        (
            "[regression]\ntolerance-percent = 100",
            "config.toml: `regression.tolerance-percent`: `100` is no share of a time that can be put up with; write at \
             least 0 and less than 100",
        ),
        (
            "[regression]\nalpha = 0",
            "config.toml: `regression.alpha`: `0` is no chance of a false alarm; write more than 0 and at most 0.5",
        ),
        (
            "[regression]\ngood-profiles = 0",
            "config.toml: `regression.good-profiles`: `0` is no number of good profiles; write a whole number from 1 to 32",
        ),
        (
            "[regression]\ngood-profiles = 3",
            "config.toml: `regression.good-profiles`: 3 good profiles do not tell how far runs differ; write 1, or 4 to 32",
        ),
        (
            "[lab]\nquarantine = '1m'",
            "config.toml: `lab.quarantine` is unknown; `attempts.quarantine` is the nearest key that there is, and \
             `layerlab config default` explains all of them",
        ),
        (
            "gates = 3",
            "config.toml: `gates` is a section; write [gates] and its keys under it",
        ),
        (
            "gates.poll = 'soon'",
            "config.toml: `gates.poll`: `soon` is no duration; write a number with its unit, such as 40s, 30m, 8h or 7d",
        ),
        (
            "gates.poll = '1ms'",
            "config.toml: `gates.poll`: `1ms` is too often; write 1s or more",
        ),
        (
            "gates.poll = 30",
            "config.toml: `gates.poll`: `30` cannot stand here; write a text in quotes, such as \"30s\"",
        ),
        (
            "gates.load-percent = 'much'",
            "config.toml: `gates.load-percent`: `\"much\"` cannot stand here; write a number, such as 20",
        ),
        (
            "gates.load-percent = 120",
            "config.toml: `gates.load-percent`: `120` is no percentage; write a whole number from 0 to 100",
        ),
        (
            "gates.load-percent = 2.5",
            "config.toml: `gates.load-percent`: `2.5` is no percentage; write a whole number from 0 to 100",
        ),
        (
            "gates.storage-free-mebibytes = -1",
            "config.toml: `gates.storage-free-mebibytes`: `-1` is no size of a phone's storage; write a whole number \
             from 0 to 16777216",
        ),
        (
            "gates.battery-temperature-celsius = 370",
            "config.toml: `gates.battery-temperature-celsius`: `370` is no temperature at which a phone is used; write \
             10 to 60",
        ),
        (
            "gates.battery-temperature-celsius = nan",
            "config.toml: `gates.battery-temperature-celsius`: `NaN` is no temperature at which a phone is used; write \
             10 to 60",
        ),
        (
            "gates.screen-off = 'yes'",
            "config.toml: `gates.screen-off`: `\"yes\"` cannot stand here; write true or false",
        ),
        (
            "gates.charging = 'yes'",
            "config.toml: `gates.charging`: `yes` is unknown; write any or required",
        ),
        (
            "gates.thermal-status = 'hot'",
            "config.toml: `gates.thermal-status`: `hot` is unknown; write none, light, moderate, severe, critical, \
             emergency or shutdown",
        ),
        (
            "lab.log = 'xml'",
            "config.toml: `lab.log`: `xml` is unknown; write human or json",
        ),
        (
            "lab.window = '25:00-07:00'",
            "config.toml: `lab.window`: `25:00` is no time of day; write HH:MM, such as 22:00",
        ),
        (
            "lab.profiles = '~/profiles'",
            "config.toml: `lab.profiles`: `~/profiles` is no absolute path; write one that begins with /",
        ),
        (
            "lab.store = 'postgres://layerlab:secret@db.example/layerlab'",
            "config.toml: `lab.store`: a password stands in this URL; take it out, and give it by PGPASSWORD, by a \
             passfile, or by a file that `store-password-file` names",
        ),
        (
            "lab.host = 'rack 1'",
            "config.toml: `lab.host`: `rack 1` is no name of a host; write at most 63 letters, digits, dashes, dots and \
             underscores, such as \"rack-1\"",
        ),
        (
            "lab.store = 'lab.sqlite'",
            "config.toml: `lab.store`: this is no URL of a PostgreSQL database; write one such as \
             \"postgres://layerlab@db.example/layerlab\", or \"\" for a file in the state folder",
        ),
        (
            "lab.objects = 's3://key:secret@lab'",
            "config.toml: `lab.objects`: a key stands in this URL; take it out, and give it by AWS_ACCESS_KEY_ID and \
             AWS_SECRET_ACCESS_KEY, or by a file that `objects-credentials-file` names",
        ),
        (
            "lab.objects = ['s3://key:secret@lab']",
            "config.toml: `lab.objects`: what stands here cannot; write a text in quotes, such as \"\"",
        ),
        (
            "lab.objects = 'models'",
            "config.toml: `lab.objects`: this is no place for files; write a bucket such as \"s3://bucket/prefix\", the \
             absolute path of a folder, or \"\" for none",
        ),
        (
            "lab.store = ['postgres://u:secret@h/d']",
            "config.toml: `lab.store`: what stands here cannot; write a text in quotes, such as \"\"",
        ),
        (
            "phones.adb-servers = 'lab2:5037'",
            "config.toml: `phones.adb-servers`: `\"lab2:5037\"` cannot stand here; write a list of texts, such as \
             [\"one\", \"other\"]",
        ),
        (
            "phones.adb-servers = ['lab2']",
            "config.toml: `phones.adb-servers`: `lab2` is no address; write HOST:PORT",
        ),
        (
            "phones.local = ['pixel7']",
            "config.toml: `phones.local`: `pixel7` is no simulated device; write host, mate10pro, oneplus7, pixel6, trio, \
             or the absolute path of a device file that exists",
        ),
        (
            "phones.local = ['host', 'host']",
            "config.toml: `phones.local`: `host` is there twice; write it once",
        ),
        (
            "phones.simulate = { a = 'host' }",
            "config.toml: `phones.simulate`: `host` is no simulated device; write mate10pro, oneplus7, pixel6, trio, or the \
             absolute path of a device file that exists",
        ),
        (
            "phones.simulate = { a = 3 }",
            "config.toml: `phones.simulate`: `{ a = 3 }` cannot stand here; write serials and the devices that they \
             play, such as { emulator-5554 = \"pixel6\" }",
        ),
        (
            "phones.pools = ['a', 'b']",
            "config.toml: `phones.pools`: `[\"a\", \"b\"]` cannot stand here; write pools and their lists of serials, \
             such as { night = [\"emulator-5554\"] }",
        ),
        (
            "phones.pools.night = []",
            "config.toml: `phones.pools`: the pool `night` is empty; write the serials of its phones",
        ),
        (
            "attempts.per-run = 0",
            "config.toml: `attempts.per-run`: `0` is no number of attempts; write a whole number from 1 to 100",
        ),
        (
            "report.webhook = 'example.org/hook'",
            "config.toml: `report.webhook`: this is no URL; write one that begins with http:// or https://, or \"\" for \
             none",
        ),
        (
            "report.webhook = ['https://example.org/secret']",
            "config.toml: `report.webhook`: what stands here cannot; write a text in quotes, such as \"\"",
        ),
        (
            "report.webhook-format = 'teams'",
            "config.toml: `report.webhook-format`: `teams` is unknown; write json or slack",
        ),
        (
            "report.mail-to = ['one@example.org, other@example.org']",
            "config.toml: `report.mail-to`: `one@example.org, other@example.org` is no mail address; write one such as \
             \"night@example.org\"",
        ),
        (
            "report.mail-from = \"a\\nBcc:b\"",
            "config.toml: `report.mail-from`: `a\\nBcc:b` is no mail address; write one such as \"night@example.org\"",
        ),
    ] {
        assert_eq!(load(text).expect_err(text), message);
    }
}

#[test]
fn the_secret_of_a_webhook_is_not_among_the_changes_that_are_shown() {
    let secret = "https://hooks.example.org/T0/secret";
    let loaded = load(&format!("report.webhook = '{secret}'")).expect("a configuration");
    assert_eq!(loaded.config.report.webhook.as_deref(), Some(secret));
    let shown = serde_json::to_string(&loaded.changes).expect("JSON");
    assert!(shown.contains("https://hooks.example.org/…"), "{shown}");
    assert!(!shown.contains("secret"), "{shown}");
}

#[test]
fn the_user_s_file_comes_before_the_host_s() {
    let set = |name: &'static str, value: &'static str| {
        move |asked: &str| (asked == name).then(|| OsString::from(value))
    };
    let own = |place: &str| [place, "/etc/layerlab/config.toml"].map(PathBuf::from);
    assert_eq!(
        places(set("XDG_CONFIG_HOME", "/xdg")),
        own("/xdg/layerlab/config.toml")
    );
    assert_eq!(
        places(set("HOME", "/home/u")),
        own("/home/u/.config/layerlab/config.toml")
    );
    assert_eq!(
        places(set("XDG_CONFIG_HOME", "relative")),
        own("/etc/layerlab/config.toml")[1..]
    );
}

#[test]
fn the_file_that_is_there_is_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let home = folder.path().as_os_str().to_owned();
    let file = folder.path().join("layerlab/config.toml");
    std::fs::create_dir(folder.path().join("layerlab")).expect("room");
    std::fs::write(&file, "attempts.per-run = 5").expect("room");
    let variable = |name: &str| (name == "XDG_CONFIG_HOME").then(|| home.clone());
    let loaded = Config::load(None, variable).expect("a configuration");
    assert_eq!(loaded.config.attempts.per_run, 5);
    assert_eq!(loaded.read, [file]);
}

#[test]
fn a_file_that_is_asked_for_must_be_there() {
    let error = Config::load(Some(Path::new("/nowhere/config.toml")), |_| None);
    let message = error.expect_err("no file").to_string();
    assert!(
        message.starts_with("cannot read the configuration /nowhere/config.toml: "),
        "{message}"
    );
}
