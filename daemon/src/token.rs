//! `layerlab token`: who may ask the lab over the web.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Serialize;

use super::exit::{Code, ExitWith, Failure};
use super::output;
use layerlab_farm::folders::Folders;
use layerlab_lab::text_table::table;
use layerlab_lab::when::{Direction, moment, point};
use layerlab_web::{Role, Token, TokenError, TokenFile};

#[derive(clap::Subcommand)]
pub(super) enum TokenCommand {
    /// Make a token, and print it: nobody can see it again
    Create {
        /// Who has it: the event log names it with what was changed
        name: String,
        /// What it allows
        #[arg(long, value_name = "ROLE")]
        role: RoleChoice,
        /// When it ends by itself, such as 30d or 2027-01-01 [default: never]
        #[arg(long, value_name = "WHEN")]
        expires: Option<String>,
    },
    /// Print who has tokens
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Refuse a token from now on
    Revoke {
        /// Who has it
        name: String,
    },
}

/// What a token allows.
#[derive(Clone, Copy, clap::ValueEnum)]
pub(super) enum RoleChoice {
    /// Look at everything
    Viewer,
    /// Also give the lab jobs, reserve devices and leave phones alone
    Operator,
    /// Also see who has tokens, and revoke them
    Admin,
}

/// What `list --json` prints of a token.
#[derive(Serialize)]
struct ListedToken<'a> {
    name: &'a str,
    role: Role,
    created: Timestamp,
    expires: Option<Timestamp>,
    revoked: Option<Timestamp>,
}

pub(super) fn run(command: &TokenCommand) -> Result<(), Failure> {
    let tokens = TokenFile::in_state(&Folders::of_this_user().state);
    let now = Timestamp::now();
    match command {
        TokenCommand::Create {
            name,
            role,
            expires,
        } => {
            let at = |text: &String| point(text, now, Direction::Next, &TimeZone::system());
            let expires = expires.as_ref().map(at).transpose();
            let expires = expires.exit_with(Code::Usage)?;
            let role = match role {
                RoleChoice::Viewer => Role::Viewer,
                RoleChoice::Operator => Role::Operator,
                RoleChoice::Admin => Role::Admin,
            };
            let made = tokens.create(name, role, expires, now);
            let made = made.map_err(token_failure)?;
            output::note(
                "Keep this; it is shown once. It is sent as `Authorization: Bearer TOKEN`.",
            );
            output::print(made.secret())
        }
        TokenCommand::List { json } => list(&tokens.list().map_err(token_failure)?, *json, now),
        TokenCommand::Revoke { name } => {
            tokens.revoke(name, now).map_err(token_failure)?;
            output::print(format_args!("{name}'s token is refused from now on"))
        }
    }
}

fn token_failure(error: TokenError) -> Failure {
    let code = match error {
        TokenError::File { .. } => Code::Output,
        TokenError::Over => Code::Usage,
        TokenError::Taken(_) | TokenError::Name(_) | TokenError::Unknown(_) => Code::Input,
    };
    Failure::new(code, error)
}

fn list(tokens: &[Token], json: bool, now: Timestamp) -> Result<(), Failure> {
    if json {
        let listed = tokens.iter().map(|token| ListedToken {
            name: &token.name,
            role: token.role,
            created: token.created,
            expires: token.expires,
            revoked: token.revoked,
        });
        return output::print_json(&listed.collect::<Vec<_>>());
    }
    if tokens.is_empty() {
        return output::print("nobody has a token; `layerlab token create` makes one");
    }
    let zone = TimeZone::system();
    let told = |at| moment(at, now, &zone);
    let rows = tokens.iter().map(|token| {
        let state = match (token.revoked, token.expires) {
            (Some(at), _) => format!("revoked {}", told(at)),
            (None, Some(at)) if at <= now => format!("over since {}", told(at)),
            (None, Some(at)) => format!("valid until {}", told(at)),
            (None, None) => "valid".to_owned(),
        };
        let (role, created) = (token.role.to_string(), told(token.created));
        vec![token.name.clone(), role, created, state]
    });
    output::print(table(&["name", "role", "made", "state"], &[], rows))
}
