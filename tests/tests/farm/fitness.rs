//! A phone that is not fit to be measured is waited for, or its profile says so; and profiles say how it was meanwhile.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use layerlab_campaign::{
    Campaign, CampaignFollower, CampaignPart, Follower, InOut, JournalTrouble,
};
use layerlab_campaign::{KnownJournal, ModelFile, TimesSettings};
use layerlab_farm::provision::Provision;
use layerlab_profiles::document::{Conditions, Fitness, Profile, Rejected};
use layerlab_profiles::{MilliCelsius, Nanos};
use layerlab_protocol::{Entry, Hygiene};
use layerlab_tests::farm::Farm;
use layerlab_tests::virtual_phone::VirtualPhone;
use layerlab_tests::{model, output, stderr, succeed};

use super::profile_on;

/// Makes a phone as hot as one that was published in silence.
fn heat(phone: &VirtualPhone) {
    phone.set("battery_temperature_millicelsius", "51000");
    phone.set("thermal_status", "4");
}

fn cool(phone: &VirtualPhone) {
    phone.set("battery_temperature_millicelsius", "27000");
    phone.set("thermal_status", "0");
}

const HOT: [&str; 2] = ["battery 51 °C > 37 °C", "thermal status critical > light"];

fn profile<'a>(command: &'a mut Command, phone: &VirtualPhone, out: &Path) -> &'a mut Command {
    profile_on(command, &phone.address, "pixel6", out)
}

fn fitness(out: &Path) -> Fitness {
    let profile = Profile::read(out).expect("a profile");
    profile.header.provenance.fitness.expect("it was looked at")
}

#[test]
fn a_hot_phone_is_waited_for_until_it_is_cool() {
    let Some(farm) = Farm::new() else { return };
    let phone = farm.phone("P1");
    heat(&phone);
    let out = farm.path("profile");
    let mut command = farm.layerlab();
    profile(&mut command, &phone, &out);
    command.stderr(Stdio::piped()).stdout(Stdio::null());
    let mut child = command.spawn().expect("layerlab starts");
    let said = BufReader::new(child.stderr.take().expect("piped"));
    let mut lines = said.lines().map_while(Result::ok);
    let waits = lines.by_ref().find(|line| line.contains("waiting for P1"));
    let waits = waits.expect("it says what it waits for");
    assert!(HOT.iter().all(|reason| waits.contains(reason)), "{waits}");
    assert!(!out.exists(), "nothing is published meanwhile");
    cool(&phone);
    let rest: Vec<String> = lines.collect();
    assert!(child.wait().expect("a child").success(), "{rest:?}");
    assert_eq!(fitness(&out), Fitness::default());
}

#[test]
fn a_phone_that_stays_hot_is_not_measured() {
    let Some(farm) = Farm::new() else { return };
    let phone = farm.phone("P1");
    heat(&phone);
    let out = farm.path("profile");
    let mut command = farm.layerlab();
    let ended = output(profile(&mut command, &phone, &out).args(["--patience", "1s"]));
    let said = stderr(&ended);
    assert_eq!(ended.status.code(), Some(4), "{said}");
    for word in [HOT[0], HOT[1], "not ready within", "--not-fit"] {
        assert!(said.contains(word), "{said}");
    }
    assert!(!out.exists());
}

#[test]
fn a_phone_that_is_emptied_is_waited_for_where_it_must_be_charging() {
    let Some(farm) = Farm::new() else { return };
    let phone = farm.phone("P1");
    phone.set("battery_status", "Discharging");
    phone.set("battery_level_percent", "12");
    let config = farm.path("charging.toml");
    let text = "[gates]\nload-percent = 100\nstorage-free-mebibytes = 0\nscreen-off = false\ncharging = \"required\"\n";
    std::fs::write(&config, text).expect("room");
    let out = farm.path("profile");
    let mut command = farm.layerlab();
    profile(&mut command, &phone, &out).args(["--patience", "1s", "--config"]);
    let ended = output(command.arg(&config));
    let said = stderr(&ended);
    assert_eq!(ended.status.code(), Some(4), "{said}");
    for word in ["battery 12 % < 30 %", "not charging"] {
        assert!(said.contains(word), "{said}");
    }
    assert!(!out.exists());
}

#[test]
fn a_phone_that_is_measured_although_it_is_not_fit_has_a_profile_that_says_so() {
    let Some(farm) = Farm::new() else { return };
    let phone = farm.phone("P1");
    heat(&phone);
    phone.set("battery_health", "3");
    let out = farm.path("profile");
    let mut command = farm.layerlab();
    succeed(profile(&mut command, &phone, &out).arg("--not-fit"));
    let found = fitness(&out);
    assert!(found.overridden);
    assert_eq!(found.not_fit, HOT);
    let checked = succeed(farm.layerlab().arg("check").arg(&out));
    let shown = succeed(farm.layerlab().arg("show").arg(&out));
    for reason in HOT {
        assert!(
            checked.contains("not-fit") && checked.contains(reason),
            "{checked}"
        );
        assert!(
            shown.contains("NOT FIT") && shown.contains(reason),
            "{shown}"
        );
    }
    // Which phone that was.
    let phone = Profile::read(&out)
        .expect("a profile")
        .header
        .provenance
        .phone;
    let phone = phone.expect("a phone");
    let said = [
        Some(phone.serial.as_str()),
        phone.model.as_deref(),
        phone.soc.as_deref(),
        phone.build.as_deref(),
        phone.security_patch.as_deref(),
        phone.abi.as_deref(),
        phone.battery_health.as_deref(),
    ];
    let expected = [
        "P1",
        "Virtual Phone",
        "VP1",
        "layerlab/virtual_phone/virtual_phone:14/VP1A.240505.001/1:user/release-keys",
        "2024-05-05",
        "x86_64",
        "overheat",
    ];
    assert_eq!(said, expected.map(Some));
}

/// Begins with nothing known, and keeps nothing.
struct Forgetful;

impl Follower for Forgetful {
    async fn entry(&mut self, _: &Entry) {}
}

impl CampaignFollower for Forgetful {
    async fn begin(&mut self, _: CampaignPart) -> Result<KnownJournal, JournalTrouble> {
        Ok(KnownJournal::fresh())
    }

    async fn end(&mut self) -> Result<(), JournalTrouble> {
        Ok(())
    }
}

/// The phone's own processor, which is this machine's, while the phone is hot, throttles and is emptied.
#[tokio::test(flavor = "multi_thread")]
async fn blocks_say_how_the_phone_was() {
    let Some(farm) = Farm::new() else { return };
    let phone = farm.phone("P1");
    for (key, value) in [
        ("thermal_status", "3"),
        ("battery_temperature_millicelsius", "51000"),
        ("battery_level_percent", "42"),
        ("battery_status", "Discharging"),
        ("skin_temperature_millicelsius", "44500"),
        ("gpu_temperature_millicelsius", "71250"),
        ("policy4_cur_khz", "710400"),
        ("policy4_max_khz", "1000000"),
        ("npu_cur_hz", "400000000"),
    ] {
        phone.set(key, value);
    }
    let provision = Provision {
        simulate: None,
        ..farm.provision("")
    };
    let link = farm.link(&phone, provision).await;
    let model = ModelFile::open(&model("alexnet"), &Default::default()).expect("a model");
    let campaign = Campaign {
        model: &model,
        times: TimesSettings {
            samples_per_segment: 6,
            visits: 3,
            gap: Nanos::ZERO,
            in_out: InOut::Symmetric,
            hygiene: Hygiene {
                // A machine that runs many tests at once is no steady device.
                sentinel_tolerance_percent: 100_000,
                ..Hygiene::default()
            },
            ..TimesSettings::default()
        },
        accuracy: None,
        target: farm.path("profile"),
        replace: false,
        signing_key: None,
        fitness: Some(Fitness {
            overridden: true,
            ..Fitness::default()
        }),
    };
    let profile = campaign.measure(&link, &mut Forgetful).await;
    let profile = profile.expect("it is to be measured as it is");
    let degrees = |millicelsius| Some(MilliCelsius::from_millicelsius(millicelsius));
    let clocks = |pairs: &[(&str, u64)]| {
        let pairs = pairs.iter().map(|(name, khz)| ((*name).to_owned(), *khz));
        pairs.collect()
    };
    let expected = Conditions {
        thermal_status: Some(3),
        temperature_millicelsius: degrees(71_250),
        skin_temperature_millicelsius: degrees(44_500),
        soc_temperature_millicelsius: degrees(71_250),
        battery_temperature_millicelsius: degrees(51_000),
        battery_percent: Some(42),
        charging: Some(false),
        frequency_caps_khz: clocks(&[
            ("policy0", 1_804_800),
            ("policy4", 1_000_000),
            ("policy7", 2_841_600),
        ]),
        frequencies_khz: clocks(&[
            ("policy0", 1_132_800),
            ("policy4", 710_400),
            ("policy7", 1_785_600),
            ("npu", 400_000),
        ]),
    };
    assert!(!profile.blocks.is_empty());
    for block in &profile.blocks {
        assert_ne!(block.rejection, Some(Rejected::Throttling));
        assert_eq!(block.before.conditions, expected);
        assert_eq!(block.after.conditions, expected);
    }
    let not_fit = layerlab_profiles::check::check(&profile);
    let not_fit = not_fit
        .iter()
        .find(|finding| finding.rule.name() == "not-fit");
    let said = not_fit.expect("it throttled").to_string();
    assert!(said.contains("throttled in"), "{said}");
}
