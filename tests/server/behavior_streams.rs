//! Streams of the behavior protocol: each action is sent while the model writes the next one, or the script makes it.

use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::behavior::in_step;
use crate::process::{Home, TIMEOUT};
use crate::served::Serving;
use crate::server::{Server, ServerBehavior};

/// A model that writes what the test sends, in each of its replies.
fn fed_model(replies: usize) -> (Server, Vec<Sender<String>>) {
    let (senders, behaviors) = (0..replies)
        .map(|_| {
            let (sender, texts) = std::sync::mpsc::channel();
            (sender, ServerBehavior::Fed(Arc::new(Mutex::new(texts))))
        })
        .unzip();
    (Server::start(behaviors), senders)
}

/// A server with this model, and more configuration.
fn serve_with(home: &Home, model: &Server, more: &str) -> Serving {
    let config =
        format!("[models.default]\nprovider = \"openai\"\nbase_url = \"{}\"\nmodel = \"m1\"\n{more}", model.base_url);
    home.put("bcc-script.toml", config);
    Serving::with(home, &["--trust"])
}

fn fed(home: &Home, replies: usize) -> (Serving, Vec<Sender<String>>) {
    let (model, senders) = fed_model(replies);
    (serve_with(home, &model, ""), senders)
}

/// The lines of a stream while they arrive.
struct LineReader {
    response: reqwest::Response,
    text: String,
}

impl LineReader {
    async fn of(serving: &Serving, path: &str, body: Value) -> Self {
        let response = reqwest::Client::new().post(format!("{}{path}", serving.url)).json(&body).send().await.unwrap();
        assert_eq!(response.headers()["content-type"], "application/x-ndjson");
        Self { response, text: String::new() }
    }

    /// The next line; none at the end.
    async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some((line, rest)) = self.text.split_once('\n') {
                let (line, rest) = (serde_json::from_str(line).unwrap(), rest.to_owned());
                self.text = rest;
                return Some(line);
            }
            let chunk = tokio::time::timeout(TIMEOUT, self.response.chunk()).await.expect("no line arrives");
            match chunk.unwrap() {
                Some(bytes) => self.text.push_str(std::str::from_utf8(&bytes).unwrap()),
                None => {
                    assert_eq!(self.text, "", "the last line has no end");
                    return None;
                }
            }
        }
    }

    async fn rest(&mut self) -> Vec<Value> {
        let mut lines = vec![];
        while let Some(line) = self.next().await {
            lines.push(line);
        }
        lines
    }
}

#[tokio::test]
async fn each_action_is_sent_as_soon_as_the_model_has_written_it() {
    let home = Home::new();
    let (serving, mut models) = fed(&home, 2);
    let behavior = in_step("BEHAVIOR_RUNNING", true);

    let model = models.remove(0);
    model.send("Here:\n{\"actions\": [{\"action\": \"new_section\", \"content\": \"A\"}, {\"act".to_owned()).unwrap();
    // The test sends the rest only when it has the first line.
    let mut lines = LineReader::of(&serving, "/generating", behavior.clone()).await;
    assert_eq!(lines.next().await.unwrap(), json!({"action": {"type": "new_section", "content": "A"}}));
    model.send("ion\": \"finish_thinking\"}".to_owned()).unwrap();
    assert_eq!(lines.next().await.unwrap(), json!({"action": {"type": "finish_thinking"}}));
    model.send(", {\"action\": \"add\"}, {\"action\": \"new_step\", \"content\": \"B\"}]}".to_owned()).unwrap();
    drop(model);
    assert_eq!(lines.rest().await, [json!({"action": {"type": "new_step", "content": "B"}})]);

    let model = models.remove(0);
    model.send("{\"behavior\": {\"target\": \"T\"}, \"actions\": [".to_owned()).unwrap();
    let mut lines = LineReader::of(&serving, "/v1/actions", behavior).await;
    assert_eq!(lines.next().await.unwrap()["behavior"]["target"], "T");
    model.send("{\"action\": \"finish_thinking\"}".to_owned()).unwrap();
    assert_eq!(lines.next().await.unwrap(), json!({"action": {"action": "finish_thinking"}}));
    model.send("], \"transition\": {\"target_achieved\": true}}".to_owned()).unwrap();
    drop(model);
    let rest = lines.rest().await;
    assert_eq!((rest.len(), &rest[0]["transition"]["target_achieved"]), (1, &json!(true)), "{rest:?}");
}

#[tokio::test]
async fn a_stream_whose_rest_cannot_be_used_says_so_and_repeats_nothing() {
    let home = Home::new();
    let (serving, models) = fed(&home, 5);
    let models = models.into_iter();
    let written = "[{\"action\": \"new_section\", \"content\": \"A\"}";
    let rubbish = ", {\"action\": <html>";
    // A fenced block that comes later counts instead of what was sent.
    let other = "]\n```json\n{\"actions\": [{\"action\": \"finish_thinking\"}]}\n```";
    for (model, (path, rest)) in
        models.zip([("/generating", rubbish), ("/v1/actions", rubbish), ("/generating", other), ("/v1/actions", other)])
    {
        model.send(format!("{written}{rest}")).unwrap();
        drop(model);
        let lines = LineReader::of(&serving, path, in_step("BEHAVIOR_RUNNING", true)).await.rest().await;
        assert_eq!(lines.len(), 2, "{path}: {lines:?}");
        let reason = "the rest of the actions could not be read";
        match path {
            "/generating" => {
                assert_eq!(lines[0], json!({"action": {"type": "new_section", "content": "A"}}));
                assert_eq!(lines[1], json!({"action": {"type": "add", "shot_type": "markdown", "content": reason}}));
            }
            _ => {
                assert_eq!(lines[0], json!({"action": {"action": "new_section", "content": "A"}}));
                let transition = &lines[1]["transition"];
                assert_eq!((&transition["reason"], &transition["continue_behaviors"]), (&json!(reason), &json!(true)));
                assert_eq!(transition["target_achieved"], Value::Null);
            }
        }
    }
}

/// A server whose script makes its reply in three steps, the second of which asks the model. `steps` are the values of the others.
fn scripted(home: &Home, replies: usize, steps: [&str; 2]) -> (Serving, Vec<Sender<String>>) {
    let (model, senders) = fed_model(replies);
    (scripted_with(home, &model, steps), senders)
}

fn scripted_with(home: &Home, model: &Server, [first, last]: [&str; 2]) -> Serving {
    home.put(
        "scripts/planner.yaml",
        format!(
            r#"
session:
  session_id: planner
  template_scheme: english
  declare:
    - {{ var: request, type: object }}
    - {{ var: reply, type: list, value: [] }}
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          actions:
            - {{ action_type: set, action_id: first, config: {{ values: {{ reply: "{first}" }} }} }}
            - {{ action_type: ai_think, action_id: think, config: {{ content: Think, output: [{{ get: reply, define: Actions, type: list, append: true }}] }} }}
            - {{ action_type: set, action_id: last, config: {{ values: {{ reply: "{last}" }} }} }}
"#
        ),
    );
    serve_with(home, model, "[serve.behavior]\nscript = \"planner\"\n")
}

const SECTION: &str = "{{ reply + [{'action': 'new_section', 'content': request.step_id}] }}";
const STEP: &str = "{{ reply + [{'action': 'new_step', 'content': 'B'}] }}";
const THOUGHT: &str = "{\"BRIEF\": \"\", \"reply\": [{\"action\": \"finish_thinking\"}, {\"action\": \"add\"}]}";

/// The sessions of the script, as soon as there are none that run.
async fn sessions_of_script(serving: &Serving) -> Vec<Value> {
    let deadline = std::time::Instant::now() + TIMEOUT;
    loop {
        let listed = serving.get("/v1/sessions?script=planner").await.json()["sessions"].as_array().unwrap().clone();
        if !listed.is_empty() && listed.iter().all(|session| session["status"] != "running") {
            return listed;
        }
        assert!(std::time::Instant::now() < deadline, "{listed:?}");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn each_action_is_sent_as_soon_as_a_script_that_only_appends_has_made_it() {
    let home = Home::new();
    let (serving, mut models) = scripted(&home, 2, [SECTION, STEP]);
    // The model answers only when the test has the first line.
    let mut lines = LineReader::of(&serving, "/generating", in_step("BEHAVIOR_RUNNING", true)).await;
    assert_eq!(lines.next().await.unwrap(), json!({"action": {"type": "new_section", "content": "load"}}));
    models.remove(0).send(THOUGHT.to_owned()).unwrap();
    let rest =
        [json!({"action": {"type": "finish_thinking"}}), json!({"action": {"type": "new_step", "content": "B"}})];
    assert_eq!(lines.rest().await, rest);

    let mut lines = LineReader::of(&serving, "/v1/actions", in_step("BEHAVIOR_RUNNING", true)).await;
    assert_eq!(lines.next().await.unwrap()["behavior"]["iteration"], 1);
    assert_eq!(lines.next().await.unwrap(), json!({"action": {"action": "new_section", "content": "load"}}));
    models.remove(0).send(THOUGHT.to_owned()).unwrap();
    let rest = lines.rest().await;
    assert_eq!(rest[0], json!({"action": {"action": "finish_thinking"}}));
    assert_eq!(rest[1], json!({"action": {"action": "new_step", "content": "B"}}));
    assert_eq!((rest.len(), &rest[2]["transition"]["reason"]), (3, &json!("")), "{rest:?}");
}

#[tokio::test]
async fn nothing_is_sent_of_a_script_that_may_replace_its_reply() {
    let home = Home::new();
    let other = "{{ [{'action': 'new_step', 'content': 'Only'}] }}";
    let (serving, mut models) = scripted(&home, 1, [SECTION, other]);
    models.remove(0).send(THOUGHT.to_owned()).unwrap();
    let lines = LineReader::of(&serving, "/generating", in_step("BEHAVIOR_RUNNING", true)).await.rest().await;
    assert_eq!(lines, [json!({"action": {"type": "new_step", "content": "Only"}})]);
}

#[tokio::test]
async fn a_script_that_fails_after_its_first_action_is_not_run_again() {
    let home = Home::new();
    // The model of its second step refuses to answer.
    let refusing = Server::start(vec![ServerBehavior::Rejects(401, "no")]);
    let serving = scripted_with(&home, &refusing, [SECTION, STEP]);
    let mut lines = LineReader::of(&serving, "/generating", in_step("BEHAVIOR_RUNNING", true)).await;
    assert_eq!(lines.next().await.unwrap(), json!({"action": {"type": "new_section", "content": "load"}}));
    let rest = lines.rest().await;
    let reason = "the rest of the actions could not be read";
    assert_eq!(rest, [json!({"action": {"type": "add", "shot_type": "markdown", "content": reason}})]);
    assert_eq!(sessions_of_script(&serving).await.len(), 1);
}

#[tokio::test]
async fn a_client_that_leaves_neither_ends_the_session_of_a_script_nor_repeats_it() {
    let home = Home::new();
    let (serving, mut models) = scripted(&home, 1, [SECTION, STEP]);
    let mut lines = LineReader::of(&serving, "/generating", in_step("BEHAVIOR_RUNNING", true)).await;
    lines.next().await.unwrap();
    drop(lines);
    models.remove(0).send(THOUGHT.to_owned()).unwrap();
    let sessions = sessions_of_script(&serving).await;
    assert_eq!((sessions.len(), &sessions[0]["status"]), (1, &json!("completed")), "{sessions:?}");
}

/// The second script of the page, as it is written there.
#[tokio::test]
async fn the_script_of_the_page_answers_action_by_action() {
    let page = std::fs::read_to_string(std::path::Path::new(crate::ROOT).join("docs/protocol.md")).unwrap();
    let script = page.split("```yaml\n").nth(2).unwrap().split("```").next().unwrap();
    let home = Home::new();
    home.put("scripts/planner.yaml", script);
    let (model, mut senders) = fed_model(1);
    let serving = serve_with(&home, &model, "[serve.behavior]\nscript = \"planner\"\n");
    let mut lines = LineReader::of(&serving, "/generating", in_step("BEHAVIOR_RUNNING", true)).await;
    assert_eq!(lines.next().await.unwrap(), json!({"action": {"type": "new_section", "content": "Load the file"}}));
    senders.remove(0).send("{\"BRIEF\": \"\", \"explanation\": \"Like this.\"}".to_owned()).unwrap();
    let rest = lines.rest().await;
    assert_eq!(rest, [json!({"action": {"type": "add", "shot_type": "markdown", "content": "Like this."}})]);
}
