//! What can be wrong with the values of a job file, and what to write instead.

use std::ops::RangeInclusive;
use std::path::Path;

use super::JobFile;
use super::content::{Content, Link, ModelEntry};
use layerlab_campaign::{EnergySettings, LinkSettings, SteadySettings, VideoSettings, port_here};
use layerlab_profiles::energy::FEWEST_VISITS;
use layerlab_profiles::link::{BadLinkName, LinkKind, link_name};

use crate::job::{MOST_RUNS, MeasureSpec, Selector};
use crate::record::bad_host_name;

const PRIORITIES: std::ops::RangeInclusive<i32> = -100..=100;

/// More are a slip of the finger.
const MOST_REPEATS: u32 = 1000;

/// From fewer visits nobody can say how they differ.
fn too_few(visits: u64) -> String {
    format!(
        "`{visits}` visits are too few to tell how they differ; write a whole number of at least {FEWEST_VISITS}"
    )
}

impl JobFile {
    /// What can be wrong with single values, and whether it is.
    pub(super) fn problems(&self) -> Vec<(bool, &'static str, String)> {
        let Content {
            models,
            hosts,
            repeats,
            priority,
            profiles,
            name,
            ..
        } = &self.content;
        let MeasureSpec {
            target_ci_percent,
            budget,
            samples,
            visits,
            steady,
            energy,
            energy_visits,
            processors,
            ..
        } = &self.measure;
        let unfit_duration = steady.and_then(|duration| SteadySettings::of(duration.into()).err());
        let unfit_window =
            energy.and_then(|window| EnergySettings::fit_window(window.into()).err());
        let no_size = |entry: &ModelEntry| match entry {
            ModelEntry::Path(_) => false,
            ModelEntry::Table(table) => table.dims.values().any(|size| *size == 0),
        };
        let named_twice =
            |names: &[String]| (1..names.len()).any(|place| names[..place].contains(&names[place]));
        let bad_host = hosts.iter().find_map(|name| bad_host_name(name));
        let home = |path: &Path| path.starts_with("~");
        let (subjects, asked_for) = match &self.link {
            None => (models.len(), format!("{} of `models`", models.len())),
            Some(_) => (1, "one link".to_owned()),
        };
        let runs = (subjects.saturating_mul(self.devices.len()))
            .saturating_mul(usize::try_from(*repeats).unwrap_or(usize::MAX));
        let mut problems = vec![
            (
                name.as_ref().is_some_and(|name| name.trim().is_empty()),
                "name",
                "a name is missing; write one, or leave the key out and the job is called what its file is"
                    .to_owned(),
            ),
            (
                models.is_empty() && self.link.is_none(),
                "models",
                "there is nothing to profile; write a list of ONNX files, such as [\"net.onnx\"]".to_owned(),
            ),
            (
                models.iter().any(no_size),
                "models",
                "0 is no size of a dimension; write a whole number of at least 1".to_owned(),
            ),
            (
                models.iter().any(|entry| {
                    let table = entry.clone().table();
                    home(&table.file) || table.quantised.as_ref().is_some_and(|path| home(path))
                }),
                "models",
                "`~` is not replaced in job files; write paths that begin with /, or from the job file's folder"
                    .to_owned(),
            ),
            (
                self.devices.is_empty(),
                "devices",
                "there is nothing to profile on; write [[devices]], and under it a serial, soc, abi, android or pool"
                    .to_owned(),
            ),
            (
                self.devices.iter().any(Selector::is_empty),
                "devices",
                "one of them says nothing; under each [[devices]] write a serial, soc, abi, android or pool, such as \
                 abi = \"arm64-v8a\""
                    .to_owned(),
            ),
            (
                bad_host.is_some(),
                "hosts",
                bad_host.unwrap_or_default(),
            ),
            (
                named_twice(hosts),
                "hosts",
                "a host stands here twice; write each once, as `layerlab hosts` lists it".to_owned(),
            ),
            (
                !(1..=MOST_REPEATS).contains(repeats),
                "repeats",
                format!("`{repeats}` is not how often something is done; write a whole number from 1 to {MOST_REPEATS}"),
            ),
            (
                runs > MOST_RUNS,
                "devices",
                format!(
                    "{asked_for} on {} of `devices`, {repeats} times each, are {runs} {}, and a job has at most \
                     {MOST_RUNS}; split it, or lower `repeats`",
                    self.devices.len(),
                    self.kind().given(runs)
                ),
            ),
            (
                !PRIORITIES.contains(priority),
                "priority",
                format!(
                    "`{priority}` is out of range; write a whole number from {} to {}, of which the greatest comes \
                     first",
                    PRIORITIES.start(),
                    PRIORITIES.end()
                ),
            ),
            (
                (profiles.as_ref()).is_some_and(|path| home(path) || path.as_os_str().is_empty()),
                "profiles",
                "this is no folder; write one that begins with /, or one from the job file's folder".to_owned(),
            ),
            (
                !(*target_ci_percent > 0.0 && *target_ci_percent <= 100.0),
                "measure.target-ci-percent",
                format!("`{target_ci_percent}` is no width of an interval; write a number above 0 and up to 100"),
            ),
            (
                budget.is_zero(),
                "measure.budget",
                "nothing can be measured in no time; write a duration such as \"10m\"".to_owned(),
            ),
            (
                *samples == 0,
                "measure.samples",
                "`0` samples are none; write a whole number of at least 1, better 6, below which there are no intervals"
                    .to_owned(),
            ),
            (
                *visits < u64::from(FEWEST_VISITS),
                "measure.visits",
                too_few(*visits),
            ),
            (
                unfit_duration.is_some(),
                "measure.steady",
                unfit_duration.map_or_else(String::new, |unfit| unfit.to_string()),
            ),
            (
                unfit_window.is_some(),
                "measure.energy",
                unfit_window.map_or_else(String::new, |unfit| unfit.to_string()),
            ),
            (
                *energy_visits < FEWEST_VISITS,
                "measure.energy-visits",
                too_few(u64::from(*energy_visits)),
            ),
            (
                energy.is_none() && *energy_visits != EnergySettings::VISITS,
                "measure.energy-visits",
                "energy is not measured; write `energy = \"30s\"` too, or leave the key out".to_owned(),
            ),
            (
                processors.iter().any(|name| name.trim().is_empty()) || named_twice(processors),
                "measure.processors",
                "each processor needs a name of its own; write those that a profile of the device lists, or leave the \
                 key out for all of them"
                    .to_owned(),
            ),
        ];
        if let Some(accuracy) = &self.accuracy {
            let stop_at = accuracy.stop_at_percent.unwrap_or(1.0);
            problems.extend([
                (
                    accuracy.set.as_os_str().is_empty(),
                    "accuracy.set",
                    "the evaluation set is missing; write the file that `layerlab set` made".to_owned(),
                ),
                (
                    accuracy.processors.len() == 1 || named_twice(&accuracy.processors),
                    "accuracy.processors",
                    "a placement is on a CPU and one accelerator or more, each named once; write a list such as \
                     [\"cpu\", \"gpu\", \"npu\"], or leave the key out for the first of each"
                        .to_owned(),
                ),
                (
                    accuracy.answers == Some(0),
                    "accuracy.answers",
                    "`0` answers are none; write a whole number of at least 1, or leave the key out for all".to_owned(),
                ),
                (
                    !(stop_at > 0.0 && stop_at < 100.0),
                    "accuracy.stop-at-percent",
                    format!("`{stop_at}` is no width of an interval; write a number above 0 and below 100"),
                ),
            ]);
        }
        if let Some(video) = &self.video {
            let alone = |section: &str| {
                format!(
                    "a job with [video] publishes no profiles, which `[{section}]` is about; leave it out, or submit a second \
                     job for them"
                )
            };
            let few = VideoSettings::FEWEST_ANSWERS;
            problems.extend([
                (
                    !self.content.measure.is_empty(),
                    "measure",
                    alone("measure"),
                ),
                (self.accuracy.is_some(), "accuracy", alone("accuracy")),
                (
                    video.set.as_os_str().is_empty(),
                    "video.set",
                    "the evaluation set is missing, whose images are the frames; write the file that `layerlab set` made"
                        .to_owned(),
                ),
                (
                    (video.processor.as_ref()).is_some_and(|name| name.trim().is_empty()),
                    "video.processor",
                    "a processor needs a name; write one, or leave the key out for the first accelerator".to_owned(),
                ),
                (
                    video.answers.is_some_and(|answers| answers < few),
                    "video.answers",
                    format!(
                        "half of the answers judges what was learnt from the others; write a whole number of at least {few}, \
                         or leave the key out for all"
                    ),
                ),
                (
                    video.frames == 0,
                    "video.frames",
                    "`0` frames are none; write a whole number of at least 1".to_owned(),
                ),
            ]);
        }
        if let Some(link) = &self.link {
            problems.extend(self.problems_of(link));
        }
        problems
    }

    fn problems_of(&self, link: &Link) -> Vec<(bool, &'static str, String)> {
        let alone = |key: &str| {
            format!(
                "a job with [link] measures that alone, which `{key}` is not about; leave it out, or submit a second job for it"
            )
        };
        let port = link.server.rsplit_once(':');
        let port = port.and_then(|(_, port)| port.parse::<u16>().ok());
        let no_tunnel = link.tunnel.then(|| port_here(&link.server).err()).flatten();
        let within = |value: u32, range: RangeInclusive<u32>| {
            let (least, most) = range.clone().into_inner();
            let problem =
                format!("`{value}` is out of range; write a whole number from {least} to {most}");
            (!range.contains(&value), problem)
        };
        let connections = link.connections.unwrap_or(1);
        let gaps = LinkSettings::GAPS_US;
        let [repeats, echoes, connected] = [
            within(link.repeats, LinkSettings::REPEATS),
            within(link.echoes, LinkSettings::ECHOES),
            within(connections, LinkSettings::CONNECTIONS),
        ];
        vec![
            (
                !self.content.models.is_empty(),
                "models",
                alone("models"),
            ),
            (
                !self.content.measure.is_empty(),
                "measure",
                alone("[measure]"),
            ),
            (self.accuracy.is_some(), "accuracy", alone("[accuracy]")),
            (self.video.is_some(), "video", alone("[video]")),
            (
                link_name(&link.name).is_err(),
                "link.name",
                BadLinkName.to_string(),
            ),
            (
                matches!(link.kind, None | Some(LinkKind::Shaped)),
                "link.kind",
                "what carries the link is missing; write wifi, cellular, ethernet, usb-tunnel or network-tunnel".to_owned(),
            ),
            (
                port.is_none(),
                "link.server",
                "this is no address of an edge server as the device reaches it; write one such as \"192.168.1.2:7377\""
                    .to_owned(),
            ),
            (
                link.token_file.as_os_str().is_empty() || link.token_file.starts_with("~"),
                "link.token-file",
                "the server's token file is missing; write the path of a copy that nobody else can read, which begins with / or \
                 from the job file's folder"
                    .to_owned(),
            ),
            (
                no_tunnel.is_some(),
                "link.tunnel",
                no_tunnel.map_or_else(String::new, |elsewhere| elsewhere.to_string()),
            ),
            (repeats.0, "link.repeats", repeats.1),
            (echoes.0, "link.echoes", echoes.1),
            (connected.0, "link.connections", connected.1),
            (
                connections > link.repeats,
                "link.connections",
                "a connection needs a transfer of each size; write at most as many as `repeats`".to_owned(),
            ),
            (
                !gaps.contains(&link.gap_us),
                "link.gap-us",
                format!("`{}` is out of range; write at most {} microseconds", link.gap_us, gaps.end()),
            ),
            (
                link.trace
                    .is_some_and(|trace| !LinkSettings::TRACES.contains(&trace)),
                "link.trace",
                "this is no length of a trace; write one from \"100ms\" to \"1h\"".to_owned(),
            ),
        ]
    }
}
