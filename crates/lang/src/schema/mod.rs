//! JSON Schema: compiled once, its errors as data; and the schemas that are compiled into the binary.

pub mod assemble;
pub mod compiled;
pub mod embedded;
pub mod legacy_names;
pub mod parts;
