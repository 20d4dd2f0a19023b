//! The tool `web_search`: [`tool`] takes a call, [`request`] says what a provider is sent, `server` sends it, and [`answer`] reads what
//! comes back.

pub mod answer;
pub(crate) mod error;
pub mod request;
pub(crate) mod server;
pub mod tool;
