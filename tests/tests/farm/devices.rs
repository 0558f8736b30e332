//! Phones as they are listed: in every state, and with any name.

use layerlab_tests::published::Published;
use layerlab_tests::{FEW, model, output, profile, stderr, stdout, succeed};

use super::{Disguised, HOSTILE, local, profile_on};

#[test]
fn every_state_is_listed_with_its_reason_and_remedy() {
    let Some(lab) = Disguised::new("P1") else {
        return;
    };
    let states = [
        ("offline", "offline", "does not answer"),
        ("unauthorized", "unauthorized", "accept the prompt"),
        ("authorizing", "authorizing", "wait"),
        ("connecting", "connecting", "wait"),
        ("recovery", "recovery", "start Android"),
        ("sideload", "sideload", "start Android"),
        ("bootloader", "bootloader", "start Android"),
        (
            "no permissions (user in plugdev group; are your udev rules wrong?); see [http://developer.android.com/tools/device.html]",
            "no permissions",
            "udev",
        ),
    ];
    for (told, state, word) in states {
        let row = format!("ABC                    {told} usb:1-1 transport_id:9\n");
        lab.interposer.list(Some(&row));
        let listed = succeed(lab.layerlab().arg("devices"));
        assert!(listed.contains(state) && listed.contains(word), "{listed}");
        assert!(
            listed.contains("host") && listed.contains("pixel6"),
            "the others are listed, too"
        );
        let (name, out) = (lab.name_of("ABC"), lab.farm.path("out"));
        let mut command = lab.layerlab();
        profile_on(&mut command, &name, "pixel6", &out);
        let ended = output(command.args(["--patience", "100ms"]));
        let said = stderr(&ended);
        assert_eq!(ended.status.code(), Some(4), "{said}");
        assert!(said.contains("ABC") && said.contains(word), "{said}");
        let doctor = output(lab.layerlab().args(["doctor", "--json"]));
        let said = stdout(&doctor);
        assert_eq!(doctor.status.code(), Some(4), "{said}");
        assert!(
            said.contains("\"problem\"") && said.contains(word),
            "{said}"
        );
    }
}

#[test]
fn hostile_names_do_nothing_but_be_printed() {
    let Some(lab) = Disguised::new(HOSTILE) else {
        return;
    };
    lab.phone.set("prop.ro.product.model", HOSTILE);
    let boots = lab.phone.status("boots");
    // Hostile as the server's name of the phone, as the phone's own serial, and as its model's name.
    let row = format!("{HOSTILE:<22} device transport_id:1\n");
    lab.interposer.list(Some(&row));
    let name = lab.name_of(HOSTILE);
    let listed = succeed(lab.layerlab().arg("devices"));
    assert!(
        listed.contains("; $(reboot) ' \" \\n .. \u{1f4f1}"),
        "{listed}"
    );
    let json = succeed(lab.layerlab().args(["devices", "--json"]));
    let devices: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let mut devices = devices.as_array().expect("a list").iter();
    assert!(
        devices.any(|device| device["name"] == name.as_str()),
        "{json}"
    );
    let doctor = stdout(&output(lab.layerlab().arg("doctor")));
    assert!(doctor.contains("$(reboot)"), "{doctor}");

    let folder = lab.farm.path(&HOSTILE.replace('/', "_"));
    std::fs::create_dir(&folder).expect("a folder");
    let hostile_model = folder.join(format!("{HOSTILE}.onnx"));
    std::fs::copy(model("alexnet"), &hostile_model).expect("room");
    let out = lab.farm.path("profile");
    let mut command = lab.layerlab();
    profile(&mut command, FEW, &hostile_model, &name, &out);
    succeed(command.args(["--simulate", "pixel6"]));
    let tables = ["layers.csv", "times.csv", "segments.csv", "samples.csv"];
    let published = Published::read(&out).only(&tables);
    assert_eq!(published, local(&lab.farm, "pixel6").only(&tables));

    let quarantine =
        |arguments: &[&str]| succeed(lab.farm.layerlab().arg("quarantine").args(arguments));
    quarantine(&["add", HOSTILE, "--reason", HOSTILE]);
    assert!(quarantine(&["list"]).contains("$(reboot)"));
    let mut command = lab.layerlab();
    let refused = output(profile_on(
        &mut command,
        &name,
        "pixel6",
        &lab.farm.path("never"),
    ));
    assert_eq!(refused.status.code(), Some(4));
    let said = stderr(&refused);
    assert!(said.contains("quarantine"), "{said}");
    quarantine(&["lift", HOSTILE]);
    assert_eq!(lab.phone.status("boots"), boots, "a name booted the phone");
}
