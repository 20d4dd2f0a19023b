//! Compares the schemas for editors with the reader: the same fields and the same limits. Valid scripts match the schema, and
//! scripts with mistakes of shape do not.

use crate::diagnostic_page;
use bcc_lang::message::language::Language;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bcc_authoring::schemas::document;
use bcc_check::diagnostics::DIAGNOSTICS;
use bcc_lang::schema::assemble::SchemaDocument;
use bcc_lang::schema::compiled::Compiled;
use bcc_lang::script::findings::Findings;
use bcc_lang::script::read;
use bcc_lang::source::compose::parse;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::text::SourceFile;
use diagnostic_page::{Example, Parts};
use regex::Regex;
use serde_json::{Map, Value, json};

/// Diagnostics about the shape of a document, which a schema can detect.
const SHAPE: [&str; 14] = [
    "conflicting-fields",
    "empty-list",
    "foreign-document",
    "invalid-id",
    "invalid-name",
    "missing-key",
    "not-a-choice",
    "not-a-session",
    "older-engine",
    "oldest-nesting",
    "out-of-range",
    "unknown-exit-reason",
    "unknown-key",
    "unknown-kind",
];

/// Diagnostics of which a schema detects some: a list where a string should be, but not a value that its own `type` rejects; a kind
/// of a later release, but not a later field of a kind.
const SOMETIMES: [&str; 4] = ["wrong-type", "reserved-output", "reply-shape", "unknown-scheme"];

/// Cases with a diagnostic of [`SHAPE`] that the schema accepts. A case of a page is named by its slug and its number.
const SCHEMA_ACCEPTS: [&str; 2] = [
    // A schema cannot require that a value is one of the `enum` next to it.
    "a-declared-value-does-not-fit",
    "not-a-choice 3",
];

fn root() -> &'static Path {
    Path::new(crate::ROOT)
}

/// The document as a value; `None` if it is not valid YAML.
fn value(bytes: &[u8]) -> Option<Value> {
    let text = std::str::from_utf8(bytes).ok()?;
    let parsed = parse(&Arc::new(SourceFile::new("a.yaml", text)));
    let sound = !parsed.diagnostics.iter().any(Diagnostic::is_error);
    parsed.root.filter(|_| sound).map(|root| root.to_json())
}

fn yaml_files(folder: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join(folder)).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    files.sort();
    files
}

#[test]
fn every_sound_script_matches_the_schema() {
    crate::at_root();
    let (script, any) = (document(SchemaDocument::Script), document(SchemaDocument::Any));
    let (script, any) = (Compiled::new(&script).unwrap(), Compiled::new(&any).unwrap());
    let mut sound: Vec<(String, Value)> = Vec::new();
    for folder in ["scripts", "tests/scripts/ok"] {
        for file in yaml_files(folder) {
            sound.push((file.display().to_string(), value(&fs::read(&file).unwrap()).unwrap()));
        }
    }
    for page in DIAGNOSTICS {
        let scripts = |example: &Example| example.files[0].0 == Example::SCRIPT;
        for example in Parts::of(page.text(Language::English)).unwrap().right.into_iter().filter(scripts) {
            sound.push((format!("the right example of {}", page.slug), value(&example.files[0].1).unwrap()));
        }
    }
    assert!(sound.len() > 50, "only {} scripts", sound.len());
    for (name, sound) in sound {
        let session = sound.get("session").is_some();
        assert!(!session || script.is_valid(&sound), "{name}: {:?}", script.violations(&sound));
        assert!(any.is_valid(&sound), "{name}: {:?}", any.violations(&sound));
    }
}

#[test]
fn every_sound_conversation_test_matches_the_schema() {
    crate::at_root();
    let test = Compiled::new(&document(SchemaDocument::Test)).unwrap();
    let files = ["tests/test_runner/passes", "scripts/tests"].into_iter().flat_map(yaml_files);
    let mut count = 0;
    for file in files {
        let Some(sound) = value(&fs::read(&file).unwrap()).filter(|sound| sound.get("test").is_some()) else {
            continue;
        };
        assert!(test.is_valid(&sound), "{}: {:?}", file.display(), test.violations(&sound));
        count += 1;
    }
    assert!(count > 50, "only {count} tests");
}

#[test]
fn a_script_does_not_match_the_schema_only_if_it_has_mistakes_of_shape() {
    crate::at_root();
    let script = Compiled::new(&document(SchemaDocument::Script)).unwrap();
    let rule = Regex::new(r"(?m)^error\[([a-z-]+)\]").unwrap();
    let (mut rejected, mut accepted, mut problems) = (0, 0, String::new());
    let mut compare = |name: &str, rules: &BTreeSet<&str>, value: &Value| {
        if rules.iter().any(|rule| SOMETIMES.contains(rule)) && !rules.iter().any(|rule| SHAPE.contains(rule)) {
            return;
        }
        let detectable = rules.iter().any(|rule| SHAPE.contains(rule)) && !SCHEMA_ACCEPTS.contains(&name);
        let violations = script.violations(value);
        if violations.is_empty() == detectable {
            problems += &format!("{name} {rules:?}: {violations:?}\n");
        }
        if detectable { rejected += 1 } else { accepted += 1 }
    };
    for file in yaml_files("tests/scripts/err") {
        let Some(value) = value(&fs::read(&file).unwrap()) else { continue };
        let report = fs::read_to_string(file.with_extension("snap")).unwrap();
        let rules: BTreeSet<&str> = rule.captures_iter(&report).map(|found| found.get(1).unwrap().as_str()).collect();
        compare(&file.file_stem().unwrap().to_string_lossy(), &rules, &value);
    }
    for page in DIAGNOSTICS {
        for (number, example) in (1..).zip(Parts::of(page.text(Language::English)).unwrap().wrong) {
            let other = |value: &Value| ["test", "technique_id"].iter().any(|root| value.get(root).is_some());
            let Some(value) = value(&example.files[0].1).filter(|value| !other(value)) else { continue };
            compare(&format!("{} {number}", page.slug), &BTreeSet::from([page.slug]), &value);
        }
    }
    assert!(problems.is_empty(), "the schema and the check disagree:\n{problems}");
    assert!(rejected > 30 && accepted > 20, "{rejected} refused, {accepted} accepted");
}

/// A sample of a type of document. Together, the samples contain each mapping that is not specific to an action kind once.
fn sample(document: &str) -> Value {
    let actions = json!([{ "action_type": "ai_say", "action_id": "a", "config": { "content": "x" } }]);
    match document {
        "skill" => json!({ "skill": { "skill_id": "k", "actions": actions } }),
        "technique" => json!({ "technique_id": "k", "topic": { "actions": actions } }),
        "test" => json!({
            "test": "x",
            "script": "a.yaml",
            "user": { "persona": "x" },
            "dialogue": [{ "expect": { "status": "completed" } }, { "ai": { "contains": "x" } }],
        }),
        _ => json!({ "session": {
            "session_id": "s",
            "history": { "messages": 5 },
            "declare": [{ "var": "caregivers", "type": "list" }],
            "budget": { "turns": 5 },
            "triggers": [{ "trigger_id": "g", "when": "true", "insert": "k" }],
            "skills": [{ "skill_id": "k", "actions": actions }],
            "on_exit": { "off_topic": { "insert": "k" }, "user_blocked": { "then": { "goto": "t" } } },
            "phases": [{ "phase_id": "p", "topics": [{
                "topic_id": "t",
                "strategy": { "text": "x" },
                "for_each": { "in": "caregivers", "as": "caregiver" },
                "actions": actions,
            }] }],
        } }),
    }
}

/// A mapping with its own fields: the sample that contains it, its place there, and the schema definition that describes it.
struct Level {
    sample: &'static str,
    place: &'static str,
    definition: &'static str,
}

fn levels() -> Vec<Level> {
    let level = |sample, place, definition| Level { sample, place, definition };
    vec![
        level("session", "", "script_document"),
        level("session", "/session", "session"),
        level("session", "/session/history", "history"),
        level("session", "/session/declare/0", "declaration"),
        level("session", "/session/budget", "budget"),
        level("session", "/session/triggers/0", "trigger"),
        level("session", "/session/skills/0", "skill"),
        level("session", "/session/on_exit/off_topic", "route_steps"),
        level("session", "/session/on_exit/user_blocked/then", "goto"),
        level("session", "/session/phases/0", "phase"),
        level("session", "/session/phases/0/topics/0", "topic"),
        level("session", "/session/phases/0/topics/0/strategy", "strategy_table"),
        level("session", "/session/phases/0/topics/0/for_each", "for_each"),
        level("session", "/session/phases/0/topics/0/actions/0", "action"),
        level("skill", "", "skill_document"),
        level("technique", "", "technique_document"),
        level("technique", "/topic", "technique_topic"),
        level("test", "", "test_document"),
        level("test", "/dialogue/0", "dialogue_step"),
        level("test", "/dialogue/0/expect", "expect"),
        level("test", "/dialogue/1/ai", "wording"),
        level("test", "/user", "simulated_person"),
    ]
}

/// The diagnostics of the reader for a document.
fn read_diagnostics(document: &Value) -> Vec<Diagnostic> {
    // JSON is YAML.
    let file = Arc::new(SourceFile::new("a.yaml", document.to_string()));
    let findings = Findings::new();
    let _ = read::document(&file, &parse(&file).root.unwrap(), &findings);
    findings.into_vec()
}

impl Level {
    /// The sample with the mapping changed.
    fn with(&self, change: impl FnOnce(&mut Map<String, Value>)) -> Value {
        let mut document = sample(self.sample);
        change(document.pointer_mut(self.place).unwrap().as_object_mut().unwrap());
        document
    }

    /// The fields that the reader lists in its help for an unknown field of this mapping. It lists none where it gives other help,
    /// and omits fields of later releases.
    fn listed(&self) -> BTreeSet<String> {
        let found = read_diagnostics(&self.with(|mapping| drop(mapping.insert("zzzzzzzz".into(), json!(1)))));
        let unknown = found.iter().find(|found| found.message.to_string().contains("zzzzzzzz"));
        let unknown = unknown.unwrap_or_else(|| panic!("{} takes any field", self.definition));
        let help = unknown.help.as_ref().unwrap().to_string();
        let list = help.split_once("allowed here: ");
        let list = list.map_or("", |(_, list)| list.split(';').next().unwrap());
        list.split(", ").filter(|name| !name.is_empty()).map(str::to_owned).collect()
    }

    /// Whether the reader knows a field of this name.
    fn knows(&self, name: &str) -> bool {
        let found = read_diagnostics(&self.with(|mapping| drop(mapping.insert(name.into(), Value::Null))));
        let unknown = format!("has no field `{name}`");
        !found.iter().any(|found| found.message.to_string().contains(&unknown))
    }

    /// The schema definition of the mapping.
    fn schema<'s>(&self, schema: &'s Value) -> &'s Value {
        schema.pointer(&format!("/$defs/{}", self.definition)).unwrap()
    }

    /// The properties of the mapping, without deprecated ones, which are not compared.
    fn described(&self, schema: &Value) -> BTreeMap<String, Value> {
        let properties = self.schema(schema)["properties"].as_object().unwrap().clone();
        properties.into_iter().filter(|(_, property)| property["deprecated"] != true).collect()
    }
}

#[test]
fn the_schema_offers_the_fields_that_the_reader_knows_and_no_others() {
    let schema = document(SchemaDocument::Any);
    let mut listed = 0;
    for level in levels() {
        let described: BTreeSet<String> = level.described(&schema).into_keys().collect();
        let known = level.listed();
        let missing: Vec<&String> = known.difference(&described).collect();
        assert!(missing.is_empty(), "`{}` of schemas/parts/ lacks {missing:?}", level.definition);
        for name in &described {
            assert!(level.knows(name), "`{}` of schemas/parts/ has {name}, which nobody reads", level.definition);
        }
        listed += known.len();
    }
    assert!(listed > 80, "only {listed} fields compared");
}

#[test]
fn the_schema_requires_the_fields_that_the_reader_requires() {
    let schema = document(SchemaDocument::Any);
    for level in levels() {
        // What is required unless another field makes it unnecessary is required here: the mapping has no such field.
        let found = level.schema(&schema);
        let required = [&found["required"], &found["else"]["required"], &found["oneOf"][0]["required"]];
        let required = required.into_iter().filter_map(Value::as_array).flatten();
        let required: BTreeSet<&str> = required.filter_map(Value::as_str).collect();
        for name in level.described(&schema).keys() {
            // Without its root key it is another type of document.
            if level.place.is_empty() && ["skill", "technique_id", "test"].contains(&name.as_str()) {
                continue;
            }
            let found = read_diagnostics(&level.with(|mapping| drop(mapping.remove(name))));
            let missed = found.iter().any(|found| found.message.to_string().ends_with(&format!("needs `{name}`")));
            assert_eq!(missed, required.contains(name.as_str()), "{}: {name}", level.definition);
        }
    }
}

/// Values at and beyond the limits of a property, each with whether the schema accepts it.
fn samples(property: &Value) -> Vec<(Value, bool)> {
    let mut samples = Vec::new();
    if let Some(min) = property["minimum"].as_i64() {
        samples.extend([(json!(min), true), (json!(min - 1), false), (json!("many"), false)]);
    }
    if let Some(max) = property["maximum"].as_i64() {
        samples.extend([(json!(max), true), (json!(max + 1), false)]);
    }
    if let Some(choices) = property["enum"].as_array() {
        samples.extend(choices.iter().map(|choice| (choice.clone(), true)));
        samples.push((json!("none of them"), false));
    }
    if property["type"] == "boolean" {
        samples.extend([(json!(true), true), (json!(false), true), (json!("perhaps"), false)]);
    }
    if property["type"] == "array" {
        samples.extend([(json!("a text"), false), (json!({ "a": "mapping" }), false)]);
        if property["minItems"] == 1 {
            samples.push((json!([]), false));
        }
    }
    if property["type"] == json!(["string", "number", "boolean"]) {
        samples.extend([
            (json!("x"), true),
            (json!(7), true),
            (json!([]), false),
            (json!({}), false),
            (json!(null), false),
        ]);
    }
    samples
}

#[test]
fn the_schema_and_the_reader_accept_the_same_values() {
    let schema = document(SchemaDocument::Any);
    let compiled = Compiled::new(&schema).unwrap();
    let mut compared = 0;
    for level in levels() {
        for (name, property) in level.described(&schema) {
            // A rule of the check decides whether the reason exists.
            if name == "exit_reason" {
                continue;
            }
            let definition = property["$ref"].as_str().and_then(|to| schema.pointer(&to[1..]));
            for (value, accepted) in samples(definition.unwrap_or(&property)) {
                let document = level.with(|mapping| drop(mapping.insert(name.clone(), value.clone())));
                let found = read_diagnostics(&document);
                let rejection = found.iter().find(|found| SHAPE.contains(&found.rule) || found.rule == "wrong-type");
                let place = format!("{} `{name}: {value}`", level.definition);
                assert_eq!(rejection.is_none(), accepted, "{place}: the reader says {rejection:?}");
                assert_eq!(compiled.is_valid(&document), accepted, "{place}: the schema");
                compared += 1;
            }
        }
    }
    assert!(compared > 200, "only {compared} values compared");
}
