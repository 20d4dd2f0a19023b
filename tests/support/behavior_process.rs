//! The server of examples/behavior_server.rs as a process of its own. It ends with the value.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

pub(crate) struct Process {
    child: Child,
    pub(crate) url: String,
}

impl Process {
    /// Starts one on a free port and waits until it listens. The words are those at the head of the example.
    pub(crate) fn start(words: &[&str]) -> Self {
        // A test lies in `deps`, and examples beside that.
        let own = std::env::current_exe().unwrap();
        let binary = own.parent().unwrap().parent().unwrap().join("examples").join("behavior_server");
        assert!(binary.exists(), "build it first: cargo build --example behavior_server");
        let mut child =
            Command::new(binary).args(words).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("it starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.trim().strip_prefix("listening on ").unwrap_or_else(|| panic!("{words:?}: {line}")).to_owned();
        Self { child, url }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
