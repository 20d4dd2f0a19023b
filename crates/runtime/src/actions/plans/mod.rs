//! Actions on plans (docs/plans.md): [`edits`] makes those that need no model, [`generation`] makes tasks with a model, [`execution`] runs them,
//! [`task`] runs one of them, [`approval`] asks whether it may run, [`kind`] lets authors use the operations as actions, [`constants`] checks what they write, and [`bound`] tells
//! which plan a session works on.

pub(crate) mod approval;
pub(crate) mod bound;
mod constants;
pub(crate) mod edits;
pub(crate) mod execution;
pub(crate) mod generation;
pub(crate) mod kind;
pub(crate) mod prompts;
pub(crate) mod task;
