//! `validate` tells what `run` would refuse a script for: behavior servers and kernels that do not answer, and missing permissions.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::process::{Home, finished};

/// An address at which nothing listens.
fn closed() -> String {
    format!("http://{}", TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap())
}

/// A server that counts the requests, and answers them with 405.
fn counting() -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            counted.fetch_add(1, Ordering::SeqCst);
            let _ = stream.read(&mut [0; 4096]);
            let _ =
                stream.write_all(b"HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        }
    });
    (address, count)
}

fn script(id: &str, session: &Value, actions: &Value) -> String {
    let phases = json!([{ "phase_id": "p", "topics": [{ "topic_id": "t", "actions": actions }] }]);
    let mut session = session.clone();
    session["session_id"] = json!(id);
    session["template_scheme"] = json!("english");
    session["phases"] = phases;
    json!({ "session": session }).to_string()
}

fn asking(id: &str, server: &str) -> String {
    script(
        id,
        &json!({}),
        &json!([{ "action_type": "behavior_loop", "action_id": "work", "config": { "server": server } }]),
    )
}

/// The severities, rules and messages of what `validate` reports with exit code 0, also with `--deny warnings`.
fn notes(home: &Home, trusted: bool, paths: &[&str]) -> Vec<(String, String, String)> {
    notes_of(home, if trusted { "1" } else { "0" }, paths)
}

fn notes_of(home: &Home, trust: &str, arguments: &[&str]) -> Vec<(String, String, String)> {
    let mut command = home.command(["validate", "--format", "json", "--deny", "warnings"]);
    command.args(arguments).env("BCC_TRUST", trust);
    let checked = finished(command, "");
    assert_eq!(checked.code, Some(0), "{} {}", checked.out, checked.err);
    let report: Value = serde_json::from_str(&checked.out).unwrap();
    let text = |found: &Value, key: &str| found[key].as_str().unwrap_or_default().to_owned();
    let found = report["diagnostics"].as_array().unwrap().iter();
    found.map(|found| (text(found, "severity"), text(found, "rule"), text(found, "message"))).collect()
}

#[test]
fn a_behavior_server_that_does_not_answer_is_noted_for_each_script_that_asks_it() {
    let home = Home::new();
    home.file("bcc-script.toml", &format!("[behavior_servers.b]\nurl = \"{}\"\n", closed()));
    home.put("scripts/one.yaml", asking("one", "b"));
    home.put("scripts/two.yaml", asking("two", "b"));
    let found = notes(&home, true, &["scripts"]);
    assert_eq!(found.len(), 2, "{found:?}");
    for (severity, rule, message) in &found {
        assert_eq!((severity.as_str(), rule.as_str()), ("info", "missing-server"));
        let told = "the action `work` asks a behavior server: the behavior server `b` cannot be reached";
        assert!(message.contains(told), "{message}");
    }
}

#[test]
fn each_server_is_asked_once_and_one_that_answers_is_not_noted() {
    let (address, count) = counting();
    let home = Home::new();
    home.file("bcc-script.toml", &format!("[behavior_servers.b]\nurl = \"{address}\"\n"));
    home.put("scripts/one.yaml", asking("one", "b"));
    home.put("scripts/two.yaml", asking("two", "b"));
    assert_eq!(notes(&home, true, &["scripts"]), []);
    assert_eq!(count.load(Ordering::SeqCst), 1);
}

#[test]
fn a_server_that_accepts_connections_and_says_nothing_is_noted() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let home = Home::new();
    home.file("bcc-script.toml", &format!("[behavior_servers.b]\nurl = \"http://{address}\"\n"));
    home.file("one.yaml", &asking("one", "b"));
    let found = notes(&home, true, &["one.yaml"]);
    assert!(
        matches!(found.as_slice(), [(_, rule, message)] if rule == "missing-server" && message.contains("did not answer within 3 seconds")),
        "{found:?}"
    );
}

#[test]
fn nothing_is_contacted_that_the_person_or_the_script_does_not_want() {
    let (address, count) = counting();
    let server = format!("[behavior_servers.b]\nurl = \"{address}\"\n");
    let home = Home::new();
    home.file("bcc-script.toml", &server);
    home.file("one.yaml", &asking("one", "b"));
    home.file("commented.yaml", &format!("# bcc: allow(missing-server)\n{}", asking("commented", "b")));
    let routed = json!([{ "action_type": "behavior_loop", "action_id": "work", "config": { "server": "b" }, "on_exit": { "error": "next" } }]);
    home.file("routed.yaml", &script("routed", &json!({}), &routed));
    home.file("unknown.yaml", &asking("unknown", "c"));
    let found = notes(&home, false, &["one.yaml"]);
    assert!(
        matches!(found.as_slice(), [(_, rule, message)] if rule == "missing-server" && message.contains("is not trusted")),
        "{found:?}"
    );
    let found = notes(&home, true, &["unknown.yaml"]);
    assert!(
        matches!(found.as_slice(), [(_, rule, message)] if rule == "missing-server" && message.contains("there is no behavior server `c`")),
        "{found:?}"
    );
    assert_eq!(notes(&home, true, &["commented.yaml", "routed.yaml"]), []);
    home.file("bcc-script.toml", &format!("{server}[rules]\nmissing-server = \"off\"\n"));
    assert_eq!(notes(&home, true, &["one.yaml"]), []);
    assert_eq!(count.load(Ordering::SeqCst), 0);
}

#[test]
fn a_kernel_that_must_run_already_is_noted_in_a_trusted_project_if_it_does_not() {
    let home = Home::new();
    let url = closed();
    let config = format!("[project]\nallow = [\"exec\"]\n[[kernel.jupyter]]\nurl = \"{url}\"\n");
    home.file("bcc-script.toml", &config);
    let code = json!([{ "action_type": "add", "action_id": "code",
        "config": { "shot_type": "action", "content": "print(1)", "metadata": { "should_execute": true } } }]);
    home.file("file.yaml", &script("file", &json!({ "kernel": { "connection_file": "gone.json" } }), &code));
    home.file("jupyter.yaml", &script("jupyter", &json!({ "kernel": { "jupyter": url } }), &code));
    assert_eq!(notes(&home, false, &["file.yaml", "jupyter.yaml"]), []);
    for (file, part) in [("file.yaml", "gone.json"), ("jupyter.yaml", url.as_str())] {
        let found = notes(&home, true, &[file]);
        assert!(
            matches!(found.as_slice(), [(severity, rule, message)] if severity == "info" && rule == "missing-kernel"
                && message.starts_with("the action `code` runs code: ") && message.contains(part)),
            "{found:?}"
        );
    }
}

#[test]
fn permissions_that_the_project_does_not_give_are_noted() {
    let home = Home::new();
    let actions = json!([
        { "action_type": "write_file", "action_id": "keep", "config": { "path": "notes.txt", "content": "Done." } },
        { "action_type": "command", "action_id": "list", "config": { "command": ["ls"] } },
    ]);
    home.file("one.yaml", &script("one", &json!({ "report": { "out": "report.md" } }), &actions));
    home.file("bcc-script.toml", "[project]\nallow = [\"command:l*\"]\n");
    let found = notes(&home, false, &["one.yaml"]);
    let told: Vec<(&str, &str)> = found.iter().map(|(_, rule, message)| (rule.as_str(), message.as_str())).collect();
    let reason = "needs `write_file`: the project does not allow `write_file`";
    let expected = [format!("`report` {reason}"), format!("the action `keep` {reason}")];
    let mut messages: Vec<&str> = told.iter().map(|(_, message)| *message).collect();
    messages.sort_unstable();
    assert_eq!(messages, expected, "{told:?}");
    home.file("bcc-script.toml", "[project]\nallow = [\"write_file\", \"command\"]\n");
    assert_eq!(notes(&home, false, &["one.yaml"]), []);
}

#[test]
fn the_option_that_the_note_names_has_the_services_asked() {
    let home = Home::new();
    let url = closed();
    home.file("bcc-script.toml", &format!("[behavior_servers.b]\nurl = \"{url}\"\n"));
    home.file("one.yaml", &asking("one", "b"));
    let untrusted = home.finish(["validate", "one.yaml"], "");
    assert!(untrusted.out.contains("or use `--trust` for this run"), "{}", untrusted.out);
    let found = notes_of(&home, "0", &["one.yaml", "--trust"]);
    assert!(
        matches!(found.as_slice(), [(_, rule, message)] if rule == "missing-server" && message.contains("cannot be reached")),
        "{found:?}"
    );
}
