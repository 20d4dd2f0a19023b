//! The kernel that runs the code of a notebook. Besides the stores and the providers of models, this module and `effects/` are the
//! only ones that touch the outside world.

pub mod contract;
pub mod place;
pub mod specs;

#[cfg(not(feature = "jupyter"))]
pub mod absent;
#[cfg(feature = "jupyter")]
pub mod jupyter;
#[cfg(feature = "jupyter")]
mod message;
#[cfg(feature = "jupyter")]
mod outputs;
#[cfg(feature = "jupyter")]
mod process;
#[cfg(feature = "jupyter")]
mod round;
#[cfg(feature = "jupyter")]
mod running;
#[cfg(feature = "jupyter")]
mod variables;
#[cfg(feature = "jupyter")]
mod zmtp;
