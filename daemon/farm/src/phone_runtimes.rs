//! Gives phones the runtimes that were added: those that their agents can load, each in a folder named by its content,
//! so that nothing is sent twice, and the environment in which the agent and the accelerator find them.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use crate::adb::{AdbError, Content, Phone, Printable, Prover, Values, quote};
use crate::agents::Linking;
use crate::runtimes::{AddedRuntime, LibrarySystem, Part, RuntimeLibrary, RuntimeStore, digest};

/// The folder of runtimes in layerlab's folder on phones.
pub(crate) const FOLDER: &str = "runtimes";

/// The processor whose Hexagon Qualcomm's libraries emulate, which only virtual phones have.
const EMULATES: &str = "x86_64";

/// The runtimes that phones are given, as they were when this was made: a run that goes on after a while finds the same.
#[derive(Clone, Debug, Default)]
pub struct PhoneRuntimes {
    runtimes: Arc<Vec<AddedRuntime>>,
    /// Why they cannot be read.
    problem: Option<String>,
    /// What was said already: a phone that comes and goes is told of once.
    said: Arc<Mutex<BTreeSet<String>>>,
    /// Whether it is kept for who asks, instead of being said.
    is_silent: bool,
}

/// Why a phone is not given a runtime, and what helps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsuited {
    /// The reason, as the beginning of a sentence.
    pub reason: String,
    /// What to do about it.
    pub remedy: String,
}

/// What a phone is given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Suited<'a> {
    /// The runtimes, each with the libraries that go to the phone.
    pub given: Vec<(&'a AddedRuntime, Vec<&'a RuntimeLibrary>)>,
    /// What it is not given, and should be.
    pub unsuited: Vec<Unsuited>,
}

/// The maker of a phone's SoC, as far as the phone says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Soc {
    /// The SoC's name, such as `SM8550`.
    pub model: String,
    /// Whether Qualcomm made it, so that it has a Hexagon.
    pub is_qualcomm: bool,
}

impl Soc {
    /// The SoC of a phone that said so much of itself.
    pub fn of(phone: &Values) -> Soc {
        let text = |key| phone.text(key).unwrap_or_default();
        Soc::from_properties(
            text("soc_model"),
            text("soc_manufacturer"),
            text("hardware"),
        )
    }

    /// Phones before Android 12 do not name the maker; their hardware is called `qcom`.
    fn from_properties(model: &str, maker: &str, hardware: &str) -> Soc {
        let is_qualcomm = match maker.to_ascii_lowercase().as_str() {
            "" => hardware == "qcom",
            maker => maker == "qti" || maker.contains("qualcomm"),
        };
        Soc {
            model: model.to_owned(),
            is_qualcomm,
        }
    }
}

impl PhoneRuntimes {
    /// The runtimes kept in layerlab's data folder.
    pub fn in_folder(data: &Path) -> PhoneRuntimes {
        match RuntimeStore::in_folder(data).list() {
            Ok(runtimes) => PhoneRuntimes {
                runtimes: Arc::new(runtimes),
                ..PhoneRuntimes::default()
            },
            // Phones can be measured without them.
            Err(error) => PhoneRuntimes {
                problem: Some(error.to_string()),
                ..PhoneRuntimes::default()
            },
        }
    }

    /// The same runtimes. What phones cannot use of them is not said to the user, but kept for [`PhoneRuntimes::told`].
    pub fn silent(self) -> PhoneRuntimes {
        PhoneRuntimes {
            said: Arc::default(),
            is_silent: true,
            ..self
        }
    }

    /// What was told of these runtimes until now, and by their phones' agents.
    pub fn told(&self) -> Vec<String> {
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let texts = said.iter().filter_map(|said| said.split_once('\n'));
        texts.map(|(_, text)| text.to_owned()).collect()
    }

    /// Whether there are none, so that phones have their agents' own runtime alone.
    pub fn are_none(&self) -> bool {
        self.runtimes.is_empty()
    }

    /// What a phone is given that has the binary interface `abi`, this SoC, and an agent linked so.
    pub fn suited(&self, abi: &str, linking: Linking, soc: &Soc) -> Suited<'_> {
        let mut suited = Suited::default();
        if self.are_none() {
            return suited;
        }
        let Some(system) = LibrarySystem::of_agent(linking) else {
            suited.unsuited.push(Unsuited {
                reason: format!(
                    "its agent is static and loads no runtime ({} stay here)",
                    self.titles()
                ),
                remedy: format!("make agent ABI={abi} ANDROID=1, with the Android NDK"),
            });
            return suited;
        };
        for runtime in self.runtimes.iter() {
            let libraries = runtime.libraries_for(abi, system);
            let is_of_use = |library: &&RuntimeLibrary| {
                library
                    .part()
                    .is_some_and(|part| soc.is_qualcomm || !part.is_of_qualcomm())
            };
            if libraries.iter().any(is_of_use) {
                suited.given.push((runtime, libraries));
            }
        }
        if !suited.has(Part::OnnxRuntime) {
            // Nothing else is of use without it.
            suited.given.clear();
            suited.unsuited.push(Unsuited {
                reason: format!(
                    "no ONNX Runtime for {abi} and {system} was added (there is {})",
                    self.titles()
                ),
                remedy:
                    "layerlab runtime add FILE; docs/phones.md says which file is for which phone"
                        .to_owned(),
            });
        } else if soc.is_qualcomm {
            suited.judge_qualcomm();
        }
        suited
    }

    fn titles(&self) -> String {
        let titles: Vec<String> = self.runtimes.iter().map(AddedRuntime::title).collect();
        titles.join(", ")
    }

    /// Puts what the phone needs into the folder `root` there, and returns the variables by which its agent finds it.
    pub(crate) async fn install(
        &self,
        phone: &Phone,
        root: &str,
        abi: &str,
        linking: Option<Linking>,
    ) -> Result<Vec<(&'static str, String)>, AdbError> {
        if let Some(problem) = &self.problem {
            self.say(phone.name(), &format!("its runtimes stay here: {problem}"));
        }
        let Some(linking) = linking.filter(|_| !self.are_none()) else {
            return Ok(Vec::new());
        };
        let soc = asked_for_soc(phone).await?;
        let suited = self.suited(abi, linking, &soc);
        for Unsuited { reason, remedy } in &suited.unsuited {
            self.say(phone.name(), &format!("{reason}; {remedy}"));
        }
        for (runtime, libraries) in &suited.given {
            send(phone, &folder(root, libraries), runtime, libraries).await?;
        }
        Ok(suited.environment(root, abi, linking, &soc))
    }

    /// Tells the user something about a phone, unless it was told before.
    pub(crate) fn say(&self, phone: &str, what: &str) {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        if said.insert(format!("{phone}\n{what}")) && !self.is_silent {
            tracing::warn!("{}: {}", Printable(phone), Printable(what));
        }
    }
}

impl Suited<'_> {
    fn has(&self, part: Part) -> bool {
        self.holder(part).is_some()
    }

    /// The libraries of the runtime that holds a part.
    fn holder(&self, part: Part) -> Option<&[&RuntimeLibrary]> {
        let has = |libraries: &&Vec<&RuntimeLibrary>| {
            libraries.iter().any(|one| one.part() == Some(part))
        };
        let mut all = self.given.iter().map(|(_, libraries)| libraries);
        all.find(has).map(Vec::as_slice)
    }

    /// Says what of Qualcomm's is missing, or does not go together.
    fn judge_qualcomm(&mut self) {
        let releases: BTreeSet<&str> = self
            .given
            .iter()
            .filter_map(|(runtime, _)| runtime.qualcomm_release.as_deref())
            .collect();
        let add = |what: &str| format!("layerlab runtime add FILE, with the file of {what}");
        let found = match (self.has(Part::Plugin), self.has(Part::Backend)) {
            (true, false) => Some(("libQnnHtp.so", add("com.qualcomm.qti:qnn-runtime"))),
            (false, true) => Some((
                "libonnxruntime_providers_qnn.so",
                add("com.qualcomm.qti:onnxruntime-android-qnn"),
            )),
            _ => None,
        };
        if let Some((missing, remedy)) = found {
            self.unsuited.push(Unsuited {
                reason: format!("its Hexagon is not offered: {missing} was not added"),
                remedy,
            });
        }
        if releases.len() > 1 {
            let releases: Vec<&str> = releases.into_iter().collect();
            self.unsuited.push(Unsuited {
                reason: format!(
                    "its Hexagon is not offered: Qualcomm's libraries are of {}",
                    releases.join(" and ")
                ),
                remedy: "take all from one release".to_owned(),
            });
        }
        if !self.unsuited.is_empty() {
            // Half of it would be sent in vain.
            let is_other = |library: &&RuntimeLibrary| library.part() == Some(Part::OnnxRuntime);
            self.given
                .retain(|(_, libraries)| libraries.iter().any(is_other));
        }
    }

    /// Whether the Hexagon can be offered.
    fn offers_hexagon(&self) -> bool {
        self.has(Part::Plugin) && self.has(Part::Backend) && self.unsuited.is_empty()
    }

    /// The variables by which an agent and what it loads find these libraries on a phone.
    fn environment(
        &self,
        root: &str,
        abi: &str,
        linking: Linking,
        soc: &Soc,
    ) -> Vec<(&'static str, String)> {
        let Some(onnxruntime) = self.holder(Part::OnnxRuntime) else {
            return Vec::new();
        };
        let folders: Vec<String> = self
            .given
            .iter()
            .map(|(_, libraries)| folder(root, libraries))
            .collect();
        let mut variables = vec![
            ("LAYERLAB_ONNXRUNTIME", folder(root, onnxruntime)),
            // Another phone may have what this one lacks.
            ("LAYERLAB_LEAVE_OUT", "true".to_owned()),
            ("ORT_DISABLE_TELEMETRY", "1".to_owned()),
            ("LD_LIBRARY_PATH", folders.join(":")),
        ];
        if !self.offers_hexagon() || !soc.is_qualcomm {
            return variables;
        }
        let holders = [self.holder(Part::Plugin), self.holder(Part::Backend)];
        let [Some(plugin), Some(backend)] = holders else {
            return variables;
        };
        let of_qualcomm: Vec<String> = self
            .given
            .iter()
            .filter(|(_, libraries)| {
                libraries
                    .iter()
                    .filter_map(|one| one.part())
                    .any(Part::is_of_qualcomm)
            })
            .map(|(_, libraries)| folder(root, libraries))
            .collect();
        variables.extend([
            ("LAYERLAB_QNN", folder(root, plugin)),
            ("LAYERLAB_QNN_LIBRARIES", folder(root, backend)),
            // Between folders there is a semicolon: with a colon, all of it would be one name.
            ("ADSP_LIBRARY_PATH", of_qualcomm.join(";")),
        ]);
        if abi == EMULATES && linking == Linking::Computer {
            variables.push(("LAYERLAB_EMULATE", soc.model.clone()));
        }
        variables
    }
}

/// The folder on a phone of a runtime with these libraries.
fn folder(root: &str, libraries: &[&RuntimeLibrary]) -> String {
    format!("{root}/{FOLDER}/{}", digest(libraries))
}

async fn asked_for_soc(phone: &Phone) -> Result<Soc, AdbError> {
    let command = "getprop ro.soc.model; getprop ro.soc.manufacturer; getprop ro.hardware";
    let said = phone
        .succeed("say which SoC it has", command, b"")
        .await?
        .text();
    let mut lines = said.lines().map(str::trim);
    let mut line = || lines.next().unwrap_or_default();
    Ok(Soc::from_properties(line(), line(), line()))
}

/// Sends those libraries of a runtime that the phone does not have. A file gets its name there once its hash is proved,
/// so that one that is there with its size is whole; what the agent loads it hashes again, for the profile.
async fn send(
    phone: &Phone,
    folder: &str,
    runtime: &AddedRuntime,
    libraries: &[&RuntimeLibrary],
) -> Result<(), AdbError> {
    let command = format!(
        "mkdir -p {folder} && touch {folder} && cd {folder} \
         && for f in *; do [ ! -f \"$f\" ] || stat -c '%s %n' \"$f\"; done"
    );
    let listed = phone
        .succeed("list a runtime's files", &command, b"")
        .await?
        .text();
    let there: BTreeSet<(&str, &str)> = listed
        .lines()
        .filter_map(|line| line.split_once(' '))
        .collect();
    for library in libraries {
        if there.contains(&(library.bytes.to_string().as_str(), library.name.as_str())) {
            continue;
        }
        let path = runtime.path(library);
        let own = |source| AdbError::Own {
            path: path.clone(),
            source,
        };
        let content = Content::file(&path).map_err(own)?;
        if content.sha256() != library.sha256 {
            let changed = format!(
                "it is not what was added; `layerlab runtime remove {}` and add it anew",
                quote(&runtime.name)
            );
            return Err(own(std::io::Error::other(changed)));
        }
        tracing::info!(
            phone = phone.name(),
            runtime = runtime.title(),
            library = library.name,
            bytes = library.bytes,
            "sending"
        );
        let target = format!("{folder}/{}", library.name);
        phone.push(&content, &target, 0o600, Prover::Phone).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
