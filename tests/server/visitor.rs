//! Somebody who follows a link, as the page does it.

use reqwest::Method;
use serde_json::{Value, json};

use crate::process::TIMEOUT;
use crate::served::{EventStream, Reply, Serving};
use crate::server::Server;

/// The configuration of a project whose model is on this server.
pub fn model_config(model: &Server) -> String {
    format!("[models.default]\nprovider = \"openai\"\nbase_url = \"{}\"\nmodel = \"m\"\n", model.base_url)
}

/// A talk that asks its first question without a model, and whose answers only a model judges.
pub const ASKING_MODEL: &str = "
session:
  session_id: talk
  declare: [{ var: name, type: string }]
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          actions:
            - action_type: ai_ask
              action_id: ask_name
              config: { content: Who are you?, delivery: verbatim, monitor: off, max_rounds: 9, exit: never, output: [{ get: name }] }
";

/// Makes a link, and returns the path of its page.
pub async fn make_link(serving: &Serving, body: Value) -> String {
    let made = serving.post("/v1/links", body).await;
    assert_eq!(made.status, 201, "{made:?}");
    made.json()["path"].as_str().unwrap().to_owned()
}

pub struct Visitor<'s> {
    serving: &'s Serving,
    /// The path of the talk.
    path: String,
}

impl<'s> Visitor<'s> {
    /// The visitor with a secret made of this hexadecimal digit or number.
    pub fn of(serving: &'s Serving, link: &str, seed: &str) -> Self {
        Self { serving, path: format!("{link}/{seed:0>64}") }
    }

    pub async fn get(&self, what: &str) -> Reply {
        self.serving.get(&format!("{}/{what}", self.path)).await
    }

    pub async fn post(&self, what: &str, body: Value) -> Reply {
        self.post_with(what, None, body).await
    }

    pub async fn post_with(&self, what: &str, key: Option<&str>, body: Value) -> Reply {
        let mut headers = vec![("content-type", "application/json")];
        headers.extend(key.map(|key| ("idempotency-key", key)));
        let path = format!("{}/{what}", self.path);
        self.serving.send(Method::POST, &path, &headers, Some(body.to_string().into_bytes())).await
    }

    pub async fn begin(&self, consent: Option<&str>) -> Reply {
        self.post("begin", json!({ "consent": consent })).await
    }

    /// The events after this one.
    pub async fn events(&self, after: u64) -> EventStream {
        self.serving.listen(&format!("{}/events?after={after}", self.path)).await
    }

    /// Waits until the talk has this status, and returns what the page shows then.
    pub async fn until(&self, status: &str) -> Value {
        let reached = async {
            loop {
                let state = self.get("state").await;
                assert_eq!(state.status, 200, "{state:?}");
                let state = state.json();
                if state["status"] == status {
                    return state;
                }
                // Something happens before that.
                self.events(state["last_seq"].as_u64().unwrap()).await.next().await;
            }
        };
        tokio::time::timeout(TIMEOUT, reached).await.unwrap_or_else(|_| panic!("the talk is never `{status}`"))
    }

    /// Answers the question that the page shows.
    pub async fn say(&self, text: &str, key: &str) -> Reply {
        let state = self.until("waiting").await;
        let body = json!({ "text": text, "answer_id": state["waiting"]["answer_id"] });
        let reply = self.post_with("messages", Some(key), body).await;
        assert_eq!(reply.status, 202, "{reply:?}");
        reply
    }
}
