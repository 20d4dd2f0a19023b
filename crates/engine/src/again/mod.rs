//! Sessions that begin again at one of their answers (docs/begin-again.md): [`restart`] plans and creates them, `preview` finds out which
//! model calls they take, and `clock` has the times of their prompts.

pub(crate) mod clock;
pub(crate) mod preview;
pub mod restart;
