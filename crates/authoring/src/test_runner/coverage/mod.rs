//! Coverage: which parts of a script, and of the skills that it uses, ran in its tests (docs/coverage.md).
//!
//! A [`bcc_runtime::program::program::Program`] and the journals of its sessions become a [`coverage::Coverage`], which
//! is written as a table, as JSON or as an HTML page.

pub mod count;
pub mod coverage;
pub mod html;
pub mod item;
pub mod json;
pub mod outline;
pub mod places;
pub mod table;
#[cfg(test)]
mod tests;
pub mod trail;
