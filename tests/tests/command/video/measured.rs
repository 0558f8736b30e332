//! What is measured on a simulated phone and on this machine, and that it is checked.

use std::fs;

use layerlab_tests::{output, succeed};

use super::super::assert_fails;
use super::{Place, rows, video};

/// Sixty images, of which twelve are answered in all forms, on both sides. What the phone and the server say is looked at from
/// the files, as a reader of them would.
#[test]
fn frames_are_measured_on_a_simulated_phone_and_on_this_machine() {
    let place = Place::new(60);
    let options = ["--frames", "12", "--seed", "5"];
    let said = succeed(&mut place.measure("mate10pro", "phone", &options));
    for words in ["vocnet-mini on npu of ", "SIMULATED", "90x90", "jpeg-75"] {
        assert!(said.contains(words), "`{words}` is missing in: {said}");
    }
    let json = succeed(place.measure("host", "server", &options).arg("--json"));
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["simulated"], false);
    assert_eq!(
        (&json["answers"], &json["frames"]),
        (&60.into(), &108.into())
    );

    for (side, simulated) in [("phone", true), ("server", false)] {
        let folder = place.out(side);
        let checked = succeed(video("check").arg(&folder));
        assert!(
            checked.contains("a sound measurement of vocnet-mini")
                && checked.contains("60 answers, 108 frames, 1 warnings"),
            "{checked}"
        );
        let answers = rows(&folder, "answers.csv");
        let half = |name: &str| answers.iter().filter(|row| row["split"] == name).count();
        assert_eq!((half("calibration"), half("test")), (30, 30));
        let origin = if simulated { "simulated" } else { "measured" };
        assert!(answers.iter().all(|row| row["origin"] == origin));
        let scores = fs::metadata(folder.join("answers.f32")).expect("a file");
        assert_eq!(scores.len(), 60 * 20 * 4);
        // Three sizes up to the camera's in three encodings, of frames of the test half alone.
        let frames = rows(&folder, "frames.csv");
        let test: Vec<&str> = (answers.iter().filter(|row| row["split"] == "test"))
            .map(|row| row["image"].as_str())
            .collect();
        assert!(frames.iter().all(|row| test.contains(&&*row["image"])));
        assert_eq!(rows(&folder, "resolution_accuracy.csv").len(), 9);
        let times = rows(&folder, "resolution_times.csv");
        let bytes = |side: &str, format: &str, quality: &str| -> u64 {
            let row = times.iter().find(|row| {
                (&*row["width"], &*row["format"], &*row["quality"]) == (side, format, quality)
            });
            row.expect("a form")["bytes_median"].parse().expect("bytes")
        };
        assert!(bytes("45", "png", "") < bytes("112", "png", ""));
        assert!(bytes("112", "jpeg", "75") < bytes("112", "jpeg", "90"));
        // Without loss and in the network's own size, a frame is the image: it is answered as that is.
        for frame in frames {
            if (&*frame["width"], &*frame["format"]) == ("112", "png") {
                let answer = answers.iter().find(|row| row["image"] == frame["image"]);
                assert_eq!(frame["predicted"], answer.expect("an answer")["predicted"]);
            }
        }
    }
    // Who encoded for a simulated phone is said.
    let json = fs::read_to_string(place.out("phone/video.json")).expect("a file");
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["coded"], "playing-machine");
}

/// The answers of this machine are tract's, and of a simulated CPU too: labels, scores and frames are the same.
#[test]
fn a_simulated_cpu_answers_as_this_machine_does_and_again_the_same() {
    let place = Place::new(8);
    let cpu = ["--processor", "cpu", "--frames", "3"];
    let measure = |device, name| succeed(&mut place.measure(device, name, &cpu));
    measure("mate10pro", "one");
    measure("mate10pro", "other");
    let scores = |name: &str| fs::read(place.out(name).join("answers.f32")).expect("scores");
    assert_eq!(scores("one"), scores("other"));
    succeed(&mut place.measure("host", "host", &["--frames", "3"]));
    let floats = |name: &str| -> Vec<f32> {
        let bytes = scores(name);
        let fours = bytes.chunks_exact(4);
        fours
            .map(|four| f32::from_le_bytes(four.try_into().expect("four")))
            .collect()
    };
    for (here, simulated) in floats("host").iter().zip(floats("one")) {
        assert!((here - simulated).abs() < 1e-4, "{here} {simulated}");
    }
    let predicted = |name: &str| -> Vec<(String, String)> {
        let frames = rows(&place.out(name), "frames.csv");
        let both = |row: &std::collections::HashMap<String, String>| {
            (row["bytes"].clone(), row["predicted"].clone())
        };
        frames.iter().map(both).collect()
    };
    assert_eq!(predicted("one"), predicted("other"));
    assert_eq!(predicted("one"), predicted("host"));
}

#[test]
fn what_was_changed_after_it_was_published_is_refused() {
    let place = Place::new(6);
    succeed(&mut place.measure("mate10pro", "phone", &["--frames", "2"]));
    let folder = place.out("phone");
    let taken = output(&mut place.measure("mate10pro", "phone", &["--frames", "2"]));
    assert_fails(&taken, 5, &["exists already", "--replace"]);

    let answers = folder.join("answers.csv");
    let before = fs::read_to_string(&answers).expect("a table");
    fs::write(&answers, before.replacen(",test,", ",calibration,", 1)).expect("room");
    let check = |more: &[&str]| output(video("check").arg(&folder).args(more));
    assert_fails(&check(&[]), 6, &["contradicts itself", "errors"]);
    let json: serde_json::Value = serde_json::from_slice(&check(&["--json"]).stdout).expect("JSON");
    let sentences = json.to_string();
    assert!(
        sentences.contains("answers.csv was changed") && sentences.contains("its seed draws"),
        "{sentences}"
    );
    let calibrate = output(
        video("calibrate")
            .arg(&folder)
            .arg("--out")
            .arg(place.out("c")),
    );
    assert_fails(&calibrate, 6, &["contradicts itself", "video check"]);
    assert!(!place.out("c").exists());

    fs::write(&answers, before).expect("room");
    succeed(video("check").arg(&folder));
    fs::remove_file(folder.join("answers.f32")).expect("there");
    assert_fails(&check(&[]), 3, &["answers.f32"]);
    let nothing = output(video("check").arg(place.out("nothing")));
    assert_fails(&nothing, 3, &["video.json"]);
}
