//! Checks the parameters of operations on plans that are constants, with the reader that the operation itself uses. What contains an
//! expression is checked when it runs.

use std::collections::BTreeMap;
use std::sync::Arc;

use bcc_lang::message::ToMessage;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use bcc_lang::script::fields::Fields;
use bcc_lang::source::span::Span;
use bcc_lang::source::yaml::{NodeKind, YamlNode};
use serde_json::{Map, Value, json};

use crate::actions::plans::edits::{NumberParameter, PlanParameters};
use crate::actions::structured::instruction::whole_number;
use crate::plan::error::OperationError;
use crate::plan::limits::check_controls;
use crate::plan::operation::{TASK_OPERATIONS, TaskOperation};

/// The parameters that are texts. A number or a boolean is read as text there, as everywhere in a script.
const TEXTS: [&str; 12] = [
    "goal",
    "title",
    "notes",
    "session_id",
    "workflow_id",
    "task_name",
    "name",
    "new_parent_name",
    "task_type",
    "instruction",
    "anchor_position",
    "style",
];

/// Whether this parameter is a text.
pub(super) fn is_text(parameter: &str) -> bool {
    TEXTS.contains(&parameter)
}

/// Reports the constants with which the operation would fail, and the parameters without which it would.
pub(super) fn check_constants(
    operation: &'static str,
    written: &[(&'static str, &Arc<YamlNode>)],
    fields: &Fields<'_>,
) {
    let mut constants = Constants { operation, values: Map::new(), spans: BTreeMap::new(), fields };
    for (name, node) in written {
        constants.spans.insert(name, node.span);
        let value = match node.as_scalar() {
            Some(scalar) if is_text(name) => Some(Value::from(scalar.text.as_str())),
            _ => Some(node.to_json()),
        };
        if let Some(value) = value.filter(|value| !is_dynamic(value)).or_else(|| constant_part(node)) {
            constants.values.insert((*name).to_owned(), value);
        }
    }
    if TASK_OPERATIONS.contains(&operation) {
        constants.task_operation();
    } else {
        constants.plan_operation();
    }
}

/// Whether a value is a text with an expression, or anything else that is replaced before the operation runs.
fn is_dynamic(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('{'),
        Value::Array(items) => items.iter().any(is_dynamic),
        Value::Object(fields) => fields.values().any(is_dynamic),
        _ => false,
    }
}

/// The items of a list, or the fields of a mapping, that are constants; none for any other value.
fn constant_part(node: &YamlNode) -> Option<Value> {
    let constant = |node: &Arc<YamlNode>| Some(node.to_json()).filter(|value| !is_dynamic(value));
    match &node.kind {
        NodeKind::Scalar(_) => None,
        NodeKind::Sequence(items) => Some(items.iter().filter_map(constant).collect()),
        NodeKind::Mapping(entries) => {
            let field =
                |entry: &bcc_lang::source::yaml::YamlEntry| Some((entry.key.value.clone(), constant(&entry.value)?));
            Some(entries.iter().filter_map(field).collect())
        }
    }
}

struct Constants<'a, 'f> {
    operation: &'static str,
    /// The constants by name; a list or a mapping without what is no constant in it.
    values: Map<String, Value>,
    /// The places of all parameters that are written.
    spans: BTreeMap<&'static str, Span>,
    fields: &'a Fields<'f>,
}

impl Constants<'_, '_> {
    fn report(&self, rule: &'static str, parameter: &str, message: Message, help: impl Into<Message>) {
        let span = self.spans.get(parameter).copied().unwrap_or_else(|| self.fields.span());
        self.fields.error(rule, message, span, help);
    }

    /// Checks each constant of an operation on tasks, and then whether those that are given are enough.
    fn task_operation(&mut self) {
        let mut sound = Map::new();
        for (name, value) in std::mem::take(&mut self.values) {
            match self.wrong(&name, &value) {
                Some((rule, message)) => self.report(rule, &name, message, help(&name)),
                None => _ = sound.insert(name, value),
            }
        }
        // What is no constant, or was reported, counts as given.
        for name in self.spans.keys().filter(|name| !sound.contains_key(**name)).copied().collect::<Vec<_>>() {
            sound.insert(name.to_owned(), substitute(name));
        }
        match TaskOperation::parse(self.operation, &sound) {
            Err(error @ OperationError::MissingOneOf { .. }) => {
                let span = self.fields.entries().first().map_or(self.fields.span(), |entry| entry.key.span);
                self.fields.error("missing-key", error.to_message(), span, "add one of them");
            }
            Err(ref error @ OperationError::ContradictoryParameters { ref parameter, ref other, .. })
                if sound.get(parameter) != Some(&substitute(parameter))
                    && sound.get(other) != Some(&substitute(other)) =>
            {
                self.report("conflicting-fields", other, error.to_message(), "remove one of the two");
            }
            _ => {}
        }
    }

    /// What is wrong with one constant of an operation on tasks.
    fn wrong(&self, name: &str, value: &Value) -> Option<(&'static str, Message)> {
        let mut values = minimal(self.operation);
        values.insert(name.to_owned(), value.clone());
        let found = TaskOperation::parse(self.operation, &values).err();
        let controls = || match value {
            Value::Object(metadata) if name == "metadata" => check_controls(self.operation, metadata).err(),
            _ => None,
        };
        let error = found.or_else(controls)?;
        match &error {
            OperationError::MissingParameter { parameter, .. } if parameter == name => {
                Some(("missing-key", error.to_message()))
            }
            OperationError::WrongParameter { parameter, .. } if parameter.split('.').next() == Some(name) => {
                let rule = match name {
                    "anchor_position" => "not-a-choice",
                    _ if is_text(name) => "missing-key",
                    _ if whole_number(value).is_some() => "out-of-range",
                    _ => "wrong-type",
                };
                Some((rule, error.to_message()))
            }
            _ => None,
        }
    }

    /// Checks the constants of an operation that is not one on tasks.
    fn plan_operation(&self) {
        for (name, value) in &self.values {
            let number = NumberParameter::ALL.iter().find(|number| number.name == name);
            let Some(number) = number else {
                let is_blank = value.as_str().is_some_and(|text| text.trim().is_empty());
                if name == "goal" && is_blank {
                    let message = msg!("`{operation}` needs the parameter `{name}`", operation = self.operation);
                    self.report("missing-key", name, message, "write what is to be reached");
                }
                continue;
            };
            let one = Map::from_iter([(name.clone(), value.clone())]);
            let parameters = PlanParameters::new(self.operation, &one, &[number.name]);
            if let Err(rejected) = parameters.and_then(|parameters| parameters.number(number)) {
                let rule = if whole_number(value).is_some() { "out-of-range" } else { "wrong-type" };
                self.report(rule, name, rejected.why, help(name));
            }
        }
    }
}

/// The help for a wrong value of a parameter.
fn help(name: &str) -> Message {
    match name {
        "plan_id" | "task_id" | "parent_id" | "new_parent_id" | "anchor_task_id" | "logical_id" | "insert_before"
        | "insert_after" => {
            msg!("write the number, or a variable that holds it, as in `\"{{{{ data_task }}}}\"`")
        }
        "dependencies" => {
            msg!(
                "write the numbers of the tasks, or variables that hold them, as in `[\"{{{{ data_task }}}}\"]`; `output: {{ data_task: task_id }}` of `create_task` sets one"
            )
        }
        _ => msg!("the page of the action type lists what it can be"),
    }
}

/// Parameters with which the operation can be read.
fn minimal(operation: &str) -> Map<String, Value> {
    let needed: &[&str] = match operation {
        "create_task" => &["task_name"],
        "update_task" => &["task_id", "name"],
        "update_task_instruction" => &["task_id", "instruction"],
        "move_task" => &["task_id", "new_parent_id"],
        "delete_task" | "rerun_task" | "request_subgraph" => &["task_id"],
        _ => &[],
    };
    needed.iter().map(|name| ((*name).to_owned(), substitute(name))).collect()
}

/// A value that stands for one that is not known.
fn substitute(name: &str) -> Value {
    match name {
        "anchor_position" => json!("before"),
        "metadata" => json!({}),
        "dependencies" => json!([]),
        "insert_before" | "insert_after" | "with_dependents" => json!(true),
        "position" | "max_depth" => json!(0),
        _ if is_text(name) => json!("-"),
        _ => json!(1),
    }
}
