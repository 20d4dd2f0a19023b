//! The store in a PostgreSQL database, for any number of processes on any number of machines (docs/scale.md).
//!
//! * Every change is one statement, which calls a function of the database (`functions_1.sql`, `functions_2.sql`): one way to the server and back, and one
//!   transaction. No statement is prepared by name, and nothing is set for a connection, so that a pooler may give each transaction
//!   another connection.
//! * A change that was sent when the connection broke is sent again, and recognised if it was carried out (`client.rs`).
//! * A session belongs to the process that has its lease (`lease.rs`), and a commit without it is rejected. All times of leases are
//!   those of the database.

pub mod store;

pub(crate) mod client;
pub(crate) mod copying;
pub(crate) mod error;
pub(crate) mod lease;
pub(crate) mod lease_requests;
pub(crate) mod links;
pub(crate) mod plans;
pub(crate) mod read;
pub(crate) mod schema;
pub(crate) mod text;
pub(crate) mod together;
pub(crate) mod write;

#[cfg(test)]
pub(crate) mod tests;

/// Whether this names a PostgreSQL database, and not a file.
pub fn is_url(store: &str) -> bool {
    store.starts_with("postgres://") || store.starts_with("postgresql://")
}
