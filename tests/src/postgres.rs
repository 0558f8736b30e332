//! A PostgreSQL server of the tests' own.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use super::skip::skip;

/// Names a server to use instead, by the URL of a database whose user may make others.
const GIVEN: &str = "LAYERLAB_POSTGRES";

/// Who works with the databases; this server asks nobody for a password.
const USER: &str = "layerlab";

/// Whose server it is when the tests are run by root, as whom PostgreSQL does not run.
const NOBODY: u32 = 65534;

/// A server with its data in a temporary folder, reached by a socket in it.
#[derive(Debug)]
pub struct PostgresServer {
    place: ServerPlace,
}

#[derive(Debug)]
enum ServerPlace {
    /// Somebody else's, by the URL of one of its databases.
    Given(String),
    /// Our own.
    Own {
        folder: PathBuf,
        programs: PathBuf,
        /// Ends the server, and removes the folder, when nobody holds its input any more, however this process ends.
        keeper: Mutex<Option<Child>>,
    },
}

/// The server that the tests of a program share; none if it cannot be had, which is said.
pub fn postgres() -> Option<&'static PostgresServer> {
    static SHARED: OnceLock<Option<PostgresServer>> = OnceLock::new();
    let server = SHARED.get_or_init(|| match std::env::var(GIVEN) {
        Ok(url) => Some(PostgresServer {
            place: ServerPlace::Given(url),
        }),
        Err(_) => PostgresServer::new(),
    });
    if server.is_none() {
        PostgresServer::missing();
    }
    server.as_ref()
}

impl PostgresServer {
    /// A server that a test has for itself, to end it as it likes; none if it cannot be had, which is said.
    pub fn new() -> Option<PostgresServer> {
        let Some(programs) = programs() else {
            PostgresServer::missing();
            return None;
        };
        let folder = tempfile::tempdir().expect("a folder").keep();
        if is_root() {
            std::os::unix::fs::chown(&folder, Some(NOBODY), Some(NOBODY)).expect("we are root");
        }
        let made = as_user(&programs.join("initdb"))
            .args(["--username", USER, "--auth", "trust", "--encoding", "UTF8"])
            .args(["--no-locale", "--no-sync", "--pgdata"])
            .arg(folder.join("data"))
            .output();
        succeeded("initdb", &made.expect("it is there"));
        let server = PostgresServer {
            place: ServerPlace::Own {
                folder,
                programs,
                keeper: Mutex::new(None),
            },
        };
        server.start();
        Some(server)
    }

    fn missing() {
        let remedy =
            "install the package postgresql, or name a server's database in LAYERLAB_POSTGRES";
        skip("a PostgreSQL server", remedy);
    }

    /// Starts it, if it does not run, and returns when it answers.
    #[track_caller]
    pub fn start(&self) {
        let ServerPlace::Own {
            folder,
            programs,
            keeper,
        } = &self.place
        else {
            panic!("{GIVEN} names a server that tests do not start");
        };
        let deadline = Instant::now() + Duration::from_secs(60);
        let mut keeper = keeper.lock().unwrap_or_else(PoisonError::into_inner);
        while !self.answers() {
            assert!(Instant::now() < deadline, "{}", self.log());
            // One that could not start, because what is left of the one before was still ending, is started again.
            if let Some(old) = keeper.as_mut()
                && old.try_wait().expect("it was started").is_some()
            {
                *keeper = None;
            }
            if keeper.is_none() {
                *keeper = Some(keep_running(folder, programs));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Its first process, of which all others are children.
    pub fn process(&self) -> u32 {
        let ServerPlace::Own { folder, .. } = &self.place else {
            panic!("{GIVEN} names a server whose processes are its own business");
        };
        let file = std::fs::read_to_string(folder.join("data/postmaster.pid"));
        let file = file.expect("it runs");
        let process = file.lines().next().expect("its process");
        process.parse().expect("a number")
    }

    /// Kills it, as a power cut would; [`PostgresServer::start`] starts it again.
    pub fn kill(&self) {
        let ServerPlace::Own { keeper, .. } = &self.place else {
            panic!("{GIVEN} names a server that tests do not kill");
        };
        let process = self.process().to_string();
        let killed = Command::new("kill").args(["-KILL", &process]).output();
        succeeded("kill", &killed.expect("it is there"));
        let mut keeper = keeper.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(mut keeper) = keeper.take() {
            // It is not to take the folder away: its input stays open until it has ended.
            let _input = keeper.stdin.take();
            let _ = keeper.wait();
        }
    }

    /// The URL of a new, empty database.
    pub fn database(&self) -> String {
        static LAST: AtomicU32 = AtomicU32::new(0);
        let number = LAST.fetch_add(1, Ordering::Relaxed);
        let name = format!("layerlab_test_{}_{number}", std::process::id());
        self.sql(&self.url("postgres"), &format!("CREATE DATABASE {name}"));
        self.url(&name)
    }

    /// Has the database at `url` do something, and says what it answered.
    #[track_caller]
    pub fn sql(&self, url: &str, statement: &str) -> String {
        let output = self.ask(url, statement);
        succeeded(statement, &output);
        let said = String::from_utf8(output.stdout).expect("UTF-8");
        said.trim_end().to_owned()
    }

    /// Asks this user for its password from now on.
    pub fn ask_for_passwords(&self, user: &str) {
        let ServerPlace::Own { folder, .. } = &self.place else {
            panic!("{GIVEN} names a server that tests do not change");
        };
        let file = folder.join("data/pg_hba.conf");
        let rules = std::fs::read_to_string(&file).expect("it is there");
        let rules = format!("local all {user} scram-sha-256\n{rules}");
        std::fs::write(&file, rules).expect("room");
        self.sql(&self.url("postgres"), "SELECT pg_reload_conf()");
    }

    fn ask(&self, url: &str, statement: &str) -> Output {
        let psql = match &self.place {
            ServerPlace::Given(_) => PathBuf::from("psql"),
            ServerPlace::Own { programs, .. } => programs.join("psql"),
        };
        let options = ["--no-psqlrc", "--quiet", "--tuples-only", "--no-align"];
        let mut command = Command::new(psql);
        command.args(options).args(["--command", statement, url]);
        command.output().expect("psql is there")
    }

    fn answers(&self) -> bool {
        self.ask(&self.url("postgres"), "SELECT 1").status.success()
    }

    /// The URL of the database of this name.
    fn url(&self, database: &str) -> String {
        match &self.place {
            ServerPlace::Given(url) => {
                let (server, query) = url.split_once('?').unwrap_or((url, ""));
                let server = match server.match_indices('/').nth(2) {
                    Some((end, _)) => &server[..end],
                    None => server,
                };
                format!("{server}/{database}?{query}")
            }
            ServerPlace::Own { folder, .. } => {
                let folder = folder.to_str().expect("UTF-8").replace('/', "%2F");
                format!("postgres://{USER}@{folder}/{database}")
            }
        }
    }

    fn log(&self) -> String {
        match &self.place {
            ServerPlace::Given(_) => String::new(),
            ServerPlace::Own { folder, .. } => {
                std::fs::read_to_string(folder.join("log")).unwrap_or_default()
            }
        }
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        if let ServerPlace::Own { folder, keeper, .. } = &self.place {
            let mut keeper = keeper.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(mut keeper) = keeper.take() {
                drop(keeper.stdin.take());
                let _ = keeper.wait();
            }
            // It may have been killed before.
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}

/// Starts a server, and what ends it. If the server ends by itself, the folder stays.
fn keep_running(folder: &Path, programs: &Path) -> Child {
    let script = r#"
        "$1/postgres" -D "$2/data" -k "$2" -c listen_addresses= -c max_connections=200 >>"$2/log" 2>&1 &
        server=$!
        exec 3<&0
        { read -r _ <&3; kill -0 "$server" && touch "$2/over" && kill -QUIT "$server"; } 2>/dev/null &
        exec 3<&-
        wait "$server"
        if [ -e "$2/over" ]; then cd / && rm -rf "$2"; fi
    "#;
    as_user(Path::new("sh"))
        .args(["-c", script, "sh"])
        .args([programs, folder])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("sh is there")
}

/// The folder of PostgreSQL's programs: the one of the newest version that is installed.
fn programs() -> Option<PathBuf> {
    let mut versions: Vec<(u32, PathBuf)> = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            Some((path.file_name()?.to_str()?.parse().ok()?, path.join("bin")))
        })
        .collect();
    versions.sort();
    let versions = versions.into_iter().rev().map(|(_, folder)| folder);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let has_all = |folder: &PathBuf| {
        ["initdb", "postgres", "psql"]
            .iter()
            .all(|program| folder.join(program).is_file())
    };
    versions.chain(path).find(has_all)
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|this| this.uid() == 0)
}

/// A program that is run as somebody who may run a server.
fn as_user(program: &Path) -> Command {
    let mut command = if is_root() {
        let mut command = Command::new("setpriv");
        command.args([
            "--reuid",
            &NOBODY.to_string(),
            "--regid",
            &NOBODY.to_string(),
        ]);
        command.arg("--clear-groups").arg(program);
        command
    } else {
        Command::new(program)
    };
    // What this user may not look into is no place to begin in.
    command.current_dir("/");
    command
}

#[track_caller]
fn succeeded(what: &str, output: &Output) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{what}: {said}");
}
