//! The kernel that runs the code of a notebook. Besides the stores and the providers of models, this module and `effects/` are the
//! only ones that touch the outside world.

pub mod contract;
pub mod location;
pub mod specs;

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
