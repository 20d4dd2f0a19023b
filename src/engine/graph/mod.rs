//! A script as a drawing: its nodes and the arrows between them, as mermaid and dot.
