//! Streams of the behavior protocol: each action is sent while the model writes the next one.

use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::behavior::in_step;
use crate::process::{Home, TIMEOUT};
use crate::served::Serving;
use crate::server::{Server, ServerBehavior};

/// A server whose model writes what the test sends, in each of its replies.
fn fed(home: &Home, replies: usize) -> (Serving, Vec<Sender<String>>) {
    let (senders, behaviors) = (0..replies)
        .map(|_| {
            let (sender, texts) = std::sync::mpsc::channel();
            (sender, ServerBehavior::Fed(Arc::new(Mutex::new(texts))))
        })
        .unzip();
    let model = Server::start(behaviors);
    home.put(
        "bcc-script.toml",
        format!("[models.default]\nprovider = \"openai\"\nbase_url = \"{}\"\nmodel = \"m1\"\n", model.base_url),
    );
    (Serving::with(home, &["--trust"]), senders)
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
