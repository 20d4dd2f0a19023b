//! Carries out a kind of the project, turn by turn: for actions of YAML, and for those that a model or a server sends.

use bcc_lang::message::ToMessage;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use bcc_lang::message::stored;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::actions::calling::failure_of;
use crate::effects::process::{ProcessEnd, ProcessOutput, ProcessRequest, run};
use crate::program::custom::{COMMAND, CustomBody, CustomKind, DEFAULT_TIMEOUT};
use crate::program::flow::{ActionError, Announced, Call, Flow};
use crate::program::interrupted_effects::{Decision, decide, given_up};
use crate::program::outcome::{ExitReason, Outcome};
use crate::program::turn::{Turn, fitting};
use bcc_lang::value::scopes::{Scope, ScopeLayer};

/// The most that is kept of what a command prints, in bytes: it becomes a part of the session.
pub const MOST_RESULT_BYTES: usize = 256 * 1024;

/// So much of the end of the standard error is told to those who look for a mistake (`--log debug`), in bytes.
const MOST_LOGGED_BYTES: usize = 2_000;

/// How far it came; whoever runs it keeps this in its frame.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// How many of its parts (`before`, itself, `after`) are done.
    pub parts: u8,
    /// Whether the skill of the next part was called.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    called: bool,
    /// What itself gave, once it is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    result: Option<Map<String, Value>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    /// Whether somebody said that its interrupted command is not to be done.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    skipped: bool,
    /// Whether somebody said that it is to fail because its command was interrupted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub given_up: bool,
    /// What went wrong first.
    #[serde(default, with = "stored::option", skip_serializing_if = "Option::is_none")]
    failure: Option<Message>,
}

/// What follows.
#[derive(Clone, Debug, PartialEq)]
pub enum CustomOutcome {
    /// This flow first; then [`advance`] again, with the progress and the inputs kept.
    On(Flow),
    /// It is done. `extracted_variables` are what it gave: the outputs of its skill, or the JSON object that its command printed
    /// (what else it printed is the text `stdout`). When it failed, `exit_reason` is `failed`, and `metadata` holds
    /// `success`, `error` and `action_id`.
    Done(Box<Outcome>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Before,
    Itself,
    After,
}

impl Part {
    /// How messages place it: "the command of `tidy`".
    const fn word(self) -> &'static str {
        match self {
            Self::Before => "before",
            Self::Itself => "of",
            Self::After => "after",
        }
    }
}

/// Goes on with it: one part after the other, each skill and each command in turns of its own. What is wrong with its inputs, what
/// the project does not allow and what fails is no error: the kind fails ([`CustomOutcome::Done`]), after its `after` hook.
pub async fn advance(
    turn: &Turn<'_>,
    kind: &CustomKind,
    inputs: &Map<String, Value>,
    progress: &mut Progress,
) -> Result<CustomOutcome, ActionError> {
    let mut entered = turn.entered;
    while let Some((part, does)) = progress.next(kind) {
        match does {
            CustomBody::Skill(skill) => match entered.take().filter(|_| progress.called) {
                Some(end) => match failure_of(skill, end) {
                    Some(failure) => progress.failed(failure),
                    None => progress.done(part, end.extracted_variables.clone()),
                },
                None => match call(turn, skill, progress.given(part, kind, inputs, true), part) {
                    Ok(call) => {
                        progress.called = true;
                        return Ok(CustomOutcome::On(Flow::Call(call)));
                    }
                    Err(failure) => progress.failed(failure),
                },
            },
            CustomBody::Command(command) => {
                let begins = turn.effect.is_none();
                if begins && let Some(refused) = refused(turn) {
                    progress.failed(refused);
                    continue;
                }
                let summary = msg!("`{}`: runs {}", kind.name, command.first().map_or("", String::as_str));
                match decide(turn, || Announced { kind: COMMAND, summary }) {
                    Decision::First(flow) => return Ok(CustomOutcome::On(flow)),
                    Decision::Carry => carry_out(turn, kind, (part, command), inputs, progress).await,
                    Decision::Skip => {
                        progress.skipped |= part == Part::Itself;
                        progress.done(part, Map::new());
                    }
                    Decision::Fail => {
                        progress.given_up = true;
                        progress.failed(given_up().to_message());
                    }
                }
                // What was carried out is committed before anything else begins.
                if progress.next(kind).is_some() {
                    return Ok(CustomOutcome::On(Flow::Onward));
                }
            }
        }
    }
    Ok(CustomOutcome::Done(Box::new(progress.outcome(turn))))
}

impl Progress {
    /// The next part that there is to do.
    fn next<'k>(&mut self, kind: &'k CustomKind) -> Option<(Part, &'k CustomBody)> {
        loop {
            let (part, does) = match self.parts {
                0 => (Part::Before, kind.before.as_ref()),
                1 => (Part::Itself, Some(&kind.does).filter(|_| self.failure.is_none())),
                2 => (Part::After, kind.after.as_ref()),
                _ => return None,
            };
            if let Some(does) = does {
                return Some((part, does));
            }
            self.parts += 1;
        }
    }

    fn done(&mut self, part: Part, came: Map<String, Value>) {
        if part == Part::Itself {
            self.result = Some(came);
        }
        self.called = false;
        self.parts += 1;
    }

    fn failed(&mut self, failure: Message) {
        self.failure.get_or_insert(failure);
        self.called = false;
        self.parts += 1;
    }

    /// What a part is given. A hook learns what it stands around, and the one after it what came of it; a hook that is a skill takes
    /// what it declares, and may take the fields of the action themselves.
    fn given(&self, part: Part, kind: &CustomKind, inputs: &Map<String, Value>, flat: bool) -> Map<String, Value> {
        if part == Part::Itself {
            return inputs.clone();
        }
        let mut given = if flat { inputs.clone() } else { Map::new() };
        given.insert("hook".into(), part.word().into());
        given.insert("kind".into(), kind.name.as_str().into());
        given.insert("inputs".into(), Value::Object(inputs.clone()));
        if part == Part::After {
            given.insert("success".into(), self.failure.is_none().into());
            given.insert("result".into(), self.result.clone().map_or(Value::Null, Value::Object));
            given.insert("error".into(), json!(self.failure));
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

/// Why no command may run here; it is told how to allow it.
fn refused(turn: &Turn<'_>) -> Option<Message> {
    let refused = turn.services.outside.permits.may(COMMAND).err()?;
    turn.warn("not-allowed", refused.message.clone(), Some(refused.help));
    Some(refused.message)
}

/// The call of a skill with what it takes of `given`. What a model sends is checked here: a skill that is given what it cannot take
/// ends the action, and not the session.
fn call(turn: &Turn<'_>, skill: &str, given: Map<String, Value>, part: Part) -> Result<Call, Message> {
    let found = turn.program.skills.get(skill);
    let found = found.ok_or_else(|| msg!("the skill `{skill}` is not one of those that the session started with"))?;
    let layer = ScopeLayer::new(Scope::Topic, "", Arc::clone(&found.inputs));
    let (mut inputs, mut dropped) = (Map::new(), 0_usize);
    for (name, value) in given {
        if !found.takes.contains(&name) {
            dropped += 1;
            continue;
        }
        let value = fitting(Some(&layer), &name, value)
            .map_err(|error| msg!("the skill `{skill}` cannot accept this value: {error}"))?;
        inputs.insert(name, value);
    }
    if part == Part::Itself && dropped > 0 {
        let message = msg!("ignored {dropped} fields that are not inputs of the skill `{skill}`");
        turn.warn(
            "unknown-input",
            message,
            Some(Message::word("list them under `inputs:` of the skill, or do not send them")),
        );
    }
    let lacks = |name: &&String| {
        let needed = found.inputs.get(*name).is_none_or(|input| input.value.is_null());
        needed && inputs.get(*name).is_none_or(Value::is_null)
    };
    match found.takes.iter().find(lacks) {
        Some(lacking) => Err(msg!("the skill `{skill}` requires the input `{lacking}`, which is missing")),
        None => Ok(Call { skill: skill.to_owned(), inputs }),
    }
}

/// Runs the command of a part, in the turn that its effect is due in, and closes the effect.
async fn carry_out(
    turn: &Turn<'_>,
    kind: &CustomKind,
    (part, command): (Part, &[String]),
    inputs: &Map<String, Value>,
    progress: &mut Progress,
) {
    if let Some(refused) = refused(turn) {
        turn.close_effect("no longer allowed; it was not run");
        progress.failed(refused);
        return;
    }
    let permits = &turn.services.outside.permits;
    let input = Value::Object(progress.given(part, kind, inputs, false)).to_string();
    let timeout = kind.timeout.unwrap_or(DEFAULT_TIMEOUT);
    let directory = permits.directory.as_path();
    let ran =
        run(&ProcessRequest { command, directory, input: input.as_bytes(), hidden: &permits.hidden, timeout }).await;
    let which = msg!("the command {} `{}`", part.word(), kind.name);
    let ran = match ran {
        Ok(ran) => ran,
        Err(error) => {
            turn.close_effect("it could not be started");
            turn.warn("command-not-started", msg!("{which}: {error}"), Some(error.help.clone()));
            progress.failed(msg!("{which} could not be started: {error}"));
            return;
        }
    };
    if tracing::enabled!(tracing::Level::DEBUG) && !ran.stderr.bytes.is_empty() {
        let from = ran.stderr.bytes.len().saturating_sub(MOST_LOGGED_BYTES);
        let stderr = String::from_utf8_lossy(ran.stderr.bytes.get(from..).unwrap_or_default());
        tracing::debug!(kind = kind.name, part = part.word(), %stderr, "the standard error of a command");
    }
    if let (Part::Itself, ProcessEnd::Code(code)) = (part, ran.ended) {
        progress.exit_code = Some(code);
    }
    let failure = match ran.ended {
        ProcessEnd::Code(0) => {
            turn.close_effect("it is done");
            progress.done(part, result_of(&ran.stdout));
            return;
        }
        ProcessEnd::Code(code) => msg!("{which} ended with exit code {code}"),
        ProcessEnd::Signal(signal) => msg!("{which} was terminated by signal {signal}"),
        ProcessEnd::TimedOut => {
            msg!("{which} took longer than {} and was stopped", humantime::format_duration(timeout))
        }
    };
    turn.close_effect("it failed");
    progress.failed(failure);
}

/// What a command gave: the JSON object that it printed, or what else it printed as a text.
fn result_of(stdout: &ProcessOutput) -> Map<String, Value> {
    let whole = stdout.dropped == 0 && stdout.bytes.len() <= MOST_RESULT_BYTES;
    if whole && let Ok(Value::Object(object)) = serde_json::from_slice(&stdout.bytes) {
        return object;
    }
    let bytes = stdout.bytes.get(..MOST_RESULT_BYTES).unwrap_or(&stdout.bytes);
    let text = String::from_utf8_lossy(bytes);
    let mut result = Map::new();
    // As a shell does with what it takes from a program.
    result.insert("stdout".into(), text.trim_end_matches(['\n', '\r']).into());
    if !whole {
        result.insert("truncated".into(), true.into());
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_command_prints_is_an_object_or_a_text() {
        let printed = |text: &str, dropped| ProcessOutput { bytes: text.as_bytes().to_vec(), dropped };
        let table = [
            (printed("{\"a\": [1]}\n", 0), json!({ "a": [1] })),
            (printed("one\ntwo\n\n", 0), json!({ "stdout": "one\ntwo" })),
            (printed("[1]", 0), json!({ "stdout": "[1]" })),
            (printed("", 0), json!({ "stdout": "" })),
            (printed("{\"a\": 1}", 5), json!({ "stdout": "{\"a\": 1}", "truncated": true })),
        ];
        for (stdout, result) in table {
            assert_eq!(Value::Object(result_of(&stdout)), result);
        }
        let long = result_of(&printed(&"长".repeat(MOST_RESULT_BYTES), 0));
        assert!(long["stdout"].as_str().unwrap().len() <= MOST_RESULT_BYTES + 6 && long["truncated"] == true);
        let deep = format!("{}{}", "{\"a\":".repeat(1_000), "}".repeat(1_000));
        assert!(result_of(&printed(&deep, 0)).contains_key("stdout"));
    }
}
