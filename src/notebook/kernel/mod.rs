//! The kernel that runs the code of a notebook.

pub mod contract;
