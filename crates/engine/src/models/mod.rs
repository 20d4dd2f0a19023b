//! The models of a project: which one a session asks, how each is made, what is shared, and what can be told of them.

pub mod chain;
pub mod check;
pub mod choose;
pub mod environment;
pub mod factory;
pub mod list;
pub mod shared;
