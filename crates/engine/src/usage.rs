//! How much of their budgets stored sessions have used, for lists and exports.

use bcc_lang::message::message::Joint;
use bcc_lang::message::message::Message;
use serde_json::{Value, json};

use bcc_runtime::program::resource::{Resource, ResourceUse};
use bcc_runtime::run::head::Head;
use bcc_store::rows::SessionRow;

/// The field of an export with the used amount of a resource.
const fn field(resource: Resource) -> &'static str {
    match resource {
        Resource::Minutes => "active_ms",
        Resource::Turns | Resource::ModelCalls | Resource::Tokens => resource.name(),
    }
}

/// The values `used` and `budget` of an export. Null if the head of the session cannot be read.
pub fn used(row: &SessionRow) -> (Value, Value) {
    let Ok(head) = serde_json::from_str::<Head>(&row.head) else { return (Value::Null, Value::Null) };
    let used = head.spent().map(|spent| (field(spent.resource).to_owned(), Value::from(spent.used)));
    (Value::Object(used.into_iter().collect()), json!(head.budget))
}

/// A summary of the `session` of an export: `12 of 200 turns, 14 model calls, …`.
pub fn usage_summary(session: &Value) -> Message {
    let number = |part: &str, name: &str| session.get(part)?.get(name)?.as_u64();
    let spent = Resource::ALL.iter().filter_map(|resource| {
        let used = number("used", field(*resource))?;
        let limit = number("budget", resource.name()).map(|limit| limit.saturating_mul(resource.unit()));
        Some(ResourceUse { resource: *resource, used, limit }.usage())
    });
    Message::list(Joint::Comma, spent)
}
