//! Tests that the check, the schema and the page of each kind agree.

use crate::checking;
use std::collections::BTreeSet;
use std::path::Path;

use bcc_lang::schema::compiled::Compiled;
use bcc_runtime::actions::KINDS;
use checking::{findings, findings_report};
use serde_json::{Map, Value, json};

/// Fields that a check accepts only to warn about an older spelling: no editor should offer them.
const NOT_OFFERED: [&str; 2] = ["target_variable", "extraction_prompt"];

/// A mapping in a config that has its own fields.
struct Level {
    kind: &'static str,
    /// The JSON pointer to its schema.
    pointer: &'static str,
    /// A valid config that contains the mapping.
    config: Value,
    /// The JSON pointer to the mapping in the config.
    place: &'static str,
}

fn levels() -> Vec<Level> {
    let level = |kind, pointer, config, place| Level { kind, pointer, config, place };
    let set = json!({ "a": 1 });
    vec![
        level("ai_say", "", json!({ "content": "x" }), ""),
        level("ai_ask", "", json!({ "content": "x" }), ""),
        level("ai_ask", "/$defs/output", json!({ "content": "x", "output": [{ "get": "y" }] }), "/output/0"),
        level("collect", "", json!({ "slots": [{ "get": "y", "ask": "x" }] }), ""),
        level("collect", "/$defs/slot", json!({ "slots": [{ "get": "y", "ask": "x" }] }), "/slots/0"),
        level("ai_think", "", json!({ "content": "x" }), ""),
        level("ai_think", "/$defs/output", json!({ "content": "x", "output": [{ "get": "y" }] }), "/output/0"),
        level("ai_act", "", json!({ "content": "x" }), ""),
        level("create_plan", "", json!({ "goal": "x" }), ""),
        level("list_plans", "", json!({}), ""),
        level("execute_plan", "", json!({}), ""),
        level("delete_plan", "", json!({ "plan_id": 1 }), ""),
        level("create_task", "", json!({ "task_name": "x" }), ""),
        level("update_task", "", json!({ "task_id": 1, "name": "x" }), ""),
        level("update_task_instruction", "", json!({ "task_id": 1, "instruction": "x" }), ""),
        level("move_task", "", json!({ "task_id": 1, "new_parent_id": null }), ""),
        level("delete_task", "", json!({ "task_id": 1 }), ""),
        level("show_tasks", "", json!({}), ""),
        level("query_status", "", json!({}), ""),
        level("rerun_task", "", json!({ "task_id": 1 }), ""),
        level("decompose_task", "", json!({}), ""),
        level("request_subgraph", "", json!({ "task_id": 1 }), ""),
        level("set", "", json!({ "values": set }), ""),
        level("condition", "", json!({ "cases": [{ "when": "true", "set": set }] }), ""),
        level("condition", "/properties/cases/items", json!({ "cases": [{ "when": "true", "set": set }] }), "/cases/0"),
        level("parallel", "", branches(), ""),
        level("parallel", "/properties/branches/items", branches(), "/branches/0"),
        level("approval", "", json!({ "prompt": "x", "timeout": "1h" }), ""),
        level("approval", "/$defs/field", json!({ "prompt": "x", "form": [{ "get": "y" }] }), "/form/0"),
        level("wait", "", json!({ "for": "1h" }), ""),
        level("use_skill", "", json!({ "skill": "x" }), ""),
        level("read_file", "", json!({ "path": "x", "output": "y" }), ""),
        level("write_file", "", json!({ "path": "x", "content": "y" }), ""),
        level("command", "", json!({ "command": ["x"] }), ""),
        level("command", "/properties/simulate", json!({ "command": ["x"], "simulate": {} }), "/simulate"),
        level("tool", "", json!({ "name": "x" }), ""),
        level("behavior_loop", "", json!({ "target": "x" }), ""),
        level("add", "", json!({ "content": "x" }), ""),
        level("add", "/$defs/metadata", json!({ "content": "x", "shot_type": "action", "metadata": {} }), "/metadata"),
        level("exec", "", json!({ "codecell_id": "x" }), ""),
        level("is_thinking", "", json!({}), ""),
        level("finish_thinking", "", json!({}), ""),
        level("new_chapter", "", json!({ "content": "x" }), ""),
        level("new_chapter", "/$defs/metadata", json!({ "content": "x", "metadata": {} }), "/metadata"),
        level("new_section", "", json!({ "content": "x" }), ""),
        level("new_section", "/$defs/metadata", json!({ "content": "x", "metadata": {} }), "/metadata"),
        level("update_title", "", json!({ "title": "x" }), ""),
        level("update_workflow", "", plan(), ""),
        level("update_workflow", "/$defs/workflow", plan(), "/updated_workflow"),
        level("update_workflow", "/$defs/stage", plan(), "/updated_workflow/stages/0"),
        level("update_workflow", "/$defs/step", plan(), "/updated_workflow/stages/0/steps/0"),
        level("update_stage_steps", "", json!({ "stage_id": "x", "updated_steps": [{ "id": "y" }] }), ""),
        level(
            "update_stage_steps",
            "/$defs/step",
            json!({ "stage_id": "x", "updated_steps": [{ "id": "y" }] }),
            "/updated_steps/0",
        ),
        level("end_phase", "", json!({}), ""),
        level("next_event", "", json!({ "event_type": "x" }), ""),
        level(
            "condition",
            "/properties/else",
            json!({ "cases": [{ "when": "true", "set": set }], "else": { "set": set } }),
            "/else",
        ),
    ]
}

/// A config of `update_workflow`.
fn plan() -> Value {
    json!({ "updated_workflow": { "stages": [{ "id": "x", "steps": [{ "id": "y" }] }] } })
}

/// A config of `parallel`.
fn branches() -> Value {
    let action = json!({ "action_type": "set", "action_id": "inner", "config": { "values": { "a": 1 } } });
    json!({ "branches": [{ "id": "x", "actions": [action] }] })
}

fn schema_of(kind: &str) -> Value {
    let kind = KINDS.iter().find(|other| other.name() == kind).unwrap_or_else(|| panic!("there is no kind {kind}"));
    serde_json::from_str(kind.schema()).unwrap()
}

/// The findings of the check for one action with this config.
fn findings_text(kind: &str, config: &Value) -> String {
    let action = json!({ "action_type": kind, "action_id": "it", "config": config });
    let script = json!({ "session": { "session_id": "s", "tools": ["*"], "phases": [
        { "phase_id": "p", "topics": [{ "topic_id": "t", "actions": [action] }] }
    ] } });
    // JSON is YAML.
    let mut found = findings(Path::new(crate::ROOT), &script.to_string(), &[]);
    // Whether the template, skill or topic exists is not a property of the field's value.
    let other_rules = ["unknown-template", "unknown-skill", "unknown-target"];
    found.retain(|found| !other_rules.contains(&found.rule));
    findings_report(&found)
}

fn names(object: &Value) -> BTreeSet<String> {
    object.as_object().unwrap().keys().cloned().collect()
}

/// The fields that the check accepts in a mapping, as listed in its help for an unknown field.
fn checked_fields(level: &Level) -> BTreeSet<String> {
    let mut config = level.config.clone();
    config.pointer_mut(level.place).unwrap()["zzzzzzzz"] = json!(1);
    let text = findings_text(level.kind, &config);
    if text.contains("it has no fields at all") {
        return BTreeSet::new();
    }
    let (_, list) =
        text.split_once("allowed here: ").unwrap_or_else(|| panic!("{} {}: {text}", level.kind, level.place));
    let (list, _) = list.split_once(';').unwrap();
    list.split(", ").map(str::to_owned).filter(|name| !NOT_OFFERED.contains(&name.as_str())).collect()
}

#[test]
fn the_schema_has_exactly_the_fields_that_the_check_accepts() {
    let mut seen = BTreeSet::new();
    for level in levels() {
        let schema = schema_of(level.kind);
        let described = names(&schema.pointer(level.pointer).unwrap()["properties"]);
        assert_eq!(described, checked_fields(&level), "{} {}", level.kind, level.pointer);
        seen.insert(level.kind);
    }
    assert_eq!(seen, KINDS.iter().map(|kind| kind.name()).collect(), "a kind has no level in this test");
}

#[test]
fn the_schema_requires_the_fields_that_the_check_requires() {
    for level in levels() {
        assert_eq!(findings_text(level.kind, &level.config), "", "{}", level.kind);
        let schema = schema_of(level.kind);
        let described = schema.pointer(level.pointer).unwrap();
        let required: BTreeSet<&str> =
            described["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        for name in names(&described["properties"]) {
            let mut config = level.config.clone();
            let Some(_) = config.pointer_mut(level.place).unwrap().as_object_mut().unwrap().remove(&name) else {
                assert!(!required.contains(name.as_str()), "{}: `{name}` is not in the sample", level.kind);
                continue;
            };
            let required_by_check = findings_text(level.kind, &config).contains(&format!("needs `{name}`"));
            assert_eq!(required_by_check, required.contains(name.as_str()), "{} {}: {name}", level.kind, level.place);
            assert!(!required_by_check || !Compiled::new(&schema).unwrap().is_valid(&config));
        }
    }
}

/// Values at and beyond the limits of a property, each with whether the schema accepts it.
fn samples(property: &Value) -> Vec<(Value, bool)> {
    let mut samples = Vec::new();
    if let (Some(min), Some(max)) = (property["minimum"].as_i64(), property["maximum"].as_i64()) {
        samples.extend([(json!(min), true), (json!(max), true), (json!(min - 1), false), (json!(max + 1), false)]);
        samples.push((json!("many"), false));
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
    }
    // A number is accepted as text.
    if property["type"] == json!(["string", "number", "boolean"]) {
        samples.extend([(json!("x"), true), (json!(7), true), (json!(true), true), (json!(["a list"]), false)]);
    }
    samples
}

#[test]
fn the_schema_and_the_check_accept_the_same_values() {
    let mut compared = 0;
    for level in levels() {
        let schema = schema_of(level.kind);
        let compiled = Compiled::new(&schema).unwrap();
        let properties = schema.pointer(level.pointer).unwrap()["properties"].as_object().unwrap().clone();
        for (name, property) in properties {
            for (value, valid) in samples(&property) {
                let mut config = level.config.clone();
                config.pointer_mut(level.place).unwrap()[&name] = value.clone();
                if (level.kind, name.as_str(), &value) == ("behavior_loop", "source", &json!("server")) {
                    // `source: server` needs the name of the server in `server`.
                    assert!(!findings_text(level.kind, &config).is_empty() && !compiled.is_valid(&config));
                    config["server"] = json!("analysis");
                }
                if (level.kind, name.as_str(), &value) == ("command", "shell", &json!(true)) {
                    // A shell command is one text.
                    assert!(!findings_text(level.kind, &config).is_empty() && !compiled.is_valid(&config));
                    config["command"] = json!("x");
                }
                let text = findings_text(level.kind, &config);
                assert_eq!(text.is_empty(), valid, "{} `{name}: {value}`: the check says {text:?}", level.kind);
                assert_eq!(compiled.is_valid(&config), valid, "{} `{name}: {value}`: the schema", level.kind);
                compared += 1;
            }
        }
    }
    assert!(compared > 80, "only {compared} values compared");
}

/// Calls `visit` with every object in `schema` that has `examples`.
fn each_with_examples<'s>(schema: &'s Value, visit: &mut impl FnMut(&'s Value, &'s [Value])) {
    match schema {
        Value::Object(fields) => {
            if let Some(examples) = fields.get("examples").and_then(Value::as_array) {
                visit(schema, examples);
            }
            fields
                .iter()
                .filter(|(name, _)| *name != "examples")
                .for_each(|(_, inner)| each_with_examples(inner, visit));
        }
        Value::Array(items) => items.iter().for_each(|inner| each_with_examples(inner, visit)),
        _ => {}
    }
}

#[test]
fn every_schema_is_draft_2020_12_and_its_examples_are_valid() {
    for kind in KINDS {
        let name = kind.name();
        let schema = schema_of(name);
        assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema", "{name}");
        if let Err(error) = jsonschema::draft202012::meta::validate(&schema) {
            panic!("{name}: {error}");
        }
        let mut count = 0;
        each_with_examples(&schema, &mut |described, examples| {
            let mut own = described.as_object().unwrap().clone();
            own.insert("$defs".into(), schema.get("$defs").cloned().unwrap_or_else(|| Map::new().into()));
            let compiled = Compiled::new(&Value::Object(own)).unwrap();
            for example in examples {
                assert!(compiled.is_valid(example), "{name}: {example}: {:?}", compiled.violations(example));
                count += 1;
            }
        });
        assert!(count > 0, "{name} has no examples");
        for example in schema["examples"].as_array().expect("an example of a whole config") {
            // The check also requires declared names, which an example cannot have.
            let text = findings_text(name, example);
            assert!(text.lines().all(|line| line.starts_with("[unknown-name]")), "{name}: {example}: {text}");
        }
    }
}

/// The names in the first cells of the table under the heading `## Config`, and those with a star.
fn fields_of_the_page(page: &str) -> (BTreeSet<String>, BTreeSet<String>) {
    let (_, config) = page.split_once("## Config").expect("a heading `## Config`");
    let rows =
        config.lines().skip_while(|line| !line.starts_with("| field")).skip(2).take_while(|line| line.starts_with('|'));
    let (mut all, mut required) = (BTreeSet::new(), BTreeSet::new());
    for row in rows {
        let cell = row.split('|').nth(1).unwrap().trim();
        for name in cell.split('`').skip(1).step_by(2) {
            all.insert(name.to_owned());
            if cell.ends_with("\\*") {
                required.insert(name.to_owned());
            }
        }
    }
    (all, required)
}

#[test]
fn every_page_lists_the_fields_of_its_schema() {
    for kind in KINDS {
        let schema = schema_of(kind.name());
        let (all, required) = fields_of_the_page(kind.page());
        assert_eq!(all, names(&schema["properties"]), "{}", kind.name());
        let expected =
            schema["required"].as_array().into_iter().flatten().map(|name| name.as_str().unwrap().to_owned());
        assert_eq!(required, expected.collect(), "{}", kind.name());
        assert!(kind.page().starts_with(&format!("# {}\n", kind.name())), "{}", kind.name());
    }
}

#[test]
fn the_language_page_lists_every_kind_with_its_fields() {
    let page = std::fs::read_to_string(Path::new(crate::ROOT).join("docs/language.md")).unwrap();
    let (_, rows) = page.split_once("| kind | config |\n").unwrap();
    let rows: Vec<Vec<&str>> =
        rows.lines().skip(1).take_while(|line| line.starts_with('|')).map(|row| row.split('|').collect()).collect();
    let kinds: BTreeSet<&str> = rows.iter().map(|row| row[1].trim().trim_matches('`')).collect();
    assert_eq!(kinds, KINDS.iter().map(|kind| kind.name()).collect());
    for row in rows {
        let kind = row[1].trim().trim_matches('`');
        let schema = schema_of(kind);
        // The parentheses after a name contain its default, which starts with no field name.
        let fields = row[2].split(", ").filter_map(|part| part.trim().strip_prefix('`')?.split('`').next());
        assert_eq!(fields.map(str::to_owned).collect::<BTreeSet<_>>(), names(&schema["properties"]), "{kind}");
    }
}
