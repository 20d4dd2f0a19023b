//! Checks the arguments of a call against the JSON Schema of its tool.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use bcc_lang::message::message::{Joint, Message};
use bcc_lang::message::msg;
use bcc_lang::schema::compiled::{Compiled, Violation};
use bcc_lang::source::near::near_miss;
use bcc_runtime::effects::tools::{ToolDescription, ToolError};
use serde_json::{Map, Value};

/// The number of schemas that are kept compiled.
const MAX_COMPILED: usize = 256;

/// The number of mistakes that one message names.
const MAX_NAMED: usize = 5;

/// The compiled schemas of tools by name. A tool whose schema changed is compiled again.
#[derive(Default)]
pub struct ArgumentChecks {
    compiled: Mutex<BTreeMap<String, (Value, Compiled)>>,
}

impl ArgumentChecks {
    /// Checks the arguments of a call.
    ///
    /// # Errors
    /// `InvalidArguments`, which names what is wrong; `Unavailable` if the schema of the tool cannot be used.
    pub fn check(&self, tool: &ToolDescription, arguments: &Map<String, Value>) -> Result<(), ToolError> {
        let schema = self.compiled(tool)?;
        let violations = schema.violations(&Value::Object(arguments.clone()));
        if violations.is_empty() {
            return Ok(());
        }
        let mut named = Vec::new();
        for violation in &violations {
            match violation.keyword.as_str() {
                "additionalProperties" if violation.path.is_empty() => named.extend(unknown(tool, arguments)),
                _ => named.push(located(violation)),
            }
        }
        named.truncate(MAX_NAMED);
        Err(ToolError::InvalidArguments { tool: tool.name.clone(), why: Message::list(Joint::Semicolon, named) })
    }

    fn compiled(&self, tool: &ToolDescription) -> Result<Compiled, ToolError> {
        let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((schema, known)) = compiled.get(&tool.name)
            && *schema == tool.parameters
        {
            return Ok(known.clone());
        }
        let new = Compiled::new(&tool.parameters).map_err(|error| ToolError::Unavailable {
            tool: tool.name.clone(),
            why: msg!("the schema of its arguments cannot be used: {error}"),
        })?;
        if compiled.len() >= MAX_COMPILED {
            compiled.clear();
        }
        compiled.insert(tool.name.clone(), (tool.parameters.clone(), new.clone()));
        Ok(new)
    }
}

/// The mistake with its place, unless it is that of the arguments as a whole.
fn located(violation: &Violation) -> Message {
    match violation.path.as_str() {
        "" => violation.message.clone(),
        path => {
            let path = path.trim_start_matches('/').replace("~1", "/").replace("~0", "~");
            Message::list(Joint::Colon, [Message::text(format!("`{path}`")), violation.message.clone()])
        }
    }
}

/// The arguments that the schema does not name.
fn unknown(tool: &ToolDescription, arguments: &Map<String, Value>) -> Vec<Message> {
    let known: Vec<&str> = match tool.parameters.get("properties") {
        Some(Value::Object(properties)) => properties.keys().map(String::as_str).collect(),
        _ => vec![],
    };
    let unknown = arguments.keys().filter(|name| !known.contains(&name.as_str()));
    unknown
        .map(|name| match near_miss(name, known.iter().copied()) {
            Some(near) => msg!("there is no parameter `{name}`; did you mean `{near}`?"),
            None => msg!("there is no parameter `{name}`; the parameters are {}", Message::names(&known)),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn tool(parameters: Value) -> ToolDescription {
        ToolDescription { name: "search".to_owned(), description: String::new(), parameters, is_read_only: true }
    }

    fn why(checks: &ArgumentChecks, tool: &ToolDescription, arguments: Value) -> String {
        let Value::Object(arguments) = arguments else { panic!() };
        checks.check(tool, &arguments).map_or_else(|error| error.to_string(), |()| "valid".to_owned())
    }

    #[test]
    fn an_error_names_the_argument_that_is_wrong() {
        let checks = ArgumentChecks::default();
        let tool = tool(json!({
            "type": "object", "additionalProperties": false, "required": ["query"],
            "properties": { "query": { "type": "string" }, "hops": { "type": "integer", "maximum": 3 },
                            "focus": { "type": "array", "items": { "type": "string" } } },
        }));
        for (arguments, part) in [
            (json!({ "query": "a", "hops": 3 }), "valid"),
            (json!({}), "\"query\" is a required property"),
            (json!({ "query": 4711 }), "`query`: the value is not of type \"string\""),
            (json!({ "query": "a", "hops": 4 }), "`hops`: the value is greater than the maximum of 3"),
            (json!({ "query": "a", "hop": 1 }), "no parameter `hop`; did you mean `hops`?"),
            (json!({ "query": "a", "zzz": 1 }), "the parameters are `query`, `hops`, `focus`"),
            (json!({ "query": "a", "focus": ["b", 1] }), "`focus/1`: the value is not of type"),
        ] {
            let shown = why(&checks, &tool, arguments);
            assert!(shown.contains(part), "{shown}");
        }
    }

    #[test]
    fn a_schema_that_changes_is_used_from_then_on() {
        let checks = ArgumentChecks::default();
        assert_eq!(why(&checks, &tool(json!({ "type": "object" })), json!({})), "valid");
        let changed = tool(json!({ "type": "object", "required": ["path"] }));
        assert!(why(&checks, &changed, json!({})).contains("\"path\" is a required property"));
    }

    #[test]
    fn a_schema_that_cannot_be_used_is_an_error_of_the_tool() {
        for schema in [json!({ "type": "objekt" }), json!({ "$ref": "http://127.0.0.1:9/schema.json" })] {
            let error = why(&ArgumentChecks::default(), &tool(schema), json!({}));
            assert!(error.contains("the schema of its arguments cannot be used"), "{error}");
        }
    }
}
