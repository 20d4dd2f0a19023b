//! Runs a program without a shell: its standard input is a file with the JSON, its output is read up to a limit, and its process
//! group is killed on timeout or when the caller stops waiting.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::collections::BTreeMap;
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// The maximum stored size of the standard output and of the standard error, in bytes each. Further output is read and dropped,
/// so that a program that prints without end is stopped by its timeout and not by a full pipe.
pub(crate) const MAX_OUTPUT_BYTES: usize = 1024 * 1024;

/// The time between SIGTERM and SIGKILL.
const TERM_TIMEOUT: Duration = Duration::from_secs(2);

/// How long the pipes are read after the program ended; a process that it left behind may hold them open.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(500);

#[derive(Clone, Debug)]
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
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessEnd {
    Code(i32),
    /// Killed by this signal of another process.
    Signal(i32),
    TimedOut,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessOutput {
    /// The first `MAX_OUTPUT_BYTES` bytes.
    pub bytes: Vec<u8>,
    pub dropped: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessResult {
    pub ended: ProcessEnd,
    pub stdout: ProcessOutput,
    pub stderr: ProcessOutput,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct StartError {
    pub message: Message,
    pub help: Message,
}

/// Runs a program to its end. Dropping the future kills the program and its process group. Processes of the group that are
/// still running when the program ends are killed as well.
///
/// # Errors
/// The program cannot be started. A failure, a signal or a timeout is not an error: see [`ProcessResult::ended`].
pub async fn run(request: &ProcessRequest<'_>) -> Result<ProcessResult, StartError> {
    let mut child = spawn(request)?;
    // From here on, dropping the guard kills the group in any case.
    let group = Group(child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw));
    let (mut stdout, mut stderr) = (ProcessOutput::default(), ProcessOutput::default());
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let ended = {
        let pipes = async { tokio::join!(read_output(out, &mut stdout), read_output(err, &mut stderr)) };
        let mut pipes = Pipes { work: Box::pin(async move { _ = pipes.await }), done: false };
        let ended = match pipes.run_while(timeout(request.timeout, child.wait())).await {
            Ok(status) => status.map_or(ProcessEnd::Signal(0), process_end),
            Err(_) => {
                group.signal(Signal::TERM);
                if pipes.run_while(timeout(TERM_TIMEOUT, child.wait())).await.is_err() {
                    group.signal(Signal::KILL);
                    let _ = pipes.run_while(child.wait()).await;
                }
                ProcessEnd::TimedOut
            }
        };
        pipes.drain().await;
        ended
    };
    drop(group);
    Ok(ProcessResult { ended, stdout, stderr })
}

fn spawn(request: &ProcessRequest<'_>) -> Result<Child, StartError> {
    let start_error = |message: Message, help: &'static str| StartError { message, help: Message::word(help) };
    let Some((program, arguments)) = request.command.split_first() else {
        return Err(start_error(
            Message::word("there is no program to run"),
            "write the command as `[\"program\", \"argument\"]`",
        ));
    };
    // The meaning of a relative path would otherwise depend on the system.
    let path = if program.contains('/') { request.directory.join(program) } else { PathBuf::from(program) };
    let mut command = Command::new(path);
    command.args(arguments).current_dir(request.working_directory).process_group(0).kill_on_drop(true);
    let input = input_file(request.input).map_err(|error| {
        start_error(
            msg!("the input of the program `{program}` cannot be written to a temporary file: {error}"),
            "make sure that the directory for temporary files (TMPDIR) can be written and has space left",
        )
    })?;
    command.stdin(Stdio::from(input)).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.env_clear().envs(request.variables);
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

async fn read_output(pipe: Option<impl AsyncRead + Unpin>, printed: &mut ProcessOutput) {
    let Some(mut pipe) = pipe else { return };
    let mut chunk = vec![0; 16 * 1024];
    // A broken pipe counts as the end of the output.
    while let Ok(read @ 1..) = pipe.read(&mut chunk).await {
        let available = MAX_OUTPUT_BYTES.saturating_sub(printed.bytes.len()).min(read);
        printed.bytes.extend(chunk.iter().take(available));
        printed.dropped += (read - available) as u64;
    }
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
            let _ = timeout(DRAIN_TIMEOUT, &mut self.work).await;
        }
    }
}

/// The process group of a program. Dropping it kills the group: a program that is no longer waited for, and processes that an
/// ended program left behind. The id stays in use while the group has members; if it has none, nothing is killed.
struct Group(Option<Pid>);

impl Group {
    fn signal(&self, signal: Signal) {
        if let Some(group) = self.0 {
            // The group may already be empty.
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

#[cfg(test)]
mod tests;
