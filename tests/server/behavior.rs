//! The behavior protocol as a server (docs/protocol.md): plans, actions and judgements, from a model and from a script.

use std::path::Path;

use reqwest::Method;
use serde_json::{Value, json};

use crate::access::tokens;
use crate::process::{Finished, Home, Running};
use crate::served::{Reply, Serving};
use crate::server::{Server, ServerBehavior};

/// A request of a notebook client in this state.
fn at(state: &str, location: Value, stream: bool) -> Value {
    json!({
        "observation": {"location": location},
        "state": {
            "variables": {"user_problem": "Count the rows"},
            "effects": {"current": [], "history": []},
            "notebook": {"notebook_id": "n1", "cell_count": 0},
            "FSM": {"state": state},
        },
        "options": {"stream": stream},
    })
}

pub(crate) fn in_step(state: &str, stream: bool) -> Value {
    at(
        state,
        json!({"current": {"stage_id": "read", "step_id": "load", "behavior_id": null}, "goals": "Load the file"}),
        stream,
    )
}

#[tokio::test]
async fn what_a_server_of_a_model_repeats_is_not_logged_as_a_warning() {
    let refusal = r#"{"error": {"message": "cannot: Count the rows of 'CANARY', sorry"}}"#;
    let model = Server::start(vec![ServerBehavior::Rejects(400, refusal)]);
    let home = Home::new();
    let table = format!("[models.m]\nprovider = \"openai\"\nbase_url = \"{}\"\nmodel = \"m\"\n", model.base_url);
    home.put("bcc-script.toml", table);
    for (level, is_logged) in [("warn", false), ("debug", true)] {
        let mut command = home.command(["serve", "--addr", "127.0.0.1:0", "--model", "m"]);
        command.env("BCC_TRUST", "1").env("BCC_LOG", format!("bcc_script={level},bcc_server={level},bcc_llm={level}"));
        let serving = Serving::of(Running::start(command));
        let reply = serving.post("/planning", in_step("step_running", false)).await;
        assert_eq!(reply.status, 503, "{reply:?}");
        assert!(!reply.text.contains("CANARY"), "{reply:?}");
        // By default there is no log.
        assert!(reply.json()["help"].as_str().unwrap().contains("`BCC_LOG=warn`"), "{reply:?}");
        serving.terminate();
        let log = serving.finish().err;
        assert!(log.contains("no model answers a client") && log.contains("returned 400"), "{log}");
        assert_eq!(log.contains("CANARY"), is_logged, "{log}");
    }
}

/// A server whose model gives these replies.
fn replying(home: &Home, replies: &str) -> Serving {
    let file = home.put("replies.yaml", replies);
    Serving::with(home, &["--model", &format!("replay:{}", file.display())])
}

const REPLIES: &str = r#"
replies:
  stages:
    - title: Rows
      focus: "fewer than 100, or < 100"
      stages:
        - { stage_id: read, title: Read, goal: The file is read, verified_artifacts: { df: the rows } }
        - { stage_id: tell, title: Tell, goal: The number is told, required_variables: { df: the rows } }
  steps:
    - { focus: Be quick, goals: Read it, steps: [{ step_id: load, title: Load, goal: df exists }] }
  behavior:
    - { behavior: { agent: analyst, task: Load the rows, outputs: { df: the rows }, acceptance: [len(df) > 0] } }
  actions:
    - behavior: { target: Load the rows }
      actions:
        - { action: new_section, content: Reading }
        - { action: add, content_type: code, content: "df = [1, 2, 3]\nlen(df)", metadata: { should_execute: true } }
      transition: { continue_behaviors: true, target_achieved: false }
  reflection:
    - { target_achieved: true, reason: df exists }
"#;

#[tokio::test]
async fn a_notebook_client_gets_what_its_state_needs() {
    let home = Home::new();
    let serving = replying(&home, REPLIES);
    let plan = |body: Value| serving.post_owned("/planning".to_owned(), body);
    let stages = plan(at("IDLE", json!({"current": {"stage_id": null}, "goals": "Solve %user_problem%"}), false)).await;
    assert_eq!((stages.status, stages.header("content-type")), (200, "application/json"), "{stages:?}");
    let stages = stages.json();
    assert_eq!((&stages["title"], &stages["stages"][1]["stage_id"]), (&json!("Rows"), &json!("tell")), "{stages}");
    assert_eq!(stages["stages"][0]["verified_artifacts"], json!({"df": "the rows"}));
    let steps =
        plan(at("STAGE_RUNNING", json!({"current": {"stage_id": "read"}, "goals": {"stage": "Read"}}), false)).await;
    assert_eq!(steps.json()["steps"][0]["step_id"], "load", "{steps:?}");
    let behavior = plan(in_step("step_running", false)).await.json();
    assert_eq!(behavior["behavior"]["behavior_id"], "load_b1", "{behavior}");
    assert_eq!(
        (&behavior["behavior"]["task"], &behavior["behavior"]["step_id"]),
        (&json!("Load the rows"), &json!("load"))
    );

    let whole = serving.post("/generating", in_step("BEHAVIOR_RUNNING", false)).await;
    let expected = json!([
        {"type": "new_section", "content": "Reading"},
        {"type": "add", "shot_type": "action", "content": "df = [1, 2, 3]\nlen(df)"},
        {"type": "exec", "codecell_id": "lastAddedCellId", "need_output": true},
    ]);
    assert_eq!(whole.json(), json!({ "actions": expected }));
    let streamed = serving.post("/generating", in_step("BEHAVIOR_RUNNING", true)).await;
    assert_eq!(
        lines(&streamed),
        expected.as_array().unwrap().iter().map(|action| json!({ "action": action })).collect::<Vec<_>>()
    );

    for (state, signals, next) in [
        ("BEHAVIOR_COMPLETE", vec!["mark_step_complete", "complete_reflection"], "STEP_COMPLETED"),
        ("STEP_COMPLETED", vec!["mark_stage_complete", "complete_reflection"], "STAGE_COMPLETED"),
        ("STAGE_COMPLETE", vec!["complete_reflection"], "WORKFLOW_COMPLETED"),
    ] {
        let reply = serving.post("/reflecting", in_step(state, false)).await.json();
        assert_eq!(
            (types(&reply["actions"]), &reply["next_state"]),
            (signals.clone(), &json!(next)),
            "{state}: {reply}"
        );
        let streamed = serving.post("/reflecting", in_step(state, true)).await;
        let actions: Value = lines(&streamed).into_iter().map(|line| line["action"].clone()).collect();
        assert_eq!(types(&actions), signals);
    }
}

#[tokio::test]
async fn an_older_client_runs_code_once_and_gets_no_newer_spelling() {
    let home = Home::new();
    let reply = "    - { actions: [{ action: add-content, content_type: code, content: a(), should_execute: 'true' }, { action: exec, cell_id: lastAddedCellId }, { action: new-section, content: S }, { action: exec, cell_id: lastAddedCellId }] }\n";
    let serving = replying(&home, &format!("replies:\n  actions:\n{reply}{reply}"));
    let exec = json!({"type": "exec", "codecell_id": "lastAddedCellId", "need_output": true});
    let expected = [
        json!({"type": "add", "shot_type": "action", "content": "a()"}),
        exec.clone(),
        json!({"type": "new_section", "content": "S"}),
        exec,
    ];
    let whole = serving.post("/generating", in_step("BEHAVIOR_RUNNING", false)).await;
    assert_eq!(whole.json(), json!({ "actions": expected }));
    let streamed = serving.post("/generating", in_step("BEHAVIOR_RUNNING", true)).await;
    assert_eq!(lines(&streamed), expected.map(|action| json!({ "action": action })));
}

fn types(actions: &Value) -> Vec<&str> {
    actions.as_array().unwrap().iter().map(|action| action["type"].as_str().unwrap()).collect()
}

/// The objects of a stream. Each line ends with a newline.
fn lines(reply: &Reply) -> Vec<Value> {
    assert!(reply.status == 200 && reply.text.ends_with('\n'), "{reply:?}");
    reply.text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn plans_are_xml_for_clients_that_read_it() {
    let home = Home::new();
    let idle = || at("IDLE", json!({}), false).to_string().into_bytes();
    let headers = [("content-type", "application/json"), ("accept", "application/xml")];
    {
        let serving = replying(&home, REPLIES);
        let asked = serving.send(Method::POST, "/planning", &headers, Some(idle())).await;
        assert_eq!(asked.header("content-type"), "application/xml; charset=utf-8");
        assert!(asked.text.starts_with("<stages>") && asked.text.contains("&lt; 100"), "{}", asked.text);
        assert!(
            asked.text.contains("<stage id=\"read\" title=\"Read\"><goal>The file is read</goal>"),
            "{}",
            asked.text
        );
    }
    home.put("bcc-script.toml", "[serve.behavior]\nplan_format = \"xml\"\n");
    let serving = Serving::with(&home, &["--trust"]);
    let configured = serving.post("/planning", in_step("STEP_RUNNING", false)).await;
    assert!(configured.text.starts_with("<behavior id=\"load_b1\" step_id=\"load\">"), "{configured:?}");
    // A judgement is never XML.
    let mut feedback = in_step("STEP_RUNNING", false);
    feedback["behavior_feedback"] = json!({"behavior_id": "b", "actions_executed": 1});
    let judged = serving.send(Method::POST, "/planning", &headers, Some(feedback.to_string().into_bytes())).await;
    assert_eq!(judged.json()["targetAchieved"], true, "{judged:?}");
}

#[tokio::test]
async fn rubbish_of_a_model_is_asked_for_again_and_never_breaks_the_protocol() {
    let home = Home::new();
    let second = replying(
        &home,
        "replies:\n  actions: [nonsense, { actions: [{ action: new_section, content: A }] }]\n  reflection: ['{}', { target_achieved: true }]\n  \
         stages: [{ stages: [] }, { stages: [{ stage_id: s, goal: G }] }]\n",
    );
    let actions = second.post("/generating", in_step("BEHAVIOR_RUNNING", false)).await;
    assert_eq!(actions.json(), json!({"actions": [{"type": "new_section", "content": "A"}]}), "{actions:?}");
    let judged = second.post("/v1/reflection", in_step("BEHAVIOR_COMPLETED", false)).await;
    assert_eq!(judged.json()["target_achieved"], true, "{judged:?}");
    let stages = second.post("/planning", at("IDLE", json!({}), false)).await;
    assert_eq!(stages.json()["stages"][0]["stage_id"], "s");
    drop(second);

    let mut rubbish = String::from("replies:\n");
    for name in ["stages", "steps", "behavior", "actions", "reflection"] {
        rubbish.push_str(&format!("  {name}: ['<html>', '[1, 2', '[1, 2', '[1, 2']\n"));
    }
    let serving = replying(&home, &rubbish);
    let mut shown = String::new();
    for (path, body) in [
        ("/planning", at("IDLE", json!({}), false)),
        ("/planning", at("STAGE_RUNNING", json!({"current": {"stage_id": "read"}, "goals": "Read"}), false)),
        ("/planning", in_step("STEP_RUNNING", false)),
        ("/planning", in_step("BEHAVIOR_COMPLETED", false)),
        ("/generating", in_step("BEHAVIOR_RUNNING", false)),
        ("/generating", in_step("BEHAVIOR_RUNNING", true)),
        ("/reflecting", in_step("BEHAVIOR_COMPLETED", false)),
        ("/v1/actions", in_step("BEHAVIOR_RUNNING", false)),
        ("/v1/actions", in_step("BEHAVIOR_RUNNING", true)),
        ("/v1/reflection", in_step("BEHAVIOR_COMPLETED", false)),
    ] {
        let reply = serving.post(path, body.clone()).await;
        assert_eq!(reply.status, 200, "{path}: {reply:?}");
        shown.push_str(&format!("{path} {}\n{}\n", body["state"]["FSM"]["state"], reply.text.trim_end()));
    }
    insta::assert_snapshot!("answers_without_usable_replies", shown);
}

#[tokio::test]
async fn answers_fit_the_schemas_of_the_protocol() {
    let home = Home::new();
    let serving = replying(&home, REPLIES);
    for (path, schema, body) in [
        ("/v1/actions", "protocol-response", in_step("BEHAVIOR_RUNNING", false)),
        ("/v1/reflection", "protocol-reflection", in_step("BEHAVIOR_COMPLETED", false)),
        (
            "/v1/actions",
            "protocol-response",
            json!({"observation": {"location": {"current_step_id": "a"}, "context": {}}}),
        ),
    ] {
        let printed = home.finish(["schema", schema], "").out;
        let schema: Value = serde_json::from_str(&printed).unwrap();
        let reply = serving.post(path, body).await.json();
        let validator = jsonschema::validator_for(&schema).unwrap();
        let errors: Vec<String> = validator.iter_errors(&reply).map(|error| error.to_string()).collect();
        assert_eq!(errors, Vec::<String>::new(), "{path}: {reply}");
    }
    let streamed = lines(&serving.post("/v1/actions", in_step("BEHAVIOR_RUNNING", true)).await);
    assert_eq!(streamed[0]["behavior"]["target"], "Load the rows", "{streamed:?}");
    assert_eq!((streamed.len(), &streamed[3]["transition"]["continue_behaviors"]), (4, &json!(true)));
}

#[tokio::test]
async fn requests_that_are_no_observations_are_rejected() {
    let home = Home::new();
    let serving = Serving::start(&home);
    for path in ["/v1/actions", "/v1/reflection", "/planning", "/generating", "/reflecting"] {
        for body in [json!({}), json!({"observation": 7}), json!({"location": "here"})] {
            let reply = serving.post(path, body.clone()).await;
            assert_eq!(
                (reply.status, reply.header("content-type")),
                (400, "application/problem+json"),
                "{path} {body}"
            );
        }
        assert_eq!(serving.get(path).await.status, 405);
    }
}

#[tokio::test]
async fn a_request_of_any_size_is_answered() {
    let home = Home::new();
    let serving = replying(&home, REPLIES);
    let mut body = in_step("BEHAVIOR_RUNNING", false);
    let todo: Vec<String> = (0..300).map(|n| format!("{n} {}", "x".repeat(1_000))).collect();
    body["state"]["toDoList"] = json!(todo);
    body["state"]["variables"]["big"] = json!("y".repeat(300_000));
    body["behavior_feedback"] = json!({"behavior_id": "b", "last_action_result": "z".repeat(200_000)});
    for path in ["/generating", "/v1/actions", "/v1/reflection", "/planning", "/reflecting"] {
        let reply = serving.post(path, body.clone()).await;
        assert_eq!(reply.status, 200, "{path}: {}", reply.text);
    }
    body["state"]["variables"]["big"] = json!("y".repeat(1_000_000));
    assert_eq!(serving.post("/generating", body).await.status, 413);
}

#[tokio::test]
async fn a_model_that_cannot_be_reached_is_a_problem_and_not_an_answer() {
    let home = Home::new();
    home.put(
        "bcc-script.toml",
        "[models.default]\nprovider = \"openai\"\nmodel = \"m\"\nbase_url = \"http://127.0.0.1:9\"\nmax_attempts = 1\n",
    );
    let serving = Serving::with(&home, &["--trust"]);
    let reply = serving.post("/generating", in_step("BEHAVIOR_RUNNING", false)).await;
    assert_eq!((reply.status, reply.header("retry-after")), (503, "5"), "{reply:?}");
    assert!(!reply.text.contains("127.0.0.1"), "{reply:?}");
}

/// A script that plans: its replies depend on the request, as values and as text.
const PLANNER: &str = r#"
session:
  session_id: planner
  template_scheme: english
  declare:
    - { var: request, type: object }
    - { var: reply }
    - { var: asked, type: integer, value: 0, scope: global }
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          actions:
            - { action_type: set, action_id: count, config: { values: { asked: "{{ asked + 1 }}" } } }
            - action_type: condition
              action_id: choose
              config:
                cases:
                  - { when: "request.kind == 'stages'", set: { reply: "{\"stages\": [{\"stage_id\": \"only\", \"goal\": {{ request.goal | tojson }}}]}" } }
                  - { when: "request.kind == 'reflection'", set: { reply: "{\"target_achieved\": true, \"reason\": \"asked {{ asked }} times\"}" } }
                  - { when: "request.kind == 'actions'", set: { reply: "{{ [{'action': 'new_section', 'content': request.step_id ~ ' ' ~ request.variables.user_problem}] }}" } }
"#;

#[tokio::test]
async fn a_script_answers_instead_of_a_model() {
    let home = Home::new();
    home.put("scripts/planner.yaml", PLANNER);
    home.put("bcc-script.toml", "[serve.behavior]\nscript = \"planner\"\n");
    let serving = Serving::with(&home, &["--trust"]);
    let stages = serving.post("/planning", at("IDLE", json!({}), false)).await;
    assert_eq!(stages.json()["stages"][0]["goal"], "Count the rows", "{stages:?}");
    let actions = serving.post("/generating", in_step("BEHAVIOR_RUNNING", false)).await;
    assert_eq!(
        actions.json(),
        json!({"actions": [{"type": "new_section", "content": "load Count the rows"}]}),
        "{actions:?}"
    );
    // What it keeps belongs to the notebook.
    let judged = serving.post("/v1/reflection", in_step("BEHAVIOR_COMPLETED", false)).await;
    assert_eq!(judged.json()["reason"], "asked 3 times", "{judged:?}");
    // It says nothing about steps: the answer is well-formed all the same.
    let steps = serving
        .post("/planning", at("STAGE_RUNNING", json!({"current": {"stage_id": "s"}, "goals": "S"}), false))
        .await;
    assert_eq!(steps.json()["steps"][0]["goal"], "S", "{steps:?}");
    let sessions = serving.get("/v1/sessions?script=planner").await.json();
    assert_eq!(sessions["sessions"].as_array().unwrap().len(), 5, "{sessions}");
}

#[tokio::test]
async fn a_script_whose_model_does_not_reply_is_a_problem_and_not_an_answer() {
    let home = Home::new();
    let script = PLANNER.replace(
        "            - action_type: condition",
        "            - { action_type: ai_say, action_id: think, config: { content: Think } }\n            - action_type: condition",
    );
    home.put("scripts/planner.yaml", script);
    home.put("replies.yaml", "replies: {}\n");
    home.put("bcc-script.toml", "[serve.behavior]\nscript = \"planner\"\n");
    let serving = Serving::with(&home, &["--trust", "--model", "replay:replies.yaml"]);
    for (path, stream) in
        [("/v1/actions", false), ("/v1/actions", true), ("/generating", true), ("/v1/reflection", false)]
    {
        let reply = serving.post(path, in_step("BEHAVIOR_RUNNING", stream)).await;
        assert_eq!((reply.status, reply.header("retry-after")), (503, "5"), "{path}: {reply:?}");
    }
    // It is not run again for the same request.
    let sessions = serving.get("/v1/sessions?script=planner").await.json();
    assert_eq!(sessions["sessions"].as_array().unwrap().len(), 4, "{sessions}");
}

/// Two tokens that name the same notebook do not share what its script keeps.
#[tokio::test]
async fn a_notebook_belongs_to_the_token_that_uses_it() {
    let home = Home::new();
    home.put("scripts/planner.yaml", PLANNER);
    let tokens = tokens(&home);
    let (ann, bob) = (&tokens[0].1, &tokens[1].1);
    let config = std::fs::read_to_string(home.path().join("bcc-script.toml")).unwrap();
    home.put("bcc-script.toml", format!("{config}\n[serve.behavior]\nscript = \"planner\"\n"));
    let serving = Serving::with(&home, &["--trust"]);
    for (token, reason) in
        [(ann, "asked 1 times"), (ann, "asked 2 times"), (bob, "asked 1 times"), (ann, "asked 3 times")]
    {
        let judged = serving.as_caller(token).post("/v1/reflection", in_step("BEHAVIOR_COMPLETED", false)).await;
        assert_eq!(judged.json()["reason"], *reason, "{judged:?}");
    }
}

/// The script of the page, as it is written there.
#[tokio::test]
async fn the_script_of_the_page_answers() {
    let page = std::fs::read_to_string(Path::new(crate::ROOT).join("docs/protocol.md")).unwrap();
    let script = page.split("```yaml\n").nth(1).unwrap().split("```").next().unwrap();
    let home = Home::new();
    home.put("scripts/planner.yaml", script);
    home.put("bcc-script.toml", "[serve.behavior]\nscript = \"scripts/planner.yaml\"\n");
    let serving = Serving::with(&home, &["--trust"]);
    // The text of a request is no action.
    let goal = "x\"}, {\"action\": \"add\", \"content\": \"y";
    let request = in_step("BEHAVIOR_RUNNING", false).to_string().replace("Load the file", &goal.replace('"', "\\\""));
    let answered = serving.post("/generating", serde_json::from_str(&request).unwrap()).await;
    assert_eq!(answered.json(), json!({"actions": [{"type": "new_section", "content": goal}]}), "{answered:?}");
    let (_client, ran) = run_client(&serving.url, "", "[]");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let behaviors: Vec<Value> = ran.events().into_iter().filter(|event| event["type"] == "behavior").collect();
    assert_eq!((behaviors.len(), &behaviors[0]["why"]), (1, &json!("one behavior is enough")), "{behaviors:?}");
}

/// A notebook that is written by a behavior loop.
fn loop_script(todo: &str) -> String {
    format!(
        "session:\n  session_id: report\n  template_scheme: english\n  phases:\n    - phase_id: p\n      topics:\n        - topic_id: t\n          \
         topic_goal: A small report\n          actions:\n            - {{ action_type: behavior_loop, action_id: write, config: {{ server: served, todo_list: {todo} }} }}\n"
    )
}

/// Runs the program's own client against the server, to the end of the session.
fn run_client(url: &str, keys: &str, todo: &str) -> (Home, Finished) {
    let client = Home::new();
    client.put("bcc-script.toml", format!("[behavior_servers.served]\nurl = \"{url}\"\n{keys}"));
    client.put("report.yaml", loop_script(todo));
    let ran = client.finish(["run", "report.yaml", "--session", "r", "--trust", "--json"], "");
    (client, ran)
}

#[tokio::test]
async fn the_own_client_drives_a_small_notebook_to_its_end() {
    let home = Home::new();
    let serving = Serving::start(&home);
    for keys in ["", "paths = \"planning\"\n", "form = \"older\"\n", "form = \"older\"\npaths = \"planning\"\n"] {
        let (client, ran) = run_client(&serving.url, keys, "[Background, Themes]");
        assert_eq!(ran.code, Some(0), "{keys}: {ran:?}");
        let notebook = client.finish(["sessions", "export", "r", "--format", "ipynb"], "");
        let notebook: Value = serde_json::from_str(&notebook.out).unwrap();
        let cells = notebook["cells"].as_array().unwrap();
        let headings: Vec<String> =
            cells.iter().map(|cell| text_of(&cell["source"])).filter(|text| text.starts_with('#')).collect();
        assert!(headings.iter().any(|text| text.contains("Background")), "{keys}: {headings:?}");
        let behaviors: Vec<Value> = ran.events().into_iter().filter(|event| event["type"] == "behavior").collect();
        assert_eq!(behaviors.last().unwrap()["target_achieved"], true, "{keys}: {behaviors:?}");
        // Each item of the todo list has a behavior of its own.
        assert_eq!((behaviors.len(), headings.len()), (2, 2), "{keys}: {headings:?}");
    }
}

fn text_of(source: &Value) -> String {
    match source {
        Value::Array(lines) => lines.iter().map(|line| line.as_str().unwrap()).collect(),
        other => other.as_str().unwrap().to_owned(),
    }
}
