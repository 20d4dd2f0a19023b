//! The server of examples/behavior_server.rs as a child process, which is killed on drop.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

pub(crate) struct Process {
    child: Child,
    pub(crate) url: String,
}

impl Process {
    /// Starts a server on a free port and waits until it listens. The example documents the arguments.
    pub(crate) fn start(arguments: &[&str]) -> Self {
        // Test binaries are in `deps`, and examples in the folder next to it.
        let test_binary = std::env::current_exe().unwrap();
        let binary = test_binary.parent().unwrap().parent().unwrap().join("examples").join("behavior_server");
        assert!(binary.exists(), "build it first: cargo build --example behavior_server");
        let mut child = Command::new(binary)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url =
            line.trim().strip_prefix("listening on ").unwrap_or_else(|| panic!("{arguments:?}: {line}")).to_owned();
        Self { child, url }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
