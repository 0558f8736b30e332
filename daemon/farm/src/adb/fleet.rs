//! All phones, by whichever way. A server or a phone that fails is listed with its reason, and never keeps
//! the others from being seen.

use std::convert::Infallible;
use std::path::PathBuf;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::address::Address;
use super::direct::Direct;
use super::error::AdbError;
use super::found::Found;
use super::list::{Row, State};
use super::names::Names;
use super::own::OwnServer;
use super::program::{self, Program};
use super::route::Route;
use super::server::Server;

/// How long a server that was just started may take to see what is plugged in.
const SETTLE: Duration = Duration::from_secs(5);

/// How often to look, while something is expected.
const POLL: Duration = Duration::from_millis(100);

/// How often to call phones at network addresses that are not there, and servers.
const CALL: Duration = Duration::from_secs(1);

/// Which ways and phones the user named.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The adb program; an empty path means none.
    pub program: Option<PathBuf>,
    /// Servers to use instead of our own.
    pub servers: Vec<Address>,
    /// Phones at network addresses.
    pub phones: Vec<Address>,
    /// Whether phones are reached without a server.
    pub direct: bool,
    /// The program `layerlab`, which is run for each phone that is reached without a server.
    pub layerlab: PathBuf,
    /// Layerlab's state folder.
    pub state: PathBuf,
}

impl Settings {
    /// The folder of our own server.
    fn own_server(&self) -> PathBuf {
        self.state.join("adb")
    }
}

/// The ways to phones that there are.
#[derive(Debug)]
pub struct Fleet {
    /// The program of our own server, if there is one.
    pub program: Option<Program>,
    /// The servers that answered when the fleet was opened, or may yet, or the way without one.
    pub routes: Vec<Route>,
    /// What is wrong besides.
    pub problems: Vec<AdbError>,
    /// Whether phones are reached without a server because there is no adb program, and not because the user said so.
    pub direct_by_itself: bool,
    phones: Vec<Address>,
    /// Who answered when it was last asked.
    names: Mutex<Names>,
}

impl Fleet {
    /// Finds the servers, and starts our own unless others were named. Where there is no adb program, or the user says so,
    /// phones are reached without one.
    pub async fn open(settings: &Settings) -> Fleet {
        let mut fleet = Fleet {
            program: None,
            routes: Vec::new(),
            problems: Vec::new(),
            direct_by_itself: false,
            phones: settings.phones.clone(),
            names: Mutex::default(),
        };
        // An empty name says that none is wanted, which is no problem.
        let unwanted = settings
            .program
            .as_ref()
            .is_some_and(|path| path.as_os_str().is_empty());
        if settings.direct {
            fleet.routes.push(direct(settings));
        } else if settings.servers.is_empty() && !unwanted {
            match own(settings).await {
                Ok((program, server)) => {
                    fleet.program = Some(program);
                    fleet.routes.push(server.into());
                }
                Err(AdbError::NoProgram) => {
                    fleet.direct_by_itself = true;
                    fleet.routes.push(direct(settings));
                }
                Err(error) => fleet.problems.push(error),
            }
        } else {
            let given = settings.servers.iter().cloned().map(Server::given);
            fleet.routes.extend(given.map(Route::from));
        }
        fleet.call(&settings.phones).await;
        fleet
    }

    /// The adb servers among the ways.
    pub fn servers(&self) -> impl Iterator<Item = &Server> {
        self.routes.iter().filter_map(|route| match route {
            Route::Server(server) => Some(server),
            Route::Direct(_) => None,
        })
    }

    /// Every phone now, and what failed.
    pub async fn list(&self) -> (Vec<Found>, Vec<AdbError>) {
        join_all(self.routes.iter().map(Route::settle)).await;
        self.listed().await
    }

    async fn listed(&self) -> (Vec<Found>, Vec<AdbError>) {
        let lists = join_all(self.routes.iter().map(Route::phones)).await;
        let (mut all, mut problems) = (Vec::new(), Vec::new());
        let mut names = self.names.lock().await;
        for (route, list) in self.routes.iter().zip(lists) {
            match list {
                Ok(rows) => all.extend(names.found(route, rows).await),
                Err(error) => problems.push(error),
            }
        }
        (all, problems)
    }

    /// The phone called `name`, or at the network address `name`, which is called. One that was just plugged in, or whose
    /// server was just started, has a moment to appear.
    pub async fn find(&self, name: &str) -> Result<Found, AdbError> {
        match name.parse::<Address>() {
            Ok(address) => self.call(&[address]).await,
            Err(_) => self.look(),
        }
        let end = Instant::now() + SETTLE;
        loop {
            let (all, mut problems) = self.listed().await;
            let is_over = self.routes.is_empty() || Instant::now() >= end;
            match all.into_iter().find(|phone| phone.is_called(name)) {
                // What was never there is not waited for as what was unplugged is.
                Some(phone) if matches!(phone.row.state, State::Unreachable(_)) => {
                    return Err(AdbError::Unusable {
                        name: phone.name,
                        state: phone.row.state,
                    });
                }
                Some(phone) => return Ok(phone),
                None if is_over => {
                    let absent = AdbError::Absent {
                        name: name.to_owned(),
                    };
                    return Err(problems.pop().unwrap_or(absent));
                }
                None => sleep(POLL).await,
            }
        }
    }

    /// Has whoever is not a server look for phones that show themselves.
    fn look(&self) {
        for route in &self.routes {
            if let Route::Direct(direct) = route {
                direct.look();
            }
        }
    }

    /// Has the first way connect to phones at network addresses.
    async fn call(&self, phones: &[Address]) {
        let Some(route) = self.routes.first() else {
            return;
        };
        // Those that do not come are missing in the list, and named when they are asked for.
        join_all(phones.iter().map(|phone| route.connect(phone))).await;
    }

    /// Watches all of them.
    pub fn watch(&self) -> Watch {
        self.look();
        let (sender, receiver) = mpsc::channel(16);
        let mut tasks = JoinSet::new();
        for (index, route) in self.routes.iter().enumerate() {
            let phones = if index == 0 {
                self.phones.clone()
            } else {
                Vec::new()
            };
            tasks.spawn(watch(index, route.clone(), phones, sender.clone()));
        }
        Watch {
            lists: vec![None; self.routes.len()],
            receiver,
            _tasks: tasks,
        }
    }
}

async fn own(settings: &Settings) -> Result<(Program, Server), AdbError> {
    let program = program::find(settings.program.as_deref()).await?;
    let own = OwnServer {
        program: program.clone(),
        folder: settings.own_server(),
    };
    Ok((program, Server::own(own).await?))
}

/// This host is known to phones by the key that adb has made, if it has, so that nobody is asked twice.
fn direct(settings: &Settings) -> Route {
    let of_adb = std::env::home_dir().map(|home| home.join(".android/adbkey"));
    let key = of_adb
        .filter(|key| key.is_file())
        .unwrap_or_else(|| settings.state.join("adb-key"));
    Route::Direct(Direct::new(settings.layerlab.clone(), key))
}

/// Sees phones come and go.
pub struct Watch {
    /// What each way listed last; nothing while it does not answer.
    lists: Vec<Option<Vec<Found>>>,
    receiver: mpsc::Receiver<(usize, Option<Vec<Found>>)>,
    _tasks: JoinSet<()>,
}

impl Watch {
    /// All phones, once when they are first known, and then each time that something has changed.
    /// `None` when there is nothing to watch.
    pub async fn next(&mut self) -> Option<Vec<Found>> {
        loop {
            let (index, list) = self.receiver.recv().await?;
            let said = |list: &Option<Vec<Found>>| -> Option<Vec<(String, Row)>> {
                let one = |found: &Found| (found.name.clone(), found.row.clone());
                list.as_ref().map(|list| list.iter().map(one).collect())
            };
            let changed = said(&self.lists[index]) != said(&list);
            self.lists[index] = list;
            if changed {
                break;
            }
        }
        let all = self.lists.iter().flatten().flatten();
        Some(all.cloned().collect())
    }
}

type Lists = mpsc::Sender<(usize, Option<Vec<Found>>)>;

async fn watch(index: usize, route: Route, phones: Vec<Address>, lists: Lists) {
    let mut names = Names::default();
    loop {
        let tracked = async {
            let mut tracker = route.track().await?;
            let mut missing = phones.clone();
            loop {
                let rows = tokio::select! {
                    rows = tracker.next() => rows?,
                    never = call(&route, &missing) => match never {},
                };
                let ready = |phone: &Address| {
                    let serial = phone.to_string();
                    rows.iter()
                        .any(|row| row.serial == serial && row.state == State::Ready)
                };
                missing = phones
                    .iter()
                    .filter(|phone| !ready(phone))
                    .cloned()
                    .collect();
                let found = names.found(&route, rows).await;
                if lists.send((index, Some(found))).await.is_err() {
                    return Ok::<(), AdbError>(());
                }
            }
        };
        match tracked.await {
            Ok(()) => return,
            Err(error) => tracing::warn!(%error, "cannot see this server's phones"),
        }
        if lists.send((index, None)).await.is_err() {
            return;
        }
        // A server of ours that died is started again.
        let _ = route.ensure().await;
        sleep(CALL).await;
    }
}

/// Calls phones again and again; the list says which of them have come.
async fn call(route: &Route, phones: &[Address]) -> Infallible {
    loop {
        join_all(phones.iter().map(|phone| route.connect(phone))).await;
        sleep(CALL).await;
    }
}
