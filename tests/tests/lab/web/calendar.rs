//! The calendar: what is planned for the days to come, in words.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use layerlab_lab::recurrence::Recurrence;
use layerlab_lab::when::moment;
use layerlab_tests::web_lab::on_the_web_with;

use super::super::job;
use super::{models, started};

/// Where the lab is: no clock is ever put back there, and it is far from UTC.
const ZONE: &str = "Asia/Kolkata";

/// What a part of a page says, without its tags and pictures.
fn text(markup: &str) -> String {
    let pieces = markup.split('<').enumerate().map(|(place, piece)| {
        let words = piece.split_once('>').map(|(_, words)| words);
        words.unwrap_or(if place == 0 { piece } else { "" })
    });
    pieces.collect()
}

#[test]
fn each_day_says_what_is_planned() {
    let lab = on_the_web_with(&models(), "[lab]\nwindow = \"22:00-07:00\"\n")
        .with_variable("TZ", ZONE.into());
    let (_daemon, nobody) = started(&lab);
    let viewer = nobody.with_role(&lab, "viewer");
    let empty = text(&viewer.get("/calendar").body);
    for nothing in [
        "No reservation.",
        "No job comes again.",
        "No device is left alone.",
    ] {
        assert!(empty.contains(nothing), "{nothing}: {empty}");
    }

    // What is the same as another is not taken.
    let submit = |name: &str, keys: &str, samples: u32| {
        let device = "[[devices]]\nserial = \"mate10pro\"\n[measure]\ndesign = \"local\"\n";
        let rest = format!("{device}samples = {samples}\n");
        lab.submit(&format!(
            "name = {name:?}\n{keys}\n{}",
            job("alexnet", &rest)
        ));
    };
    submit("whenever", "not-before = \"30d\"", 20);
    let own = "window = \"16:00-20:00 UTC\"\ndeadline = \"30d\"";
    submit("afternoons", own, 30);
    submit("every night", "every = \"30 23 * * *\"", 40);
    lab.succeed(&["job", "pause", "2"]);
    let reserve = [
        "reserve",
        "mate10pro",
        "--from",
        "tomorrow 09:00",
        "--until",
    ];
    lab.succeed(&[&reserve[..], &["tomorrow 17:00", "--note", "a <demo>"]].concat());
    lab.succeed(&["quarantine", "add", "oneplus7", "--reason", "it sulks"]);

    let zone = TimeZone::get(ZONE).expect("a zone");
    let every: Recurrence = format!("30 23 * * * {ZONE}").parse().expect("a recurrence");
    let next = || {
        let now = Timestamp::now();
        let at = every.next_after(now).expect("it comes");
        moment(at, now, &zone)
    };
    let before = next();
    let page = viewer.get("/calendar").body;
    let possible = [before, next()];
    let (days, rest) = page.split_once("<h2>Windows").expect("days, and the rest");
    let days: Vec<&str> = days.split("<section class=\"day\"").skip(1).collect();
    assert_eq!(days.len(), 7);
    let taken = lab.kept().reservations[&1].from.to_zoned(zone.clone());
    let taken = taken.strftime("%a %-d %b").to_string();
    for (number, day) in days.iter().enumerate() {
        let said = text(day);
        assert!(
            said.contains("In the lab's window: until 07:00, from 22:00"),
            "{said}"
        );
        // Four in the afternoon in Greenwich.
        assert!(
            said.contains("2 afternoons: until 01:30, from 21:30"),
            "{said}"
        );
        assert!(!said.contains("whenever"), "{said}");
        // It may have come already today.
        assert!(
            number == 0 || said.contains("3 every night at 23:30"),
            "{said}"
        );
        let reservation = "mate10pro simulated for a &lt;demo&gt;: 09:00 to 17:00";
        assert_eq!(said.contains(reservation), said.contains(&taken), "{said}");
        assert_ne!(
            said.contains(reservation),
            said.contains("No reservation."),
            "{said}"
        );
    }
    assert!(page.contains("a &lt;demo&gt;"), "{page}");
    let rest = text(rest);
    assert!(
        rest.contains("The lab's22:00-07:00Jobs that follow it1 whenever, 3 every night"),
        "{rest}"
    );
    assert!(
        rest.contains("2 afternoons paused16:00-20:00 UTC; not after"),
        "{rest}"
    );
    assert!(
        possible
            .iter()
            .any(|next| rest.contains(&format!("30 23 * * *{next}"))),
        "{rest}"
    );
    assert!(rest.contains("oneplus7 simulated until"), "{rest}");
    assert!(rest.contains(": it sulks"), "{rest}");
}
