//! Windows that name no time zone are by the clock of each host.

use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use layerlab_tests::postgres::postgres;

use super::super::job;
use super::racks;

/// They are twelve hours apart, and their clocks are never changed.
const ZONES: [&str; 2] = ["Etc/GMT-6", "Etc/GMT+6"];

#[test]
fn a_window_without_a_time_zone_is_by_the_clock_of_each_host_which_is_said() {
    let Some(server) = postgres() else { return };
    let url = server.database();
    let folder = tempfile::tempdir().expect("a folder");
    let shared = folder.path().to_str().expect("UTF-8");
    let labs = racks(&url, shared).into_iter().zip(ZONES);
    let labs: Vec<_> = labs
        .map(|(lab, zone)| lab.with_variable("TZ", zone.into()))
        .collect();
    let daemons: Vec<_> = labs.iter().map(|lab| lab.daemon()).collect();
    for lab in &labs {
        lab.wait_until_open();
        lab.wait_for_devices(4);
    }
    let (one, two) = (&labs[0], &labs[1]);
    let there = TimeZone::get(ZONES[0]).expect("a zone");
    let hour = |hours: i64| {
        let at = Timestamp::now().to_zoned(there.clone()) + hours.hours();
        at.strftime("%H:00").to_string()
    };
    let window = format!("{}-{}", hour(-2), hour(4));
    let any = "repeats = 4\n[[devices]]\nabi = \"x86_64\"\n[measure]\ndesign = \"local\"\n";
    two.submit(&job("alexnet", &format!("window = {window:?}\n{any}")));
    // Who is asked where it is closed is told by whose clock.
    let closed = format!(
        "outside its window, {window} by the clock of host `rack-2` ({})",
        ZONES[1]
    );
    let jobs = two.succeed(&["jobs"]);
    assert!(jobs.contains(&closed), "{jobs}");
    two.succeed(&["job", "wait", "1", "--timeout", "2m"]);
    let runs = two.kept().runs;
    let by: Vec<_> = runs.values().map(|run| run.host.as_deref()).collect();
    assert_eq!(by, [Some("rack-1"); 4]);

    // One that comes again does once, and so in the time zone of the host that took it.
    two.submit(&job("alexnet", &format!("every = \"0 3 1 1 *\"\n{any}")));
    let jobs = one.kept().jobs;
    let every = jobs[&2].spec.every.as_ref().map(ToString::to_string);
    assert_eq!(every, Some(format!("0 3 1 1 * {}", ZONES[1])));
    let hosts = one.succeed(&["hosts"]);
    for (host, zone) in ["rack-1", "rack-2"].into_iter().zip(ZONES) {
        let line = hosts.lines().find(|line| line.contains(host));
        assert!(line.is_some_and(|line| line.contains(zone)), "{hosts}");
    }
    daemons.into_iter().for_each(|daemon| daemon.stop());
}
