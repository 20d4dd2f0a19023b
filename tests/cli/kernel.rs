//! Tests with a real Jupyter kernel: its outputs, its effects on itself and on the program, and its cleanup. Without a kernel,
//! these tests print a note and pass (CONTRIBUTING.md, "A kernel for the tests").

mod analysis;
mod attached;
mod bench;
mod charts;
mod death;
mod found_before;
mod given_notebooks;
mod interrupted;
mod late;
mod live;
mod missing_memory;
mod of_others;
mod on_server;
mod other_languages;
mod outputs;
mod pictures;
mod replayed;
mod review;
mod session;
mod time;
mod variables;
