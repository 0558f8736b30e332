//! Points in time and lengths, as users write and read them.

use super::*;

fn berlin() -> TimeZone {
    TimeZone::get("Europe/Berlin").expect("a zone")
}

fn at(text: &str) -> Timestamp {
    text.parse().expect("an instant")
}

/// A Friday evening.
const NOW: &str = "2026-11-20T22:30:15+01:00";

#[test]
fn what_users_write_is_understood() {
    for (text, direction, meant) in [
        ("22:00", Direction::Next, "2026-11-21T22:00+01:00"),
        ("22:00", Direction::Last, "2026-11-20T22:00+01:00"),
        ("23:00", Direction::Next, "2026-11-20T23:00+01:00"),
        ("23:00", Direction::Last, "2026-11-19T23:00+01:00"),
        ("7:00", Direction::Next, "2026-11-21T07:00+01:00"),
        ("22:30:15", Direction::Next, "2026-11-21T22:30:15+01:00"),
        ("22:30:15", Direction::Last, "2026-11-20T22:30:15+01:00"),
        ("tomorrow 07:00", Direction::Next, "2026-11-21T07:00+01:00"),
        ("Tomorrow 07:00", Direction::Last, "2026-11-21T07:00+01:00"),
        ("today 07:00", Direction::Last, "2026-11-20T07:00+01:00"),
        (
            "yesterday  22:00",
            Direction::Last,
            "2026-11-19T22:00+01:00",
        ),
        (
            "2026-11-21 07:00",
            Direction::Next,
            "2026-11-21T07:00+01:00",
        ),
        (
            "2026-07-21 07:00",
            Direction::Next,
            "2026-07-21T07:00+02:00",
        ),
        (
            "2026-11-21T07:00",
            Direction::Next,
            "2026-11-21T07:00+01:00",
        ),
        ("2026-11-21", Direction::Next, "2026-11-21T00:00+01:00"),
        (
            "2026-11-21T07:00+01:00",
            Direction::Next,
            "2026-11-21T07:00+01:00",
        ),
        (
            "2026-11-21T07:00:30+05:30",
            Direction::Next,
            "2026-11-21T07:00:30+05:30",
        ),
        ("2026-11-21T07:00Z", Direction::Next, "2026-11-21T07:00Z"),
        (" 8h ", Direction::Next, "2026-11-21T06:30:15+01:00"),
        ("8h", Direction::Last, "2026-11-20T14:30:15+01:00"),
        ("1h 30m", Direction::Next, "2026-11-21T00:00:15+01:00"),
        ("30m", Direction::Next, "2026-11-20T23:00:15+01:00"),
    ] {
        let point = point(text, at(NOW), direction, &berlin());
        assert_eq!(point, Ok(at(meant)), "{text} {direction:?}");
    }
}

#[test]
fn the_clocks_may_change_on_the_way() {
    for (text, now, direction, meant) in [
        // Skipped: as much later.
        (
            "02:30",
            "2026-03-29T00:00Z",
            Direction::Next,
            "2026-03-29T01:30Z",
        ),
        (
            "02:30",
            "2026-03-29T01:30Z",
            Direction::Last,
            "2026-03-29T01:30Z",
        ),
        // Repeated: the first.
        (
            "02:30",
            "2026-10-24T23:00Z",
            Direction::Next,
            "2026-10-25T00:30Z",
        ),
        (
            "02:30",
            "2026-10-25T00:30Z",
            Direction::Next,
            "2026-10-26T01:30Z",
        ),
        (
            "02:30",
            "2026-10-25T02:00Z",
            Direction::Last,
            "2026-10-25T00:30Z",
        ),
        (
            "24h",
            "2026-03-28T12:00Z",
            Direction::Next,
            "2026-03-29T12:00Z",
        ),
        (
            "12:00",
            "2026-03-28T11:00Z",
            Direction::Next,
            "2026-03-29T10:00Z",
        ),
    ] {
        let point = point(text, at(now), direction, &berlin());
        assert_eq!(point, Ok(at(meant)), "{text} at {now}");
    }
}

#[test]
fn what_is_wrong_is_named() {
    const POINT: &str = "is no point in time; write one such as 22:00, `tomorrow 07:00`, `2026-11-21 07:00`, \
                         2026-11-21T07:00+01:00 or 8h";
    const DATE: &str = "is no date; write YYYY-MM-DD, such as 2026-11-21";
    const TIME: &str = "is no time of day; write HH:MM, such as 22:00";
    const FAR: &str = "is too far away; write a point in time before the year 9999";
    for (text, named, message) in [
        ("", "", POINT),
        ("soon", "soon", POINT),
        ("8", "8", POINT),
        ("next week", "next week", POINT),
        ("25:00", "25:00", TIME),
        ("22:60", "22:60", TIME),
        ("22:00:61", "22:00:61", TIME),
        ("22:00:+1", "22:00:+1", TIME),
        ("tomorrow noon", "noon", TIME),
        ("2026-02-30 07:00", "2026-02-30", DATE),
        ("2026-11-21 7h", "7h", TIME),
        ("21-11-2026", "21-11-2026", DATE),
        ("9000years", "9000years", FAR),
    ] {
        let error = point(text, at(NOW), Direction::Next, &berlin()).expect_err(text);
        assert_eq!(error.to_string(), format!("`{named}` {message}"));
    }
    assert_eq!(
        period("ten minutes").expect_err("words").to_string(),
        "`ten minutes` is no duration; write a number with its unit, such as 40s, 30m, 8h or 7d"
    );
}

#[test]
fn moments_are_printed_for_people() {
    let zone = berlin();
    for (text, shown) in [
        ("2026-11-21T07:00+01:00", "Sat 21 Nov 07:00"),
        ("2026-11-03T06:05:59Z", "Tue 3 Nov 07:05"),
        ("2026-12-31T23:30Z", "Fri 1 Jan 2027 00:30"),
    ] {
        assert_eq!(moment(at(text), at(NOW), &zone), shown);
    }
}

#[test]
fn lengths_are_printed_for_people() {
    for (seconds, shown) in [
        (0.0, "0 s"),
        (0.4, "0 s"),
        (40.0, "40 s"),
        (59.4, "59 s"),
        (59.6, "1 min"),
        (14.0 * 60.0, "14 min"),
        (3569.0, "59 min"),
        (3571.0, "1 h 00 min"),
        (3900.0, "1 h 05 min"),
        (47.0 * 3600.0 + 59.0 * 60.0, "47 h 59 min"),
        (47.0 * 3600.0 + 59.0 * 60.0 + 40.0, "2 d 00 h"),
        (49.0 * 3600.0 + 29.0 * 60.0, "2 d 01 h"),
        (49.0 * 3600.0 + 31.0 * 60.0, "2 d 02 h"),
        (51.0 * 3600.0, "2 d 03 h"),
    ] {
        assert_eq!(length(Duration::from_secs_f64(seconds)), shown);
    }
}
