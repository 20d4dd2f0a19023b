//! What a plan may bring: actions of a few kinds that only talk, with texts that are never templates (docs/orchestration.md).

use std::collections::BTreeSet;

use bcc_lang::message::msg;
use serde_json::{Map, Value};

use crate::program::orchestration::edits::with_current_names;
use crate::program::orchestration::plan::PlanError;
use crate::program::program::{Program, ProgramStep, Skill};
use crate::program::route_table::RouteTable;
use bcc_lang::script::fields::shortened;
use bcc_lang::script::route_parser::RouteTarget;

/// The kinds of action that a plan may add or change.
const KINDS: [&str; 4] = ["ai_say", "ai_ask", "ai_think", "use_skill"];

/// The fields of an action beside its config; a plan sets only its kind and id.
const ACTION_FIELDS: [&str; 10] = [
    "action_type",
    "action_id",
    "config",
    "condition",
    "on_exit",
    "on_interrupted",
    "retry",
    "timeout",
    "depends_on",
    "compensate",
];

/// Text of an action that its kind does not read as a template.
const NOT_A_TEXT: &str = "extraction_prompt";

/// The start and the end of a template expression that renders as the braces between them.
const OPENING: &str = "{{ \"";
const CLOSING: &str = "\" }}";

/// An action of a plan in the form of a script: models also write `type` for `action_type`, the fields of the config beside it,
/// and no id, which is then `new_id`.
pub(crate) fn as_action(written: &Map<String, Value>, new_id: &str) -> Value {
    let mut fields = with_current_names(written);
    for (short, name) in [("type", "action_type"), ("id", "action_id")] {
        if let Some(value) = fields.shift_remove(short)
            && !fields.contains_key(name)
        {
            fields.insert(name.to_owned(), value);
        }
    }
    let mut config = match fields.shift_remove("config") {
        Some(Value::Object(config)) => config,
        None | Some(Value::Null) => Map::new(),
        Some(other) => Map::from_iter([("config".to_owned(), other)]),
    };
    let mut action = Map::new();
    for (name, value) in fields {
        if ACTION_FIELDS.contains(&name.as_str()) {
            action.insert(name, value);
        } else {
            config.entry(name).or_insert(value);
        }
    }
    let has_id = action.get("action_id").is_some_and(|id| !id.is_null() && id.as_str() != Some(""));
    if !has_id {
        action.insert("action_id".to_owned(), Value::from(new_id));
    }
    action.insert("config".to_owned(), Value::Object(config));
    Value::Object(action)
}

/// Rejects an action that is not of one of the permitted kinds.
pub(crate) fn check_kind(action: &Value) -> Result<(), PlanError> {
    let kind = action.get("action_type").and_then(Value::as_str).unwrap_or_default();
    if KINDS.contains(&kind) {
        return Ok(());
    }
    let kind = shortened(kind);
    let why = msg!("a plan can only add or change actions of the types {}, not `{kind}`", KINDS.join(", "));
    Err(PlanError::new("kind-not-permitted", why))
}

/// Turns the texts of a config into templates that render as exactly these texts.
pub(crate) fn make_literal(config: &mut Map<String, Value>) {
    for (name, value) in config.iter_mut().filter(|(name, _)| name.as_str() != NOT_A_TEXT) {
        match value {
            Value::String(text) => *text = literal(text),
            Value::Array(items) => items.iter_mut().for_each(literal_in),
            Value::Object(inputs) if name == "input" => inputs.values_mut().for_each(literal_in),
            _ => {}
        }
    }
}

fn literal_in(value: &mut Value) {
    if let Value::String(text) = value {
        *text = literal(text);
    }
}

/// A template that renders as `text`. Only braces start anything in a template, also in legacy placeholders.
pub(crate) fn literal(text: &str) -> String {
    let mut written = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find('{') {
        let (before, braces) = rest.split_at(start);
        let length = braces.find(|c| c != '{').unwrap_or(braces.len());
        let (braces, after) = braces.split_at(length);
        written.push_str(before);
        written.push_str(OPENING);
        written.push_str(braces);
        written.push_str(CLOSING);
        rest = after;
    }
    written.push_str(rest);
    written
}

/// The text of [`literal`], for a prompt.
pub(crate) fn shown(text: &str) -> String {
    let mut read = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(OPENING) {
        let (before, from) = rest.split_at(start);
        let inner = from.get(OPENING.len()..).unwrap_or_default();
        let length = inner.find(|c| c != '{').unwrap_or(inner.len());
        let (braces, after) = inner.split_at(length);
        read.push_str(before);
        match after.strip_prefix(CLOSING).filter(|_| !braces.is_empty()) {
            Some(after) => {
                read.push_str(braces);
                rest = after;
            }
            None => {
                read.push_str(OPENING);
                rest = inner;
            }
        }
    }
    read.push_str(rest);
    read
}

/// The skills of a program that a plan may use.
pub(crate) fn usable_skills(program: &Program) -> impl Iterator<Item = &str> {
    program.skills.values().filter(|skill| is_harmless(program, skill)).map(|skill| skill.id.as_str())
}

/// Rejects an action that calls a skill that no plan may use. `own` are the skills that the script has without the plan.
pub(crate) fn check_skill(step: &ProgramStep, program: &Program, own: &Program) -> Result<(), PlanError> {
    let Some(id) = step.action.skill() else { return Ok(()) };
    let skill = program.skills.get(id).filter(|_| own.skills.contains_key(id));
    if skill.is_some_and(|skill| is_harmless(program, skill)) {
        return Ok(());
    }
    let why = msg!(
        "a plan cannot use the skill `{}`: only skills of the script that just talk, with no effects outside the session and no route out of the skill",
        shortened(id)
    );
    Err(PlanError::new("skill-not-permitted", why))
}

/// Whether nothing in a skill, at any depth, has effects outside the session or decides where the conversation goes.
fn is_harmless(program: &Program, skill: &Skill) -> bool {
    let mut seen = BTreeSet::from([skill.id.as_str()]);
    let mut pending: Vec<(&Skill, &[ProgramStep])> = vec![(skill, &skill.steps)];
    while let Some((skill, steps)) = pending.pop() {
        for step in steps {
            let jumps = step.action.branches().iter().any(|branch| branch.goto.is_some());
            if !step.action.is_free_of_effects() || jumps || !stays(&step.routes) || !step.compensate.is_empty() {
                return false;
            }
            pending.extend(step.action.blocks().into_iter().map(|steps| (skill, steps.as_slice())));
            let inserted = step.routes.iter().filter_map(|(_, route)| route.insert.as_deref());
            for id in inserted.chain(step.action.skill()) {
                match (program.skills.get(id), skill.inserts.get(id)) {
                    (Some(called), _) if seen.insert(&called.id) => pending.push((called, &called.steps)),
                    (Some(_), _) => {}
                    (None, Some(single)) if seen.insert(&single.id) => {
                        pending.push((skill, std::slice::from_ref(single)))
                    }
                    (None, Some(_)) => {}
                    (None, None) => return false,
                }
            }
        }
    }
    true
}

/// Whether no route of the table leaves the list of actions.
fn stays(routes: &RouteTable) -> bool {
    let stays = |target: &RouteTarget| matches!(target, RouteTarget::Next | RouteTarget::Resume | RouteTarget::Retry);
    routes.iter().all(|(_, route)| route.then.as_ref().is_none_or(stays))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bcc_lang::template::names::TemplateNames;
    use bcc_lang::template::text::AuthorTexts;
    use bcc_lang::value::scopes::Scopes;
    use serde_json::json;

    fn rendered(text: &str) -> String {
        let mut names = TemplateNames::new(Scopes::default());
        names.set_text("x", "value");
        let mut texts = AuthorTexts::new();
        let parsed = texts.add(&literal(text)).unwrap_or_else(|error| panic!("{text}: {error}"));
        texts.render(&parsed, &names).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn a_literal_text_is_rendered_and_shown_as_it_is() {
        let long = "{{ x }} {% if x %}".repeat(500);
        for text in [
            "{{ 1 // 0 }}",
            "{x} ${x}",
            "{% for a in x %}{{ a }}{% endfor %}",
            "{# a #}{% raw %}",
            "{{ \"{\" }}",
            "{{ \"",
            long.as_str(),
        ] {
            assert_eq!(rendered(text), text);
            assert_eq!(shown(&literal(text)), text);
        }
    }

    #[test]
    fn any_short_text_can_be_literal() {
        let alphabet = ['{', '}', '%', '"', ' ', 'x'];
        let mut texts = vec![String::new()];
        for _ in 0..5 {
            texts = texts.iter().flat_map(|text| alphabet.map(|c| format!("{text}{c}"))).collect();
            for text in &texts {
                assert_eq!((&rendered(text), &shown(&literal(text))), (text, text));
            }
        }
    }

    #[test]
    fn an_action_in_the_short_form_gets_a_config_and_an_id() {
        let table = [
            (
                json!({ "type": "ai_say", "content_template": "a", "require_acknowledgment": true }),
                json!({ "action_type": "ai_say", "action_id": "new", "config": { "content": "a", "require_acknowledgment": true } }),
            ),
            (
                json!({ "action_type": "ai_ask", "id": "q", "config": { "content": "a" }, "tone": "b", "condition": "x" }),
                json!({ "action_type": "ai_ask", "action_id": "q", "config": { "content": "a", "tone": "b" }, "condition": "x" }),
            ),
        ];
        for (written, expected) in table {
            assert_eq!(as_action(written.as_object().unwrap(), "new"), expected);
        }
    }
}
