//! `layerlab submit`: gives the lab a job.

use std::path::PathBuf;

use jiff::Timestamp;

use super::exit::{Code, ExitWith, Failure};
use super::which_lab::{Lab, LabArgs};
use super::{job, lab, output};
use layerlab_farm::adb::Printable;
use layerlab_lab::job_file::{JobFile, OutgoingJob, ResolvedJob};
use layerlab_lab::record::bad_host_name;
use layerlab_lab::talk::{Answer, Request};

#[derive(clap::Args)]
#[command(after_help = "`layerlab job example` prints a job file that explains every key.")]
pub(super) struct SubmitArgs {
    /// The job file: which models, on which devices, when and how
    #[arg(value_name = "JOB.toml")]
    job: PathBuf,
    /// On the devices of this host alone, where several share the lab; may be given more than once, and goes before `hosts` in
    /// the job file
    #[arg(long = "host", value_name = "NAME", value_parser = host_name)]
    hosts: Vec<String>,
    /// Even if a job that asks for the same is open or done
    #[arg(long)]
    again: bool,
    /// Wait until the job is over, and end as `layerlab job wait` does
    #[arg(long)]
    wait: bool,
    /// Print the answer as JSON
    #[arg(long, conflicts_with = "wait")]
    json: bool,
}

fn host_name(name: &str) -> Result<String, String> {
    bad_host_name(name).map_or_else(|| Ok(name.to_owned()), Err)
}

pub(super) async fn run(args: &SubmitArgs, lab: &LabArgs) -> Result<(), Failure> {
    let lab = lab.open()?;
    let job = JobFile::read(&args.job).exit_with(Code::Input)?;
    let (name, kind, recurs) = (job.name(), job.kind(), job.recurs());
    if args.wait && recurs {
        let error = anyhow::anyhow!("a job that comes again is never over; leave --wait out");
        return Err(Failure::new(Code::Usage, error));
    }
    let answer = match &lab {
        Lab::Here => {
            let job = job.on_hosts(&args.hosts);
            let job = job.resolve(Timestamp::now()).exit_with(Code::Input)?;
            let ResolvedJob { spec, sizes, notes } = job;
            let request = Request::Submit {
                spec: Box::new(spec),
                again: args.again,
                sizes,
            };
            lab::ask(&request).await?.with_notes(notes)
        }
        Lab::Elsewhere(lab) => {
            let job = OutgoingJob::read(&args.job, &args.hosts, Timestamp::now());
            let job = job.exit_with(Code::Input)?;
            lab.upload(job.files).await?;
            lab.submit(job.text, args.again).await?
        }
    };
    if args.json {
        return output::print_json(&answer);
    }
    if let Answer::Submitted { warnings, .. } = &answer {
        for warning in warnings {
            output::note(format_args!("warning: {}", Printable(warning)));
        }
    }
    let name = Printable(&name);
    let id = match answer {
        Answer::Submitted { job, .. } if recurs => {
            output::print(format_args!(
                "Job {job}, {name}, is submitted and comes again; `layerlab job cancel {job}` ends it."
            ))?;
            job
        }
        Answer::Submitted { job, runs, .. } => {
            let given = kind.given(runs);
            output::print(format_args!(
                "Job {job}, {name}, is submitted: {runs} {given}. `layerlab job show {job}` says how it goes."
            ))?;
            job
        }
        Answer::Known { job, state } => {
            output::print(format_args!(
                "Job {job} asks for the same and is {state}, so this one was not taken; --again submits it anyway."
            ))?;
            job
        }
        other => return Err(lab::unexpected(&other)),
    };
    match args.wait {
        true => job::wait(&lab, id, None).await,
        false => Ok(()),
    }
}
