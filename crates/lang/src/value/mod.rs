//! JSON values: declared types, comparison rules, masking and scopes.

pub mod compare;
pub mod declared;
pub mod depth;
pub mod digits;
pub mod exact;
pub mod instant;
pub mod mask;
pub mod quoting;
pub mod scopes;
