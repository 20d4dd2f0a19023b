//! The behavior loop (docs/protocol.md): observe, ask for actions, perform them and report the results, until the target of the
//! step is achieved.

pub mod config;
pub mod failures;
pub mod finish;
pub mod frame;
pub mod machine;
pub mod model;
pub mod offered;
pub mod perform;
pub mod plan;
pub(crate) mod planning;
pub mod source;
