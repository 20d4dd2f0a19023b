//! Questions of servers to a person.

use bcc_runtime::effects::tools::{ToolError, ToolInputRequest};
use serde_json::{Value, json};

use crate::servers_under_test::{TestServers, outcome};

#[tokio::test]
async fn an_answer_goes_to_the_call_that_asked() {
    for mode in ["handshake", "newest"] {
        let test = TestServers::misbehaving(mode, "");
        let request = test.question("mcp.s.ask", &json!({})).await;
        assert_eq!(request.prompt, "Which city?");
        assert_eq!(request.schema["properties"]["city"]["description"], "Where?");
        // Meanwhile, others can call.
        assert!(test.call("mcp.s.pid", json!({})).await.is_ok());
        let city = json!({ "city": "深圳" });
        let answered = outcome(test.answer("mcp.s.ask", &json!({}), &request, city.as_object()).await).unwrap();
        let answered: Value = serde_json::from_str(answered.as_str().unwrap()).unwrap();
        let answered = answered.get("q").unwrap_or(&answered);
        assert_eq!((&answered["action"], &answered["content"]), (&json!("accept"), &city), "{mode}");

        let request = test.question("mcp.s.ask", &json!({})).await;
        let declined = outcome(test.answer("mcp.s.ask", &json!({}), &request, None).await).unwrap();
        assert!(declined.as_str().unwrap().contains("decline"), "{declined}");
    }
}

#[tokio::test]
async fn another_process_goes_on_with_a_call_of_the_newest_protocol() {
    let request = TestServers::misbehaving("newest", "").question("mcp.s.ask", &json!({})).await;
    let other = TestServers::misbehaving("newest", "");
    let city = json!({ "city": "x" });
    let answered = outcome(other.answer("mcp.s.ask", &json!({}), &request, city.as_object()).await).unwrap();
    assert!(answered.as_str().unwrap().contains("accept"), "{answered}");
    assert_eq!(other.log().matches("call ask").count(), 1);
}

#[tokio::test]
async fn a_call_of_an_older_protocol_that_is_no_longer_open_is_a_failure_and_not_repeated() {
    let request = TestServers::misbehaving("handshake", "").question("mcp.s.ask", &json!({})).await;
    let other = TestServers::misbehaving("handshake", "");
    let error = other.answer("mcp.s.ask", &json!({}), &request, None).await.unwrap_err();
    assert!(matches!(&error, ToolError::Lost { why, .. } if why.to_string().contains("no longer open")), "{error}");
    assert!(!other.log().contains("call ask"));
}

#[tokio::test]
async fn the_answer_to_a_server_that_ended_is_a_failure() {
    let test = TestServers::misbehaving("handshake", "");
    let request = test.question("mcp.s.ask", &json!({})).await;
    assert!(test.call("mcp.s.die", json!({})).await.is_err());
    let error = test.answer("mcp.s.ask", &json!({}), &request, None).await.unwrap_err();
    assert!(error.to_string().contains("exit code 3"), "{error}");
}

#[tokio::test]
async fn a_token_that_was_changed_is_a_failure() {
    let test = TestServers::misbehaving("handshake", "");
    for token in [json!(null), json!({ "call": 1, "process": "x" }), json!({ "state": {}, "requests": [] })] {
        let request = ToolInputRequest { prompt: String::new(), schema: json!({}), token };
        let error = test.answer("mcp.s.ask", &json!({}), &request, None).await.unwrap_err();
        assert!(matches!(error, ToolError::Failed { .. } | ToolError::Lost { .. }), "{error}");
    }
}
