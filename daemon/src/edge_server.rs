//! `layerlab edge-server`: the machine beside which phones are measured and planned.

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;

use anyhow::anyhow;
use layerlab_edge::{Server, ServerLimits, Token, TokenFileError};
use layerlab_farm::folders::{Folders, make_private};
use tokio::signal::unix::{SignalKind, signal};

use super::exit::{Code, ExitWith, Failure};
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
}

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

/// What this program calls itself to the other end.
pub(super) fn program() -> String {
    let program = layerlab_campaign::this_program();
    format!("{} {}", program.name, program.version)
}

pub(super) async fn run(args: &EdgeServerArgs) -> Result<(), Failure> {
    let token = args.token.read_or_make()?;
    let address = args.listen;
    let listener = TcpListener::bind(address).map_err(|error| {
        let error = anyhow!("cannot listen on {address}: {error}; choose another --listen");
        Failure::new(Code::Device, error)
    })?;
    let mut terminate = signal(SignalKind::terminate()).exit_with(Code::Internal)?;
    let server = Server::start(listener, token, program(), ServerLimits::default());
    let server = server.exit_with(Code::Internal)?;
    output::print(format_args!(
        "Listening on {} for whoever knows the token in {}; Ctrl-C ends it",
        server.address(),
        args.token.file().display()
    ))?;
    // Ending this way is what it is for, and no interruption.
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate.recv() => {}
    }
    Ok(())
}
