//! `layerlab doctor`: what is missing for phones to be profiled, and the command that mends it.

mod agents;
mod finding;
mod fitness;
mod phone_runtimes;
mod processors;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::anyhow;
use futures_util::future::join_all;

pub(super) use self::finding::{Finding, print_all, problems};
use super::adb::AdbArgs;
use super::devices::Played;
use super::exit::{Code, Failure};
use super::output;
use super::runtimes::in_words;
use layerlab_farm::LinkError;
use layerlab_farm::adb::{AdbError, Address, Fleet, Found, Phone, Server, State, quote};
use layerlab_farm::agents::Agents;
use layerlab_farm::folders::Folders;
use layerlab_farm::phone_runtimes::PhoneRuntimes;
use layerlab_farm::quarantine::Quarantine;
use layerlab_profiles::document::Processor;

/// The port of everybody's adb server.
const COMMON_PORT: u16 = 5037;

/// How long a phone may take for all its answers.
const PHONE: Duration = Duration::from_secs(30);

/// Where udev rules are.
const RULES: [&str; 4] = [
    "/etc/udev/rules.d",
    "/run/udev/rules.d",
    "/usr/lib/udev/rules.d",
    "/lib/udev/rules.d",
];

#[derive(clap::Args)]
pub(super) struct DoctorArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(args: &DoctorArgs, adb: &AdbArgs, agent: PathBuf) -> Result<(), Failure> {
    let folders = Folders::of_this_user();
    let fleet = adb.fleet(&folders).await;
    let mut findings = servers(&fleet).await;
    findings.push(udev_rule());
    let agents = Agents {
        folder: folders.data.join("agents"),
        of_host: agent.clone(),
    };
    findings.extend(agents::survey(&agents));
    let runtimes_of_phones = PhoneRuntimes::in_folder(&folders.data);
    findings.extend(phone_runtimes::survey(&folders.data));
    if let Some(asked) = adb.host.processors(agent.clone()).await {
        findings.push(runtimes(asked));
    }
    let (phones, _) = fleet.list().await;
    if phones.is_empty() {
        findings.push(Finding::note(
            "phones",
            "none is plugged in",
            "plug one in with USB debugging switched on (Settings, Developer options)",
        ));
    }
    let quarantine = Quarantine::in_folder(&folders.state);
    let played = Played::in_lab().await;
    let examined = phones.iter().map(async |found| {
        let mut findings = examine(found, &quarantine, &agents, &runtimes_of_phones).await;
        // What the lab has play a device is left at it, and what is in quarantine alone.
        let names = [found.name.as_str(), &found.row.serial];
        if !played.has(&found.name) && matches!(quarantine.of(&names), Ok(None)) {
            findings.extend(processors::of_phone(found, &agents, &folders).await);
        }
        findings
    });
    findings.extend(join_all(examined).await.into_iter().flatten());
    print(args, &findings)
}

fn print(args: &DoctorArgs, findings: &[Finding]) -> Result<(), Failure> {
    if args.json {
        output::print_json(&findings)?;
    } else {
        print_all(findings)?;
    }
    let problems = problems(findings);
    if problems == 0 {
        return Ok(());
    }
    let noun = if problems == 1 { "problem" } else { "problems" };
    let error = anyhow!("{problems} {noun}; the line after each says what to do");
    Err(Failure::new(Code::Device, error))
}

/// The adb program, and the servers that it runs or that were named.
pub(super) async fn servers(fleet: &Fleet) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some(program) = &fleet.program {
        let found = format!("{} {}", program.path.display(), program.release);
        findings.push(Finding::fine("adb", found));
    }
    if fleet.direct_by_itself {
        let found = "there is none, so phones are reached without one";
        let remedy = "nothing need be done; `sudo apt install adb` has an adb server do it";
        findings.push(Finding::note("adb", found, remedy));
    }
    for problem in &fleet.problems {
        let remedy = match problem {
            AdbError::BadProgram { .. } => {
                "sudo apt install adb, and leave out --adb and LAYERLAB_ADB"
            }
            _ => "see what it says, and run layerlab doctor again",
        };
        findings.push(Finding::problem("adb", problem.to_string(), remedy));
    }
    for server in fleet.servers() {
        findings.push(examine_server(server).await);
    }
    let common = Server::given(Address {
        host: "127.0.0.1".to_owned(),
        port: COMMON_PORT,
    });
    let ours = fleet
        .servers()
        .any(|server| server.endpoint() == common.endpoint());
    if !ours && common.version().await.is_ok() {
        findings.push(Finding::note(
            "another adb server",
            format!(
                "one runs on port {COMMON_PORT}; phones on USB belong to whichever server was first"
            ),
            format!("adb kill-server, or use it: --adb-server 127.0.0.1:{COMMON_PORT}"),
        ));
    }
    findings
}

async fn examine_server(server: &Server) -> Finding {
    let subject = server.to_string();
    match (server.version().await, server.features().await) {
        (Ok(version), Ok(features)) => Finding::fine(
            &subject,
            format!("protocol version {version}, {} features", features.len()),
        ),
        (Err(error), _) | (_, Err(error)) => {
            let remedy = match server.log() {
                Some(log) => format!(
                    "see {}; kill it, and layerlab starts it anew",
                    log.display()
                ),
                None => "start it on its host (adb -a nodaemon server, which whoever reaches that host can then use), or leave out \
                         --adb-server and LAYERLAB_ADB_SERVER, and layerlab starts one here"
                    .to_owned(),
            };
            Finding::problem(&subject, error.to_string(), remedy)
        }
    }
}

/// Whether this computer lets its users reach phones on USB.
pub(super) fn udev_rule() -> Finding {
    udev(&RULES.map(Path::new))
}

/// Without a rule for phones, only root may open their USB devices.
fn udev(folders: &[&Path]) -> Finding {
    let files = folders
        .iter()
        .flat_map(|folder| std::fs::read_dir(folder).into_iter().flatten().flatten());
    let rule = files.map(|file| file.path()).find(|path| {
        path.file_name()
            .is_some_and(|name| name.to_string_lossy().contains("android"))
    });
    match rule {
        Some(rule) => Finding::fine("udev rule", rule.display().to_string()),
        None => Finding::note(
            "udev rule",
            "no rule for phones: on USB only root may use them",
            "sudo apt install android-sdk-platform-tools-common && sudo usermod -aG plugdev $USER, then restart this computer: \
             the adb server keeps the rights that it was started with",
        ),
    }
}

/// What the runtimes of this machine add to it.
fn runtimes(asked: Result<Vec<Processor>, LinkError>) -> Finding {
    let subject = "runtimes of this host";
    match asked {
        Ok(processors) => {
            let words: Vec<String> = processors.iter().map(in_words).collect();
            Finding::fine(subject, words.join("; "))
        }
        Err(error) => Finding::problem(
            subject,
            error.to_string(),
            "give other --onnxruntime, --qnn, --emulate or --as-accelerator, or none",
        ),
    }
}

/// What there is to say about one phone. One that does not answer keeps nobody else waiting.
pub(super) async fn examine(
    found: &Found,
    quarantine: &Quarantine,
    agents: &Agents,
    runtimes: &PhoneRuntimes,
) -> Vec<Finding> {
    let name = found.name.as_str();
    if found.row.state != State::Ready {
        let state = &found.row.state;
        return vec![Finding::problem(name, state.reason(), state.remedy())];
    }
    let asked = async {
        let phone = Phone::new(&found.route, &found.row)?;
        Ok::<_, AdbError>((
            phone.capabilities().await?,
            phone.battery().await?,
            phone.thermal().await?,
        ))
    };
    let (what, battery, thermal) = match tokio::time::timeout(PHONE, asked).await {
        Ok(Ok(answers)) => answers,
        Ok(Err(error)) => {
            return vec![Finding::problem(
                name,
                error.to_string(),
                "unplug it and plug it in again",
            )];
        }
        Err(_) => {
            return vec![Finding::problem(
                name,
                "it answers too slowly",
                "unplug it and plug it in again",
            )];
        }
    };
    let mut findings = vec![Finding::fine(name, what.summary())];
    let names = [
        name,
        &found.row.serial,
        what.text("serial").unwrap_or_default(),
    ];
    match quarantine.of(&names) {
        Ok(None) => {}
        Ok(Some(entry)) => findings.push(Finding::problem(
            name,
            format!(
                "in quarantine until {}: {}",
                entry.until_here(),
                entry.why()
            ),
            format!("layerlab quarantine lift {}", quote(&entry.phone)),
        )),
        Err(error) => findings.push(Finding::problem(name, error.to_string(), "remove the file")),
    }
    findings.extend(fitness::judge(name, &what, &battery, &thermal));
    findings.extend(agents::of_phone(name, &what, agents));
    findings.extend(phone_runtimes::of_phone(name, &what, agents, runtimes));
    findings
}

#[cfg(test)]
mod tests {
    use super::finding::Verdict;
    use super::*;

    #[test]
    fn a_rule_for_phones_is_found_and_its_absence_is_told() {
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(udev(&[folder.path()]).verdict, Verdict::Note);
        std::fs::write(folder.path().join("51-android.rules"), "").expect("room");
        assert_eq!(udev(&[folder.path()]).verdict, Verdict::Fine);
        assert_eq!(udev(&[Path::new("/nowhere")]).verdict, Verdict::Note);
    }
}
