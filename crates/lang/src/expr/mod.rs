//! Conditions and guards: the syntax of minijinja with our own evaluation rules (docs/language.md "Texts").

pub(crate) mod bindings;
pub mod eval;
pub(crate) mod failure;
pub mod fields;
pub mod hints;
pub mod inside;
pub mod methods;
pub mod operators;
pub mod parse;
pub mod reach;
pub mod signs;
pub mod tree;
pub mod truth;
