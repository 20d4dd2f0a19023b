//! Reads the operations of a reply. What cannot be read is refused by name, and the others are carried out.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use bcc_lang::source::near::near_miss;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::actions::structured::operations::{OperationGroup, OperationInfo};

/// The maximum number of operations of one reply.
const MAX_OPERATIONS: usize = 50;

/// The maximum of `retry_policy.max_retries`.
const MAX_RETRIES: u64 = 5;

/// The maximum of `retry_policy.backoff_sec`.
const MAX_BACKOFF_SECONDS: f64 = 60.0;

/// The maximum size of the parameters and of the metadata of one operation as JSON, in bytes.
const MAX_PARAMETERS_BYTES: usize = 64 * 1024;

/// The fields of an operation.
const FIELDS: [&str; 7] = ["kind", "name", "parameters", "blocking", "order", "retry_policy", "metadata"];

/// An operation that a model asks for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Instruction {
    /// Its position in the reply, from 1.
    pub number: usize,
    pub order: i64,
    pub name: String,
    pub parameters: Map<String, Value>,
    /// Whether the next one waits for it.
    pub blocking: bool,
    pub max_retries: u32,
    /// The time before the first retry, in milliseconds; it doubles with each further one.
    pub backoff_ms: u64,
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    /// Whether it was found to need a turn of its own.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_left: bool,
}

impl Instruction {
    /// Whether it calls a tool rather than one of the built-in operations.
    pub(crate) fn is_tool(&self) -> bool {
        OperationInfo::of(&self.name).is_none()
    }

    /// The entry of the operation in `metadata.actions` and in the next prompt.
    pub(crate) fn entry(&self, status: &str, field: &str, value: Value) -> Value {
        let mut entry = json!({ "order": self.order, "name": self.name, "status": status });
        if let Some(fields) = entry.as_object_mut() {
            fields.insert(field.to_owned(), value);
            if !self.metadata.is_empty() {
                fields.insert("metadata".to_owned(), Value::Object(self.metadata.clone()));
            }
        }
        entry
    }
}

/// The operations of a reply, in the order in which they run, and an entry for each that is refused.
#[derive(Debug, Default)]
pub(crate) struct ReadInstructions {
    pub instructions: Vec<Instruction>,
    pub refused: Vec<Value>,
}

/// Which operations an action permits.
pub(crate) trait PermittedOperations {
    /// Whether the built-in operation may be used.
    fn allows(&self, operation: &OperationInfo) -> bool;

    /// Whether the tool may be called.
    fn allows_tool(&self, name: &str) -> bool;

    /// All names that may be used.
    fn names(&self) -> Vec<String>;
}

/// Reads `actions`.
pub(crate) fn read_instructions(actions: &Value, permitted: &dyn PermittedOperations) -> ReadInstructions {
    let mut read = ReadInstructions::default();
    let items = actions.as_array().map(Vec::as_slice).unwrap_or_default();
    for (position, item) in items.iter().enumerate() {
        let number = position + 1;
        let result = match number > MAX_OPERATIONS {
            true => Err(msg!("a reply may have at most {MAX_OPERATIONS} operations")),
            false => instruction(item, number, permitted),
        };
        match result {
            Ok(instruction) => read.instructions.push(instruction),
            Err(why) => read.refused.push(json!({
                "order": item.get("order").cloned().unwrap_or(json!(number)),
                "name": item.get("name").cloned().unwrap_or_default(),
                "status": "refused", "error": why.to_string(),
            })),
        }
    }
    read.instructions.sort_by_key(|instruction| instruction.order);
    keep_request_alone(&mut read);
    read
}

/// A request for more context must be the only operation: the others would be written without that context.
fn keep_request_alone(read: &mut ReadInstructions) {
    let is_request = |instruction: &Instruction| {
        OperationInfo::of(&instruction.name).is_some_and(|operation| operation.group == OperationGroup::Context)
    };
    let Some(request) = read.instructions.iter().position(is_request) else { return };
    if read.instructions.len() == 1 {
        return;
    }
    let request = read.instructions.swap_remove(request);
    let why = msg!("`{}` must be the only operation of a reply; write this one again after its result", request.name);
    let others = std::mem::replace(&mut read.instructions, vec![request]);
    read.refused.extend(others.iter().map(|other| other.entry("refused", "error", why.to_string().into())));
}

fn instruction(item: &Value, number: usize, permitted: &dyn PermittedOperations) -> Result<Instruction, Message> {
    let fields = item.as_object().ok_or_else(|| Message::word("an operation must be an object"))?;
    if let Some(unknown) = fields.keys().find(|key| !FIELDS.contains(&key.as_str())) {
        return Err(match near_miss(unknown, FIELDS) {
            Some(near) => msg!("an operation has no field `{unknown}`; did you mean `{near}`?"),
            None => msg!("an operation has no field `{unknown}`; its parameters stand under `parameters`"),
        });
    }
    let name = fields.get("name").and_then(Value::as_str).map(str::trim).filter(|name| !name.is_empty());
    let name = name.ok_or_else(|| Message::word("an operation needs a `name`"))?;
    check_name(name, fields.get("kind"), permitted)?;
    let object = |field: &str| match fields.get(field) {
        None | Some(Value::Null) => Ok(Map::new()),
        Some(Value::Object(object)) if Value::Object(object.clone()).to_string().len() > MAX_PARAMETERS_BYTES => {
            Err(msg!("`{field}` is longer than {MAX_PARAMETERS_BYTES} bytes"))
        }
        Some(Value::Object(object)) => Ok(object.clone()),
        Some(_) => Err(msg!("`{field}` must be an object")),
    };
    let (max_retries, backoff_ms) = retry_policy(fields.get("retry_policy"))?;
    let order = match fields.get("order") {
        None | Some(Value::Null) => i64::try_from(number).unwrap_or(i64::MAX),
        Some(order) => whole_number(order).ok_or_else(|| Message::word("`order` must be a whole number from 1"))?,
    };
    let blocking = match fields.get("blocking") {
        None | Some(Value::Null) => true,
        Some(Value::Bool(blocking)) => *blocking,
        Some(Value::String(text)) if text.eq_ignore_ascii_case("true") => true,
        Some(Value::String(text)) if text.eq_ignore_ascii_case("false") => false,
        Some(_) => return Err(Message::word("`blocking` must be true or false")),
    };
    let (parameters, metadata) = (object("parameters")?, object("metadata")?);
    let name = name.to_owned();
    let is_left = false;
    Ok(Instruction { number, order, name, parameters, blocking, max_retries, backoff_ms, metadata, is_left })
}

/// Checks that the operation exists, is permitted, and has its own group.
fn check_name(name: &str, kind: Option<&Value>, permitted: &dyn PermittedOperations) -> Result<(), Message> {
    let group = match OperationInfo::of(name) {
        Some(operation) if permitted.allows(operation) => operation.group,
        Some(_) => return Err(msg!("the operation `{name}` is not permitted here")),
        None if permitted.allows_tool(name) => OperationGroup::Tool,
        None => {
            let names = permitted.names();
            return Err(match near_miss(name, names.iter().map(String::as_str)) {
                Some(near) => msg!("there is no operation `{name}` here; did you mean `{near}`?"),
                None => msg!("there is no operation `{name}` here; there are {}", Message::names(&names)),
            });
        }
    };
    match kind.and_then(Value::as_str) {
        Some(kind) if kind == group.name() => Ok(()),
        Some(kind) => Err(msg!("`{name}` is a `{group}` and not a `{kind}`", group = group.name())),
        None => Err(msg!("`{name}` needs its `kind`, which is `{group}`", group = group.name())),
    }
}

fn retry_policy(policy: Option<&Value>) -> Result<(u32, u64), Message> {
    let Some(policy) = policy.filter(|policy| !policy.is_null()) else { return Ok((0, 0)) };
    let number = |field: &str| policy.get(field).filter(|value| !value.is_null());
    let retries = match number("max_retries") {
        None => 0,
        Some(value) => {
            let retries = whole_number(value).and_then(|retries| u64::try_from(retries).ok());
            retries.ok_or_else(|| Message::word("`max_retries` must be a whole number from 0"))?.min(MAX_RETRIES)
        }
    };
    let seconds = match number("backoff_sec") {
        None => 0.0,
        Some(value) => value
            .as_f64()
            .or_else(|| value.as_str()?.trim().parse().ok())
            .filter(|seconds: &f64| seconds.is_finite() && *seconds >= 0.0)
            .ok_or_else(|| Message::word("`backoff_sec` must be a number from 0"))?
            .min(MAX_BACKOFF_SECONDS),
    };
    let backoff = std::time::Duration::from_secs_f64(seconds).as_millis();
    Ok((u32::try_from(retries).unwrap_or_default(), u64::try_from(backoff).unwrap_or_default()))
}

/// A whole number, also one that is written as a text or with a fraction of zero.
pub(crate) fn whole_number(value: &Value) -> Option<i64> {
    #[allow(clippy::cast_possible_truncation, reason = "it is whole and within the range that f64 represents exactly")]
    let whole = |number: f64| (number.fract() == 0.0 && number.abs() < 9e15).then_some(number as i64);
    value.as_i64().or_else(|| value.as_f64().and_then(whole)).or_else(|| value.as_str()?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    struct TestPermissions;

    impl PermittedOperations for TestPermissions {
        fn allows(&self, operation: &OperationInfo) -> bool {
            !operation.must_be_listed
        }

        fn allows_tool(&self, name: &str) -> bool {
            name == "web_search"
        }

        fn names(&self) -> Vec<String> {
            ["create_task", "web_search"].map(str::to_owned).to_vec()
        }
    }

    fn read(actions: Value) -> (Vec<(i64, String)>, Vec<String>) {
        let read = read_instructions(&actions, &TestPermissions);
        let orders = read.instructions.iter().map(|read| (read.order, read.name.clone())).collect();
        (orders, read.refused.iter().map(|entry| entry["error"].as_str().unwrap().to_owned()).collect())
    }

    #[test]
    fn operations_run_in_their_order_and_those_without_one_where_they_stand() {
        let task = |order: Value| json!({ "kind": "task_operation", "name": "create_task", "order": order });
        let search = json!({ "kind": "tool_operation", "name": "web_search", "order": "2" });
        let (orders, refused) = read(json!([task(json!(3)), search, task(Value::Null), task(json!(1.0))]));
        assert_eq!(orders.iter().map(|(order, _)| *order).collect::<Vec<_>>(), [1, 2, 3, 3]);
        assert!(refused.is_empty());
    }

    #[test]
    fn what_is_wrong_is_refused_by_name_and_the_rest_stays() {
        let good = json!({ "kind": "system_operation", "name": "help" });
        let table = [
            (json!({ "kind": "plan_operation", "name": "create_task" }), "is a `task_operation` and not"),
            (json!({ "name": "create_task" }), "needs its `kind`"),
            (json!({ "kind": "plan_operation", "name": "delete_plan" }), "not permitted here"),
            (json!({ "kind": "task_operation", "name": "creat_task" }), "did you mean `create_task`?"),
            (json!({ "kind": "tool_operation", "name": "shell" }), "there is no operation `shell`"),
            (json!({ "kind": "tool_operation" }), "needs a `name`"),
            (json!("help"), "must be an object"),
            (json!({ "kind": "tool_operation", "name": "web_search", "query": "x" }), "no field `query`"),
            (json!({ "kind": "tool_operation", "name": "web_search", "parameters": [] }), "must be an object"),
            (json!({ "kind": "tool_operation", "name": "web_search", "order": "first" }), "whole number"),
            (json!({ "kind": "tool_operation", "name": "web_search", "blocking": 3 }), "true or false"),
            (
                json!({ "kind": "tool_operation", "name": "web_search", "retry_policy": { "max_retries": -1 } }),
                "whole number from 0",
            ),
        ];
        for (wrong, why) in table {
            let (orders, refused) = read(json!([wrong, good]));
            assert_eq!(orders.len(), 1, "{wrong}");
            assert!(refused[0].contains(why), "{wrong}: {refused:?}");
        }
    }

    #[test]
    fn a_request_for_context_stands_alone() {
        let request = json!({ "kind": "context_request", "name": "request_subgraph", "parameters": { "task_id": 17 } });
        let help = json!({ "kind": "system_operation", "name": "help" });
        let (orders, refused) = read(json!([help, request]));
        assert_eq!(orders.len(), 1);
        assert_eq!(orders[0].1, "request_subgraph");
        assert!(refused[0].contains("must be the only operation"));
        assert_eq!(read(json!([request])).1, Vec::<String>::new());
    }

    #[test]
    fn retries_are_bounded() {
        let policy = json!({ "max_retries": 1000, "backoff_sec": 1e9 });
        let actions = json!([{ "kind": "tool_operation", "name": "web_search", "retry_policy": policy }]);
        let read = read_instructions(&actions, &TestPermissions);
        assert_eq!((read.instructions[0].max_retries, read.instructions[0].backoff_ms), (5, 60_000));
        let many: Vec<Value> = (0..60).map(|_| json!({ "kind": "system_operation", "name": "help" })).collect();
        let read = read_instructions(&Value::from(many), &TestPermissions);
        assert_eq!((read.instructions.len(), read.refused.len()), (50, 10));
    }
}
