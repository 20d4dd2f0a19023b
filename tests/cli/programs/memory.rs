//! Tests with a limited address space: what asks for too much memory is an error with its place, and never ends the program.

use super::*;
use std::process::Command;

/// The limit on the address space of the program, in KiB.
const ADDRESS_SPACE: &str = "4000000";

/// Runs a script with a limit on its memory.
fn limited(home: &Home, script: &str, input: &str) -> Finished {
    let path = home.file("limited.yaml", script).display().to_string();
    let run = home.command(["run", &path, "--session", "t"]);
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("ulimit -v {ADDRESS_SPACE} && exec \"$0\" \"$@\"")]);
    shell.arg(run.get_program()).args(run.get_args()).current_dir(home.path());
    shell.env_clear().envs(home.variables());
    process::finished(shell, input)
}

fn script(actions: &str) -> String {
    format!(
        "session:\n  session_id: limited\n  session_name: L\n  declare:\n    - {{ var: a, type: string }}\n    - {{ var: b, type: string }}\n  phases:\n    - phase_id: p\n      topics:\n        - topic_id: t\n          actions:\n{actions}"
    )
}

fn says(content: &str) -> String {
    let content = serde_json::to_string(content).unwrap();
    script(&format!("            - {{ action_type: ai_say, action_id: say, config: {{ content: {content} }} }}\n"))
}

#[test]
fn a_text_that_asks_for_too_much_memory_is_an_error_with_its_place() {
    let loops = |body: &str| {
        format!(
            "{{% set ns = namespace(x='ab', l=[]) %}}{{% for i in range(10000) %}}{body}{{% endfor %}}{{{{ ns.x }}}}"
        )
    };
    let texts = [
        ("{{ 'a\nb' | indent(20000000000) }}".to_owned(), "longer than 2097152 bytes"),
        ("{% filter indent(20000000000) %}a\nb{% endfilter %}".to_owned(), "longer than 2097152 bytes"),
        ("{{ '%20000000000d' | format(1) }}".to_owned(), "longer than 2097152 bytes"),
        ("{{ ['a'] | map('indent', 20000000000, true) | list }}".to_owned(), "longer than 2097152 bytes"),
        ("{{ [1] | batch(20000000000, 0) | list }}".to_owned(), "at most 100000"),
        ("{{ [[1]] | tojson(indent=20000000000) }}".to_owned(), "longer than 2097152 bytes"),
        (loops("{% set ns.x = ns.x ~ ns.x %}"), "the result of `~`"),
        (loops("{% set ns.l = ns.l + ['%1000000d' | format(i)] %}"), "in total were made"),
        (loops("{% set ns.l = [ns.l] %}"), "nested more than 100 levels"),
        (loops("{% set ns.l = [ns.l, ns.l] %}"), "items, nested ones included"),
        (loops("{% set ns.x = ns %}"), "a `namespace` cannot be stored"),
        (format!("{{% set x %}}{}{{% endset %}}", loops(&"long ".repeat(40_000))), "in total were made"),
    ];
    for (text, error) in texts {
        let home = Home::new();
        let finished = limited(&home, &says(&text), "");
        let start: String = text.chars().take(120).collect();
        assert!(finished.code.is_some_and(|code| code != 134), "{start}: {finished:?}");
        let told = format!("{}{}", finished.err, home.finish(["sessions", "export", "t"], "").out);
        assert!(told.contains(error), "{start}: {}", told.chars().take(3_000).collect::<String>());
    }
}

#[test]
fn a_condition_that_asks_for_too_much_memory_is_an_error() {
    for condition in ["('a' | indent(20000000000)) == 'b'", "('%20000000000d' | format(1)) == 'b'"] {
        let home = Home::new();
        let actions = format!(
            "            - {{ action_type: ai_say, action_id: say, condition: \"{condition}\", config: {{ content: A }} }}\n"
        );
        let finished = limited(&home, &script(&actions), "");
        assert_eq!(finished.code, Some(0), "the route for `error` is `next`: {finished:?}");
        assert!(finished.err.contains("longer than 2097152 bytes"), "{condition}: {}", finished.err);
    }
}

#[test]
fn two_long_answers_cannot_take_all_memory() {
    let actions = "            - { action_type: ai_ask, action_id: one, config: { content: A?, output: [{ get: a, type: string }] } }
            - { action_type: ai_ask, action_id: two, config: { content: B?, output: [{ get: b, type: string }] } }
            - { action_type: ai_say, action_id: say, config: { content: \"{{ a | replace('x', b) }}\" } }
";
    let home = Home::new();
    let long = "x".repeat(1024 * 1024);
    let finished = limited(&home, &script(actions), &format!("{long}\n{long}\n"));
    assert!(finished.code.is_some(), "{finished:?}");
    assert!(
        finished.err.contains("longer than 2097152 bytes"),
        "{}",
        finished.err.chars().take(2_000).collect::<String>()
    );
    assert!(!finished.err.contains("xxx"), "the error quotes no answer");
}

#[test]
fn a_reply_schema_that_would_never_end_is_an_error_that_names_it() {
    let home = Home::new();
    let mut definitions = serde_json::Map::new();
    for level in 0..40 {
        let next = json!({ "$ref": format!("#/$defs/d{}", level + 1) });
        definitions.insert(format!("d{level}"), json!({ "allOf": [next, next] }));
    }
    definitions.insert("d40".to_owned(), json!({ "type": ["string", "null"] }));
    let own = std::fs::read_to_string(format!("{}/schemas/replies/ai_say.json", crate::ROOT)).unwrap();
    let mut schema: Value = serde_json::from_str(&own).unwrap();
    schema["properties"]["BRIEF"] = json!({ "$ref": "#/$defs/d0", "default": null });
    schema["$defs"] = Value::Object(definitions);
    std::fs::create_dir_all(home.path().join("schemas/replies")).unwrap();
    home.file("schemas/replies/ai_say.json", &schema.to_string());
    home.file("talk.yaml", &says("A"));
    for arguments in [&["validate", "."][..], &["run", "talk.yaml"]] {
        let finished = home.finish(arguments, "");
        let told = format!("{}{}", finished.out, finished.err);
        assert!(finished.code.is_some_and(|code| code == 1 || code == 2), "{arguments:?}: {finished:?}");
        assert!(told.contains("ai_say") && told.contains("20000 subschemas"), "{arguments:?}: {told}");
    }
}
