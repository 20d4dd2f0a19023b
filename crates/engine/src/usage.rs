//! What sessions at rest have used of their budgets, for lists and exports.

use bcc_lang::message::message::Joint;
use bcc_lang::message::message::Message;
use serde_json::{Value, json};

use bcc_runtime::program::resource::{Resource, ResourceUse};
use bcc_runtime::run::head::Head;
use bcc_store::rows::SessionRow;

/// The field of an export that holds how much of this was used.
const fn field(resource: Resource) -> &'static str {
    match resource {
        Resource::Minutes => "active_ms",
        Resource::Turns | Resource::ModelCalls | Resource::Tokens => resource.name(),
    }
}

/// What was used, and the limits that there are, as the values `used` and `budget` of an export. Null when the head of the
/// session cannot be read.
pub fn used(row: &SessionRow) -> (Value, Value) {
    let Ok(head) = serde_json::from_str::<Head>(&row.head) else { return (Value::Null, Value::Null) };
    let used = head.spent().map(|spent| (field(spent.resource).to_owned(), Value::from(spent.used)));
    (Value::Object(used.into_iter().collect()), json!(head.budget))
}

/// The same in words, from the `session` of an export: `12 of 200 turns, 14 model calls, …`.
pub fn told(session: &Value) -> Message {
    let number = |part: &str, name: &str| session.get(part)?.get(name)?.as_u64();
    let spent = Resource::ALL.iter().filter_map(|resource| {
        let used = number("used", field(*resource))?;
        let limit = number("budget", resource.name()).map(|limit| limit.saturating_mul(resource.unit()));
        Some(ResourceUse { resource: *resource, used, limit }.told())
    });
    Message::list(Joint::Comma, spent)
}
