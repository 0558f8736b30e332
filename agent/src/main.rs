//! `layerlab-agent`: serves one daemon at a time, and works on without one.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;

use anyhow::{Context, anyhow};
use clap::{Args, Parser, Subcommand};
use layerlab_agent::description::DeviceDescription;
use layerlab_agent::device::simulated::{DeviceFile, SimulatedDevice};
use layerlab_agent::device::{Device, Host};
use layerlab_agent::edge_models::{EdgeModels, models_in};
use layerlab_agent::files::Files;
use layerlab_agent::link::LinkTurn;
use layerlab_agent::machine::{Machine, SharedMachine};
use layerlab_agent::queue::Queue;
use layerlab_agent::reading_cost::{Turns, after_readings, reading_times};
use layerlab_agent::runtime::simulated::SimulatedRuntime;
use layerlab_agent::runtime::{
    CHILD_COMMAND, OnnxRuntimeOptions, Runtimes, RuntimesSetup, registry, timing_input,
};
use layerlab_agent::serve::{Address, Server};
use layerlab_agent::{ModelWithTwin, pipe, truth, work};
use layerlab_edge::{self as edge, Models, ServerLimits, Token};
use layerlab_model::Network;
use layerlab_profiles::{Nanos, Segment};

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
    /// Print the state of this machine as it is read at the ends of blocks, and what reading it costs
    Readings {
        /// How often to read it
        #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
        times: u32,
        /// Also run this ONNX model on all cores, in turns with a reading before them and without, and compare
        #[arg(long, value_name = "FILE")]
        model: Option<PathBuf>,
        /// With --model: how many turns of each kind
        #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..))]
        pairs: u32,
        /// With --model: inferences in a turn
        #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
        inferences: u32,
        /// With --model: the rest before each inference, in microseconds
        #[arg(long, default_value_t = 1000)]
        gap_us: u64,
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
    /// Serve phones that have layers of models run here, until standard input ends. Started by `layerlab edge-server`
    #[command(hide = true)]
    EdgeServer {
        /// Where to listen
        #[arg(long)]
        listen: SocketAddr,
        /// The file with the secret that clients must know
        #[arg(long)]
        token_file: PathBuf,
        /// What the server calls itself
        #[arg(long)]
        program: String,
        /// An ONNX model, or a folder of them; may be repeated
        #[arg(long, required = true)]
        model: Vec<PathBuf>,
        /// The size of a symbolic dimension of the models
        #[arg(long = "dim", value_name = "NAME=SIZE", value_parser = dimension)]
        dims: Vec<(String, u64)>,
        #[command(flatten)]
        device: DeviceArgs,
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
                let runtimes = registry::runtimes(host.cores(), &self.runtimes_setup(state)?)?;
                (Box::new(host), runtimes)
            }
        })
    }
}

impl DeviceArgs {
    fn runtimes_setup(&self, state: Option<&Path>) -> anyhow::Result<RuntimesSetup> {
        let program = std::env::current_exe().context("the agent does not know its own program")?;
        let scratch = state.map_or_else(std::env::temp_dir, |state| state.join("runtime"));
        Ok(RuntimesSetup {
            onnxruntime: self.onnxruntime.clone(),
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
        Command::Readings {
            times,
            model,
            pairs,
            inferences,
            gap_us,
        } => {
            let turns = Turns {
                pairs,
                inferences,
                gap: Nanos::from_micros(gap_us),
            };
            (print_readings(times, model.as_deref(), turns), BAD_INPUT)
        }
        Command::EdgeServer {
            listen,
            token_file,
            program,
            model,
            dims,
            device,
        } => match edge_models(&model, dims.into_iter().collect(), &device) {
            Ok(models) => (serve_edge(listen, &token_file, program, models), FAILED),
            Err(error) => (Err(error), BAD_INPUT),
        },
        Command::Pipe { to } => (open_pipe(&to), FAILED),
        Command::RuntimeChild => registry::serve_runtime(),
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
    (device, runtimes): (Box<dyn Device>, Runtimes),
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
    let description = DeviceDescription::of(device.as_ref(), &runtimes);
    let left_out: Vec<String> = runtimes.left_out().cloned().collect();
    let machine = Arc::new(SharedMachine::new(Machine { device, runtimes }));
    let server = Server {
        queue: Arc::clone(&queue),
        files: files.clone(),
        device: description,
        token,
        link_turn: LinkTurn::default(),
        machine: Arc::clone(&machine),
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
    for reason in left_out {
        let reason = reason.split_whitespace().collect::<Vec<_>>().join(" ");
        writeln!(io::stdout(), "left out: {reason}").context("cannot write to standard output")?;
    }
    // The daemon waits for this line before it connects.
    writeln!(io::stdout(), "listening").context("cannot write to standard output")?;
    work::run(&queue, &files, &machine);
    Ok(())
}

/// The models of these files and folders.
fn edge_models(
    named: &[PathBuf],
    dims: BTreeMap<String, u64>,
    device: &DeviceArgs,
) -> anyhow::Result<EdgeModels> {
    let mut files = Vec::new();
    for path in named {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let found = models_in(path).with_context(|| format!("cannot read {}", path.display()))?;
        if found.is_empty() {
            return Err(anyhow!("{} holds no .onnx file", path.display()));
        }
        files.extend(found);
    }
    let (_, runtimes) = device.open(None)?;
    Ok(EdgeModels::open(&files, &dims, runtimes)?)
}

fn serve_edge(
    listen: SocketAddr,
    token_file: &Path,
    program: String,
    models: EdgeModels,
) -> anyhow::Result<()> {
    let token = Token::read(token_file)?;
    let listener = TcpListener::bind(listen)
        .map_err(|error| anyhow!("cannot listen on {listen}: {error}; choose another --listen"))?;
    let limits = ServerLimits::default();
    let models = Some(Box::new(models) as Box<dyn Models>);
    let server = edge::Server::start_with(listener, token, program, limits, models)?;
    // The command that started it waits for this line.
    writeln!(io::stdout(), "listening on {}", server.address())
        .context("cannot write to standard output")?;
    // An error on standard input is its end, too.
    let _ = io::stdin().read_to_end(&mut Vec::new());
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

fn print_readings(times: u32, model: Option<&Path>, turns: Turns) -> anyhow::Result<()> {
    let mut host = Host::new();
    let mut readings = serde_json::to_value(reading_times(&mut host, times))?;
    if let Some(model) = model {
        let network = Arc::new(Network::open(model, &BTreeMap::new())?);
        let mut runtimes = registry::runtimes(host.cores(), &no_other_runtime()?)?;
        let processor = runtimes.processors().next().map(|one| one.name.clone());
        let processor = processor.context("this machine has no processor")?;
        let whole = Segment::whole(network.layer_count());
        let inputs = timing_input(network.inputs(), 1);
        let mut session = runtimes.load(&processor, &ModelWithTwin::alone(network), whole)?;
        // What the first runs cost is no matter of readings.
        for _ in 0..turns.inferences {
            session.run(&inputs)?;
        }
        let after = after_readings(&mut host, session.as_mut(), &inputs, turns)?;
        readings["processor"] = processor.into();
        readings["after_readings"] = serde_json::to_value(after)?;
    }
    let text = serde_json::to_string_pretty(&readings)?;
    Ok(writeln!(io::stdout(), "{text}")?)
}

/// The agent's own runtime alone.
fn no_other_runtime() -> anyhow::Result<RuntimesSetup> {
    let none = DeviceArgs {
        device: None,
        onnxruntime: OnnxRuntimeOptions::default(),
    };
    none.runtimes_setup(None)
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
