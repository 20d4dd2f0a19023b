//! Converts errors of PostgreSQL to [`StoreError`]. Their own messages are not passed on: they may quote what was to be written.

use bcc_lang::message::library::library;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use tokio_postgres::Error;
use tokio_postgres::error::{DbError, SqlState};

use crate::error::StoreError;
use crate::postgres::schema::newest;

/// What a statement concerns, for its error.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Concern<'c> {
    /// The id of a session.
    pub(crate) session: &'c str,
    pub(crate) revision: u64,
    pub(crate) plan: u64,
}

/// Whether a statement that failed may be sent again: it was not carried out, or the connection broke.
pub(crate) fn is_passing(error: &Error) -> bool {
    let Some(code) = error.code() else {
        if is_tls(error) {
            return false;
        }
        // Without a code, it is not the server that speaks. What cannot be encoded or read stays so.
        return error.is_closed() || is_io(error) || is_connect(error);
    };
    const PASSING: [SqlState; 10] = [
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::T_R_DEADLOCK_DETECTED,
        // A document that another session has just deleted with its last user.
        SqlState::FOREIGN_KEY_VIOLATION,
        SqlState::ADMIN_SHUTDOWN,
        SqlState::CRASH_SHUTDOWN,
        SqlState::CANNOT_CONNECT_NOW,
        SqlState::TOO_MANY_CONNECTIONS,
        // A server that has just become the first one, or no longer is.
        SqlState::READ_ONLY_SQL_TRANSACTION,
        SqlState::QUERY_CANCELED,
        SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
    ];
    // Class 08: the connection. PgBouncer reports with it that its server is gone.
    PASSING.contains(code) || code.code().starts_with("08")
}

/// Whether a statement names something that the database does not have.
pub(crate) fn is_undefined(error: &Error) -> bool {
    const UNDEFINED: [SqlState; 4] = [
        SqlState::UNDEFINED_FUNCTION,
        SqlState::UNDEFINED_TABLE,
        SqlState::UNDEFINED_COLUMN,
        SqlState::INVALID_SCHEMA_NAME,
    ];
    error.code().is_some_and(|code| UNDEFINED.contains(code))
}

fn is_io(error: &Error) -> bool {
    use std::error::Error as _;
    let mut source = error.source();
    while let Some(cause) = source {
        if cause.is::<std::io::Error>() {
            return true;
        }
        source = cause.source();
    }
    false
}

/// Whether the two sides cannot agree on TLS.
fn is_tls(error: &Error) -> bool {
    error.to_string().starts_with("error performing TLS handshake")
}

/// Whether the server does not speak TLS at all.
fn lacks_tls(error: &Error) -> bool {
    use std::error::Error as _;
    is_tls(error) && error.source().is_some_and(|cause| cause.to_string().contains("does not support TLS"))
}

fn is_connect(error: &Error) -> bool {
    error.to_string().starts_with("error connecting") || error.to_string().starts_with("timeout")
}

/// The error for a failed statement.
pub(crate) fn store_error(store: &str, error: &Error, concern: Concern<'_>) -> StoreError {
    match error.as_db_error() {
        Some(database) => of_database(store, database, concern),
        None if error.to_string().starts_with("invalid configuration") => {
            unreachable(store, Message::word("its address is not valid"))
        }
        None if lacks_tls(error) => {
            unreachable(store, Message::word("the server has no TLS, which `sslmode` of its address requires"))
        }
        None if is_tls(error) => {
            unreachable(store, Message::word("its certificate is not trusted, or is not one for this host"))
        }
        None if is_connect(error) => unreachable(store, Message::word("no connection can be made")),
        None if is_passing(error) => unreachable(store, Message::word("the connection broke")),
        None => StoreError::Io { store: store.to_owned(), reason: Message::word("a row contains invalid data") },
    }
}

fn of_database(store: &str, error: &DbError, concern: Concern<'_>) -> StoreError {
    let (store, id) = (store.to_owned(), concern.session.to_owned());
    let mut numbers = error.detail().unwrap_or_default().split(' ');
    let mut number = || numbers.next().and_then(|number| number.parse().ok()).unwrap_or_default();
    match error.code().code() {
        "BC001" => return StoreError::NotFound { store, id },
        "BC002" => return StoreError::Conflict { store, id, expected: concern.revision, found: number() },
        "BC003" => {
            let what = match error.detail().unwrap_or_default().split(' ').next() {
                Some("message") => "message",
                Some("cell") => "cell",
                _ => "event",
            };
            number();
            return StoreError::Gap { store, id, what, expected: number(), found: number() };
        }
        "BC004" => return StoreError::AnswerTaken { store, id },
        "BC005" => return StoreError::CellIdMismatch { store, id, number: number() },
        "BC006" => return StoreError::Exists { store, id },
        "BC007" => return StoreError::LeaseLost { store, id },
        "BC008" => {
            let found = u32::try_from(number()).unwrap_or(u32::MAX);
            return StoreError::Newer { store, found, known: newest() };
        }
        "BC010" => return StoreError::NoPlan { store, plan: concern.plan },
        "BC011" => return StoreError::PlanExists { store, plan: concern.plan },
        "BC012" => {
            return StoreError::PlanChanged { store, plan: concern.plan, expected: concern.revision, found: number() };
        }
        "BC013" => return StoreError::PlanTaskExists { store, task: number(), plan: number() },
        _ => {}
    }
    let code = error.code();
    if *code == SqlState::DISK_FULL {
        StoreError::Full { store }
    } else if *code == SqlState::NUMERIC_VALUE_OUT_OF_RANGE || *code == SqlState::PROGRAM_LIMIT_EXCEEDED {
        StoreError::TooLarge { store }
    } else if *code == SqlState::INVALID_PASSWORD || *code == SqlState::INVALID_AUTHORIZATION_SPECIFICATION {
        unreachable(&store, Message::word("the user or the password is wrong"))
    } else if *code == SqlState::INVALID_CATALOG_NAME {
        unreachable(&store, Message::word("the server has no such database; create it with `createdb`"))
    } else if *code == SqlState::INSUFFICIENT_PRIVILEGE {
        unreachable(&store, Message::word("the user may not create or use the schema `bcc_script` of this database"))
    } else if *code == SqlState::READ_ONLY_SQL_TRANSACTION {
        unreachable(&store, Message::word("the database is read-only"))
    } else {
        let code = library(code.code());
        StoreError::Io { store, reason: msg!("PostgreSQL reports {code}") }
    }
}

/// The error for a database that cannot be reached or used.
pub(crate) fn unreachable(store: &str, reason: Message) -> StoreError {
    StoreError::Unreachable { store: store.to_owned(), reason }
}

/// The error when the thread that keeps the leases cannot be started.
pub(crate) fn no_thread(store: &str) -> StoreError {
    unreachable(store, Message::word("no thread can be started for its leases"))
}

/// The error when a row has a value that JSON cannot hold.
pub(crate) fn no_json(store: &str) -> StoreError {
    StoreError::Io { store: store.to_owned(), reason: Message::word("a row cannot be written as JSON") }
}

/// The error when the database takes too long.
pub(crate) fn no_answer(store: &str) -> StoreError {
    unreachable(store, Message::word("it does not answer in time"))
}
