//! `layerlab edge-server`: the machine beside which phones are measured and planned.

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use anyhow::anyhow;
use layerlab_campaign::program_for_server;
use layerlab_edge::{Server, ServerLimits, Token, TokenFileError};
use layerlab_farm::adb::Printable;
use layerlab_farm::folders::{Folders, make_private};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::time::timeout;

use super::campaign::agent_program;
use super::exit::{Code, ExitWith, Failure};
use super::model_options::parse_dim;
use super::output;

/// Where a server listens unless it is told otherwise: only for this machine.
const DEFAULT_ADDRESS: &str = "127.0.0.1:7377";

#[derive(clap::Args)]
pub(super) struct EdgeServerArgs {
    /// Where to listen: 0.0.0.0:7377 for whoever reaches this machine, port 0 for any free one
    #[arg(long, value_name = "ADDRESS:PORT", default_value = DEFAULT_ADDRESS)]
    listen: SocketAddr,
    #[command(flatten)]
    token: TokenArgs,
    /// A model that phones may have layers of run here, or a folder of .onnx files; may be repeated
    #[arg(long, value_name = "FILE")]
    model: Vec<PathBuf>,
    /// The size of a symbolic dimension of the models; may be repeated
    #[arg(long = "dim", value_name = "NAME=SIZE", value_parser = parse_dim, requires = "model")]
    dims: Vec<(String, u64)>,
}

/// How long the agent may take from its start until it listens: it reads models, and loads its runtimes first.
const START_DEADLINE: Duration = Duration::from_secs(120);

/// The agent's exit code for a model that cannot be used.
const AGENT_BAD_INPUT: i32 = 3;

/// How much of the agent's last words is read.
const LAST_WORDS_BYTES: usize = 4_000;

/// The secret that server and clients share.
#[derive(clap::Args)]
pub(super) struct TokenArgs {
    /// The file with the secret that clients must know; the server makes it if it is not there [default: edge-token in
    /// layerlab's state folder]
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
}

impl TokenArgs {
    pub(super) fn file(&self) -> PathBuf {
        self.token_file
            .clone()
            .unwrap_or_else(|| Folders::of_this_user().state.join("edge-token"))
    }

    pub(super) fn read(&self) -> Result<Token, Failure> {
        Token::read(&self.file()).exit_with(Code::Input)
    }

    fn read_or_make(&self) -> Result<Token, Failure> {
        if self.token_file.is_none() {
            make_private(&Folders::of_this_user().state).exit_with(Code::Output)?;
        }
        Token::read_or_make(&self.file()).map_err(|error| {
            let code = match error {
                TokenFileError::Make { .. } => Code::Output,
                _ => Code::Input,
            };
            Failure::new(code, error)
        })
    }
}

/// Serves until the program is told to end.
pub(super) async fn run(args: &EdgeServerArgs, agent: Option<PathBuf>) -> Result<(), Failure> {
    let token = args.token.read_or_make()?;
    if !args.model.is_empty() {
        let mut agent = ServingAgent::start(args, agent_program(agent)?).await?;
        announce(&agent.address, args)?;
        return Err(agent.ended().await);
    }
    let address = args.listen;
    let listener = TcpListener::bind(address).map_err(|error| {
        let error = anyhow!("cannot listen on {address}: {error}; choose another --listen");
        Failure::new(Code::Device, error)
    })?;
    let server = Server::start(
        listener,
        token,
        program_for_server(),
        ServerLimits::default(),
    );
    let server = server.exit_with(Code::Internal)?;
    announce(&server.address().to_string(), args)?;
    std::future::pending().await
}

fn announce(address: &str, args: &EdgeServerArgs) -> Result<(), Failure> {
    output::print(format_args!(
        "Listening on {address} for whoever knows the token in {}; Ctrl-C ends it",
        args.token.file().display()
    ))
}

/// The agent of this machine, which has the runtimes, as a server that runs layers. Dropping it ends it.
struct ServingAgent {
    process: Child,
    /// The agent ends when this is closed, however layerlab ends.
    _stdin: Option<ChildStdin>,
    address: String,
}

impl ServingAgent {
    async fn start(args: &EdgeServerArgs, program: PathBuf) -> Result<ServingAgent, Failure> {
        let mut command = Command::new(&program);
        command.arg("edge-server");
        command.arg(format!("--listen={}", args.listen));
        command.arg("--token-file").arg(args.token.file());
        command.arg(format!("--program={}", program_for_server()));
        for model in &args.model {
            command.arg("--model").arg(model);
        }
        for (name, size) in &args.dims {
            command.arg(format!("--dim={name}={size}"));
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        command.stderr(Stdio::piped()).kill_on_drop(true);
        let mut process = command.spawn().map_err(|error| {
            let program = program.display();
            let error = anyhow!(
                "cannot start the agent {program}: {error}; name it with --agent or put it beside layerlab"
            );
            Failure::new(Code::Device, error)
        })?;
        let stdin = process.stdin.take();
        let mut line = String::new();
        if let Some(stdout) = process.stdout.take() {
            let mut lines = BufReader::new(stdout);
            // An error reads as the end of the output: the agent has died.
            let read = timeout(START_DEADLINE, lines.read_line(&mut line)).await;
            let _ = read.map_err(|_| {
                let error = anyhow!(
                    "the agent did not listen within {} s; it may hang: start it again with fewer models",
                    START_DEADLINE.as_secs()
                );
                Failure::new(Code::Device, error)
            })?;
        }
        let mut agent = ServingAgent {
            process,
            _stdin: stdin,
            address: String::new(),
        };
        match line.trim_end().strip_prefix("listening on ") {
            Some(address) => agent.address = address.to_owned(),
            None => return Err(agent.ended().await),
        }
        Ok(agent)
    }

    /// Waits until the agent ends, which it does not while it serves, and says what it said last.
    async fn ended(&mut self) -> Failure {
        let mut said = Vec::new();
        if let Some(stderr) = self.process.stderr.take() {
            let mut last = BufReader::new(stderr).split(b'\n');
            // What cannot be read is the end.
            while let Ok(Some(line)) = last.next_segment().await {
                said = line;
            }
        }
        said.truncate(LAST_WORDS_BYTES);
        let said = String::from_utf8_lossy(&said).into_owned();
        let said = said
            .strip_prefix("layerlab-agent: ")
            .unwrap_or(&said)
            .trim_end();
        let code = match timeout(START_DEADLINE, self.process.wait()).await {
            Ok(Ok(status)) if status.code() == Some(AGENT_BAD_INPUT) => Code::Input,
            _ => Code::Device,
        };
        let said = Printable(said);
        let error = match self.address.is_empty() {
            true => anyhow!("{said}"),
            false => anyhow!("the agent that served has ended: {said}; start the server again"),
        };
        Failure::new(code, error)
    }
}
