//! `layerlab-agent`: serves one daemon at a time, and works on without one.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;

use anyhow::{Context, anyhow};
use clap::{Args, Parser, Subcommand};
use layerlab_agent::description::DeviceDescription;
use layerlab_agent::device::simulated::{DeviceFile, SimulatedDevice};
use layerlab_agent::device::{Device, Host};
use layerlab_agent::files::Files;
use layerlab_agent::queue::Queue;
use layerlab_agent::runtime::onnxruntime::{
    CHILD_COMMAND, OnnxRuntimeOptions, OnnxRuntimeSetup, serve_runtime,
};
use layerlab_agent::runtime::simulated::SimulatedRuntime;
use layerlab_agent::runtime::{Runtimes, registry};
use layerlab_agent::serve::{Address, Server};
use layerlab_agent::{pipe, truth, work};
use layerlab_model::Network;

/// Exit code for a device file or model that cannot be used.
const BAD_INPUT: u8 = 3;
/// Exit code for everything else that goes wrong.
const FAILED: u8 = 1;

/// Times segments of neural networks on the device it runs on. Started by layerlab; of use by hand
/// for `truth`, `describe` and `readings`.
#[derive(Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serve a daemon until told to stop. The token is read from LAYERLAB_AGENT_TOKEN.
    Serve {
        /// Where to listen: unix:PATH or abstract:NAME
        #[arg(long)]
        listen: Address,
        /// The folder of journals, models and evaluation sets
        #[arg(long)]
        state: PathBuf,
        /// Stop when standard input ends: for an agent that is a child of its daemon
        #[arg(long)]
        until_stdin_ends: bool,
        #[command(flatten)]
        device: DeviceArgs,
    },
    /// Print the device and its processors as JSON
    Describe {
        #[command(flatten)]
        device: DeviceArgs,
    },
    /// Print the state of this machine as it is read at the ends of blocks, and how long reading it takes
    Readings {
        /// How often to read it
        #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
        times: u32,
    },
    /// Print what a simulated device really costs: the planted truth that measurements are compared with
    Truth {
        /// The simulated device's file
        #[arg(long)]
        device: PathBuf,
        /// The ONNX model
        #[arg(long)]
        model: PathBuf,
        /// The size of a symbolic dimension of the model
        #[arg(long = "dim", value_name = "NAME=SIZE", value_parser = dimension)]
        dims: Vec<(String, u64)>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// The way to an agent that serves on this device, over standard input and output
    #[command(hide = true)]
    Pipe {
        /// Where it listens: unix:PATH or abstract:NAME
        #[arg(long)]
        to: Address,
    },
    /// The process that an agent loads a runtime in
    #[command(name = CHILD_COMMAND, hide = true)]
    RuntimeChild,
}

#[derive(Args)]
struct DeviceArgs {
    /// Play the simulated device described by this file instead of using this machine
    #[arg(long)]
    device: Option<PathBuf>,
    #[command(flatten)]
    onnxruntime: OnnxRuntimeOptions,
}

impl DeviceArgs {
    /// The device with its runtimes, which compile into `state` if there is such a folder.
    fn open(&self, state: Option<&Path>) -> anyhow::Result<(Box<dyn Device>, Runtimes)> {
        Ok(match &self.device {
            Some(file) => {
                let device = SimulatedDevice::new(DeviceFile::open(file)?);
                let runtime = SimulatedRuntime::on(&device);
                (Box::new(device), Runtimes::new(vec![Box::new(runtime)])?)
            }
            None => {
                let host = Host::new();
                let runtimes = registry::runtimes(host.cores(), &self.onnxruntime_setup(state)?)?;
                (Box::new(host), runtimes)
            }
        })
    }
}

impl DeviceArgs {
    fn onnxruntime_setup(&self, state: Option<&Path>) -> anyhow::Result<OnnxRuntimeSetup> {
        let program = std::env::current_exe().context("the agent does not know its own program")?;
        let scratch = state.map_or_else(std::env::temp_dir, |state| state.join("runtime"));
        Ok(OnnxRuntimeSetup {
            options: self.onnxruntime.clone(),
            program,
            scratch,
            compiled: state.map(|state| state.join("compiled")),
        })
    }
}

fn dimension(text: &str) -> Result<(String, u64), String> {
    let (name, size) = text
        .split_once('=')
        .ok_or("write NAME=SIZE, such as H=224")?;
    let size = size.parse().map_err(|_| format!("`{size}` is no size"))?;
    Ok((name.to_owned(), size))
}

fn main() -> ExitCode {
    tracing_subscriber::fmt()
        .with_env_filter(tracing_subscriber::EnvFilter::from_env(
            "LAYERLAB_AGENT_LOG",
        ))
        .with_writer(io::stderr)
        .init();
    let (result, code) = match Cli::parse().command {
        Command::Serve {
            listen,
            state,
            until_stdin_ends,
            device,
        } => match device.open(Some(&state)) {
            Ok(device) => (serve(device, &listen, &state, until_stdin_ends), FAILED),
            Err(error) => (Err(error), BAD_INPUT),
        },
        Command::Describe { device } => (describe(&device), BAD_INPUT),
        Command::Truth {
            device,
            model,
            dims,
            json,
        } => (
            print_truth(&device, &model, dims.into_iter().collect(), json),
            BAD_INPUT,
        ),
        Command::Readings { times } => (print_readings(times), FAILED),
        Command::Pipe { to } => (open_pipe(&to), FAILED),
        Command::RuntimeChild => serve_runtime(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "layerlab-agent: {error}");
            ExitCode::from(code)
        }
    }
}

fn serve(
    (mut device, mut runtimes): (Box<dyn Device>, Runtimes),
    listen: &Address,
    state: &Path,
    until_stdin_ends: bool,
) -> anyhow::Result<()> {
    let token = std::env::var("LAYERLAB_AGENT_TOKEN").context("LAYERLAB_AGENT_TOKEN is not set")?;
    let files = Files::open(&state.join("files"))
        .map_err(|error| anyhow!("cannot use {} as a state folder: {error}", state.display()))?;
    let queue = Arc::new(Queue::open(&state.join("runs"))?);
    let listener = listen
        .listen()
        .map_err(|error| anyhow!("cannot listen on {listen:?}: {error}"))?;
    let server = Server {
        queue: Arc::clone(&queue),
        files: files.clone(),
        device: DeviceDescription::of(device.as_ref(), &runtimes),
        token,
    };
    let server = Arc::new(server);
    thread::spawn(move || {
        if let Err(error) = server.serve(&listener) {
            tracing::error!(%error, "cannot accept connections any more");
        }
    });
    if until_stdin_ends {
        let queue = Arc::clone(&queue);
        thread::spawn(move || {
            // An error on standard input is its end, too.
            let _ = io::stdin().read_to_end(&mut Vec::new());
            queue.stop();
        });
    }
    // One line each, whatever a library says.
    for reason in runtimes.left_out() {
        let reason = reason.split_whitespace().collect::<Vec<_>>().join(" ");
        writeln!(io::stdout(), "left out: {reason}").context("cannot write to standard output")?;
    }
    // The daemon waits for this line before it connects.
    writeln!(io::stdout(), "listening").context("cannot write to standard output")?;
    work::run(&queue, &files, device.as_mut(), &mut runtimes);
    Ok(())
}

fn open_pipe(to: &Address) -> anyhow::Result<()> {
    let agent = to
        .connect()
        .map_err(|error| anyhow!("no agent answers on {to:?}: {error}"))?;
    Ok(pipe::run(agent)?)
}

fn describe(device: &DeviceArgs) -> anyhow::Result<()> {
    let (device, runtimes) = device.open(None)?;
    let description = DeviceDescription::of(device.as_ref(), &runtimes);
    let text = serde_json::to_string_pretty(&description)?;
    Ok(writeln!(io::stdout(), "{text}")?)
}

fn print_readings(times: u32) -> anyhow::Result<()> {
    let mut host = Host::new();
    let mut took = Vec::new();
    let mut conditions = None;
    for _ in 0..times {
        let begin = host.now();
        conditions = Some(host.conditions());
        took.push(host.now().as_nanos().saturating_sub(begin.as_nanos()));
    }
    took.sort_unstable();
    let readings = serde_json::json!({
        "conditions": conditions,
        "read_times": times,
        "median_ns": took[took.len() / 2],
        "longest_ns": took[took.len() - 1],
    });
    let text = serde_json::to_string_pretty(&readings)?;
    Ok(writeln!(io::stdout(), "{text}")?)
}

fn print_truth(
    device: &Path,
    model: &Path,
    dims: BTreeMap<String, u64>,
    json: bool,
) -> anyhow::Result<()> {
    let network = Network::open(model, &dims)?;
    let truth = truth::truth(&DeviceFile::open(device)?, &network);
    let text = if json {
        serde_json::to_string_pretty(&truth)?
    } else {
        truth.to_string()
    };
    Ok(writeln!(io::stdout(), "{text}")?)
}
