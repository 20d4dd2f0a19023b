//! The behavior protocol as a server (docs/protocol.md): plans, actions and judgements for clients that keep a notebook, and the kernels
//! in which they run code.

pub(crate) mod actions;
pub(crate) mod answers;
pub(crate) mod endpoints;
pub(crate) mod goal;
pub(crate) mod judgement;
pub(crate) mod kernel_endpoints;
pub(crate) mod kernels;
pub(crate) mod legacy_form;
pub(crate) mod lines;
pub(crate) mod live;
pub(crate) mod model;
pub(crate) mod outputs;
pub(crate) mod plan;
pub mod plan_format;
pub(crate) mod question;
pub(crate) mod request;
pub(crate) mod script;
pub(crate) mod workflow_state;
