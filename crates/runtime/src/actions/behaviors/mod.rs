//! The loop of behaviors (docs/protocol.md): observe, ask for actions, carry them out, feed back, until the target of the step is achieved.

pub mod config;
pub mod finish;
pub mod frame;
pub mod machine;
pub mod model;
pub mod perform;
pub mod plan;
pub mod source;
