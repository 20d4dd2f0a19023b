//! The store in one SQLite file.

pub mod inspect;
pub mod open;
pub mod store;

pub(crate) mod disk;
pub(crate) mod error;
pub(crate) mod lock;
pub(crate) mod read;
pub(crate) mod remove;
pub(crate) mod schema;
pub(crate) mod write;

/// The version of the bundled SQLite.
pub fn version() -> &'static str {
    rusqlite::version()
}

#[cfg(test)]
mod cells_tests;
#[cfg(test)]
mod tests;
