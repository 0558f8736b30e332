//! Why runs are on no device, or wait on one.

use std::collections::{BTreeMap, HashMap};

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::record::{Device, Job, JobId, Run, RunState};
use crate::state::{AskedOfDevices, LabState, Work};
use crate::talk::WaitingRuns;
use crate::when::moment;

/// So many devices are named in a reason; the others are counted.
const NAMED: usize = 3;

/// Why runs wait, those of a job together that wait for the same.
pub(super) fn waiting(state: &LabState, now: Timestamp) -> Vec<WaitingRuns> {
    let mut all = Vec::new();
    let mut known = KnownReasons::new();
    for job in state.queue.jobs().filter_map(|id| state.kept.jobs.get(&id)) {
        all.extend(of_job(state, job, &mut known, now));
    }
    // A run that has a device may wait as well: until that is ready.
    for (name, place) in &state.places {
        if let (Work::Busy(number), Some(reason)) = (place.work, &place.not_ready)
            && let Some((job, _)) = state.run(number)
        {
            all.push(WaitingRuns {
                job: job.id,
                first: number,
                runs: 1,
                reason: format!("{name} is not ready: {reason}"),
            });
        }
    }
    all
}

/// What open jobs ask for that nothing known to the lab can give.
pub(super) fn impossible(state: &LabState) -> Vec<(JobId, String)> {
    let mut known: HashMap<AskedOfDevices<'_>, Vec<String>> = HashMap::new();
    let mut all = Vec::new();
    for job in state.queue.jobs().filter_map(|id| state.kept.jobs.get(&id)) {
        let problems = known.entry(AskedOfDevices::by(&job.spec));
        let problems = problems.or_insert_with(|| state.impossible(&job.spec));
        all.extend(problems.iter().map(|problem| (job.id, problem.clone())));
    }
    all
}

/// What decides which devices a run may have: the place of its selector, the one device that it is for, and the one where
/// it was parked.
type Meant<'a> = (usize, Option<&'a str>, Option<&'a str>);

/// Why no device has runs, by what their jobs ask for and which devices they may have.
type KnownReasons<'a> = HashMap<(AskedOfDevices<'a>, Meant<'a>), String>;

fn of_job<'a>(
    state: &'a LabState,
    job: &'a Job,
    known: &mut KnownReasons<'a>,
    now: Timestamp,
) -> Vec<WaitingRuns> {
    let held_back = state.held_back(job, now);
    let asked = AskedOfDevices::by(&job.spec);
    let mut groups: BTreeMap<String, WaitingRuns> = BTreeMap::new();
    for number in state.queue.runs_of(job.id) {
        let Some(run) = state.kept.runs.get(&number) else {
            continue;
        };
        let reason = match (&run.reason, &held_back) {
            (Some(reason), _) if state.unpublished.contains_key(&number) => reason.clone(),
            (_, Some(held_back)) => held_back.clone(),
            (_, None) if state.is_elsewhere(run) => {
                let host = run.host.as_deref().unwrap_or_default();
                match state.absence(host, now) {
                    None => format!("host `{host}` has it"),
                    Some(why) => format!("host `{host}` has it, and {why}"),
                }
            }
            (_, None) if !state.is_for_this_host(&job.spec) => state.turn_elsewhere(&job.spec, now),
            (_, None) => {
                let parked = run.phone.as_deref();
                let parked = parked.filter(|_| run.state == RunState::Parked);
                let meant = (run.selector, run.only.as_deref(), parked);
                let reason = known.entry((asked.clone(), meant));
                let reason = reason.or_insert_with(|| for_a_device(state, job, run, now));
                reason.clone()
            }
        };
        let group = groups.entry(reason.clone()).or_insert(WaitingRuns {
            job: job.id,
            first: number,
            runs: 0,
            reason,
        });
        group.runs += 1;
    }
    groups.into_values().collect()
}

/// Why no device has the run.
fn for_a_device(state: &LabState, job: &Job, run: &Run, now: Timestamp) -> String {
    let mut meant: Vec<&Device> = (state.kept.devices.values())
        .filter(|device| state.suits(job, run, device))
        .collect();
    let home = meant.iter().position(|device| {
        run.state == RunState::Parked && run.phone.as_ref() == Some(&device.name)
    });
    if let Some(home) = home {
        meant = vec![meant[home]];
    }
    let is_somewhere = !meant.is_empty();
    meant.retain(|device| state.is_on_chosen_host(&job.spec, &device.name));
    if is_somewhere && meant.is_empty() {
        let hosts = job.spec.hosts.join("`, `");
        return format!("no device that it is for is on host `{hosts}`");
    }
    if meant.is_empty() {
        return match &run.only {
            Some(only) => format!("{only} was never seen"),
            None => {
                let selector = &job.spec.devices[run.selector];
                let impossible = state.impossible_device(&job.spec, selector);
                impossible.unwrap_or_else(|| format!("no device is {selector}"))
            }
        };
    }
    let named = meant.iter().take(NAMED);
    let mut reasons: Vec<String> = named.map(|device| of_device(state, device, now)).collect();
    if meant.len() > NAMED {
        reasons.push(format!("and {} devices more", meant.len() - NAMED));
    }
    reasons.join(", ")
}

/// What keeps a device from the runs that wait for it.
fn of_device(state: &LabState, device: &Device, now: Timestamp) -> String {
    let name = &device.name;
    let told = |at| moment(at, now, &TimeZone::system());
    if let Some(host) = state.host_of(name) {
        return format!("its turn on {name}, which host `{}` has", host.name);
    }
    let Some(place) = state.places.get(name) else {
        return format!("{name} is gone");
    };
    if place.work != Work::Free {
        return match &place.not_ready {
            Some(reason) => format!("{name} is not ready: {reason}"),
            None => format!("{name} is busy"),
        };
    }
    if let Some(reserved) = state.reservation(name, now) {
        let note = match reserved.note.trim() {
            "" => String::new(),
            note => format!(": {note}"),
        };
        return format!("{name} is reserved until {}{note}", told(reserved.until));
    }
    match state.left_alone(name, now) {
        _ if !place.is_there => format!("{name} is gone"),
        Some(entry) => {
            let (until, reason) = (told(entry.until), entry.why());
            format!("{name} is quarantined until {until}: {reason}")
        }
        None => format!("its turn on {name}"),
    }
}
