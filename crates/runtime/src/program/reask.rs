//! Asking a model again (`reask`, docs/replies.md): what is wrong with its reply, and how it is told so.

use crate::program::transcript::cut_in_the_middle;
use bcc_llm::model::message::{ChatMessage, Role};
use bcc_llm::reply::coerce::{Coercion, CoercionRecord};
use bcc_llm::reply::field::Field;
use bcc_llm::reply::read::{Reply, UnreadableReply};
use bcc_llm::reply::shape::ReplyShape;

/// The most faults that a model is told of at once.
const MOST_FAULTS: usize = 20;

/// The most characters of its own reply that a model is shown again.
pub const MOST_REPLY: usize = 20_000;

/// What keeps a reply from being used as it is, a line for each fault: names of fields and what is wanted there, never a
/// value. Nothing when it can be used.
///
/// A reply that cannot be read is at fault, and so is one in which a default had to stand in for a field that must be there:
/// one of the kind's own, or a wanted output. What was read without loss, or is not needed, is no fault; nor is what stands
/// under one of the keys `unused`.
pub fn faults(
    reading: &Result<Reply, UnreadableReply>,
    cut_off: bool,
    shape: &ReplyShape,
    unused: &[&str],
) -> Vec<String> {
    let mut faults = match reading {
        // Not why: where something sensitive is wanted, a recording holds nothing of such a reply, and a replay must ask the same.
        Err(_) => vec!["it contains no readable JSON object".to_owned()],
        Ok(reply) => {
            let at_fault = |bend: &&CoercionRecord| {
                let first = bend.path.get(1..).and_then(|path| path.split('/').next()).unwrap_or_default();
                bend.bending != Coercion::Coerced && !unused.contains(&first) && must_be_there(shape.root(), &bend.path)
            };
            let told = |bend: &CoercionRecord| {
                format!("{}: {}; expected {}, found {}", bend.path, bend.bending.name(), bend.expected, bend.found)
            };
            reply.bends.iter().filter(at_fault).take(MOST_FAULTS).map(told).collect()
        }
    };
    if cut_off && !faults.is_empty() {
        faults.push("it was truncated because it was too long: write a shorter one".to_owned());
    }
    faults
}

/// Whether the schema wants something at `path`, a JSON pointer; the reply itself it always wants.
fn must_be_there(root: &Field, path: &str) -> bool {
    let mut properties = root.properties();
    let mut required = true;
    for name in path.split('/').skip(1) {
        let name = name.replace("~1", "/").replace("~0", "~");
        let Some(property) = properties.iter().find(|property| property.name == name) else { return false };
        required = property.required;
        properties = property.field.properties();
    }
    required
}

/// Adds to a prompt the reply that was given and why it is asked for again; gives the place of the reply among the messages.
pub fn ask_again(messages: &mut Vec<ChatMessage>, reply: &str, note: String) -> Option<usize> {
    // A message without any words is refused by some servers.
    let place = (!reply.trim().is_empty()).then_some(messages.len());
    if place.is_some() {
        messages.push(ChatMessage { role: Role::Assistant, content: cut_in_the_middle(reply, MOST_REPLY) });
    }
    messages.push(ChatMessage { role: Role::User, content: note });
    place
}

/// What a model is told of a reply with these faults.
pub fn note_of_faults(faults: &[String]) -> String {
    format!(
        "上面的回复不能使用。请按原来的要求重新给出完整的 JSON，不要写别的内容。\n\
         (The reply above cannot be used. Give the whole JSON again, as it was asked for, and nothing else.)\n- {}",
        faults.join("\n- ")
    )
}

/// What a model is told of a reply that called itself unsafe.
pub fn note_of_risk(reason: &str) -> String {
    format!(
        "上面的回复没有发送，因为它自称存在安全风险。请换一种安全的说法，重新给出完整的 JSON。\n\
         (The reply above was not sent, because it called itself unsafe. Give the whole JSON again, in safe words.)\n{reason}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use bcc_lang::value::declared::DeclaredType;
    use bcc_llm::reply::read::read;
    use bcc_llm::reply::shape::OutputField;
    use serde_json::json;

    fn shape() -> ReplyShape {
        let base = json!({ "type": "object", "required": ["content", "metrics"], "properties": {
            "content": { "type": "string", "default": "" },
            "metrics": { "type": "object", "required": ["a"], "properties": {
                "a": { "type": "string", "default": "-" }, "b": { "type": "string" } } },
            "note": { "type": "string", "default": "" },
        } });
        let age = OutputField { name: "age".into(), declared: Some(DeclaredType::Integer), ..OutputField::default() };
        ReplyShape::new(&base, &[age]).unwrap()
    }

    #[test]
    fn only_what_had_to_be_there_and_was_not_is_a_fault() {
        let table = [
            (r#"{"content":"x","metrics":{"a":"y"},"age":5}"#, ""),
            (r#"{"content":"x","metrics":{"a":"y"},"age":"5"}"#, ""),
            (r#"{"content":"x","metrics":{"a":"y"},"age":null,"note":5,"more":1}"#, ""),
            (r#"{"content":"x","metrics":{"a":"y","b":[]},"age":null}"#, ""),
            (r#"{"content":"x","metrics":{"a":"y"}}"#, "/age: missing; expected integer or null, found nothing"),
            (
                r#"{"content":["secret"],"metrics":{"a":null},"age":"none of your business"}"#,
                "/content: mistyped; expected string, found list|/metrics/a: mistyped; expected string, found null|/age: mistyped; expected integer or null, found string",
            ),
            ("secret", "it contains no readable JSON object"),
            ("{", "it contains no readable JSON object"),
        ];
        for (raw, expected) in table {
            let found = faults(&read(raw, &shape(), false), false, &shape(), &[]).join("|");
            assert_eq!(found, expected, "{raw}");
            assert!(!found.contains("secret") && !found.contains("business"), "{found}");
        }
        let unused = faults(&read(r#"{"content":"x"}"#, &shape(), false), false, &shape(), &["age", "metrics"]);
        assert_eq!(unused, Vec::<String>::new());
    }

    #[test]
    fn a_reply_that_was_cut_off_is_told_to_be_shorter_only_when_that_is_what_is_wrong() {
        let whole = r#"{"content":"x","metrics":{"a":"y"},"age":5}"#;
        assert_eq!(faults(&read(whole, &shape(), false), true, &shape(), &[]), Vec::<String>::new());
        assert!(faults(&read("{", &shape(), false), true, &shape(), &[]).join("").contains("write a shorter one"));
    }

    #[test]
    fn an_empty_reply_is_not_shown_again() {
        let mut messages = vec![ChatMessage { role: Role::User, content: "q".into() }];
        assert_eq!(ask_again(&mut messages, " \n", "n".into()), None);
        assert_eq!(ask_again(&mut messages, "r", "n".into()), Some(2));
        let roles: Vec<Role> = messages.iter().map(|message| message.role).collect();
        assert_eq!(roles, [Role::User, Role::User, Role::Assistant, Role::User]);
    }
}
