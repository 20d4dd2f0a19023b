//! Sessions with code cells over HTTP: the question about interrupted code, and cells that run again.

use serde_json::{Value, json};

use crate::process::{Home, Running};
use crate::served::Serving;
use crate::test_kernel::{kernel_python, kernel_variables};

const WAITS: &str = "import os, time\nprint('it runs', flush=True)\nwhile not os.path.exists('go'):\n    time.sleep(0.01)\nprint(x + 1)";

#[tokio::test]
async fn the_request_about_interrupted_code_shows_it_and_a_client_sees_the_cells_that_run_again() {
    let Some(python) = kernel_python() else { return };
    let home = Home::new();
    home.put("bcc-script.toml", "[project]\nallow = [\"exec\"]\n");
    let add = |id: &str, code: &str| {
        json!({ "action_type": "add", "action_id": id,
        "config": { "shot_type": "action", "content": code, "metadata": { "should_execute": true } } })
    };
    let phases =
        json!([{ "phase_id": "p", "topics": [{ "topic_id": "t", "actions": [add("a", "x = 41"), add("b", WAITS)] }] }]);
    let session = json!({ "session_id": "code", "kernel": { "on_resume": "rerun" }, "phases": phases });
    home.put("scripts/code.yaml", json!({ "session": session }).to_string());
    let program = |arguments: &[&str]| {
        let mut command = home.command(arguments);
        command.envs(kernel_variables(&python));
        Running::start(command)
    };
    let mut running =
        program(&["run", "scripts/code.yaml", "--session", "s", "--trust", "--json", "--model", "offline"]);
    while running.event_of("cell_output")["cell_id"] != "cell-2" {}
    running.kill();
    let serving = Serving::of(program(&["serve", "--addr", "127.0.0.1:0", "--trust", "--model", "offline"]));
    let state = serving.post("/v1/sessions/s/continue", json!({})).await.json();
    assert_eq!(state["status"], "waiting_input", "{state}");
    let open: Value = serving.get("/v1/requests").await.json();
    let request = &open["requests"][0];
    let shown = "\n\n    import os, time\n    print('it runs', flush=True)\n    while not os.path.exists('go'):\n        time.sleep(0.01)\n    print(x + 1)\n\n";
    assert!(request["prompt"].as_str().unwrap().contains(shown), "{request}");
    // What is no decision changes nothing.
    let path = format!("/v1/requests/s/{}", request["request_id"].as_str().unwrap());
    for nonsense in ["approve", "again please", ""] {
        let refused = serving.post(&path, json!({ "decision": nonsense })).await;
        assert_eq!(refused.status, 400, "{refused:?}");
        assert_eq!(refused.json()["help"], "permitted: `again`, `skip`, `fail`");
    }
    assert_eq!(serving.get("/v1/requests").await.json(), open);
    let mut events = serving.events("s", None).await;
    let (_, again) = tokio::join!(serving.post(&path, json!({ "decision": "Retry!" })), async {
        let again = events.until("cell_rerun").await.pop().unwrap();
        home.file("go", "");
        again
    });
    let (id, again) = (again.id.clone(), again.json());
    assert!(id.is_empty(), "it is not stored");
    assert_eq!(
        (&again["cell_id"], &again["number"], &again["total"], again.get("ended")),
        (&json!("cell-1"), &json!(1), &json!(1), None)
    );
    events.until("session_completed").await;
    assert_eq!(home.export("s")["notebook"]["cells"][1]["outputs"][0]["text"], "it runs\n42\n");
}

const NOTEBOOK: &str = "
session:
  session_id: nb
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          actions:
            - { action_type: new_chapter, action_id: chapter, config: { content: Data } }
            - { action_type: is_thinking, action_id: think, config: { thinking_text: Look first, agent_name: Analyst } }
            - { action_type: finish_thinking, action_id: thought }
            - { action_type: add, action_id: code, config: { shot_type: action, content: print(1) } }
";

#[tokio::test]
async fn the_export_of_a_session_with_cells_is_its_notebook_in_the_language_of_the_client() {
    let home = Home::new();
    home.put("scripts/nb.yaml", NOTEBOOK);
    let serving = Serving::start(&home);
    let id = serving.session("nb").await;
    for (language, thinks) in [("en", "Analyst thought"), ("zh", "Analyst 的思考")] {
        for format in ["md", "html"] {
            let path = format!("/v1/sessions/{id}/export?format={format}");
            let headers = [("accept-language", language)];
            let reply = serving.send(reqwest::Method::GET, &path, &headers, None).await;
            let file = format!("{language}.{format}");
            let arguments = ["--lang", language, "sessions", "export", &id, "-o", &file];
            let exported = home.finish(arguments, "");
            assert_eq!(exported.code, Some(0), "{}", exported.err);
            assert_eq!(reply.text, std::fs::read_to_string(home.path().join(&file)).unwrap(), "{file}");
            assert!(reply.text.contains("print(1)") && reply.text.contains(thinks), "{}", reply.text);
        }
        let report = format!("/v1/sessions/{id}/report?format=md");
        let report = serving.send(reqwest::Method::GET, &report, &[("accept-language", language)], None).await;
        assert_eq!(
            report.text.chars().any(|c| matches!(c, '\u{4e00}'..='\u{9fff}')),
            language == "zh",
            "{}",
            report.text
        );
    }
}
