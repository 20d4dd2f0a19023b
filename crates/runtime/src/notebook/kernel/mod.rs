//! The kernel that runs the code of a notebook. Apart from the stores and the model providers, only this module and `effects/`
//! access files, processes and the network.

pub mod contract;
pub mod limits;
pub mod location;
pub mod specs;
pub mod traced;

#[cfg(feature = "jupyter")]
mod directory;
#[cfg(feature = "jupyter")]
mod execution;
#[cfg(feature = "jupyter")]
pub mod jupyter;
#[cfg(feature = "jupyter")]
mod message;
#[cfg(feature = "jupyter")]
mod outputs;
#[cfg(feature = "jupyter")]
mod process;
#[cfg(feature = "jupyter")]
mod running;
#[cfg(feature = "jupyter")]
mod variables;
#[cfg(not(feature = "jupyter"))]
pub mod without_jupyter;
#[cfg(feature = "jupyter")]
mod zmtp;
