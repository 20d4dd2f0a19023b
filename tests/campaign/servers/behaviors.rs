//! Sessions with a behavior server that turns hostile.

use std::io::Write;

use serde_json::json;

use crate::attack::{Case, ensure};
use crate::clones::code::Counter;
use crate::servers::http::{ANSWERS, Answer, Bait, Server, response};
use crate::servers::models::{KEY, survive};

const SCRIPT: &str = r#"
session:
  session_id: talk
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          actions:
            - { action_type: ai_ask, action_id: ask, config: { content: "Who?", delivery: verbatim, max_rounds: 1 } }
            - action_type: behavior_loop
              action_id: work
              on_exit: { max_rounds_reached: next }
              config: { server: s, target: x, max_behaviors: 4 }
"#;

/// What a good server answers to both requests: an action, and that the target is achieved.
fn good(_request: &str) -> String {
    let body = json!({
        "actions": [{ "action": "add", "content": "text", "content_type": "markdown" }],
        "transition": { "target_achieved": true },
        "reason": "done", "target_achieved": true, "metadata": { "target_achieved": true },
    });
    response("200 OK", "content-type: application/json\r\n", &body.to_string())
}

/// Payloads that are JSON, or nearly.
const PAYLOADS: Answer = |stream, bait| {
    let deep = 1usize << bait.rng.u32(4..17);
    let add = r#"{"action": "add", "content": "x"}"#;
    let payloads = [
        "null".to_owned(),
        "[]".to_owned(),
        "{}".to_owned(),
        "NaN".to_owned(),
        r#"{"actions": "all"}"#.to_owned(),
        r#"{"actions": [1, null, "x", [], {"action": []}, {"action": "no_such"}], "transition": []}"#.to_owned(),
        r#"{"actions": [{"action": "exec", "code": "print(1)"}, {"action": "../x"}], "transition": {"target_achieved": "yes"}}"#.to_owned(),
        format!(r#"{{"actions": [{}]}}"#, vec![add; deep].join(", ")),
        format!(r#"{{"actions": [{{"action": "add", "content": "{}"}}]}}"#, "好".repeat(deep * 4)),
        format!("{}1{}", r#"{"actions": ["#.repeat(deep), "]}".repeat(deep)),
        format!(r#"{{"context_update": {{"variables": {{"a": {}1{}}}}}}}"#, "[".repeat(deep), "]".repeat(deep)),
        format!("{add}\n{{\"action\": {add}}}\n{{\"action\"").repeat(3),
        format!("data: {{\"action\": {add}}}\n\n").repeat(deep),
        format!(r#"{{"transition": {{"workflow_update": {{"stages": [{}]}}}}}}"#, vec![r#"{"id": "a", "steps": []}"#; deep % 5000].join(",")),
        r#"{"actions": [{"action": "add", "content": "\ud83d\u001b[31m\u202e"}]}"#.to_owned(),
        r#"{"actions": [{"action": "update_title", "title": {"a": 1e999}}], "behavior": {"behavior_id": -0.0}}"#.to_owned(),
    ];
    let payload = bait.rng.choice(payloads.iter())?;
    let kind = *bait.rng.choice(["application/json", "text/event-stream", "application/x-ndjson", "x"].iter())?;
    stream.write_all(response("200 OK", &format!("content-type: {kind}\r\n"), payload).as_bytes()).ok()
};

pub fn behaviors(case: &mut Case) -> Result<String, String> {
    let (name, answer) = if case.rng.bool() { ("payloads", PAYLOADS) } else { *case.one_of(&ANSWERS) };
    let elsewhere = Counter::start();
    let bait = Bait { key: KEY, elsewhere: elsewhere.address.clone(), rng: case.rng.fork() };
    let server = Server::start(case.rng.usize(..3), (answer, case.rng.usize(1..7)), good, bait);
    let home = case.home();
    home.file("talk.yaml", SCRIPT);
    home.file(
        "bcc-script.toml",
        &format!(
            "[models.default]\nprovider = \"offline\"\n[behavior_servers.s]\nurl = \"http://{}\"\ntoken_env = \"TALK_KEY\"\n\
             timeout = \"3s\"\nfirst_byte_timeout = \"1s\"\nidle_timeout = \"1s\"\n",
            server.address
        ),
    );
    let outcome = survive(&home, &server).map_err(|problem| format!("{name}: {problem}"))?;
    ensure(elsewhere.count() == 0, || format!("{name}: it followed a redirect"))?;
    Ok(format!("{name}: {outcome}"))
}
