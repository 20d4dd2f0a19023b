//! Calls of tools (docs/tools.md). [`call`] makes one under the rules of the script, [`result`] is what it gave.

pub mod call;
pub mod result;
