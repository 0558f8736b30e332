//! Several hosts share a store.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::proxy::ForgetfulProxy;
use super::*;
use crate::record::{DeviceQuarantine, LeaseState};

/// A host that has the store in the database at `url`; it waits for others for `patience`.
struct TestHost {
    _folder: tempfile::TempDir,
    store: Store,
    kept: Kept,
}

async fn host(url: &str, name: &str, patience: Duration) -> TestHost {
    let folder = tempfile::tempdir().expect("a folder");
    let server = StoreServer::new(url).expect("a database");
    let server = server.as_host(name.to_owned()).with_host_patience(patience);
    let place = StorePlace::in_folder(folder.path()).on(server);
    let (store, kept) = Store::open(&place).await.expect("a store");
    TestHost {
        _folder: folder,
        store,
        kept,
    }
}

fn quarantine(device: &str, reason: &str) -> DeviceQuarantine {
    DeviceQuarantine {
        device: device.to_owned(),
        reason: reason.to_owned(),
        since: time(0),
        until: time(3600),
        by: "host `one`".to_owned(),
    }
}

const LONG: Duration = Duration::from_secs(3600);

async fn turn(of: &TestHost) -> Turn {
    of.store.turn().await.expect("a turn")
}

#[tokio::test]
async fn a_host_knows_what_others_have_changed_when_it_has_the_turn() {
    let Some(server) = postgres() else { return };
    let url = server.database();
    let (one, other) = (host(&url, "one", LONG).await, host(&url, "two", LONG).await);
    assert_eq!(one.kept.lab, other.kept.lab);
    assert_eq!(other.kept.host.as_deref(), Some("two"));
    let mut heard = other.store.heard();
    let mut last_event = other.store.last_event();
    heard.borrow_and_update();
    let open = Job {
        occurrence_of: None,
        ..job(1)
    };
    let changes = vec![
        RecordChange::Job(open.clone()),
        RecordChange::Run(run(1)),
        RecordChange::Run(run(2)),
        RecordChange::Device(device("PHONE1")),
        RecordChange::DevicesHere(vec!["PHONE1".to_owned()]),
        RecordChange::Reservation(reservation(1)),
        RecordChange::Quarantine(quarantine("PHONE2", "over")),
        RecordChange::Quarantine(quarantine("PHONE1", "it's hot")),
        RecordChange::Quarantine(quarantine("PHONE1", "it's wet")),
        RecordChange::QuarantineGone("PHONE2".to_owned()),
        RecordChange::Event(event(1)),
    ];
    turn(&one).await.keep(changes).await.expect("kept");
    // It is told without asking; the connection by which it hears may only just have been made.
    let told = last_event.wait_for(|last| *last == 1);
    let told = tokio::time::timeout(Duration::from_secs(60), told);
    let others = async {
        loop {
            let others = turn(&other).await.others;
            if others.hosts[0].devices == ["PHONE1"] {
                break others;
            }
        }
    };
    let others = others.await;
    assert_eq!(
        others,
        OthersChanges {
            jobs: vec![JobWithRuns {
                job: open.clone(),
                runs: vec![run(1), run(2)],
            }],
            devices: vec![device("PHONE1")],
            reservations: Some([(1, reservation(1))].into()),
            quarantine: [("PHONE1".to_owned(), quarantine("PHONE1", "it's wet"))].into(),
            last: (1, 1, 2),
            hosts: others.hosts.clone(),
            ..OthersChanges::default()
        }
    );
    assert_eq!(others.hosts[0].lease, LeaseState::Alive);
    told.await.expect("it is told").expect("a store");
    // It knows them now; what comes next is what has changed since.
    assert_eq!(turn(&other).await.others.jobs, []);
    let claimed = Run {
        host: Some("one".to_owned()),
        ..run(2)
    };
    let changes = vec![RecordChange::Run(claimed.clone())];
    turn(&one).await.keep(changes).await.expect("kept");
    let others = turn(&other).await.others;
    assert_eq!((others.jobs, others.runs), (vec![], vec![claimed.clone()]));
    // A job that may be worked on comes with all its runs: not everybody knows them.
    let changes = vec![RecordChange::Job(open.clone())];
    turn(&one).await.keep(changes).await.expect("kept");
    let runs = vec![run(1), claimed];
    assert_eq!(
        turn(&other).await.others.jobs,
        [JobWithRuns { job: open, runs }]
    );
    other.store.close().await;
    let hosts = turn(&one).await.others.hosts;
    assert_eq!(hosts[0].lease, LeaseState::Ended);
}

#[tokio::test]
async fn others_are_told_of_all_events_and_woken_by_what_concerns_them() {
    let Some(server) = postgres() else { return };
    let url = server.database();
    let (one, other) = (host(&url, "one", LONG).await, host(&url, "two", LONG).await);
    let (mut heard, mut last_event) = (other.store.heard(), other.store.last_event());
    let minute = Duration::from_secs(60);
    let listens = tokio::time::timeout(minute, heard.wait_for(|heard| *heard == 1)).await;
    listens.expect("it listens").expect("a store");
    let open = Job {
        occurrence_of: None,
        ..job(1)
    };
    let changes = vec![RecordChange::Job(open), RecordChange::Run(run(1))];
    turn(&one).await.keep(changes).await.expect("kept");
    let is_woken = tokio::time::timeout(minute, heard.wait_for(|heard| *heard == 2)).await;
    is_woken.expect("there is a new job").expect("a store");

    let claimed = Run {
        state: RunState::Running,
        host: Some("one".to_owned()),
        ..run(1)
    };
    let begun = vec![
        RecordChange::Run(claimed),
        RecordChange::Device(device("PHONE1")),
        RecordChange::Event(event(1)),
    ];
    turn(&one).await.keep(begun).await.expect("kept");
    let is_told = tokio::time::timeout(minute, last_event.wait_for(|last| *last == 1)).await;
    is_told.expect("it is told").expect("a store");
    assert_eq!(*heard.borrow(), 2, "it is not woken");

    let given_back = vec![RecordChange::Run(run(1)), RecordChange::Event(event(2))];
    turn(&one).await.keep(given_back).await.expect("kept");
    let is_woken = tokio::time::timeout(minute, heard.wait_for(|heard| *heard == 3)).await;
    is_woken
        .expect("anybody may have the run")
        .expect("a store");
}

const RUNS: i64 = 300;

/// Claims what nobody has claimed, one run a turn, until nothing is left, and tells of each in an event.
async fn claim_all(host: TestHost, name: &'static str) -> BTreeSet<i64> {
    let mut runs: BTreeMap<i64, Run> = host.kept.runs.clone();
    let mut claimed = BTreeSet::new();
    loop {
        let turn = turn(&host).await;
        let of_jobs = turn.others.jobs.iter().flat_map(|job| &job.runs);
        let changed = of_jobs.chain(&turn.others.runs).cloned();
        runs.extend(changed.map(|run| (run.number, run)));
        let last_event = turn.others.last.0;
        let Some(run) = runs.values_mut().find(|run| run.host.is_none()) else {
            return claimed;
        };
        run.host = Some(name.to_owned());
        let changes = vec![
            RecordChange::Run(run.clone()),
            RecordChange::Event(event(last_event + 1)),
        ];
        claimed.insert(run.number);
        turn.keep(changes)
            .await
            .expect("nobody else has claimed it");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_run_is_claimed_once_and_events_are_in_order_however_two_hosts_race() {
    let Some(server) = postgres() else { return };
    let url = server.database();
    let one = host(&url, "one", LONG).await;
    let mut changes = vec![RecordChange::Job(job(1))];
    changes.extend((1..=RUNS).map(|number| RecordChange::Run(run(number))));
    one.store.keep(changes).await.expect("kept");
    let two = host(&url, "two", LONG).await;
    let reader = two.store.reader.clone();
    let following = tokio::spawn({
        let (reader, mut last_event) = (reader.clone(), two.store.last_event());
        async move {
            let mut seen = Vec::new();
            while (seen.len() as i64) < RUNS {
                let last = *last_event.borrow_and_update();
                let after = seen.last().copied().unwrap_or(0);
                let events = reader.events_after(after, 1000).await.expect("events");
                assert!(events.len() as i64 >= last - after, "told too early");
                seen.extend(events.iter().map(|event| event.number));
                if (seen.len() as i64) < RUNS && last_event.changed().await.is_err() {
                    break;
                }
            }
            seen
        }
    });
    let (by_one, by_two) = tokio::join!(
        tokio::spawn(claim_all(one, "one")),
        tokio::spawn(claim_all(two, "two"))
    );
    let (by_one, by_two) = (by_one.expect("no panic"), by_two.expect("no panic"));
    assert!(!by_one.is_empty() && !by_two.is_empty());
    assert_eq!(by_one.intersection(&by_two).count(), 0);
    assert_eq!((by_one.len() + by_two.len()) as i64, RUNS);
    for run in reader.all().await.expect("all").runs.into_values() {
        let by = match by_one.contains(&run.number) {
            true => "one",
            false => "two",
        };
        assert_eq!(run.host.as_deref(), Some(by), "run {}", run.number);
    }
    let seen = tokio::time::timeout(Duration::from_secs(60), following).await;
    let seen = seen.expect("all events").expect("no panic");
    let all: Vec<i64> = (1..=RUNS).collect();
    assert!(all.starts_with(&seen) && !seen.is_empty(), "{seen:?}");
    let events = reader.events_after(0, 1000).await.expect("events");
    let numbers: Vec<i64> = events.iter().map(|event| event.number).collect();
    assert_eq!(numbers, all);
}

/// As long ago as a host's lease ends when nothing is heard of it.
fn let_the_lease_end(server: &PostgresServer, url: &str, name: &str) {
    let ended = "UPDATE layerlab.hosts SET lease_until = layerlab.lab_time() - 10 WHERE name =";
    server.sql(url, &format!("{ended} '{name}'"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_whose_runs_were_given_to_others_writes_no_more() {
    let Some(server) = postgres() else { return };
    let url = server.database();
    let proxy = ForgetfulProxy::before(&url);
    let one = host(&proxy.url, "one", LONG).await;
    let changes = vec![RecordChange::Job(job(1)), RecordChange::Run(run(1))];
    one.store.keep(changes).await.expect("kept");
    one.store
        .keep(journal("r", entries(1..=5)))
        .await
        .expect("kept");
    proxy.cut();
    // What it measures meanwhile waits.
    let mut trouble = one.store.trouble();
    let late = tokio::spawn({
        let store = one.store.clone();
        async move { store.keep(journal("r", entries(6..=9))).await }
    });
    let said = trouble.wait_for(Option::is_some);
    let said = tokio::time::timeout(Duration::from_secs(60), said).await;
    said.expect("it is told").expect("a store");

    let_the_lease_end(server, &url, "one");
    let patient = host(&url, "patient", LONG).await;
    let hosts = turn(&patient).await.others.hosts;
    assert_eq!(
        (hosts[0].lease, hosts[0].is_given_up),
        (LeaseState::Lost, false)
    );
    let two = host(&url, "two", Duration::from_secs(5)).await;
    let its_turn = turn(&two).await;
    let hosts = &its_turn.others.hosts;
    assert_eq!(
        (hosts[0].lease, hosts[0].is_given_up),
        (LeaseState::Ended, true)
    );
    let changes = vec![RecordChange::Event(event(1))];
    its_turn.keep(changes).await.expect("kept");

    proxy.mend();
    let refused = late.await.expect("no panic").expect_err("too late");
    assert!(matches!(refused, StoreError::Released { .. }), "{refused}");
    let sentence = refused.to_string();
    assert!(sentence.starts_with("host `one` was away"), "{sentence}");
    assert_eq!(one.store.lost().await.to_string(), sentence);
    let refused = one.store.turn().await.expect_err("no turn");
    assert_eq!(refused.to_string(), sentence);
    let kept = two.store.entries(&run_id("r")).await.expect("entries");
    assert_eq!(kept, entries(1..=5));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_comes_back_before_its_runs_are_given_to_others_goes_on() {
    let Some(server) = postgres() else { return };
    let url = server.database();
    let proxy = ForgetfulProxy::before(&url);
    let one = host(&proxy.url, "one", LONG).await;
    proxy.cut();
    let late = tokio::spawn({
        let store = one.store.clone();
        async move { store.keep(journal("r", entries(1..=9))).await }
    });
    let_the_lease_end(server, &url, "one");
    let two = host(&url, "two", LONG).await;
    let changes = vec![RecordChange::Event(event(1))];
    turn(&two).await.keep(changes).await.expect("kept");
    proxy.mend();
    late.await.expect("no panic").expect("it may");
    let hosts = turn(&two).await.others.hosts;
    assert_eq!(hosts[0].lease, LeaseState::Alive);
    assert_eq!(turn(&one).await.others.last.0, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_decided_in_a_turn_is_kept_once_when_the_answer_is_lost() {
    let Some(server) = postgres() else { return };
    let url = server.database();
    let proxy = ForgetfulProxy::before(&url);
    let (one, two) = (
        host(&proxy.url, "one", LONG).await,
        host(&url, "two", LONG).await,
    );
    let its_turn = turn(&one).await;
    proxy.forget_the_next_commit();
    let changes = vec![RecordChange::Event(event(1)), RecordChange::Run(run(1))];
    let keeping = tokio::spawn(its_turn.keep(changes));
    // Another host goes on before the first one knows.
    loop {
        let its_turn = turn(&two).await;
        if its_turn.others.last.0 == 1 {
            let changes = vec![RecordChange::Event(event(2))];
            its_turn.keep(changes).await.expect("kept");
            break;
        }
    }
    keeping.await.expect("no panic").expect("it was kept");
    assert!(proxy.has_forgotten());
    assert_eq!(turn(&one).await.others.last.0, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_decided_in_a_turn_is_refused_if_another_host_had_one_since() {
    let Some(server) = postgres() else { return };
    let url = server.database();
    let proxy = ForgetfulProxy::before(&url);
    let (one, two) = (
        host(&proxy.url, "one", LONG).await,
        host(&url, "two", LONG).await,
    );
    // Nobody was faster: it is kept in another transaction.
    let its_turn = turn(&one).await;
    proxy.lose_the_next_commit();
    let changes = vec![RecordChange::Run(run(1))];
    its_turn.keep(changes).await.expect("it is tried again");
    assert!(proxy.has_forgotten());

    let its_turn = turn(&one).await;
    proxy.lose_the_next_commit();
    let claimed = Run {
        host: Some("one".to_owned()),
        ..run(1)
    };
    let keeping = tokio::spawn(its_turn.keep(vec![RecordChange::Run(claimed)]));
    let its_turn = turn(&two).await;
    let changes = vec![RecordChange::Event(event(1))];
    its_turn.keep(changes).await.expect("kept");
    let refused = keeping.await.expect("no panic").expect_err("too late");
    assert!(matches!(refused, StoreError::Overtaken { .. }), "{refused}");
    let kept = two.store.reader.all().await.expect("all");
    assert_eq!(kept.runs[&1].host, None);
}

#[tokio::test]
async fn a_turn_that_is_dropped_changes_nothing_and_keeps_nobody_waiting() {
    let Some(server) = postgres() else { return };
    let url = server.database();
    let (one, two) = (host(&url, "one", LONG).await, host(&url, "two", LONG).await);
    for _ in 0..3 {
        drop(turn(&one).await);
        drop(turn(&two).await);
    }
    assert_eq!(server.sql(&url, "SELECT revision FROM layerlab.lab"), "0");
}

#[tokio::test]
async fn a_journal_is_written_by_the_host_that_has_claimed_its_run() {
    let Some(server) = postgres() else { return };
    let url = server.database();
    let (one, two) = (host(&url, "one", LONG).await, host(&url, "two", LONG).await);
    let id = crate::journal::name(&one.kept.lab, 1, 1, CampaignPart::Times);
    let entries = |range| {
        let (run, entries) = (id.clone(), entries(range));
        vec![RecordChange::Entries { run, entries }]
    };
    let claimed = |host: &str| {
        RecordChange::Run(Run {
            host: Some(host.to_owned()),
            ..run(1)
        })
    };
    let claim = async |host: &TestHost, name: &str| {
        let claimed = turn(host).await.keep(vec![claimed(name)]).await;
        claimed.expect("kept");
    };
    claim(&one, "one").await;
    one.store.keep(entries(1..=5)).await.expect("its own");
    // The phone was carried to another host, which goes on, and back.
    claim(&two, "two").await;
    two.store.keep(entries(4..=9)).await.expect("its own");
    claim(&one, "one").await;
    one.store.keep(entries(10..=12)).await.expect("its own");
    let late = two.store.keep(entries(10..=13)).await;
    let sentence = late.expect_err("not its own").to_string();
    assert!(
        sentence.contains("run 1 is another host's by now"),
        "{sentence}"
    );
    assert_eq!(*two.store.trouble().borrow(), None, "nothing is wrong");
    let kept = two.store.entries(&id).await.expect("entries");
    assert_eq!(kept.len(), 12);
}

#[tokio::test]
async fn no_host_waits_for_its_turn_while_others_have_theirs_again_and_again() {
    const HOSTS: usize = 12;
    const TURNS: usize = 40;
    let Some(server) = postgres() else { return };
    let url = server.database();
    let mut hosts = Vec::new();
    for number in 0..HOSTS {
        hosts.push(host(&url, &format!("host{number}"), LONG).await);
    }
    // Each asks again at once, until each has had so many turns.
    let taken = Arc::new(Mutex::new([0; HOSTS]));
    let taking = hosts.iter().enumerate().map(|(number, host)| {
        let (store, taken) = (host.store.clone(), Arc::clone(&taken));
        tokio::spawn(async move {
            while taken
                .lock()
                .expect("no panic")
                .iter()
                .any(|&turns| turns < TURNS)
            {
                let turn = store.turn().await.expect("a turn");
                let changes = vec![RecordChange::Reservation(reservation(number as i64))];
                turn.keep(changes).await.expect("kept");
                taken.lock().expect("no panic")[number] += 1;
            }
        })
    });
    for taking in taking.collect::<Vec<_>>() {
        taking.await.expect("no panic");
    }
    let taken = *taken.lock().expect("no panic");
    let most = taken.iter().max().expect("hosts");
    assert!(*most <= TURNS + TURNS / 4, "{taken:?}");
}
