//! Labs whose stores are in a file or on a server, and what both must do.

use std::path::{Path, PathBuf};

use sqlx::Connection;
use tempfile::TempDir;

use super::postgres::postgres;
use super::*;

/// Has each of the tests that are named done for a store in a file and for one on a server. The clock of those of `paused`
/// stands still.
macro_rules! on_both {
    (running: $($running:ident),*; paused: $($paused:ident),*;) => {
        mod in_a_file {
            use super::TestLab;
            $(#[tokio::test]
            async fn $running() {
                super::$running(&TestLab::in_a_file()).await;
            })*
            $(#[tokio::test(start_paused = true)]
            async fn $paused() {
                super::$paused(&TestLab::in_a_file()).await;
            })*
        }
        mod on_a_server {
            use super::TestLab;
            $(#[tokio::test]
            async fn $running() {
                if let Some(lab) = TestLab::on_a_server() {
                    super::$running(&lab).await;
                }
            })*
            $(#[tokio::test(start_paused = true)]
            async fn $paused() {
                if let Some(lab) = TestLab::on_a_server() {
                    super::$paused(&lab).await;
                }
            })*
        }
    };
}
pub(super) use on_both;

/// The folder of a lab, and where its store is.
pub(super) struct TestLab {
    folder: TempDir,
    server: Option<StoreServer>,
}

impl TestLab {
    pub(super) fn in_a_file() -> TestLab {
        TestLab {
            folder: tempfile::tempdir().expect("a folder"),
            server: None,
        }
    }

    /// A lab with a database of its own, if there is a server.
    pub(super) fn on_a_server() -> Option<TestLab> {
        Some(TestLab::on(&postgres()?.database()))
    }

    /// A lab whose store is in this database.
    pub(super) fn on(url: &str) -> TestLab {
        TestLab {
            folder: tempfile::tempdir().expect("a folder"),
            server: Some(StoreServer::new(url).expect("a database")),
        }
    }

    /// Its folder, which is made when its store is.
    pub(super) fn folder(&self) -> PathBuf {
        self.folder.path().join("new/state")
    }

    pub(super) fn place(&self) -> StorePlace {
        self.place_in(&self.folder())
    }

    /// Where the store is for a daemon that has another folder.
    pub(super) fn place_in(&self, folder: &Path) -> StorePlace {
        let place = StorePlace::in_folder(folder);
        match &self.server {
            Some(server) => place.on(server.clone()),
            None => place,
        }
    }

    pub(super) async fn open(&self) -> (Store, Kept) {
        Store::open(&self.place()).await.expect("a store")
    }

    pub(super) async fn reopened(&self, store: Store) -> (Store, Kept) {
        store.close().await;
        self.open().await
    }

    /// Why its store is not opened.
    pub(super) async fn refusal(&self) -> String {
        let opened = Store::open(&self.place()).await;
        opened.expect_err("no store").to_string()
    }

    pub(super) async fn reader(&self) -> Reader {
        Reader::open(&self.folder()).await.expect("a reader")
    }

    /// Has its database do something behind the store's back.
    pub(super) async fn sql(&self, statement: &'static str) {
        let mut connection = self.place().connect().await.expect("a connection");
        let done = sqlx::query(statement).execute(&mut connection).await;
        done.expect(statement);
        connection.close().await.expect("closed");
    }
}
