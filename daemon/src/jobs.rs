//! `layerlab jobs`: what the lab was asked for, and what each job waits for.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::exit::Failure;
use super::output;
use super::which_lab::LabArgs;
use layerlab_farm::adb::Printable;
use layerlab_lab::query::{ListedJob, Page, listed_jobs};
use layerlab_lab::record::RunState;
use layerlab_lab::talk::Status;
use layerlab_lab::text_table::table;

#[derive(clap::Args)]
pub(super) struct JobsArgs {
    /// Those that are over, too
    #[arg(long)]
    all: bool,
    /// Which page of a long list; JSON has all of it if none is chosen
    #[arg(long, value_name = "NUMBER")]
    page: Option<usize>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(args: &JobsArgs, lab: &LabArgs) -> Result<(), Failure> {
    let (kept, status) = lab.open()?.jobs(args.all).await?;
    let (now, zone) = (Timestamp::now(), TimeZone::system());
    let jobs = listed_jobs(&kept, status.as_ref(), args.all, now, &zone);
    let (all, page) = (jobs.len(), Page::new(args.page.unwrap_or(1)));
    if args.json && args.page.is_none() {
        return output::print_json(&jobs);
    }
    let jobs = page.of(jobs);
    if args.json {
        return output::print_json(&jobs);
    }
    if kept.last_job == 0 {
        return output::print("No jobs. `layerlab submit JOB.toml` gives the lab one.");
    }
    if all == 0 {
        return output::print("No job is open. `layerlab jobs --all` lists those that are over.");
    }
    output::print(jobs_table(&jobs))?;
    let command = if args.all {
        "layerlab jobs --all"
    } else {
        "layerlab jobs"
    };
    if let Some(footer) = page.footer(all, "jobs", command) {
        output::note(format_args!("\n{footer}"));
    }
    match status {
        None => output::note("\nNo daemon runs here, so that nothing is worked on."),
        Some(Status {
            trouble: Some(trouble),
            ..
        }) => output::note(format_args!("\nThe lab does not work: {trouble}")),
        Some(_) => {}
    }
    Ok(())
}

fn jobs_table(jobs: &[ListedJob]) -> String {
    let rows = jobs.iter().map(|listed| {
        let spec = &listed.job.spec;
        let devices: Vec<String> = spec.devices.iter().map(ToString::to_string).collect();
        let texts = [spec.name.clone(), few(&devices)];
        let [name, devices] = texts.map(|text| Printable(&text).to_string());
        let (done, all) = (listed.runs.in_state(RunState::Done), listed.runs.all());
        vec![
            listed.job.id.to_string(),
            name,
            listed.job.state.to_string(),
            spec.priority.to_string(),
            match listed.worse {
                0 => format!("{done}/{all}"),
                worse => format!("{done}/{all}, {worse} worse"),
            },
            devices,
            Printable(&few(&listed.waiting_for)).to_string(),
        ]
    });
    let heads = [
        "job",
        "name",
        "state",
        "priority",
        "runs",
        "devices",
        "waiting for",
    ];
    table(&heads, &[0, 3, 4], rows)
}

/// So many of several texts stand in a table; the others are counted.
const FEW: usize = 3;

/// The first of `texts`, and how many more there are.
pub(super) fn few(texts: &[String]) -> String {
    let more = texts.len().saturating_sub(FEW);
    let shown = texts.iter().take(FEW).cloned();
    let more = (more > 0).then(|| format!("and {more} more"));
    shown.chain(more).collect::<Vec<_>>().join("; ")
}
