//! Windows open and close when people expect it, also when the clocks change.

use jiff::SignedDuration;
use proptest::prelude::*;

use super::*;

const NANOSECOND: SignedDuration = SignedDuration::from_nanos(1);

fn window(text: &str) -> Window {
    text.parse().expect("a window")
}

fn at(text: &str) -> Timestamp {
    text.parse().expect("an instant")
}

fn open(until: &str) -> WindowState {
    WindowState::Open {
        until: Some(at(until)),
    }
}

fn closed(opens: &str) -> WindowState {
    WindowState::Closed { opens: at(opens) }
}

#[test]
fn a_night_is_open_until_the_morning_after() {
    // 2026-11-20 is a Friday.
    for (now, state) in [
        (
            "2026-11-20T21:59:59+01:00",
            closed("2026-11-20T22:00+01:00"),
        ),
        ("2026-11-20T22:00:00+01:00", open("2026-11-21T07:00+01:00")),
        ("2026-11-21T06:59:59+01:00", open("2026-11-21T07:00+01:00")),
        (
            "2026-11-21T07:00:00+01:00",
            closed("2026-11-23T22:00+01:00"),
        ),
        (
            "2026-11-22T23:00:00+01:00",
            closed("2026-11-23T22:00+01:00"),
        ),
        ("2026-11-24T01:00:00+01:00", open("2026-11-24T07:00+01:00")),
    ] {
        let window = window("22:00-07:00 Europe/Berlin, weekdays");
        assert_eq!(window.state(at(now)), state, "at {now}");
    }
}

#[test]
fn a_night_has_the_hours_that_the_clocks_give_it() {
    // Window, a moment within it, when it opened and closes, its hours.
    for (text, inside, opens, closes, hours) in [
        // Clocks go forward.
        (
            "22:00-07:00 Europe/Berlin",
            "2026-03-29T01:00Z",
            "2026-03-28T21:00Z",
            "2026-03-29T05:00Z",
            8.0,
        ),
        (
            "22:00-07:00 Europe/Berlin",
            "2027-03-28T01:00Z",
            "2027-03-27T21:00Z",
            "2027-03-28T05:00Z",
            8.0,
        ),
        // And back.
        (
            "22:00-07:00 Europe/Berlin",
            "2026-10-25T01:00Z",
            "2026-10-24T20:00Z",
            "2026-10-25T06:00Z",
            10.0,
        ),
        (
            "22:00-07:00 Europe/Berlin",
            "2027-10-31T01:00Z",
            "2027-10-30T20:00Z",
            "2027-10-31T06:00Z",
            10.0,
        ),
        (
            "22:00-07:00 America/New_York",
            "2026-03-08T07:00Z",
            "2026-03-08T03:00Z",
            "2026-03-08T11:00Z",
            8.0,
        ),
        (
            "22:00-07:00 America/New_York",
            "2026-11-01T06:00Z",
            "2026-11-01T02:00Z",
            "2026-11-01T12:00Z",
            10.0,
        ),
        // A zone at half an hour, and one that changes by half an hour.
        (
            "22:00-07:00 Asia/Kolkata",
            "2026-11-20T20:00Z",
            "2026-11-20T16:30Z",
            "2026-11-21T01:30Z",
            9.0,
        ),
        (
            "22:00-07:00 Australia/Lord_Howe",
            "2026-10-03T15:00Z",
            "2026-10-03T11:30Z",
            "2026-10-03T20:00Z",
            8.5,
        ),
        // Ends that the clocks skip move on by what they skip: 02:30 is 03:30 then.
        (
            "02:30-05:00 Europe/Berlin",
            "2026-03-29T02:00Z",
            "2026-03-29T01:30Z",
            "2026-03-29T03:00Z",
            1.5,
        ),
        (
            "22:00-02:30 Europe/Berlin",
            "2026-03-29T01:00Z",
            "2026-03-28T21:00Z",
            "2026-03-29T01:30Z",
            4.5,
        ),
        // Ends that come twice are meant the first time.
        (
            "02:30-05:00 Europe/Berlin",
            "2026-10-25T02:00Z",
            "2026-10-25T00:30Z",
            "2026-10-25T04:00Z",
            3.5,
        ),
        (
            "22:00-02:30 Europe/Berlin",
            "2026-10-24T23:00Z",
            "2026-10-24T20:00Z",
            "2026-10-25T00:30Z",
            4.5,
        ),
    ] {
        let window = window(text);
        let (opens, closes) = (at(opens), at(closes));
        let case = format!("{text} at {inside}");
        assert_eq!(
            window.state(at(inside)),
            WindowState::Open {
                until: Some(closes)
            },
            "{case}"
        );
        assert_eq!(
            window.state(opens - NANOSECOND),
            WindowState::Closed { opens },
            "{case}"
        );
        assert_eq!(
            window.state(opens),
            WindowState::Open {
                until: Some(closes)
            },
            "{case}"
        );
        assert_eq!(
            closes.duration_since(opens).as_secs_f64() / 3600.0,
            hours,
            "{case}"
        );
    }
}

#[test]
fn a_window_that_the_clocks_skip_does_not_open() {
    // 02:30 would be 03:30, after its end.
    let window = window("02:30-03:15 Europe/Berlin, sun");
    assert_eq!(
        window.state(at("2026-03-29T00:00Z")),
        closed("2026-04-05T00:30Z")
    );
}

#[test]
fn a_day_that_a_zone_skipped_is_not_worked_on_twice() {
    // Samoa went from 29 to 31 December 2011.
    let window = window("08:00-10:00 Pacific/Apia");
    assert_eq!(
        window.state(at("2011-12-29T20:00Z")),
        closed("2011-12-30T18:00Z")
    );
    assert_eq!(
        window.state(at("2011-12-30T18:00Z")),
        open("2011-12-30T20:00Z")
    );
    assert_eq!(
        window.state(at("2011-12-30T20:00Z")),
        closed("2011-12-31T18:00Z")
    );
}

#[test]
fn whole_days_join() {
    let all = [
        "always",
        "22:00-22:00 Europe/Berlin",
        "00:00-24:00 UTC, mon-sun",
        "00:00-00:00",
    ];
    for text in all {
        let state = window(text).state(at("2026-03-29T01:00Z"));
        assert_eq!(state, WindowState::Open { until: None }, "{text}");
    }
    let window = window("22:00-22:00 UTC, weekdays");
    assert_eq!(
        window.state(at("2026-11-18T22:00Z")),
        open("2026-11-21T22:00Z")
    );
    assert_eq!(
        window.state(at("2026-11-21T22:00Z")),
        closed("2026-11-23T22:00Z")
    );
}

#[test]
fn a_window_is_printed_as_it_can_be_read() {
    for (text, printed) in [
        ("ALWAYS", "always"),
        ("22:00-07:00", "22:00-07:00"),
        ("7:00 - 22:30 utc", "07:00-22:30 UTC"),
        (
            "22:00–07:00 europe/berlin, Weekdays",
            "22:00-07:00 Europe/Berlin, weekdays",
        ),
        (
            "22:00-07:00 mon-fri Europe/Berlin",
            "22:00-07:00 Europe/Berlin, weekdays",
        ),
        (
            "22:00-07:00, sat,Mon , WEDNESDAY",
            "22:00-07:00, mon,wed,sat",
        ),
        ("22:00-07:00 fri-mon", "22:00-07:00, mon,fri,sat,sun"),
        ("22:00-07:00 weekends daily", "22:00-07:00"),
        ("18:00-24:00", "18:00-00:00"),
    ] {
        let parsed = window(text);
        assert_eq!(parsed.to_string(), printed);
        assert_eq!(window(printed), parsed, "{printed}");
        let json = serde_json::to_string(&parsed).expect("a string");
        assert_eq!(json, format!("\"{printed}\""));
        assert_eq!(
            serde_json::from_str::<Window>(&json).expect("a window"),
            parsed
        );
    }
}

#[test]
fn what_is_wrong_is_named() {
    for (text, message) in [
        (
            "  ",
            "a window is missing; write one such as `22:00-07:00 Europe/Berlin, weekdays`, or `always`",
        ),
        (
            "nightly",
            "`nightly` is no span of hours; write HH:MM-HH:MM, such as 22:00-07:00, or `always`",
        ),
        (
            "22:00-",
            "`22:00-` is no span of hours; write HH:MM-HH:MM, such as 22:00-07:00, or `always`",
        ),
        (
            "25:00-07:00",
            "`25:00` is no time of day; write HH:MM, such as 22:00",
        ),
        (
            "24:00-07:00",
            "`24:00` is no time of day; write HH:MM, such as 22:00",
        ),
        ("22-7", "`22` is no time of day; write HH:MM, such as 22:00"),
        (
            "22:00-7:5",
            "`7:5` is no time of day; write HH:MM, such as 22:00",
        ),
        (
            "22:00-07:00 Europe/Berln",
            "`Europe/Berln` is neither days nor a time zone; write days such as weekdays, mon-fri or mon,wed,sat, and \
             a zone such as Europe/Berlin",
        ),
        (
            "22:00-07:00 mon-fry",
            "`mon-fry` is neither days nor a time zone; write days such as weekdays, mon-fri or mon,wed,sat, and \
             a zone such as Europe/Berlin",
        ),
        (
            "22:00-07:00 Europe/Berlin UTC",
            "`Europe/Berlin` and `UTC` are two time zones; write one",
        ),
        (
            "always weekdays",
            "`always` has neither days nor a time zone; leave `weekdays` out, or write hours such as 00:00-24:00",
        ),
    ] {
        let error = text.parse::<Window>().expect_err(text);
        assert_eq!(error.to_string(), message);
    }
}

fn any_window() -> impl Strategy<Value = Window> {
    let zone = prop::sample::select(vec![
        "UTC",
        "Europe/Berlin",
        "America/New_York",
        "Asia/Kolkata",
        "Australia/Lord_Howe",
        "America/Santiago",
    ]);
    // Around the hours at which clocks change, more often than elsewhere.
    let time = prop_oneof![0..24 * 60, 0..4 * 60]
        .prop_map(|minute| format!("{:02}:{:02}", minute / 60, minute % 60));
    let days = prop::collection::vec(
        prop::sample::select(vec!["mon", "tue", "wed", "thu", "fri", "sat", "sun"]),
        0..7,
    );
    (time.clone(), time, zone, days).prop_map(|(opens, closes, zone, days)| {
        window(&format!("{opens}-{closes} {zone} {}", days.join(",")))
    })
}

/// Anywhere in two years, or near a change of the clocks.
fn any_moment() -> impl Strategy<Value = Timestamp> {
    let start = at("2026-01-01T00:00Z").as_second();
    let changes = [
        "2026-03-08T07:00Z",
        "2026-03-29T01:00Z",
        "2026-04-04T15:00Z",
        "2026-10-25T01:00Z",
        "2026-11-01T06:00Z",
    ];
    let change = prop::sample::select(changes.map(|change| at(change).as_second()).to_vec());
    let near = (change, -40 * 3600..40 * 3600_i64).prop_map(|(change, offset)| change + offset);
    prop_oneof![start..start + 2 * 365 * 86400, near]
        .prop_map(|second| Timestamp::from_second(second).expect("in range"))
}

proptest! {
    #[test]
    fn it_opens_and_closes_when_it_says(window in any_window(), now in any_moment()) {
        match window.state(now) {
            WindowState::Open { until: None } => {
                prop_assert_eq!(window.state(now + SignedDuration::from_hours(1000)), window.state(now));
            }
            WindowState::Open { until: Some(until) } => {
                prop_assert!(until > now);
                prop_assert_eq!(window.state(until - NANOSECOND), window.state(now));
                let closed = matches!(window.state(until), WindowState::Closed { opens } if opens > until);
                prop_assert!(closed);
            }
            WindowState::Closed { opens } => {
                prop_assert!(opens > now);
                prop_assert_eq!(window.state(opens - NANOSECOND), window.state(now));
                let open = matches!(window.state(opens), WindowState::Open { until: Some(until) } if until > opens);
                prop_assert!(open);
            }
        }
    }

    #[test]
    fn nothing_changes_between_the_boundaries(window in any_window(), now in any_moment(), part in 0.0..1.0_f64) {
        let boundary = match window.state(now) {
            WindowState::Open { until: None } => return Ok(()),
            WindowState::Open { until: Some(until) } => until,
            WindowState::Closed { opens } => opens,
        };
        let between = now + boundary.duration_since(now).mul_f64(part);
        prop_assert_eq!(window.state(between), window.state(now));
    }

    #[test]
    fn it_is_printed_as_it_can_be_read(any in any_window()) {
        prop_assert_eq!(window(&any.to_string()), any);
    }
}
