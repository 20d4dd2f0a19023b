//! The limits of plans (docs/plans.md).

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::plan::error::OperationError;

/// The maximum number of tasks of a plan.
pub const MAX_TASKS: usize = 100_000;

/// The maximum number of levels of a plan; a root is on the first one.
pub const MAX_LEVELS: usize = 50;

/// The maximum length of a name, in characters.
pub const MAX_NAME_CHARS: usize = 200;

/// The maximum length of a `task_type`, in characters.
pub const MAX_TYPE_CHARS: usize = 50;

/// The maximum length of an instruction, in characters.
pub const MAX_INSTRUCTION_CHARS: usize = 20_000;

/// The maximum size of the metadata of a task as JSON, in bytes.
pub const MAX_METADATA_BYTES: usize = 16 * 1024;

/// The maximum number of dependencies of a task.
pub const MAX_DEPENDENCIES: usize = 100;

/// The maximum size of the result of a task as JSON, in bytes.
pub const MAX_RESULT_BYTES: usize = 256 * 1024;

/// The maximum length of the error of a task, in characters; the rest is cut off.
pub const MAX_ERROR_CHARS: usize = 2_000;

/// The maximum size of the title, the goal, the notes, the style and the sections of a plan as JSON, in bytes.
pub const MAX_HEAD_BYTES: usize = 256 * 1024;

pub(crate) fn check_chars(parameter: &str, text: &str, max: usize) -> Result<(), OperationError> {
    // Counting stops at the limit, however long the text is.
    let is_longer = text.len() > max && text.chars().nth(max).is_some();
    if is_longer { Err(OperationError::TooLong { parameter: parameter.to_owned(), max }) } else { Ok(()) }
}

pub(crate) fn check_bytes(parameter: &str, value: &impl Serialize, max: usize) -> Result<(), OperationError> {
    let is_longer = serde_json::to_vec(value).is_ok_and(|json| json.len() > max);
    if is_longer { Err(OperationError::TooLarge { parameter: parameter.to_owned(), max }) } else { Ok(()) }
}

/// A name in one line, without control characters.
pub(crate) fn checked_name(operation: &str, parameter: &str, name: &str) -> Result<String, OperationError> {
    check_chars(parameter, name, MAX_NAME_CHARS)?;
    let plain: String = name.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let name = plain.split_whitespace().collect::<Vec<_>>().join(" ");
    if name.is_empty() {
        let (operation, parameter) = (operation.to_owned(), parameter.to_owned());
        let expected = msg!("text that is not empty");
        return Err(OperationError::WrongParameter { operation, parameter, expected });
    }
    Ok(name)
}

pub(crate) fn check_instruction(instruction: &str) -> Result<(), OperationError> {
    check_chars("instruction", instruction, MAX_INSTRUCTION_CHARS)
}

pub(crate) fn check_metadata(metadata: &Map<String, Value>) -> Result<(), OperationError> {
    check_bytes("metadata", metadata, MAX_METADATA_BYTES)
}

/// Checks what decides how the task runs: a value that cannot be understood would be noticed only when it runs.
pub(crate) fn check_controls(operation: &str, metadata: &Map<String, Value>) -> Result<(), OperationError> {
    let wrong = |parameter: &str, expected: Message| {
        let (operation, parameter) = (operation.to_owned(), parameter.to_owned());
        Err(OperationError::WrongParameter { operation, parameter, expected })
    };
    match metadata.get("approve") {
        None | Some(Value::Null | Value::Bool(_)) => {}
        Some(approve) if approve == "always" || approve == "never" => {}
        Some(_) => return wrong("metadata.approve", msg!("`always`, `never`, true or false")),
    }
    let is_name = |name: &Value| name.as_str().is_some_and(|name| !name.trim().is_empty());
    let is_tool = match metadata.get("tool") {
        None | Some(Value::Null) => true,
        Some(Value::Object(tool)) => {
            let is_known = |(field, value): (&String, &Value)| match field.as_str() {
                "name" => is_name(value),
                "arguments" => value.is_object() || value.is_null(),
                _ => false,
            };
            tool.contains_key("name") && tool.iter().all(is_known)
        }
        Some(tool) => is_name(tool),
    };
    if is_tool { Ok(()) } else { wrong("metadata.tool", msg!("a name, or an object with `name` and `arguments`")) }
}
