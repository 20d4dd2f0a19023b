//! Runs a `command`, turn by turn: each attempt is an effect of its own, which is announced before it starts and closed after it.

use bcc_lang::message::ToMessage;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::actions::call_spans::traced_command;
use crate::actions::calling::set_outputs;
use crate::actions::command::config::{CommandAction, CommandLine};
use crate::actions::command::result::{metadata, values};
use crate::actions::failure::{failed, failed_flow};
use crate::actions::requirement::requirement_error;
use crate::effects::commands::CommandRequest;
use crate::effects::output::NoOutputObserver;
use crate::effects::permissions::of_program;
use crate::effects::process::{ProcessEnd, ProcessRequest, ProcessResult};
use crate::program::action::Action;
use crate::program::custom::COMMAND;
use crate::program::flow::{ActionError, EffectAnnouncement, Flow};
use crate::program::interrupted_effects::{Decision, decide, interrupted_error};
use crate::program::outcome::{ExitReason, Outcome};
use crate::program::turn::Turn;
use crate::program::turn_output::TurnOutput;
use bcc_lang::script::step_options::RetryCause;
use bcc_lang::template::text::Text;

/// The timeout of a command if its action sets none.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10 * 60);

/// The progress of the action.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Progress {
    /// The number of attempts that failed and are followed by another one.
    failed_attempts: u32,
}

/// A command with the values of its variables.
struct RenderedCommand {
    line: Vec<String>,
    folder: String,
    environment: Vec<(String, String)>,
    input: String,
}

#[async_trait]
impl Action for CommandAction {
    fn asks_model(&self) -> bool {
        false
    }

    async fn turn(&self, turn: &Turn<'_>) -> Result<Flow, ActionError> {
        turn.in_round(1);
        let progress: Progress = turn.state()?;
        if matches!(self.line, CommandLine::Simulated) {
            return self.simulate(turn);
        }
        if turn.effect.is_none()
            && let Some(failure) = self.prepare(turn, progress).await?
        {
            return Ok(failed_flow(turn, &failure));
        }
        match decide(turn, || self.announcement(turn)) {
            Decision::First(flow) => Ok(flow),
            Decision::Run => self.attempt(turn, progress).await,
            Decision::Skip => {
                let mut outcome = Outcome::done(ExitReason::ExitCriteriaMet);
                outcome.metadata.insert("skipped".into(), true.into());
                Ok(Flow::done(outcome))
            }
            Decision::Fail => {
                let failure = interrupted_error().to_message();
                Ok(failed_flow(turn, &failure))
            }
        }
    }
}

impl CommandAction {
    fn announcement(&self, turn: &Turn<'_>) -> EffectAnnouncement {
        let action = turn.place.action_id.as_deref().unwrap_or_default();
        let summary = match &self.line {
            CommandLine::Program(program, _) => msg!("`{action}`: runs {program}"),
            CommandLine::Shell(_) => msg!("`{action}`: runs a shell command"),
            CommandLine::Simulated => msg!("`{action}`: runs nothing"),
        };
        EffectAnnouncement { kind: COMMAND, summary }
    }

    /// Checks and waits for what must be true before an attempt is announced. Returns why the action fails instead.
    async fn prepare(&self, turn: &Turn<'_>, progress: Progress) -> Result<Option<Message>, ActionError> {
        if let Some(denied) = self.permission_error(turn) {
            return Ok(Some(denied));
        }
        if let (0, Some(requires)) = (progress.failed_attempts, &self.requires)
            && let Some(unmet) = requirement_error(turn, requires, &turn.names(1))
        {
            return Ok(Some(unmet));
        }
        // A text that cannot be rendered ends the action before anything is announced.
        if self.rendered(turn)?.contains_nul() {
            return Ok(Some(Message::word(
                "a value for the program contains the character NUL, which no argument can have",
            )));
        }
        if progress.failed_attempts > 0
            && let Some(policy) = &turn.options.retry
        {
            turn.services.host.commands.pause(policy.value.pause(progress.failed_attempts)).await;
        }
        Ok(None)
    }

    /// Why the program must not run. Also reports a warning on how to allow it.
    fn permission_error(&self, turn: &Turn<'_>) -> Option<Message> {
        if !turn.services.host.commands.needs_permission() {
            return None;
        }
        let error = turn.services.host.permissions.check(&of_program(self.line.program())).err()?;
        turn.warn("not-allowed", error.message.clone(), Some(error.help));
        Some(error.message)
    }

    fn rendered(&self, turn: &Turn<'_>) -> Result<RenderedCommand, ActionError> {
        let names = turn.names(1);
        let text = |text: &Text| turn.exact_text(text, &names);
        let line = match &self.line {
            CommandLine::Simulated => vec![],
            CommandLine::Shell(script) => vec![self.line.program().to_owned(), "-c".to_owned(), script.clone()],
            CommandLine::Program(program, arguments) => {
                let arguments = arguments.iter().map(text);
                std::iter::once(Ok(program.clone())).chain(arguments).collect::<Result<_, _>>()?
            }
        };
        let environment = self.environment.iter().map(|(name, value)| Ok((name.clone(), text(value)?)));
        Ok(RenderedCommand {
            line,
            folder: self.folder.as_ref().map(text).transpose()?.unwrap_or_default(),
            environment: environment.collect::<Result<_, ActionError>>()?,
            input: self.input.as_ref().map(text).transpose()?.unwrap_or_default(),
        })
    }

    /// Ends a command that names no program with its simulated result. Nothing happens outside the session.
    fn simulate(&self, turn: &Turn<'_>) -> Result<Flow, ActionError> {
        if let Some(requires) = &self.requires
            && let Some(unmet) = requirement_error(turn, requires, &turn.names(1))
        {
            return Ok(failed_flow(turn, &unmet));
        }
        let Some(result) = &self.simulated else {
            return Ok(failed_flow(turn, &Message::word("`simulate` has no result")));
        };
        let action = turn.place.action_id.as_deref().unwrap_or_default();
        let (reason, failure) = match result.ended {
            ProcessEnd::Code(code) if self.is_ok(code) => (ExitReason::ExitCriteriaMet, None),
            ProcessEnd::Code(code) => {
                (ExitReason::Failed, Some(msg!("the command of `{action}` ended with exit code {code}")))
            }
            ProcessEnd::Signal(signal) => {
                (ExitReason::Failed, Some(msg!("the command of `{action}` was terminated by signal {signal}")))
            }
            ProcessEnd::TimedOut => {
                (ExitReason::TimedOut, Some(msg!("the simulated command of `{action}` took too long")))
            }
        };
        let is_sensitive = self.outputs.iter().any(|(ours, _)| turn.is_sensitive(ours));
        let (mut metadata, texts) = metadata(result, is_sensitive, turn.masker);
        turn.work().texts.extend(texts);
        metadata.insert("simulated".into(), true.into());
        let outcome = match &failure {
            Some(failure) => failed(turn, reason, failure, metadata),
            None => {
                metadata.insert("success".into(), true.into());
                Outcome { metadata, ..Outcome::done(reason) }
            }
        };
        let extracted_variables = set_outputs(turn, &self.outputs, &values(result))?;
        Ok(Flow::done(Outcome { extracted_variables, ..outcome }))
    }

    /// Runs the program in the turn in which its effect is due, and closes the effect.
    async fn attempt(&self, turn: &Turn<'_>, progress: Progress) -> Result<Flow, ActionError> {
        if let Some(denied) = self.permission_error(turn) {
            turn.close_effect("no longer allowed; it was not run");
            return Ok(failed_flow(turn, &denied));
        }
        let rendered = self.rendered(turn)?;
        let host = &turn.services.host;
        let action = turn.place.action_id.as_deref().unwrap_or_default();
        let timeout = turn.options.timeout.as_ref().map_or(DEFAULT_TIMEOUT, |timeout| timeout.value);
        let mut variables: BTreeMap<String, String> = host.permissions.variables.common.clone();
        variables.extend(rendered.environment);
        let directory = host.permissions.directory.as_path();
        // What is stored nowhere is not shown either.
        let is_sensitive = self.outputs.iter().any(|(ours, _)| turn.is_sensitive(ours));
        let live = TurnOutput::of_command(turn);
        let process = ProcessRequest {
            command: &rendered.line,
            directory,
            working_directory: directory,
            input: rendered.input.as_bytes(),
            variables: &variables,
            timeout,
            observer: if is_sensitive { &NoOutputObserver } else { &live },
        };
        let request = CommandRequest { action, folder: &rendered.folder, simulated: self.simulated.as_ref(), process };
        let started = turn.services.clock.elapsed_ms();
        let ran = traced_command(turn, COMMAND, |code| self.is_ok(code), host.commands.run(&request));
        let result = match ran.await {
            Ok(result) => result,
            Err(error) => {
                turn.close_effect("it could not be started");
                let failure = msg!("the command of `{action}` could not be started: {error}");
                turn.warn("command-not-started", failure.clone(), Some(error.help));
                return Ok(failed_flow(turn, &failure));
            }
        };
        let ms = turn.services.clock.elapsed_ms().saturating_sub(started);
        let (reason, failure) = match result.ended {
            ProcessEnd::Code(code) if self.is_ok(code) => {
                turn.close_effect("it is done");
                (ExitReason::ExitCriteriaMet, None)
            }
            ProcessEnd::Code(code) => {
                turn.close_effect("it failed");
                (ExitReason::Failed, Some(msg!("the command of `{action}` ended with exit code {code}")))
            }
            ProcessEnd::Signal(signal) => {
                turn.close_effect("it failed");
                (ExitReason::Failed, Some(msg!("the command of `{action}` was terminated by signal {signal}")))
            }
            ProcessEnd::TimedOut => {
                turn.close_effect("it took too long and was stopped");
                let time = humantime::format_duration(timeout);
                (ExitReason::TimedOut, Some(msg!("the command of `{action}` took longer than {time} and was stopped")))
            }
        };
        if result.left_processes > 0 {
            let message = msg!(
                "the command of `{action}` left processes running, which were ended: {count}",
                count = result.left_processes
            );
            let help = "start programs that shall go on running with a service manager, such as `systemd-run --user`";
            turn.warn("processes-left", message, Some(help.into()));
        }
        if let Some(failure) = &failure
            && let Some(flow) = retry(turn, progress, &result, failure)?
        {
            return Ok(flow);
        }
        let (mut metadata, texts) = metadata(&result, is_sensitive, turn.masker);
        turn.work().texts.extend(texts);
        metadata.insert("duration_ms".into(), ms.into());
        metadata.insert("attempts".into(), (progress.failed_attempts + 1).into());
        let outcome = match &failure {
            Some(failure) => failed(turn, reason, failure, metadata),
            None => {
                metadata.insert("success".into(), true.into());
                Outcome { metadata, ..Outcome::done(reason) }
            }
        };
        let extracted_variables = set_outputs(turn, &self.outputs, &values(&result))?;
        Ok(Flow::done(Outcome { extracted_variables, ..outcome }))
    }

    fn is_ok(&self, code: i32) -> bool {
        self.ok_codes.iter().any(|ok| i32::from(*ok) == code)
    }
}

impl RenderedCommand {
    /// Whether the operating system cannot pass the values to a program.
    fn contains_nul(&self) -> bool {
        let variables = self.environment.iter().map(|(_, value)| value);
        self.line.iter().chain([&self.folder]).chain(variables).any(|text| text.contains('\0'))
    }
}

/// The next attempt, if the author wants one.
fn retry(
    turn: &Turn<'_>,
    progress: Progress,
    result: &ProcessResult,
    failure: &Message,
) -> Result<Option<Flow>, ActionError> {
    let Some(policy) = turn.options.retry.as_ref().map(|retry| &retry.value) else { return Ok(None) };
    let is_cause = |cause: &RetryCause| match (cause, result.ended) {
        (RetryCause::Failed, ProcessEnd::Code(_) | ProcessEnd::Signal(_))
        | (RetryCause::TimedOut, ProcessEnd::TimedOut) => true,
        (RetryCause::ExitCode(wanted), ProcessEnd::Code(code)) => i32::from(*wanted) == code,
        _ => false,
    };
    if progress.failed_attempts >= policy.times || !policy.on.iter().any(is_cause) {
        return Ok(None);
    }
    let failed_attempts = progress.failed_attempts + 1;
    let pause = humantime::format_duration(policy.pause(failed_attempts));
    let message = msg!("{failure}; it runs again in {pause} (attempt {} of {})", failed_attempts + 1, policy.times + 1);
    turn.warn("command-retried", message, None);
    turn.store_state(&Progress { failed_attempts })?;
    Ok(Some(Flow::Onward))
}
