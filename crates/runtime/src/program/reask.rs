//! Asking a model again (`reask`, docs/replies.md): the problems of its reply, and the note that describes them.

use crate::program::transcript::cut_in_the_middle;
use bcc_lang::template::language::PromptLanguage;
use bcc_lang::value::quoting::quote;
use bcc_llm::model::message::{ChatMessage, Role};
use bcc_llm::reply::coerce::{Coercion, CoercionRecord};
use bcc_llm::reply::field::Field;
use bcc_llm::reply::read::{Reply, UnreadableReply};
use bcc_llm::reply::shape::ReplyShape;

/// The maximum number of problems in one note.
const MAX_PROBLEMS: usize = 20;

/// The maximum number of characters of its own reply that a model is shown again.
pub(crate) const MAX_REPLY_CHARS: usize = 20_000;

/// The problems that prevent a reply from being used as it is, one line each: field names and what is expected there, never a
/// value. Empty if the reply can be used.
///
/// A reply has a problem if it cannot be read, or if a default had to be used for a required field: one of the kind's own, or
/// a requested output. Lossless coercions and optional fields are not problems; nor are fields under one of the keys `unused`.
pub fn reply_problems(
    reading: &Result<Reply, UnreadableReply>,
    cut_off: bool,
    shape: &ReplyShape,
    unused: &[&str],
) -> Vec<String> {
    let mut problems = match reading {
        // The cause is omitted: if sensitive outputs are requested, a recording contains nothing of such a reply, and a replay must send
        // the same prompt.
        Err(_) => vec!["it contains no readable JSON object".to_owned()],
        Ok(reply) => {
            let is_problem = |coercion: &&CoercionRecord| {
                let first = coercion.path.get(1..).and_then(|path| path.split('/').next()).unwrap_or_default();
                !matches!(coercion.kind, Coercion::Coerced | Coercion::BareList)
                    && !unused.contains(&first)
                    && is_required(shape.root(), &coercion.path)
            };
            let describe = |coercion: &CoercionRecord| {
                format!(
                    "{}: {}; expected {}, found {}",
                    coercion.path,
                    coercion.kind.name(),
                    coercion.expected,
                    coercion.found
                )
            };
            reply.coercions.iter().filter(is_problem).take(MAX_PROBLEMS).map(describe).collect()
        }
    };
    if cut_off && !problems.is_empty() {
        problems.push("it was truncated because it was too long: write a shorter one".to_owned());
    }
    problems
}

/// Whether the schema requires a value at `path`, a JSON pointer; the reply itself is always required.
fn is_required(root: &Field, path: &str) -> bool {
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

/// Adds the reply and the note to a prompt; returns the index of the reply among the messages.
pub fn ask_again(messages: &mut Vec<ChatMessage>, reply: &str, note: String) -> Option<usize> {
    // Some servers reject empty messages.
    let place = (!reply.trim().is_empty()).then_some(messages.len());
    if place.is_some() {
        messages.push(ChatMessage { role: Role::Assistant, content: cut_in_the_middle(reply, MAX_REPLY_CHARS) });
    }
    messages.push(ChatMessage { role: Role::User, content: note });
    place
}

/// The note to a model about a reply with these problems.
pub fn problems_note(problems: &[String], language: PromptLanguage) -> String {
    let request = match language {
        PromptLanguage::Zh => "上面的回复不能使用。请按原来的要求重新给出完整的 JSON，不要写别的内容。问题是：",
        PromptLanguage::En => {
            "The reply above cannot be used. Give the whole JSON again, as it was asked for, and nothing else. The problems:"
        }
    };
    format!("{request}\n- {}", problems.join("\n- "))
}

/// The note to a model that refused to answer, or whose answer a content filter removed.
pub(crate) const fn unanswered_note(language: PromptLanguage) -> &'static str {
    match language {
        PromptLanguage::Zh => {
            "上面的请求没有得到回答。如果有不该回答的内容，请在 content 中用安全、温和的话说明，并按原来的要求给出完整的 JSON。"
        }
        PromptLanguage::En => {
            "The request above was not answered. If there is something that you should not answer, say so in `content` in safe and kind words, and give the whole JSON as it was asked for."
        }
    }
}

/// The note to a model about a reply that ended an action although these required outputs have no value.
pub(crate) fn missing_note(missing: &[String], language: PromptLanguage) -> String {
    match language {
        PromptLanguage::Zh => format!(
            "上面的回复没有采用：EXIT 还不能是 YES，因为这些必需的内容还没有得到：{}。对方已经说过的，请填进对应的键；没有说过的，EXIT 用 NO，content 接着问。请重新给出完整的 JSON。",
            missing.join("、")
        ),
        PromptLanguage::En => format!(
            "The reply above was not used: EXIT cannot be YES, because these required values are still missing: {}. Fill in what the person has said; for anything they have not said, set EXIT to NO and let content ask for it. Give the whole JSON again.",
            missing.join(", ")
        ),
    }
}

/// The note to a model about a plan that was rejected.
pub(crate) fn rejected_plan_note(why: &str, language: PromptLanguage) -> String {
    let request = match language {
        PromptLanguage::Zh => {
            "上面的计划没有采用。请改正后重新给出完整的 JSON；如果不需要调整，action 用 none。原因是："
        }
        PromptLanguage::En => {
            "The plan above was rejected. Correct it and give the whole JSON again; if no change is needed, use none as the action. The reason:"
        }
    };
    format!("{request}\n- {why}")
}

/// The note to a model about a reply that marked itself as unsafe, with the reason that it gave.
pub(crate) fn risk_note(reason: &str, language: PromptLanguage) -> String {
    let request = match language {
        PromptLanguage::Zh => {
            "上面的回复没有发送，因为它自称存在安全风险。请换一种安全的说法，重新给出完整的 JSON。它写的理由是："
        }
        PromptLanguage::En => {
            "The reply above was not sent, because it called itself unsafe. Give the whole JSON again, in safe words. The reason it gave:"
        }
    };
    format!("{request}\n{}", quote(reason))
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
    fn only_missing_required_fields_are_problems() {
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
            let found = reply_problems(&read(raw, &shape(), false), false, &shape(), &[]).join("|");
            assert_eq!(found, expected, "{raw}");
            assert!(!found.contains("secret") && !found.contains("business"), "{found}");
        }
        let unused = reply_problems(&read(r#"{"content":"x"}"#, &shape(), false), false, &shape(), &["age", "metrics"]);
        assert_eq!(unused, Vec::<String>::new());
    }

    #[test]
    fn a_truncated_reply_gets_the_hint_to_be_shorter_only_if_it_has_problems() {
        let complete = r#"{"content":"x","metrics":{"a":"y"},"age":5}"#;
        assert_eq!(reply_problems(&read(complete, &shape(), false), true, &shape(), &[]), Vec::<String>::new());
        assert!(
            reply_problems(&read("{", &shape(), false), true, &shape(), &[]).join("").contains("write a shorter one")
        );
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
