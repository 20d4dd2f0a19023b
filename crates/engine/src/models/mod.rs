//! The models of a project: selection, construction, shared connections and limits, listing and checks.

pub mod chain;
pub mod check;
pub mod choose;
pub mod environment;
pub mod factory;
pub mod list;
pub mod shared;
