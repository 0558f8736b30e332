//! `layerlab report`: what the lab was asked for in a stretch of time, and what came of it.

use std::path::PathBuf;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::exit::{Code, ExitWith, Failure};
use super::output;
use super::which_lab::LabArgs;
use layerlab_campaign::publish::StagedFile;
use layerlab_lab::config::Config;
use layerlab_lab::notice::Notice;
use layerlab_lab::when::{Direction, WhenError, point};

#[derive(clap::Args)]
pub(super) struct ReportArgs {
    /// From when, such as 22:00, `yesterday 18:00` or 8h, which is eight hours ago
    #[arg(long, value_name = "WHEN", default_value = "16h")]
    since: String,
    /// Until when [default: now]
    #[arg(long, value_name = "WHEN")]
    until: Option<String>,
    /// Write the report as HTML into this file, with the profiles' plots
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    html: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Also tell whom the configuration names (`webhook`, `mail-to`), as the daemon does when the lab has nothing left to do
    #[arg(long)]
    send: bool,
    /// The configuration that says so [default: layerlab/config.toml in ~/.config, else in /etc]
    #[arg(long, value_name = "FILE", requires = "send")]
    config: Option<PathBuf>,
}

pub(super) async fn run(args: &ReportArgs, lab: &LabArgs) -> Result<(), Failure> {
    let (now, zone) = (Timestamp::now(), TimeZone::system());
    let (since, until) = period(args, now, &zone).exit_with(Code::Usage)?;
    if since > until {
        let error = anyhow::anyhow!("--since is after --until; choose an earlier --since");
        return Err(Failure::new(Code::Usage, error));
    }
    let notices = match args.send {
        true => notices(args)?,
        false => Vec::new(),
    };
    let lab = lab.open()?;
    let report = lab.report(since, until, args.html.is_some()).await?;
    for notice in &notices {
        let sent = notice.send(&report, &zone).await;
        let not_sent = |reason| anyhow::anyhow!("{} was not told: {reason}", notice.whom());
        sent.map_err(|reason| Failure::new(Code::Output, not_sent(reason)))?;
    }
    if args.json {
        return output::print_json(&report);
    }
    let Some(file) = &args.html else {
        return output::print(report.text(&zone));
    };
    let staged = StagedFile::prepare(file, true).exit_with(Code::Output)?;
    let html = report.html(&zone);
    staged.publish(html.as_bytes()).exit_with(Code::Output)?;
    output::print(format_args!("{} In {}", report.headline, file.display()))
}

/// Whom the configuration names.
fn notices(args: &ReportArgs) -> Result<Vec<Notice>, Failure> {
    let loaded = Config::load(args.config.as_deref(), |name| std::env::var_os(name));
    let notices = Notice::all(&loaded.exit_with(Code::Input)?.config.report);
    if notices.is_empty() {
        let error = anyhow::anyhow!(
            "the configuration names nobody to tell; give `webhook` or `mail-to` in [report] a value"
        );
        return Err(Failure::new(Code::Input, error));
    }
    Ok(notices)
}

fn period(
    args: &ReportArgs,
    now: Timestamp,
    zone: &TimeZone,
) -> Result<(Timestamp, Timestamp), WhenError> {
    let moment = |text: &str| point(text, now, Direction::Last, zone);
    let until = args.until.as_deref().map_or(Ok(now), moment)?;
    Ok((moment(&args.since)?, until))
}
