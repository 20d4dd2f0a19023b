//! Runs a command of the program to its end within bounds of time, memory and output, and checks that it ended in an orderly way.

use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use crate::attack::ensure;
use crate::process::{POLL_INTERVAL, binary};

/// How long any command may take. A loaded machine takes a few seconds; a program that hangs, forever.
pub const TIME: Duration = Duration::from_secs(45);

/// The most memory in use. A plain command uses less than 40 MiB.
pub const MEMORY_KIB: u64 = 400 * 1024;

/// The address space: a command that allocates without end is aborted, and does not take the machine with it.
const ADDRESS_SPACE_KIB: u64 = 6 * 1024 * 1024;

/// How long its output may stay open after its end.
const LEFT_OPEN: Duration = Duration::from_secs(10);

/// The most output on each stream.
const OUTPUT_BYTES: usize = 64 * 1024 * 1024;

/// The exit codes of the program (docs/sessions.md).
const CODES: [i32; 6] = [0, 1, 2, 3, 4, 130];

/// A command of the program with a limit of its memory, in a clean environment.
pub fn command(project: &Path, home: &Path, arguments: &[impl AsRef<std::ffi::OsStr>]) -> Command {
    launched(&format!("ulimit -v {ADDRESS_SPACE_KIB} 2>/dev/null; exec \"$@\""), project, home, arguments)
}

/// The program, started by this shell script as `"$@"`.
pub fn launched(script: &str, project: &Path, home: &Path, arguments: &[impl AsRef<std::ffi::OsStr>]) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script, "sh"]).arg(binary()).args(arguments).current_dir(project).env_clear();
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("TZ", "UTC");
    command.env("HOME", home).env("XDG_CONFIG_HOME", home.join("config"));
    command
}

pub struct Ended {
    pub arguments: String,
    pub code: Option<i32>,
    pub signal: Option<i32>,
    pub out: String,
    pub err: String,
    pub took: Duration,
    pub memory_kib: u64,
    timed_out: bool,
    /// A process that it started still holds its output.
    left_open: bool,
}

impl Ended {
    /// Checks that the command ended by itself, in time, within its memory, with a code of the program, and said why it failed.
    pub fn orderly(&self) -> Result<(), String> {
        let problem = |what: String| {
            let err: String = self.err.chars().take(2_000).collect();
            format!("{}: {what} after {:?}; standard error:\n{err}", self.arguments, self.took)
        };
        ensure(!self.timed_out, || problem("it does not end".into()))?;
        ensure(self.signal.is_none(), || problem(format!("it died of signal {:?}", self.signal)))?;
        ensure(!self.left_open, || problem("a process that it started is left".into()))?;
        let panicked = self.code == Some(101) || self.err.contains("panicked at");
        ensure(!panicked, || problem("it panicked".into()))?;
        ensure(self.code.is_some_and(|code| CODES.contains(&code)), || problem(format!("code {:?}", self.code)))?;
        ensure(self.memory_kib <= MEMORY_KIB, || problem(format!("{} MiB of memory", self.memory_kib / 1024)))?;
        let output = self.out.len().max(self.err.len());
        ensure(output < OUTPUT_BYTES, || problem("output without end".into()))?;
        let silent = self.code != Some(0) && self.err.trim().is_empty() && self.out.trim().is_empty();
        ensure(!silent, || problem(format!("code {:?} without a word", self.code)))
    }

    /// `0`, `1`, …: for the counts.
    pub fn outcome(&self) -> String {
        self.code.map_or_else(|| "no exit code".into(), |code| format!("code {code}"))
    }

    /// Both streams.
    pub fn all(&self) -> String {
        format!("{}{}", self.out, self.err)
    }
}

/// Reads a stream to its end, up to [`OUTPUT_BYTES`]; then it is closed.
fn collect(mut stream: impl Read + Send + 'static) -> Receiver<String> {
    let (send, text) = channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = stream.by_ref().take(OUTPUT_BYTES as u64).read_to_end(&mut bytes);
        let _ = send.send(String::from_utf8_lossy(&bytes).into_owned());
    });
    text
}

/// The most memory that the process has used so far; 0 where the system does not tell.
fn peak_memory(pid: u32) -> u64 {
    let status = std::fs::read_to_string(PathBuf::from(format!("/proc/{pid}/status"))).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// Waits for the end of the process and kills it when the time is over.
fn wait(child: &mut Child, time: Duration) -> (ExitStatus, u64, bool) {
    let deadline = Instant::now() + time;
    let mut memory = 0;
    loop {
        memory = memory.max(peak_memory(child.id()));
        if let Some(status) = child.try_wait().unwrap() {
            return (status, memory, false);
        }
        if Instant::now() > deadline {
            let _ = child.kill();
            return (child.wait().unwrap(), memory, true);
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Runs a command to its end with this standard input.
pub fn run(command: Command, input: &str) -> Ended {
    run_within(command, input, TIME)
}

pub fn run_within(mut command: Command, input: &str, time: Duration) -> Ended {
    // Without the shell script in front.
    let arguments: Vec<_> = command.get_args().skip(3).map(|word| word.to_string_lossy()).collect();
    let arguments = arguments.join(" ");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let began = Instant::now();
    let mut child = command.spawn().unwrap();
    let (mut stdin, input) = (child.stdin.take().unwrap(), input.to_owned());
    // A command that does not read its input ends all the same.
    std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let (out, err) = (collect(child.stdout.take().unwrap()), collect(child.stderr.take().unwrap()));
    let (status, memory_kib, timed_out) = wait(&mut child, time);
    let text = |text: Receiver<String>| text.recv_timeout(LEFT_OPEN).ok();
    let (out, err) = (text(out), text(err));
    Ended {
        arguments,
        code: status.code(),
        signal: status.signal(),
        left_open: out.is_none() || err.is_none(),
        out: out.unwrap_or_default(),
        err: err.unwrap_or_default(),
        took: began.elapsed(),
        memory_kib,
        timed_out,
    }
}
