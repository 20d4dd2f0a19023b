//! Tests of the schemas for editors: the files in `schemas/` are those that the program generates, and their descriptions are correct.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;

use bcc_authoring::schemas::{document, list, text};
use bcc_lang::schema::assemble::{SchemaDocument, subschemas};
use bcc_lang::schema::compiled::Compiled;
use bcc_lang::script::findings::Findings;
use bcc_lang::script::legacy_fields::current_spelling;
use bcc_lang::script::read::read;
use bcc_lang::source::compose::parse;
use bcc_lang::source::text::SourceFile;
use bcc_lang::template::front_matter::{self, KEYS};
use bcc_runtime::actions::KINDS;
use serde_json::{Map, Value, json};

fn root() -> &'static Path {
    Path::new(crate::ROOT)
}

fn compiled(document_kind: SchemaDocument) -> Compiled {
    Compiled::new(&document(document_kind)).unwrap()
}

#[test]
fn every_schema_file_is_the_one_that_the_program_generates() {
    let mut stale = String::new();
    for document in SchemaDocument::ALL {
        let (name, file) = (document.name(), format!("schemas/{}.schema.json", document.name()));
        if fs::read_to_string(root().join(&file)).unwrap_or_default() != text(name).unwrap() {
            stale += &format!("  cargo run -- schema {name} > {file}\n");
        }
    }
    assert!(stale.is_empty(), "schemas/ is not what schemas/parts/, schemas/actions/ and the kinds give; run\n{stale}");
    let on_disk = fs::read_dir(root().join("schemas")).unwrap().map(|entry| entry.unwrap().file_name());
    let on_disk: BTreeSet<String> = on_disk.map(|name| name.into_string().unwrap()).collect();
    let files = SchemaDocument::ALL.map(|document| format!("{}.schema.json", document.name()));
    let folders = ["actions", "parts", "protocol", "replies"].map(str::to_owned);
    // The schema of bcc-script.toml is written by hand; tests/authoring/configuration.rs compares it with the parser.
    let by_hand = ["config.schema.json".to_owned()];
    assert_eq!(on_disk, files.into_iter().chain(folders).chain(by_hand).collect());
}

/// Calls `visit` with every subschema, its path, and whether it is in a condition or a choice.
fn each_subschema<'s>(
    path: &str,
    schema: &'s Value,
    in_condition: bool,
    visit: &mut impl FnMut(&str, &'s Value, bool),
) {
    visit(path, schema, in_condition);
    for (below, inner) in subschemas(schema) {
        let tests = ["if", "not", "then", "else", "allOf"].iter().any(|keyword| below.starts_with(keyword));
        each_subschema(&format!("{path}/{below}"), inner, in_condition || tests, visit);
    }
}

#[test]
fn every_schema_is_draft_2020_12_and_every_reference_leads_into_it() {
    for document_kind in SchemaDocument::ALL {
        let (name, schema) = (document_kind.name(), document(document_kind));
        assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema", "{name}");
        if let Err(error) = jsonschema::draft202012::meta::validate(&schema) {
            panic!("{name}: {error}");
        }
        compiled(document_kind);
        let mut used = BTreeSet::new();
        each_subschema("", &schema, false, &mut |path, inner, _| {
            if let Some(reference) = inner.get("$ref").and_then(Value::as_str) {
                let pointer = reference.strip_prefix('#').unwrap_or_else(|| panic!("{name}{path}: {reference}"));
                assert!(schema.pointer(pointer).is_some(), "{name}{path}: {reference}");
                used.insert(pointer.split('/').nth(2).unwrap().to_owned());
            }
        });
        let defined = schema.get("$defs").and_then(Value::as_object).into_iter().flatten();
        let defined: BTreeSet<String> = defined.map(|(name, _)| name.clone()).collect();
        assert_eq!(defined, used, "{name}: nothing lies there unused");
    }
}

#[test]
fn every_property_has_a_description_with_its_default() {
    for document_kind in SchemaDocument::ALL {
        let (name, schema) = (document_kind.name(), document(document_kind));
        let mut count = 0;
        each_subschema("", &schema, false, &mut |path, inner, in_condition| {
            for (property, property_schema) in inner.get("properties").and_then(Value::as_object).into_iter().flatten()
            {
                let target =
                    property_schema.get("$ref").and_then(Value::as_str).and_then(|to| schema.pointer(&to[1..]));
                let description =
                    property_schema.get("description").or_else(|| target.and_then(|to| to.get("description")));
                assert!(in_condition || description.is_some(), "{name}{path}: `{property}` has no description");
                if let Some(default) = property_schema.get("default") {
                    let default = default.as_str().map_or_else(|| default.to_string(), str::to_owned);
                    let shown = property_schema["markdownDescription"].as_str().unwrap();
                    assert!(shown.ends_with(&format!("Default: `{default}`")), "{name}{path}: {shown}");
                }
                count += 1;
            }
        });
        assert!(count >= KEYS.len(), "{name}: only {count} properties");
    }
}

#[test]
fn every_example_and_every_default_is_valid_in_its_place() {
    for document_kind in SchemaDocument::ALL {
        let (name, schema) = (document_kind.name(), document(document_kind));
        // All examples are properties of one schema, because compiling a schema is slow.
        let (mut properties, mut values) = (Map::new(), Vec::new());
        each_subschema("", &schema, false, &mut |path, described, _| {
            let examples = described.get("examples").and_then(Value::as_array).into_iter().flatten();
            for value in examples.chain(described.get("default")) {
                values.push((path.to_owned(), value));
                let mut own = described.clone();
                own.as_object_mut().unwrap().remove("$defs");
                properties.insert(path.to_owned(), own);
            }
        });
        let definitions = schema.get("$defs").cloned().unwrap_or_else(|| json!({}));
        let compiled = Compiled::new(&json!({ "properties": properties, "$defs": definitions })).unwrap();
        for (path, value) in &values {
            let there = Value::Object(Map::from_iter([(path.clone(), (*value).clone())]));
            assert!(compiled.is_valid(&there), "{name}{path}: {value}: {:?}", compiled.violations(&there));
        }
        assert!(values.len() > 4, "{name} has only {} examples", values.len());
    }
}

#[test]
fn every_default_of_the_parser_is_the_one_of_the_schema() {
    let script = json!({ "session": { "session_id": "s", "declare": [{ "var": "a" }], "phases": [
        { "phase_id": "p", "topics": [{ "topic_id": "t", "actions": [{ "action_type": "set", "action_id": "a" }] }] }
    ] } });
    let findings = Findings::new();
    let file = Arc::new(SourceFile::new("a.yaml", script.to_string()));
    let script = read(&file, &parse(&file).root.unwrap(), &findings).unwrap();
    let schema = document(SchemaDocument::Script);
    let default = |pointer: &str| schema.pointer(&format!("/$defs/{pointer}/default")).unwrap().clone();
    assert_eq!(default("history/properties/messages"), script.history.messages);
    assert_eq!(default("history/properties/chars"), script.history.chars);
    assert_eq!(default("declaration/properties/sensitive"), script.declare[0].declaration.sensitive);
}

#[test]
fn an_action_accepts_only_the_config_of_its_kind() {
    let script = compiled(SchemaDocument::Script);
    let around = |action: Value| {
        json!({ "session": { "session_id": "s", "phases": [
            { "phase_id": "p", "topics": [{ "topic_id": "t", "actions": [action] }] }
        ] } })
    };
    for kind in KINDS {
        let name = kind.name();
        let schema: Value = serde_json::from_str(kind.schema()).unwrap();
        for example in schema["examples"].as_array().unwrap() {
            let action = json!({ "action_type": name, "action_id": "a", "config": example });
            assert!(script.is_valid(&around(action.clone())), "{name}: {example}");
            let mut invalid = action.clone();
            invalid["config"]["zzzzzzzz"] = json!(1);
            assert!(!script.is_valid(&around(invalid)), "{name}: an unknown key");
        }
        let without_config = json!({ "action_type": name, "action_id": "a" });
        assert_eq!(
            script.is_valid(&around(without_config)),
            schema.get("required").is_none(),
            "{name} without a config"
        );
    }
    assert!(!script.is_valid(&around(json!({ "action_type": "nope", "action_id": "a", "config": {} }))));
    // Actions inside a config are like any other.
    let inner = |config: Value| {
        let actions = json!([{ "action_type": "ai_say", "action_id": "b", "config": config }]);
        around(json!({ "action_type": "condition", "action_id": "a", "config": { "else": { "actions": actions },
            "cases": [{ "when": "true", "set": { "a": 1 } }] } }))
    };
    assert!(script.is_valid(&inner(json!({ "content": "x" }))));
    assert!(!script.is_valid(&inner(json!({ "content": "x", "toen": "y" }))));
}

#[test]
fn every_legacy_spelling_in_the_schema_is_accepted_by_the_parser() {
    let mut count = 0;
    for document_kind in SchemaDocument::ALL {
        each_subschema("", &document(document_kind), false, &mut |path, inner, _| {
            let Some(properties) = inner.get("properties").and_then(Value::as_object) else { return };
            for (name, _) in properties.iter().filter(|(_, property)| property["deprecated"] == true) {
                let current = current_spelling(name);
                let current = current.as_deref().unwrap_or(name);
                // These two together form one `output`, and `technique_id` is a legacy form of its own.
                let known = match current {
                    "target_variable" | "extraction_prompt" => properties.contains_key("output"),
                    "technique_id" => properties.contains_key("topic"),
                    _ => current != name && properties.contains_key(current),
                };
                assert!(known, "{path}: {name}");
                count += 1;
            }
        });
    }
    assert!(count > 20, "only {count}");
}

#[test]
fn each_document_is_recognized_by_its_root_key() {
    let actions = json!([{ "action_type": "ai_say", "action_id": "a", "config": { "content": "x" } }]);
    let skill =
        json!({ "skill": { "skill_id": "s", "inputs": [{ "var": "a" }], "outputs": ["b"], "actions": actions } });
    let technique = json!({ "technique_id": "s", "topic": { "topic_id": "t", "actions": actions } });
    let test = json!({ "test": "x", "script": "a.yaml", "dialogue": [{ "user": "y" }], "metadata": { "name": "n" } });
    let workflow = json!({ "workflow_id": "w", "steps": [{ "id": "a", "anything": 1 }], "state": {} });
    let session = json!({ "session": { "session_id": "s", "skills": ["../a.yaml", skill["skill"]], "phases": [
        { "phase_id": "p", "topics": [{ "topic_id": "t", "actions": actions }] }
    ] }, "x-mine": 1 });
    let any = compiled(SchemaDocument::Any);
    let table = [
        (&session, Some(SchemaDocument::Script)),
        (&skill, Some(SchemaDocument::Skill)),
        (&technique, Some(SchemaDocument::Skill)),
        (&test, Some(SchemaDocument::Test)),
        (&workflow, None),
    ];
    for (value, own) in table {
        assert!(any.is_valid(value), "{value}: {:?}", any.violations(value));
        for document_kind in [SchemaDocument::Script, SchemaDocument::Skill, SchemaDocument::Test] {
            assert_eq!(
                compiled(document_kind).is_valid(value),
                own == Some(document_kind),
                "{} {value}",
                document_kind.name()
            );
        }
        let mut invalid = value.clone();
        let at_root = invalid.as_object_mut().unwrap();
        let key = at_root.keys().next().unwrap().clone();
        at_root[&key] = json!([]);
        at_root.insert("zzzzzzzz".into(), json!(1));
        assert!(own.is_none() || !any.is_valid(&invalid), "{invalid}");
    }
    // The error is that of a script, because a file with none of the keys was probably meant to be one.
    let violations = any.violations(&json!({ "metadata": {} }));
    assert!(violations.iter().any(|violation| violation.message.to_string().contains("session")), "{violations:?}");
}

#[test]
fn the_front_matter_of_a_template_has_the_keys_and_the_limits_of_its_reader() {
    let schema = document(SchemaDocument::Template);
    let described: BTreeSet<&str> = schema["properties"].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(described, KEYS.iter().copied().collect());
    let compiled = compiled(SchemaDocument::Template);
    let table = [
        json!({}),
        json!({ "description": "x", "model": "m", "fallback": "f", "output_schema": "a.json" }),
        json!({ "temperature": 0 }),
        json!({ "temperature": 2 }),
        json!({ "temperature": 2.1 }),
        json!({ "temperature": "hot" }),
        json!({ "temperature": null }),
        json!({ "max_tokens": 1 }),
        json!({ "max_tokens": 0 }),
        json!({ "max_tokens": 1.5 }),
        json!({ "history": "inline" }),
        json!({ "history": "messages" }),
        json!({ "history": "both" }),
        json!({ "output_schema": "../a.json" }),
        json!({ "output_schema": "a/b.json" }),
        json!({ "output_schema": "" }),
        json!({ "feedback": { "heading": "h", "details": "d", "closing": "c" } }),
        json!({ "feedback": { "heading": "h", "details": "d" } }),
        json!({ "feedback": { "heading": "h", "details": "d", "closing": "c", "more": "m" } }),
        json!({ "feedback": "h" }),
        json!({ "temprature": 1 }),
        json!({ "maxTokens": 1 }),
        json!({ "description": ["x"] }),
        json!([]),
    ];
    for value in table {
        let read = front_matter::split(&format!("---\n{value}\n---\nbody"));
        assert_eq!(compiled.is_valid(&value), read.is_ok(), "{value}: {read:?}");
    }
}

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_bcc-script")).env_clear().arg("schema").args(arguments).output().unwrap()
}

#[test]
fn the_command_prints_every_schema_and_lists_their_names() {
    let printed = |arguments: &[&str]| {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(printed(&[]), text("script").unwrap(), "without a name, that of scripts");
    let listed = printed(&["--list"]);
    let names: Vec<&str> = listed.lines().map(|line| line.split_whitespace().next().unwrap()).collect();
    assert_eq!(names, list().into_iter().map(|(name, _)| name).collect::<Vec<_>>());
    for name in names {
        assert_eq!(printed(&[name]), text(name).unwrap(), "{name}");
    }
    assert_eq!(printed(&["set"]), fs::read_to_string(root().join("schemas/actions/set.json")).unwrap());
}

#[test]
fn an_unknown_name_is_a_usage_error_with_a_suggestion() {
    for (name, help) in
        [("skil", "did you mean `skill`?"), ("ai-ask", "did you mean `ai_ask`?"), ("zzzz", "use one of script,")]
    {
        let output = run(&[name]);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{name}");
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(stderr.contains(&format!("there is no schema `{name}`")) && stderr.contains(help), "{stderr}");
    }
}
