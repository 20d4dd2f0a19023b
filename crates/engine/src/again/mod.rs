//! Sessions that begin again at one of their answers (docs/begin-again.md): [`restart`] plans and creates them, `preview` finds out which
//! model calls they take, `clock` has the times of their prompts, and `given_answers` the answers that they are still to be given.

pub(crate) mod clock;
pub(crate) mod given_answers;
pub(crate) mod preview;
pub mod restart;
