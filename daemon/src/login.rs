//! `layerlab login` and `layerlab logout`: tokens for labs elsewhere.

use std::io::{self, BufRead, IsTerminal};
use std::path::PathBuf;

use super::elsewhere::{Elsewhere, ElsewhereError, LabUrl, Login, Logins};
use super::exit::{Code, ExitWith, Failure};
use super::output;

#[derive(clap::Args)]
#[command(
    after_help = "The token is one that `layerlab token create` printed on the lab's host. It is asked for at a terminal, \
                  and else read from standard input; the command line would show it to others."
)]
pub(super) struct LoginArgs {
    /// The lab, such as https://lab.example
    url: LabUrl,
    /// Trust the lab if a certificate in this file (PEM) vouches for it, from now on
    #[arg(long, value_name = "FILE", env = "LAYERLAB_CA")]
    ca: Option<PathBuf>,
}

#[derive(clap::Args)]
pub(super) struct LogoutArgs {
    /// The lab
    #[arg(env = "LAYERLAB_LAB")]
    url: LabUrl,
}

/// Longer lines are no tokens.
const LONGEST: u64 = 4096;

/// Keeps a token, once the lab has said that it is valid.
pub(super) async fn login(args: &LoginArgs) -> Result<(), Failure> {
    let url = &args.url;
    let ca = match &args.ca {
        Some(ca) => Some(std::path::absolute(ca).exit_with(Code::Input)?),
        None => None,
    };
    let token = token(url).exit_with(Code::Input)?;
    let token = token.trim();
    if token.is_empty() || token.contains(char::is_whitespace) || token.contains(char::is_control) {
        let error = anyhow::anyhow!(
            "this is no token; give the one that `layerlab token create` printed on the lab's host"
        );
        return Err(Failure::new(Code::Usage, error));
    }
    let lab = Elsewhere::with_token(url, token, ca.as_deref())?;
    let own = lab.own_token().await?;
    let logins = Logins::of_this_user();
    let token = token.to_owned();
    logins.keep(url, Login { token, ca })?;
    output::print(format_args!(
        "You are {} at {url}, with the role {}; the token is kept in {}. `--lab {url}` has commands ask this lab.",
        own.name,
        own.role,
        logins.path().display()
    ))
}

fn token(url: &LabUrl) -> io::Result<String> {
    if io::stdin().is_terminal() {
        output::note(format_args!("The token for {url} (it is not shown):"));
        return console::Term::stderr().read_secure_line();
    }
    let mut line = String::new();
    let input = io::stdin().lock();
    io::Read::take(input, LONGEST).read_line(&mut line)?;
    Ok(line)
}

/// Forgets a token. The lab still takes it.
pub(super) fn logout(args: &LogoutArgs) -> Result<(), Failure> {
    let url = &args.url;
    match Logins::of_this_user().forget(url)? {
        true => output::print(format_args!(
            "The token for {url} is forgotten here; `layerlab token revoke` on the lab's host refuses it everywhere."
        )),
        false => Err(ElsewhereError::NoToken(url.clone()).into()),
    }
}
