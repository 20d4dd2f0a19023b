//! Calls of tools (docs/tools.md). [`call`] makes one under the rules of the script, turn by turn: [`checks`] decide whether it may be
//! made, [`requests`] ask people, [`result`] is what it gave, and [`report`] writes that into the journal. `progress` passes on how far it is. [`tool`] is the kind for
//! authors, whose arguments [`arguments`] reads.

pub mod arguments;
pub mod call;
pub mod checks;
pub(crate) mod progress;
pub mod report;
pub mod requests;
pub mod result;
pub(crate) mod span;
pub mod tool;
