//! Sessions that rest in the memory of a server.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bcc_engine::engine::Engine;
use bcc_engine::environment::Environment;
use bcc_engine::project::Project;
use bcc_llm::http::client::plain_client;
use bcc_server::access::AccessRules;
use bcc_server::serve::Server;
use bcc_server::settings::{BehaviorSettings, ChatSettings, ServeSettings, ServerLimits};
use bcc_store::memory::MemoryStore;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::process::{Home, POLL_INTERVAL, TIMEOUT};
use crate::test_kernel::{kernel_python, kernel_variables};

/// A session whose code sets a variable, asks something, and needs the variable afterwards.
fn script(id: &str, idle_timeout: &str) -> String {
    let add = |id: &str, code: &str| json!({ "action_type": "add", "action_id": id, "config": { "shot_type": "action", "content": code, "metadata": { "should_execute": true } } });
    let config = json!({ "content": "Go on?", "delivery": "verbatim", "max_rounds": 1 });
    let ask = json!({ "action_type": "ai_ask", "action_id": "ask", "config": config });
    let actions = json!([add("before", "x = 41"), ask, add("after", "print(x + 1)")]);
    let phases = json!([{ "phase_id": "p", "topics": [{ "topic_id": "t", "actions": actions }] }]);
    let kernel = json!({ "idle_timeout": idle_timeout });
    json!({ "session": { "session_id": id, "kernel": kernel, "phases": phases } }).to_string()
}

#[tokio::test]
async fn a_session_stays_in_memory_as_long_as_its_kernel_has_what_its_code_left_there() {
    let Some(python) = kernel_python() else { return };
    let home = Home::new();
    home.put("bcc-script.toml", "[project]\nallow = [\"exec\"]\n");
    home.put("scripts/long.yaml", script("long", "10m"));
    home.put("scripts/short.yaml", script("short", "1s"));
    let variables = kernel_variables(&python).into_iter().chain([("HOME", home.path().display().to_string())]);
    let environment = Environment::of(variables);
    let project = Project::of(home.path(), None, true, &environment).unwrap();
    let engine = Engine::new(project, environment, Arc::new(MemoryStore::default()));
    let settings = ServeSettings {
        address: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        access: AccessRules::default(),
        // Other sessions leave memory as soon as they rest.
        limits: ServerLimits { idle_time: Duration::ZERO, ..ServerLimits::default() },
        chat: ChatSettings::default(),
        behavior: BehaviorSettings::default(),
        model: Some("offline".to_owned()),
        talk_request: None,
        continue_trace: None,
    };
    let server = Server::bind(engine, settings).await.unwrap();
    let url = format!("http://{}", server.address().unwrap());
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn(server.run(async move { drop(stopped.await) }));
    let client = plain_client(&url.parse().unwrap(), Some("none"), None).unwrap();
    let get = async |path: &str| client.get(format!("{url}{path}")).send().await.unwrap().text().await.unwrap();
    let post = async |path: &str, body: Value| -> Value {
        let sent = client.post(format!("{url}{path}")).header("content-type", "application/json");
        let reply = sent.body(body.to_string()).send().await.unwrap();
        serde_json::from_str(&reply.text().await.unwrap()).unwrap()
    };
    for id in ["long", "short"] {
        let begun = post("/v1/sessions", json!({ "script": id, "session_id": id })).await;
        assert_eq!(begun["status"], "waiting_input", "{begun}");
    }
    // The second one leaves memory when its kernel has ended.
    let left = async {
        loop {
            let metrics = get("/metrics").await;
            let live =
                metrics.lines().find_map(|line| line.strip_prefix("bcc_script_live_sessions ")).unwrap().to_owned();
            if live != "2" {
                return live;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    };
    let live = tokio::time::timeout(TIMEOUT, left).await.expect("a session whose kernel has ended stays in memory");
    assert_eq!(live, "1");
    // The first one has what its code left there.
    post("/v1/sessions/long/messages", json!({ "text": "yes" })).await;
    let notebook: Value = serde_json::from_str(&get("/v1/sessions/long/notebook").await).unwrap();
    assert_eq!(notebook["notebook"]["cells"][1]["outputs"][0]["text"], "42\n", "{notebook}");
    drop(stop);
    assert!(running.await.unwrap());
}
