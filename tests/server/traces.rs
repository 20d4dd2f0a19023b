//! Traces that `run` and `serve` export to a collector (docs/observability.md).

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::process::Command;

use serde_json::{Value, json};

use crate::collector::{Attribute, Collector, ReceivedSpan};
use crate::complete_reply::complete_reply;
use crate::process::{Finished, Home, Running, TIMEOUT};
use crate::served::Serving;
use crate::server::{Server, ServerBehavior};
use crate::test_kernel::{kernel_python, kernel_variables};

const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

/// The kinds of spans in the protocol.
const SERVER: u64 = 2;
const CLIENT: u64 = 3;

/// What is said, and what variables, arguments and files contain. None of it may be exported.
const TEXTS: [&str; 7] =
    ["Zebulon", "Who goes there", "quicksilver", "an element by name", "Thank you kindly", "Salamander", "a visitor"];

const SCRIPT: &str = "
session:
  session_id: talk
  tools: [graph_rag]
  declare:
    - { var: metal, type: string, value: quicksilver }
    - { var: items, type: list, value: [an element by name] }
    - { var: name, type: string }
    - { var: found, type: object }
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          actions:
            - { action_type: ai_ask, action_id: ask_name, config: { content: 'Who goes there, {{ metal }}?', output: [{ get: name }] } }
            - { action_type: tool, action_id: look_up, config: { name: graph_rag, arguments: { query: '{{ name }}' }, output: { found: result } } }
        - topic_id: each
          for_each: { in: items, as: item }
          actions:
            - { action_type: ai_say, action_id: bye, config: { content: 'Thank you kindly, {{ name }}, {{ item }}.' } }
";

/// A project with a tool that finds something.
fn project() -> Home {
    let home = Home::new();
    home.put("scripts/talk.yaml", SCRIPT);
    home.put("knowledge/a.csv", "subject,predicate,object\nZebulon,is,Salamander\n");
    home.put("bcc-script.toml", "[tools.graph_rag]\nsources = [\"knowledge/*.csv\"]\n");
    home
}

/// A conversation in a pipe with these variables.
fn run(home: &Home, variables: &[(&str, &str)]) -> Finished {
    let mut command = home.command(["run", "scripts/talk.yaml", "--session", "s1", "--user", "a visitor"]);
    command.envs(variables.iter().copied());
    let mut running = Running::start(command);
    running.feed(b"Zebulon\nfine\n".to_vec());
    running.finish()
}

fn assert_no_texts(collector: &Collector, home: &Home) {
    let bytes = collector.bytes();
    let path = home.path().display().to_string();
    for text in TEXTS.iter().copied().chain([path.as_str()]) {
        let is_found = bytes.windows(text.len()).any(|window| window == text.as_bytes());
        assert!(!is_found, "{text} is exported");
    }
}

/// The parent of a span.
fn parent<'s>(spans: &'s [ReceivedSpan], span: &ReceivedSpan) -> &'s ReceivedSpan {
    let found = spans.iter().find(|other| other.id == span.parent && other.trace == span.trace);
    found.unwrap_or_else(|| panic!("no parent: {span:?}"))
}

#[test]
fn run_exports_sessions_turns_calls_of_models_and_of_tools_and_nothing_that_was_said() {
    let (home, collector) = (project(), Collector::start());
    let finished = run(&home, &[(ENDPOINT, &collector.url), ("BCC_LOG", "off")]);
    assert_eq!((finished.code, finished.err.contains("traces")), (Some(0), false), "{finished:?}");
    assert!(finished.out.contains("Zebulon"), "{finished:?}");
    let head = &collector.heads()[0];
    assert!(head.starts_with("POST /v1/traces "), "{head}");
    assert!(head.to_ascii_lowercase().contains("content-type: application/x-protobuf"), "{head}");
    assert_eq!(collector.resource().get("service.name"), Some(&"bcc-script".into()));
    let spans = collector.spans();
    let names: BTreeSet<&str> = spans.iter().map(|span| span.name.as_str()).collect();
    assert_eq!(names, BTreeSet::from(["session", "turn", "chat offline", "execute_tool graph_rag"]));
    assert!(spans.iter().all(|span| span.is("gen_ai.conversation.id", "s1")), "{spans:?}");
    for span in &spans {
        match span.name.as_str() {
            "session" => assert!(span.parent.is_empty() && span.is("bcc_script.script", "talk"), "{span:?}"),
            "turn" => assert_eq!(parent(&spans, span).name, "session", "{span:?}"),
            _ => assert_eq!(parent(&spans, span).name, "turn", "{span:?}"),
        }
    }
    let chats: Vec<&ReceivedSpan> = spans.iter().filter(|span| span.name == "chat offline").collect();
    assert!(chats.len() >= 3, "{chats:?}");
    for chat in chats {
        assert!(chat.kind == CLIENT && chat.is("gen_ai.operation.name", "chat"), "{chat:?}");
        assert!(chat.is("gen_ai.provider.name", "offline") && chat.is("gen_ai.request.model", "offline"), "{chat:?}");
        assert!(!chat.attributes.contains_key("gen_ai.usage.input_tokens"), "nothing was used: {chat:?}");
    }
    let tool = spans.iter().find(|span| span.name.starts_with("execute_tool")).unwrap();
    assert!(tool.is("gen_ai.tool.name", "graph_rag") && tool.is("gen_ai.tool.type", "datastore"), "{tool:?}");
    assert!(tool.is("gen_ai.operation.name", "execute_tool") && !tool.is_error, "{tool:?}");
    assert!(tool.attributes.contains_key("gen_ai.tool.call.id"), "{tool:?}");
    let turn = parent(&spans, tool);
    for (name, value) in [("phase", "p"), ("topic", "t"), ("action", "look_up"), ("action_type", "tool")] {
        assert!(turn.is(&format!("bcc_script.{name}"), value), "{turn:?}");
    }
    assert!(spans.iter().any(|span| span.is("bcc_script.round", 1)), "{spans:?}");
    assert!(spans.iter().any(|span| span.is("bcc_script.pause", "completed")), "{spans:?}");
    assert_no_texts(&collector, &home);
}

/// Two commands, code, and a behavior of a server. What they get and give may not be exported either.
const CALLS: &str = "
session:
  session_id: calls
  declare:
    - { var: metal, type: string, value: quicksilver }
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          actions:
            - { action_type: command, action_id: good, config: { command: [echo, '{{ metal }}'] } }
            - { action_type: command, action_id: bad, on_exit: { failed: next }, config: { command: [sh, -c, 'echo Salamander; exit 3'] } }
        - topic_id: work
          actions:
            - { action_type: behavior_loop, action_id: work, config: { server: planner, target: Zebulon, max_behaviors: 2 } }
";

#[tokio::test]
async fn commands_code_and_requests_to_behavior_servers_have_spans_without_what_was_sent() {
    let (home, collector) = (Home::new(), Collector::start());
    let Some(python) = kernel_python() else { return };
    let planner = axum::Router::new()
        .route(
            "/v1/actions",
            axum::routing::post(async || {
                axum::Json(json!({
                    "actions": [
                        {"action": "add", "content_type": "code", "content": "print('Salamander')"},
                        {"action": "exec", "codecell_id": "lastAddedCellId"},
                        {"action": "add", "content_type": "code", "content": "raise ValueError('Salamander')"},
                        {"action": "exec", "codecell_id": "lastAddedCellId"},
                    ],
                }))
            }),
        )
        .route("/v1/reflection", axum::routing::post(async || (axum::http::StatusCode::BAD_REQUEST, "Salamander")));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, planner).await });
    home.put("scripts/calls.yaml", CALLS);
    home.put(
        "bcc-script.toml",
        format!("[project]\nallow = [\"command\", \"exec\"]\n[behavior_servers.planner]\nurl = \"{url}\"\n"),
    );
    let mut command = home.command(["run", "scripts/calls.yaml", "--session", "s1", "--user", "a visitor", "--trust"]);
    command.env(ENDPOINT, &collector.url).envs(kernel_variables(&python));
    let finished = tokio::task::spawn_blocking(|| Running::start(command).finish()).await.unwrap();
    let spans = collector.spans();
    let named = |name: &str| spans.iter().filter(|span| span.name == name).collect::<Vec<_>>();
    let commands = named("execute_tool command");
    assert_eq!(commands.len(), 2, "{finished:?} {spans:?}");
    for (span, code) in commands.iter().zip([0, 3]) {
        assert!(span.is("gen_ai.tool.name", "command") && span.is("process.exit.code", code), "{span:?}");
        assert!(span.attributes.contains_key("gen_ai.tool.call.id") && span.is("gen_ai.conversation.id", "s1"));
        assert_eq!((span.is_error, span.is("error.type", "exit_code")), (code != 0, code != 0), "{span:?}");
        assert!(parent(&spans, span).is("bcc_script.action_type", "command"));
    }
    let cells = named("execute_tool kernel");
    assert_eq!(cells.len(), 2, "{finished:?} {spans:?}");
    for (span, fails) in cells.iter().zip([false, true]) {
        assert!(
            span.is("gen_ai.operation.name", "execute_tool") && span.is("gen_ai.conversation.id", "s1"),
            "{span:?}"
        );
        assert_eq!((span.is_error, span.is("error.type", "code_error")), (fails, fails), "{span:?}");
        assert_eq!(parent(&spans, span).name, "turn");
    }
    let asked = named("invoke_agent planner");
    assert!(asked.len() >= 2 && asked.iter().all(|span| span.kind == CLIENT), "{asked:?}");
    assert!(asked[0].is("bcc_script.request", "actions") && !asked[0].is_error, "{asked:?}");
    assert!(
        asked[1].is("bcc_script.request", "reflection") && asked[1].is("error.type", "server-refused"),
        "{asked:?}"
    );
    assert!(asked.iter().all(|span| span.is("gen_ai.agent.name", "planner") && parent(&spans, span).name == "turn"));
    assert_no_texts(&collector, &home);
}

/// A reply that asks on.
fn reply() -> String {
    complete_reply(&json!({ "$ask": { "content": "Who goes there?", "name": null } })).to_string()
}

#[tokio::test]
async fn serve_continues_the_trace_of_a_client_down_to_each_request_to_the_model() {
    let (home, collector) = (project(), Collector::start());
    let model = Server::start(vec![ServerBehavior::Rejects(503, "no"), ServerBehavior::Counts(reply(), 11, 7)]);
    let config =
        format!("[models.default]\nprovider = \"openai\"\nbase_url = \"{}\"\nmodel = \"m1\"\n", model.base_url);
    home.put("bcc-script.toml", config);
    let mut command = home.command(["serve", "--addr", "127.0.0.1:0", "--trust"]);
    command.env(ENDPOINT, &collector.url).env("OTEL_BSP_SCHEDULE_DELAY", "20").env("OTEL_SERVICE_NAME", "intake");
    let serving = Serving::of(Running::start(command));
    const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
    let traceparent = format!("00-{TRACE}-b7ad6b7169203331-01");
    let headers = [("content-type", "application/json"), ("traceparent", traceparent.as_str())];
    let post = async |path: &str, body: Value| {
        let reply = serving.send(reqwest::Method::POST, path, &headers, Some(body.to_string().into_bytes())).await;
        assert!(reply.status < 300, "{reply:?}");
        reply.json()
    };
    let id =
        post("/v1/sessions", json!({ "script": "talk", "user": "a visitor" })).await["id"].as_str().unwrap().to_owned();
    post(&format!("/v1/sessions/{id}/messages"), json!({ "text": "Zebulon" })).await;
    assert_eq!(serving.get("/healthz").await.status, 200);
    assert_eq!(serving.get("/nothing").await.status, 404);
    // A monitor goes on after its turn.
    let monitor = collector.wait_for(TIMEOUT, |span| span.is("bcc_script.purpose", "monitor"));
    serving.terminate();
    assert_eq!(serving.finish().code, Some(0));
    let spans = collector.spans();
    assert_eq!(collector.resource().get("service.name"), Some(&"intake".into()));

    let request =
        |name: &str| spans.iter().find(|span| span.name == name).unwrap_or_else(|| panic!("{name}: {spans:?}"));
    let begun = request("POST /v1/sessions");
    assert_eq!((begun.trace.as_str(), begun.parent.as_str(), begun.kind), (TRACE, "b7ad6b7169203331", SERVER));
    assert!(begun.is("http.request.method", "POST") && begun.is("http.response.status_code", 201), "{begun:?}");
    let said = request("POST /v1/sessions/{id}/messages");
    assert_eq!((said.trace.as_str(), said.parent.as_str()), (TRACE, "b7ad6b7169203331"));
    assert!(said.is("http.route", "/v1/sessions/{id}/messages"), "{said:?}");
    let unknown = request("GET");
    assert!(unknown.trace != TRACE && unknown.is("http.response.status_code", 404) && !unknown.is_error, "{unknown:?}");
    assert!(spans.iter().all(|span| !span.name.contains("healthz")));

    let chats: Vec<&ReceivedSpan> = spans.iter().filter(|span| span.name == "chat m1").collect();
    assert!(
        chats.iter().all(|chat| chat.trace == TRACE && chat.is("gen_ai.conversation.id", id.as_str())),
        "{chats:?}"
    );
    assert!(chats.iter().all(|chat| chat.is("server.address", "127.0.0.1")), "{chats:?}");
    let port = model.base_url.rsplit(':').next().unwrap().trim_end_matches("/v1").parse::<u64>().unwrap();
    assert!(chats.iter().all(|chat| chat.is("server.port", port) && chat.is("gen_ai.provider.name", "openai")));
    let failed = chats.iter().find(|chat| chat.is_error).unwrap();
    assert!(failed.is("error.type", "503") && !failed.attributes.contains_key("gen_ai.response.model"), "{failed:?}");
    let repeated = chats.iter().find(|chat| chat.is("http.request.resend_count", 1)).unwrap();
    assert_eq!(repeated.parent, failed.parent);
    // The last monitor may have been cut off by the end of the server.
    let complete: Vec<_> = chats.iter().filter(|chat| chat.attributes.contains_key("gen_ai.response.model")).collect();
    assert!(complete.len() >= 2, "{chats:?}");
    for chat in complete {
        assert!(chat.is("gen_ai.response.model", "m1-2026"), "{chat:?}");
        assert!(chat.is("gen_ai.usage.input_tokens", 11) && chat.is("gen_ai.usage.output_tokens", 7), "{chat:?}");
        let reasons = Attribute::Texts(vec!["stop".to_owned()]);
        assert_eq!(chat.attributes.get("gen_ai.response.finish_reasons"), Some(&reasons));
    }
    let path = |span: &ReceivedSpan| {
        let mut path = vec![span.name.clone()];
        let mut current = span.clone();
        while let Some(above) = spans.iter().find(|other| other.id == current.parent) {
            path.push(above.name.clone());
            current = above.clone();
        }
        path
    };
    assert_eq!(path(failed), ["chat m1", "turn", "session", "POST /v1/sessions"]);
    assert_eq!(path(&monitor), ["chat m1", "monitor", "turn", "session", "POST /v1/sessions/{id}/messages"]);
    assert_no_texts(&collector, &home);
}

/// The lines of standard error about traces.
fn warnings(finished: &Finished) -> Vec<&str> {
    finished.err.lines().filter(|line| line.contains("traces")).collect()
}

#[test]
fn a_collector_that_does_not_answer_costs_one_warning_and_no_turn() {
    let expected = run(&project(), &[]);
    assert_eq!((expected.code, warnings(&expected)), (Some(0), vec![]));
    let closed = TcpListener::bind("127.0.0.1:0").unwrap();
    let unreachable = format!("http://{}", closed.local_addr().unwrap());
    drop(closed);
    // It accepts connections, and sends nothing.
    let silent_listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = format!("http://{}", silent_listener.local_addr().unwrap());
    for (url, why) in [(&unreachable, "it cannot be reached"), (&silent, "it does not answer in time")] {
        let finished = run(&project(), &[(ENDPOINT, url), ("OTEL_BSP_SCHEDULE_DELAY", "1")]);
        assert_eq!((finished.code, &finished.out), (Some(0), &expected.out), "{finished:?}");
        let warnings = warnings(&finished);
        assert!(warnings.len() == 1 && warnings[0].contains(why) && warnings[0].contains(url), "{finished:?}");
    }
}

#[test]
fn nothing_is_exported_unless_the_environment_says_so() {
    let collector = Collector::start();
    let url = collector.url.as_str();
    let finished = run(&project(), &[(ENDPOINT, url), ("OTEL_SDK_DISABLED", "true")]);
    assert_eq!((finished.code, warnings(&finished)), (Some(0), vec![]));
    let finished = run(&project(), &[(ENDPOINT, url), ("OTEL_TRACES_SAMPLER", "always_off")]);
    assert_eq!((finished.code, warnings(&finished)), (Some(0), vec![]));
    let finished = run(&project(), &[(ENDPOINT, url), ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")]);
    assert_eq!(finished.code, Some(0));
    assert!(warnings(&finished).len() == 1 && finished.err.contains("must be http/protobuf, not grpc"), "{finished:?}");
    assert!(collector.heads().is_empty());
}

#[test]
fn the_log_and_the_traces_are_filtered_separately() {
    let (home, collector) = (project(), Collector::start());
    let finished = run(&home, &[(ENDPOINT, &collector.url), ("BCC_LOG", "bcc_script=trace,hyper=off")]);
    assert_eq!(finished.code, Some(0));
    // What is logged is not exported: at this level, the log may contain texts.
    assert_no_texts(&collector, &home);
    assert!(collector.spans().iter().any(|span| span.name == "session"));
}

#[test]
fn doctor_says_where_traces_go() {
    let home = project();
    let doctor = |variables: &[(&str, &str)]| {
        let mut command: Command = home.command(["doctor"]);
        command.envs(variables.iter().copied());
        Running::start(command).finish().out
    };
    assert!(!doctor(&[]).contains("traces"));
    let out = doctor(&[(ENDPOINT, "https://me:word@traces.example:4318")]);
    assert!(out.contains("https://traces.example:4318") && !out.contains("word"), "{out}");
    assert!(
        doctor(&[(ENDPOINT, "http://x"), ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")]).contains("must be http/protobuf")
    );
}
