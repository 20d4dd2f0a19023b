//! What code and behavior servers need is found out before a session begins; what is missing later stops it, and it can be resumed.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

use serde_json::{Value, json};

use crate::kernel::attached::script;
use crate::process::{Finished, Home, finished};
use crate::test_kernel::{kernel_python, kernel_variables};

const RUN: [&str; 8] = ["run", "script.yaml", "--session", "s", "--trust", "--model", "offline", "--json"];
const RESUME: [&str; 5] = ["sessions", "resume", "s", "--trust", "--json"];

/// A behavior server that sends one cell to run. Returns its address.
fn behavior_server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            answer(stream);
        }
    });
    format!("http://{address}")
}

fn answer(mut stream: TcpStream) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let (mut first, mut length) = (String::new(), 0);
    reader.read_line(&mut first).ok()?;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        if line.trim().is_empty() {
            break;
        }
    }
    reader.read_exact(&mut vec![0; length]).ok()?;
    let cell = json!({ "action": "add", "content_type": "code", "content": "print(6 * 7)", "metadata": { "should_execute": true } });
    let (status, body) = match first.split(' ').nth(1)? {
        _ if first.starts_with("GET") => ("405 Method Not Allowed", Value::Null),
        "/v1/actions" => ("200 OK", json!({ "actions": [cell], "transition": { "target_achieved": true } })),
        _ => ("200 OK", json!({ "target_achieved": true })),
    };
    let body = body.to_string();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).ok()
}

/// A loop of the server at this address, after a question if `asks`.
fn home(url: &str, allow: &str, asks: bool) -> Home {
    let home = Home::new();
    home.file("bcc-script.toml", &format!("[project]\nallow = [{allow}]\n\n[behavior_servers.b]\nurl = \"{url}\"\n"));
    let ask = json!({ "action_type": "ai_ask", "action_id": "ask", "config": { "content": "Ready?" } });
    let work = json!({ "action_type": "behavior_loop", "action_id": "work", "config": { "server": "b" } });
    let actions: Vec<Value> = asks.then_some(ask).into_iter().chain([work]).collect();
    let topics = json!([{ "topic_id": "t", "actions": actions }]);
    let phases = json!([{ "phase_id": "p", "topics": topics }]);
    home.file("script.yaml", &json!({ "session": { "session_id": "loop", "phases": phases } }).to_string());
    home
}

fn program(home: &Home, arguments: &[&str], input: &str) -> Finished {
    let mut command = home.command(arguments);
    if let Some(python) = kernel_python() {
        command.envs(kernel_variables(&python));
    }
    finished(command, input)
}

#[test]
fn a_behavior_server_that_does_not_answer_is_told_before_the_session_exists() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let home = home(&format!("http://{closed}"), "", false);
    let refused = program(&home, &["run", "script.yaml", "--trust", "--model", "offline"], "");
    assert_eq!(refused.code, Some(2), "{}", refused.err);
    assert!(
        refused.err.contains("the action `work` asks a behavior server: the behavior server `b` cannot be reached"),
        "{}",
        refused.err
    );
    assert!(!home.finish(["sessions", "list"], "").out.contains("loop"));
}

#[test]
fn a_store_with_other_sessions_makes_no_difference_to_what_is_told_before() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let home = home(&format!("http://{closed}"), "\"exec\"", true);
    let say =
        json!({ "action_type": "ai_say", "action_id": "a", "config": { "content": "Hello", "delivery": "verbatim" } });
    let phases = json!([{ "phase_id": "p", "topics": [{ "topic_id": "t", "actions": [say] }] }]);
    home.file("plain.yaml", &json!({ "session": { "session_id": "plain", "phases": phases } }).to_string());
    home.file("code.yaml", &script(&json!({ "name": "nokernel" }), &["x = 1"]));
    let other = program(&home, &["run", "plain.yaml", "--session", "other", "--model", "offline"], "");
    assert_eq!(other.code, Some(0), "{}", other.err);
    for (file, expected) in [("script.yaml", "the behavior server `b` cannot be reached"), ("code.yaml", "nokernel")] {
        let refused = program(&home, &["run", file, "--session", "s", "--trust", "--model", "offline"], "");
        assert_eq!(refused.code, Some(2), "{file}: {} {}", refused.out, refused.err);
        assert!(refused.err.contains(expected), "{}", refused.err);
        assert_eq!(home.finish(["sessions", "show", "s"], "").code, Some(2), "there is no such session");
    }
}

#[test]
fn a_behavior_server_that_is_gone_in_the_middle_stops_the_session_until_it_is_back() {
    if kernel_python().is_none() {
        return;
    }
    let url = behavior_server();
    let home = home(&url, "\"exec\"", true);
    let waiting = program(&home, &RUN, "");
    assert_eq!(waiting.code, Some(3), "{}", waiting.err);
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let config = std::fs::read_to_string(home.path().join("bcc-script.toml")).unwrap();
    home.file("bcc-script.toml", &config.replace(&url, &format!("http://{closed}")));
    let stopped = program(&home, &RESUME, "yes\n");
    assert_eq!(stopped.code, Some(3), "{} {}", stopped.out, stopped.err);
    assert!(stopped.out.contains("server-unreachable"), "{}", stopped.out);
    home.file("bcc-script.toml", &config);
    let done = program(&home, &RESUME, "");
    assert_eq!(done.code, Some(0), "{} {}", done.out, done.err);
    assert_eq!(home.export("s")["notebook"]["cells"][0]["outputs"][0]["text"], "42\n");
}

#[test]
fn a_loop_whose_server_sends_code_without_permission_stops_until_it_is_there() {
    if kernel_python().is_none() {
        return;
    }
    let home = home(&behavior_server(), "", false);
    let stopped = program(&home, &RUN, "");
    assert_eq!(stopped.code, Some(3), "{} {}", stopped.out, stopped.err);
    assert!(stopped.out.contains("exec-not-allowed"), "{}", stopped.out);
    let config = std::fs::read_to_string(home.path().join("bcc-script.toml")).unwrap();
    home.file("bcc-script.toml", &config.replace("allow = []", "allow = [\"exec\"]"));
    let done = program(&home, &RESUME, "");
    assert_eq!(done.code, Some(0), "{} {}", done.out, done.err);
    let cells = home.export("s")["notebook"]["cells"].as_array().unwrap().clone();
    assert_eq!(cells.len(), 1, "the cell is there once: {cells:?}");
    assert_eq!(cells[0]["outputs"][0]["text"], "42\n");
}

#[test]
fn validate_notes_that_code_is_not_allowed_or_has_no_kernel_here() {
    let home = Home::new();
    let notes = |kernel: Value, config: &str| {
        home.file("bcc-script.toml", config);
        home.file("script.yaml", &script(&kernel, &["print(1)"]));
        let checked = home.finish(["validate", "script.yaml", "--format", "json", "--deny", "warnings"], "");
        assert_eq!(checked.code, Some(0), "notes are no warnings: {} {}", checked.out, checked.err);
        let report: Value = serde_json::from_str(&checked.out).unwrap();
        let found = report["diagnostics"].as_array().unwrap().iter();
        found
            .map(|found| format!("{} {}", found["severity"].as_str().unwrap(), found["rule"].as_str().unwrap()))
            .collect::<Vec<_>>()
    };
    let allowed = "[project]\nallow = [\"exec\"]\n";
    assert_eq!(notes(json!("nowhere"), ""), ["info code-not-allowed"]);
    assert_eq!(notes(json!("nowhere"), allowed), ["info missing-kernel"]);
    assert_eq!(notes(json!({ "jupyter": "http://localhost:8888" }), allowed), ["info code-not-allowed"]);
    let named = format!("{allowed}[[kernel.jupyter]]\nurl = \"http://localhost:8888/\"\n");
    assert_eq!(notes(json!({ "jupyter": "http://localhost:8888" }), &named), Vec::<String>::new());
    assert_eq!(notes(json!({ "connection_file": "k.json" }), allowed), Vec::<String>::new());
    assert_eq!(notes(json!("nowhere"), &format!("{allowed}[rules]\nmissing-kernel = \"off\"\n")), Vec::<String>::new());
}

#[test]
fn validate_reports_settings_of_the_kernel_that_do_not_fit_together() {
    let home = Home::new();
    home.file("bcc-script.toml", "[project]\nallow = [\"exec\"]\n");
    for (kernel, rule, part) in [
        (
            json!({ "connection_file": "k.json", "name": "python3" }),
            "conflicting-fields",
            "`connection_file` and `name`",
        ),
        (
            json!({ "connection_file": "k.json", "jupyter": "http://localhost:1" }),
            "conflicting-fields",
            "and `jupyter`",
        ),
        (
            json!({ "jupyter": "http://localhost:1", "kernel_id": "a", "name": "b" }),
            "conflicting-fields",
            "`kernel_id` and `name`",
        ),
        (json!({ "token_env": "T" }), "conflicting-fields", "`token_env` belongs to a Jupyter server"),
        (json!({ "jupyter": "localhost:8888" }), "invalid-name", "not the address"),
        (json!({ "jupyter": "http://localhost:1/?token=geheim" }), "invalid-name", "no user, no token"),
        (
            json!({ "jupyter": "http://localhost:1", "token_env": "sk-geheim" }),
            "invalid-name",
            "not the name of an environment variable",
        ),
        (json!({ "jupyter": "http://localhost:1", "kernel_id": "../a" }), "invalid-name", "id of a kernel"),
        (json!({ "connection_file": "" }), "invalid-name", "path of a connection file"),
    ] {
        home.file("script.yaml", &script(&kernel, &["print(1)"]));
        let checked = home.finish(["validate", "script.yaml", "--format", "json"], "");
        assert_eq!(checked.code, Some(1), "{kernel}: {} {}", checked.out, checked.err);
        let report: Value = serde_json::from_str(&checked.out).unwrap();
        let found = report["diagnostics"].as_array().unwrap();
        let fits = |found: &Value| found["rule"] == rule && found["message"].as_str().unwrap().contains(part);
        assert!(found.iter().any(fits), "{kernel}: {found:?}");
    }
}
