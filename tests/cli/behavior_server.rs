//! Tests of the behavior server client against a separate server process (examples/behavior_server.rs), with and without injected
//! errors, and tests of the payloads against their schemas.

use crate::behavior_process as process;
mod payloads;

use std::fs::read_to_string;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::Duration;

use bcc_runtime::effects::behavior_server::client::HttpServer;
use bcc_runtime::effects::behavior_server::settings::{EndpointPaths, ProtocolForm, ServerSettings};
use bcc_runtime::effects::behaviors::{BehaviorPiece, BehaviorServer, ServerError};
use bcc_runtime::notebook::protocol::response::{reflection, response};
use process::Process;
use serde_json::{Value, json};

/// A client whose timeouts are short enough for a test.
fn client(process: &Process, change: impl FnOnce(&mut ServerSettings)) -> HttpServer {
    let mut settings = ServerSettings::new("gauges", &process.url);
    settings.first_backoff = Duration::ZERO;
    change(&mut settings);
    HttpServer::new(settings).unwrap()
}

fn observation() -> Value {
    json!({"observation": {"location": {"current_stage_id": "read", "current_step_id": "看", "behavior_id": null,
        "behavior_iteration": 0}, "context": {"variables": {}}}, "options": {"stream": true}})
}

/// All pieces of a response, and how the stream ended.
async fn all(server: &HttpServer) -> (Vec<BehaviorPiece>, Result<(), ServerError>) {
    let mut pieces = Vec::new();
    let mut stream = match server.actions(&observation()).await {
        Ok(stream) => stream,
        Err(error) => return (pieces, Err(error)),
    };
    loop {
        match stream.next().await {
            Ok(Some(piece)) => pieces.push(piece),
            Ok(None) => return (pieces, Ok(())),
            Err(error) => return (pieces, Err(error)),
        }
    }
}

fn actions_of(pieces: &[BehaviorPiece]) -> Vec<Value> {
    let actions_in = |piece: &BehaviorPiece| match piece {
        BehaviorPiece::Action(value) => {
            vec![value.get("action").filter(|inner| inner.is_object()).unwrap_or(value).clone()]
        }
        BehaviorPiece::Response(value) => response(value).unwrap().actions,
    };
    pieces.iter().flat_map(actions_in).collect()
}

#[tokio::test]
async fn a_document_and_every_stream_give_the_same_actions() {
    let mut expected = None;
    for stream in ["json", "lines", "sse", "array"] {
        let process = Process::start(&["--stream", stream, "--code", "--pause", "1"]);
        let (pieces, result) = all(&client(&process, |_| {})).await;
        result.unwrap();
        let streamed = pieces.iter().filter(|piece| matches!(piece, BehaviorPiece::Action(_))).count();
        assert_eq!(streamed, if stream == "json" { 0 } else { 3 }, "{stream}");
        let actions = actions_of(&pieces);
        assert_eq!(&actions, expected.get_or_insert(actions.clone()), "{stream}");
        if let Some(BehaviorPiece::Response(around)) = pieces.last() {
            let parsed = response(around).unwrap();
            assert_eq!((parsed.target.as_str(), parsed.transition.continue_behaviors), ("part 1 of 看", Some(true)));
        }
    }
    assert_eq!(expected.unwrap().len(), 3);
}

#[tokio::test]
async fn legacy_endpoints_and_forms_give_the_same_judgement() {
    for (form, paths) in [("new", EndpointPaths::V1), ("older", EndpointPaths::Planning)] {
        let process = Process::start(&["--form", form, "--behaviors", "1"]);
        let server = client(&process, |settings| {
            settings.paths = paths;
            settings.form = if form == "older" { ProtocolForm::Legacy } else { ProtocolForm::New };
        });
        assert_eq!(server.is_legacy_form(), form == "older");
        let (pieces, result) = all(&server).await;
        result.unwrap();
        assert_eq!(actions_of(&pieces).len(), 2);
        let judgement = reflection(&server.reflection(&observation()).await.unwrap()).unwrap();
        assert_eq!(judgement.is_target_achieved(), Some(true), "{form}");
    }
}

#[tokio::test]
async fn the_token_is_sent_and_never_printed() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let process = Process::start(&["--token", "open-sesame", "--log", log.to_str().unwrap()]);
    let (_, result) = all(&client(&process, |settings| settings.token = Some("open-sesame\n".into()))).await;
    result.unwrap();
    let server = client(&process, |settings| settings.token = Some("wrong-sesame".into()));
    let error = all(&server).await.1.unwrap_err();
    assert_eq!(error.code, "server-refused");
    assert!(!format!("{error:?} {server:?}").contains("sesame"));
    let lines = read_to_string(log).unwrap();
    let first: Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
    assert_eq!(
        (&first["method"], &first["path"], &first["token"]),
        (&json!("POST"), &json!("/v1/actions"), &json!(true))
    );
    assert_eq!(first["body"], observation());
    assert_eq!(lines.lines().count(), 2, "a refusal is not asked again");
}

/// Each injected error with the expected error code and the number of actions received before it.
const INJECTED_ERRORS: [(&str, &str, usize); 18] = [
    ("status:500", "server-refused", 0),
    ("status:429", "server-refused", 0),
    ("status:404", "server-refused", 0),
    ("redirect", "server-refused", 0),
    ("hang", "server-timeout", 0),
    ("hang-body", "server-timeout", 0),
    ("close", "server-unreachable", 0),
    ("empty", "server-rubbish", 0),
    ("garbage", "server-rubbish", 0),
    ("web-page", "server-rubbish", 0),
    ("bad-utf8", "server-rubbish", 0),
    ("deep", "server-rubbish", 0),
    ("cut", "server-unreachable", 1),
    ("huge", "server-flood", 0),
    ("endless-line", "server-flood", 0),
    ("wrong-types", "", 0),
    ("many", "", 1_000),
    ("unknown-cells", "", 2),
];

#[tokio::test]
async fn every_injected_error_has_its_outcome_and_none_repeats_actions() {
    for (injected_error, code, before) in INJECTED_ERRORS {
        let process = Process::start(&["--fault", injected_error]);
        let server = client(&process, |settings| {
            settings.first_byte_timeout = Duration::from_secs(if injected_error == "hang" { 1 } else { 30 });
            settings.idle_timeout = Duration::from_secs(if injected_error == "hang-body" { 1 } else { 30 });
        });
        let (pieces, result) = all(&server).await;
        match result {
            Err(error) => {
                assert_eq!(error.code, code, "{injected_error}: {error}");
                assert!(error.message.to_string().contains("`gauges`") && error.help.is_some(), "{error:?}");
                assert!(!format!("{error:?}").contains("a-secret-of-the-server"), "{error:?}");
                assert_eq!(pieces.len(), before, "{injected_error}");
            }
            Ok(()) if injected_error == "wrong-types" => {
                let [BehaviorPiece::Response(value)] = pieces.as_slice() else { panic!("{pieces:?}") };
                assert!(response(value).is_err());
            }
            Ok(()) => {
                assert_eq!(code, "", "{injected_error}");
                assert_eq!(actions_of(&pieces).len(), before, "{injected_error}");
            }
        }
    }
}

#[tokio::test]
async fn an_endless_stream_is_read_until_the_timeout() {
    let process = Process::start(&["--fault", "endless", "--pause", "1"]);
    let server = client(&process, |settings| settings.timeout = Duration::from_secs(1));
    let (pieces, result) = all(&server).await;
    assert!(!pieces.is_empty());
    assert_eq!(result.unwrap_err().code, "server-timeout");
}

#[tokio::test]
async fn a_response_in_single_bytes_is_the_same_even_inside_characters() {
    let process = Process::start(&["--fault", "drip", "--stream", "lines", "--pause", "0"]);
    let (pieces, result) = all(&client(&process, |_| {})).await;
    result.unwrap();
    let actions = actions_of(&pieces);
    assert_eq!(actions.len(), 2);
    assert!(actions[1]["content"].as_str().unwrap().contains("一、二、三。"));
}

/// Answers one request with this body.
fn answer_once(body: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let mut connection = listener.accept().unwrap().0;
        let (mut request, mut buffer) = (String::new(), [0; 4096]);
        // The observation of these tests ends the request.
        while !request.ends_with('}') {
            let count = connection.read(&mut buffer).unwrap();
            request += &String::from_utf8_lossy(&buffer[..count]);
        }
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
        connection.write_all((head + body).as_bytes()).unwrap();
    });
    url
}

#[tokio::test]
async fn a_byte_order_mark_before_an_answer_is_skipped() {
    let server = |body| HttpServer::new(ServerSettings::new("marked", answer_once(body))).unwrap();
    let (pieces, result) = all(&server("\u{feff}{\"actions\": [{\"type\": \"add-text\", \"content\": \"x\"}]}")).await;
    result.unwrap();
    assert_eq!(actions_of(&pieces).len(), 1);
    assert_eq!(server("\u{feff}true").reflection(&observation()).await.unwrap(), true);
    let plan = server("\u{feff}{\"steps\": []}").plan(&observation()).await.unwrap();
    assert_eq!(plan, json!({ "steps": [] }));
}

#[tokio::test]
async fn temporary_errors_are_retried_until_the_first_data() {
    for (injected_error, times, succeeds) in [
        ("status:503", "2", true),
        ("status:503", "3", false),
        ("close", "2", true),
        ("status:400", "1", false),
        ("cut", "1", false),
    ] {
        for endpoint in ["actions", "reflection"] {
            let process = Process::start(&["--fault", injected_error, "--times", times, "--on", endpoint]);
            let server = client(&process, |_| {});
            let succeeded = match endpoint {
                "actions" => all(&server).await.1.is_ok(),
                _ => server.reflection(&observation()).await.is_ok(),
            };
            assert_eq!(succeeded, succeeds, "{injected_error} {times} on {endpoint}");
        }
    }
}

#[tokio::test]
async fn an_unreachable_server_is_reported_with_help() {
    let url = {
        let process = Process::start(&[]);
        process.url.clone()
    };
    let settings = ServerSettings { first_backoff: Duration::ZERO, ..ServerSettings::new("gauges", url) };
    let error = all(&HttpServer::new(settings).unwrap()).await.1.unwrap_err();
    assert_eq!(error.code, "server-unreachable");
    assert!(error.help.unwrap().to_string().contains("[behavior_servers.gauges]"));
}
