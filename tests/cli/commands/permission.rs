//! Which programs may run, and what the check says about commands. In conversation tests, none runs.

use serde_json::{Value, json};

use super::{RUN, command, project, text};
use crate::process::{Home, install_text};

const RUNS: &str = "echo ran >> log";

fn allowing(entries: &str, line: Value) -> Home {
    let configuration = if entries.is_empty() { String::new() } else { format!("[project]\nallow = [{entries}]\n") };
    project(&configuration, &json!([command("c", line, json!({}))]))
}

#[test]
fn only_allowed_programs_run() {
    let sh = json!({ "command": ["/bin/sh", "-c", RUNS] });
    let shell = json!({ "command": RUNS, "shell": true });
    let own = json!({ "command": ["./tools/run"] });
    let table = [
        ("", &sh, Some("allow = [\"command:/bin/sh\"]")),
        ("\"exec\"", &sh, Some("allow = [\"command:/bin/sh\"]")),
        ("\"command:git\"", &sh, Some("allow = [\"command:/bin/sh\"]")),
        ("\"command:sh\"", &shell, Some("allow = [\"command:/bin/sh\"]")),
        ("\"command:./tools/other\"", &own, Some("allow = [\"command:./tools/run\"]")),
        ("\"command\"", &sh, None),
        ("\"command:git\", \"command:/bin/*\"", &sh, None),
        ("\"command:/bin/sh\"", &shell, None),
        ("\"command:./tools/*\"", &own, None),
    ];
    for (entries, line, help) in table {
        let home = allowing(entries, line.clone());
        std::fs::create_dir(home.path().join("tools")).unwrap();
        install_text(&home.path().join("tools/run"), "#!/bin/sh\necho ran >> log\n");
        let finished = home.finish(RUN, "");
        let said = finished.out.replace("\\\"", "\"") + &finished.err;
        match help {
            Some(help) => {
                assert_eq!(finished.code, Some(2), "{entries} {line}: {finished:?}");
                assert!(said.contains(help) && said.contains("the action `c` needs"), "{entries}: {said}");
                assert!(!home.store().exists(), "nothing began");
            }
            None => assert_eq!(finished.code, Some(0), "{entries} {line}: {finished:?}"),
        }
        assert_eq!(text(&home, "log").is_empty(), help.is_some(), "{entries} {line}");
    }
}

#[test]
fn an_untrusted_or_changed_project_runs_nothing() {
    let home = allowing("\"command\"", json!({ "command": ["/bin/sh", ".hidden/run"] }));
    std::fs::create_dir(home.path().join(".hidden")).unwrap();
    home.file(".hidden/run", RUNS);
    let run = ["run", "s.yaml", "--session", "one"];
    let refused = |expected: &str| {
        let finished = home.finish(run, "");
        assert_eq!(finished.code, Some(2), "{finished:?}");
        assert!(finished.err.contains(expected), "{finished:?}");
        assert!(text(&home, "log").is_empty());
    };
    refused("bcc-script trust");
    assert_eq!(home.finish(["trust"], "").code, Some(0));
    // The program that the script names is a part of what was trusted, also in a hidden folder; so is the script.
    home.file(".hidden/run", "echo other >> log");
    refused(".hidden/run");
    home.file(".hidden/run", RUNS);
    let script = text(&home, "s.yaml");
    home.file("s.yaml", &script.replace("\"c\"", "\"d\""));
    refused("s.yaml");
    home.file("s.yaml", &script);
    assert_eq!(home.finish(run, "").code, Some(0));
    assert_eq!(text(&home, "log"), "ran\n");
}

#[test]
fn a_permission_that_is_withdrawn_ends_the_action_on_resume() {
    let ask = json!({ "action_type": "ai_ask", "action_id": "ask", "config": { "content": "well?", "max_rounds": 1 } });
    let actions = json!([ask, command("c", json!({ "command": ["/bin/sh", "-c", RUNS] }), json!({}))]);
    let home = project("[project]\nallow = [\"command:/bin/sh\"]\n", &actions);
    let mut running = home.start(RUN);
    running.event_of("waiting");
    running.kill();
    home.file("bcc-script.toml", "[project]\nallow = [\"command:git\"]\n");
    let finished = home.finish(["sessions", "resume", "one", "--json", "--trust"], "{\"user\": \"fine\"}\n");
    assert_eq!(finished.code, Some(2), "{finished:?}");
    assert!(text(&home, "log").is_empty());
}

#[test]
fn what_is_wrong_in_a_command_is_reported_with_its_correction() {
    let table = [
        (json!({ "command": "git push {{ branch }}" }), "write `command: [\"git\", \"push\", \"{{ branch }}\"]`"),
        (json!({ "command": "ls | wc" }), "add `shell: true`"),
        (json!({ "command": "echo {{ branch }}", "shell": true }), "shell-variable"),
        (json!({ "command": ["ls"], "shell": true }), "must be one text"),
        (json!({ "command": [] }), "empty"),
        (json!({ "command": [" "] }), "names no program"),
        (json!({ "command": ["ls", null] }), "must be text"),
        (json!({ "command": ["{{ branch }}"] }), "must not contain variables"),
        (json!({ "command": ["ls"], "cwd": "../x" }), "path-outside"),
        (json!({ "command": ["ls"], "env": { "a b": "x" } }), "not a valid environment variable name"),
        (json!({ "command": ["ls"], "env": { "LD_PRELOAD": "x" } }), "cannot set `LD_PRELOAD`"),
        (json!({ "command": ["ls"], "ok_codes": [256] }), "must be an exit code"),
        (json!({ "command": ["ls"], "output": { "stdout": "version" } }), "has no output `version`"),
        (json!({ "command": ["ls"], "output": { "x": "stdou" } }), "did you mean `stdout`?"),
        (json!({ "command": ["ls"], "timeout": "5s" }), "belongs next to `config`"),
        (json!({ "command": ["ls"], "simulate": { "code": 1 } }), "unknown-key"),
    ];
    for (config, expected) in table {
        let set = json!({ "action_type": "set", "action_id": "set", "config": { "values": { "branch": "main" } } });
        let home =
            project("[project]\nallow = [\"command\"]\n", &json!([set, command("c", config.clone(), json!({}))]));
        let finished = home.finish(["validate", "s.yaml"], "");
        let said = finished.out + &finished.err;
        assert_ne!(finished.code, Some(0), "{config}: {said}");
        assert!(said.contains(expected), "{config}: {said}");
    }
    let options = [
        (json!({ "timeout": "soon" }), "must be a duration"),
        (json!({ "timeout": "25h" }), "at most"),
        (json!({ "retry": {} }), "`times`"),
        (json!({ "retry": { "times": 0 } }), "`times` must be"),
        (json!({ "retry": { "times": 1, "on": ["faild"] } }), "did you mean `failed`?"),
        (json!({ "retry": { "times": 1, "on": [300] } }), "exit code"),
    ];
    for (more, expected) in options {
        let home = project("", &json!([command("c", json!({ "command": ["ls"] }), more.clone())]));
        let finished = home.finish(["validate", "s.yaml"], "");
        let said = finished.out + &finished.err;
        assert!(finished.code != Some(0) && said.contains(expected), "{more}: {said}");
    }
    for (kind, config, help) in [
        ("set", json!({ "values": { "x": 1 } }), "only actions with effects outside the session have it: `command`"),
        ("exec", json!({ "codecell_id": "x" }), "write it under `config:`"),
    ] {
        let home = project("", &json!([{ "action_type": kind, "action_id": "a", "timeout": "5s", "config": config }]));
        let finished = home.finish(["validate", "s.yaml"], "");
        let said = finished.out + &finished.err;
        assert!(said.contains(help), "{kind}: {said}");
    }
}

#[test]
fn in_conversation_tests_nothing_runs() {
    let retry = json!({ "retry": { "times": 2, "backoff": "1h", "max_backoff": "1h", "on": [75, "timed_out"] } });
    let config = |more: Value| {
        let mut config =
            json!({ "command": ["/bin/sh", "-c", RUNS], "output": { "out": "stdout", "code": "exit_code" } });
        config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        config
    };
    let results = json!([{ "exit_code": 75, "stderr": "busy" }, "timeout", { "stdout": "done\n" }]);
    let set = |out: &str| json!({ "variables": { "out": out, "code": 0 } });
    let table = [
        (json!({}), json!({ "c": results }), set("done"), Ok(())),
        (json!({ "simulate": { "stdout": "simulated" } }), json!({}), set("simulated"), Ok(())),
        (
            json!({ "simulate": { "stdout": "simulated" } }),
            json!({ "c": [{ "stdout": "given" }] }),
            set("given"),
            Ok(()),
        ),
        (json!({}), json!({}), set(""), Err("its result is missing")),
        (json!({}), json!({ "c": [{ "exit_code": 75 }] }), set(""), Err("ran its program twice")),
        (json!({}), json!({ "d": [{ "exit_code": 75 }] }), set(""), Err("the script has no action `d`")),
    ];
    for (more, commands, expect, result) in table {
        let home = project("", &json!([command("c", config(more), retry.clone())]));
        let test =
            json!({ "test": "it runs", "script": "s.yaml", "commands": commands, "dialogue": [{ "expect": expect }] });
        home.file("t.yaml", &test.to_string());
        let finished = home.finish(["test", "t.yaml"], "");
        let said = finished.out.clone() + &finished.err;
        match result {
            Ok(()) => assert_eq!(finished.code, Some(0), "{said}"),
            Err(expected) => assert!(finished.code != Some(0) && said.contains(expected), "{expected}: {said}"),
        }
        assert!(text(&home, "log").is_empty(), "nothing runs");
    }
}
