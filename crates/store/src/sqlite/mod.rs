//! The store in one SQLite file.

pub mod disk;
pub mod inspect;
pub mod open;
pub mod recover;
pub mod salvage;
pub mod store;

pub(crate) mod blobs;
pub(crate) mod checkpoints;
pub(crate) mod compressed;
pub(crate) mod copying;
pub(crate) mod damage;
pub(crate) mod error;
pub(crate) mod file;
pub(crate) mod group;
pub(crate) mod image;
pub(crate) mod in_use;
pub(crate) mod links;
pub(crate) mod locks;
pub(crate) mod packed;
pub(crate) mod packed_state;
pub(crate) mod pages;
pub(crate) mod plans;
pub(crate) mod presence;
pub(crate) mod read;
pub(crate) mod readers;
pub(crate) mod remove;
pub(crate) mod replaced;
pub(crate) mod requests;
pub(crate) mod salvage_links;
pub(crate) mod salvage_plans;
pub(crate) mod schema;
pub(crate) mod threads;
pub(crate) mod wal;
pub(crate) mod write;

/// The version of the bundled SQLite.
pub fn version() -> &'static str {
    rusqlite::version()
}

#[cfg(test)]
mod blobs_tests;
#[cfg(test)]
mod cells_tests;
#[cfg(test)]
mod checkpoints_tests;
#[cfg(test)]
mod damage_tests;
#[cfg(test)]
mod group_tests;
#[cfg(test)]
mod links_tests;
#[cfg(test)]
mod migration_tests;
#[cfg(test)]
mod packed_tests;
#[cfg(test)]
mod plans_tests;
#[cfg(test)]
mod presence_tests;
#[cfg(test)]
mod readers_tests;
#[cfg(test)]
mod replaced_tests;
#[cfg(test)]
mod requests_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod unfinished_tests;
