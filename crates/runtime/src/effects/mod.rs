//! The outside world that actions may touch, beyond models and kernels. What is allowed is decided by the project, in
//! [`permissions`]; nothing here asks twice.

pub mod behavior_server;
pub mod behaviors;
pub mod permissions;
pub mod process;
