//! What a job asks for that no device gives: said when it is submitted, and as long as it waits.

use std::collections::BTreeSet;

use super::LabState;
use crate::job::{JobSpec, Selector};
use crate::record::Device;

/// What a job asks of devices: for jobs that ask for the same, the same is impossible.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct AskedOfDevices<'a> {
    hosts: &'a [String],
    devices: &'a [Selector],
    processors: BTreeSet<&'a String>,
    link: Option<&'a str>,
}

impl<'a> AskedOfDevices<'a> {
    pub(crate) fn by(spec: &'a JobSpec) -> AskedOfDevices<'a> {
        AskedOfDevices {
            hosts: &spec.hosts,
            devices: &spec.devices,
            processors: processors(spec),
            link: spec.link.as_ref().map(|link| link.name.as_str()),
        }
    }
}

/// The processors that each device must have.
fn processors(spec: &JobSpec) -> BTreeSet<&String> {
    let accuracy = spec.accuracy.iter().flat_map(|of| &of.processors);
    let video = spec.video.iter().flat_map(|of| &of.processor);
    let times = spec.measure.processors.iter();
    times.chain(accuracy).chain(video).collect()
}

impl LabState {
    /// What `spec` asks for that nothing known to the lab can give, each in a sentence with what to do. A device that comes
    /// later may give it.
    pub fn impossible(&self, spec: &JobSpec) -> Vec<String> {
        let mut problems = self.unknown_hosts(spec);
        for selector in &spec.devices {
            if let Some(problem) = self.impossible_device(spec, selector)
                && !problems.contains(&problem)
            {
                problems.push(problem);
            }
        }
        problems
    }

    /// Why no device can be what `selector` asks for; nothing if one is, or may be.
    pub(crate) fn impossible_device(&self, spec: &JobSpec, selector: &Selector) -> Option<String> {
        if let Some(pool) = &selector.pool
            && !self.rules.pools.contains(pool)
        {
            let known: Vec<&str> = self.rules.pools.iter().map(String::as_str).collect();
            let known = match known.is_empty() {
                true => "it has none".to_owned(),
                false => format!("it has {}", known.join(", ")),
            };
            return Some(format!(
                "the lab's configuration has no pool `{pool}` ({known}); add it there under [phones.pools], or cancel the job"
            ));
        }
        let devices = self.kept.devices.values();
        let meant: Vec<&Device> = devices.filter(|one| selector.matches(one)).collect();
        if meant.is_empty() {
            return Some(format!(
                "the lab has seen no device with {selector}; plug one in, or cancel the job"
            ));
        }
        if let Some(link) = &spec.link
            && meant.iter().all(|device| !spec.means(selector, device))
        {
            return Some(format!(
                "what the lab has seen with {selector} is simulated, and has no link such as {} of its own; plug in a phone, or \
                 cancel the job and submit it for phones or `host`",
                link.name
            ));
        }
        let wanted = processors(spec);
        let lacks = |device: &Device| -> Option<String> {
            let known = device.processors.as_ref()?;
            let lacking = wanted.iter().find(|name| !known.contains(name))?;
            Some(format!(
                "{} has no processor `{lacking}`, but {}",
                device.label(),
                known.join(", ")
            ))
        };
        // With one that does not, or of which nobody knows, all is well.
        let lacking: Option<Vec<String>> = meant.iter().map(|device| lacks(device)).collect();
        let lacking = lacking?;
        let all = lacking.len();
        let shown: Vec<String> = lacking.into_iter().take(3).collect();
        let more = match all - shown.len() {
            0 => String::new(),
            more => format!(" and {more} more likewise"),
        };
        Some(format!(
            "{}{more}; cancel the job, and submit it with other processors or devices",
            shown.join("; ")
        ))
    }
}
