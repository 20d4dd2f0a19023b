//! The replies of the models of a test: `model` and `monitor`.
//!
//! ```yaml
//! model:
//!   ask_name:                              # an action's id; `monitor:ID` and `orchestrator:ID` are other askers
//!     - { content: 怎么称呼您？, EXIT: "NO" }   # a value
//!     - just as a model would write it      # text, sent as it is
//!     - timeout                             # an error
//!     - { http: 503, retry_after: 2 }
//!     - { cut_after: 40, reply: { content: 好的 } }
//!     - { after_ms: 500, reply: timeout }   # `reply` contains what is sent, whatever it looks like
//!   "*": [ … ]                              # all askers without their own list
//! ```

use crate::message::message::Message;
use crate::message::msg;
use std::sync::Arc;

use crate::script::fields::{Fields, is_null};
use crate::script::test::scripted_error::{KEYS, ScriptedError, TimeoutKind, scripted_error};
use crate::source::diagnostic::Diagnostic;
use crate::source::near::near_miss;
use crate::source::span::{Span, Spanned};
use crate::source::yaml::{NodeKind, ScalarStyle, YamlNode};
use crate::value::exact::ExactValue;

/// The maximum delay of a scripted model, in milliseconds: a day.
const MAX_DELAY_MS: u64 = 24 * 60 * 60 * 1000;

#[derive(Clone, Debug)]
pub enum Model {
    Scripted {
        replies: Vec<Replies>,
        /// `"*": offline`: the offline responder answers all askers without a list.
        others_offline: bool,
    },
    /// The model with this name in the project's configuration, or `offline`.
    Named(Spanned<String>),
}

#[derive(Clone, Debug)]
pub struct Replies {
    pub asker: Asker,
    pub span: Span,
    /// The replies, one per attempt.
    pub entries: Vec<WrittenReply>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Asker {
    /// All askers without their own list.
    Anyone,
    /// An action, its monitor, or the orchestrator called by its monitor.
    One {
        /// `action`, `monitor` or `orchestrator`.
        purpose: &'static str,
        action: String,
    },
}

impl Asker {
    /// The asker as written in a test.
    pub fn written(&self) -> String {
        match self {
            Self::Anyone => "*".to_owned(),
            Self::One { purpose: "action", action } => action.clone(),
            Self::One { purpose, action } => format!("{purpose}:{action}"),
        }
    }
}

/// The reply to one attempt.
#[derive(Clone, Debug)]
pub struct WrittenReply {
    pub span: Span,
    /// The round that it is for, instead of its position in the order.
    pub round: Option<u32>,
    /// Whether it is for an answered turn or an opening one, instead of its position in the order.
    pub answered: Option<bool>,
    /// The delay of the model, in milliseconds of the test's clock.
    pub after_ms: u64,
    pub sent: SentReply,
}

#[derive(Clone, Debug, PartialEq)]
pub enum SentReply {
    /// A value, sent as compact JSON; fields that a model would also have written are added with their defaults.
    Value(ExactValue),
    /// Text, sent as it is.
    Text(String),
    /// This many characters of the reply are sent, and then the connection breaks.
    Cut(u32, Box<SentReply>),
    Error(ScriptedError),
}

/// The value of `"*"` for the offline responder.
const OFFLINE: &str = "offline";

const PURPOSES: [&str; 4] = ["action", "monitor", "orchestrator", "persona"];

/// Reads `model`: a name, a list for all askers, or lists by action.
pub(crate) fn model(fields: &Fields<'_>) -> Option<Model> {
    let node = fields.take("model")?;
    match &node.kind {
        NodeKind::Scalar(scalar) if !is_null(node) => {
            Some(Model::Named(Spanned { value: scalar.text.clone(), span: node.span }))
        }
        NodeKind::Scalar(_) => None,
        _ => {
            let (replies, others_offline) = reply_lists(node, "action", fields);
            Some(Model::Scripted { replies, others_offline })
        }
    }
}

/// Reads `monitor`: lists by action, or one list for all monitors. With `off` or an empty value, no monitor starts.
pub(crate) fn monitor(fields: &Fields<'_>) -> (Vec<Replies>, bool) {
    let Some(node) = fields.take("monitor") else { return (vec![], false) };
    match node.as_scalar().map(|scalar| scalar.text.as_str()) {
        None => (reply_lists(node, "monitor", fields).0, true),
        Some("" | "off" | "false" | "~" | "null") => (vec![], false),
        Some("on" | "true") => (vec![], true),
        Some(_) => {
            let diagnostic = fields.wrong_type("monitor", "replies by action, `on` or `off`".into(), node);
            let help =
                "write `monitor: off`, or the monitors' replies, as in `ask_name: [{ intervention_needed: false }]`";
            fields.findings().report(diagnostic.with_help(help));
            (vec![], false)
        }
    }
}

/// The lists of a table, and whether the offline responder answers all other askers.
fn reply_lists(node: &Arc<YamlNode>, purpose: &'static str, fields: &Fields<'_>) -> (Vec<Replies>, bool) {
    let entries = match &node.kind {
        NodeKind::Sequence(items) => {
            let asker =
                if purpose == "monitor" { Asker::One { purpose, action: "*".to_owned() } } else { Asker::Anyone };
            return (vec![Replies { asker, span: node.span, entries: entries(items, "the list", fields) }], false);
        }
        NodeKind::Mapping(entries) => entries,
        NodeKind::Scalar(_) => return (vec![], false),
    };
    let mut lists: Vec<Replies> = Vec::new();
    let mut others_offline = false;
    for entry in entries {
        let Some(asker) = asker(&entry.key, purpose, fields) else { continue };
        if asker == Asker::Anyone && entry.value.as_scalar().is_some_and(|scalar| scalar.text == OFFLINE) {
            others_offline = true;
            continue;
        }
        let NodeKind::Sequence(items) = &entry.value.kind else {
            let message =
                msg!("the replies of `{}` must be a list, but this is {}", entry.key.value, entry.value.describe());
            let of_monitors = purpose == "action" && entry.key.value == "monitor" && entry.value.as_mapping().is_some();
            let help = match asker {
                _ if of_monitors => {
                    "write `monitor:` at the root of the test, next to `model:`, or `\"monitor:ask_name\": […]` here"
                }
                Asker::Anyone => "write the replies in order, each on its own line with `- `, or `\"*\": offline`",
                Asker::One { .. } => "write the replies in order, each on its own line with `- `",
            };
            fields.error("wrong-type", message, entry.value.span, help);
            continue;
        };
        if let Some(existing) = lists.iter().find(|list| list.asker == asker) {
            let message = msg!("`{}` already has replies", asker.written());
            let diagnostic = Diagnostic::error("duplicate-key", message, fields.file(), entry.key.span);
            let diagnostic = diagnostic.with_related("the others are here", fields.file(), existing.span);
            fields.findings().report(diagnostic.with_help("write all of them in one list, in order"));
            continue;
        }
        let entries = self::entries(items, &entry.key.value, fields);
        lists.push(Replies { asker, span: entry.key.span, entries });
    }
    (lists, others_offline)
}

fn asker(key: &Spanned<String>, default_purpose: &'static str, fields: &Fields<'_>) -> Option<Asker> {
    let Some((purpose, action)) = key.value.split_once(':') else {
        return Some(match (key.value.as_str(), default_purpose) {
            ("*", "action") => Asker::Anyone,
            (action, purpose) => Asker::One { purpose, action: action.to_owned() },
        });
    };
    let known = PURPOSES.iter().copied().find(|known| *known == purpose.trim());
    if let Some(purpose) = known {
        return Some(Asker::One { purpose, action: action.trim().to_owned() });
    }
    let message = msg!("`{}` does not ask a model", purpose.trim());
    let near = near_miss(purpose.trim(), PURPOSES);
    let help = match near {
        Some(near) => msg!("did you mean `{near}:{}`?", action.trim()),
        None => msg!("use one of {}", Message::values(PURPOSES.map(|purpose| format!("`{purpose}:ID`")))),
    };
    fields.error("not-a-choice", message, key.span, help);
    None
}

fn entries(items: &[Arc<YamlNode>], of: &str, fields: &Fields<'_>) -> Vec<WrittenReply> {
    items.iter().filter_map(|item| entry(item, of, fields)).collect()
}

fn entry(node: &Arc<YamlNode>, of: &str, fields: &Fields<'_>) -> Option<WrittenReply> {
    let reply = |sent| WrittenReply { span: node.span, round: None, answered: None, after_ms: 0, sent };
    if let Some(entries) = node.as_mapping() {
        let keys = || entries.iter().map(|entry| entry.key.value.as_str());
        if keys().next().is_some() && keys().all(|key| KEYS.contains(&key)) {
            return reply_with_options(node, of, fields);
        }
        // A field that starts with `$` is never a field of a reply.
        if let Some(entry) = entries.iter().find(|entry| entry.key.value.starts_with('$')) {
            let diagnostic = if KEYS.contains(&entry.key.value.as_str()) {
                let message = msg!("with `{}`, the reply itself goes under `reply`", entry.key.value);
                let help = "write it like this: `{ $round: 2, reply: { EXIT: \"YES\" } }`";
                Diagnostic::error("unknown-key", message, fields.file(), entry.key.span).with_help(help)
            } else {
                let message = msg!("a reply has no field `{}`", entry.key.value);
                let help = match near_miss(&entry.key.value, KEYS) {
                    Some(near) => msg!("did you mean `{near}`?"),
                    None => msg!("a field that starts with `$` must be one of `$round`, `$answered`, `$after_ms`"),
                };
                Diagnostic::error("unknown-key", message, fields.file(), entry.key.span).with_help(help)
            };
            fields.findings().report(diagnostic);
            return None;
        }
    }
    if is_null(node) {
        let message = msg!("a reply of `{of}` is empty");
        let help = "write the model's answer; for an empty text, write `\"\"`";
        fields.error("wrong-type", message, node.span, help);
        return None;
    }
    if let Some(scalar) = node.as_scalar().filter(|scalar| scalar.style == ScalarStyle::Plain) {
        match scalar.text.as_str() {
            "timeout" => return Some(reply(SentReply::Error(ScriptedError::Timeout(TimeoutKind::FirstToken)))),
            "unreachable" => return Some(reply(SentReply::Error(ScriptedError::Unreachable))),
            _ => {}
        }
    }
    Some(reply(sent(node)))
}

/// The content that is sent for a reply node.
fn sent(node: &YamlNode) -> SentReply {
    let value = node.to_exact();
    match value.as_str() {
        Some(text) => SentReply::Text(text.to_owned()),
        None => SentReply::Value(value),
    }
}

/// Reads an entry that specifies how its reply is sent, or an error instead of it.
fn reply_with_options(node: &Arc<YamlNode>, of: &str, fields: &Fields<'_>) -> Option<WrittenReply> {
    let what = msg!("a reply of `{of}`");
    let inner = fields.inner(node, what)?;
    let round = inner.integer("$round", 1..=50);
    let answered = if inner.has("$answered") { inner.boolean("$answered") } else { None };
    let ms = |name| inner.integer(name, 0..=u32::try_from(MAX_DELAY_MS).unwrap_or(u32::MAX)).map(u64::from);
    let after_ms = ms("after_ms").or_else(|| ms("$after_ms")).unwrap_or(0);
    let cut_after = inner.integer("cut_after", 0..=u32::MAX);
    let reply = inner.take("reply").map(|node| sent(node));
    let has_error_key = ["http", "timeout", "unreachable"].iter().any(|key| inner.has(key));
    let error = scripted_error(&inner);
    let sent = match (error, reply) {
        (Some(_), Some(_)) => {
            let message = "an item that simulates an error cannot have a reply";
            let help = "remove one of the two; the next attempt uses the next item of the list";
            fields.error("conflicting-fields", message, node.span, help);
            None
        }
        (Some(error), None) => Some(SentReply::Error(error)),
        (None, Some(reply)) => Some(match cut_after {
            Some(characters) => SentReply::Cut(characters, Box::new(reply)),
            None => reply,
        }),
        (None, None) => {
            if !has_error_key {
                let message = msg!("the item does not specify what to send");
                let help = "write it under `reply`, as in `{ after_ms: 500, reply: { content: 好的 } }`";
                let diagnostic = Diagnostic::error("missing-key", message, fields.file(), node.span);
                inner.report_missing(&["reply"], diagnostic.with_help(help));
            }
            None
        }
    };
    inner.finish();
    Some(WrittenReply { span: node.span, round, answered, after_ms, sent: sent? })
}
