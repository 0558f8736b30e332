//! Jobs recur when people expect it, also when the clocks change.

use proptest::prelude::*;

use super::*;

fn recurrence(text: &str) -> Recurrence {
    text.parse().expect("a recurrence")
}

fn at(text: &str) -> Timestamp {
    text.parse().expect("an instant")
}

/// All occurrences of `text` after `from` up to `to`, found forwards; backwards must give the same.
fn occurrences(text: &str, from: &str, to: &str) -> Vec<String> {
    let (recurrence, from, to) = (recurrence(text), at(from), at(to));
    let forwards =
        std::iter::successors(recurrence.next_after(from), |t| recurrence.next_after(*t));
    let forwards: Vec<Timestamp> = forwards.take_while(|t| *t <= to).collect();
    let before = |t: &Timestamp| recurrence.latest_before(*t - SignedDuration::from_nanos(1));
    let backwards = std::iter::successors(recurrence.latest_before(to), before);
    let mut backwards: Vec<Timestamp> = backwards.take_while(|t| *t > from).collect();
    backwards.reverse();
    assert_eq!(forwards, backwards, "{text}");
    let zone = recurrence.zone.rules();
    let shown = forwards.into_iter().map(|t| t.to_zoned(zone.clone()));
    shown
        .map(|t| t.strftime("%d. %H:%M %:z").to_string())
        .collect()
}

#[test]
fn nicknames_mean_what_cron_means_by_them() {
    // A Friday.
    let friday = at("2026-11-20T00:00:00Z");
    for (nickname, next) in [
        ("@hourly", "2026-11-20T01:00:00Z"),
        ("@daily", "2026-11-21T00:00:00Z"),
        ("@midnight", "2026-11-21T00:00:00Z"),
        ("@weekly", "2026-11-22T00:00:00Z"),
        ("@monthly", "2026-12-01T00:00:00Z"),
        ("@yearly", "2027-01-01T00:00:00Z"),
        ("@annually", "2027-01-01T00:00:00Z"),
    ] {
        let found = recurrence(&format!("{nickname} UTC")).next_after(friday);
        assert_eq!(found, Some(at(next)), "{nickname}");
    }
}

#[test]
fn a_weekday_job_comes_on_weekdays() {
    let nightly = recurrence("0 22 * * mon-fri Europe/Berlin");
    for (t, next, latest) in [
        (
            "2026-11-20T20:59:59Z",
            "2026-11-20T21:00Z",
            "2026-11-19T21:00Z",
        ),
        (
            "2026-11-20T20:59:59.5Z",
            "2026-11-20T21:00Z",
            "2026-11-19T21:00Z",
        ),
        (
            "2026-11-20T21:00Z",
            "2026-11-23T21:00Z",
            "2026-11-20T21:00Z",
        ),
        (
            "2026-11-20T21:00:00.5Z",
            "2026-11-23T21:00Z",
            "2026-11-20T21:00Z",
        ),
        (
            "2026-11-22T12:00Z",
            "2026-11-23T21:00Z",
            "2026-11-20T21:00Z",
        ),
    ] {
        assert_eq!(nightly.next_after(at(t)), Some(at(next)), "after {t}");
        assert_eq!(nightly.latest_before(at(t)), Some(at(latest)), "before {t}");
    }
}

#[test]
fn a_time_of_day_that_the_clocks_skip_comes_once() {
    let day = |text| occurrences(text, "2026-03-28T12:00Z", "2026-03-30T10:00Z");
    assert_eq!(
        day("30 2 * * * Europe/Berlin"),
        ["29. 03:00 +02:00", "30. 02:30 +02:00"]
    );
    // Two that come at one moment are one.
    assert_eq!(
        day("0,30 2-3 29 * * Europe/Berlin"),
        ["29. 03:00 +02:00", "29. 03:30 +02:00"]
    );
    assert_eq!(
        occurrences(
            "30 2 8 * * America/New_York",
            "2026-03-08T00:00Z",
            "2026-03-09T00:00Z"
        ),
        ["08. 03:00 -04:00"]
    );
    assert_eq!(
        occurrences(
            "15 2 4 * * Australia/Lord_Howe",
            "2026-10-03T00:00Z",
            "2026-10-05T00:00Z"
        ),
        ["04. 02:30 +11:00"]
    );
}

#[test]
fn a_time_of_day_that_the_clocks_repeat_comes_once() {
    let day = |text| occurrences(text, "2026-10-24T12:00Z", "2026-10-26T10:00Z");
    assert_eq!(
        day("30 2 * * * Europe/Berlin"),
        ["25. 02:30 +02:00", "26. 02:30 +01:00"]
    );
    assert_eq!(
        day("0,30 2,14 25 * * Europe/Berlin"),
        [
            "25. 02:00 +02:00",
            "25. 02:30 +02:00",
            "25. 14:00 +01:00",
            "25. 14:30 +01:00"
        ]
    );
    assert_eq!(
        occurrences(
            "45 1 4,5 4 * Australia/Lord_Howe",
            "2026-04-03T12:00Z",
            "2026-04-05T12:00Z"
        ),
        ["04. 01:45 +11:00", "05. 01:45 +11:00"]
    );
}

#[test]
fn every_half_hour_is_every_half_hour() {
    assert_eq!(
        occurrences(
            "*/30 * * * * Europe/Berlin",
            "2026-03-29T00:20Z",
            "2026-03-29T01:40Z"
        ),
        ["29. 01:30 +01:00", "29. 03:00 +02:00", "29. 03:30 +02:00"]
    );
    assert_eq!(
        occurrences(
            "*/30 * * * * Europe/Berlin",
            "2026-10-25T00:00Z",
            "2026-10-25T02:00Z"
        ),
        [
            "25. 02:30 +02:00",
            "25. 02:00 +01:00",
            "25. 02:30 +01:00",
            "25. 03:00 +01:00"
        ]
    );
}

#[test]
fn days_that_not_every_month_has_are_waited_for() {
    assert_eq!(
        recurrence("0 22 31 * * UTC").next_after(at("2026-04-01T00:00Z")),
        Some(at("2026-05-31T22:00Z"))
    );
    assert_eq!(
        recurrence("0 22 29 feb * UTC").next_after(at("2026-04-01T00:00Z")),
        Some(at("2028-02-29T22:00Z"))
    );
    assert_eq!(
        recurrence("0 22 L * * UTC").next_after(at("2026-02-01T00:00Z")),
        Some(at("2026-02-28T22:00Z"))
    );
}

#[test]
fn a_recurrence_is_printed_as_it_was_written() {
    for (text, printed) in [
        (
            "0  22 * *   mon-fri europe/berlin ",
            "0 22 * * mon-fri Europe/Berlin",
        ),
        ("*/15 * * * *", "*/15 * * * *"),
        ("@daily UTC", "@daily UTC"),
        ("@hourly", "@hourly"),
    ] {
        let parsed = recurrence(text);
        assert_eq!(parsed.to_string(), printed);
        assert_eq!(recurrence(printed), parsed);
        let json = serde_json::to_string(&parsed).expect("a string");
        assert_eq!(
            serde_json::from_str::<Recurrence>(&json).expect("one"),
            parsed
        );
    }
}

#[test]
fn what_is_wrong_is_named() {
    let texts = [
        "",
        "0 22 * *",
        "0 22 * * mon-fri Europe/Berln",
        "0 0 22 * * mon-fri",
        "0 0 22 * * mon-fri Europe/Berlin",
        "60 22 * * *",
        "0 24 * * *",
        "0 22 0 * *",
        "0 22 * 13 *",
        "0 22 * * fry",
        "0 22 * * \u{1f4f1}",
        "nightly at ten o clock",
        "*/0 * * * *",
        "@nightly",
        "@reboot",
        "0 22 30 feb *",
        "0 22 31 apr,jun *",
    ];
    let messages = texts.map(|text| {
        let error = text.parse::<Recurrence>().expect_err(text);
        format!("{text}\n  {error}")
    });
    let expected = include_str!("refusals.txt");
    assert_eq!(
        messages.join("\n"),
        expected.trim_end(),
        "\n{}\n",
        messages.join("\n")
    );
}

fn any_recurrence() -> impl Strategy<Value = Recurrence> {
    let minute = prop::sample::select(vec!["0", "30", "*", "*/20", "5,50", "10-12"]);
    let hour = prop::sample::select(vec!["*", "*/2", "0", "1", "2", "3", "22", "1-3", "0,2,14"]);
    let day = prop::sample::select(vec!["*", "1", "29-31", "L"]);
    let weekday = prop::sample::select(vec!["*", "mon-fri", "sun", "sat,sun"]);
    let zone = prop::sample::select(vec![
        "UTC",
        "Europe/Berlin",
        "America/New_York",
        "Australia/Lord_Howe",
        "America/Santiago",
    ]);
    (minute, hour, day, weekday, zone).prop_map(|(minute, hour, day, weekday, zone)| {
        recurrence(&format!("{minute} {hour} {day} * {weekday} {zone}"))
    })
}

fn any_moment() -> impl Strategy<Value = Timestamp> {
    let start = at("2026-01-01T00:00Z").as_millisecond();
    let changes = [
        "2026-03-08T07:00Z",
        "2026-03-29T01:00Z",
        "2026-04-04T15:00Z",
        "2026-10-03T15:30Z",
        "2026-10-25T01:00Z",
        "2026-11-01T06:00Z",
    ];
    let change = prop::sample::select(changes.map(|t| at(t).as_millisecond()).to_vec());
    let near =
        (change, -4 * 3_600_000..4 * 3_600_000_i64).prop_map(|(change, offset)| change + offset);
    prop_oneof![start..start + 365 * 86_400_000, near]
        .prop_map(|t| Timestamp::from_millisecond(t).expect("in range"))
}

proptest! {
    #[test]
    fn forwards_and_backwards_agree(recurrence in any_recurrence(), t in any_moment()) {
        let next = recurrence.next_after(t).expect("it comes again");
        let latest = recurrence.latest_before(t).expect("it has come");
        prop_assert!(latest <= t && t < next, "{} <= {} < {}", latest, t, next);
        // Nothing lies between the two, seen from either.
        prop_assert_eq!(recurrence.next_after(latest), Some(next));
        prop_assert_eq!(recurrence.latest_before(next), Some(next));
        let just_before = next - SignedDuration::from_nanos(1);
        prop_assert_eq!(recurrence.latest_before(just_before), Some(latest));
    }
}
