//! The program of a server: started with pipes, watched, and ended with all processes that it started.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use bcc_runtime::effects::server_process::{ProgramProbe, ServerCommand, ServerPipes, ServerProcess};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

/// A program that runs. When this is dropped, it is ended by its task.
pub(crate) struct WatchedProgram {
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
    /// How it ended by itself.
    pub(crate) ended: watch::Receiver<Option<Message>>,
    pub(crate) probe: ProgramProbe,
}

impl WatchedProgram {
    pub(crate) fn start(request: &ServerCommand<'_>) -> Result<(Self, ServerPipes), Message> {
        let (mut process, pipes) =
            ServerProcess::start(request).map_err(|error| msg!("{}; {}", error.message, error.help))?;
        let probe = process.probe();
        let (stop, stopped) = oneshot::channel();
        let (end, ended) = watch::channel(None);
        let task = tokio::spawn(async move {
            tokio::select! {
                status = process.wait() => {
                    let _ = end.send(Some(status.map_or_else(|_| "the program ended".into(), end_message)));
                }
                _ = stopped => {}
            }
            // Processes that it leaves behind would keep the pipes open.
            process.stop().await;
        });
        Ok((Self { stop, task, ended, probe }, pipes))
    }

    /// Ends it, and waits until it and its processes have ended. Its standard input must have been closed.
    pub(crate) async fn stop(self) {
        let _ = self.stop.send(());
        let _ = self.task.await;
    }
}

fn end_message(status: ExitStatus) -> Message {
    match (status.code(), status.signal()) {
        (Some(code), _) => msg!("the program ended with exit code {code}"),
        (None, Some(signal)) => msg!("the program was ended by signal {signal}"),
        (None, None) => "the program ended".into(),
    }
}
