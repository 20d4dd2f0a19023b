//! Servers that others wrote, which `.ci/mcp/run` installs: one of npm, of the protocol of 2025-11-25, and the SDK of PyPI, of that of
//! 2026-07-28. Each over pipes and over HTTP (CONTRIBUTING.md, "Servers of tools for the tests").

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use bcc_runtime::effects::tools::ToolLimits;
use serde_json::{Value, json};

use crate::servers_under_test::{SeenProgress, TestServers, outcome, wait_until};

/// How often a server is started until it gets a port that nobody else took meanwhile.
const MAX_STARTS: usize = 5;

/// Where `.ci/mcp/run` installed the servers. Without them, prints a note and returns `None`; panics if `BCC_REQUIRE_MCP` is set.
fn installed() -> Option<PathBuf> {
    let place = Path::new(crate::ROOT).join("target").join("mcp");
    if place.join("mark").exists() {
        return Some(place);
    }
    let reason = "no servers of tools: `.ci/mcp/run` installs them in target/mcp";
    assert!(std::env::var_os("BCC_REQUIRE_MCP").is_none_or(|value| value.is_empty() || value == "0"), "{reason}");
    eprintln!("passes without them: {reason}");
    None
}

/// A server over HTTP, which is killed when this is dropped.
struct HttpServer {
    child: Child,
    url: String,
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn everything(place: &Path) -> String {
    place.join("node_modules/@modelcontextprotocol/server-everything/dist/index.js").display().to_string()
}

fn sdk(place: &Path) -> [String; 2] {
    let script = Path::new(crate::ROOT).join(".ci/mcp/server.py");
    [place.join("python/bin/python").display().to_string(), script.display().to_string()]
}

/// Starts the server of npm, which takes a port but not a free one, on one that was free a moment ago.
fn everything_over_http(place: &Path) -> HttpServer {
    for _ in 0..MAX_STARTS {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut command = Command::new("node");
        command.args([&everything(place), "streamableHttp"]).env("PORT", port.to_string());
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let is_listening = lines.map_while(Result::ok).any(|line| line.contains("listening on port"));
        let server = HttpServer { child, url: format!("http://127.0.0.1:{port}/mcp") };
        if is_listening {
            return server;
        }
    }
    panic!("the server does not start");
}

fn sdk_over_http(place: &Path) -> HttpServer {
    let [python, script] = sdk(place);
    let mut command = Command::new(python);
    let mut child = command.args([&script, "http"]).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut url = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
    HttpServer { child, url: url.trim().to_owned() }
}

fn over_http(server: &HttpServer) -> TestServers {
    TestServers::configured(&format!("[mcp_servers.s]\nurl = {:?}\n", server.url))
}

fn over_pipes(command: &[String]) -> TestServers {
    TestServers::configured(&format!("[mcp_servers.s]\ncommand = {command:?}\n"))
}

/// What works with the server of npm, whatever carries the messages.
async fn use_everything(test: &TestServers) {
    let (tools, errors) = test.describe("mcp.s.*").await;
    assert_eq!(errors, Vec::<String>::new());
    let echo = tools.iter().find(|tool| tool.name == "mcp.s.echo").unwrap();
    assert!(echo.parameters["properties"]["message"].is_object() && echo.description.contains("Echoes"), "{echo:?}");
    assert_eq!(test.call("mcp.s.echo", json!({ "message": "你好" })).await, Ok(json!("Echo: 你好")));
    let weather = test.call("mcp.s.get-structured-content", json!({ "location": "New York" })).await.unwrap();
    assert!(weather["temperature"].is_number(), "{weather}");
    let image = test.call("mcp.s.get-tiny-image", json!({})).await.unwrap();
    assert!(image.as_str().unwrap().contains("[image image/png, "), "{image}");
    let error = test.call("mcp.s.get-sum", json!({ "a": "one", "b": 2 })).await.unwrap_err();
    assert!(error.contains("are not valid: /a"), "{error}");

    let seen = SeenProgress::default();
    let arguments = json!({ "duration": 0.05, "steps": 3 });
    let long = test.try_call("mcp.s.trigger-long-running-operation", &arguments, ToolLimits::default(), &seen).await;
    assert!(outcome(long).unwrap().as_str().unwrap().contains("completed"));
    assert_eq!(*seen.0.lock().unwrap(), [(1.0, Some(3.0)), (2.0, Some(3.0)), (3.0, Some(3.0))]);

    let limits = ToolLimits { timeout: Duration::from_millis(200), ..ToolLimits::default() };
    let arguments = json!({ "duration": 60, "steps": 1 });
    let error = test.call_limited("mcp.s.trigger-long-running-operation", arguments, limits).await.unwrap_err();
    assert!(error.contains("no result in time"), "{error}");

    let tool = "mcp.s.trigger-elicitation-request";
    let request = test.question(tool, &json!({})).await;
    assert!(!request.prompt.is_empty() && request.schema["properties"]["name"].is_object(), "{request:?}");
    let given = json!({ "name": "小林" });
    let answered = outcome(test.answer(tool, &json!({}), &request, given.as_object()).await).unwrap();
    assert!(answered.as_str().unwrap().contains("小林"), "{answered}");
}

/// What works with the SDK of PyPI, whatever carries the messages.
async fn use_sdk(test: &TestServers) {
    let (tools, errors) = test.describe("mcp.s.*").await;
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    let expected = ["mcp.s.broken", "mcp.s.count", "mcp.s.slow", "mcp.s.trip", "mcp.s.version", "mcp.s.weather"];
    assert_eq!((names.as_slice(), errors.as_slice()), (expected.as_slice(), [].as_slice()));
    let version = test.call("mcp.s.version", json!({})).await.unwrap();
    assert_eq!(version, json!({ "result": "2026-07-28" }));
    let weather = test.call("mcp.s.weather", json!({ "city": "Oslo" })).await;
    assert_eq!(weather, Ok(json!({ "city": "Oslo", "degrees": 4 })));
    let error = test.call("mcp.s.broken", json!({})).await.unwrap_err();
    assert!(error.starts_with("the tool `mcp.s.broken` failed: ") && error.contains("broken"), "{error}");

    let seen = SeenProgress::default();
    test.try_call("mcp.s.count", &json!({ "to": 3 }), ToolLimits::default(), &seen).await.unwrap();
    assert_eq!(*seen.0.lock().unwrap(), [(1.0, Some(3.0)), (2.0, Some(3.0)), (3.0, Some(3.0))]);

    let limits = ToolLimits { timeout: Duration::from_millis(200), ..ToolLimits::default() };
    let error = test.call_limited("mcp.s.slow", json!({}), limits).await.unwrap_err();
    assert!(error.contains("no result in time"), "{error}");

    let arguments = json!({ "days": 3 });
    let request = test.question("mcp.s.trip", &arguments).await;
    assert_eq!(request.prompt, "Which city?");
    let given = json!({ "city": "Lima" });
    let answered = outcome(test.answer("mcp.s.trip", &arguments, &request, given.as_object()).await);
    assert_eq!(answered, Ok(json!({ "result": "3 days in Lima" })));
    let declined = outcome(test.answer("mcp.s.trip", &arguments, &request, None).await);
    assert!(declined.is_err(), "{declined:?}");
}

#[tokio::test]
async fn the_server_of_npm_works_over_pipes() {
    let Some(place) = installed() else { return };
    use_everything(&over_pipes(&["node".to_owned(), everything(&place), "stdio".to_owned()])).await;
}

#[tokio::test]
async fn the_server_of_npm_works_over_http() {
    let Some(place) = installed() else { return };
    let server = everything_over_http(&place);
    use_everything(&over_http(&server)).await;
}

#[tokio::test]
async fn the_sdk_of_pypi_works_over_pipes() {
    let Some(place) = installed() else { return };
    use_sdk(&over_pipes(&sdk(&place))).await;
}

#[tokio::test]
async fn the_sdk_of_pypi_works_over_http() {
    let Some(place) = installed() else { return };
    let server = sdk_over_http(&place);
    use_sdk(&over_http(&server)).await;
}

#[tokio::test]
async fn a_server_over_http_that_is_killed_in_a_call_is_a_failure() {
    let Some(place) = installed() else { return };
    for mut server in [everything_over_http(&place), sdk_over_http(&place)] {
        let test = over_http(&server);
        let slow = ["mcp.s.slow", "mcp.s.trigger-long-running-operation"];
        let names = test.names().await;
        let tool = slow.into_iter().find(|tool| names.iter().any(|name| name == tool)).unwrap();
        let arguments = if tool == "mcp.s.slow" { json!({}) } else { json!({ "duration": 60, "steps": 1000 }) };
        let seen = SeenProgress::default();
        let call = test.try_call(tool, &arguments, ToolLimits::default(), &seen);
        let (result, ()) = tokio::join!(call, async {
            wait_until("the call runs", || !seen.0.lock().unwrap().is_empty()).await;
            server.child.kill().unwrap();
        });
        let error = outcome(result).unwrap_err();
        assert!(error.contains(" failed: ") && error.contains("the call was not repeated"), "{error}");
        let error = test.call(tool, Value::Object(serde_json::Map::new())).await.unwrap_err();
        assert!(error.contains("cannot be used: the server cannot be reached"), "{error}");
    }
}
