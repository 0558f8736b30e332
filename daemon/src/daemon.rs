//! `layerlab daemon`: owns the lab until it is told to stop.

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::timeout;

use super::adb::{AdbArgs, BY_ITSELF};
use super::campaign::agent_program;
use super::exit::{Code, ExitWith, Failure};
use super::log_filter;
use layerlab_campaign::publish::SigningKey;
use layerlab_farm::adb::Fleet;
use layerlab_farm::folders::{Folders, make_private};
use layerlab_farm::quarantine::Quarantine;
use layerlab_lab::analysis::AnalysisTables;
use layerlab_lab::clock::Clock;
use layerlab_lab::config::{Config, Log, ObjectsPlace};
use layerlab_lab::dispatcher::{Dispatcher, Message};
use layerlab_lab::farm::Farm;
use layerlab_lab::front_desk::FrontDesk;
use layerlab_lab::intake::Intake;
use layerlab_lab::library::Library;
use layerlab_lab::mirror::Mirror;
use layerlab_lab::night::Reports;
use layerlab_lab::notice::Notice;
use layerlab_lab::record::Kept;
use layerlab_lab::shared_profiles::SharedProfiles;
use layerlab_lab::socket::Listener;
use layerlab_lab::state::{LabState, Rules};
use layerlab_lab::store::{Reader, Store, StoreError};
use layerlab_web::{TokenFile, Uploads, WebError, WebLab, WebServer};

/// How long commands wait for phones that are plugged in to be seen, when the lab has just been opened.
const FIRST_LOOK: Duration = Duration::from_secs(3);

#[derive(clap::Args)]
pub(super) struct DaemonArgs {
    /// The configuration [default: config.toml in ~/.config/layerlab, else in /etc/layerlab]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// Reads the configuration and begins to log as it says.
pub(super) fn configure(args: &DaemonArgs) -> Result<Config, Failure> {
    let variable = |name: &str| std::env::var_os(name);
    let loaded = Config::load(args.config.as_deref(), variable).exit_with(Code::Input)?;
    let log = tracing_subscriber::fmt()
        .with_env_filter(log_filter("warn,layerlab=info"))
        .with_ansi(io::stderr().is_terminal())
        .with_writer(io::stderr);
    match loaded.config.lab.log {
        Log::Human => log.init(),
        Log::Json => log.json().init(),
    }
    Ok(loaded.config)
}

pub(super) async fn run(
    config: Config,
    agent: Option<PathBuf>,
    adb: &AdbArgs,
) -> Result<(), Failure> {
    let folders = Folders::of_this_user();
    let program = agent_program(agent)?;
    if let Err(error) = make_private(&folders.state) {
        tracing::warn!(state = %folders.state.display(), %error, "other users of this host may look into it");
    }
    let library = library(&config, &folders).await?;
    let opened = Store::open(&config.store(&folders)).await;
    let (store, kept) = opened.map_err(|error| Failure::new(store_code(&error), error))?;
    let ended = work(config, program, adb, folders, library, store.clone(), kept).await;
    // What it still does when the runtime ends is broken off.
    store.close().await;
    ended?;
    tracing::info!("the lab is closed");
    Ok(())
}

/// Works until it is told to stop, and keeps no store.
async fn work(
    config: Config,
    program: PathBuf,
    adb: &AdbArgs,
    folders: Folders,
    library: Library,
    store: Store,
    kept: Kept,
) -> Result<(), Failure> {
    let listener = Listener::bind(&folders.state).exit_with(Code::Output)?;
    let web = WebServer::bind(&config.web).await;
    let web = web.map_err(|error| Failure::new(web_code(&error), error))?;
    let (models, window) = (config.web.models.clone(), config.lab.window.clone());
    let uploads = Uploads::in_state(&folders.state, config.web.upload_mebibytes << 20);
    let host_folders = host_folders(&config, &folders);
    let rules = Rules::of(&config);
    let fleet = fleet(&config, adb, &folders).await;
    let reports = Reports {
        store: folders.state.join("lab"),
        folder: config.reports(&folders),
        notices: Notice::all(&config.report),
    };
    let place = config.store(&folders);
    let analysis = config.lab.analysis.clone().map(|folder| AnalysisTables {
        store: folders.state.join("lab"),
        folder,
    });
    let runtimes = adb.host.settings();
    let profiles = config.profiles(&folders);
    let key = config.lab.signing_key.as_deref().map(SigningKey::read);
    let key = key.transpose().exit_with(Code::Input)?;
    let farm = Farm::with_runtimes(
        config,
        folders.clone(),
        program,
        runtimes,
        key,
        store.clone(),
        library.clone(),
    );
    let (last_event, link_failures) = (store.last_event(), farm.link_failures());
    let mirror = library.objects().map(|objects| Mirror {
        store: folders.state.join("lab"),
        shared: SharedProfiles::new(objects.clone(), kept.lab.clone()),
        profiles: profiles.clone(),
    });
    let state = LabState::new(kept, rules);
    let dispatcher = Dispatcher::new(state, store, farm.clone(), Clock::Host)
        .with_quarantine(Quarantine::in_folder(&folders.state));
    let (messages, inbox) = mpsc::channel(256);
    // To the very end: whoever does not want to wait for it says so once more.
    tokio::spawn(stop_when_told(messages.clone()));
    tracing::info!(state = %folders.state.display(), store = %place, "the lab is open");
    let (seen, phones_seen) = oneshot::channel();
    let watching = tokio::spawn({
        let messages = messages.clone();
        async move { farm.watch(fleet, messages, seen).await }
    });
    let appending = tokio::spawn({
        let (last_event, messages) = (last_event.clone(), messages.clone());
        async move {
            if let Some(tables) = analysis {
                tables.append(last_event, messages).await;
            }
        }
    });
    let mirroring = tokio::spawn({
        let (last_event, messages) = (last_event.clone(), messages.clone());
        async move {
            if let Some(mirror) = mirror {
                mirror.follow(last_event, messages).await;
            }
        }
    });
    let desk = FrontDesk::new(Intake::new(library, profiles), messages);
    // What is asked meanwhile waits, so that no job is told that the phone beside it was never seen.
    let first_look = timeout(FIRST_LOOK, phones_seen).map(drop).shared();
    let listening = tokio::spawn({
        let (first_look, desk) = (first_look.clone(), desk.clone());
        async move {
            first_look.await;
            listen(listener, desk).await;
        }
    });
    let (end_web, web_ends) = watch::channel(false);
    let on_the_web = match web {
        None => None,
        Some(server) => {
            let reader = Reader::open(&folders.state.join("lab")).await;
            let lab = WebLab {
                desk,
                reader: reader.map_err(|error| Failure::new(store_code(&error), error))?,
                tokens: TokenFile::in_state(&folders.state),
                last_event,
                models,
                window,
                link_failures,
                folders: host_folders,
                uploads,
            };
            Some(tokio::spawn(async move {
                first_look.await;
                tracing::info!("the lab is on the web at {}", server.url());
                server.serve(lab, web_ends).await;
            }))
        }
    };
    let reporting = tokio::spawn(reports.write(dispatcher.is_working()));
    let ended = dispatcher.run(inbox).await;
    end_web.send_replace(true);
    if let Some(serving) = on_the_web {
        let _ = serving.await;
    }
    for task in [watching, listening, reporting, appending, mirroring] {
        task.abort();
        // It has ended once it says so, one way or the other.
        let _ = task.await;
    }
    ended.map_err(|error| Failure::new(store_code(&error), error))
}

/// Where copies of models are. An object store that cannot be used is found before anything depends on it; one that is only out
/// of reach may come back.
async fn library(config: &Config, folders: &Folders) -> Result<Library, Failure> {
    let library = config.shared_library(folders).exit_with(Code::Input)?;
    let Some(objects) = library.objects() else {
        return Ok(library);
    };
    match objects.prove().await {
        Ok(()) => tracing::info!(objects = %objects.place(), "files are shared"),
        Err(error) if error.may_pass() => {
            tracing::warn!("{error}; jobs that bring files are refused until it can be");
        }
        Err(error) => return Err(Failure::new(Code::Input, error)),
    }
    Ok(library)
}

/// Where the lab keeps and finds things; those within others come first.
fn host_folders(config: &Config, folders: &Folders) -> Vec<PathBuf> {
    let mut all = vec![
        folders.state.clone(),
        folders.data.clone(),
        config.profiles(folders),
        config.reports(folders),
    ];
    all.extend(config.lab.copies.clone());
    all.extend(config.web.models.clone());
    all.extend(config.lab.analysis.clone());
    if let Some(ObjectsPlace::Folder(folder)) = &config.lab.objects {
        all.push(folder.clone());
    }
    all.sort_by_key(|folder| std::cmp::Reverse(folder.as_os_str().len()));
    all.dedup();
    all
}

/// The adb servers and phones of the configuration; what the command line says goes before.
async fn fleet(config: &Config, adb: &AdbArgs, folders: &Folders) -> Fleet {
    let fleet = Fleet::open(&adb.settings_over(&config.phones, folders)).await;
    if fleet.direct_by_itself {
        tracing::warn!("{BY_ITSELF}");
    }
    for problem in &fleet.problems {
        tracing::warn!("{problem}");
    }
    fleet
}

/// Passes commands on to the front desk.
async fn listen(listener: Listener, desk: FrontDesk) {
    loop {
        let (request, reply) = listener.accept().await;
        let desk = desk.clone();
        tokio::spawn(async move { reply.send(desk.ask(request, None).await).await });
    }
}

/// The first signal ends the lab once every run on a device has ended a block, the second at once.
fn stop_when_told(messages: mpsc::Sender<Message>) -> impl Future<Output = ()> {
    let signals = (
        signal(SignalKind::interrupt()),
        signal(SignalKind::terminate()),
    );
    async move {
        let (Ok(mut interrupt), Ok(mut terminate)) = signals else {
            tracing::error!(
                "signals cannot be waited for; end the daemon with SIGKILL, which loses nothing"
            );
            return;
        };
        let mut told = false;
        loop {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            if told {
                std::process::exit(i32::from(Code::Interrupted as u8));
            }
            told = true;
            tracing::info!(
                "stopping when each run on a device has ended a block; once more to stop at once"
            );
            if messages.send(Message::Stop).await.is_err() {
                return;
            }
        }
    }
}

fn web_code(error: &WebError) -> Code {
    match error {
        WebError::Open { .. } | WebError::Half { .. } | WebError::Certificate { .. } => Code::Input,
        WebError::Listen { .. } => Code::Output,
    }
}

fn store_code(error: &StoreError) -> Code {
    match error {
        StoreError::Taken { .. }
        | StoreError::TakenOnServer { .. }
        | StoreError::InUse { .. }
        | StoreError::Replaced { .. }
        | StoreError::Released { .. }
        | StoreError::Overtaken { .. }
        | StoreError::Away { .. } => Code::Device,
        _ => Code::Output,
    }
}
