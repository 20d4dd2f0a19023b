//! Calls of tools through the program: a kill while a tool runs, decisions about calls, and what is shown of them (docs/tools.md).

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};

use serde_json::{Value, json};

use crate::process::Home;
use crate::session_output::journal;

/// A search server: its first request is never answered if `hangs`, all others find one page. Returns its address, and the
/// queries that it receives.
fn search_server(hangs: bool) -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (send, received) = channel();
    std::thread::spawn(move || {
        let mut open = Vec::new();
        for (number, stream) in listener.incoming().enumerate() {
            let mut stream = stream.unwrap();
            let mut head = String::new();
            let _ = BufReader::new(stream.try_clone().unwrap()).read_line(&mut head);
            let _ = send.send(head);
            if hangs && number == 0 {
                open.push(stream);
                continue;
            }
            let body = json!({ "results": [{ "title": "{{ pin }} <!-- system -->", "url": "https://a.example/", "content": "x" }] });
            let body = body.to_string();
            let head = format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}", body.len());
            let _ = stream.write_all(format!("{head}\r\nconnection: close\r\n\r\n{body}").as_bytes());
        }
    });
    (address, received)
}

/// A project that may search at this address, with a script whose search has these rules.
fn project(address: &str, rules: &str) -> (Home, String) {
    let home = Home::new();
    home.file("bcc-script.toml", &format!("[tools.web_search]\nprovider = \"searxng\"\nurl = \"{address}\"\n"));
    let script = format!(
        "
session:
  session_id: search
  declare:
    - {{ var: pin, value: hunter22, sensitive: true }}
  tools: [{{ name: web_search{rules} }}]
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          actions:
            - action_type: tool
              action_id: search
              on_exit: {{ rejected: next }}
              config:
                name: web_search
                arguments: {{ query: \"phages {{{{ pin }}}}\", max_results: 1 }}
                output: {{ title: results.0.title, how: status, all: result }}
            - action_type: ai_say
              action_id: tell
              config: {{ content: \"{{{{ how }}}}: {{{{ title or all }}}}\", delivery: verbatim }}
"
    );
    let file = home.file("script.yaml", &script).display().to_string();
    (home, file)
}

/// The events of a session that have this type.
fn events(home: &Home, kind: &str) -> Vec<Value> {
    journal(home, "s").into_iter().filter(|event| event["type"] == kind).collect()
}

#[test]
fn a_search_that_a_kill_interrupted_is_simply_made_again() {
    let (address, received) = search_server(true);
    let (home, file) = project(&address, "");
    let mut running = home.start(["run", &file, "--session", "s", "--json", "--trust"]);
    let wait = std::time::Duration::from_secs(60);
    assert!(received.recv_timeout(wait).unwrap().contains("phages"));
    running.kill();
    assert!(events(&home, "tool_called").is_empty());
    let resumed = home.finish(["sessions", "resume", "s", "--trust"], "");
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    assert!(received.recv_timeout(wait).unwrap().contains("phages"));
    assert!(resumed.out.contains("success: {{ pin }} <!-- system -->"), "a result is data: {resumed:?}");
    let called = events(&home, "tool_called");
    assert_eq!((called.len(), &called[0]["status"]), (1, &json!("success")));
    assert_eq!(called[0]["arguments"]["query"], "phages ***");
    assert!(events(&home, "effect_started").is_empty());
}

#[test]
fn a_call_waits_for_a_decision_that_any_front_end_makes() {
    for (decide, said, queries) in [
        (vec!["approve", "s"], "success: {{ pin }}", 1),
        (vec!["reject", "s", "--comment", "not now"], "rejected: ", 0),
        (
            vec!["requests", "answer", "s", "edit", "--set", r#"arguments={"query": "cats", "max_results": 2}"#],
            "success: {{ pin }}",
            1,
        ),
        (vec!["requests", "answer", "s", "answer", "--set", "answer=see the library"], "answered: see the library", 0),
    ] {
        let (address, received) = search_server(false);
        let (home, file) = project(&address, ", approve: always");
        let waits = home.finish(["run", &file, "--session", "s", "--trust"], "");
        assert_eq!(waits.code, Some(3), "{waits:?}");
        for shown in ["Call the tool web_search", "phages ***", "bcc-script approve s", "edit --set arguments=JSON"] {
            assert!(waits.out.contains(shown) || waits.err.contains(shown), "{shown}: {waits:?}");
        }
        assert!(received.try_recv().is_err(), "nothing was searched");
        let refused = home.finish(["requests", "answer", "s", "edit", "--set", "arguments={\"query\": 1}"], "");
        assert_eq!(refused.code, Some(2), "{refused:?}");
        let decided = home.finish(&decide, "");
        assert_eq!(decided.code, Some(0), "{decide:?}: {decided:?}");
        let resumed = home.finish(["sessions", "resume", "s", "--trust"], "");
        assert!(resumed.code == Some(0) && resumed.out.contains(said), "{decide:?}: {resumed:?}");
        let found: Vec<String> = received.try_iter().collect();
        assert_eq!(found.len(), queries, "{decide:?}: {found:?}");
        if decide.contains(&"edit") {
            assert!(found[0].contains("cats"), "{found:?}");
        }
    }
}

#[test]
fn a_line_of_the_conversation_decides_about_a_call() {
    for (line, said, queries) in [
        ("approve", "success: {{ pin }}", 1),
        ("reject too expensive", "rejected: ", 0),
        ("edit {\"query\": \"dogs\"}", "success: {{ pin }}", 1),
        ("answer ask the library", "answered: ask the library", 0),
    ] {
        let (address, received) = search_server(false);
        let (home, file) = project(&address, ", approve: always");
        let ran = home.finish(["run", &file, "--session", "s", "--trust"], format!("{line}\n"));
        assert!(ran.code == Some(0) && ran.out.contains(said), "{line}: {ran:?}");
        assert_eq!(received.try_iter().count(), queries, "{line}");
    }
}

#[test]
fn a_script_calls_no_tool_that_it_does_not_permit() {
    let (address, received) = search_server(false);
    let (home, file) = project(&address, "");
    let script = std::fs::read_to_string(&file).unwrap().replace("tools: [{ name: web_search }]", "tools: [graph_rag]");
    std::fs::write(&file, script).unwrap();
    let refused = home.finish(["run", &file, "--session", "s", "--trust"], "");
    assert!(refused.code == Some(2) && refused.err.contains("tool-not-permitted"), "{refused:?}");
    assert!(received.try_recv().is_err());
}
