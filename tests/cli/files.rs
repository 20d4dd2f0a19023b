//! Tests of the action types `read_file` and `write_file` through the program.

use std::fs;

use crate::process;
use process::{Finished, Home};
use serde_json::{Value, json};

const ALLOWED: &str = "[project]\nallow = [\"read_file\", \"write_file\"]\n";

const RUN: [&str; 6] = ["run", "s.yaml", "--json", "--trust", "--session", "one"];

/// A project with this configuration and a script with these actions. JSON is YAML.
fn project(configuration: &str, actions: &Value) -> Home {
    let home = Home::new();
    home.file("bcc-script.toml", configuration);
    let topics = json!([{ "topic_id": "t", "actions": actions }]);
    home.file(
        "s.yaml",
        &json!({ "session": { "session_id": "s", "phases": [{ "phase_id": "p", "topics": topics }] } }).to_string(),
    );
    home
}

fn read(id: &str, config: Value) -> Value {
    json!({ "action_type": "read_file", "action_id": id, "config": config })
}

fn write(id: &str, config: Value) -> Value {
    json!({ "action_type": "write_file", "action_id": id, "config": config })
}

fn variable(finished: &Finished, name: &str) -> Value {
    let is_set = |event: &Value| event["type"] == "variable_set" && event["name"] == name;
    finished.events().into_iter().rfind(is_set).unwrap_or_else(|| panic!("{name} is not set: {finished:?}"))["value"]
        .clone()
}

fn text(home: &Home, file: &str) -> String {
    fs::read_to_string(home.path().join(file)).unwrap_or_default()
}

#[test]
fn files_are_read_as_values_and_written_as_text_or_json() {
    let home = project(
        ALLOWED,
        &json!([
            read("plan", json!({ "path": "data/plan.json", "output": "plan" })),
            read("notes", json!({ "path": "data/{{ plan.name }}.txt", "output": "notes" })),
            read("raw", json!({ "path": "data/plan.json", "as": "text", "output": "raw" })),
            write("save", json!({ "path": "out/deep/plan.json", "value": "{{ plan }}" })),
            write("line", json!({ "path": "out/log.txt", "content": "{{ notes }} ends\n", "mode": "append" })),
            write("again", json!({ "path": "out/log.txt", "content": "${x} {x}\n", "mode": "append" })),
            write("new", json!({ "path": "out/new.txt", "content": "new", "mode": "create" })),
        ]),
    );
    fs::create_dir(home.path().join("data")).unwrap();
    home.file("data/plan.json", "{\"name\": \"计划\", \"price\": 1.10}");
    home.file("data/计划.txt", "one {{ 1 + 1 }}\r\n");
    let finished = home.finish(RUN, "");
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert_eq!(variable(&finished, "notes"), "one {{ 1 + 1 }}\r\n");
    assert_eq!(variable(&finished, "raw"), "{\"name\": \"计划\", \"price\": 1.10}");
    assert_eq!(text(&home, "out/deep/plan.json"), "{\n  \"name\": \"计划\",\n  \"price\": 1.10\n}\n");
    assert_eq!(text(&home, "out/log.txt"), "one {{ 1 + 1 }}\r\n ends\n${x} {x}\n");
    assert_eq!(text(&home, "out/new.txt"), "new");
    let effects = |kind: &str| finished.events().iter().filter(|event| event["type"] == kind).count();
    assert_eq!((effects("effect_started"), effects("effect_finished")), (4, 4));
}

#[test]
fn what_cannot_be_read_or_written_fails_without_a_route() {
    let table = [
        (read("a", json!({ "path": "missing.txt", "output": "x" })), "cannot be read"),
        (read("a", json!({ "path": "bad.json", "output": "x" })), "not valid JSON: line 1, column 2"),
        (read("a", json!({ "path": "binary", "output": "x" })), "not UTF-8"),
        (read("a", json!({ "path": "bad.json", "max_bytes": 3, "output": "x" })), "larger than 3 bytes"),
        (read("a", json!({ "path": "{{ '..' }}/secret", "output": "x" })), "leads out of the project"),
        (read("a", json!({ "path": "{{ '/etc/passwd' }}", "output": "x" })), "leads out of the project"),
        (read("a", json!({ "path": "link", "output": "x" })), "leads out of the project"),
        (read("a", json!({ "path": ".bcc/sessions.db", "output": "x" })), "hidden files"),
        (read("a", json!({ "path": "pipe", "output": "x" })), "not a regular file"),
        (write("a", json!({ "path": "{{ '..' }}/new", "content": "x" })), "leads out of the project"),
        (write("a", json!({ "path": "link", "content": "x" })), "leads out of the project"),
        (write("a", json!({ "path": "bad.json", "content": "x", "mode": "create" })), "it exists already"),
        (write("a", json!({ "path": "s.yaml", "content": "x" })), "scripts, templates or schemas"),
        (write("a", json!({ "path": "bcc-script.toml", "content": "x" })), "the configuration"),
        (write("a", json!({ "path": "{{ '.git' }}/hooks/x", "content": "x" })), "hidden files"),
        (write("a", json!({ "path": "bad.json/x", "content": "x" })), "cannot be written"),
    ];
    for (action, expected) in table {
        let home = project(ALLOWED, &json!([action]));
        home.file("bad.json", "[secret]");
        home.put("binary", [0xff, 0xfe]);
        std::os::unix::fs::symlink("/etc/passwd", home.path().join("link")).unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            home.path().join("pipe"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RWXU,
            0,
        )
        .unwrap();
        let before = ["s.yaml", "bcc-script.toml", "bad.json"].map(|name| text(&home, name));
        let finished = home.finish(RUN, "");
        assert_eq!(finished.code, Some(1), "{action}: {finished:?}");
        assert!(finished.out.contains(expected), "{action}: {finished:?}");
        assert!(!finished.out.contains("secret]") && !finished.out.contains("root:"), "{action}: {finished:?}");
        assert_eq!(["s.yaml", "bcc-script.toml", "bad.json"].map(|name| text(&home, name)), before, "{action}");
        assert!(!home.path().join(".git").exists());
    }
}

#[test]
fn a_path_that_a_person_decides_stays_in_the_project() {
    let ask = json!({ "action_type": "ai_ask", "action_id": "ask", "config": { "content": "which?", "delivery": "verbatim", "max_rounds": 1 } });
    for (answer, code) in
        [("note", 0), ("../../../../etc/passwd", 1), ("/etc/passwd", 1), (".bcc/sessions.db", 1), ("a\u{0}b", 1)]
    {
        let home =
            project(ALLOWED, &json!([ask, read("a", json!({ "path": "{{ last_user_message }}", "output": "x" }))]));
        home.file("note", "fine");
        let finished = home.finish(RUN, format!("{}\n", json!({ "user": answer })));
        assert_eq!(finished.code, Some(code), "{answer}: {finished:?}");
        assert!(!finished.out.contains("root:"), "{answer}");
    }
}

#[test]
fn files_need_permission_and_trust_before_the_session_starts() {
    let actions = json!([write("a", json!({ "path": "x.txt", "content": "x" }))]);
    for (configuration, arguments, help) in [
        ("", &RUN[..], "allow = [\"write_file\"]"),
        ("[project]\nallow = [\"read_file\", \"command\"]\n", &RUN[..], "allow = [\"write_file\"]"),
        (ALLOWED, &["run", "s.yaml", "--session", "one"][..], "bcc-script trust"),
    ] {
        let home = project(configuration, &actions);
        let finished = home.finish(arguments, "");
        assert_eq!(finished.code, Some(2), "{finished:?}");
        assert!((finished.out.replace("\\\"", "\"") + &finished.err).contains(help), "{finished:?}");
        assert!(!home.store().exists() && !home.path().join("x.txt").exists());
    }
    // What a script writes does not end the trust in its project.
    let home = project(ALLOWED, &actions);
    assert_eq!(home.finish(["trust"], "").code, Some(0));
    for session in ["one", "two"] {
        assert_eq!(home.finish(["run", "s.yaml", "--session", session], "").code, Some(0));
    }
    assert_eq!(text(&home, "x.txt"), "x");
}

#[test]
fn conversation_tests_use_only_their_own_files() {
    let actions = json!([
        read("a", json!({ "path": "plan.json", "output": "plan" })),
        write("b", json!({ "path": "./out.txt", "content": "{{ plan.steps }}" })),
        read("c", json!({ "path": "out.txt", "output": "copy" })),
    ]);
    for (files, code, expected) in
        [(json!({ "plan.json": "{\"steps\": 3}" }), 0, "1 passed"), (json!({}), 1, "the test has no such file")]
    {
        let home = project("", &actions);
        home.file("plan.json", "{\"steps\": 4}");
        let test = json!({ "test": "it copies", "script": "s.yaml", "files": files, "dialogue": [{ "expect": { "variables": { "copy": "3" } } }] });
        home.file("t.yaml", &test.to_string());
        let finished = home.finish(["test", "t.yaml"], "");
        let said = finished.out + &finished.err;
        assert_eq!(finished.code, Some(code), "{said}");
        assert!(said.contains(expected) && !home.path().join("out.txt").exists(), "{said}");
    }
}

#[test]
fn what_is_wrong_in_the_config_is_reported() {
    let table = [
        (read("a", json!({ "path": "../x", "output": "x" })), "path-outside"),
        (read("a", json!({ "path": "/x", "output": "x" })), "path-outside"),
        (read("a", json!({ "path": "x" })), "needs `output`"),
        (read("a", json!({ "path": "x", "output": "a b" })), "invalid-name"),
        (read("a", json!({ "path": "x", "as": "csv", "output": "x" })), "must be one of"),
        (write("a", json!({ "path": "x" })), "does not specify what to write"),
        (write("a", json!({ "path": "x", "content": "x", "value": 1 })), "has both `content` and `value`"),
        (write("a", json!({ "path": "x/../../y", "content": "x" })), "path-outside"),
    ];
    for (action, expected) in table {
        let home = project("", &json!([action]));
        let finished = home.finish(["validate", "s.yaml"], "");
        let said = finished.out + &finished.err;
        assert!(finished.code != Some(0) && said.contains(expected), "{action}: {said}");
    }
}

#[test]
fn paths_that_no_script_can_use_are_warnings() {
    let table = [
        read("a", json!({ "path": "data/.env", "output": "x" })),
        read("a", json!({ "path": "bcc-script.toml", "output": "x" })),
        write("a", json!({ "path": ".bcc/x.txt", "content": "x" })),
        write("a", json!({ "path": "run.sh", "content": "x" })),
        write("a", json!({ "path": "./_system/config/x.md", "content": "x" })),
        write("a", json!({ "path": "other.YAML", "content": "x" })),
    ];
    for action in table {
        let home = project("", &json!([action]));
        let finished = home.finish(["validate", "s.yaml"], "");
        let said = finished.out + &finished.err;
        assert!(finished.code == Some(0) && said.contains("warning[path-not-permitted]"), "{action}: {said}");
    }
    let report = "session: { session_id: s, report: { out: .reports/x.md }, actions: [{ action_type: ai_say, config: { content: a } }] }";
    let home = Home::new();
    home.file("s.yaml", report);
    let finished = home.finish(["validate", "s.yaml"], "");
    assert!((finished.out + &finished.err).contains("warning[path-not-permitted]"));
}

#[test]
fn a_full_disk_leaves_the_old_file_and_no_part_of_the_new_one() {
    let works = std::process::Command::new("unshare").args(["--mount", "--map-root-user", "true"]).status();
    if !works.is_ok_and(|status| status.success()) {
        println!("left out: no file system can be mounted here");
        return;
    }
    for mode in ["replace", "append"] {
        let more = json!({ "path": "out/log.txt", "content": "{{ much }}", "mode": mode });
        let home = project(
            ALLOWED,
            &json!([
                { "action_type": "set", "action_id": "set", "config": { "values": { "much": "长".repeat(60_000) } } },
                write("small", json!({ "path": "out/log.txt", "content": "old\n" })),
                write("large", more),
            ]),
        );
        fs::create_dir(home.path().join("out")).unwrap();
        let program = home.command(RUN);
        let script =
            "mount -t tmpfs -o size=64k tmpfs out; \"$@\"; code=$?; cp -a out/. kept; ls -A out > list; exit $code";
        let mut command = std::process::Command::new("unshare");
        command.args(["--mount", "--map-root-user", "/bin/sh", "-c", script, "sh"]);
        command.arg(program.get_program()).args(program.get_args()).current_dir(home.path()).env_clear();
        command.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let finished = process::finished(command, "");
        assert_eq!(finished.code, Some(1), "{finished:?}");
        assert!(finished.out.contains("cannot be written") && finished.out.contains("space"), "{finished:?}");
        assert_eq!(text(&home, "list"), "log.txt\n", "no temporary file remains");
        assert_eq!(text(&home, "kept/log.txt"), "old\n", "{mode}");
    }
}
