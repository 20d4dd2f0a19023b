//! `tool`: calls a tool (docs/actions/tool.md).

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::actions::calling::{outputs, set_outputs};
use crate::actions::failure::failed;
use crate::actions::tools::arguments::{ToolArgument, values_of};
use crate::actions::tools::call::{CallOptions, CallStep, RequestedCall, ToolCallState, proceed_with};
use crate::actions::tools::result::{ToolResult, ToolStatus};
use crate::program::action::Action;
use crate::program::flow::{ActionError, Flow};
use crate::program::kind::{ActionProperties, Kind, KindChecker, KindInfo};
use crate::program::outcome::{ExitReason, Outcome};
use crate::program::turn::Turn;
use bcc_lang::script::fields::Fields;
use bcc_lang::script::step_options::RetryCause;
use bcc_lang::source::span::Spanned;
use bcc_lang::source::yaml::{NodeKind, YamlNode};
use bcc_lang::value::exact::{ExactValue, ExactValues};

pub(crate) struct ToolKind;

/// The names that `output` can take besides paths in the result.
const RESULT: &str = "result";
const STATUS: &str = "status";

struct ToolAction {
    tool: String,
    arguments: Vec<(String, ToolArgument)>,
    /// Our variables, each with what fills it: `result`, `status`, or a path in the result.
    outputs: Vec<(String, String)>,
}

/// The progress of the action.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct ToolProgressState {
    /// The call, with the arguments as they were when the action began.
    call: Option<RequestedCall>,
    step: ToolCallState,
    /// The number of attempts that failed and are followed by another one.
    failed_attempts: u32,
    /// Whether the pause before the next attempt is still to come.
    pauses: bool,
}

impl Kind for ToolKind {
    fn info(&self) -> KindInfo {
        KindInfo {
            name: "tool",
            schema: include_str!("../../../../../schemas/actions/tool.json"),
            page: include_str!("../../../../../docs/actions/tool.md"),
            exits: &["exit_criteria_met", "failed", "rejected", "timed_out"],
        }
    }

    fn step_options(&self) -> &'static [&'static str] {
        &["timeout", "retry"]
    }

    fn runs_in_branches(&self) -> bool {
        true
    }

    /// A server of tools may ask the person something.
    fn may_speak(&self) -> bool {
        true
    }

    fn check(&self, fields: &Fields<'_>, checker: &mut dyn KindChecker) -> Option<Box<dyn Action>> {
        let before = fields.findings().author_errors();
        let name = tool_name(fields, checker);
        let arguments = fields.take("arguments").and_then(|node| arguments(node, fields, checker));
        let written = fields.take("output").map(|node| outputs(node, fields)).unwrap_or_default();
        for (ours, _) in &written {
            checker.may_have_value(ours, None);
        }
        checker.describe(ActionProperties {
            max_rounds: 1,
            outputs: written.len(),
            tools: name.iter().cloned().collect(),
            ..ActionProperties::default()
        });
        if fields.findings().author_errors() > before {
            return None;
        }
        let outputs = written.into_iter().map(|(ours, theirs)| (ours.value, theirs.value)).collect();
        Some(Box::new(ToolAction { tool: name?.value, arguments: arguments.unwrap_or_default(), outputs }))
    }
}

/// The name of the tool, which a variable must not choose: the script permits it by its name.
fn tool_name(fields: &Fields<'_>, checker: &mut dyn KindChecker) -> Option<Spanned<String>> {
    let words = fields.required_text("name")?;
    if !checker.code(&words)?.is_plain() {
        let message = "the name of a tool must not contain variables";
        let help = "write its name; to choose between tools, use a `condition` with one `tool` in each case";
        fields.error("wrong-type", message, words.node.span, help);
        return None;
    }
    Some(Spanned { value: words.text, span: words.node.span })
}

fn arguments(
    node: &Arc<YamlNode>,
    fields: &Fields<'_>,
    checker: &mut dyn KindChecker,
) -> Option<Vec<(String, ToolArgument)>> {
    let NodeKind::Mapping(entries) = &node.kind else {
        let message = msg!("`arguments` must be a mapping of names to values, but this is {}", node.describe());
        fields.error("wrong-type", message, node.span, "write each argument on its own line, as `name: value`");
        return None;
    };
    let read = entries.iter().map(|entry| Some((entry.key.value.clone(), ToolArgument::read(&entry.value, checker)?)));
    // All of them are read, so that all problems are reported.
    let read: Vec<Option<(String, ToolArgument)>> = read.collect();
    read.into_iter().collect()
}

#[async_trait]
impl Action for ToolAction {
    fn asks_model(&self) -> bool {
        false
    }

    async fn turn(&self, turn: &Turn<'_>) -> Result<Flow, ActionError> {
        turn.in_round(1);
        let mut progress: ToolProgressState = turn.state()?;
        let call = match &progress.call {
            Some(call) => call.clone(),
            None => RequestedCall::of(self.tool.clone(), &values_of(&self.arguments, turn)?),
        };
        if std::mem::take(&mut progress.pauses)
            && let Some(policy) = &turn.options.retry
        {
            turn.services.host.commands.pause(policy.value.pause(progress.failed_attempts)).await;
        }
        let options = CallOptions {
            timeout: turn.options.timeout.as_ref().map(|timeout| timeout.value),
            hides_result: self.outputs.iter().any(|(ours, _)| turn.is_sensitive(ours)),
            in_background: false,
            called_for: None,
        };
        let step = proceed_with(turn, &call, &mut progress.step, options).await?;
        progress.call = Some(call);
        let result = match step {
            CallStep::Flow(flow) => {
                turn.store_state(&progress)?;
                return Ok(flow);
            }
            CallStep::Ended(result) => result,
        };
        match retries(turn, &progress, &result) {
            true => {
                progress.failed_attempts += 1;
                progress.pauses = true;
                progress.step.start_again();
                turn.store_state(&progress)?;
                Ok(Flow::Onward)
            }
            false => self.finish(turn, &result, progress.failed_attempts + 1).map(Flow::done),
        }
    }
}

impl ToolAction {
    fn finish(&self, turn: &Turn<'_>, result: &ToolResult, attempts: u32) -> Result<Outcome, ActionError> {
        let mut metadata = Map::new();
        metadata.insert("tool".into(), result.tool.as_str().into());
        metadata.insert("status".into(), result.status.name().into());
        metadata.insert("attempts".into(), attempts.into());
        if result.by.is_some() || result.comment.is_some() {
            metadata.insert("by".into(), json!(result.by));
            metadata.insert("comment".into(), json!(result.comment));
        }
        if result.is_truncated {
            metadata.insert("truncated".into(), true.into());
        }
        let reason = match (result.status, &result.error) {
            (ToolStatus::Success | ToolStatus::Answered, _) => ExitReason::ExitCriteriaMet,
            (ToolStatus::Interrupted, None) => {
                metadata.insert("skipped".into(), true.into());
                ExitReason::ExitCriteriaMet
            }
            (ToolStatus::Failed | ToolStatus::Refused | ToolStatus::Interrupted, _) => ExitReason::Failed,
            (ToolStatus::Rejected, _) => ExitReason::Rejected,
            (ToolStatus::TimedOut, _) => ExitReason::TimedOut,
        };
        let outcome = match &result.error {
            Some(error) => failed(turn, reason, error, metadata),
            None => {
                metadata.insert("success".into(), true.into());
                Outcome { metadata, ..Outcome::done(reason) }
            }
        };
        let mut values = ExactValues::new();
        for (_, theirs) in &self.outputs {
            values.insert(theirs.clone(), value_at(result, theirs));
        }
        let extracted_variables = set_outputs(turn, &self.outputs, &values)?;
        Ok(Outcome { extracted_variables, ..outcome })
    }
}

/// Whether the call is made again. This is reported.
fn retries(turn: &Turn<'_>, progress: &ToolProgressState, result: &ToolResult) -> bool {
    let Some(policy) = turn.options.retry.as_ref().map(|retry| &retry.value) else { return false };
    let is_cause = |cause: &RetryCause| match cause {
        RetryCause::Failed => result.status == ToolStatus::Failed,
        RetryCause::TimedOut => result.status == ToolStatus::TimedOut,
        RetryCause::ExitCode(_) => false,
    };
    if result.is_effect_unknown || progress.failed_attempts >= policy.times || !policy.on.iter().any(is_cause) {
        return false;
    }
    let failed_attempts = progress.failed_attempts + 1;
    let failure = result.error.clone().unwrap_or_else(|| Message::text(result.status.name()));
    let pause = humantime::format_duration(policy.pause(failed_attempts));
    let message =
        msg!("{failure}; it is called again in {pause} (attempt {} of {})", failed_attempts + 1, policy.times + 1);
    turn.warn("tool-retried", message, None);
    true
}

/// What an output takes; null if there is nothing.
fn value_at(result: &ToolResult, path: &str) -> ExactValue {
    match path {
        RESULT => return result.value.clone(),
        STATUS => return Value::from(result.status.name()).into(),
        _ => {}
    }
    let step = |value: &ExactValue, key: &str| match &**value {
        Value::Array(_) => value.items().nth(key.parse::<usize>().ok()?),
        _ => value.field(key),
    };
    path.split('.').try_fold(result.value.clone(), |value, key| step(&value, key)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_output_takes_the_result_its_status_or_a_part_of_it() {
        let value = json!({ "results": [{ "title": "一" }], "status": "x" });
        let result = ToolResult { value: value.clone().into(), ..ToolResult::default() };
        let table = [
            ("result", value),
            ("status", json!("failed")),
            ("results.0.title", json!("一")),
            ("results.1.title", json!(null)),
            ("results.title", json!(null)),
            ("", json!(null)),
        ];
        for (path, expected) in table {
            assert_eq!(value_at(&result, path), expected, "{path}");
        }
    }
}
