//! A real analysis of 20,000 orders, as a script and as a behavior loop: with a progress bar, an error that a model fixes, an interrupt
//! and a kill. What it finds is computed here once more, and its notebook is judged by nbformat, nbconvert and JupyterLab.

mod behavior_loop;
mod jupyterlab;
mod notebook;
mod orders;
mod script;

use std::path::{Path, PathBuf};
use std::time::Instant;

use rustix::process::Signal;
use serde_json::Value;

use crate::kernel::analysis::orders::{Findings, csv, orders};
use crate::kernel::bench::is_running;
use crate::process::{Home, POLL_INTERVAL, TIMEOUT};
use crate::pseudo_terminal::{CTRL_C, Terminal};
use crate::server::{Server, ServerBehavior};
use crate::test_kernel::{kernel_variables, python_with};

/// What the analysis and its judges import.
const MODULES: [&str; 5] = ["pandas", "matplotlib", "nbformat", "nbconvert", "jupyterlab"];

/// A project with the orders, a script and a model that gives these replies, one after the other.
struct Analysis {
    home: Home,
    python: PathBuf,
    model: Server,
    findings: Findings,
}

fn fixture(name: &str) -> PathBuf {
    Path::new(crate::ROOT).join("tests/fixtures/analysis").join(name)
}

fn written_replies(name: &str) -> Vec<ServerBehavior> {
    let replies: Vec<Value> = serde_yaml::from_str(&std::fs::read_to_string(fixture(name)).unwrap()).unwrap();
    replies.iter().map(|reply| ServerBehavior::Answers(reply.to_string())).collect()
}

impl Analysis {
    /// `None` where no Python with the modules is installed.
    fn new(script: &str, replies: &str) -> Option<Self> {
        let python = python_with(&MODULES)?;
        let home = Home::new();
        let model = Server::start(written_replies(replies));
        let models =
            format!("[models.default]\nprovider = \"openai\"\nbase_url = \"{}\"\nmodel = \"m\"\n", model.base_url);
        home.file("bcc-script.toml", &format!("[project]\nscheme = \"english\"\nallow = [\"exec\"]\n\n{models}"));
        home.file("script.yaml", &std::fs::read_to_string(fixture(script)).unwrap());
        let orders = orders();
        home.file("orders.csv", &csv(&orders));
        Some(Self { home, python, model, findings: Findings::of(&orders) })
    }

    fn terminal(&self, arguments: &[&str]) -> Terminal {
        let mut variables = vec![("TERM", "xterm".to_owned()), ("NO_COLOR", "1".to_owned())];
        variables.extend(kernel_variables(&self.python));
        // The cache of fonts, which takes seconds to build, is that of all tests.
        variables.push(("MPLCONFIGDIR", std::env::temp_dir().join("bcc-script-matplotlib").display().to_string()));
        Terminal::start_with(&self.home, arguments, &variables)
    }

    /// Runs the script: a person interrupts the samples and goes on without the rest, and the process is killed while it computes the
    /// months. Returns what the terminal showed.
    fn run_until_killed(&self) -> String {
        let mut terminal = self.terminal(&["run", "script.yaml", "--session", "s", "--trust"]);
        terminal.until("300 samples");
        terminal.types(CTRL_C);
        terminal.until("the code is being interrupted");
        terminal.answers("skip");
        terminal.until("  the year");
        let kernel = std::fs::read_to_string(self.home.path().join("kernel.pid")).unwrap();
        assert!(is_running(&kernel));
        terminal.signal(Signal::KILL);
        let deadline = Instant::now() + TIMEOUT;
        while is_running(&kernel) {
            assert!(Instant::now() < deadline, "the kernel of a killed process does not end");
            std::thread::sleep(POLL_INTERVAL);
        }
        terminal.all_output()
    }

    /// Resumes the session: the person lets the months run again. Returns what the terminal showed.
    fn resume(&self) -> String {
        let before = self.ran();
        self.home.file("go", "");
        let mut terminal = self.terminal(&["sessions", "resume", "s", "--trust"]);
        terminal.prompt();
        assert_eq!(self.ran(), before, "nothing runs before the person says so");
        terminal.types("again\r");
        assert_eq!(terminal.end(), Some(0), "{}", terminal.all_output());
        terminal.all_output()
    }

    /// The cells that ran, in order: each notes it itself.
    fn ran(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.home.path().join("ran.txt")).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    /// The prompt of the request with this number.
    fn prompt(&self, number: usize) -> String {
        let body: Value = serde_json::from_str(&self.model.requests()[number].body).unwrap();
        let messages = body["messages"].as_array().unwrap();
        messages.iter().map(|message| message["content"].as_str().unwrap()).collect::<Vec<_>>().join("\n")
    }
}
