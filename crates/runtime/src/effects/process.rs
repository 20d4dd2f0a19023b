//! Runs a program: a list of arguments and no shell, JSON on its standard input, what it prints read up to a bound, and its
//! whole process group ended when its time is over or nobody waits for it any more.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// The most that is kept of each of the standard output and the standard error, in bytes. The rest is read and dropped, so
/// that a program that prints on for ever is stopped by its time and not by a full pipe.
pub const MOST_OUTPUT_BYTES: usize = 1024 * 1024;

/// How long a program that was told to end (SIGTERM) may take for it, before it is killed.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long the pipes are read on after the program ended: what it left behind may hold them open for ever.
const LAST_WORDS: Duration = Duration::from_millis(500);

#[derive(Clone, Debug)]
pub struct ProcessRequest<'a> {
    /// The program and its arguments, as configured: nothing that a model, a server or a person said may stand in it. A name
    /// without `/` is looked for in `PATH`; a relative path begins at `directory`.
    pub command: &'a [String],
    pub directory: &'a Path,
    /// What it reads on its standard input, which is closed behind it.
    pub input: &'a [u8],
    /// The environment variables that it does not get: those that hold keys.
    pub hidden: &'a BTreeSet<String>,
    pub timeout: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessEnd {
    Code(i32),
    /// By this signal of somebody else.
    Signal(i32),
    TimedOut,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessOutput {
    /// The first [`MOST_OUTPUT_BYTES`] of it.
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
pub struct NotStarted {
    pub message: Message,
    pub help: Message,
}

/// Runs a program to its end. Dropping the future kills it, with all that it started in its process group; what it leaves
/// running there when it ends is ended as well.
///
/// # Errors
/// When it cannot be started. That it fails, is killed or takes too long is no error: see [`ProcessResult::ended`].
pub async fn run(run: &ProcessRequest<'_>) -> Result<ProcessResult, NotStarted> {
    let mut child = started(run)?;
    // Whatever happens from here on, the group ends with this guard.
    let group = Group(child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw));
    let (mut stdout, mut stderr) = (ProcessOutput::default(), ProcessOutput::default());
    let (input, out, err) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let ended = {
        let feed = async {
            if let Some(mut pipe) = input {
                // A program need not read what it is given.
                let _ = pipe.write_all(run.input).await;
            }
        };
        let pipes = async { tokio::join!(feed, keep(out, &mut stdout), keep(err, &mut stderr)) };
        let mut pipes = Pipes { work: Box::pin(async move { _ = pipes.await }), done: false };
        let ended = match pipes.beside(timeout(run.timeout, child.wait())).await {
            Ok(status) => status.map_or(ProcessEnd::Signal(0), ended),
            Err(_) => {
                group.signal(Signal::TERM);
                if pipes.beside(timeout(PATIENCE, child.wait())).await.is_err() {
                    group.signal(Signal::KILL);
                    let _ = pipes.beside(child.wait()).await;
                }
                ProcessEnd::TimedOut
            }
        };
        pipes.last_words().await;
        ended
    };
    drop(group);
    Ok(ProcessResult { ended, stdout, stderr })
}

fn started(run: &ProcessRequest<'_>) -> Result<Child, NotStarted> {
    let not_started = |message: Message, help: &'static str| NotStarted { message, help: Message::word(help) };
    let Some((program, arguments)) = run.command.split_first() else {
        return Err(not_started(
            Message::word("there is no program to run"),
            "write the command as `[\"program\", \"argument\"]`",
        ));
    };
    // What a relative path means would depend on the system, were it left to it.
    let path = if program.contains('/') { run.directory.join(program) } else { PathBuf::from(program) };
    let mut command = Command::new(path);
    command.args(arguments).current_dir(run.directory).process_group(0).kill_on_drop(true);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    run.hidden.iter().for_each(|name| _ = command.env_remove(name));
    command.spawn().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => not_started(
            msg!("the program `{program}` was not found"),
            "install it, or correct its name in bcc-script.toml; paths are relative to the project directory",
        ),
        std::io::ErrorKind::PermissionDenied => not_started(
            msg!("no permission to run the program `{program}`"),
            "make the file executable (`chmod +x`), or put the program that reads it first",
        ),
        _ => not_started(
            msg!("the program `{program}` cannot be started: {error}"),
            "a text file of commands needs a first line such as `#!/bin/sh`",
        ),
    })
}

fn ended(status: ExitStatus) -> ProcessEnd {
    use std::os::unix::process::ExitStatusExt;
    status.code().map_or_else(|| ProcessEnd::Signal(status.signal().unwrap_or_default()), ProcessEnd::Code)
}

async fn keep(pipe: Option<impl AsyncRead + Unpin>, printed: &mut ProcessOutput) {
    let Some(mut pipe) = pipe else { return };
    let mut chunk = vec![0; 16 * 1024];
    // A pipe that breaks has nothing more to say.
    while let Ok(read @ 1..) = pipe.read(&mut chunk).await {
        let room = MOST_OUTPUT_BYTES.saturating_sub(printed.bytes.len()).min(read);
        printed.bytes.extend(chunk.iter().take(room));
        printed.dropped += (read - room) as u64;
    }
}

/// The reading and writing of the pipes, which goes on while something else is waited for.
struct Pipes<'a> {
    work: Pin<Box<dyn Future<Output = ()> + Send + 'a>>,
    done: bool,
}

impl Pipes<'_> {
    async fn beside<T>(&mut self, other: impl Future<Output = T>) -> T {
        tokio::pin!(other);
        loop {
            tokio::select! {
                ended = &mut other => return ended,
                () = &mut self.work, if !self.done => self.done = true,
            }
        }
    }

    async fn last_words(&mut self) {
        if !self.done {
            let _ = timeout(LAST_WORDS, &mut self.work).await;
        }
    }
}

/// The process group of a program. It is killed when this is dropped: a program that nobody waits for, and whatever an ended
/// one left behind. The number stays taken as long as anything of the group is there; when nothing is, nothing is hit.
struct Group(Option<Pid>);

impl Group {
    fn signal(&self, signal: Signal) {
        if let Some(group) = self.0 {
            // Nobody may be left to hear it.
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
