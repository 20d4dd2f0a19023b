//! Access of actions to the host, other than models and kernels. [`permissions`] defines what the project allows; the other
//! modules do not check it.

pub mod behavior_server;
pub mod behaviors;
pub mod commands;
pub mod descendants;
pub mod files;
pub mod output;
pub(crate) mod pause;
pub mod permissions;
pub mod process;
pub mod server_process;
pub mod tools;
