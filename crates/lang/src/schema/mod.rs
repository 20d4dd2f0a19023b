//! JSON Schema: validation with errors as data, and the schemas that are embedded in the binary.

pub mod assemble;
pub mod compiled;
pub(crate) mod cost;
pub mod embedded;
pub mod legacy_names;
pub mod parts;
