//! Runs an action kind of the project, turn by turn: for actions in YAML and for those of a model or a server.

use bcc_lang::message::ToMessage;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use bcc_lang::message::stored;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::actions::call_spans::traced_command;
use crate::actions::calling::failure_of;
use crate::effects::output::{NoOutputObserver, ProcessOutput};
use crate::effects::process::{ProcessEnd, ProcessRequest, run};
use crate::program::custom::{COMMAND, CustomBody, CustomKind, DEFAULT_TIMEOUT};
use crate::program::flow::{ActionError, Call, EffectAnnouncement, Flow};
use crate::program::interrupted_effects::{Decision, decide, interrupted_error};
use crate::program::outcome::{ExitReason, Outcome};
use crate::program::turn::{Turn, fitting};
use bcc_lang::value::exact::{ExactValue, ExactValues};
use bcc_lang::value::scopes::{Scope, ScopeLayer};

/// The maximum size of the stored output of a command, in bytes: it becomes part of the session.
pub(crate) const MAX_RESULT_BYTES: usize = 256 * 1024;

/// The length of the end of the standard error that is logged (`--log debug`), in bytes.
const MAX_LOGGED_BYTES: usize = 2_000;

/// The progress of the action, which the caller stores in its frame.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// The number of its parts (`before`, the action itself, `after`) that are done.
    pub parts: u8,
    /// Whether the skill of the next part was called.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    called: bool,
    /// The result of the action itself, once it is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    result: Option<ExactValues>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    /// Whether the author or a person decided to skip its interrupted command.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    skipped: bool,
    /// Whether the author or a person decided that it fails because its command was interrupted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub given_up: bool,
    /// The first error.
    #[serde(default, with = "stored::option", skip_serializing_if = "Option::is_none")]
    failure: Option<Message>,
}

/// The result of a turn.
#[derive(Clone, Debug, PartialEq)]
pub enum CustomOutcome {
    /// Run this flow first, then call [`advance`] again with the stored progress and inputs.
    Continue(Flow),
    /// It is done. `extracted_variables` are its result: the outputs of its skill, or the JSON object that its command printed
    /// (any other output is the text `stdout`). If it failed, `exit_reason` is `failed`, and `metadata` holds `success`,
    /// `error` and `action_id`.
    Done(Box<Outcome>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Before,
    Main,
    After,
}

impl Part {
    /// The word for it in messages: "the command of `tidy`".
    const fn word(self) -> &'static str {
        match self {
            Self::Before => "before",
            Self::Main => "of",
            Self::After => "after",
        }
    }

    /// Its number in a [`Call`].
    const fn number(self) -> u32 {
        match self {
            Self::Main => 1,
            Self::Before => 2,
            Self::After => 3,
        }
    }
}

/// Continues the action: its parts run one after the other, each skill and each command in its own turns. Invalid inputs,
/// denied permissions and failures are not errors: the kind fails ([`CustomOutcome::Done`]) after its `after` hook.
pub async fn advance(
    turn: &Turn<'_>,
    kind: &CustomKind,
    inputs: &ExactValues,
    progress: &mut Progress,
) -> Result<CustomOutcome, ActionError> {
    let mut entered = turn.entered;
    while let Some((part, body)) = progress.next(kind) {
        match body {
            CustomBody::Skill(skill) => match entered.take().filter(|_| progress.called) {
                Some(outcome) => match failure_of(skill, outcome) {
                    Some(failure) => progress.failed(failure),
                    None => progress.done(part, outcome.extracted_variables.clone()),
                },
                None => match call(turn, skill, progress.inputs_of(part, kind, inputs, true), part) {
                    Ok(call) => {
                        progress.called = true;
                        return Ok(CustomOutcome::Continue(Flow::Call(call)));
                    }
                    Err(failure) => progress.failed(failure),
                },
            },
            CustomBody::Command(command) => {
                if turn.effect.is_none()
                    && let Some(error) = permission_error(turn)
                {
                    progress.failed(error);
                    continue;
                }
                let summary = msg!("`{}`: runs {}", kind.name, command.first().map_or("", String::as_str));
                match decide(turn, || EffectAnnouncement { kind: COMMAND, summary }) {
                    Decision::First(flow) => return Ok(CustomOutcome::Continue(flow)),
                    Decision::Run => run_command(turn, kind, (part, command), inputs, progress).await,
                    Decision::Skip => {
                        progress.skipped |= part == Part::Main;
                        progress.done(part, ExactValues::new());
                    }
                    Decision::Fail => {
                        progress.given_up = true;
                        progress.failed(interrupted_error().to_message());
                    }
                }
                // A finished command is committed before the next part starts.
                if progress.next(kind).is_some() {
                    return Ok(CustomOutcome::Continue(Flow::Onward));
                }
            }
        }
    }
    Ok(CustomOutcome::Done(Box::new(progress.outcome(turn))))
}

impl Progress {
    /// The next part to run.
    fn next<'k>(&mut self, kind: &'k CustomKind) -> Option<(Part, &'k CustomBody)> {
        loop {
            let (part, body) = match self.parts {
                0 => (Part::Before, kind.before.as_ref()),
                1 => (Part::Main, Some(&kind.body).filter(|_| self.failure.is_none())),
                2 => (Part::After, kind.after.as_ref()),
                _ => return None,
            };
            if let Some(body) = body {
                return Some((part, body));
            }
            self.parts += 1;
        }
    }

    fn done(&mut self, part: Part, result: ExactValues) {
        if part == Part::Main {
            self.result = Some(result);
        }
        self.called = false;
        self.parts += 1;
    }

    fn failed(&mut self, failure: Message) {
        self.failure.get_or_insert(failure);
        self.called = false;
        self.parts += 1;
    }

    /// The inputs of a part. A hook gets the action that it belongs to, and an `after` hook also gets the result. A hook that
    /// is a skill gets the inputs that it declares, and may also take the fields of the action directly.
    fn inputs_of(&self, part: Part, kind: &CustomKind, inputs: &ExactValues, flat: bool) -> ExactValues {
        if part == Part::Main {
            return inputs.clone();
        }
        let mut given = if flat { inputs.clone() } else { ExactValues::new() };
        given.insert("hook".into(), Value::from(part.word()).into());
        given.insert("kind".into(), Value::from(kind.name.as_str()).into());
        given.insert("inputs".into(), inputs.clone().into_iter().collect());
        if part == Part::After {
            given.insert("success".into(), Value::from(self.failure.is_none()).into());
            let result = self.result.clone().map(|result| result.into_iter().collect());
            given.insert("result".into(), result.unwrap_or_default());
            given.insert("error".into(), json!(self.failure).into());
        }
        given
    }

    fn outcome(&mut self, turn: &Turn<'_>) -> Outcome {
        let mut metadata = Map::new();
        let mut note = |name: &str, value: Value| _ = metadata.insert(name.to_owned(), value);
        if let Some(code) = self.exit_code {
            note("exit_code", code.into());
        }
        note("success", self.failure.is_none().into());
        if let Some(failure) = self.failure.take() {
            note("exit_reason", ExitReason::Failed.name().into());
            note("error", json!(failure));
            note("error_message", json!(failure));
            note("action_id", json!(turn.place.action_id));
            let outcome = Outcome::done(ExitReason::Failed);
            return Outcome { success: false, metadata, ..outcome };
        }
        if self.skipped {
            note("skipped", true.into());
        }
        let extracted_variables = self.result.take().unwrap_or_default();
        Outcome { extracted_variables, metadata, ..Outcome::done(ExitReason::ExitCriteriaMet) }
    }
}

/// Why no command may run. Also reports a warning on how to allow it.
fn permission_error(turn: &Turn<'_>) -> Option<Message> {
    let error = turn.services.host.permissions.check(COMMAND).err()?;
    turn.warn("not-allowed", error.message.clone(), Some(error.help));
    Some(error.message)
}

/// The call of a skill with those values of `given` that it accepts. Values that a model sent are checked here: invalid ones
/// end the action, not the session.
fn call(turn: &Turn<'_>, skill: &str, given: ExactValues, part: Part) -> Result<Call, Message> {
    let found = turn.program.skills.get(skill);
    let found = found.ok_or_else(|| msg!("the skill `{skill}` is not one of those that the session started with"))?;
    let layer = ScopeLayer::new(Scope::Topic, "", Arc::clone(&found.inputs));
    let (mut inputs, mut ignored) = (ExactValues::new(), 0_usize);
    for (name, value) in given {
        if !found.input_names.contains(&name) {
            ignored += 1;
            continue;
        }
        let value = fitting(Some(&layer), &name, value)
            .map_err(|error| msg!("the skill `{skill}` cannot accept this value: {error}"))?;
        inputs.insert(name, value);
    }
    if part == Part::Main && ignored > 0 {
        let message = msg!("ignored {ignored} fields that are not inputs of the skill `{skill}`");
        turn.warn(
            "unknown-input",
            message,
            Some(Message::word("list them under `inputs:` of the skill, or do not send them")),
        );
    }
    let is_missing = |name: &&String| {
        let needed = found.inputs.get(*name).is_none_or(|input| input.value.is_null());
        needed && inputs.get(*name).is_none_or(|value| value.is_null())
    };
    match found.input_names.iter().find(is_missing) {
        Some(missing) => Err(msg!("the skill `{skill}` requires the input `{missing}`, which is missing")),
        None => Ok(Call { skill: skill.to_owned(), inputs, part: part.number() }),
    }
}

/// Runs the command of a part in the turn in which its effect is due, and closes the effect.
async fn run_command(
    turn: &Turn<'_>,
    kind: &CustomKind,
    (part, command): (Part, &[String]),
    inputs: &ExactValues,
    progress: &mut Progress,
) {
    if let Some(error) = permission_error(turn) {
        turn.close_effect("no longer allowed; it was not run");
        progress.failed(error);
        return;
    }
    let permissions = &turn.services.host.permissions;
    let input = ExactValue::from_iter(progress.inputs_of(part, kind, inputs, false)).to_string();
    let timeout = kind.timeout.unwrap_or(DEFAULT_TIMEOUT);
    let directory = permissions.directory.as_path();
    let variables = &permissions.variables.of(&kind.name);
    let request = ProcessRequest {
        command,
        directory,
        working_directory: directory,
        input: input.as_bytes(),
        variables,
        timeout,
        observer: &NoOutputObserver,
    };
    let result = traced_command(turn, &kind.name, |code| code == 0, run(&request)).await;
    let command_name = msg!("the command {} `{}`", part.word(), kind.name);
    let result = match result {
        Ok(result) => result,
        Err(error) => {
            turn.close_effect("it could not be started");
            turn.warn("command-not-started", msg!("{which}: {error}", which = command_name), Some(error.help.clone()));
            progress.failed(msg!("{command_name} could not be started: {error}"));
            return;
        }
    };
    if tracing::enabled!(tracing::Level::DEBUG) && !result.stderr.is_empty() {
        let end = if result.stderr.dropped == 0 { &result.stderr.bytes } else { &result.stderr.tail };
        let start = end.len().saturating_sub(MAX_LOGGED_BYTES);
        let stderr = String::from_utf8_lossy(end.get(start..).unwrap_or_default());
        tracing::debug!(kind = kind.name, part = part.word(), %stderr, "the standard error of a command");
    }
    if let (Part::Main, ProcessEnd::Code(code)) = (part, result.ended) {
        progress.exit_code = Some(code);
    }
    let failure = match result.ended {
        ProcessEnd::Code(0) => {
            turn.close_effect("it is done");
            progress.done(part, result_of(&result.stdout));
            return;
        }
        ProcessEnd::Code(code) => msg!("{command_name} ended with exit code {code}"),
        ProcessEnd::Signal(signal) => msg!("{command_name} was terminated by signal {signal}"),
        ProcessEnd::TimedOut => {
            msg!("{command_name} took longer than {} and was stopped", humantime::format_duration(timeout))
        }
    };
    turn.close_effect("it failed");
    progress.failed(failure);
}

/// The result of a command: the JSON object that it printed, or its output as text.
fn result_of(stdout: &ProcessOutput) -> ExactValues {
    let is_complete = stdout.dropped == 0 && stdout.bytes.len() <= MAX_RESULT_BYTES;
    if is_complete && let Ok(object) = serde_json::from_slice::<ExactValues>(&stdout.bytes) {
        return object;
    }
    let bytes = stdout.bytes.get(..MAX_RESULT_BYTES).unwrap_or(&stdout.bytes);
    let text = String::from_utf8_lossy(bytes);
    let mut result = ExactValues::new();
    // Trailing line ends are removed, as shells do in command substitution.
    result.insert("stdout".into(), Value::from(text.trim_end_matches(['\n', '\r'])).into());
    if !is_complete {
        result.insert("truncated".into(), Value::from(true).into());
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_command_prints_is_an_object_or_a_text() {
        let printed = |text: &str, dropped| ProcessOutput { bytes: text.as_bytes().to_vec(), dropped, tail: vec![] };
        let table = [
            (printed("{\"a\": [1]}\n", 0), json!({ "a": [1] })),
            (printed("one\ntwo\n\n", 0), json!({ "stdout": "one\ntwo" })),
            (printed("[1]", 0), json!({ "stdout": "[1]" })),
            (printed("", 0), json!({ "stdout": "" })),
            (printed("{\"a\": 1}", 5), json!({ "stdout": "{\"a\": 1}", "truncated": true })),
        ];
        for (stdout, result) in table {
            assert_eq!(ExactValue::from_iter(result_of(&stdout)), result);
        }
        let long = result_of(&printed(&"长".repeat(MAX_RESULT_BYTES), 0));
        assert!(long["stdout"].as_str().unwrap().len() <= MAX_RESULT_BYTES + 6 && long["truncated"] == json!(true));
        let deep = format!("{}{}", "{\"a\":".repeat(1_000), "}".repeat(1_000));
        assert!(result_of(&printed(&deep, 0)).contains_key("stdout"));
    }
}
