//! A program that runs for as long as it is needed, and is spoken to through its standard input and output. It ends with all processes
//! that it started.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, waitid};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout};
use tokio::time::timeout;

use crate::effects::descendants::{Descendants, MARK, OwnChild, new_mark};
use crate::effects::process::{ProcessGroup, StartError, TERM_TIMEOUT, prepared, start};

/// How long a program may take to end by itself after its standard input was closed.
const END_TIMEOUT: Duration = Duration::from_millis(500);

pub struct ServerCommand<'a> {
    /// The program and its arguments, which no shell interprets. A name without `/` is looked up in `PATH`; a relative path starts at
    /// `directory`.
    pub command: &'a [String],
    pub directory: &'a Path,
    /// The directory in which it runs.
    pub working_directory: &'a Path,
    /// Its environment variables. It inherits none.
    pub variables: &'a BTreeMap<String, String>,
}

/// A program that runs. Dropping it kills it and all processes that it started.
pub struct ServerProcess {
    child: Child,
    group: ProcessGroup,
    descendants: Descendants,
    _own: Option<OwnChild>,
}

/// Tells whether a program has ended, without waiting for it or for the tasks that do.
#[derive(Clone, Copy)]
pub struct ProgramProbe(Option<Pid>);

impl ProgramProbe {
    pub fn has_ended(self) -> bool {
        let Some(pid) = self.0 else { return false };
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        // One that somebody has waited for is no child any more.
        waitid(WaitId::Pid(pid), options).map_or_else(|error| error == Errno::CHILD, |status| status.is_some())
    }
}

/// The pipes of a program.
pub struct ServerPipes {
    pub input: ChildStdin,
    pub output: ChildStdout,
    pub errors: ChildStderr,
}

impl ServerProcess {
    /// Starts a program. Needs the runtime of tokio.
    ///
    /// # Errors
    /// The program cannot be started.
    pub fn start(request: &ServerCommand<'_>) -> Result<(Self, ServerPipes), StartError> {
        let mark = new_mark();
        let mut command = prepared(request.command, request.directory, request.working_directory)?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.env_clear().envs(request.variables).env(MARK, &mark);
        let mut child = start(&mut command, request.command)?;
        let pid = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let process = Self {
            child,
            group: ProcessGroup(pid),
            descendants: Descendants::new(&mark, pid),
            _own: OwnChild::new(pid),
        };
        match pipes {
            (Some(input), Some(output), Some(errors)) => Ok((process, ServerPipes { input, output, errors })),
            // All three were requested.
            _ => Err(StartError { message: msg!("the program has no pipes"), help: Message::default() }),
        }
    }

    pub fn probe(&self) -> ProgramProbe {
        ProgramProbe(self.group.0)
    }

    /// Waits until it ends by itself.
    ///
    /// # Errors
    /// The system does not say how it ended.
    pub async fn wait(&mut self) -> std::io::Result<ExitStatus> {
        self.child.wait().await
    }

    /// Ends it and all processes that it started, after its standard input was closed: it may end by itself, then gets SIGTERM, then
    /// SIGKILL.
    pub async fn stop(mut self) {
        if timeout(END_TIMEOUT, self.child.wait()).await.is_err() {
            self.group.signal(Signal::TERM);
            self.descendants.signal(Signal::TERM);
            if timeout(TERM_TIMEOUT, self.child.wait()).await.is_err() {
                self.group.signal(Signal::KILL);
                self.descendants.kill();
                let _ = self.child.wait().await;
            }
        }
        self.descendants.root_ended();
        self.descendants.end(TERM_TIMEOUT).await;
    }
}
