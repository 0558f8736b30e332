//! A database on a PostgreSQL server that has the store of a lab.

use std::fmt;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sqlx::any::AnyConnectOptions;
use sqlx::postgres::PgListener;
use sqlx::{AnyConnection, ConnectOptions, raw_sql};
use tokio::time::timeout;

use super::in_time::no_answer;

/// How long a server may take to let one in.
const CONNECTING: Duration = Duration::from_secs(20);

/// What the URL of a database may say beside user, host, port and name.
const PARAMETERS: [&str; 13] = [
    "application_name",
    "dbname",
    "host",
    "hostaddr",
    "options",
    "port",
    "ssl-ca",
    "sslcert",
    "sslkey",
    "sslmode",
    "sslrootcert",
    "statement-cache-capacity",
    "user",
];

/// How long runs wait for their host by default, once it has lost its lease.
const HOST_PATIENCE: Duration = Duration::from_secs(1800);

/// A database on a PostgreSQL server, where the password for it is, and as which host it is used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoreServer {
    url: String,
    password_file: Option<PathBuf>,
    /// The machine's name, unless it is said.
    #[serde(default)]
    host: Option<String>,
    /// How long runs of other hosts wait for those, once they have lost their leases.
    #[serde(default = "host_patience")]
    host_patience: Duration,
}

fn host_patience() -> Duration {
    HOST_PATIENCE
}

/// Why a text names no database for a store. It may be a password, and is not said.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreUrlError {
    /// It is no URL of a PostgreSQL database.
    #[error(
        "this is no URL of a PostgreSQL database; write one such as \"postgres://layerlab@db.example/layerlab\", or \"\" for a file in the state folder"
    )]
    Other,
    /// It has a password.
    #[error(
        "a password stands in this URL; take it out, and give it by PGPASSWORD, by a passfile, or by a file that `store-password-file` names"
    )]
    Password,
    /// It asks for what is not known.
    #[error("`{0}` is no parameter of a database's URL; write one of {known}", known = PARAMETERS.join(", "))]
    Parameter(String),
}

impl StoreServer {
    /// The database at `url`, which holds no password: that comes from PGPASSWORD or a passfile (PGPASSFILE, else ~/.pgpass).
    pub fn new(url: &str) -> Result<StoreServer, StoreUrlError> {
        let options: AnyConnectOptions = url.parse().map_err(|_| StoreUrlError::Other)?;
        let parsed = options.database_url;
        let is_known = matches!(parsed.scheme(), "postgres" | "postgresql");
        if !is_known || !url.contains("://") {
            return Err(StoreUrlError::Other);
        }
        let mut parameters = parsed.query_pairs();
        if parsed.password().is_some() || parameters.any(|(name, _)| name == "password") {
            return Err(StoreUrlError::Password);
        }
        let mut parameters = parsed.query_pairs();
        match parameters.find(|(name, _)| !PARAMETERS.contains(&name.as_ref())) {
            Some((name, _)) => Err(StoreUrlError::Parameter(name.into_owned())),
            None => Ok(StoreServer {
                url: url.to_owned(),
                password_file: None,
                host: None,
                host_patience: HOST_PATIENCE,
            }),
        }
    }

    /// As the host of this name.
    #[must_use]
    pub fn as_host(self, name: String) -> StoreServer {
        StoreServer {
            host: Some(name),
            ..self
        }
    }

    /// Runs of other hosts wait so long for those that have lost their leases.
    #[must_use]
    pub fn with_host_patience(self, host_patience: Duration) -> StoreServer {
        StoreServer {
            host_patience,
            ..self
        }
    }

    /// The host as which it is used.
    pub(super) fn host(&self) -> String {
        let machine = || sysinfo::System::host_name().unwrap_or_else(|| "localhost".to_owned());
        self.host.clone().unwrap_or_else(machine)
    }

    /// How long runs of other hosts wait for those that have lost their leases.
    pub(super) fn host_patience(&self) -> Duration {
        self.host_patience
    }

    /// Takes the password from `file`, which nobody else can read.
    #[must_use]
    pub fn with_password_file(self, file: PathBuf) -> StoreServer {
        StoreServer {
            password_file: Some(file),
            ..self
        }
    }

    /// A connection that writes.
    pub(super) async fn connect(&self) -> Result<AnyConnection, sqlx::Error> {
        // What is acknowledged outlives a power cut, whatever the server does by default. A server that does not hear from
        // this host any more ends what it holds for it after a minute, and the lab's turn after ten seconds.
        self.connect_as(
            "SET synchronous_commit TO on; \
             SET tcp_keepalives_idle TO 30; SET tcp_keepalives_interval TO 10; SET tcp_keepalives_count TO 3; \
             SET idle_in_transaction_session_timeout TO '10s'; \
             SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE",
        )
        .await
    }

    /// A connection that only reads, and sees the same in all of a transaction.
    pub(super) async fn connect_to_read(&self) -> Result<AnyConnection, sqlx::Error> {
        self.connect_as(
            "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY",
        )
        .await
    }

    /// What listens to other hosts.
    pub(super) async fn listen(&self, channel: &str) -> Result<PgListener, sqlx::Error> {
        let connecting = async {
            let mut listener = PgListener::connect(self.options()?.database_url.as_str()).await?;
            // Whoever listens makes it again, and looks for what was missed.
            listener.eager_reconnect(false);
            listener.listen(channel).await?;
            Ok(listener)
        };
        match timeout(CONNECTING, connecting).await {
            Ok(connected) => connected,
            Err(_) => Err(no_answer(CONNECTING)),
        }
    }

    async fn connect_as(&self, settings: &'static str) -> Result<AnyConnection, sqlx::Error> {
        let connecting = async {
            let mut connection = self.options()?.connect().await?;
            raw_sql("SET search_path TO layerlab")
                .execute(&mut connection)
                .await?;
            raw_sql(settings).execute(&mut connection).await?;
            Ok(connection)
        };
        match timeout(CONNECTING, connecting).await {
            Ok(connected) => connected,
            Err(_) => Err(no_answer(CONNECTING)),
        }
    }

    fn options(&self) -> Result<AnyConnectOptions, sqlx::Error> {
        let mut options: AnyConnectOptions = self.url.parse()?;
        let is_named = |name: &str| {
            let mut parameters = options.database_url.query_pairs();
            parameters.any(|(known, _)| known == name)
        };
        let has_name = is_named("application_name");
        let mut parameters = options.database_url.query_pairs_mut();
        if !has_name {
            parameters.append_pair("application_name", "layerlab");
        }
        if let Some(file) = &self.password_file {
            let password = password(file).map_err(|why| sqlx::Error::Configuration(why.into()))?;
            parameters.append_pair("password", &password);
        }
        drop(parameters);
        Ok(options.disable_statement_logging())
    }
}

impl fmt::Display for StoreServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.url)
    }
}

/// The password in a file that nobody else can read.
fn password(file: &Path) -> Result<String, String> {
    let failed = |error| {
        format!(
            "cannot read the file with the password, {}: {error}",
            file.display()
        )
    };
    let metadata = fs::metadata(file).map_err(failed)?;
    if metadata.permissions().mode() & 0o077 != 0 {
        return Err(format!(
            "others can read the file with the password, {}",
            file.display()
        ));
    }
    let text = fs::read_to_string(file).map_err(failed)?;
    let password = text.trim_end_matches(['\n', '\r']);
    match password.is_empty() {
        true => Err(format!(
            "the file with the password, {}, is empty",
            file.display()
        )),
        false => Ok(password.to_owned()),
    }
}
