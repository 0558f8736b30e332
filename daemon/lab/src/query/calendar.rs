//! The days to come: when jobs may be worked on, which jobs come again, and who has taken devices.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan};

use super::open_reservations;
use crate::record::{Job, JobState, Kept, Reservation};
use crate::window::Window;

/// So many days are planned ahead, the present one included.
const DAYS: i32 = 7;

/// From when until when something is so, on one day.
pub type OpenHours = Vec<(Timestamp, Timestamp)>;

/// The days to come.
#[derive(Clone, Debug, PartialEq)]
pub struct Calendar<'a> {
    /// The present day and those after it.
    pub days: Vec<CalendarDay<'a>>,
    /// The jobs that have a window of their own and are not over.
    pub with_window: Vec<(&'a Job, &'a Window)>,
    /// Those that follow the lab's.
    pub without_window: Vec<&'a Job>,
    /// The jobs that come again, and when they do next.
    pub recurring: Vec<(&'a Job, Timestamp)>,
}

/// A day, by the clock of whoever asks.
#[derive(Clone, Debug, PartialEq)]
pub struct CalendarDay<'a> {
    /// Its midnight.
    pub begins: Timestamp,
    /// The midnight after it.
    pub ends: Timestamp,
    /// When jobs are worked on that follow the lab's window.
    pub lab: OpenHours,
    /// When those with a window of their own are, each not before its time and not after its deadline.
    pub jobs: Vec<(&'a Job, OpenHours)>,
    /// The jobs that come again on this day, and when they first do; what has been before `now` is left out.
    pub coming: Vec<(&'a Job, Timestamp)>,
    /// Devices that are taken on this day.
    pub reservations: Vec<&'a Reservation>,
}

impl<'a> Calendar<'a> {
    /// The days from `now` on, as `zone` divides them. `window` is the lab's.
    pub fn of(kept: &'a Kept, window: &Window, now: Timestamp, zone: &TimeZone) -> Calendar<'a> {
        let live = kept.jobs.values().filter(|job| !job.state.is_over());
        let with_window = live
            .clone()
            .filter_map(|job| Some((job, job.spec.window.as_ref()?)));
        let mut calendar = Calendar {
            days: Vec::new(),
            with_window: with_window.collect(),
            without_window: live.filter(|job| job.spec.window.is_none()).collect(),
            recurring: coming(kept, now),
        };
        let reserved = open_reservations(kept, now);
        let today = now.to_zoned(zone.clone()).date();
        let midnight = |days: i32| {
            let day = today.checked_add(days.days()).ok()?;
            Some(day.to_zoned(zone.clone()).ok()?.timestamp())
        };
        for (begins, ends) in (0..DAYS).filter_map(|day| midnight(day).zip(midnight(day + 1))) {
            let of_job = |(job, window): &(&'a Job, &Window)| {
                let from = job.spec.not_before.map_or(begins, |at| at.max(begins));
                let until = job.spec.deadline.map_or(ends, |at| at.min(ends));
                (*job, window.open_between(from, until))
            };
            // What comes at midnight is of the day that begins then.
            let just_before = begins.checked_sub(SignedDuration::from_nanos(1));
            let mut coming = coming(kept, just_before.unwrap_or(begins).max(now));
            coming.retain(|(_, at)| *at < ends);
            let reservations = reserved.iter().copied();
            calendar.days.push(CalendarDay {
                begins,
                ends,
                lab: window.open_between(begins, ends),
                jobs: calendar.with_window.iter().map(of_job).collect(),
                coming,
                reservations: reservations
                    .filter(|one| one.from < ends && one.until > begins)
                    .collect(),
            });
        }
        calendar
    }
}

/// The jobs that come again after `at`, and when they first do.
fn coming(kept: &Kept, at: Timestamp) -> Vec<(&Job, Timestamp)> {
    let jobs = kept.jobs.values();
    let recurring = jobs.filter(|job| job.state == JobState::Recurring);
    recurring
        .filter_map(|job| Some((job, job.spec.every.as_ref()?.next_after(at)?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::JobSpec;

    fn at(text: &str) -> Timestamp {
        text.parse().expect("an instant")
    }

    fn job(id: i64, state: JobState, spec: JobSpec) -> (i64, Job) {
        let job = Job {
            id,
            spec,
            content_sha256: String::new(),
            submitted: at("2026-10-01T00:00:00Z"),
            occurrence_of: None,
            state,
        };
        (id, job)
    }

    fn lab() -> Kept {
        let own = JobSpec {
            window: Some("01:00-03:00 UTC".parse().expect("a window")),
            not_before: Some(at("2026-10-24T02:00:00Z")),
            deadline: Some(at("2026-10-26T01:30:00Z")),
            ..JobSpec::default()
        };
        let every = JobSpec {
            every: Some("0 0 * * sun Europe/Berlin".parse().expect("a recurrence")),
            ..JobSpec::default()
        };
        Kept {
            jobs: [
                job(1, JobState::Paused, own.clone()),
                job(2, JobState::Recurring, every),
                job(3, JobState::Done, own),
                job(4, JobState::Open, JobSpec::default()),
            ]
            .into(),
            reservations: [(1, "2026-10-23T10:00:00Z"), (2, "2026-10-25T22:00:00Z")]
                .map(|(id, from)| {
                    let (from, until) = (at(from), at("2026-10-26T06:00:00Z"));
                    let (device, note) = ("a".to_owned(), String::new());
                    let reservation = Reservation {
                        id,
                        device,
                        from,
                        until,
                        note,
                    };
                    (id, reservation)
                })
                .into(),
            ..Kept::default()
        }
    }

    #[test]
    fn a_night_is_of_both_of_its_days_also_when_the_clocks_change() {
        let berlin = TimeZone::get("Europe/Berlin").expect("a zone");
        let night = "22:00-07:00 Europe/Berlin".parse().expect("a window");
        let kept = lab();
        // A Friday; on the Sunday after it the clocks are put back.
        let calendar = Calendar::of(&kept, &night, at("2026-10-23T20:30:00Z"), &berlin);
        let lengths = calendar.days.iter().map(|day| {
            let length = day.ends.duration_since(day.begins);
            length.as_hours()
        });
        assert_eq!(lengths.collect::<Vec<_>>(), [24, 24, 25, 24, 24, 24, 24]);
        let sunday = &calendar.days[2];
        let hours = [
            ("2026-10-24T22:00:00Z", "2026-10-25T06:00:00Z"),
            ("2026-10-25T21:00:00Z", "2026-10-25T23:00:00Z"),
        ];
        assert_eq!(sunday.lab, hours.map(|(from, until)| (at(from), at(until))));
    }

    #[test]
    fn a_job_has_its_own_window_or_the_lab_s() {
        let kept = lab();
        let now = at("2026-10-23T20:30:00Z");
        let calendar = Calendar::of(&kept, &Window::ALWAYS, now, &TimeZone::UTC);
        let ids = |jobs: &[&Job]| jobs.iter().map(|job| job.id).collect::<Vec<_>>();
        assert_eq!(ids(&calendar.without_window), [2, 4]);
        let of_days: Vec<Vec<String>> = calendar
            .days
            .iter()
            .map(|day| {
                assert_eq!(day.lab, [(day.begins, day.ends)]);
                let [(job, hours)] = day.jobs.as_slice() else {
                    panic!("{day:?}");
                };
                assert_eq!(job.id, 1);
                let words = hours.iter();
                words
                    .map(|(from, until)| format!("{from}/{until}"))
                    .collect()
            })
            .collect();
        assert_eq!(of_days[0], [""; 0]);
        assert_eq!(of_days[1], ["2026-10-24T02:00:00Z/2026-10-24T03:00:00Z"]);
        assert_eq!(of_days[2], ["2026-10-25T01:00:00Z/2026-10-25T03:00:00Z"]);
        assert_eq!(of_days[3], ["2026-10-26T01:00:00Z/2026-10-26T01:30:00Z"]);
        assert_eq!(of_days[4], [""; 0]);
    }

    #[test]
    fn what_comes_at_midnight_is_of_the_day_that_begins_then() {
        let berlin = TimeZone::get("Europe/Berlin").expect("a zone");
        let kept = lab();
        let now = at("2026-10-23T20:30:00Z");
        let calendar = Calendar::of(&kept, &Window::ALWAYS, now, &berlin);
        let sunday = at("2026-10-24T22:00:00Z");
        let coming: Vec<Vec<Timestamp>> = calendar
            .days
            .iter()
            .map(|day| day.coming.iter().map(|(_, at)| *at).collect())
            .collect();
        let none = Vec::new;
        let expected = [none(), none(), vec![sunday], none(), none(), none(), none()];
        assert_eq!(coming, expected);
        assert_eq!(calendar.recurring[0].1, sunday);
        let reserved: Vec<usize> = calendar
            .days
            .iter()
            .map(|day| day.reservations.len())
            .collect();
        assert_eq!(reserved, [1, 1, 2, 2, 0, 0, 0]);
    }
}
