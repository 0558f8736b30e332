//! Where played labs have their stores: in a file, or on a server.

use std::time::Duration;

use layerlab_lab::store::{Reader, StorePlace, StoreServer};
use tempfile::TempDir;
use tokio::sync::OnceCell;

use crate::postgres::postgres;

/// Has each of the tests that are named done on a paused clock, for a lab whose store is in a file and for one whose store is
/// on a server.
macro_rules! on_both {
    ($($test:ident),* $(,)?) => {
        mod in_a_file {
            $(#[tokio::test(start_paused = true)]
            async fn $test() {
                super::$test($crate::home::Home::in_a_file()).await;
            })*
        }
        mod on_a_server {
            $(#[tokio::test(start_paused = true)]
            async fn $test() {
                if let Some(home) = $crate::home::Home::on_a_server() {
                    super::$test(home).await;
                }
            })*
        }
    };
}
pub(crate) use on_both;

/// The folder of a lab, and where its store is.
pub(crate) struct Home {
    folder: TempDir,
    pub(crate) place: StorePlace,
    reader: OnceCell<Reader>,
    /// Of its database, if it is on a server.
    pub(crate) url: String,
}

impl Home {
    pub(crate) fn in_a_file() -> Home {
        let folder = match std::path::Path::new("/dev/shm").is_dir() {
            // Thousands of transactions, each on storage before the next: memory is storage enough here.
            true => tempfile::tempdir_in("/dev/shm"),
            false => tempfile::tempdir(),
        };
        let folder = folder.expect("a folder");
        Home {
            place: StorePlace::in_folder(folder.path()),
            reader: OnceCell::new(),
            url: String::new(),
            folder,
        }
    }

    /// A home with a database of its own, if there is a server.
    pub(crate) fn on_a_server() -> Option<Home> {
        let url = postgres()?.database();
        let server = StoreServer::new(&url).expect("a database");
        Some(Home::of_host(server, url))
    }

    /// The home of a host that shares the database at `url` with others, and waits for them for `patience`.
    pub(crate) fn of(name: &str, url: &str, patience: Duration) -> Home {
        let server = StoreServer::new(url).expect("a database");
        let server = server.as_host(name.to_owned()).with_host_patience(patience);
        Home::of_host(server, url.to_owned())
    }

    fn of_host(server: StoreServer, url: String) -> Home {
        let home = Home::in_a_file();
        Home {
            place: home.place.on(server),
            url,
            ..home
        }
    }

    /// What reads its store, as people do: without being told where it is.
    /// Waits until no daemon has its folder any more.
    pub(crate) async fn wait_until_free(&self) {
        let lock = std::fs::File::open(self.folder.path().join("lab.lock"));
        let lock = lock.expect("a daemon had it");
        let free = async {
            while lock.try_lock().is_err() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let free = tokio::time::timeout(Duration::from_secs(60), free).await;
        free.expect("it is given back");
    }

    pub(crate) async fn reader(&self) -> Reader {
        let opened = async || Reader::open(self.folder.path()).await.expect("a store");
        self.reader.get_or_init(opened).await.clone()
    }
}
