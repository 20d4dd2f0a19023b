//! The loop of behaviors (docs/protocol.md): observe, ask for actions, carry them out, feed back, until the target of the step is achieved.

pub mod asking;
pub mod carrying;
pub mod config;
pub mod ending;
pub mod frame;
pub mod machine;
pub mod model;
pub mod plan;
