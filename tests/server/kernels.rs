//! Code of notebook clients: who may run it, and what they get (docs/protocol.md, "Kernels").

use std::time::Instant;

use reqwest::Method;
use serde_json::{Value, json};

use crate::access::tokens;
use crate::process::{Home, POLL_INTERVAL, Running, TIMEOUT};
use crate::served::{Caller, Serving};
use crate::test_kernel::{kernel_python, kernel_variables};

const PATHS: [(&str, Method); 5] = [
    ("/initialize", Method::POST),
    ("/execute", Method::POST),
    ("/restart_kernel", Method::POST),
    ("/cancel_execution/n", Method::POST),
    ("/execution_status/n", Method::GET),
];

/// What each endpoint answers to a caller.
async fn statuses(caller: &Caller<'_>) -> Vec<u16> {
    let mut statuses = Vec::new();
    for (path, method) in PATHS {
        let body = json!({"notebook_id": "n", "code": "1"}).to_string().into_bytes();
        let reply = caller.send(method, path, &[("content-type", "application/json")], Some(body)).await;
        statuses.push(reply.status);
    }
    statuses
}

#[tokio::test]
async fn code_needs_a_token_the_highest_role_and_the_permission_of_the_project() {
    let home = Home::new();
    home.put("bcc-script.toml", "[project]\nallow = [\"exec\"]\n");
    {
        let serving = Serving::with(&home, &["--trust"]);
        let reply = serving.post("/execute", json!({"notebook_id": "n", "code": "1"})).await;
        assert_eq!(reply.status, 403, "{reply:?}");
        assert!(reply.json()["detail"].as_str().unwrap().contains("with a token"), "{reply:?}");
        assert_eq!(statuses(&serving.caller()).await, [403; 5]);
    }
    let tokens = tokens(&home);
    let serving = Serving::with(&home, &["--trust"]);
    assert_eq!(statuses(&serving.caller()).await, [401; 5]);
    for (role, token) in &tokens {
        // The project does not allow code.
        assert_eq!(statuses(&serving.as_caller(token)).await, [403; 5], "{role}");
    }
    let reply = serving.as_caller(&tokens[3].1).post("/execute", json!({"notebook_id": "n", "code": "1"})).await;
    assert!(reply.json()["help"].as_str().unwrap().contains("exec"), "{reply:?}");
}

#[tokio::test]
async fn a_client_without_a_kernel_learns_how_to_get_a_log_that_says_why() {
    let home = Home::new();
    let tokens = tokens(&home);
    let config = std::fs::read_to_string(home.path().join("bcc-script.toml")).unwrap();
    home.put("bcc-script.toml", format!("{config}[project]\nallow = [\"exec\"]\n"));
    let mut command = home.command(["serve", "--addr", "127.0.0.1:0", "--trust"]);
    // No Python, and no kernels.
    command.env("PATH", home.path()).env("JUPYTER_PATH", home.path()).env("JUPYTER_DATA_DIR", home.path());
    let serving = Serving::of(Running::start(command));
    let reply = serving.as_caller(&tokens[3].1).post("/execute", json!({"notebook_id": "n", "code": "1"})).await;
    assert_eq!(
        (reply.status, &reply.json()["detail"]),
        (503, &json!("no kernel starts; the log of the server says why"))
    );
    assert!(reply.json()["help"].as_str().unwrap().contains("`BCC_LOG=warn`"), "{reply:?}");
}

/// A server in a project that allows code, and the token of its administrator. None where there is no kernel.
fn serving(home: &Home, model: &str) -> Option<(Serving, String)> {
    let python = kernel_python()?;
    let tokens = tokens(home);
    let config = std::fs::read_to_string(home.path().join("bcc-script.toml")).unwrap();
    home.put(
        "bcc-script.toml",
        format!("{config}\n[serve.behavior]\ncell_timeout = \"60s\"\n[project]\nallow = [\"exec\"]\n"),
    );
    let mut command = home.command(["serve", "--addr", "127.0.0.1:0", "--trust", "--model", model]);
    command.envs(kernel_variables(&python));
    Some((Serving::of(Running::start(command)), tokens[3].1.clone()))
}

async fn execute(caller: &Caller<'_>, notebook: &str, cell: &str, code: &str) -> Value {
    let body = json!({"notebook_id": notebook, "codecell_id": cell, "code": code});
    let reply = caller.post("/execute", body).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    reply.json()
}

#[tokio::test]
async fn a_client_runs_cells_in_notebooks_that_it_made_up() {
    let home = Home::new();
    let Some((serving, token)) = serving(&home, "offline") else { return };
    let caller = serving.as_caller(&token);
    let made = caller.post("/initialize", json!({})).await.json();
    assert_eq!(made["status"], "ok");
    let notebook = made["notebook_id"].as_str().unwrap().to_owned();
    let silent = execute(&caller, &notebook, "a", "x = 41").await;
    assert_eq!((&silent["status"], &silent["outputs"]), (&json!("ok"), &json!([{"type": "text", "content": ""}])));
    let printed = execute(&caller, &notebook, "b", "print('out')\nx + 1").await;
    assert_eq!(
        printed["outputs"],
        json!([{"type": "text", "content": "out\n"}, {"type": "text", "content": "42"}]),
        "{printed}"
    );
    // Each notebook has a kernel of its own, also with an id that nobody gave.
    let other = execute(&caller, "made-up", "b", "x").await;
    assert_eq!(
        (&other["status"], &other["outputs"][0]["type"], &other["outputs"][0]["ename"]),
        (&json!("ok"), &json!("error"), &json!("NameError"))
    );
    let status = caller.get(&format!("/execution_status/{notebook}")).await.json();
    assert_eq!(
        (&status["status"], &status["is_running"], &status["outputs"]),
        (&json!("idle"), &json!(false), &printed["outputs"])
    );
    assert_eq!(caller.get("/execution_status/never-seen").await.json()["status"], "idle");
    // A new kernel has forgotten the old one's variables.
    assert_eq!(caller.post("/restart_kernel", json!({"notebook_id": notebook})).await.json()["status"], "ok");
    assert_eq!(execute(&caller, &notebook, "c", "x").await["outputs"][0]["ename"], "NameError");
}

/// Waits until a cell of the notebook has written the file.
async fn wait_for(caller: &Caller<'_>, home: &Home, file: &str) {
    let started = Instant::now();
    while !home.path().join(file).exists() {
        assert!(started.elapsed() < TIMEOUT, "no cell has begun: {:?}", caller.get("/execution_status/n").await);
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

#[tokio::test]
async fn a_cell_that_is_sent_again_while_it_runs_runs_once_and_can_be_cancelled() {
    let home = Home::new();
    let Some((serving, token)) = serving(&home, "offline") else { return };
    let caller = serving.as_caller(&token);
    execute(&caller, "n", "begin", "runs = 0").await;
    let code = "import os, time\nruns += 1\nopen('begun', 'w').close()\nwhile not os.path.exists('go'):\n    time.sleep(0.002)\nprint(runs)";
    let run = || execute(&caller, "n", "cell", code);
    let again = async {
        wait_for(&caller, &home, "begun").await;
        let (result, ()) = tokio::join!(run(), async {
            let running = caller.get("/execution_status/n").await.json();
            assert_eq!((&running["status"], &running["codecell_id"]), (&json!("running"), &json!("cell")), "{running}");
            home.put("go", "");
        });
        result
    };
    let (first, second) = tokio::join!(run(), again);
    assert_eq!(first["outputs"], json!([{"type": "text", "content": "1\n"}]), "{first}");
    assert_eq!(first, second);
    // Once it has ended, it runs again.
    assert_eq!(run().await["outputs"][0]["content"], "2\n");

    // What it had printed is not lost.
    let endless = "import sys\nprint('step 1', flush=True)\nprint('step 2', file=sys.stderr)\nopen('looping', 'w').close()\nwhile True:\n    pass";
    let cancel = async {
        wait_for(&caller, &home, "looping").await;
        caller.post("/cancel_execution/n", json!({})).await.json()
    };
    let (cancelled, reply) = tokio::join!(execute(&caller, "n", "endless", endless), cancel);
    assert_eq!((&cancelled["status"], &reply["status"]), (&json!("cancelled"), &json!("ok")), "{cancelled}");
    let printed: Vec<&str> =
        cancelled["outputs"].as_array().unwrap().iter().map(|output| output["content"].as_str().unwrap()).collect();
    assert!(printed.concat().starts_with("step 1\nstep 2\n"), "{cancelled}");
    assert!(cancelled["elapsed_time"].as_f64().unwrap() > 0.0, "{cancelled}");
    assert_eq!(cancelled["outputs"].as_array().unwrap().last().unwrap()["ename"], "KeyboardInterrupt", "{cancelled}");
    assert_eq!(caller.get("/execution_status/n").await.json()["outputs"], cancelled["outputs"]);
    // The kernel goes on, with its variables.
    assert_eq!(execute(&caller, "n", "after", "print(runs)").await["outputs"][0]["content"], "2\n");
    // A restart cancels the cell that runs.
    let endless = endless.replace("looping", "restarting");
    let restart = async {
        wait_for(&caller, &home, "restarting").await;
        caller.post("/restart_kernel", json!({ "notebook_id": "n" })).await.json()
    };
    let (ended, restarted) = tokio::join!(execute(&caller, "n", "endless", &endless), restart);
    assert_eq!((&ended["status"], &restarted["status"]), (&json!("cancelled"), &json!("ok")), "{ended}");
    assert!(ended["elapsed_time"].as_f64().unwrap() > 0.0, "{ended}");
    assert_eq!(caller.get("/execution_status/n").await.json()["status"], "idle");
    assert_eq!(execute(&caller, "n", "after", "runs").await["outputs"][0]["ename"], "NameError");
}

#[tokio::test]
async fn the_notebook_of_one_token_is_not_that_of_another() {
    let home = Home::new();
    let Some(python) = kernel_python() else { return };
    let first = tokens(&home);
    let config = std::fs::read_to_string(home.path().join("bcc-script.toml")).unwrap();
    let made = home.finish(["serve", "--new-token", "admin"], "").out;
    let second = made.lines().next().unwrap().rsplit(' ').next().unwrap().to_owned();
    let lines = made.split_once("[serve.tokens.NAME]").unwrap().1;
    home.put("bcc-script.toml", format!("{config}\n[serve.tokens.second]{lines}\n[project]\nallow = [\"exec\"]\n"));
    let mut command = home.command(["serve", "--addr", "127.0.0.1:0", "--trust"]);
    command.envs(kernel_variables(&python));
    let serving = Serving::of(Running::start(command));
    execute(&serving.as_caller(&first[3].1), "n", "a", "secret = 7").await;
    let other = execute(&serving.as_caller(&second), "n", "b", "secret").await;
    assert_eq!(other["outputs"][0]["ename"], "NameError", "{other}");
}

/// The replies of a model that plans two stages of one step each.
const REPLIES: &str = "
replies:
  stages: [{ title: Numbers, stages: [{ stage_id: read, title: Read, goal: Numbers are there }, { stage_id: sum, title: Sum, goal: The sum is there }] }]
  steps: [{ steps: [{ step_id: only, title: Only, goal: It is done }] }]
  behavior: [{ behavior: { task: Work with the numbers } }]
  actions:
    - actions:
        - { action: new_section, content: Work }
        - { action: add, content_type: code, content: 'numbers = globals().get(\"numbers\", []) + [3]', metadata: { should_execute: true } }
        - { action: add, content_type: code, content: print(sum(numbers)), metadata: { should_execute: true } }
  reflection: [{ target_achieved: true, reason: It is there }]
";

/// A notebook client of the older names: a state machine over plans, which keeps the cells and runs code on the server.
struct NotebookClient<'c, 's> {
    caller: &'c Caller<'s>,
    state: String,
    visited: Vec<String>,
    /// The stages and the steps that remain, the current one first.
    stages: Vec<Value>,
    steps: Vec<Value>,
    behavior: Value,
    cells: Vec<Value>,
}

impl NotebookClient<'_, '_> {
    async fn ask(&self, path: &str) -> Value {
        let level = |items: &[Value]| json!({"current": items.first(), "remaining": items.get(1..).unwrap_or_default(), "completed": []});
        let id = |items: &[Value], name: &str| items.first().map(|item| item[name].clone());
        let body = json!({
            "observation": {"location": {
                "current": {"stage_id": id(&self.stages, "stage_id"), "step_id": id(&self.steps, "step_id"), "behavior_id": self.behavior["behavior_id"]},
                "progress": {"stages": level(&self.stages), "steps": level(&self.steps), "behaviors": {"current": self.behavior}},
                "goals": "Solve %user_problem%",
            }},
            "state": {"variables": {"user_problem": "Add numbers"}, "notebook": {"notebook_id": "own", "cells": self.cells}, "FSM": {"state": self.state}},
            "options": {"stream": false},
        });
        let reply = self.caller.post(path, body).await;
        assert_eq!(reply.status, 200, "{path}: {reply:?}");
        reply.json()
    }

    async fn perform(&mut self, action: &Value) {
        match action["type"].as_str().unwrap() {
            "add" if action["shot_type"] == "action" => {
                self.cells.push(
                    json!({"id": format!("c{}", self.cells.len()), "type": "code", "content": action["content"]}),
                );
            }
            "exec" => {
                let cell = self.cells.last_mut().unwrap();
                let (id, code) =
                    (cell["id"].as_str().unwrap().to_owned(), cell["content"].as_str().unwrap().to_owned());
                cell["outputs"] = execute(self.caller, "own", &id, &code).await["outputs"].clone();
            }
            _ => self.cells.push(
                json!({"id": format!("c{}", self.cells.len()), "type": "markdown", "content": action["content"]}),
            ),
        }
    }

    /// One step of the state machine. False at the end.
    async fn advance(&mut self) -> bool {
        self.visited.push(self.state.clone());
        let next = match self.state.as_str() {
            "IDLE" => {
                self.ask("/planning").await["stages"].as_array().unwrap().clone_into(&mut self.stages);
                "STAGE_RUNNING"
            }
            "STAGE_RUNNING" => {
                self.ask("/planning").await["steps"].as_array().unwrap().clone_into(&mut self.steps);
                "STEP_RUNNING"
            }
            "STEP_RUNNING" => {
                self.behavior = self.ask("/planning").await["behavior"].clone();
                "BEHAVIOR_RUNNING"
            }
            "BEHAVIOR_RUNNING" => {
                for action in self.ask("/generating").await["actions"].as_array().unwrap() {
                    self.perform(action).await;
                }
                "BEHAVIOR_COMPLETED"
            }
            "WORKFLOW_COMPLETED" => return false,
            completed => {
                let reply = self.ask("/reflecting").await;
                let next = reply["next_state"].as_str().unwrap();
                match (completed, next) {
                    ("STEP_COMPLETED", "STEP_RUNNING") => drop(self.steps.remove(0)),
                    ("STAGE_COMPLETED", "STAGE_RUNNING") => {
                        self.stages.remove(0);
                        self.steps.clear();
                    }
                    _ => {}
                }
                self.state = next.to_owned();
                return true;
            }
        };
        self.state = next.to_owned();
        true
    }
}

#[tokio::test]
async fn a_notebook_client_drives_a_notebook_with_code_to_its_end() {
    let home = Home::new();
    let file = home.put("replies.yaml", REPLIES);
    let Some((serving, token)) = serving(&home, &format!("replay:{}", file.display())) else { return };
    let caller = serving.as_caller(&token);
    let mut client = NotebookClient {
        caller: &caller,
        state: "IDLE".to_owned(),
        visited: Vec::new(),
        stages: Vec::new(),
        steps: Vec::new(),
        behavior: Value::Null,
        cells: Vec::new(),
    };
    while client.advance().await {
        assert!(client.visited.len() < 30, "it does not come to its end: {:?}", client.visited);
    }
    let stage = [
        "STAGE_RUNNING",
        "STEP_RUNNING",
        "BEHAVIOR_RUNNING",
        "BEHAVIOR_COMPLETED",
        "STEP_COMPLETED",
        "STAGE_COMPLETED",
    ];
    assert_eq!(client.visited, [&["IDLE"][..], &stage, &stage, &["WORKFLOW_COMPLETED"]].concat());
    let printed: Vec<&str> = client.cells.iter().filter_map(|cell| cell["outputs"][0]["content"].as_str()).collect();
    assert_eq!(printed, ["", "3\n", "", "6\n"], "{:?}", client.cells);
}

#[tokio::test]
async fn a_session_whose_kernel_or_behavior_server_is_missing_is_refused_before_it_exists() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let home = Home::new();
    let config = format!("[project]\nallow = [\"exec\"]\n[behavior_servers.b]\nurl = \"http://{closed}\"\n");
    home.put("bcc-script.toml", &config);
    let session = |id: &str, kernel: Value, action: Value| {
        let phases = json!([{ "phase_id": "p", "topics": [{ "topic_id": "t", "actions": [action] }] }]);
        json!({ "session": { "session_id": id, "kernel": kernel, "phases": phases } }).to_string()
    };
    let add = json!({ "action_type": "add", "action_id": "a", "config": { "shot_type": "action", "content": "1", "metadata": { "should_execute": true } } });
    let work = json!({ "action_type": "behavior_loop", "action_id": "w", "config": { "server": "b" } });
    home.put("scripts/code.yaml", session("code", json!({ "name": "nokernel" }), add));
    home.put("scripts/work.yaml", session("work", json!({}), work));
    let serving = Serving::with(&home, &["--trust"]);
    for (script, part) in
        [("code", "there is no kernel `nokernel`"), ("work", "the behavior server `b` cannot be reached")]
    {
        let reply = serving.post("/v1/sessions", json!({ "script": script })).await;
        assert_eq!(reply.status, 400, "{reply:?}");
        assert!(reply.json()["detail"].as_str().unwrap().contains(part), "{reply:?}");
    }
    let listed = serving.get("/v1/sessions").await.json();
    assert_eq!(listed["sessions"], json!([]), "{listed}");
}
