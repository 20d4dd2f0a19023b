//! Graphs of scripts: building, folding, and writing them for Mermaid and Graphviz.

pub mod build;
pub mod dot;
pub mod drawing;
pub mod fold;
pub mod label;
pub mod mermaid;
pub mod references;
pub mod request;
pub mod route_edges;
pub mod runs;
pub mod script_graph;
pub mod visited;
