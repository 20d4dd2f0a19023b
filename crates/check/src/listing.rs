//! Lists of names and values for messages and help texts.

use bcc_lang::message::message::Joint;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use serde_json::Value;

use bcc_lang::script::fields::shortened;

/// The maximum number of items that a message lists.
const MAX_ITEMS: usize = 8;

/// The first names, for a help text: `a`, `b` and `c`.
pub fn and<'n>(names: impl Iterator<Item = &'n str>) -> Message {
    list(names, Message::all_of)
}

/// The first names, for a help text: `a`, `b` or `c`.
pub fn or<'n>(names: impl Iterator<Item = &'n str>) -> Message {
    list(names, Message::any_of)
}

/// The first values, for a message: `a`, `1`.
pub fn values(values: &[Value]) -> Message {
    let shown = values.iter().take(MAX_ITEMS).map(|value| match value.as_str() {
        Some(text) => code(&shortened(text)),
        None => code(&shortened(&value.to_string())),
    });
    let more = (values.len() > MAX_ITEMS).then(|| Message::text("…"));
    Message::list(Joint::Item, shown.chain(more))
}

fn code(name: &str) -> Message {
    Message::text(format!("`{name}`"))
}

fn list<'n>(names: impl Iterator<Item = &'n str>, join: impl Fn(Vec<Message>) -> Message) -> Message {
    let mut shown: Vec<Message> = names.take(MAX_ITEMS + 1).map(code).collect();
    if shown.len() > MAX_ITEMS {
        shown.truncate(MAX_ITEMS);
        shown.push(Message::text("…"));
        return Message::list(Joint::Item, shown);
    }
    if shown.is_empty() { msg!("an existing name") } else { join(shown) }
}
