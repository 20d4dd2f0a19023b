//! A real Jupyter kernel: what code puts out, what it may do to itself and to us, and what is left of it afterwards. Where there
//! is no kernel, these tests say so and pass (CONTRIBUTING.md, "A kernel for the tests").

mod bench;
mod death;
mod late;
mod outputs;
mod session;
mod time;
mod variables;
