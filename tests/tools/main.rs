//! Tests of the tools of a project, as its configuration names them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![allow(clippy::print_stderr, clippy::print_stdout, unreachable_pub)]

mod graph_rag;
mod search_server;
mod tool_project;
mod web_search;
