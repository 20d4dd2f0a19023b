//! The schemas for editors against the reader: the same fields, the same limits; scripts that are sound are valid, and those
//! with mistakes of shape are not.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, missing_docs)]

#[path = "support/checking.rs"]
#[allow(dead_code)] // tests/kinds.rs uses the rest of it
mod checking;
#[path = "support/diagnostic_page.rs"]
#[allow(dead_code)] // tests/diagnostics.rs uses the rest of it
mod diagnostic_page;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bcc_script::check::diagnostics::DIAGNOSTICS;
use bcc_script::engine::schemas::document;
use bcc_script::schema::assemble::Document;
use bcc_script::schema::compiled::Compiled;
use bcc_script::source::diagnostic::Diagnostic;
use bcc_script::source::text::SourceFile;
use bcc_script::source::yaml::parse;
use checking::findings;
use diagnostic_page::Parts;
use regex::Regex;
use serde_json::{Value, json};

/// Faults that lie in the shape of a document, where a schema sees them.
const SHAPE: [&str; 10] = [
    "conflicting-fields",
    "empty-list",
    "invalid-id",
    "invalid-name",
    "missing-key",
    "not-a-choice",
    "not-a-session",
    "out-of-range",
    "unknown-key",
    "unknown-kind",
];

/// Faults of which a schema sees some: a list where a text should be, but not a value that its own `type` refuses; a topic's
/// `on_exit`, but not a kind's own field that comes later.
const SOMETIMES: [&str; 5] = ["wrong-type", "reserved-output", "reply-shape", "unknown-scheme", "not-supported-yet"];

/// Cases with a fault of [`SHAPE`] that the schema lets pass. A case of a page is called by its slug and its number.
const LET_PASS: [&str; 2] = [
    // That a value is one of the `enum` beside it, a schema cannot say.
    "a-declared-value-does-not-fit",
    "not-a-choice 3",
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The document as a value; `None` when it is not YAML that could be read.
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
fn every_sound_script_is_valid() {
    let (script, any) = (document(Document::Script), document(Document::Any));
    let (script, any) = (Compiled::new(&script).unwrap(), Compiled::new(&any).unwrap());
    let mut sound: Vec<(String, Value)> = Vec::new();
    for folder in ["scripts", "tests/checks/ok"] {
        for file in yaml_files(folder) {
            sound.push((file.display().to_string(), value(&fs::read(&file).unwrap()).unwrap()));
        }
    }
    for page in DIAGNOSTICS {
        for example in Parts::of(page.text).unwrap().right {
            sound.push((format!("the right example of {}", page.slug), value(&example.files[0].1).unwrap()));
        }
    }
    assert!(sound.len() > 50, "only {} scripts", sound.len());
    for (name, sound) in sound {
        assert!(script.is_valid(&sound), "{name}: {:?}", script.violations(&sound));
        assert!(any.is_valid(&sound), "{name}: {:?}", any.violations(&sound));
    }
}

#[test]
fn a_script_is_invalid_when_its_mistakes_are_mistakes_of_shape_and_only_then() {
    let script = Compiled::new(&document(Document::Script)).unwrap();
    let rule = Regex::new(r"(?m)^error\[([a-z-]+)\]").unwrap();
    let (mut refused, mut accepted, mut problems) = (0, 0, String::new());
    let mut compare = |name: &str, rules: &BTreeSet<&str>, value: &Value| {
        if rules.iter().any(|rule| SOMETIMES.contains(rule)) && !rules.iter().any(|rule| SHAPE.contains(rule)) {
            return;
        }
        let seen = rules.iter().any(|rule| SHAPE.contains(rule)) && !LET_PASS.contains(&name);
        let violations = script.violations(value);
        if violations.is_empty() == seen {
            problems += &format!("{name} {rules:?}: {violations:?}\n");
        }
        if seen { refused += 1 } else { accepted += 1 }
    };
    for file in yaml_files("tests/checks/err") {
        let Some(value) = value(&fs::read(&file).unwrap()) else { continue };
        let report = fs::read_to_string(file.with_extension("snap")).unwrap();
        let rules: BTreeSet<&str> = rule.captures_iter(&report).map(|found| found.get(1).unwrap().as_str()).collect();
        compare(&file.file_stem().unwrap().to_string_lossy(), &rules, &value);
    }
    for page in DIAGNOSTICS {
        for (number, example) in (1..).zip(Parts::of(page.text).unwrap().wrong) {
            let Some(value) = value(&example.files[0].1) else { continue };
            compare(&format!("{} {number}", page.slug), &BTreeSet::from([page.slug]), &value);
        }
    }
    assert!(problems.is_empty(), "the schema and the check disagree:\n{problems}");
    assert!(refused > 30 && accepted > 20, "{refused} refused, {accepted} accepted");
}

/// A script in which every mapping of the frame stands once.
fn sample() -> Value {
    let action = json!({ "action_type": "ai_say", "action_id": "a", "config": { "content": "x" } });
    let skill = json!({ "skill_id": "k", "actions": [
        { "action_type": "ai_say", "action_id": "b", "config": { "content": "x" } }
    ] });
    json!({ "session": {
        "session_id": "s",
        "history": { "messages": 5 },
        "declare": [{ "var": "caregivers", "type": "list" }],
        "budget": { "turns": 5 },
        "triggers": [{ "trigger_id": "g", "when": "true", "insert": "k" }],
        "skills": [skill],
        "on_exit": { "off_topic": { "insert": "k", "then": { "goto": "t" } } },
        "phases": [{ "phase_id": "p", "topics": [{
            "topic_id": "t",
            "strategy": { "text": "x" },
            "for_each": { "in": "caregivers", "as": "caregiver" },
            "actions": [action],
        }] }],
    } })
}

/// Where each mapping stands in [`sample`], and which definition describes it; an empty one is the root.
const LEVELS: [(&str, &str); 13] = [
    ("", ""),
    ("session", "/session"),
    ("history", "/session/history"),
    ("declaration", "/session/declare/0"),
    ("phase", "/session/phases/0"),
    ("topic", "/session/phases/0/topics/0"),
    ("action", "/session/phases/0/topics/0/actions/0"),
    ("budget", "/session/budget"),
    ("trigger", "/session/triggers/0"),
    ("skill", "/session/skills/0"),
    ("route_steps", "/session/on_exit/off_topic"),
    ("strategy_table", "/session/phases/0/topics/0/strategy"),
    ("for_each", "/session/phases/0/topics/0/for_each"),
];

/// The levels that the reader is known to read. One that it learns to read is compared from then on, and may be added here.
const READ: [&str; 7] = ["", "session", "history", "declaration", "phase", "topic", "action"];

fn found(script: &Value) -> Vec<Diagnostic> {
    findings(root(), &script.to_string())
}

/// The fields that the reader asks for in the mapping at `place`, as its help for an unknown one lists them; `None` when it
/// does not read that mapping yet.
fn asked(place: &str) -> Option<BTreeSet<String>> {
    let mut script = sample();
    script.pointer_mut(place).unwrap()["zzzzzzzz"] = json!(1);
    let found = found(&script);
    let unknown = found.iter().find(|found| found.message.contains("zzzzzzzz"))?;
    let help = unknown.help.as_deref().unwrap();
    // An unknown key of an action is told where keys of its kind stand.
    let list = help.split_once("known here: ").map_or("", |(_, list)| list.split(';').next().unwrap());
    Some(list.split(", ").filter(|name| !name.is_empty()).map(str::to_owned).collect())
}

/// Whether the reader takes a field of this name, whatever it does with it.
fn knows(place: &str, name: &str) -> bool {
    let mut script = sample();
    script.pointer_mut(place).unwrap()[name] = Value::Null;
    let unknown = format!("has no field `{name}`");
    !found(&script).iter().any(|found| found.message.contains(&unknown))
}

/// What each level's mapping may hold, by the schema; older spellings are not offered and so not compared.
fn described(schema: &Value, definition: &str) -> BTreeMap<String, Value> {
    let pointer =
        if definition.is_empty() { "/properties".to_owned() } else { format!("/$defs/{definition}/properties") };
    let properties = schema.pointer(&pointer).unwrap().as_object().unwrap().clone();
    properties.into_iter().filter(|(_, property)| property["deprecated"] != true).collect()
}

#[test]
fn the_schema_offers_the_fields_of_the_tree_that_the_reader_knows_and_no_others() {
    let schema = document(Document::Script);
    let mut compared = BTreeSet::new();
    for (definition, place) in LEVELS {
        let Some(asked) = asked(place) else { continue };
        let described: BTreeSet<String> = described(&schema, definition).into_keys().collect();
        let missing: Vec<&String> = asked.difference(&described).collect();
        assert!(missing.is_empty(), "`{definition}` of schemas/parts/ lacks {missing:?}");
        for name in &described {
            assert!(
                knows(place, name),
                "`{definition}` of schemas/parts/ has `{name}`, which the reader does not know"
            );
        }
        compared.insert(definition);
    }
    for level in READ {
        assert!(compared.contains(level), "`{level}` was not compared");
    }
}

#[test]
fn the_schema_requires_in_the_tree_what_the_reader_misses() {
    let schema = document(Document::Script);
    for (definition, place) in LEVELS {
        if asked(place).is_none() {
            continue;
        }
        let at = if definition.is_empty() { String::new() } else { format!("/$defs/{definition}") };
        let required = schema.pointer(&at).unwrap()["required"].clone();
        let required: BTreeSet<&str> = required.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        for name in described(&schema, definition).keys() {
            let mut script = sample();
            let mapping = script.pointer_mut(place).unwrap().as_object_mut().unwrap();
            mapping.remove(name);
            let missed = found(&script).iter().any(|found| found.message.ends_with(&format!("needs `{name}`")));
            // That the config of a kind has required fields is for the kind to say.
            assert_eq!(missed, required.contains(name.as_str()), "{definition}: {name}");
        }
    }
}

/// Values at and beyond the limits of a property: each with whether the schema takes it.
fn samples(property: &Value) -> Vec<(Value, bool)> {
    let mut samples = Vec::new();
    if let Some(least) = property["minimum"].as_i64() {
        samples.extend([(json!(least), true), (json!(least - 1), false), (json!("many"), false)]);
    }
    if let Some(most) = property["maximum"].as_i64() {
        samples.extend([(json!(most), true), (json!(most + 1), false)]);
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
fn the_schema_and_the_reader_take_the_same_values_in_the_tree() {
    let schema = document(Document::Script);
    let compiled = Compiled::new(&schema).unwrap();
    let mut compared = 0;
    for (definition, place) in LEVELS {
        let Some(mut asked) = asked(place) else { continue };
        // Its value must be the name of a folder that is there.
        asked.remove("template_scheme");
        for (name, property) in described(&schema, definition).into_iter().filter(|(name, _)| asked.contains(name)) {
            let referred = property["$ref"].as_str().and_then(|to| schema.pointer(&to[1..]));
            for (value, taken) in samples(referred.unwrap_or(&property)) {
                let mut script = sample();
                script.pointer_mut(place).unwrap()[&name] = value.clone();
                let found = found(&script);
                let wrong = found.iter().find(|found| SHAPE.contains(&found.rule) || found.rule == "wrong-type");
                assert_eq!(wrong.is_none(), taken, "{definition} `{name}: {value}`: the reader says {wrong:?}");
                assert_eq!(compiled.is_valid(&script), taken, "{definition} `{name}: {value}`: the schema");
                compared += 1;
            }
        }
    }
    assert!(compared > 60, "only {compared} values compared");
}
