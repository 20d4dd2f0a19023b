//! The tool `graph_rag`: triples in files of a project, in the order in which they are processed: `records` reads a file and
//! `columns` its fields, `chunks` divides it, `builder` indexes each part as a `segment`, `encoding` and `catalog` store
//! them, [`index`] keeps them up to date; `tokens` and [`search`] find triples, `spread` follows them, [`answer`] shows them, and
//! [`tool`] takes a call.

pub mod answer;
pub(crate) mod builder;
pub(crate) mod catalog;
pub(crate) mod chunks;
pub(crate) mod columns;
pub(crate) mod encoding;
pub mod index;
pub(crate) mod problem;
pub(crate) mod records;
pub mod search;
pub(crate) mod segment;
pub(crate) mod spread;
pub(crate) mod tokens;
pub mod tool;
