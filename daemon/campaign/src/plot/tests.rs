//! What the pictures show, and that everything is inside them.

use std::path::Path;

use super::*;

/// A text of a picture: where it begins, is centred or ends, and how large it is.
struct Word {
    x: f64,
    y: f64,
    anchor: String,
    size: f64,
    text: String,
    is_turned: bool,
}

fn words(svg: &str) -> Vec<Word> {
    let mut words = Vec::new();
    let mut lines = svg.lines();
    while let Some(line) = lines.next() {
        let Some(attributes) = line.strip_prefix("<text ") else {
            continue;
        };
        let attributes = format!(" {attributes}");
        let attribute = |name: &str| {
            let from = attributes.split(&format!("{name}=\"")).nth(1);
            from.and_then(|rest| rest.split('"').next())
                .expect("an attribute")
                .to_owned()
        };
        let number = |name: &str| attribute(name).parse::<f64>().expect("a number");
        words.push(Word {
            x: number(" x"),
            y: number(" y"),
            anchor: attribute("text-anchor"),
            size: number("font-size"),
            is_turned: attributes.contains("rotate("),
            text: (lines.next().expect("the text").trim()).replace("&apos;", "'"),
        });
    }
    words
}

fn published() -> Vec<Profile> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../profiles/published");
    let names = [
        "mate10pro/vocnet-mini",
        "mate10pro/yolo-mini",
        "oneplus7/vocnet-mini",
        "oneplus7/yolo-mini",
    ];
    let read = |name| Profile::read(&folder.join(name)).expect("a published profile");
    names.map(read).into()
}

fn size(svg: &str) -> (f64, f64) {
    let attribute = |name: &str| {
        let from = svg.split(&format!("{name}=\"")).nth(1).expect("a size");
        from.split('"')
            .next()
            .and_then(|text| text.parse().ok())
            .expect("a number")
    };
    (attribute("width"), attribute("height"))
}

#[test]
fn every_word_lies_within_the_picture() {
    for profile in published() {
        let svg = svg(&profile).expect("a picture");
        let (width, height) = size(&svg);
        for word in words(&svg) {
            let long = f64::from(canvas::width(&word.text, word.size.round() as i32));
            let (left, right, foot) = match (word.is_turned, word.anchor.as_str()) {
                (true, _) => (word.x - word.size, word.x, word.y + long),
                (false, "start") => (word.x, word.x + long, word.y + word.size),
                (false, "end") => (word.x - long, word.x, word.y + word.size),
                (false, _) => (word.x - long / 2.0, word.x + long / 2.0, word.y + word.size),
            };
            let is_in = left >= 0.0 && right <= width && word.y >= 0.0 && foot <= height;
            assert!(is_in, "{} of {}", word.text, profile.header.model.name);
        }
    }
}

#[test]
fn no_two_words_lie_on_each_other() {
    for profile in published() {
        let svg = svg(&profile).expect("a picture");
        let upright: Vec<Word> = words(&svg)
            .into_iter()
            .filter(|word| !word.is_turned)
            .collect();
        for (place, one) in upright.iter().enumerate() {
            for other in &upright[place + 1..] {
                let same_line = (one.y - other.y).abs() < one.size.min(other.size) * 0.7;
                let span = |word: &Word| {
                    // Fonts are rarely as wide as what is reckoned with.
                    let long = 0.9 * f64::from(canvas::width(&word.text, word.size.round() as i32));
                    match word.anchor.as_str() {
                        "start" => (word.x, word.x + long),
                        "end" => (word.x - long, word.x),
                        _ => (word.x - long / 2.0, word.x + long / 2.0),
                    }
                };
                let (a, b) = (span(one), span(other));
                let meet = same_line && a.0 < b.1 && b.0 < a.1;
                assert!(
                    !meet,
                    "{} and {} of {}",
                    one.text, other.text, profile.header.model.name
                );
            }
        }
    }
}

#[test]
fn the_whole_model_has_a_time_on_each_processor() {
    for profile in published() {
        let svg = svg(&profile).expect("a picture");
        let texts: Vec<String> = words(&svg).into_iter().map(|word| word.text).collect();
        let is_total = |text: &&String| text.contains(" times as fast as cpu");
        assert_eq!(texts.iter().filter(is_total).count(), 1);
        assert!(texts.iter().any(|text| text == "SIMULATED, no real phone"));
    }
}

#[test]
fn short_names_stand_upright_and_long_ones_are_turned() {
    let mut profile = published().remove(0);
    let turned = |profile: &Profile| {
        let svg = svg(profile).expect("a picture");
        words(&svg).iter().filter(|word| word.is_turned).count()
    };
    assert_eq!(turned(&profile), 0);
    profile.layers[3].name = "block4_branch2_pooling".to_owned();
    assert!(turned(&profile) >= profile.layers.len());
}

#[test]
fn one_bar_that_dwarfs_the_others_is_cut_off_and_says_how_high_it_is() {
    let mut profile = published().remove(0);
    let cut = "A bar with a gap goes on; its whole height is written above it.";
    let flat = svg(&profile).expect("a picture");
    let accelerator = profile.header.processors[1].name.clone();
    let row = profile
        .times
        .iter_mut()
        .find(|row| row.processor == accelerator && row.layer == 3);
    let time = &mut row.expect("layer 3 on the accelerator").time;
    time.compute = layerlab_profiles::summary::Estimate::normal(
        layerlab_profiles::SignedNanos::from_nanos(50_000_000),
        Some(1e3),
    );
    let steep = svg(&profile).expect("a picture");
    assert!(steep.matches(cut).count() > flat.matches(cut).count());
    let over_bar = |text: &str| {
        words(text)
            .iter()
            .any(|word| word.text.starts_with("50.") && word.text.ends_with(" ms"))
    };
    assert!(over_bar(&steep));
}

#[test]
fn times_below_zero_are_explained() {
    let mut profile = published().remove(0);
    let below = "Below zero: layer times are differences";
    let accelerator = profile.header.processors[1].name.clone();
    let rows = profile
        .times
        .iter_mut()
        .filter(|row| row.processor == accelerator);
    for row in rows {
        let nanos = layerlab_profiles::SignedNanos::from_nanos;
        row.time.compute = layerlab_profiles::summary::Estimate {
            value: nanos(if row.layer == 2 { -4_000 } else { 4_000 }),
            ci95: Some((nanos(-9_000), nanos(9_000))),
        };
    }
    let svg = svg(&profile).expect("a picture");
    assert_eq!(svg.matches(below).count(), 1);
    assert!(svg.contains("A ring at the foot"));
}
