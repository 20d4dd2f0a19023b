//! JSON-shaped values: what an author may declare them to be, how they compare, and where they live.

pub mod compare;
pub mod declared;
pub mod depth;
pub mod mask;
pub mod scopes;
