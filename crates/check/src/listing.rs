//! Names and values in a row, as messages and help texts show them.

use bcc_lang::message::message::Joint;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use serde_json::Value;

use bcc_lang::script::fields::shortened;

/// The most that a message lists.
const MOST: usize = 8;

/// Some of the names, for a help text: `a`, `b` and `c`.
pub fn and<'n>(names: impl Iterator<Item = &'n str>) -> Message {
    listed(names, Message::all_of)
}

/// Some of the names, for a help text: `a`, `b` or `c`.
pub fn or<'n>(names: impl Iterator<Item = &'n str>) -> Message {
    listed(names, Message::any_of)
}

/// Some of the values, for a message: `a`, `1`.
pub fn values(values: &[Value]) -> Message {
    let shown = values.iter().take(MOST).map(|value| match value.as_str() {
        Some(text) => code(&shortened(text)),
        None => code(&shortened(&value.to_string())),
    });
    let more = (values.len() > MOST).then(|| Message::text("…"));
    Message::list(Joint::Item, shown.chain(more))
}

fn code(name: &str) -> Message {
    Message::text(format!("`{name}`"))
}

fn listed<'n>(names: impl Iterator<Item = &'n str>, several: impl Fn(Vec<Message>) -> Message) -> Message {
    let mut shown: Vec<Message> = names.take(MOST + 1).map(code).collect();
    if shown.len() > MOST {
        shown.truncate(MOST);
        shown.push(Message::text("…"));
        return Message::list(Joint::Item, shown);
    }
    if shown.is_empty() { msg!("an existing name") } else { several(shown) }
}
