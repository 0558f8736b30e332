//! What is kept is there again, in order, whatever happens to the disk.

mod full_disk;
mod labs;
#[path = "../../../../tests/src/postgres.rs"]
#[expect(unreachable_pub, reason = "it is shared with the tests of the whole")]
mod postgres;
pub(super) mod samples;
mod server;
#[path = "../../../../tests/src/skip.rs"]
#[expect(unreachable_pub, reason = "it is shared with the tests of the whole")]
mod skip;

use std::path::Path;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::join_all;
use jiff::Timestamp;
use layerlab_protocol::{Entry, Event as JournalEvent};

use super::*;
use crate::config::Config;
use crate::journal;
use crate::record::{Job, JobState, JobWithRuns, RecordChange, Run, RunState};
use crate::state::{LabState, Rules};
use labs::{TestLab, on_both};
use layerlab_campaign::CampaignPart;
use samples::{device, entries, event, job, reservation, run, run_id, time};

on_both! {
    running:
    everything_comes_back,
    events_are_found_by_time,
    calls_that_wait_together_are_worked_off_in_order_and_answered_each,
    what_was_sent_is_kept_even_if_nobody_waits,
    a_lab_has_one_daemon,
    entries_follow_each_other_and_may_come_again,
    old_journals_go_with_what_their_runs_say_of_it,
    jobs_that_are_over_are_found_when_they_are_asked_for,
    an_event_does_not_change,
    a_store_of_a_newer_version_is_left_alone,
    a_record_of_a_newer_version_is_refused_with_a_remedy,
    a_broken_record_is_not_read,
    a_large_lab_is_there_again,
    events_are_read_on_from_a_number_and_the_last_one_is_told,
    a_reader_says_what_it_misses,
    what_is_read_is_as_of_one_moment;
    paused:
    a_paused_clock_waits_for_the_disk;
}

fn journal(name: &str, entries: Vec<Entry>) -> Vec<RecordChange> {
    vec![RecordChange::Entries {
        run: run_id(name),
        entries,
    }]
}

async fn everything_comes_back(lab: &TestLab) {
    let (store, empty) = lab.open().await;
    assert_eq!(empty.lab.len(), 32);
    assert_eq!(
        empty,
        Kept {
            lab: empty.lab.clone(),
            host: empty.host.clone(),
            ..Kept::default()
        }
    );
    let changes = vec![
        RecordChange::Job(job(1)),
        RecordChange::Run(run(1)),
        RecordChange::Run(run(2)),
        RecordChange::Device(device("PHONE1")),
        RecordChange::Reservation(reservation(1)),
        RecordChange::Reservation(reservation(2)),
        RecordChange::Event(event(1)),
        RecordChange::Event(event(2)),
        RecordChange::Entries {
            run: run_id("run-1"),
            entries: entries(1..=20),
        },
    ];
    store.keep(changes).await.expect("kept");
    let mut done = run(2);
    done.state = RunState::Done;
    done.phone = Some("PHONE1".to_owned());
    let changes = vec![
        RecordChange::ReservationGone(1),
        RecordChange::Run(done.clone()),
    ];
    store.keep(changes).await.expect("kept");

    let expected = Kept {
        lab: empty.lab,
        jobs: [(1, job(1))].into(),
        runs: [(1, run(1)), (2, done)].into(),
        devices: [("PHONE1".to_owned(), device("PHONE1"))].into(),
        reservations: [(2, reservation(2))].into(),
        last_event: 2,
        last_job: 1,
        last_run: 2,
        ..Kept::default()
    };
    let reader = lab.reader().await;
    assert_eq!(reader.all().await.expect("all"), expected);
    let (store, kept) = lab.reopened(store).await;
    let host = empty.host;
    assert_eq!(kept, Kept { host, ..expected });
    assert_eq!(
        store.entries(&run_id("run-1")).await.expect("entries"),
        entries(1..=20)
    );
    assert_eq!(
        reader.entries(&run_id("run-1")).await.expect("entries"),
        entries(1..=20)
    );
    assert_eq!(*store.trouble().borrow(), None);
}

async fn events_are_found_by_time(lab: &TestLab) {
    let (store, _) = lab.open().await;
    // Fractions of different lengths: texts that are not padded would be in another order.
    let times = ["00:00:00Z", "00:00:00.5Z", "00:00:00.25Z", "00:00:01Z"];
    for (number, time) in (1..).zip(times) {
        let mut event = event(number);
        event.at = format!("2026-03-01T{time}").parse().expect("a time");
        store
            .keep(vec![RecordChange::Event(event)])
            .await
            .expect("kept");
    }
    let reader = lab.reader().await;
    let between = async |since: &str, until: &str| -> Vec<i64> {
        let time = |text: &str| -> Timestamp { text.parse().expect("a time") };
        let events = reader.events(time(since), time(until)).await;
        let events = events.expect("events").into_iter();
        events.map(|event| event.number).collect()
    };
    let all = between("2026-03-01T00:00:00Z", "2026-03-01T00:00:02Z").await;
    assert_eq!(all, [1, 2, 3, 4]);
    let some = between("2026-03-01T00:00:00.2Z", "2026-03-01T00:00:01Z").await;
    assert_eq!(some, [2, 3]);
}

async fn calls_that_wait_together_are_worked_off_in_order_and_answered_each(lab: &TestLab) {
    let (store, _) = lab.open().await;
    // More than the queue holds, each from a task of its own.
    let calls = (1..=1000).map(|number| {
        let store = store.clone();
        let mut job = job(1);
        job.spec.priority = number;
        let mut changes = vec![RecordChange::Job(job)];
        if number == 500 {
            changes.push(RecordChange::Event(event(1)));
            changes.extend(journal("gap", entries(2..=2)));
        }
        tokio::spawn(async move { store.keep(changes).await })
    });
    let answers = join_all(calls).await;
    for (number, answer) in (1..).zip(answers) {
        let answer = answer.expect("a task");
        assert_eq!(answer.is_err(), number == 500, "{number}: {answer:?}");
    }
    let (_store, kept) = lab.reopened(store).await;
    assert_eq!(kept.jobs[&1].spec.priority, 1000);
    assert_eq!(kept.last_event, 0, "a call that is refused leaves nothing");
}

async fn what_was_sent_is_kept_even_if_nobody_waits(lab: &TestLab) {
    let (store, _) = lab.open().await;
    for number in 1..=3 {
        let unanswered = store
            .keep(vec![RecordChange::Run(run(number))])
            .now_or_never();
        assert!(unanswered.is_none());
    }
    let (_store, kept) = lab.reopened(store).await;
    assert_eq!(kept.runs.len(), 3);
}

async fn a_lab_has_one_daemon(lab: &TestLab) {
    let (store, _) = lab.open().await;
    let clone = store.clone();
    assert_eq!(
        lab.refusal().await,
        format!(
            "another layerlab daemon (process {}) has the lab in {}; stop it first, or use another LAYERLAB_STATE",
            std::process::id(),
            lab.folder().display()
        )
    );
    drop(store);
    lab.refusal().await;
    clone.close().await;
    lab.open().await;
}

#[test]
fn a_daemon_whose_runtime_ends_leaves_what_it_acknowledged() {
    for lab in [Some(TestLab::in_a_file()), TestLab::on_a_server()] {
        let Some(lab) = lab else { continue };
        ends_its_runtime(&lab);
    }
}

fn ends_its_runtime(lab: &TestLab) {
    for round in 1..=3 {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        runtime.block_on(async {
            let (store, kept) = lab.open().await;
            assert_eq!(kept.last_event, round - 1);
            let changes = vec![RecordChange::Event(event(round))];
            store.keep(changes).await.expect("kept");
        });
    }
}

async fn entries_follow_each_other_and_may_come_again(lab: &TestLab) {
    let (store, _) = lab.open().await;
    let kept = async |store: &Store| store.entries(&run_id("r")).await.expect("entries");
    let keep = async |store: &Store, entries| store.keep(journal("r", entries)).await;
    assert_eq!(kept(&store).await, []);
    keep(&store, entries(1..=10)).await.expect("kept");
    keep(&store, entries(5..=12)).await.expect("overlapping");
    assert_eq!(kept(&store).await, entries(1..=12));
    let (store, _) = lab.reopened(store).await;
    keep(&store, entries(1..=12)).await.expect("all again");
    keep(&store, entries(13..=13)).await.expect("kept");
    assert_eq!(kept(&store).await, entries(1..=13));

    let refused = keep(&store, entries(15..=16)).await.expect_err("a gap");
    let sentence = "the lab's store refuses what contradicts it: entry 15 of run r was to follow entry 13; \
                    this is a bug of layerlab";
    assert_eq!(refused.to_string(), sentence);
    assert_eq!(store.trouble().borrow().as_deref(), Some(sentence));
    store
        .keep(vec![RecordChange::Run(run(1))])
        .await
        .expect("others");
    assert_eq!(store.trouble().borrow().as_deref(), Some(sentence));
    assert_eq!(kept(&store).await, entries(1..=13));
    keep(&store, entries(14..=16)).await.expect("no gap");
    assert_eq!(*store.trouble().borrow(), None);

    let mut other = entries(16..=16);
    other[0].event = JournalEvent::Finished;
    keep(&store, other).await.expect_err("another entry");
    keep(&store, entries(0..=0)).await.expect_err("no number");
    assert_eq!(kept(&store).await, entries(1..=16));

    // The writer knows where the journal is to go on.
    keep(&store, entries(16..=16)).await.expect("again");
    let gone = vec![RecordChange::JournalGone(run_id("r"))];
    store.keep(gone).await.expect("gone");
    assert_eq!(*store.trouble().borrow(), None);
    assert_eq!(kept(&store).await, []);
    keep(&store, entries(17..=17)).await.expect_err("a gap");
    keep(&store, entries(1..=2)).await.expect("from the start");

    // More than one statement takes, of which one comes twice.
    let many = [entries(3..=200), entries(200..=201)].concat();
    keep(&store, many).await.expect("kept");
    assert_eq!(kept(&store).await, entries(1..=201));
}

async fn old_journals_go_with_what_their_runs_say_of_it(lab: &TestLab) {
    let (store, _) = lab.open().await;
    let journal = |number: i64, attempt: u32| RecordChange::Entries {
        run: journal::name("", number, attempt, CampaignPart::Times),
        entries: entries(1..=20),
    };
    let over = |number: i64, at: i64| Run {
        state: RunState::Done,
        ended: Some(time(at)),
        ..run(number)
    };
    let runs = [over(1, 0), over(11, 3600)];
    let mut changes: Vec<RecordChange> = runs.iter().cloned().map(RecordChange::Run).collect();
    changes.extend([journal(1, 1), journal(1, 2), journal(11, 1), journal(11, 2)]);
    store.keep(changes).await.expect("kept");
    let (store, kept) = lab.reopened(store).await;
    let kept = Kept {
        lab: String::new(),
        ..kept
    };
    let rules = Rules {
        keep_journals: Duration::from_secs(60),
        ..Rules::of(&Config::default())
    };
    let mut state = LabState::new(kept, rules);
    let searched = state.old_journals(time(60)).expect("it is time");
    let found = store.old_journals(searched.before, searched.except.clone(), searched.most);
    let found = found.await.expect("runs");
    state.remove_journals(found, &searched, time(60));
    store.keep(state.take_changes()).await.expect("kept");

    for (number, attempt, left) in [(1, 1, 0), (1, 2, 0), (11, 1, 20), (11, 2, 20)] {
        let name = journal::name("", number, attempt, CampaignPart::Times);
        let found = store.entries(&name).await.expect("entries");
        assert_eq!(found.len(), left, "{name}");
    }
    let reader = lab.reader().await;
    let kept = reader.all().await.expect("all");
    assert_eq!(kept.runs[&1].journals_removed, Some(time(60)));
    assert_eq!(kept.runs[&11], over(11, 3600));
}

async fn jobs_that_are_over_are_found_when_they_are_asked_for(lab: &TestLab) {
    let (store, _) = lab.open().await;
    let in_state = |id, state, occurrence_of| Job {
        state,
        occurrence_of,
        ..job(id)
    };
    let of_job = |number, job| Run {
        job,
        state: RunState::Done,
        ..run(number)
    };
    let jobs = [
        in_state(1, JobState::Done, None),
        in_state(2, JobState::Done, None),
        in_state(3, JobState::Done, Some(1)),
        in_state(4, JobState::Failed, None),
    ];
    // They ask for the same, whatever they are called.
    let content = jobs[0].content_sha256.clone();
    let jobs = jobs.map(|job| Job {
        content_sha256: content.clone(),
        ..job
    });
    let mut changes: Vec<RecordChange> = jobs.into_iter().map(RecordChange::Job).collect();
    changes.extend([of_job(1, 1), of_job(2, 2), of_job(3, 2)].map(RecordChange::Run));
    store.keep(changes).await.expect("kept");
    let found = store.done_with_content(&content).await.expect("a search");
    let numbers = |found: JobWithRuns| {
        let runs = found.runs.iter().map(|run| run.number);
        (found.job.id, runs.collect::<Vec<_>>())
    };
    assert_eq!(found.map(numbers), Some((2, vec![2, 3])));
    let found = store.job(4).await.expect("a search");
    assert_eq!(found.map(numbers), Some((4, vec![])));
    assert_eq!(store.job(5).await.expect("a search"), None);
    let found = store.done_with_content("else").await.expect("a search");
    assert_eq!(found, None);
}

async fn an_event_does_not_change(lab: &TestLab) {
    let (store, _) = lab.open().await;
    let keep = async |event| store.keep(vec![RecordChange::Event(event)]).await;
    keep(event(1)).await.expect("kept");
    keep(event(1)).await.expect("the same");
    let mut other = event(1);
    other.device = None;
    let refused = keep(other).await.expect_err("another").to_string();
    assert!(refused.contains("another event 1"), "{refused}");
}

async fn a_reader_says_what_it_misses(lab: &TestLab) {
    let missing = "no lab has been here yet; start `layerlab daemon`";
    let refusal = async || {
        let reader = Reader::at(lab.place()).await;
        reader.expect_err("no store").to_string()
    };
    assert_eq!(refusal().await, missing);
    let (store, _) = lab.open().await;
    store.close().await;
    assert_eq!(lab.reader().await.all().await.expect("all").runs.len(), 0);
    lab.sql("DROP TABLE _sqlx_migrations").await;
    assert_eq!(refusal().await, missing);
}

async fn what_is_read_is_as_of_one_moment(lab: &TestLab) {
    let (store, _) = lab.open().await;
    let reader = lab.reader().await;
    let writing = tokio::spawn(async move {
        for number in 1..=200 {
            let run = Run {
                job: number,
                ..run(number)
            };
            let both = vec![RecordChange::Job(job(number)), RecordChange::Run(run)];
            store.keep(both).await.expect("kept");
        }
    });
    while !writing.is_finished() {
        let kept = reader.all().await.expect("all");
        let seen = (kept.runs.len(), kept.last_job, kept.last_run);
        let jobs = kept.jobs.len();
        assert_eq!(seen, (jobs, jobs as i64, jobs as i64));
    }
    writing.await.expect("all is kept");
}

async fn a_store_of_a_newer_version_is_left_alone(lab: &TestLab) {
    lab.open().await.0.close().await;
    lab.sql(
        "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) \
         VALUES (99, 'later', TRUE, 'x', 0)",
    )
    .await;
    let sentence = lab.refusal().await;
    assert!(sentence.contains("newer layerlab"), "{sentence}");
    assert!(sentence.contains("version 99"), "{sentence}");
    let reader = Reader::open(&lab.folder()).await.expect_err("too new");
    assert_eq!(reader.to_string(), sentence);
}

#[tokio::test]
async fn a_damaged_file_is_left_alone() {
    let lab = TestLab::in_a_file();
    std::fs::create_dir_all(lab.folder()).expect("room");
    let file = sqlite::file(&lab.folder());
    let text = "This is no database, but long enough to be taken for one. ".repeat(100);
    std::fs::write(&file, &text).expect("a file");
    let sentence = lab.refusal().await;
    assert!(sentence.contains("is damaged"), "{sentence}");
    assert_eq!(std::fs::read_to_string(&file).expect("the file"), text);
}

async fn a_broken_record_is_not_read(lab: &TestLab) {
    let (store, _) = lab.open().await;
    store
        .keep(vec![RecordChange::Job(job(1))])
        .await
        .expect("kept");
    store.close().await;
    lab.sql("UPDATE jobs SET body = '{}'").await;
    let sentence = lab.refusal().await;
    assert!(
        sentence.contains("a job is not as layerlab writes it"),
        "{sentence}"
    );
}

async fn a_record_of_a_newer_version_is_refused_with_a_remedy(lab: &TestLab) {
    let (store, _) = lab.open().await;
    let changes = vec![RecordChange::Device(device("PHONE1"))];
    store.keep(changes).await.expect("kept");
    store.close().await;
    lab.sql("UPDATE devices SET body = '{\"version\":7,\"names\":[]}'")
        .await;
    assert_eq!(
        lab.refusal().await,
        format!(
            "{} holds a device that was written by a newer layerlab (version 7 of its kind); update layerlab, or use {}",
            lab.place(),
            lab.place().another()
        )
    );
}

async fn a_paused_clock_waits_for_the_disk(lab: &TestLab) {
    let begun = tokio::time::Instant::now();
    let ticking = tokio::spawn(tokio::time::sleep(Duration::from_secs(1)));
    let (store, _) = lab.open().await;
    for number in 1..=50 {
        let changes = vec![RecordChange::Event(event(number))];
        store.keep(changes).await.expect("kept");
    }
    store.entries(&run_id("r")).await.expect("entries");
    let (_store, kept) = lab.reopened(store).await;
    assert_eq!(kept.last_event, 50);
    assert_eq!(begun.elapsed(), Duration::ZERO);
    ticking.await.expect("the clock goes on");
}

async fn a_large_lab_is_there_again(lab: &TestLab) {
    let (store, _) = lab.open().await;
    let changes = (1..=10_000).flat_map(|n| [RecordChange::Job(job(n)), RecordChange::Run(run(n))]);
    store.keep(changes.collect()).await.expect("kept");
    store.close().await;
    let (_store, kept) = lab.open().await;
    assert_eq!((kept.jobs.len(), kept.runs.len()), (10_000, 10_000));
    assert_eq!(kept.jobs[&10_000].state, JobState::Open);
    assert_eq!(kept.jobs[&10_000].submitted, time(0));
}

#[tokio::test]
async fn nobody_else_can_read_the_store_or_take_its_lock() {
    use std::os::unix::fs::PermissionsExt;

    let test = TestLab::in_a_file();
    let lab = test.folder();
    let mode = |path: &Path| {
        let metadata = std::fs::metadata(path).expect("there");
        metadata.permissions().mode() & 0o777
    };
    let open_to_all = |path: &Path| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("our own");
    };
    for time in ["the first time", "when it was open to all"] {
        let (store, _) = test.open().await;
        store
            .keep(vec![RecordChange::Job(job(1))])
            .await
            .expect("room");
        assert_eq!(mode(&lab), 0o700, "{time}");
        for entry in std::fs::read_dir(&lab).expect("a folder") {
            let path = entry.expect("an entry").path();
            assert_eq!(mode(&path), 0o600, "{} {time}", path.display());
        }
        store.close().await;
        open_to_all(&lab);
        for name in ["lab.sqlite", "lab.lock"] {
            open_to_all(&lab.join(name));
        }
    }
}

#[tokio::test]
async fn the_file_shrinks_when_journals_are_removed_also_one_from_before() {
    let lab = TestLab::in_a_file();
    let (store, _) = lab.open().await;
    store.close().await;
    let file = sqlite::file(&lab.folder());
    // As an earlier version made it.
    let mut connection = sqlite::connect(&file).await.expect("a database");
    for statement in ["PRAGMA auto_vacuum = NONE", "VACUUM"] {
        let done = sqlx::query(statement).execute(&mut connection).await;
        done.expect(statement);
    }
    sqlx::Connection::close(connection).await.expect("closed");

    let (store, _) = lab.open().await;
    for change in journal("r", entries(1..=60_000)) {
        store.keep(vec![change]).await.expect("room");
    }
    let sizes = store.journal_sizes().await.expect("sizes");
    assert!(
        sizes[0].0 == run_id("r") && sizes[0].1 > 100_000,
        "{sizes:?}"
    );
    let mut beside = sqlite::connect(&file).await.expect("a database");
    sqlite::shrink(&mut beside)
        .await
        .expect("all is in the file");
    let size = || std::fs::metadata(&file).expect("there").len();
    let full = size();
    assert!(full > 1_000_000, "{full} bytes");
    let gone = RecordChange::JournalGone(run_id("r"));
    store.keep(vec![gone]).await.expect("room");
    let (_store, _) = lab.reopened(store).await;
    assert!(size() < full / 10, "{} of {full} bytes", size());
}

async fn events_are_read_on_from_a_number_and_the_last_one_is_told(lab: &TestLab) {
    let (store, _) = lab.open().await;
    let mut last = store.last_event();
    assert_eq!(*last.borrow_and_update(), 0);
    let reader = lab.reader().await;
    let changes = (1..=5).map(|number| RecordChange::Event(event(number)));
    store.keep(changes.collect()).await.expect("kept");
    let told = last.wait_for(|last| *last == 5);
    tokio::time::timeout(Duration::from_secs(60), told)
        .await
        .expect("it is told")
        .expect("the store is open");
    let after = |number, most| reader.events_after(number, most);
    let expected: Vec<_> = (3..=5).map(event).collect();
    assert_eq!(after(2, 64).await.expect("events"), expected);
    assert_eq!(after(2, 2).await.expect("events"), expected[..2]);
    assert!(after(5, 64).await.expect("events").is_empty());
    let counts = reader.counts().await.expect("counts");
    assert_eq!(counts.events.values().sum::<i64>(), 5);
    assert!(counts.jobs.is_empty() && counts.runs.is_empty());
    // What was kept before comes again: nothing new is told.
    store
        .keep(vec![RecordChange::Event(event(2))])
        .await
        .expect("kept");
    assert_eq!(*last.borrow(), 5);
    let (store, _) = {
        drop(reader);
        lab.reopened(store).await
    };
    assert_eq!(*store.last_event().borrow(), 5);
}
