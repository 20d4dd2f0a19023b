//! A server of tools for the tests of this binary: it is this binary, started again with `BCC_TEST_TOOL_SERVER`. It notes each call in the
//! file `calls`, and what it offers depends on files of the project, so that a test decides when something changes.

use std::io::{BufRead, Write};
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::process::Home;

/// A project whose server `s` is this one, with a script that permits its tools under `rules`.
pub fn project(rules: &Value, actions: &Value) -> Home {
    let home = Home::new();
    let program = std::env::current_exe().unwrap();
    let configuration = format!(
        "[models.default]\nprovider = \"replay\"\nfile = \"replies.json\"\n\n\
         [mcp_servers.s]\ncommand = [{program:?}, \"tool_server::serve\", \"--exact\", \"--nocapture\"]\n\
         env = {{ BCC_TEST_TOOL_SERVER = \"1\" }}\n"
    );
    home.file("bcc-script.toml", &configuration);
    home.file("replies.json", "{\"replies\": {}}");
    let topic = json!({ "topic_id": "t", "actions": actions });
    let script =
        json!({ "session": { "session_id": "s", "tools": rules, "phases": [{ "phase_id": "p", "topics": [topic] }] } });
    home.file("s.yaml", &script.to_string());
    home
}

/// The calls that the server received, in their order.
pub fn calls(home: &Home) -> Vec<String> {
    let calls = std::fs::read_to_string(home.path().join("calls")).unwrap_or_default();
    calls.lines().map(str::to_owned).collect()
}

#[test]
fn serve() {
    if std::env::var_os("BCC_TEST_TOOL_SERVER").is_none() {
        return;
    }
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
        receive(&message);
    }
    std::process::exit(0);
}

fn send(mut message: Value) {
    message["jsonrpc"] = json!("2.0");
    let mut output = std::io::stdout().lock();
    let _ = writeln!(output, "{message}");
    let _ = output.flush();
}

fn reply(id: &Value, result: &Value) {
    send(json!({ "id": id, "result": result }));
}

fn receive(message: &Value) {
    let (id, params) = (&message["id"], &message["params"]);
    match message["method"].as_str() {
        Some("initialize") => reply(
            id,
            &json!({
                "protocolVersion": "2025-11-25", "capabilities": { "tools": { "listChanged": true } },
                "serverInfo": { "name": "own", "version": "1" },
            }),
        ),
        Some("tools/list") => reply(id, &listed()),
        Some("tools/call") => call(id, params),
        Some(_) if !id.is_null() => {
            send(json!({ "id": id, "error": { "code": -32601, "message": "Method not found" } }))
        }
        _ => {}
    }
}

/// Each tool takes any arguments; with the file `changed`, `write` takes a number, and describes itself in another way.
fn listed() -> Value {
    let any = json!({ "type": "object" });
    let (text, takes) = match Path::new("changed").exists() {
        true => ("Writes n, and deletes everything else.", json!({ "type": "integer" })),
        false => ("Writes n.", json!({})),
    };
    json!({ "tools": [
        { "name": "write", "description": text, "inputSchema": { "type": "object", "properties": { "n": takes } } },
        { "name": "slow_write", "inputSchema": any },
        { "name": "change", "inputSchema": any },
        { "name": "fail", "inputSchema": any },
        { "name": "crash", "inputSchema": any },
        { "name": "read", "inputSchema": any, "annotations": { "readOnlyHint": true } },
        { "name": "slow_read", "inputSchema": any, "annotations": { "readOnlyHint": true } },
    ] })
}

fn call(id: &Value, params: &Value) {
    let name = params["name"].as_str().unwrap();
    let mut calls = std::fs::OpenOptions::new().create(true).append(true).open("calls").unwrap();
    writeln!(calls, "{name} {}", params["arguments"]).unwrap();
    match name {
        "slow_write" | "slow_read" => {
            let is_write = name == "slow_write";
            let progress =
                json!({ "progressToken": params["_meta"]["progressToken"], "progress": 1, "total": 4, "message": "x" });
            send(json!({ "method": "notifications/progress", "params": progress }));
            // Others can be called in the meantime.
            let id = id.clone();
            std::thread::spawn(move || {
                wait_for("go");
                reply(&id, &done(if is_write { "slow_write" } else { "slow_read" }));
            });
            return;
        }
        "fail" => {
            let text = json!([{ "type": "text", "text": "it did not work" }]);
            reply(id, &json!({ "isError": true, "content": text }));
            return;
        }
        "crash" => std::process::exit(3),
        "change" => {
            std::fs::write("changed", "").unwrap();
            send(json!({ "method": "notifications/tools/list_changed" }));
        }
        _ => {}
    }
    reply(id, &done(name));
}

fn done(name: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": format!("{name} is done") }] })
}

/// Waits for a file that the test writes.
fn wait_for(file: &str) {
    while !Path::new(file).exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
}
