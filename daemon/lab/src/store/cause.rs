//! What a database says when it does not do what it should.

use sqlx::sqlite::SqliteError;

/// What is wrong with a database, as far as that is told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// What is asked about is not there.
    NoTable,
    /// What is to be kept can be kept by no such database.
    Data,
    Room,
    OtherProgram,
    File,
    Damage,
    /// The server cannot be reached, or is ending or beginning.
    Connection,
    /// What the configuration says of the server.
    Setting,
    Password,
    NoDatabase,
    Right,
    ReadOnlyServer,
    Connections,
    Other,
}

impl Cause {
    pub(super) fn of(error: &sqlx::Error) -> Cause {
        match error {
            sqlx::Error::Decode(_) | sqlx::Error::ColumnDecode { .. } => Cause::Damage,
            sqlx::Error::Io(_) | sqlx::Error::Tls(_) | sqlx::Error::Protocol(_) => {
                Cause::Connection
            }
            sqlx::Error::Configuration(_) => Cause::Setting,
            sqlx::Error::Database(error) => {
                let code = error.code().unwrap_or_default();
                match error.try_downcast_ref::<SqliteError>() {
                    Some(_) => Cause::of_sqlite(&code),
                    None => Cause::of_state(&code),
                }
            }
            _ => Cause::Other,
        }
    }

    /// Of SQLite's result codes; extended ones have the primary code in their lowest byte.
    fn of_sqlite(code: &str) -> Cause {
        match code.parse::<i32>().map(|code| code & 0xff) {
            Ok(1) => Cause::NoTable,
            Ok(5 | 6) => Cause::OtherProgram,
            Ok(8 | 14) => Cause::File,
            Ok(11 | 26) => Cause::Damage,
            Ok(13) => Cause::Room,
            _ => Cause::Other,
        }
    }

    /// Of PostgreSQL's SQLSTATE codes, the first two characters of which name a class.
    fn of_state(code: &str) -> Cause {
        match code {
            "42P01" => Cause::NoTable,
            "42501" => Cause::Right,
            "3D000" => Cause::NoDatabase,
            "25006" => Cause::ReadOnlyServer,
            "53100" => Cause::Room,
            "53300" => Cause::Connections,
            "XX001" | "XX002" => Cause::Damage,
            "57P01" | "57P02" | "57P03" | "57P05" => Cause::Connection,
            _ if code.starts_with("08") => Cause::Connection,
            _ if code.starts_with("28") => Cause::Password,
            _ if code.starts_with("22") || code.starts_with("23") => Cause::Data,
            _ => Cause::Other,
        }
    }
}

/// Whether a table is not there.
pub(super) fn is_about_tables(error: &sqlx::Error) -> bool {
    Cause::of(error) == Cause::NoTable
}

/// Whether what is to be kept can never be.
pub(super) fn is_about_data(error: &sqlx::Error) -> bool {
    Cause::of(error) == Cause::Data
}

/// What the database says, without the driver's frame.
pub(super) fn sentence(error: &sqlx::Error) -> String {
    match error {
        sqlx::Error::Database(error) => error.message().to_owned(),
        sqlx::Error::Io(error) => error.to_string(),
        sqlx::Error::Configuration(error) | sqlx::Error::Tls(error) => error.to_string(),
        other => other.to_string(),
    }
}

pub(super) fn remedy(error: &sqlx::Error) -> &'static str {
    match Cause::of(error) {
        Cause::Room => "make room",
        Cause::OtherProgram => "end the program that has it open",
        Cause::File => "see that it and its folder are there, and can be written",
        Cause::Damage => "stop the daemon, and restore it from a backup or move it away",
        Cause::Connection => "see that it is there, works and can be reached",
        Cause::Setting => {
            "see `store` and `store-password-file` of the configuration, and keep others out of that file with `chmod 600`"
        }
        Cause::Password => {
            "see that the user and the password are right, which comes from PGPASSWORD, a passfile that nobody else can read or `store-password-file`"
        }
        Cause::NoDatabase => "make it, as docs/lab.md says",
        Cause::Right => "make this user the owner of the database",
        Cause::ReadOnlyServer => "name the server that takes changes",
        Cause::Connections => "end other programs, or have the server allow more connections",
        Cause::NoTable | Cause::Data | Cause::Other => "see that its disk works and has room",
    }
}
