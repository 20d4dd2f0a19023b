//! What runs the programs of actions of the type `command`: the host, or in conversation tests something that only has results.

use std::time::Duration;

use async_trait::async_trait;
use bcc_lang::message::message::Message;

use crate::effects::output::ProcessOutput;
use crate::effects::process::{ProcessEnd, ProcessRequest, ProcessResult, StartError};
use bcc_lang::script::test::effects::WrittenResult;

/// A program that is about to run.
#[derive(Clone)]
pub struct CommandRequest<'a> {
    /// The id of the action.
    pub action: &'a str,
    /// The folder in which it runs, relative to the project, as the author wrote it.
    pub folder: &'a str,
    /// The result that the author wrote for conversation tests.
    pub simulated: Option<&'a ProcessResult>,
    /// The process; its working directory is that of the project.
    pub process: ProcessRequest<'a>,
}

#[async_trait]
pub trait Commands: Send + Sync {
    /// Whether `allow` of bcc-script.toml must permit the programs.
    fn needs_permission(&self) -> bool {
        true
    }

    /// Runs the program to its end. Errors: it cannot be started, or its folder is not one of the project.
    async fn run(&self, request: &CommandRequest<'_>) -> Result<ProcessResult, StartError>;

    /// Waits between two attempts.
    async fn pause(&self, time: Duration);
}

/// The result of a program that does not run.
pub fn process_result(written: &WrittenResult) -> ProcessResult {
    let output = |text: &str| ProcessOutput { bytes: text.as_bytes().to_vec(), ..ProcessOutput::default() };
    ProcessResult {
        ended: written.exit_code.map_or(ProcessEnd::TimedOut, |code| ProcessEnd::Code(code.into())),
        stdout: output(&written.stdout),
        stderr: output(&written.stderr),
        left_processes: 0,
    }
}

/// Runs nothing.
pub(crate) struct NoCommands;

#[async_trait]
impl Commands for NoCommands {
    async fn run(&self, _: &CommandRequest<'_>) -> Result<ProcessResult, StartError> {
        Err(StartError {
            message: Message::word("no program can be run here"),
            help: Message::word("run the script in its project"),
        })
    }

    async fn pause(&self, _: Duration) {}
}
