//! Skills as written: actions that other scripts call (docs/language.md "The file").

use crate::message::msg;
use std::sync::Arc;

use crate::script::declare::{Declared, declare_list, variable_name};
use crate::script::fields::{Fields, shortened};
use crate::script::findings::Findings;
use crate::script::read::{id, items, topic};
use crate::script::script::{RawAction, WrittenTopic};
use crate::source::diagnostic::Diagnostic;
use crate::source::span::{Span, Spanned};
use crate::source::text::SourceFile;
use crate::source::yaml::YamlNode;

#[derive(Clone, Debug)]
pub struct WrittenSkill {
    /// `skill_id`, or the legacy `technique_id`.
    pub id: Spanned<String>,
    /// `inputs`: declarations; the caller must set those without a value.
    pub inputs: Vec<Declared>,
    /// `outputs`: the names that the caller may take.
    pub outputs: Vec<Spanned<String>>,
    pub actions: Vec<RawAction>,
    /// `topics`: in place of `actions`, for a task that has parts.
    pub topics: Vec<WrittenTopic>,
    pub span: Span,
}

/// An item of `skills` of a script.
#[derive(Clone, Debug)]
pub enum SkillItem {
    Inline(Box<WrittenSkill>),
    /// The path of a skill's file, relative to the script.
    Path(Spanned<String>),
}

pub fn skill(node: &YamlNode, fields: &Fields<'_>) -> Option<WrittenSkill> {
    let inner = fields.inner(node, "a skill")?;
    let id = id(&inner, "skill_id");
    for name in ["skill_name", "description", "skill_goal"] {
        inner.ignore(name);
    }
    let inputs = declare_list(&inner, "inputs");
    let outputs = outputs(&inner);
    let topics = if inner.has_field("topics") { items(&inner, "topics", skill_topic) } else { vec![] };
    let actions = match inner.has("topics") {
        true if inner.has("actions") => {
            let span = inner.entry("actions").map_or(node.span, |entry| entry.key.span);
            let help = "keep one of them; the actions can be a topic of their own";
            inner.error("conflicting-fields", "a skill has both `actions` and `topics`", span, help);
            items(&inner, "actions", crate::script::read::action)
        }
        true => vec![],
        false => items(&inner, "actions", crate::script::read::action),
    };
    inner.finish();
    Some(WrittenSkill { id, inputs, outputs, actions, topics, span: node.span })
}

/// Reads a topic of a skill. What a topic has only in a session is reported.
fn skill_topic(node: &YamlNode, file: &Arc<SourceFile>, findings: &Findings) -> Option<WrittenTopic> {
    let read = topic(node, file, findings)?;
    let refuse = |field: &str, span: Span, why: &'static str| {
        let message = msg!("a topic of a skill cannot have `{field}`");
        findings.report(Diagnostic::error("unknown-key", message, file, span).with_help(why));
    };
    for (field, why) in SESSION_FIELDS {
        let entries = node.as_mapping().unwrap_or_default();
        for entry in entries.iter().filter(|entry| entry.key.value == field) {
            refuse(field, entry.key.span, why);
        }
    }
    if read.strategy.as_ref().is_some_and(|strategy| strategy.orchestration) {
        let why = "plans change the topics of a session, not those of a skill: remove it";
        refuse("orchestration", read.id.span, why);
    }
    Some(read)
}

/// The fields that only a topic of a session has, each with what to do instead.
const SESSION_FIELDS: [(&str, &str); 5] = [
    ("for_each", "call the skill from a topic with `for_each`, once for each element"),
    (
        "finally",
        "write the `finally` in the topic that calls the skill, or put its actions into the last topic of the skill",
    ),
    ("on_change", "a skill has variables of its own: write the route in the script that calls the skill"),
    ("time_budget", "a skill takes the time of the topic that calls it: write it there"),
    ("priority", "only a topic of a session is skipped when time is short: give this one a `condition`"),
];

/// Reads a file in the legacy form: `technique_id` and `topic` at its root.
pub fn technique(fields: &Fields<'_>) -> Option<WrittenSkill> {
    let id = id(fields, "technique_id");
    for name in ["technique_name", "description"] {
        fields.ignore(name);
    }
    let mut inputs = declare_list(fields, "inputs");
    let outputs = outputs(fields);
    let topic = fields.required("topic")?;
    let inner = fields.inner(topic, "`topic`")?;
    for name in ["topic_id", "topic_name", "topic_goal", "strategy"] {
        inner.ignore(name);
    }
    inputs.extend(declare_list(&inner, "declare"));
    let actions = items(&inner, "actions", crate::script::read::action);
    inner.finish();
    Some(WrittenSkill { id, inputs, outputs, actions, topics: vec![], span: topic.span })
}

fn outputs(fields: &Fields<'_>) -> Vec<Spanned<String>> {
    let read = |item: &Arc<YamlNode>| {
        let Some(scalar) = item.as_scalar() else {
            let message = msg!("an item of `outputs` must be the name of a variable, but this is {}", item.describe());
            fields.error("wrong-type", message, item.span, "write only the names, as in `outputs: [mood, reason]`");
            return None;
        };
        let name = Spanned { value: scalar.text.clone(), span: item.span };
        variable_name(&name, fields).map(|value| Spanned { value, span: item.span })
    };
    fields.list("outputs").unwrap_or_default().iter().filter_map(read).collect()
}

pub fn skills(fields: &Fields<'_>) -> Vec<SkillItem> {
    let read = |item: &Arc<YamlNode>| match item.as_scalar() {
        Some(scalar) => {
            let path = Spanned { value: scalar.text.clone(), span: item.span };
            valid_path(&path, fields).then_some(SkillItem::Path(path))
        }
        None => skill(item, fields).map(|skill| SkillItem::Inline(Box::new(skill))),
    };
    fields.list("skills").unwrap_or_default().iter().filter_map(read).collect()
}

/// Whether a path may be used: it must be relative, without `:` and NUL. The engine looks it up.
fn valid_path(path: &Spanned<String>, fields: &Fields<'_>) -> bool {
    let text = path.value.as_str();
    let valid = !text.trim().is_empty() && !text.starts_with(['/', '\\', '~']) && !text.contains(['\0', ':']);
    if !valid {
        let message = msg!("`{}` cannot be the path of a skill", shortened(text));
        let help = "write a path relative to the folder of this script, as in `../skills/comfort.yaml`";
        fields.error("invalid-name", message, path.span, help);
    }
    valid
}
