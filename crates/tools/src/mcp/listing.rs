//! The tools that a server lists: read one by one, so that a wrong one does not hide the others, and bounded.

use std::collections::BTreeMap;

use bcc_lang::message::argument::ToMessage;
use bcc_lang::message::message::{Joint, Message};
use bcc_lang::message::msg;
use bcc_lang::schema::compiled::Compiled;
use bcc_runtime::effects::tools::{ToolDescription, ToolError};
use serde_json::{Map, Value};

use crate::mcp::names::{full_name, is_tool_name};
use crate::mcp::texts::{MAX_TEXT, clean_schema, cleaned};

/// The maximum number of tools of one server.
pub(crate) const MAX_TOOLS: usize = 500;

/// The maximum size of the schema of a tool, in bytes.
const MAX_SCHEMA_BYTES: usize = 64 * 1024;

/// How many problems with the tools of one server are reported.
const MAX_PROBLEMS: usize = 20;

/// How many violations of a schema are reported.
const MAX_VIOLATIONS: usize = 5;

/// The maximum length of a name in messages, in characters.
const MAX_SHOWN_NAME: usize = 60;

/// The tools of one server, by the names that the server gives them.
#[derive(Default)]
pub(crate) struct ToolList {
    tools: BTreeMap<String, ListedTool>,
    /// The tools that were left out, and why.
    pub(crate) problems: Vec<(String, Message)>,
}

pub(crate) struct ListedTool {
    pub(crate) description: ToolDescription,
    schema: Compiled,
}

impl ToolList {
    pub(crate) fn descriptions(&self) -> impl Iterator<Item = &ToolDescription> {
        self.tools.values().map(|tool| &tool.description)
    }

    pub(crate) fn get(&self, tool: &str) -> Option<&ListedTool> {
        self.tools.get(tool)
    }

    pub(crate) fn report_excess(&mut self, server: &str) {
        self.report(
            full_name(server, "*"),
            msg!("the server has more than {MAX_TOOLS} tools; the others are left out"),
        );
    }

    /// Adds a tool as the server describes it, or reports why it is left out. False if there are too many.
    pub(crate) fn add(&mut self, server: &str, tool: &Value) -> bool {
        if self.tools.len() >= MAX_TOOLS {
            return false;
        }
        if let Err((name, why)) = self.try_add(server, tool) {
            self.report(name, why);
        }
        true
    }

    fn try_add(&mut self, server: &str, tool: &Value) -> Result<(), (String, Message)> {
        let name = tool.get("name").and_then(Value::as_str).unwrap_or_default();
        let shown = full_name(server, &cleaned(name, MAX_SHOWN_NAME));
        if !is_tool_name(name) {
            let why =
                msg!("its name has characters other than ASCII letters, digits, `_`, `.` and `-`, or is too long");
            return Err((shown, why));
        }
        if self.tools.contains_key(name) {
            return Err((shown, "the server lists it twice; the first one is used".into()));
        }
        let listed = read(server, name, tool).map_err(|why| (shown, why))?;
        self.tools.insert(name.to_owned(), listed);
        Ok(())
    }

    fn report(&mut self, tool: String, why: Message) {
        if self.problems.len() < MAX_PROBLEMS {
            self.problems.push((tool, why));
        }
    }
}

fn read(server: &str, name: &str, tool: &Value) -> Result<ListedTool, Message> {
    let mut parameters = tool.get("inputSchema").cloned().unwrap_or_default();
    if !parameters.is_object() {
        return Err("the schema of its arguments is not an object".into());
    }
    if parameters.to_string().len() > MAX_SCHEMA_BYTES {
        return Err(msg!("the schema of its arguments is larger than {MAX_SCHEMA_BYTES} bytes"));
    }
    if !clean_schema(&mut parameters) {
        return Err("a property of its schema has a name with invisible characters".into());
    }
    let schema = Compiled::new(&parameters).map_err(|error| {
        let mut why = error.to_message();
        why.change_texts(&mut |text| *text = cleaned(text, MAX_TEXT));
        why
    })?;
    let text = |key: &str| tool.get(key).and_then(Value::as_str);
    let annotations = tool.get("annotations");
    let description = ToolDescription {
        name: full_name(server, name),
        description: cleaned(text("description").or_else(|| text("title")).unwrap_or_default(), MAX_TEXT),
        parameters,
        is_read_only: annotations.and_then(|hints| hints.get("readOnlyHint")).and_then(Value::as_bool).unwrap_or(false),
    };
    Ok(ListedTool { description, schema })
}

impl ListedTool {
    /// Checks the arguments of a call.
    pub(crate) fn check(&self, arguments: &Map<String, Value>) -> Result<(), ToolError> {
        let violations = self.schema.violations(&Value::Object(arguments.clone()));
        if violations.is_empty() {
            return Ok(());
        }
        let shown = violations.into_iter().take(MAX_VIOLATIONS).map(|violation| {
            let at = Message::text(cleaned(&violation.path, MAX_SHOWN_NAME));
            if at.is_empty() { violation.message } else { Message::list(Joint::Colon, [at, violation.message]) }
        });
        let why = Message::list(Joint::Semicolon, shown);
        Err(ToolError::InvalidArguments { tool: self.description.name.clone(), why })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn listed(tools: &[Value]) -> ToolList {
        let mut list = ToolList::default();
        assert!(tools.iter().all(|tool| list.add("s", tool)));
        list
    }

    #[test]
    fn tools_are_read_one_by_one_and_wrong_ones_are_left_out() {
        let object = json!({ "type": "object" });
        let large = json!({ "type": "object", "title": "x", "enum": ["y".repeat(MAX_SCHEMA_BYTES)] });
        let list = listed(&[
            json!({ "name": "good", "description": "a\u{202e}b", "inputSchema": object, "annotations": { "readOnlyHint": true } }),
            json!({ "name": "plain", "title": "T", "inputSchema": object }),
            json!({ "name": "good", "inputSchema": object }),
            json!({ "name": "b\u{202e}ad", "inputSchema": object }),
            json!({ "name": "no_schema" }),
            json!({ "name": "text", "inputSchema": "object" }),
            json!({ "name": "wrong", "inputSchema": { "type": "nothing" } }),
            json!({ "name": "remote", "inputSchema": { "$ref": "https://example.com/a.json" } }),
            json!({ "name": "large", "inputSchema": large }),
            json!({ "name": "hidden", "inputSchema": { "properties": { "a\u{200b}": {} } } }),
            json!(7),
        ]);
        let found: Vec<(&str, &str, bool)> =
            list.descriptions().map(|tool| (&*tool.name, &*tool.description, tool.is_read_only)).collect();
        assert_eq!(found, [("mcp.s.good", "ab", true), ("mcp.s.plain", "T", false)]);
        let problems: Vec<String> = list.problems.iter().map(|(tool, why)| format!("{tool}: {why}")).collect();
        assert_eq!(problems.len(), 9, "{problems:#?}");
        for (problem, part) in problems.iter().zip([
            "mcp.s.good: the server lists it twice",
            "mcp.s.bad: its name has characters",
            "mcp.s.no_schema: the schema of its arguments is not an object",
            "mcp.s.text: the schema of its arguments is not an object",
            "mcp.s.wrong: not a usable JSON Schema at `/type`",
            "mcp.s.remote: not a usable JSON Schema",
            "mcp.s.large: the schema of its arguments is larger",
            "mcp.s.hidden: a property of its schema",
            "mcp.s.: its name",
        ]) {
            assert!(problem.contains(part), "{problem}");
        }
    }

    #[test]
    fn the_number_of_tools_is_limited() {
        let mut list = ToolList::default();
        let tool = |number: usize| json!({ "name": format!("t{number}"), "inputSchema": {} });
        assert_eq!((0..MAX_TOOLS + 9).filter(|number| list.add("s", &tool(*number))).count(), MAX_TOOLS);
    }

    #[test]
    fn arguments_are_checked_without_repeating_them() {
        let schema = json!({ "type": "object", "required": ["a"], "properties": { "a": { "type": "integer" } } });
        let list = listed(&[json!({ "name": "t", "inputSchema": schema })]);
        let tool = list.get("t").unwrap();
        assert_eq!(tool.check(json!({ "a": 1 }).as_object().unwrap()), Ok(()));
        let error = tool.check(json!({ "a": "secret" }).as_object().unwrap()).unwrap_err().to_string();
        assert!(
            error.starts_with("the arguments for `mcp.s.t` are not valid: /a: ") && !error.contains("secret"),
            "{error}"
        );
    }
}
