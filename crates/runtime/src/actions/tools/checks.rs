//! What must be true before a tool is called: the script permits it, it exists, its arguments fit, and the rule of the script holds.

use bcc_lang::expr::truth::Truth;
use bcc_lang::message::ToMessage;
use bcc_lang::message::message::{Joint, Message};
use bcc_lang::message::msg;
use bcc_lang::schema::compiled::Compiled;
use bcc_lang::script::fields::shortened;
use bcc_lang::source::near::did_you_mean;
use bcc_lang::template::names::TemplateNames;
use serde_json::{Map, Value};

use crate::actions::requirement::requirement_error;
use crate::actions::tools::call::{ARGUMENTS, TOOL};
use crate::actions::tools::result::ToolStatus;
use crate::effects::tools::{ToolDescription, ToolError};
use crate::program::tool_rule::{ToolApproval, ToolRule};
use crate::program::turn::Turn;

/// The maximum number of violations of a schema that one message names.
const MAX_VIOLATIONS: usize = 5;

/// The rule of the script for the tool, or why the script does not permit it.
pub(crate) async fn rule_for<'a>(turn: &Turn<'a>, tool: &str) -> Result<&'a ToolRule, Message> {
    let program = turn.program;
    match ToolRule::of(&program.tools, tool) {
        Some(rule) => Ok(rule),
        None => Err(with_near(turn, msg!("the script does not permit the tool `{}`", shortened(tool)), tool).await),
    }
}

/// The description of a tool that the script permits, or why it cannot be used.
pub(crate) async fn described(turn: &Turn<'_>, tool: &str) -> Result<ToolDescription, (ToolStatus, Message)> {
    let (found, errors) = turn.services.host.tools.describe(&[tool.to_owned()]).await;
    if let Some(found) = found.into_iter().find(|found| found.name == tool) {
        return Ok(found);
    }
    match errors.first() {
        Some(error) => Err((ToolStatus::Failed, error.to_message())),
        None => {
            let unknown = ToolError::Unknown { name: shortened(tool) }.to_message();
            Err((ToolStatus::Refused, with_near(turn, unknown, tool).await))
        }
    }
}

/// `message` with the names of permitted tools that are similar.
async fn with_near(turn: &Turn<'_>, message: Message, tool: &str) -> Message {
    let (permitted, _) = turn.services.host.tools.describe(&turn.program.tool_patterns()).await;
    let near = did_you_mean(tool, permitted.iter().map(|known| known.name.as_str()));
    Message::list(Joint::Semicolon, std::iter::once(message).chain(near))
}

/// Why the arguments do not fit the schema of the tool.
pub(crate) fn argument_error(tool: &ToolDescription, arguments: &Map<String, Value>) -> Option<Message> {
    let name = &tool.name;
    let schema = match Compiled::new(&tool.parameters) {
        Ok(schema) => schema,
        Err(error) => return Some(msg!("the schema of the tool `{name}` cannot be used: {error}")),
    };
    let violations = schema.violations(&Value::Object(arguments.clone()));
    let named = violations.iter().take(MAX_VIOLATIONS).map(|violation| match violation.path.as_str() {
        "" => violation.message.clone(),
        path => msg!("`{}`: {}", shortened(path), violation.message),
    });
    let tool = name.clone();
    (!violations.is_empty())
        .then(|| ToolError::InvalidArguments { tool, why: Message::list(Joint::Semicolon, named) }.to_message())
}

/// Why the call must not be made: `requires` does not hold, or cannot be evaluated.
pub(crate) fn unmet_rule(
    turn: &Turn<'_>,
    rule: &ToolRule,
    tool: &str,
    arguments: &Map<String, Value>,
) -> Option<Message> {
    requirement_error(turn, rule.requires.as_ref()?, &names_of_call(turn, tool, arguments))
}

/// Whether somebody must decide about the call. If that is not known, somebody must.
pub(crate) fn wants_approval(turn: &Turn<'_>, rule: &ToolRule, tool: &str, arguments: &Map<String, Value>) -> bool {
    match &rule.approve {
        ToolApproval::Never => false,
        ToolApproval::Always => true,
        ToolApproval::When(when) => {
            let names = names_of_call(turn, tool, arguments);
            let truth = when.truth(&names);
            turn.report_warnings(&names);
            let reason = match truth {
                Ok(Truth::Null(part)) => msg!("`{part}` is null"),
                Ok(truth) => return truth.holds(),
                Err(error) => error.message,
            };
            let message =
                msg!("the call of `{tool}` needs a decision, because `{}` is not known: {reason}", when.source());
            turn.warn("approval-condition", message, None);
            true
        }
    }
}

/// The names for the expressions of a rule.
fn names_of_call(turn: &Turn<'_>, tool: &str, arguments: &Map<String, Value>) -> TemplateNames {
    let mut names = turn.names(1);
    names.set(ARGUMENTS, Value::Object(arguments.clone()));
    names.set_text(TOOL, tool);
    names
}
