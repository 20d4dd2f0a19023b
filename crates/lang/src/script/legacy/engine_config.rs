//! Rewrites the fields in the config of an action of the older engine: `output_variables`, `extract_to`, an `exit` that is a table.

use crate::message::msg;

use serde_json::{Map, Value};

use crate::script::legacy::engine::LegacyEngineWalk;
use crate::script::legacy::engine_action::KINDS;
use crate::script::legacy::output::as_output;
use crate::script::legacy::parts::current_key;
use crate::script::legacy::proof::verify_within;
use crate::script::lines::{indent, removal, renamed};
use crate::source::diagnostic::Edit;
use crate::source::span::Span;
use crate::source::yaml::{ScalarStyle, YamlEntry, YamlNode};

/// Edits, and the fields that the migrated config must have after them.
type ExitEdits = (Vec<Edit>, Vec<(&'static str, Value)>);

/// Fields that had an effect there and have none here. They are kept under a name of the author.
const WITHOUT_EFFECT: [&str; 5] =
    ["impedance_threshold", "topic_drift_threshold", "sample_llm_output", "test_purpose", "llm_config"];

/// Fields whose effect must be written in another way, with what does it here.
const BY_HAND: [(&str, &str); 3] = [
    ("crisis_thresholds", "a trigger does this here; to keep the field as a note, rename it to `x-crisis_thresholds`"),
    (
        "custom_conditions",
        "say in `exit` when the action ends, or route with `on_exit` and a `condition` action; to keep the field as a note, rename it to `x-custom_conditions`",
    ),
    (
        "required_variables",
        "write `required: true` in the items of `output`; to keep the field as a note, rename it to `x-required_variables`",
    ),
];

/// The config of one action.
pub(crate) struct ConfigFields<'w, 'f, 'n> {
    pub walk: &'w mut LegacyEngineWalk<'f>,
    pub kind: &'n str,
    pub span: Span,
    pub entries: &'n [YamlEntry],
}

impl ConfigFields<'_, '_, '_> {
    pub(crate) fn check(mut self) {
        // A kind of the project may have fields of these names.
        if !KINDS.contains(&self.kind) {
            return;
        }
        for entry in self.entries {
            let key = current_key(entry);
            let list = entry.value.as_sequence().is_some();
            match key.as_str() {
                "output_variables" | "extract_to" | "variables" if list => self.outputs(entry),
                "extract_to" => self.extract_to(entry),
                "exit" if entry.value.as_mapping().is_some() => self.exit_table(entry),
                "output" => self.requirements(entry),
                "ai_role" => {
                    let why = msg!("the name of the AI is `who` of the session, for all actions");
                    self.walk.report_kept(entry, self.entries, why);
                }
                "understanding_threshold" if self.kind == "ai_ask" => {
                    let why = msg!(
                        "only `ai_say` has `understanding_threshold`; say in `exit` when the question is answered"
                    );
                    self.walk.report_kept(entry, self.entries, why);
                }
                key if WITHOUT_EFFECT.contains(&key) => {
                    let why = msg!("it is kept as your own field; models judge in words here, and monitors advise");
                    self.walk.report_kept(entry, self.entries, why);
                }
                key => {
                    if let Some((_, help)) = BY_HAND.iter().find(|(name, _)| *name == key) {
                        let message =
                            msg!("`{}` is a field of an older engine and has no effect here", entry.key.value);
                        self.walk.report(entry, message, None, crate::message::message::Message::word(help));
                    }
                }
            }
        }
    }

    fn has(&self, name: &str) -> bool {
        self.entries.iter().any(|entry| current_key(entry) == name)
    }

    /// Whether the edits give the config this value in the place of `entry`.
    fn verified(&self, entry: &YamlEntry, edits: &[Edit], new: &[(&str, Value)]) -> bool {
        let mut expected = Map::new();
        for other in self.entries {
            match std::ptr::eq(other, entry) {
                true => expected.extend(new.iter().map(|(key, value)| ((*key).to_owned(), value.clone()))),
                false => {
                    expected.insert(other.key.value.clone(), other.value.to_json());
                }
            }
        }
        verify_within(self.walk.file, self.span, self.entries, edits, expected)
    }

    /// A list of names, or of `{ name, description }`: the items of `output`.
    fn outputs(&mut self, entry: &YamlEntry) {
        let free = !self.has("output") && !self.has("target_variable");
        let edits = free.then(|| self.output_edits(entry)).flatten();
        let edits = edits.filter(|(edits, items)| self.verified(entry, edits, &[("output", items.clone())]));
        let message = msg!("`{}` is a field of an older engine; here it is `{name}`", entry.key.value, name = "output");
        let by_hand = msg!("write `output:` with an item `- get: …` for each variable");
        self.walk.report(entry, message, edits.map(|(edits, _)| edits), by_hand);
    }

    fn output_edits(&self, entry: &YamlEntry) -> Option<(Vec<Edit>, Value)> {
        let file = self.walk.file;
        let flow = file.slice(entry.value.span).starts_with('[');
        let mut edits = vec![renamed(file, &entry.key, "output")];
        let mut outputs = Vec::new();
        for item in entry.value.as_sequence()? {
            if let Some(scalar) = item.as_scalar() {
                if matches!(scalar.style, ScalarStyle::Literal | ScalarStyle::Folded) || item.span.is_empty() {
                    return None;
                }
                edits.push(Edit::insert(item.span.start, if flow { "{ get: " } else { "get: " }));
                if flow {
                    edits.push(Edit::insert(item.span.end, " }"));
                }
                outputs.push(serde_json::json!({ "get": item.to_json() }));
                continue;
            }
            let mut output = Map::new();
            for field in item.as_mapping()? {
                let key = match current_key(field).as_str() {
                    "name" | "get" | "var" => "get",
                    "description" | "define" | "extraction_prompt" => "define",
                    "type" => "type",
                    "required" => "required",
                    _ => return None,
                };
                if field.key.value != key {
                    edits.push(renamed(file, &field.key, key));
                }
                output.insert(key.to_owned(), field.value.to_json());
            }
            outputs.push(Value::Object(output));
        }
        Some((edits, Value::Array(outputs)))
    }

    /// `extract_to: name`, which is the same as `target_variable: name`.
    fn extract_to(&mut self, entry: &YamlEntry) {
        let file = self.walk.file;
        let target = self.entries.iter().find(|other| current_key(other) == "target_variable");
        let edits = match target {
            Some(target) if target.value.to_json() == entry.value.to_json() => {
                removal(file, self.span, entry).map(|edit| vec![edit])
            }
            None if !self.has("output") => {
                let define = self.entries.iter().find(|other| current_key(other) == "extraction_prompt");
                as_output(file, self.span, self.entries, entry, define)
            }
            _ => None,
        };
        let message = msg!("`{}` is a field of an older engine; here it is `{name}`", entry.key.value, name = "output");
        self.walk.report(entry, message, edits, msg!("write `output:` with an item `- get: …` for each variable"));
    }

    /// `exit: { understanding_threshold: 80, has_questions: false }`. The threshold is a field of its own here, and the rest is said
    /// in words.
    fn exit_table(&mut self, entry: &YamlEntry) {
        let edits = self.exit_edits(entry).filter(|(edits, new)| {
            let new: Vec<(&str, Value)> = new.iter().map(|(key, value)| (*key, value.clone())).collect();
            self.verified(entry, edits, &new)
        });
        let message = msg!("`{}` is a table in an older engine; here it is a text", entry.key.value);
        let by_hand = msg!(
            "say in words when the action ends, as in `exit: …`; `understanding_threshold` is a field of `ai_say`, next to `exit`"
        );
        self.walk.report(entry, message, edits.map(|(edits, _)| edits), by_hand);
    }

    fn exit_edits(&self, entry: &YamlEntry) -> Option<ExitEdits> {
        let file = self.walk.file;
        let margin = indent(file, entry)?;
        let chinese = file.text().contains(|c: char| ('\u{4e00}'..='\u{9fff}').contains(&c));
        let mut new: Vec<(&'static str, Value)> = Vec::new();
        let mut lines = Vec::new();
        for field in entry.value.as_mapping()? {
            match (current_key(field).as_str(), field.value.to_json()) {
                ("understanding_threshold", threshold) if threshold.is_u64() => {
                    if self.kind != "ai_say" || self.has("understanding_threshold") {
                        return None;
                    }
                    lines.push(format!("understanding_threshold: {threshold}"));
                    new.push(("understanding_threshold", threshold));
                }
                ("has_questions", Value::Bool(false)) => {
                    let text = if chinese {
                        "对方听懂了，没有疑问"
                    } else {
                        "The person understands and has no questions"
                    };
                    lines.push(format!("exit: {text}"));
                    new.push(("exit", Value::from(text)));
                }
                _ => return None,
            }
        }
        let span = Span::new(entry.key.span.start, entry.value.span.end);
        (!lines.is_empty()).then(|| (vec![Edit::replace(span, lines.join(&format!("\n{margin}")))], new))
    }

    /// `require: 关键` in an item of `output`.
    fn requirements(&mut self, output: &YamlEntry) {
        for item in output.value.as_sequence().unwrap_or_default() {
            let Some(fields) = item.as_mapping() else { continue };
            for field in fields.iter().filter(|field| field.key.value == "require") {
                self.requirement(item, fields, field);
            }
        }
    }

    fn requirement(&mut self, item: &YamlNode, fields: &[YamlEntry], field: &YamlEntry) {
        let needed = match field.value.as_scalar().map(|scalar| scalar.text.as_str()) {
            Some("关键" | "必须" | "必填" | "true" | "critical" | "required") => Some(true),
            Some("重要" | "一般" | "可选" | "false" | "important" | "optional") => Some(false),
            _ => None,
        };
        let free = !fields.iter().any(|other| current_key(other) == "required");
        let edits = needed.filter(|_| free).and_then(|needed| {
            let edits = vec![
                renamed(self.walk.file, &field.key, "required"),
                Edit::replace(field.value.span, needed.to_string()),
            ];
            let expected = fields.iter().map(|other| match std::ptr::eq(other, field) {
                true => ("required".to_owned(), Value::Bool(needed)),
                false => (other.key.value.clone(), other.value.to_json()),
            });
            verify_within(self.walk.file, item.span, fields, &edits, expected.collect()).then_some(edits)
        });
        let message =
            msg!("`{}` is a field of an older engine; here it is `{name}`", field.key.value, name = "required");
        self.walk.report(field, message, edits, msg!("write `required: true`, or remove it"));
    }
}
