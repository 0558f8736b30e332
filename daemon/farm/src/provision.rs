//! Makes a phone ready: the agent for its processor, pushed only when it is not there already, the
//! simulated device that it may play, the models it needs, and the agent started, detached.

use std::path::Path;
use std::time::Duration;

use layerlab_profiles::sha256;

use crate::adb::{AdbError, Content, Identity, Phone, Prover, quote};
use crate::agents::{Agents, Linking};
use crate::phone_runtimes::{self, PhoneRuntimes};

/// Layerlab's folder on phones: the only place where the shell user may store and run programs.
const ROOT: &str = "/data/local/tmp/layerlab";

/// How much of a phone's storage models and evaluation sets may take, unless the user says otherwise.
pub const DEFAULT_CACHE_BYTES: u64 = 4 << 30;

/// An agent that was not used for so many days is of an older layerlab, or will be pushed again.
const KEPT_DAYS: u32 = 30;

/// The script that starts the agent.
const START_AGENT: &str = include_str!("adb/start_agent.sh");

/// How long the script may take, which kills an agent and waits until another one listens.
const START: Duration = Duration::from_secs(60);

/// The same with runtimes, each of whose processors the agent tries first.
const START_WITH_RUNTIMES: Duration = Duration::from_secs(150);

/// The script's exit status for an agent that refuses what it was given.
const REFUSED: u8 = 3;

/// What a phone shall be provided with.
#[derive(Clone, Debug)]
pub struct Provision {
    /// Where agents come from.
    pub agents: Agents,
    /// The file of a simulated device that the phone's agent shall play. Never read here.
    pub simulate: Option<Content<'static>>,
    /// The runtimes beside the agent's own. An agent that plays a simulated device has no use for them.
    pub runtimes: PhoneRuntimes,
    /// How much storage models and evaluation sets may take.
    pub cache_bytes: u64,
    /// The lab, if several hosts share it: each of them goes on with the journals that another one's agent has begun on the phone.
    /// Otherwise agents, and their journals, are this host's alone.
    pub lab: Option<String>,
}

/// An agent that was put on a phone, with a folder of its own: agents of another version, or that play
/// another device, never see its journals. Nor do those of another host, unless it is one of the same lab.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installed {
    folder: String,
    /// Where its program is.
    pub program: String,
    device: Option<String>,
    /// The variables by which the agent finds runtimes.
    environment: Vec<(&'static str, String)>,
    /// The abstract socket that it listens on.
    pub socket: String,
}

impl Provision {
    /// Puts the agent, and what it shall play, on the phone.
    pub async fn install(
        &self,
        phone: &Phone,
        identity: &Identity,
        token: &str,
    ) -> Result<Installed, AdbError> {
        let agent = self.agents.content(phone, &identity.abi)?;
        let simulate = self.simulate.as_ref();
        let environment = match simulate {
            Some(_) => Vec::new(),
            None => {
                let linking = Linking::of(&self.agents.program(&identity.abi));
                let given = self.runtimes.install(phone, ROOT, &identity.abi, linking);
                given.await?
            }
        };
        // Runtimes are named by their content: an agent with others is another one.
        let with_runtimes = environment
            .iter()
            .map(|(name, value)| format!("{name}={value}"));
        let parts = [
            agent.sha256().to_owned(),
            simulate.map_or("", |device| device.sha256()).to_owned(),
            match &self.lab {
                Some(lab) => format!("lab {lab} {}", identity.serial),
                None => token.to_owned(),
            },
        ];
        let key = key(&parts.into_iter().chain(with_runtimes).collect::<Vec<_>>());
        let folder = format!("{ROOT}/{key}");
        // The agent looks for files in its own folder; all agents share them. Old agents that cannot be
        // removed are no reason to fail.
        let command = format!(
            "mkdir -p {ROOT}/files {ROOT}/{runtimes} {folder} && chmod 700 {ROOT} && touch {folder} \
             && {{ [ -e {folder}/files ] || ln -s ../files {folder}/files; }} \
             && {{ find {ROOT} {ROOT}/{runtimes} -mindepth 1 -maxdepth 1 -type d ! -name files ! -name {runtimes} \
             -mtime +{KEPT_DAYS} -exec rm -rf {{}} + || true; }}",
            runtimes = phone_runtimes::FOLDER
        );
        phone.succeed("make a folder", &command, b"").await?;
        let installed = Installed {
            program: format!("{folder}/layerlab-agent"),
            device: simulate.map(|_| format!("{folder}/device.toml")),
            environment,
            socket: format!("layerlab-{key}"),
            folder,
        };
        put(phone, &agent, &installed.program, 0o755).await?;
        if let (Some(content), Some(path)) = (simulate, &installed.device) {
            put(phone, content, path, 0o600).await?;
        }
        Ok(installed)
    }

    /// Starts the agent unless it runs; with `anew`, kills it first. Other agents of layerlab on the
    /// phone end. Returns whether it was started.
    pub async fn start(
        &self,
        phone: &Phone,
        installed: &Installed,
        token: &str,
        anew: bool,
    ) -> Result<bool, AdbError> {
        let (seconds, deadline) = match installed.environment.is_empty() {
            true => ("20", START),
            false => ("100", START_WITH_RUNTIMES),
        };
        // On standard input: a command line would show the token to everybody on the phone.
        let variables = [
            ("root", ROOT),
            ("folder", &installed.folder),
            ("program", &installed.program),
            ("socket", &installed.socket),
            ("token", token),
            ("owner", &owner(token)),
            ("device", installed.device.as_deref().unwrap_or_default()),
            ("anew", if anew { "yes" } else { "no" }),
            ("seconds", seconds),
        ];
        let mut script: String = variables
            .iter()
            .map(|(name, value)| format!("{name}={}\n", quote(value)))
            .collect();
        let environment = installed.environment.iter();
        let environment = environment.map(|(name, value)| quote(&format!("{name}={value}")));
        let environment: Vec<String> = environment.collect();
        script.push_str(&format!("set -- {}\n", environment.join(" ")));
        script.push_str(START_AGENT);
        let asked = phone.shell_within("sh", script.as_bytes(), deadline);
        let output = asked.await?;
        match output.status {
            0 => {
                let said = output.text();
                let mut lines = said.lines();
                let started = lines.next().is_some_and(|line| line.trim() == "started");
                for line in lines {
                    self.runtimes.say(phone.name(), line);
                }
                Ok(started)
            }
            REFUSED => {
                let said = output.last_words();
                let said = said.strip_prefix("layerlab-agent: ").unwrap_or(&said);
                Err(AdbError::AgentRefused {
                    said: said.to_owned(),
                })
            }
            _ => Err(AdbError::AgentStart {
                name: phone.name().to_owned(),
                said: output.last_words(),
            }),
        }
    }

    /// Puts a model or an evaluation set where agents look for it, and makes room if it must. A file that is there
    /// is not sent again.
    pub async fn push_file(
        &self,
        phone: &Phone,
        sha256: &str,
        content: &[u8],
    ) -> Result<(), AdbError> {
        let command = format!(
            "cd {ROOT}/files && for f in *; do [ ! -f \"$f\" ] || stat -c '%Y %s %n' \"$f\"; done"
        );
        let listed = phone.succeed("list its files", &command, b"").await?.text();
        let cached: Vec<Cached> = listed.lines().filter_map(Cached::parse).collect();
        let name = sha256.to_owned();
        let size = content.len() as u64;
        let path = format!("{ROOT}/files/{name}");
        // The agent removes what is not what its name says.
        if cached
            .iter()
            .any(|file| file.name == name && file.bytes == size)
        {
            let touch = format!("touch {}", quote(&path));
            return phone
                .succeed("note that a file is used", &touch, b"")
                .await
                .map(drop);
        }
        let mut others: Vec<Cached> = cached
            .into_iter()
            .filter(|file| file.name != name)
            .collect();
        others.sort();
        let surplus = surplus(&others, size, self.cache_bytes);
        let mut kept = others.split_off(surplus).into_iter();
        evict(phone, &others).await?;
        let content = Content::with_sha256(content, sha256);
        loop {
            match phone.push(&content, &path, 0o600, Prover::Agent).await {
                // Less room than the budget: older files go one by one.
                Err(full @ AdbError::StorageFull { .. }) => match kept.next() {
                    Some(oldest) => evict(phone, &[oldest]).await?,
                    None => return Err(full),
                },
                pushed => return pushed.map(drop),
            }
        }
    }
}

/// Puts `content` at `path`, unless it is there.
async fn put(phone: &Phone, content: &Content<'_>, path: &str, mode: u32) -> Result<(), AdbError> {
    if phone.holds(content, path).await? {
        return Ok(());
    }
    phone
        .push(content, path, mode, Prover::Phone)
        .await
        .map(drop)
}

async fn evict(phone: &Phone, files: &[Cached]) -> Result<(), AdbError> {
    if files.is_empty() {
        return Ok(());
    }
    tracing::info!(
        phone = phone.name(),
        files = files.len(),
        "evicting files that were not used for longest"
    );
    let names: Vec<String> = files.iter().map(|file| quote(&file.name)).collect();
    let command = format!("cd {ROOT}/files && rm -f -- {}", names.join(" "));
    phone.succeed("remove files", &command, b"").await.map(drop)
}

/// A file in the cache. The order is that of eviction: oldest first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Cached {
    used_s: i64,
    name: String,
    bytes: u64,
}

impl Cached {
    fn parse(line: &str) -> Option<Cached> {
        let mut words = line.splitn(3, ' ');
        Some(Cached {
            used_s: words.next()?.parse().ok()?,
            bytes: words.next()?.parse().ok()?,
            name: words.next()?.to_owned(),
        })
    }
}

/// How many of `cached`, oldest first, must go so that `incoming` bytes more stay within `budget`.
fn surplus(cached: &[Cached], incoming: u64, budget: u64) -> usize {
    let mut total: u64 = incoming + cached.iter().map(|file| file.bytes).sum::<u64>();
    let mut count = 0;
    for file in cached {
        if total <= budget {
            break;
        }
        total -= file.bytes;
        count += 1;
    }
    count
}

/// A short name for what `parts` are together.
fn key(parts: &[String]) -> String {
    sha256(parts.join("\n").as_bytes())[..16].to_owned()
}

/// What tells whether an agent was started with this token, without telling the token.
fn owner(token: &str) -> String {
    sha256(format!("owner\n{token}").as_bytes())[..16].to_owned()
}

/// The secret of the agents that this host starts, made once. Each phone's token is derived from it, so
/// that one phone does not learn another's.
pub fn token(state: &Path, serial: &str) -> Result<String, AdbError> {
    let path = state.join("agent-secret");
    let failed = |source| AdbError::Own {
        path: path.clone(),
        source,
    };
    let read = || std::fs::read_to_string(&path);
    let secret = match read() {
        Ok(secret) => secret,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let secret = format!(
                "{:032x}{:032x}",
                rand::random::<u128>(),
                rand::random::<u128>()
            );
            // Whoever is first wins; the other reads what the first wrote.
            std::fs::create_dir_all(state).map_err(failed)?;
            let mut file = tempfile::NamedTempFile::new_in(state).map_err(failed)?;
            std::io::Write::write_all(&mut file, secret.as_bytes()).map_err(failed)?;
            let _ = file.persist_noclobber(&path);
            read().map_err(failed)?
        }
        Err(error) => return Err(failed(error)),
    };
    Ok(sha256(format!("{secret}\n{serial}").as_bytes())[..32].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cached(used_s: i64, bytes: u64) -> Cached {
        let name = format!("{used_s}.onnx");
        Cached {
            used_s,
            name,
            bytes,
        }
    }

    #[test]
    fn the_oldest_files_go_until_the_new_one_fits_the_budget() {
        let files = [cached(1, 40), cached(2, 30), cached(3, 30)];
        let cases = [
            (0, 100, 0),
            (1, 100, 1),
            (41, 100, 2),
            (100, 100, 3),
            (500, 100, 3),
        ];
        for (incoming, budget, count) in cases {
            assert_eq!(surplus(&files, incoming, budget), count, "{incoming}");
        }
    }

    #[test]
    fn a_listing_is_read_whatever_the_names_are() {
        assert_eq!(
            Cached::parse("1795184154 12 a b;c"),
            Some(Cached {
                used_s: 1_795_184_154,
                bytes: 12,
                name: "a b;c".to_owned()
            })
        );
        assert_eq!(Cached::parse("stat: no such file"), None);
    }

    #[test]
    fn a_phones_token_stays_and_is_its_own() {
        let folder = tempfile::tempdir().expect("a folder");
        let first = token(folder.path(), "a").expect("room");
        assert_eq!(first, token(folder.path(), "a").expect("a file"));
        assert_ne!(first, token(folder.path(), "b").expect("a file"));
    }
}
