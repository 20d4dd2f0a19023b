//! Servers that repeat the key and the address, with which they were called or started, in everything that they send.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};

use serde_json::{Value, json};

use crate::servers_under_test::TestServers;

/// What the server repeats the key in.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Place {
    /// The body of status 401, for any request.
    Status,
    /// The error that answers the handshake.
    Start,
    /// The error that answers a call.
    Error,
    /// A result that says that the call failed.
    Failure,
    /// The body of status 500, for a call.
    BrokenCall,
    /// The body of status 503, for a call.
    BusyCall,
    /// A result, also as the name of a field.
    Result,
}

/// Serves every connection until the test ends. The result is its address, with a secret in the query.
fn start(place: Place) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        while let Ok((stream, _)) = listener.accept() {
            std::thread::spawn(move || serve(stream, place));
        }
    });
    format!("http://{address}/mcp?token=query%2Bgeheim")
}

fn serve(mut stream: TcpStream, place: Place) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let start = head.len();
        if reader.read_line(&mut head).ok()? <= 2 {
            break;
        }
        let line = head[start..].to_ascii_lowercase();
        length = line.strip_prefix("content-length:").map_or(length, |length| length.trim().parse().unwrap());
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let (status, body) = answer(place, &head, &serde_json::from_slice(&body).unwrap_or_default());
    let kind = if body.starts_with('{') { "application/json" } else { "text/plain" };
    let length = body.len();
    let answer = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    );
    stream.write_all(answer.as_bytes()).ok()
}

/// The status and the body of the answer to a message.
fn answer(place: Place, head: &str, message: &Value) -> (u16, String) {
    let Some(method) = message["method"].as_str() else { return (405, String::new()) };
    if place == Place::Status {
        return (401, format!("refused: {head}"));
    }
    let id = &message["id"];
    let result = |result: Value| (200, json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string());
    let error = |text: &str| {
        let error = json!({ "code": -32000, "message": text });
        (200, json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string())
    };
    match method {
        _ if id.is_null() => (202, String::new()),
        "initialize" if place == Place::Start => error(head),
        "initialize" => result(json!({
            "protocolVersion": message["params"]["protocolVersion"],
            "capabilities": { "tools": {} },
            "serverInfo": { "name": "repeating", "version": "1" },
        })),
        "tools/list" => {
            let schema = json!({ "type": "object", "description": head, "properties": { "a": { "default": head } } });
            result(json!({ "tools": [{ "name": "t", "description": head, "inputSchema": schema }] }))
        }
        "tools/call" => match place {
            Place::Error => error(head),
            Place::Failure => result(json!({ "isError": true, "content": [{ "type": "text", "text": head }] })),
            Place::BrokenCall => (500, head.to_owned()),
            Place::BusyCall => (503, head.to_owned()),
            _ => result(json!({ "content": [], "structuredContent": { head: head } })),
        },
        _ => error("unknown"),
    }
}

#[tokio::test]
async fn a_key_that_a_server_repeats_is_masked() {
    for place in [Place::Status, Place::Start, Place::Error, Place::Failure, Place::BrokenCall, Place::Result] {
        let url = start(place);
        let test = TestServers::configured(&format!("[mcp_servers.s]\nurl = {url:?}\napi_key_env = \"SECRET_KEY\"\n"));
        let (tools, errors) = test.describe("mcp.*").await;
        let called = format!("{:?}", test.call("mcp.s.t", json!({})).await);
        for shown in [format!("{tools:?}"), format!("{errors:?}"), called.clone()] {
            assert!(!shown.contains("secret"), "{place:?}: {shown}");
        }
        assert!(!called.contains("geheim") || place == Place::Result, "{place:?}: {called}");
        if !matches!(place, Place::Status | Place::Start) {
            assert_eq!(tools.len(), 1, "{place:?}: {errors:?}");
            // Of status 500, only the number is shown.
            assert!(called.contains("***") || place == Place::BrokenCall, "{place:?}: {called}");
        }
    }
}

#[tokio::test]
async fn a_server_that_has_too_much_to_do_has_not_begun_with_a_call_and_may_be_asked_again() {
    for (place, is_lost) in [(Place::BrokenCall, true), (Place::BusyCall, false)] {
        let url = start(place);
        let test = TestServers::configured(&format!("[mcp_servers.s]\nurl = {url:?}\napi_key_env = \"SECRET_KEY\"\n"));
        test.describe("mcp.*").await;
        let called = test.call("mcp.s.t", json!({})).await;
        assert!(called.is_err(), "{place:?}: {called:?}");
        assert_eq!(format!("{called:?}").contains("what it did is not known"), is_lost, "{place:?}: {called:?}");
    }
}

#[tokio::test]
async fn a_key_that_a_program_gets_from_the_environment_and_repeats_is_masked() {
    let variables = "BCC_TEST_TOKEN = { env = \"SECRET_KEY\" },";
    let test = TestServers::misbehaving_with(variables, "handshake", "");
    for how in ["result", "error", "failure"] {
        let called = format!("{:?}", test.call("mcp.s.token", json!({ "how": how })).await);
        assert!(called.contains("***") && !called.contains("secret"), "{how}: {called}");
    }
    // What stands in the configuration is not secret, and may be an ordinary word.
    let test = TestServers::misbehaving_with("BCC_TEST_WORD = \"secret\",", "handshake", "");
    assert_eq!(test.call("mcp.s.token", json!({})).await, Ok(json!({ "secret": ["secret"] })));
}
