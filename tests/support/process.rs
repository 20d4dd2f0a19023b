//! Runs the program as a child process in a temporary directory with a clean environment.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// The maximum time without output before a test fails. Only a broken program comes near it.
pub const TIMEOUT: Duration = Duration::from_secs(60);

/// The interval for polling a state that cannot be waited for.
pub const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// A file of `tests/fixtures/sessions/`.
pub fn fixture(name: &str) -> PathBuf {
    Path::new(crate::ROOT).join("tests/fixtures/sessions").join(name)
}

/// A temporary directory for the sessions of one test, without configuration.
pub struct Home {
    directory: TempDir,
}

/// The program under test: the one that is built with the tests, or the one that `BCC_CAMPAIGN_BINARY` names.
pub fn binary() -> PathBuf {
    std::env::var_os("BCC_CAMPAIGN_BINARY").map_or_else(|| env!("CARGO_BIN_EXE_bcc-script").into(), PathBuf::from)
}

/// Copies a program to `to`, where every user may run it.
///
/// Another process does it: a file that this process has open for writing cannot be executed as long as a child that a
/// different test is just starting has inherited it ("text file busy").
pub fn install(program: &Path, to: &Path) {
    assert!(Command::new("install").args(["-m", "755"]).arg(program).arg(to).status().unwrap().success());
}

/// Writes a program with this text, as [`install`] does.
pub fn install_text(to: &Path, text: &str) {
    let written = to.with_extension("written");
    std::fs::write(&written, text).unwrap();
    install(&written, to);
    std::fs::remove_file(written).unwrap();
}

#[derive(Debug)]
pub struct Finished {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Home {
    pub fn new() -> Self {
        Self::of(tempfile::tempdir().unwrap())
    }

    /// A new directory in `parent`, which remains when the test ends.
    pub fn kept_in(parent: &Path) -> Self {
        let mut directory = tempfile::tempdir_in(parent).unwrap();
        directory.disable_cleanup(true);
        Self::of(directory)
    }

    fn of(directory: TempDir) -> Self {
        std::fs::create_dir(directory.path().join("config")).unwrap();
        // The project root is here, whatever is above the directory for temporary files.
        std::fs::create_dir(directory.path().join(".bcc")).unwrap();
        Self { directory }
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    pub fn store(&self) -> PathBuf {
        self.path().join(".bcc/sessions.db")
    }

    pub fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Writes a file, creates its folder, and returns its path.
    pub fn put(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Copies a script of `tests/fixtures/sessions/` here, so that this directory is its project.
    pub fn script(&self, name: &str) -> PathBuf {
        self.file(name, &std::fs::read_to_string(fixture(name)).unwrap())
    }

    /// The environment of every process of this test: only `PATH` comes from the machine.
    pub fn variables(&self) -> Vec<(String, String)> {
        let home = self.path().display().to_string();
        let path = std::env::var("PATH").unwrap_or_default();
        [("PATH", path), ("HOME", home.clone()), ("XDG_CONFIG_HOME", format!("{home}/config")), ("TZ", "UTC".into())]
            .map(|(name, value)| (name.to_owned(), value))
            .to_vec()
    }

    /// The program with these arguments, not yet started.
    pub fn command(&self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
        let mut command = Command::new(binary());
        command.args(arguments).env_clear().envs(self.variables()).current_dir(self.path());
        command
    }

    pub fn start(&self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Running {
        Running::start(self.command(arguments))
    }

    /// Runs the program to its end with this standard input.
    pub fn finish(&self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>, input: impl AsRef<[u8]>) -> Finished {
        let mut running = self.start(arguments);
        running.feed(input.as_ref().to_vec());
        running.finish()
    }

    /// `sessions export`, with prompts and raw replies.
    pub fn export(&self, id: &str) -> Value {
        let finished = self.finish(["sessions", "export", id, "--calls"], "");
        assert_eq!(finished.code, Some(0), "{}", finished.err);
        serde_json::from_str(&finished.out).unwrap()
    }
}

impl Finished {
    pub fn events(&self) -> Vec<Value> {
        self.out.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON: {line}"))).collect()
    }
}

pub enum Next {
    Line(String),
    /// The deadline passed.
    TimedOut,
    /// The process closed its output.
    End,
}

pub struct Running {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    errors: Option<JoinHandle<String>>,
}

impl Running {
    pub fn start(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let input = child.stdin.take();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut errors = child.stderr.take().unwrap();
        // What the test does not read stays in the pipe, so that a process can be made to wait for its reader.
        let (send, lines) = sync_channel(1);
        std::thread::spawn(move || {
            let mut line = Vec::new();
            while output.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
                let complete = line.pop() == Some(b'\n');
                // The incomplete last line of a killed process is dropped.
                if !complete || send.send(String::from_utf8(std::mem::take(&mut line)).unwrap()).is_err() {
                    return;
                }
            }
        });
        let errors = std::thread::spawn(move || {
            let mut text = Vec::new();
            let _ = errors.read_to_end(&mut text);
            String::from_utf8_lossy(&text).into_owned()
        });
        Self { child, input, lines, errors: Some(errors) }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The next line of standard output, up to `deadline`.
    pub fn line_until(&self, deadline: Instant) -> Next {
        match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(line) => Next::Line(line),
            Err(RecvTimeoutError::Timeout) => Next::TimedOut,
            Err(RecvTimeoutError::Disconnected) => Next::End,
        }
    }

    pub fn event(&self) -> Option<Value> {
        match self.line_until(Instant::now() + TIMEOUT) {
            Next::Line(line) => Some(serde_json::from_str(&line).unwrap_or_else(|_| panic!("no JSON: {line}"))),
            Next::End => None,
            Next::TimedOut => panic!("the program says nothing"),
        }
    }

    /// Reads events up to the first of this type.
    pub fn event_of(&self, kind: &str) -> Value {
        loop {
            let event = self.event().unwrap_or_else(|| panic!("there is no `{kind}`"));
            if event["type"] == kind {
                return event;
            }
        }
    }

    /// Sends a line; returns whether the process could receive it.
    pub fn send(&mut self, line: &str) -> bool {
        self.input.as_mut().is_some_and(|input| input.write_all(format!("{line}\n").as_bytes()).is_ok())
    }

    /// Sends all bytes and closes the input, even if the process reads slowly.
    pub fn feed(&mut self, bytes: Vec<u8>) {
        if let Some(mut input) = self.input.take() {
            std::thread::spawn(move || input.write_all(&bytes));
        }
    }

    pub fn end_input(&mut self) {
        self.input = None;
    }

    /// Sends SIGKILL. Returns the lines that the process had written and the test had not read.
    pub fn kill(&mut self) -> Vec<String> {
        let _ = self.child.kill();
        self.child.wait().unwrap();
        self.lines.iter().collect()
    }

    /// Waits for the end, without sending more input.
    pub fn finish(mut self) -> Finished {
        self.input = None;
        let out: Vec<String> = self.remaining_lines();
        let status = wait(&mut self.child);
        let err = self.errors.take().map(|errors| errors.join().unwrap()).unwrap_or_default();
        Finished { code: status.code(), out: out.iter().map(|line| format!("{line}\n")).collect(), err }
    }

    fn remaining_lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        loop {
            match self.line_until(Instant::now() + TIMEOUT) {
                Next::Line(line) => lines.push(line),
                Next::End => return lines,
                Next::TimedOut => panic!("the program does not end"),
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs `command` to its end with this standard input.
pub fn finished(command: Command, input: &str) -> Finished {
    let mut running = Running::start(command);
    running.feed(input.as_bytes().to_vec());
    running.finish()
}

/// Waits for the end of a process; panics after [`TIMEOUT`].
pub fn wait(child: &mut Child) -> ExitStatus {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if Instant::now() > deadline {
            let _ = child.kill();
            panic!("the program does not end");
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}
