//! Requests that are wrong get an error that says what is wrong, and change nothing.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use crate::process::Home;
use crate::served::{Serving, TALK};

const JSON: [(&str, &str); 1] = [("content-type", "application/json")];

/// What it shows, its method, path, headers and body.
type WrongRequest<'r> = (&'r str, Method, &'r str, &'r [(&'r str, &'r str)], Vec<u8>);

#[tokio::test]
async fn wrong_requests_are_answered_with_a_problem() {
    let home = Home::new();
    home.put("scripts/talk.yaml", TALK);
    home.put("scripts/broken.yaml", "session:\n  session_id: broken\n  phases: 7\n");
    home.put("scripts/a.yaml", TALK.replace("session_id: talk", "session_id: twice"));
    home.put("scripts/b.yaml", TALK.replace("session_id: talk", "session_id: twice"));
    let serving = Serving::start(&home);
    let id = serving.session("talk").await;
    let (messages, retry) = (format!("/v1/sessions/{id}/messages"), format!("/v1/sessions/{id}/retry"));
    let long = json!({ "text": "x".repeat(2_000_000) }).to_string().into_bytes();
    let cases: Vec<WrongRequest<'_>> = vec![
        ("no JSON", Method::POST, "/v1/sessions", &JSON, b"{".to_vec()),
        ("no type", Method::POST, "/v1/sessions", &[], b"{}".to_vec()),
        ("no script", Method::POST, "/v1/sessions", &JSON, b"{}".to_vec()),
        ("unknown field", Method::POST, "/v1/sessions", &JSON, br#"{"script":"talk","model":"m"}"#.to_vec()),
        ("unknown script", Method::POST, "/v1/sessions", &JSON, br#"{"script":"nothing"}"#.to_vec()),
        ("path outside", Method::POST, "/v1/sessions", &JSON, br#"{"script":"../secret.yaml"}"#.to_vec()),
        ("ambiguous script", Method::POST, "/v1/sessions", &JSON, br#"{"script":"twice"}"#.to_vec()),
        ("script with errors", Method::POST, "/v1/sessions", &JSON, br#"{"script":"broken"}"#.to_vec()),
        ("unknown variable", Method::POST, "/v1/sessions", &JSON, br#"{"script":"talk","variables":{"x":1}}"#.to_vec()),
        ("wrong id", Method::POST, "/v1/sessions", &JSON, br#"{"script":"talk","session_id":"a/b"}"#.to_vec()),
        ("dots as an id", Method::POST, "/v1/sessions", &JSON, br#"{"script":"talk","session_id":".."}"#.to_vec()),
        ("private value", Method::POST, &messages, &JSON, br#"{"text":{"a":1},"CANARY":"my dog"}"#.to_vec()),
        (
            "private variables",
            Method::POST,
            "/v1/sessions",
            &JSON,
            br#"{"script":"talk","variables":"CANARY my dog"}"#.to_vec(),
        ),
        ("private field", Method::POST, "/v1/sessions", &JSON, br#"{"CANARY my dog":1}"#.to_vec()),
        ("private query", Method::GET, "/v1/sessions/none/export?format=CANARY+my+dog", &[], vec![]),
        ("long field", Method::POST, "/v1/sessions", &JSON, json!({ "x".repeat(900_000): 1 }).to_string().into_bytes()),
        (
            "long user",
            Method::POST,
            "/v1/sessions",
            &JSON,
            json!({ "script": "talk", "user": "x".repeat(201) }).to_string().into_bytes(),
        ),
        (
            "user in two lines",
            Method::POST,
            "/v1/sessions",
            &JSON,
            json!({ "script": "talk", "user": "a\nb" }).to_string().into_bytes(),
        ),
        (
            "long user of a link",
            Method::POST,
            "/v1/links",
            &JSON,
            json!({ "script": "talk", "kind": "open", "user": "x".repeat(201) }).to_string().into_bytes(),
        ),
        ("invalid UTF-8", Method::POST, &messages, &JSON, b"{\"text\":\"\xff\"}".to_vec()),
        ("text is a number", Method::POST, &messages, &JSON, br#"{"text":7}"#.to_vec()),
        ("too large", Method::POST, &messages, &JSON, long),
        (
            "empty key",
            Method::POST,
            &messages,
            &[("content-type", "application/json"), ("idempotency-key", " ")],
            br#"{"text":"a"}"#.to_vec(),
        ),
        (
            "key with a space",
            Method::POST,
            &messages,
            &[("content-type", "application/json"), ("idempotency-key", "a b")],
            br#"{"text":"a"}"#.to_vec(),
        ),
        ("unknown session", Method::POST, "/v1/sessions/none/messages", &JSON, br#"{"text":"a"}"#.to_vec()),
        ("unknown request", Method::POST, "/v1/requests/none/r1", &JSON, br#"{"decision":"approve"}"#.to_vec()),
        ("wrong number", Method::GET, "/v1/sessions/none/events", &[("last-event-id", "x")], vec![]),
        ("wrong query", Method::GET, "/v1/sessions?limit=many", &[], vec![]),
        ("unknown status", Method::GET, "/v1/sessions?status=bogus", &[], vec![]),
        ("path that is no text", Method::GET, "/v1/sessions/%FF", &[], vec![]),
        ("retry of a session that waits", Method::POST, &retry, &JSON, b"{}".to_vec()),
        ("unknown format", Method::GET, "/v1/sessions/none/export?format=pdf", &[], vec![]),
        ("unknown path", Method::GET, "/v1/nothing", &[], vec![]),
        ("wrong method", Method::PUT, "/v1/sessions", &JSON, b"{}".to_vec()),
    ];
    let mut shown = String::new();
    for (name, method, path, headers, body) in cases {
        let reply = serving.send(method, path, headers, Some(body)).await;
        assert_eq!(reply.header("content-type"), "application/problem+json", "{name}: {reply:?}");
        let problem = reply.json();
        assert_eq!(problem["status"], reply.status, "{name}");
        assert!(!reply.text.contains("CANARY m") && reply.text.len() < 10_000, "{name}: {reply:?}");
        assert!(!reply.text.contains(&home.path().display().to_string()), "{name}: {reply:?}");
        shown.push_str(&format!("{name}: {} {}\n", reply.status, problem["type"].as_str().unwrap()));
        shown.push_str(&format!("  {}\n", problem["detail"].as_str().unwrap()));
        if let Some(help) = problem["help"].as_str() {
            shown.push_str(&format!("  help: {help}\n"));
        }
        for diagnostic in problem["diagnostics"].as_array().unwrap_or(&vec![]) {
            let text = |name: &str| diagnostic[name].as_str().unwrap().to_owned();
            shown.push_str(&format!("  {}:{}: {}\n", text("file"), diagnostic["line"], text("message")));
        }
    }
    insta::assert_snapshot!("problems", shown.replace(&id, "ID"));
    assert_eq!(serving.get(&format!("/v1/sessions/{id}")).await.json()["waiting"]["answer_id"], "a1");
}

#[tokio::test]
async fn problems_are_in_the_language_of_the_client() {
    let home = Home::new();
    let serving = Serving::start(&home);
    let reply = serving.send(Method::GET, "/v1/sessions/none", &[("accept-language", "zh-CN,zh;q=0.9")], None).await;
    let problem: Value = reply.json();
    assert_eq!(problem["detail"], "没有会话 `none`");
    assert_eq!(problem["type"], "/problems/not-found");
}

#[tokio::test]
async fn half_a_request_and_a_client_that_leaves_do_no_harm() {
    let home = Home::new();
    home.put("scripts/talk.yaml", TALK);
    let serving = Serving::start(&home);
    let id = serving.session("talk").await;
    let address = serving.url.trim_start_matches("http://").to_owned();
    // Connections that send nothing, or only a part, and stay open.
    let mut open = Vec::new();
    for part in ["", "POST /v1/sess", "POST /v1/sessions HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n{"] {
        let mut stream = TcpStream::connect(&address).unwrap();
        stream.write_all(part.as_bytes()).unwrap();
        open.push(stream);
    }
    // Somebody sends a message and leaves without its reply: the turn is finished and kept.
    let body = json!({ "text": "Ann" }).to_string();
    let mut stream = TcpStream::connect(&address).unwrap();
    let head = format!(
        "POST /v1/sessions/{id}/messages HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all((head + &body).as_bytes()).unwrap();
    let mut events = serving.events(&id, None).await;
    while events.next().await.unwrap().json()["text"] != "Ann" {}
    drop(stream);
    events.until("waiting").await;
    assert_eq!(serving.say(&id, "tea").await["messages"][0]["text"], "Ann likes tea.");
    // What is not HTTP is answered as such.
    let mut stream = TcpStream::connect(&address).unwrap();
    stream.write_all(b"\x16\x03\x01 hello\r\n\r\n").unwrap();
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    drop(open);
}

/// Nobody holds a connection with a body for a link that does not exist.
#[tokio::test]
async fn the_body_of_a_request_for_an_unknown_link_is_not_waited_for() {
    let home = Home::new();
    let serving = Serving::start(&home);
    let address = serving.url.trim_start_matches("http://").to_owned();
    let secret = "a".repeat(64);
    for action in ["begin", "messages", "take_back"] {
        let mut stream = TcpStream::connect(&address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let head = format!(
            "POST /t/unknown/{secret}/{action} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\nidempotency-key: k\r\ncontent-length: 100\r\n\r\n{{"
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut start = [0_u8; 12];
        stream.read_exact(&mut start).unwrap();
        assert_eq!(&start, b"HTTP/1.1 404", "{action}");
    }
}

/// Wherever a message comes from, it names files as `/v1/scripts` lists them.
#[tokio::test]
async fn no_problem_tells_where_the_project_is_on_the_machine() {
    let home = Home::new();
    let place = home.path().canonicalize().unwrap().display().to_string();
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    home.put(
        "bcc-script.toml",
        format!("[project]\nallow = [\"exec\"]\n[behavior_servers.b]\nurl = \"http://{closed}\"\n"),
    );
    let script = |id: &str, session: &str, action: &str| {
        let phases = format!(
            "  phases:\n    - phase_id: p\n      topics:\n        - topic_id: t\n          actions:\n            - {action}\n"
        );
        home.put(&format!("scripts/{id}.yaml"), format!("session:\n  session_id: {id}\n{session}{phases}"));
    };
    let code = "{ action_type: add, action_id: code, config: { shot_type: action, content: '1', metadata: { should_execute: true } } }";
    script("file", "", "{ action_type: write_file, action_id: save, config: { path: a.txt, content: a } }");
    script(
        "report",
        "  report: { out: report.md }\n",
        "{ action_type: ai_say, action_id: a, config: { content: Hello } }",
    );
    script("kernel", "  kernel: nowhere\n", code);
    script("attached", "  kernel: { connection_file: gone.json }\n", code);
    script("server", "", "{ action_type: behavior_loop, action_id: work, config: { server: b } }");
    script("broken", "", "{ action_type: ai_say, action_id: a, config: { contnet: Hello } }");
    script("skilled", "", "{ action_type: use_skill, action_id: a, config: { skill: comfort } }");
    script(
        "scheme",
        "  template_scheme: nothing\n",
        "{ action_type: ai_say, action_id: a, config: { content: Hello } }",
    );
    home.put("skills/comfort.yaml", "skill:\n  skill_id: comfort\n  actions:\n    - { action_type: ai_sya, action_id: b, config: { content: There } }\n");
    let serving = Serving::with(&home, &["--trust", "--model", "offline"]);
    let list = serving.get("/v1/scripts").await.json();
    let listed: Vec<&str> =
        list["scripts"].as_array().unwrap().iter().map(|one| one["path"].as_str().unwrap()).collect();
    assert!(listed.contains(&"scripts/file.yaml"), "{listed:?}");
    for (name, part) in [
        ("file", "scripts/file.yaml:8: the action `save` needs `write_file`"),
        ("report", "scripts/report.yaml:3: `report` needs `write_file`"),
        ("kernel", "scripts/kernel.yaml:9: the action `code` runs code"),
        ("attached", "scripts/attached.yaml:9: the action `code` runs code: the kernel of the connection file"),
        ("server", "scripts/server.yaml:8: the action `work` asks a behavior server"),
        ("broken", "\"file\":\"scripts/broken.yaml\""),
        ("skilled", "\"file\":\"skills/comfort.yaml\""),
        ("scheme", "\"file\":\"scripts/scheme.yaml\""),
    ] {
        let mut replies = vec![serving.post("/v1/sessions", json!({ "script": name })).await];
        assert!(replies[0].status >= 400, "{name}: {replies:?}");
        assert!(replies[0].text.contains(part), "{name}: {replies:?}");
        replies.push(serving.get(&format!("/v1/scripts/{name}")).await);
        replies.push(serving.get(&format!("/v1/scripts/{name}/graph")).await);
        replies.push(serving.post("/v1/links", json!({ "script": name })).await);
        let render = json!({ "script": format!("scripts/{name}.yaml"), "action": "a" });
        replies.push(serving.post("/v1/templates/render", render).await);
        let chat = json!({ "model": name, "messages": [{ "role": "user", "content": "Hello" }] });
        replies.push(serving.post("/v1/chat/completions", chat.clone()).await);
        let streamed = json!({ "model": name, "messages": chat["messages"], "stream": true });
        replies.push(serving.post("/v1/chat/completions", streamed).await);
        for reply in replies {
            assert!(!reply.text.contains(&place), "{name}: {reply:?}");
        }
    }
    // Of a project that is not trusted, the place is a part of the sentence.
    drop(serving);
    let serving = Serving::with(&home, &["--model", "offline"]);
    for name in ["file", "kernel", "server"] {
        let reply = serving.post("/v1/sessions", json!({ "script": name })).await;
        assert!(reply.status >= 400 && !reply.text.contains(&place), "{name}: {reply:?}");
    }
}

/// The same of templates and schemas, which every script of the project uses.
#[tokio::test]
async fn no_problem_of_a_template_or_schema_tells_where_the_project_is() {
    for (file, text, part) in [
        ("_system/config/default/ai_ask_v1.md", "{% include \"nowhere.md\" %}", "_system/config/default/ai_ask_v1.md"),
        ("_system/config/default/ai_ask_v1.md", "{{ unclosed", "_system/config/default/ai_ask_v1.md"),
        ("schemas/replies/ai_ask.json", "{", "schemas/replies/"),
    ] {
        let home = Home::new();
        let place = home.path().canonicalize().unwrap().display().to_string();
        home.put("scripts/talk.yaml", TALK);
        home.put(file, text);
        let serving = Serving::with(&home, &["--model", "offline"]);
        let replies = [
            serving.post("/v1/sessions", json!({ "script": "talk" })).await,
            serving.get("/v1/scripts/talk").await,
            serving.get("/v1/scripts/talk/graph").await,
            serving.get("/v1/templates").await,
            serving.post("/v1/templates/render", json!({ "script": "scripts/talk.yaml", "action": "ask_name" })).await,
        ];
        assert!(replies.iter().any(|reply| reply.status >= 400 && reply.text.contains(part)), "{file}: {replies:?}");
        for reply in replies {
            assert!(!reply.text.contains(&place), "{file}: {reply:?}");
        }
    }
}
