//! Drawings of scripts: what there is to draw, what of it is folded, and how it is written for Mermaid and for Graphviz.

pub mod choose;
pub mod dot;
pub mod drawing;
pub mod fold;
pub mod gather;
pub mod label;
pub mod mermaid;
pub mod parts;
pub mod refer;
pub mod routes;
pub mod runs;
