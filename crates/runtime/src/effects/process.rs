//! Runs a program without a shell: its standard input is a file with the JSON, its output is read up to a limit, and it ends with all
//! processes that it started, on timeout, when the caller stops waiting, and when the program itself ends.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::collections::BTreeMap;
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::effects::descendants::{Descendants, MARK, OwnChild, new_mark, reap};
use crate::effects::output::{OutputObserver, OutputReader, OutputStream, ProcessOutput};

/// The time between SIGTERM and SIGKILL.
pub(crate) const TERM_TIMEOUT: Duration = Duration::from_secs(2);

/// How often ended orphans are looked for while a program runs.
const REAP_INTERVAL: Duration = Duration::from_secs(1);

/// How long the pipes are read after the program ended; a process that it left behind may hold them open.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(500);

#[derive(Clone)]
pub struct ProcessRequest<'a> {
    /// The program, as the author wrote it, and its arguments, which no shell interprets. A name without `/` is looked up in
    /// `PATH`; a relative path starts at `directory`.
    pub command: &'a [String],
    pub directory: &'a Path,
    /// The directory in which it runs.
    pub working_directory: &'a Path,
    /// Its standard input.
    pub input: &'a [u8],
    /// Its environment variables. It inherits none.
    pub variables: &'a BTreeMap<String, String>,
    pub timeout: Duration,
    /// Receives its output while it runs.
    pub observer: &'a dyn OutputObserver,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessEnd {
    Code(i32),
    /// Killed by this signal of another process.
    Signal(i32),
    TimedOut,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessResult {
    pub ended: ProcessEnd,
    pub stdout: ProcessOutput,
    pub stderr: ProcessOutput,
    /// The number of processes that still ran when the program had ended by itself. They were ended.
    pub left_processes: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct StartError {
    pub message: Message,
    pub help: Message,
}

/// Runs a program to its end. Dropping the future kills the program and all processes that it started. Processes that are still
/// running when the program ends are ended as well.
///
/// # Errors
/// The program cannot be started. A failure, a signal or a timeout is not an error: see [`ProcessResult::ended`].
pub async fn run(request: &ProcessRequest<'_>) -> Result<ProcessResult, StartError> {
    let mark = new_mark();
    let mut child = spawn(request, &mark)?;
    // From here on, dropping the guards kills the group and the other processes in any case.
    let pid = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    let _own = OwnChild::new(pid);
    let group = ProcessGroup(pid);
    let mut descendants = Descendants::new(&mark, pid);
    let mut stdout = OutputReader::new(OutputStream::Stdout, request.observer);
    let mut stderr = OutputReader::new(OutputStream::Stderr, request.observer);
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let ended = {
        let pipes = async { tokio::join!(stdout.read(out), stderr.read(err)) };
        let mut pipes = Pipes { work: Box::pin(async move { _ = pipes.await }), done: false };
        let ended = match pipes.run_while(timeout(request.timeout, wait(&mut child))).await {
            Ok(status) => status.map_or(ProcessEnd::Signal(0), process_end),
            Err(_) => {
                group.signal(Signal::TERM);
                descendants.signal(Signal::TERM);
                if pipes.run_while(timeout(TERM_TIMEOUT, child.wait())).await.is_err() {
                    group.signal(Signal::KILL);
                    descendants.kill();
                    let _ = pipes.run_while(child.wait()).await;
                }
                ProcessEnd::TimedOut
            }
        };
        descendants.root_ended();
        // What a pipeline still writes is a part of the output.
        pipes.drain().await;
        pipes.run_while(descendants.end(TERM_TIMEOUT)).await;
        pipes.drain().await;
        ended
    };
    drop(group);
    let left_processes = if ended == ProcessEnd::TimedOut { 0 } else { descendants.count() };
    Ok(ProcessResult { ended, stdout: stdout.finish(), stderr: stderr.finish(), left_processes })
}

/// Waits for the program. Meanwhile, adopted orphans that end do not remain as zombies.
async fn wait(child: &mut Child) -> std::io::Result<ExitStatus> {
    let waiting = child.wait();
    tokio::pin!(waiting);
    loop {
        match timeout(REAP_INTERVAL, &mut waiting).await {
            Ok(status) => return status,
            Err(_) => reap(),
        }
    }
}

fn spawn(request: &ProcessRequest<'_>, mark: &str) -> Result<Child, StartError> {
    let mut command = prepared(request.command, request.directory, request.working_directory)?;
    let input = input_file(request.input).map_err(|error| {
        let program = request.command.first().map_or("", String::as_str);
        start_error(
            msg!("the input of the program `{program}` cannot be written to a temporary file: {error}"),
            "make sure that the directory for temporary files (TMPDIR) can be written and has space left",
        )
    })?;
    command.stdin(Stdio::from(input)).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.env_clear().envs(request.variables).env(MARK, mark);
    start(&mut command, request.command)
}

fn start_error(message: Message, help: &'static str) -> StartError {
    StartError { message, help: Message::word(help) }
}

/// A command in a process group of its own. It inherits the environment until that is cleared.
pub(crate) fn prepared(words: &[String], directory: &Path, working_directory: &Path) -> Result<Command, StartError> {
    let Some((program, arguments)) = words.split_first() else {
        return Err(start_error(
            Message::word("there is no program to run"),
            "write the command as `[\"program\", \"argument\"]`",
        ));
    };
    // The meaning of a relative path would otherwise depend on the system.
    let path = if program.contains('/') { directory.join(program) } else { PathBuf::from(program) };
    let mut command = Command::new(path);
    command.args(arguments).current_dir(working_directory).process_group(0).kill_on_drop(true);
    Ok(command)
}

pub(crate) fn start(command: &mut Command, words: &[String]) -> Result<Child, StartError> {
    let program = words.first().map_or("", String::as_str);
    command.spawn().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => start_error(
            msg!("the program `{program}` was not found"),
            "install it, or correct its name; paths are relative to the project directory",
        ),
        std::io::ErrorKind::PermissionDenied => start_error(
            msg!("no permission to run the program `{program}`"),
            "make the file executable (`chmod +x`), or put the program that reads it first",
        ),
        std::io::ErrorKind::ArgumentListTooLong => start_error(
            msg!("the arguments of the program `{program}` are too long"),
            "give it long text on its standard input",
        ),
        _ => start_error(
            msg!("the program `{program}` cannot be started: {error}"),
            "a text file of commands needs a first line such as `#!/bin/sh`",
        ),
    })
}

/// A file without a name that contains `input`. Through a pipe, a program would get only a part of its input, or none, and would
/// take it for all of it, if this process died between the start and the last write.
fn input_file(input: &[u8]) -> std::io::Result<std::fs::File> {
    let mut file = tempfile::tempfile()?;
    file.write_all(input)?;
    file.seek(SeekFrom::Start(0))?;
    Ok(file)
}

fn process_end(status: ExitStatus) -> ProcessEnd {
    use std::os::unix::process::ExitStatusExt;
    status.code().map_or_else(|| ProcessEnd::Signal(status.signal().unwrap_or_default()), ProcessEnd::Code)
}

/// Reads the pipes while another future runs.
struct Pipes<'a> {
    work: Pin<Box<dyn Future<Output = ()> + Send + 'a>>,
    done: bool,
}

impl Pipes<'_> {
    async fn run_while<T>(&mut self, other: impl Future<Output = T>) -> T {
        tokio::pin!(other);
        loop {
            tokio::select! {
                ended = &mut other => return ended,
                () = &mut self.work, if !self.done => self.done = true,
            }
        }
    }

    async fn drain(&mut self) {
        if !self.done {
            self.done = timeout(DRAIN_TIMEOUT, &mut self.work).await.is_ok();
        }
    }
}

/// The process group of a program. Dropping it kills the group: a program that is no longer waited for, and processes that an
/// ended program left behind. The id stays in use while the group has members; if it has none, nothing is killed.
pub(crate) struct ProcessGroup(pub(crate) Option<Pid>);

impl ProcessGroup {
    pub(crate) fn signal(&self, signal: Signal) {
        if let Some(group) = self.0 {
            // The group may already be empty.
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

#[cfg(test)]
mod children_tests;
#[cfg(test)]
mod tests;
