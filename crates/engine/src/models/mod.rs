//! The models of a project: which one a session asks, how each is made, what is shared, and what can be told of them.

pub mod chain;
pub mod check;
pub mod choose;
pub mod list;
pub mod make;
pub mod shared;
pub mod surroundings;
