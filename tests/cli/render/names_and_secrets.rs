//! Tests of what `templates render` never shows, that it changes no files, and how it resolves names.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::render::{CLOCK, RenderFixture, SCRIPT, role_and_text};

/// The names and contents of the files in a folder, to find any change.
fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<(String, Vec<u8>)> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .map(|path| (path.file_name().unwrap().to_str().unwrap().to_owned(), fs::read(&path).unwrap()))
        .collect();
    files.sort();
    files
}

const SECRETS: &str = r#"
session:
  session_id: secrets
  declare:
    - { var: city, value: 北京 }
    - { var: of_session, type: string, sensitive: true }
    - { var: of_user, type: string, sensitive: true, scope: global }
  phases:
    - phase_id: p
      declare: [ { var: of_phase, type: string, sensitive: true } ]
      topics:
        - topic_id: t
          declare: [ { var: of_topic, type: string, sensitive: true } ]
          actions:
            - { action_type: ai_ask, action_id: ask_session, config: { content: 一, max_rounds: 2, output: [{ get: of_session }] } }
            - { action_type: ai_ask, action_id: ask_user, config: { content: 二, max_rounds: 2, output: [{ get: of_user }] } }
            - { action_type: ai_ask, action_id: ask_phase, config: { content: 三, max_rounds: 2, output: [{ get: of_phase }] } }
            - { action_type: ai_ask, action_id: ask_topic, config: { content: 四, max_rounds: 2, output: [{ get: of_topic }] } }
            - { action_type: ai_say, action_id: end, config: { content: 完 } }
"#;

const OPENLY: &str = r#"
replies:
  ask_session: [ { content: 一, EXIT: "NO" }, { content: 秘密甲, EXIT: "YES", of_session: 秘密甲 } ]
  ask_user: [ { content: 二, EXIT: "NO" }, { content: 秘密乙, EXIT: "YES", of_user: 秘密乙 } ]
  ask_phase: [ { content: 三, EXIT: "NO" }, { content: 秘密丙, EXIT: "YES", of_phase: 秘密丙 } ]
  ask_topic: [ { content: 四, EXIT: "NO" }, { content: 秘密丁, EXIT: "YES", of_topic: 秘密丁 } ]
  end: [ { content: 完 } ]
"#;

#[test]
fn no_call_of_a_session_shows_a_sensitive_value_of_any_scope() {
    let fixture = RenderFixture::new(SECRETS);
    fixture.home.file("replies.yaml", OPENLY);
    let arguments = ["run", "script.yaml", "--session", "s", "--clock", CLOCK, "--model", "replay:replies.yaml"];
    let finished = fixture.home.finish(arguments, "秘密甲\n秘密乙\n秘密丙\n秘密丁\n");
    assert_eq!(finished.code, Some(0), "{}", finished.err);
    let mut answers = 0;
    // The second template fails with an error that contains the values.
    for template in [None, Some("{% include of_session ~ of_user ~ answer ~ of_phase ~ of_topic %}")] {
        if let Some(text) = template {
            fixture.template("default/ai_ask_v1.md", text);
        }
        for (action, calls) in [("ask_session", 2), ("ask_user", 2), ("ask_phase", 2), ("ask_topic", 2), ("end", 1)] {
            for call in 1..=calls {
                let call = call.to_string();
                for form in [&[][..], &["--json"]] {
                    let options = ["--session", "s", "--action", action, "--round", "1", "--call", &call];
                    let shown = fixture.render(&[&options[..], form].concat());
                    let all = shown.out + &shown.err;
                    assert!(!all.contains("秘密") && !all.contains("\\u79d8"), "{action} {call}: {all}");
                    answers += all.matches("\"answer\": \"***\"").count();
                    assert_eq!(template.is_some() && action != "end", shown.code == Some(1), "{action}: {all}");
                }
            }
        }
    }
    assert_eq!(answers, 4, "each answer is shown as masked, and none of the failing template");
}

#[test]
fn an_error_with_a_given_sensitive_value_does_not_show_it() {
    let fixture = RenderFixture::new(SECRETS);
    fixture.template("default/ai_ask_v1.md", "{% include of_session %}");
    let action = ["--script", "script.yaml", "--action", "ask_session", "--var", "of_session=秘密甲"];
    let shown = fixture.render(&action);
    assert_eq!(shown.code, Some(1), "{}", shown.err);
    assert!(shown.err.contains("***") && !shown.err.contains("秘密甲"), "{}", shown.err);
    fixture.template("default/ai_ask_v1.md", "{{ answer }}{{ of_session }}");
    let shown = fixture.render(&[&action[..], &["--answer", "秘密甲", "--json"]].concat());
    assert!(shown.out.contains("\"answer\": \"***\"") && !shown.out.contains("秘密甲"), "{}", shown.out);
}

#[test]
fn reading_a_store_leaves_no_files_next_to_it() {
    let fixture = RenderFixture::with_session(SCRIPT);
    let alone = fixture.home.path().join("alone");
    fs::create_dir(&alone).unwrap();
    fs::copy(fixture.home.store(), alone.join("sessions.db")).unwrap();
    let before = files(&alone);
    let store = alone.join("sessions.db");
    let options = ["--session", "s", "--action", "bye", "--store", store.to_str().unwrap()];
    let shown = fixture.render(&options);
    assert_eq!(shown.code, Some(0), "{}", shown.err);
    assert_eq!(files(&alone), before);
    assert_eq!(fs::read_dir(&alone).unwrap().count(), 1, "no folder of locks either");
}

#[test]
fn a_call_is_chosen_among_the_visits_of_an_action() {
    let fixture = RenderFixture::with_session(SCRIPT);
    let prompt_of = |options: &[&str]| fixture.json(&[&["--session", "s", "--action", "think"], options].concat());
    let last = prompt_of(&[]);
    let first = prompt_of(&["--call", "1"]);
    let (path, other) = (last["path"].as_str().unwrap(), first["path"].as_str().unwrap());
    assert_ne!(path, other);
    assert_eq!((&last["call"], &last["calls"]), (&Value::from(2), &Value::from(2)));
    let chosen = prompt_of(&["--path", other]);
    assert_eq!((&chosen["call"], &chosen["calls"]), (&Value::from(1), &Value::from(1)));
    assert_eq!(chosen["then"], first["then"]);
    let shown = fixture.render(&["--session", "s", "--action", "think"]);
    assert!(shown.err.contains(&format!("at `{path}` · call 2 of 2")), "{}", shown.err);
    let wrong = fixture.render(&["--session", "s", "--action", "think", "--path", "nowhere"]);
    assert_eq!(wrong.code, Some(2));
    assert!(wrong.err.contains(&format!("it asked a model at `{other}`, `{path}`")), "{}", wrong.err);
}

#[test]
fn an_empty_list_is_reported_when_its_action_is_rendered() {
    let fixture = RenderFixture::new(&SCRIPT.replace(", value: [母亲, 父亲]", ""));
    let notes = |options: &[&str]| fixture.action("think", options)["notes"].to_string();
    for options in [&[][..], &["--var", "people=[]"], &["--var", "person=姑姑"]] {
        let notes = notes(options);
        assert!(notes.contains("the list of the topic `each` is empty here, so `think` would not run"), "{notes}");
    }
    assert!(!notes(&["--var", r#"people=["外婆"]"#]).contains("is empty here"));
}

#[test]
fn render_and_show_mean_the_same_file_by_the_same_name() {
    let fixture = RenderFixture::new(SCRIPT);
    fixture.template("default/ai_say_v1.md", "---\ntemperature: 0.1\n---\ndefault {{ x }}");
    fixture.template("custom/gentle/ai_say_v1.md", "---\ntemperature: 0.9\n---\n\ngentle {{ x }}");
    fixture.template("custom/gentle/safety.md", "no promises {{ x }}");
    fixture.template("custom/gentle/ai_think_v2.md", "two {{ x }}");
    fs::create_dir_all(fixture.home.path().join("_system/config/default")).unwrap();
    let scheme = ["--scheme", "gentle"];
    for (name, file, text, line) in [
        ("ai_say", "custom/gentle/ai_say_v1.md", "gentle", 5),
        ("default:ai_say", "default/ai_say_v1.md", "default", 4),
        ("default:ai_say_v1.md", "default/ai_say_v1.md", "default", 4),
        ("safety.md", "custom/gentle/safety.md", "no promises", 1),
        ("safety", "custom/gentle/safety.md", "no promises", 1),
        ("ai_think_v2", "custom/gentle/ai_think_v2.md", "two", 1),
    ] {
        let file = format!("_system/config/{file}");
        let prompt = fixture.json(&[&[name], &scheme[..]].concat());
        assert_eq!(prompt["file"], file, "{name}");
        assert_eq!(role_and_text(&prompt["messages"])[0].1, format!("{text} ⟦x?⟧"), "{name}");
        assert_eq!(
            (&prompt["unknown"][0]["file"], &prompt["unknown"][0]["line"]),
            (&Value::from(file.as_str()), &Value::from(line))
        );
        let temperature = match text {
            "gentle" => Value::from(0.9),
            "default" => Value::from(0.1),
            _ => Value::Null,
        };
        assert_eq!(prompt["temperature"], temperature, "{name}");
        let shown = fixture.home.finish(["templates", "show", name, "--scheme", "gentle"], "");
        assert!(shown.err.starts_with(&file), "{name}: {}", shown.err);
        let head = fixture.render(&[&[name], &scheme[..]].concat());
        assert!(head.err.starts_with(&file), "{name}: {}", head.err);
    }
    for name in ["../x", "a/ai_ask_v1.md", "ai_ask_v9"] {
        let (rendered, shown) = (fixture.render(&[name]), fixture.home.finish(["templates", "show", name], ""));
        assert_eq!((rendered.code, &rendered.err), (Some(2), &shown.err));
        let expected = if name == "ai_ask_v9" { "available versions: 1" } else { "specified by file name only" };
        assert!(rendered.err.contains(expected), "{}", rendered.err);
    }
}

#[test]
fn a_template_that_the_action_does_not_use_is_rejected() {
    let fixture = RenderFixture::new(SCRIPT);
    fixture.template("default/ai_say_v2.md", "two");
    let script = fs::read_to_string(fixture.home.path().join("script.yaml")).unwrap();
    fixture.home.file("script.yaml", &script.replace("goal: 道别", "goal: 道别, version: 2"));
    for (name, action, expected) in [
        ("ai_say_v1", "bye", "`bye` uses the template `ai_say_v2.md`, not `ai_say_v1.md`"),
        ("ai_ask_v2", "ask_name", "`ask_name` uses the template `ai_ask_v1.md`, not `ai_ask_v2.md`"),
        ("ai_ask_monitor", "move", "`move` is of type `set` and asks no model"),
        ("../ai_ask", "ask_name", "specified by file name only"),
        ("default:ai_ask", "ask_name", "`--scheme default`"),
    ] {
        let finished = fixture.render(&[name, "--script", "script.yaml", "--action", action]);
        assert_eq!(finished.code, Some(2), "{name}: {}", finished.err);
        assert!(
            finished.err.contains(expected) && !finished.err.contains("its templates are"),
            "{name}: {}",
            finished.err
        );
    }
    assert_eq!(
        role_and_text(&fixture.json(&["ai_say_v2", "--script", "script.yaml", "--action", "bye"])["messages"])[0].1,
        "two"
    );
}

#[test]
fn a_filter_error_is_reported_with_the_undefined_names() {
    let fixture = RenderFixture::new(SCRIPT);
    for source in ["{{ range(n) }}", "{% include n %}"] {
        fixture.template("default/ai_ask_v1.md", source);
        for options in [&["ai_ask"][..], &["--script", "script.yaml", "--action", "ask_name"]] {
            let finished = fixture.render(options);
            assert_eq!(finished.code, Some(1), "{source}: {}", finished.err);
            assert!(finished.err.contains("`n` is not known here"), "{source} {options:?}: {}", finished.err);
        }
    }
    // An operation on an unknown name has no result; its place is marked, and the name is listed.
    for source in ["{{ n | int }}", "{{ n | first }}", "{{ n + 1 }}"] {
        fixture.template("default/ai_ask_v1.md", source);
        for options in [&["ai_ask"][..], &["--script", "script.yaml", "--action", "ask_name"]] {
            let finished = fixture.render(options);
            assert_eq!(finished.code, Some(0), "{source}: {}", finished.err);
            assert!(finished.out.contains("⟦n?⟧"), "{source} {options:?}: {}", finished.out);
            assert!(finished.err.contains("undefined: `n` at"), "{source} {options:?}: {}", finished.err);
        }
    }
    fixture.template("default/ai_ask_v1.md", "{{ [n, 1] }}");
    assert_eq!(role_and_text(&fixture.json(&["ai_ask"])["messages"])[0].1, "[\"⟦n?⟧\",1]");
}

#[test]
fn an_operation_without_a_result_is_a_warning_and_the_cause_of_an_empty_prompt() {
    let fixture = RenderFixture::new(SCRIPT);
    fixture.template("default/ai_think_v1.md", "a{{ 1 // 0 }}b");
    let shown = fixture.render(&["ai_think"]);
    assert!(shown.out.contains("ab") && shown.err.contains("warning: "), "{shown:?}");
    assert!(shown.err.contains("ai_think_v1.md:1:") && shown.err.contains("`1 // 0` has no result"), "{shown:?}");
    let of_template = fixture.json(&["ai_think"]);
    let of_action = fixture.action("think", &[]);
    for prompt in [of_template, of_action] {
        let warnings = prompt["warnings"].to_string();
        assert!(warnings.contains("`1 // 0` has no result"), "{warnings}");
    }
    fixture.template("default/ai_think_v1.md", "{{ 1 // 0 }}");
    let failed = fixture.render(&["ai_think"]);
    assert_eq!(failed.code, Some(1), "{failed:?}");
    assert!(failed.err.contains("produced no text") && failed.err.contains("`1 // 0` has no result"), "{failed:?}");
    assert!(!failed.err.contains("conditions"), "{failed:?}");
}
