//! `layerlab completions`: what a shell needs to complete layerlab's commands and options.

use clap::CommandFactory;
use clap_complete::Shell;

use super::Cli;
use super::exit::{Code, ExitWith, Failure};
use super::output;

#[derive(clap::Args)]
#[command(
    after_help = "For bash: layerlab completions bash > ~/.local/share/bash-completion/completions/layerlab\n\
For zsh, in a folder of $fpath: layerlab completions zsh > _layerlab\n\
For fish: layerlab completions fish > ~/.config/fish/completions/layerlab.fish"
)]
pub(super) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

pub(super) fn run(args: &CompletionsArgs) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "layerlab", &mut script);
    let script = String::from_utf8(script).exit_with(Code::Internal)?;
    output::print(script.trim_end())
}
