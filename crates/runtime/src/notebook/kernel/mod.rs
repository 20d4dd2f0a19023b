//! The kernel that runs the code of a notebook. Apart from the stores and the model providers, only this module and `effects/`
//! access files, processes and the network.

pub mod contract;
pub mod limits;
pub mod location;
pub mod specs;
pub mod traced;

#[cfg(feature = "jupyter")]
mod attach;
#[cfg(feature = "jupyter")]
mod channels;
#[cfg(feature = "jupyter")]
mod connection_file;
#[cfg(feature = "jupyter")]
mod directory;
#[cfg(feature = "jupyter")]
mod execution;
#[cfg(feature = "jupyter")]
#[cfg(test)]
mod execution_tests;
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
mod server_client;
#[cfg(feature = "jupyter")]
mod server_kernel;
#[cfg(feature = "jupyter")]
mod server_start;
#[cfg(feature = "jupyter")]
mod socket_form;
#[cfg(feature = "jupyter")]
mod start;
#[cfg(feature = "jupyter")]
mod variables;
#[cfg(feature = "jupyter")]
mod websocket;
#[cfg(not(feature = "jupyter"))]
pub mod without_jupyter;
#[cfg(feature = "jupyter")]
mod zmq_channels;
#[cfg(feature = "jupyter")]
mod zmtp;
