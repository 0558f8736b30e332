//! The command line: one file per subcommand.

mod adb;
mod baseline;
mod campaign;
mod check;
mod compare;
mod completions;
mod config;
mod daemon;
mod demo;
mod derive;
mod devices;
mod direct_child;
mod doctor;
mod edge_server;
mod elsewhere;
mod errand;
mod evaluate;
pub mod exit;
mod export;
mod fetch;
mod findings;
mod fitness;
mod hosts;
mod interpolate;
mod job;
mod jobs;
mod key;
mod lab;
mod layer_rules;
mod link;
mod login;
mod man;
mod model;
mod model_group;
mod model_options;
mod model_support;
mod output;
mod percent;
mod phone_processors;
mod plan;
mod processors;
mod profile;
mod profiles;
mod progress;
mod prune;
mod quantise;
mod quarantine;
mod quiet;
mod report;
mod reserve;
mod runtime;
mod runtimes;
mod set;
mod setup;
mod show;
mod submit;
mod sweep_plot;
mod tensors;
mod token;
mod video;
mod watch;
mod which_lab;

use std::path::PathBuf;
use std::process::ExitCode;

use adb::WithPhones;
use clap::{Parser, Subcommand};
use exit::{Code, ExitWith, Failure};
use layerlab_farm::adb::direct::frames::CHILD_COMMAND;
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;
use which_lab::{CommandWithLab, WithLab};

/// Profiles neural networks on phones, layer by layer: what each layer costs on each processor, and
/// what it costs to move its data.
#[derive(Parser)]
#[command(name = "layerlab", version, arg_required_else_help = true, after_help = EXIT_CODES)]
struct Cli {
    #[command(subcommand)]
    command: LayerlabCommand,
    /// The agent's program [default: layerlab-agent beside this program]
    #[arg(
        long,
        global = true,
        env = "LAYERLAB_AGENT",
        value_name = "FILE",
        hide_env_values = true
    )]
    agent: Option<PathBuf>,
}

const EXIT_CODES: &str = "Exit codes: 0 done; 1 internal error; 2 wrong command line; 3 unusable model, device file, \
profile, images, job file or configuration; 4 device, agent, edge server, daemon or job failed; 5 result cannot be written; 6 profile, measured link, tensors or video contradicts itself, or is not the one that --digest or --key asks for; 7 compare --gate: worse; 8 no placement keeps the limit of a plan, or nothing answers a frame in time; 130 interrupted.";

#[derive(Subcommand)]
enum LayerlabCommand {
    /// Set up a phone, step by step, up to its first profile
    Setup(WithPhones<setup::SetupArgs>),
    /// Profile two small networks on four simulated phones: no phone needed
    Demo(demo::DemoArgs),
    /// Measure a model on a device and publish its profile
    Profile(WithPhones<profile::ProfileArgs>),
    /// Measure what placements of a model's layers lose of its accuracy
    Evaluate(WithPhones<evaluate::EvaluateArgs>),
    /// Own a lab: run the jobs that are submitted on the phones that are plugged in, until told to stop
    Daemon(WithPhones<daemon::DaemonArgs>),
    /// Give the lab a job, to be run when its devices are free and its window is open
    Submit(WithLab<submit::SubmitArgs>),
    /// List the lab's jobs
    Jobs(WithLab<jobs::JobsArgs>),
    /// Look at a job of the lab, wait for it, pause it or end it
    Job(CommandWithLab<job::JobCommand>),
    /// Take a device from the lab for a while
    Reserve(WithLab<reserve::ReserveArgs>),
    /// Give a reserved device back to the lab
    Release(WithLab<reserve::ReleaseArgs>),
    /// List the devices that can be measured, and those that cannot, with the reason
    Devices(WithLab<WithPhones<devices::DevicesArgs>>),
    /// List the hosts that share the lab, whether they are alive, and what they do
    Hosts(WithLab<hosts::HostsArgs>),
    /// Say what is missing for phones to be profiled, and what mends it
    Doctor(WithPhones<doctor::DoctorArgs>),
    /// Say what the lab was asked for in a stretch of time, and what came of it
    Report(WithLab<report::ReportArgs>),
    /// Watch the phones and jobs of the lab
    Watch(WithLab<watch::WatchArgs>),
    /// Look at the profiles that the lab has published, by model and device
    Profiles(CommandWithLab<profiles::ProfilesCommand>),
    /// Keep a token for a lab elsewhere, so that commands can ask it with --lab
    Login(login::LoginArgs),
    /// Forget the token for a lab elsewhere
    Logout(login::LogoutArgs),
    /// Look after what the lab keeps on the disk
    #[command(subcommand)]
    Lab(prune::LabCommand),
    /// Look at what the daemon is told
    #[command(subcommand)]
    Config(config::ConfigCommand),
    /// Add inference runtimes, such as ONNX Runtime, that phones are given beside their agents
    #[command(subcommand)]
    Runtime(runtime::RuntimeCommand),
    /// Say who may ask the lab over the web
    #[command(subcommand)]
    Token(token::TokenCommand),
    /// Leave phones alone for a while
    #[command(subcommand)]
    Quarantine(quarantine::QuarantineCommand),
    /// Look at a model, and at where its layers can run
    Model(model::ModelArgs),
    /// Serve phones that measure their links to this machine, until told to stop
    EdgeServer(edge_server::EdgeServerArgs),
    /// Measure what a link to an edge server carries, and look at what was measured
    #[command(subcommand)]
    Link(link::LinkCommand),
    /// Measure what tensors become that are compressed before they cross a link, and what 8 bits cost in accuracy
    #[command(subcommand)]
    Tensors(tensors::TensorsCommand),
    /// Measure what frames of a video cost, make confidences say how often answers are right, and replay policies of which
    /// frames a phone answers itself
    #[command(subcommand)]
    Video(video::VideoCommand),
    /// Say whether a published profile is sound
    Check(check::CheckArgs),
    /// Make keys that a lab signs its profiles with
    #[command(subcommand)]
    Key(key::KeyCommand),
    /// Print a published profile as tables
    Show(show::ShowArgs),
    /// Say which layers should run on which processor
    #[command(subcommand)]
    Plan(plan::PlanCommand),
    /// Bring profiles into other people's formats
    Export(export::ExportArgs),
    /// Say which layers differ between two profiles of one model
    Compare(compare::CompareArgs),
    /// Choose which profile later ones of the same model, device and runtime are compared with
    #[command(subcommand)]
    Baseline(baseline::BaselineCommand),
    /// Derive layer times anew from a profile's samples
    Derive(derive::DeriveArgs),
    /// Calculate what a model would take at a size that was not profiled, from profiles of smaller and larger ones
    Interpolate(interpolate::InterpolateArgs),
    /// Make an evaluation set from labelled images, to measure what placements cost in accuracy
    Set(set::SetArgs),
    /// Make an int8 model of a float one, with the ranges that activations have on an evaluation set
    Quantise(quantise::QuantiseArgs),
    /// Print what a shell needs to complete layerlab's commands and options
    Completions(completions::CompletionsArgs),
    /// Write layerlab's man pages
    Man(man::ManArgs),
    /// The process that speaks to one phone without an adb server
    #[command(name = CHILD_COMMAND, hide = true)]
    DirectChild(direct_child::DirectChildArgs),
}

impl LayerlabCommand {
    /// Does it go on until it is told to end, which is then no failure?
    fn ends_when_told(&self) -> bool {
        match self {
            LayerlabCommand::EdgeServer(_) => true,
            LayerlabCommand::Watch(WithLab { args, .. }) => args.looks_on(),
            _ => false,
        }
    }
}

/// Runs layerlab with the process's arguments.
pub fn main() -> ExitCode {
    match run(Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            output::error(&failure);
            ExitCode::from(failure.code as u8)
        }
    }
}

/// What is logged: what LAYERLAB_LOG lets pass, or else `default`.
fn log_filter(default: &str) -> EnvFilter {
    let asked = std::env::var("LAYERLAB_LOG").unwrap_or_else(|_| default.to_owned());
    // Of a passfile with passwords for databases, whole lines would be logged that are not as they should be.
    let silent = "sqlx_postgres::options::pgpass=off";
    EnvFilter::try_new(format!("{asked},{silent}"))
        .unwrap_or_else(|_| EnvFilter::new(format!("{default},{silent}")))
}

fn run(cli: Cli) -> Result<(), Failure> {
    // It waits for one thing at a time, and has no use for what all others have.
    if let LayerlabCommand::DirectChild(args) = &cli.command {
        direct_child::run(args);
    }
    let runtime = tokio::runtime::Runtime::new().exit_with(Code::Internal)?;
    // The daemon logs as its configuration says, and ends in its own time.
    if let LayerlabCommand::Daemon(WithPhones { args, adb }) = &cli.command {
        let config = daemon::configure(args)?;
        return runtime.block_on(daemon::run(config, cli.agent, adb));
    }
    tracing_subscriber::fmt()
        .with_env_filter(log_filter(
            "error,layerlab_campaign::orders=warn,layerlab_campaign::edge_link=warn,layerlab_farm::phone_runtimes=warn",
        ))
        .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))
        .with_writer(std::io::stderr)
        .init();
    let ends_when_told = cli.command.ends_when_told();
    runtime.block_on(async {
        let work = async {
            match cli.command {
                LayerlabCommand::Daemon(_) | LayerlabCommand::DirectChild(_) => Ok(()),
                LayerlabCommand::Demo(args) => demo::run(&args, cli.agent).await,
                LayerlabCommand::Setup(WithPhones { args, adb }) => {
                    setup::run(&args, cli.agent, &adb).await
                }
                LayerlabCommand::Profile(WithPhones { args, adb }) => {
                    profile::run(&args, cli.agent, &adb).await
                }
                LayerlabCommand::Evaluate(WithPhones { args, adb }) => {
                    evaluate::run(&args, cli.agent, &adb).await
                }
                LayerlabCommand::Submit(WithLab { args, lab }) => submit::run(&args, &lab).await,
                LayerlabCommand::Jobs(WithLab { args, lab }) => jobs::run(&args, &lab).await,
                LayerlabCommand::Job(CommandWithLab { command, lab }) => {
                    job::run(&command, &lab).await
                }
                LayerlabCommand::Reserve(WithLab { args, lab }) => reserve::run(&args, &lab).await,
                LayerlabCommand::Release(WithLab { args, lab }) => {
                    reserve::release(&args, &lab).await
                }
                LayerlabCommand::Devices(WithLab {
                    args: WithPhones { args, adb },
                    lab,
                }) => devices::run(&args, &adb, &lab, cli.agent).await,
                LayerlabCommand::Doctor(WithPhones { args, adb }) => {
                    doctor::run(&args, &adb, campaign::agent_program(cli.agent)?).await
                }
                LayerlabCommand::Hosts(WithLab { args, lab }) => hosts::run(&args, &lab).await,
                LayerlabCommand::Report(WithLab { args, lab }) => report::run(&args, &lab).await,
                LayerlabCommand::Watch(WithLab { args, lab }) => watch::run(&args, &lab).await,
                LayerlabCommand::Profiles(CommandWithLab { command, lab }) => {
                    profiles::run(&command, &lab).await
                }
                LayerlabCommand::Login(args) => login::login(&args).await,
                LayerlabCommand::Logout(args) => login::logout(&args),
                LayerlabCommand::Lab(command) => prune::run(&command).await,
                LayerlabCommand::Config(command) => config::run(&command),
                LayerlabCommand::Runtime(command) => runtime::run(&command),
                LayerlabCommand::Token(command) => token::run(&command),
                LayerlabCommand::Quarantine(command) => quarantine::run(&command).await,
                LayerlabCommand::Model(args) => model::run(&args, cli.agent).await,
                LayerlabCommand::EdgeServer(args) => edge_server::run(&args, cli.agent).await,
                LayerlabCommand::Link(command) => link::run(command, cli.agent).await,
                LayerlabCommand::Tensors(command) => tensors::run(command, cli.agent).await,
                LayerlabCommand::Video(command) => video::run(command, cli.agent).await,
                LayerlabCommand::Check(args) => check::run(&args),
                LayerlabCommand::Key(command) => key::run(&command),
                LayerlabCommand::Show(args) => show::run(&args),
                LayerlabCommand::Plan(command) => plan::run(&command, cli.agent).await,
                LayerlabCommand::Export(args) => export::run(&args).await,
                LayerlabCommand::Compare(args) => compare::run(&args).await,
                LayerlabCommand::Baseline(command) => baseline::run(&command).await,
                LayerlabCommand::Derive(args) => derive::run(&args),
                LayerlabCommand::Interpolate(args) => interpolate::run(&args),
                LayerlabCommand::Set(args) => set::run(&args),
                LayerlabCommand::Quantise(args) => quantise::run(&args),
                LayerlabCommand::Completions(args) => completions::run(&args),
                LayerlabCommand::Man(args) => man::run(&args),
            }
        };
        tokio::select! {
            // Work that ends well when it is interrupted shall have a chance to.
            biased;
            result = work => result,
            // Dropping the work kills its agents and removes what is not published.
            result = told_to_end(ends_when_told) => result,
        }
    })
}

/// Waits until a user or the system tells this program to end, which `is_well` if that is how it ends. Nobody else may wait for
/// the same signals: of two that do, either may be told first.
async fn told_to_end(is_well: bool) -> Result<(), Failure> {
    if !is_well {
        // SIGTERM ends it by itself.
        tokio::signal::ctrl_c().await.exit_with(Code::Internal)?;
        let error = anyhow::anyhow!("interrupted; nothing unfinished was published");
        return Err(Failure::new(Code::Interrupted, error));
    }
    let mut terminate = signal(SignalKind::terminate()).exit_with(Code::Internal)?;
    tokio::select! {
        ended = tokio::signal::ctrl_c() => ended.exit_with(Code::Internal),
        _ = terminate.recv() => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        <Cli as clap::CommandFactory>::command().debug_assert();
    }

    #[test]
    fn what_would_be_ignored_is_refused() {
        let profile = "layerlab profile --model m --device d";
        let evaluate = "layerlab evaluate --model m --device d --set s";
        let plan = "layerlab plan max-accuracy --time 1ms profile";
        let of_sets = [
            "--placements 9",
            "--answers 9",
            "--stop-at 1%",
            "--cpu cpu",
            "--accelerator npu",
            "--accelerator gpu,npu",
            "--placement-seed 9",
            "--memory-mib 9",
        ];
        let mut cases = vec![
            (format!("{profile} --set s"), true),
            (profile.to_owned(), true),
            (format!("{evaluate} --processors cpu,npu"), true),
            (format!("{evaluate} --processors cpu,npu --cpu cpu"), false),
            (format!("{plan} --processors cpu,gpu,npu"), true),
            (
                format!("{plan} --processors cpu,npu --accelerator npu"),
                false,
            ),
            (format!("{plan} --model m"), false),
            (format!("{plan} --model m --verify d"), true),
            (format!("{plan} --dim N=1"), false),
            (format!("{plan} --model m --verify d --dim N=1"), true),
        ];
        for choice in of_sets {
            cases.push((format!("{profile} {choice}"), false));
            cases.push((format!("{profile} {choice} --set s"), true));
            cases.push((format!("{evaluate} {choice}"), true));
        }
        for (line, is_right) in cases {
            let parsed = Cli::try_parse_from(line.split(' '));
            let said = parsed.err().map(|error| error.to_string());
            assert_eq!(said.is_none(), is_right, "{line}: {said:?}");
        }
    }
}
