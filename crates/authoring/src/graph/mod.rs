//! Drawings of scripts: what there is to draw, what of it is folded, and how it is written for Mermaid and for Graphviz.

pub mod build;
pub mod dot;
pub mod drawing;
pub mod fold;
pub mod label;
pub mod mermaid;
pub mod references;
pub mod request;
pub mod routes;
pub mod runs;
pub mod script_graph;
