//! A server can be shared, lost and replaced, and asks who one is.

mod hosts;
mod proxy;

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use super::postgres::{PostgresServer, postgres};
use super::*;
use proxy::ForgetfulProxy;

/// What the server ends connections of daemons and readers by.
const CUT: &str = "SELECT COUNT(pg_terminate_backend(pid)) FROM pg_stat_activity \
                   WHERE datname = current_database() AND application_name = 'layerlab'";

#[tokio::test]
async fn texts_are_in_the_order_of_their_bytes() {
    let Some(server) = postgres() else { return };
    let url = server.database();
    let lab = TestLab::on(&url);
    lab.open().await.0.close().await;
    let count = |which: &str| {
        let columns = "SELECT COUNT(*) FROM information_schema.columns WHERE table_schema = 'layerlab' \
                       AND table_name <> '_sqlx_migrations' AND data_type = 'text'";
        server.sql(&url, &format!("{columns} AND {which}"))
    };
    assert_eq!(count("collation_name = 'C'"), "29");
    assert_eq!(count("collation_name IS DISTINCT FROM 'C'"), "0");
}

#[tokio::test]
async fn a_second_daemon_of_a_host_is_told_who_is_that_host() {
    let Some(lab) = TestLab::on_a_server() else {
        return;
    };
    let (store, _) = lab.open().await;
    let elsewhere = tempfile::tempdir().expect("a folder");
    let place = lab.place_in(elsewhere.path());
    let refused = Store::open(&place).await.expect_err("it is taken");
    let host = sysinfo::System::host_name().expect("a name");
    assert_eq!(
        refused.to_string(),
        format!(
            "another layerlab daemon (process {} on {host}) is host `{host}` of the lab in {place}; stop it first, or give \
             this one another name: `host` in its configuration",
            std::process::id()
        )
    );
    store.close().await;
    Store::open(&place).await.expect("it is free");
}

/// A daemon of that version holds the lock alone, and writes while its number stands in the table `owner`.
#[tokio::test]
async fn tables_from_before_there_were_hosts_are_brought_up_to_date_when_no_daemon_uses_them() {
    let Some(server) = postgres() else { return };
    let url = server.database();
    let lab = TestLab::on(&url);
    std::fs::create_dir_all(lab.folder()).expect("room");
    let mut older = lab.place().connect().await.expect("a connection");
    let made = sqlx::raw_sql("CREATE SCHEMA layerlab").execute(&mut older);
    made.await.expect("an empty database");
    schema::prepare_as_of(&lab.place(), &mut older, 1).await;
    let locked = sqlx::query("SELECT pg_advisory_lock($1)").bind(i64::from_be_bytes(*b"layerlab"));
    locked.execute(&mut older).await.expect("nobody has it");
    server.sql(
        &url,
        "UPDATE layerlab.owner SET number = 7; INSERT INTO layerlab.devices (name, body) VALUES ('P', '{\"name\":\"P\", \
         \"serial\":\"P\",\"description\":\"\",\"simulated\":false,\"pools\":[]}')",
    );
    let refused = Store::open(&lab.place()).await.expect_err("it is in use");
    assert!(matches!(refused, StoreError::InUse { .. }), "{refused}");
    drop(older);
    let (store, kept) = lab.open().await;
    assert!(kept.devices.contains_key("P"));
    let number = "SELECT number FROM layerlab.owner";
    assert_eq!(server.sql(&url, number), "8", "the older daemon is fenced");
    store
        .keep(vec![RecordChange::Device(device("P"))])
        .await
        .expect("kept");
    let (_store, kept) = lab.reopened(store).await;
    assert_eq!(kept.devices["P"], device("P"));
}

#[tokio::test]
async fn a_daemon_that_was_replaced_writes_no_more() {
    let Some(server) = postgres() else { return };
    let url = server.database();
    let lab = TestLab::on(&url);
    let (store, _) = lab.open().await;
    store
        .keep(vec![RecordChange::Job(job(1))])
        .await
        .expect("kept");
    // Its lock goes with its connection, and another daemon begins before it has noticed.
    assert_ne!(server.sql(&url, CUT), "0");
    let elsewhere = tempfile::tempdir().expect("a folder");
    let place = lab.place_in(elsewhere.path());
    let (other, kept) = Store::open(&place).await.expect("nobody has it");
    assert_eq!(kept.last_job, 1);

    let late = store.keep(vec![RecordChange::Job(job(2))]).await;
    let sentence = late.expect_err("it is not its own").to_string();
    let begin = format!("another layerlab daemon (process {} on", std::process::id());
    assert!(sentence.starts_with(&begin), "{sentence}");
    assert!(
        sentence.contains("may not change it any more"),
        "{sentence}"
    );
    assert_eq!(store.lost().await.to_string(), sentence);
    let later = store.keep(vec![RecordChange::Job(job(3))]).await;
    assert_eq!(later.expect_err("never").to_string(), sentence);
    assert!(
        store.job(1).await.is_err(),
        "what it knows may be out of date"
    );

    other
        .keep(vec![RecordChange::Event(event(1))])
        .await
        .expect("kept");
    let kept = lab.reader().await.all().await.expect("all");
    assert_eq!((kept.last_job, kept.last_event), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_begins_knows_all_that_was_acknowledged_before() {
    let Some(server) = postgres() else { return };
    let url = server.database();
    let lab = TestLab::on(&url);
    let (store, _) = lab.open().await;
    let writing = tokio::spawn(async move {
        let mut kept = 0;
        loop {
            let next = vec![RecordChange::Event(event(kept + 1))];
            match store.keep(next).await {
                Ok(()) => kept += 1,
                Err(error) => return (kept, error),
            }
        }
    });
    tokio::time::sleep(Duration::from_millis(200)).await;
    server.sql(&url, CUT);
    let elsewhere = tempfile::tempdir().expect("a folder");
    let opened = Store::open(&lab.place_in(elsewhere.path())).await;
    let (other, known) = opened.expect("nobody has it");
    let (kept, error) = writing.await.expect("it ends");
    assert!(matches!(error, StoreError::Replaced { .. }), "{error}");
    // What was not acknowledged may be there, too, but not any later.
    assert!(
        kept > 0 && (kept..=kept + 1).contains(&known.last_event),
        "{kept}"
    );
    let now = other.reader.all().await.expect("all");
    assert_eq!(now.last_event, known.last_event);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_when_connections_are_cut() {
    let Some(server) = postgres() else { return };
    let url = server.database();
    let lab = TestLab::on(&url);
    let (store, _) = lab.open().await;
    let writing = tokio::spawn(keep_one_by_one(store.clone()));
    let mut last_event = store.last_event();
    for _ in 0..4 {
        let before = *last_event.borrow();
        let goes_on = last_event.wait_for(|last| *last > before + 20);
        goes_on.await.expect("a writer");
        assert_ne!(server.sql(&url, CUT), "0");
    }
    writing.await.expect("all is kept");
    check_all(&lab, store).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_when_the_server_is_killed() {
    let Some(server) = PostgresServer::new() else {
        return;
    };
    let lab = TestLab::on(&server.database());
    let (store, _) = lab.open().await;
    let (mut trouble, mut last_event) = (store.trouble(), store.last_event());
    let reader = lab.reader().await;
    let writing = tokio::spawn(keep_one_by_one(store.clone()));
    for _ in 0..3 {
        let before = *last_event.borrow();
        let goes_on = last_event.wait_for(|last| *last > before + 20);
        goes_on.await.expect("a writer");
        server.kill();
        let said = trouble.wait_for(Option::is_some);
        let said = tokio::time::timeout(Duration::from_secs(60), said).await;
        let said = said.expect("it is told").expect("a writer").clone();
        let said = said.expect("some");
        let begin = format!("the lab cannot write {}: ", lab.place());
        assert!(said.starts_with(&begin), "{said}");
        assert!(
            said.ends_with("; see that it is there, works and can be reached"),
            "{said}"
        );
        let away = reader.all().await.expect_err("it is away").to_string();
        assert!(
            away.starts_with("the lab cannot reach postgres://"),
            "{away}"
        );
        let question = tokio::spawn({
            let store = store.clone();
            async move { store.entries(&run_id("other")).await }
        });
        server.start();
        let well = trouble.wait_for(Option::is_none);
        let well = tokio::time::timeout(Duration::from_secs(60), well).await;
        well.expect("it is told").expect("a writer");
        assert_eq!(question.await.expect("no panic").expect("it waited"), []);
        reader.all().await.expect("it is back");
    }
    writing.await.expect("all is kept");
    check_all(&lab, store).await;
}

const ALL: u64 = 1000;

/// Keeps a journal and events, a few at a time.
async fn keep_one_by_one(store: Store) {
    for number in 1..=ALL {
        let mut changes = journal("r", entries(number..=number));
        changes.push(RecordChange::Event(event(number.cast_signed())));
        store.keep(changes).await.expect("it waits");
    }
}

async fn check_all(lab: &TestLab, store: Store) {
    let (store, kept) = lab.reopened(store).await;
    assert_eq!(kept.last_event, ALL.cast_signed());
    let kept = store.entries(&run_id("r")).await.expect("entries");
    assert_eq!(kept, entries(1..=ALL));
    let events = lab.reader().await.events_after(0, u32::MAX).await;
    assert_eq!(events.expect("events").len() as u64, ALL);
}

/// A journal that goes on and is removed cannot go on once more.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_kept_without_an_acknowledgement_is_not_kept_twice() {
    let Some(server) = postgres() else { return };
    let url = server.database();
    let proxy = ForgetfulProxy::before(&url);
    let lab = TestLab::on(&proxy.url);
    let (store, _) = lab.open().await;
    store
        .keep(journal("r", entries(1..=10)))
        .await
        .expect("kept");
    proxy.forget_the_next_commit();
    let mut changes = journal("r", entries(11..=20));
    changes.push(RecordChange::JournalGone(run_id("r")));
    changes.push(RecordChange::Event(event(1)));
    store.keep(changes).await.expect("it was kept");
    assert!(proxy.has_forgotten());
    assert_eq!(*store.trouble().borrow(), None);
    assert_eq!(store.entries(&run_id("r")).await.expect("entries"), []);
    store
        .keep(journal("r", entries(1..=5)))
        .await
        .expect("anew");
    let (_store, kept) = lab.reopened(store).await;
    assert_eq!(kept.last_event, 1);
}

#[tokio::test]
async fn what_a_server_can_never_keep_is_refused_and_nothing_waits_for_it() {
    let Some(lab) = TestLab::on_a_server() else {
        return;
    };
    let (store, _) = lab.open().await;
    let broken = vec![
        RecordChange::Job(job(1)),
        RecordChange::Device(device("a\0b")),
    ];
    let refused = store.keep(broken).await.expect_err("no text").to_string();
    assert!(refused.starts_with("the lab's store refuses"), "{refused}");
    store
        .keep(vec![RecordChange::Job(job(2))])
        .await
        .expect("kept");
    let (_store, kept) = lab.reopened(store).await;
    assert_eq!(kept.jobs.into_keys().collect::<Vec<_>>(), [2]);
}

#[tokio::test]
async fn a_database_that_cannot_keep_every_text_is_refused() {
    let Some(server) = postgres() else { return };
    let url = server.database();
    let name = format!("{}_latin", url.rsplit('/').next().expect("a name"));
    server.sql(
        &url,
        &format!("CREATE DATABASE {name} ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0"),
    );
    let lab = TestLab::on(&format!("{url}_latin"));
    let sentence = lab.refusal().await;
    assert!(sentence.contains("keeps texts as LATIN1"), "{sentence}");
}

#[tokio::test]
async fn a_password_comes_from_a_file_that_nobody_else_can_read() {
    const SECRET: &str = "p@ss:word/%41";
    let Some(server) = PostgresServer::new() else {
        return;
    };
    let url = server.database();
    server.sql(
        &url,
        &format!(
            "CREATE ROLE guarded LOGIN PASSWORD '{SECRET}'; GRANT CREATE ON DATABASE {} TO guarded",
            url.rsplit('/').next().expect("a name")
        ),
    );
    server.ask_for_passwords("guarded");
    let url = url.replacen("layerlab@", "guarded@", 1);
    let lab = TestLab::on(&url);
    let sentence = lab.refusal().await;
    assert!(sentence.contains("password"), "{sentence}");

    let file = lab.folder().join("password");
    fs::write(&file, format!("{SECRET}\n")).expect("room");
    let with_file = StoreServer::new(&url).expect("a URL");
    let with_file = with_file.with_password_file(file.clone());
    let place = StorePlace::in_folder(&lab.folder()).on(with_file);
    let open = async || Store::open(&place).await;
    fs::set_permissions(&file, Permissions::from_mode(0o644)).expect("our own");
    let refused = open().await.expect_err("others can read it").to_string();
    assert!(
        refused.contains("others can read the file with the password"),
        "{refused}"
    );
    fs::set_permissions(&file, Permissions::from_mode(0o600)).expect("our own");
    let (store, _) = open().await.expect("let in");
    let reader = lab.reader().await;
    reader.all().await.expect("let in, too");
    let note = fs::read_to_string(lab.folder().join("store.json")).expect("it is noted");
    for said in [format!("{store:?} {reader:?}"), note] {
        assert!(!said.contains("p@ss") && !said.contains("p%40ss"), "{said}");
    }
    fs::write(&file, "wrong").expect("room");
    store.close().await;
    let refused = open().await.expect_err("wrong").to_string();
    assert!(refused.contains("store-password-file"), "{refused}");
}

#[test]
fn urls_are_refused_in_a_sentence_that_does_not_repeat_them() {
    for (url, sentence) in [
        ("secret", "this is no URL"),
        ("mysql://u@h/secret", "this is no URL"),
        ("postgres:secret", "this is no URL"),
        ("postgres://u:secret@h/d", "a password stands in this URL"),
        (
            "postgres://h/d?password=secret",
            "a password stands in this URL",
        ),
        ("postgres://h/d?sslmod=secret", "`sslmod` is no parameter"),
    ] {
        let refused = StoreServer::new(url).expect_err(url).to_string();
        assert!(refused.starts_with(sentence), "{refused}");
        assert!(!refused.contains("secret"), "{refused}");
    }
    for url in [
        "postgres://layerlab@db.example:5433/lab?sslmode=verify-full",
        "postgresql:///layerlab?host=/run/postgresql",
    ] {
        assert_eq!(StoreServer::new(url).expect("a URL").to_string(), url);
    }
}
