//! What a server is asked for, and how it is asked for less: structured output, the limit's newer name, added fields.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Map, Value, json};

use crate::model::error::ModelError;
use crate::model::provider::{LiveObserver, NoLiveOutput, Provider};
use crate::model::request::ModelRequest;
use crate::providers::http::caller::Caller;
use crate::providers::http::config::{ServerConfig, Structured};
use crate::providers::http::fake::{CapturedDeltas, FakeServer, Step, events, head, plain, stream};
use crate::providers::openai::CHAT_COMPLETIONS;
use crate::providers::openai::tests::{KEY, config, end, good, piece, request};

fn schema() -> Value {
    json!({ "type": "object", "properties": { "content": { "type": "string" } }, "required": ["content"] })
}

fn structured() -> ModelRequest {
    ModelRequest { schema: Some(Arc::new(schema())), ..request() }
}

fn refuse(status: u16, message: &str) -> Vec<Step> {
    let body = json!({ "error": { "message": message } }).to_string();
    vec![Step::Send(plain(status, "application/json", "", &body))]
}

fn bodies(server: &FakeServer) -> Vec<Value> {
    let bodies = server.requests().into_iter().map(|sent| {
        let (_, body) = sent.split_once("\r\n\r\n").unwrap();
        serde_json::from_str(body).unwrap()
    });
    bodies.collect()
}

fn forms(server: &FakeServer) -> Vec<String> {
    let form = |body: &Value| match &body["response_format"]["type"] {
        Value::String(form) => form.clone(),
        _ if body.get("tools").is_some() => "tool".to_owned(),
        _ => "off".to_owned(),
    };
    bodies(server).iter().map(form).collect()
}

fn provider(server: &FakeServer, structured: Structured) -> Caller {
    Caller::new(&CHAT_COMPLETIONS, ServerConfig { structured, max_attempts: 1, ..config(&server.base_url) }).unwrap()
}

#[tokio::test]
async fn each_form_is_written_as_the_api_has_it() {
    let tool = json!({ "type": "function", "function": { "name": "reply", "parameters": schema() } });
    let table = [
        (
            Structured::JsonSchema,
            json!({ "response_format": { "type": "json_schema",
                "json_schema": { "name": "reply", "schema": schema(), "strict": false } } }),
        ),
        (Structured::JsonObject, json!({ "response_format": { "type": "json_object" } })),
        (
            Structured::Tool,
            json!({ "tools": [tool], "tool_choice": { "type": "function", "function": { "name": "reply" } } }),
        ),
        (Structured::Off, json!({})),
    ];
    for (form, expected) in table {
        let server = FakeServer::start([good("{}"), good("words")]).await;
        let provider = provider(&server, form);
        provider.complete(&structured(), &mut NoLiveOutput).await.unwrap();
        provider.complete(&request(), &mut NoLiveOutput).await.unwrap();
        let bodies = bodies(&server);
        let sent: Map<String, Value> = ["response_format", "tools", "tool_choice"]
            .iter()
            .filter_map(|key| Some(((*key).to_owned(), bodies[0].get(*key)?.clone())))
            .collect();
        assert_eq!(Value::Object(sent), expected, "{form:?}");
        // Without a schema there is nothing to ask for.
        assert_eq!(forms(&server)[1], "off", "{form:?}");
    }
}

#[tokio::test]
async fn what_a_tool_is_called_with_is_the_reply() {
    let call = |arguments: &str| {
        json!({ "choices": [{ "delta": { "tool_calls": [{ "index": 0, "function": { "arguments": arguments } }] } }] })
            .to_string()
    };
    let server =
        FakeServer::start([stream(&[&call("{\"content\": "), &call("\"您好\"}"), &end("tool_calls"), "[DONE]"])]).await;
    let mut heard = CapturedDeltas::default();
    let reply = provider(&server, Structured::Tool).complete(&structured(), &mut heard).await.unwrap();
    assert_eq!(reply.text, "{\"content\": \"您好\"}");
    assert_eq!(heard.0.concat(), reply.text);
}

#[tokio::test]
async fn a_server_that_refuses_a_form_is_asked_for_a_simpler_one_and_that_is_remembered() {
    // The words of servers that are in use, each with the forms that are asked for until it answers.
    let table: [(u16, &str, &[&str]); 9] = [
        (400, "This response_format type is unavailable now", &["json_schema", "json_object"]),
        (
            400,
            "'response_format.type' : value is one of the allowed values: `text`,`json_object`",
            &["json_schema", "json_object"],
        ),
        (
            400,
            "Invalid schema for response_format 'reply': schema must have a 'type' key.",
            &["json_schema", "json_object"],
        ),
        (400, "Unsupported JSON Schema feature: pattern", &["json_schema", "json_object"]),
        (422, "json_schema is not supported by this model", &["json_schema", "json_object"]),
        (501, "Guided decoding is disabled", &["json_schema", "json_object"]),
        (500, "failed to convert JSON schema to grammar", &["json_schema", "json_object"]),
        (404, "No endpoints found that can handle the requested parameters.", &["json_schema", "json_object"]),
        (400, "", &["json_schema", "off"]),
    ];
    for (status, message, expected) in table {
        let server = FakeServer::start([refuse(status, message), good("一"), good("二"), good("三")]).await;
        let provider = provider(&server, Structured::Auto);
        let reply = provider.complete(&structured(), &mut NoLiveOutput).await;
        let reply = reply.unwrap_or_else(|error| panic!("{message}: {error}"));
        // It is asked once, and again; what was refused is no failed attempt, or there would have been no second.
        assert_eq!((reply.text.as_str(), reply.attempts), ("一", 2), "{message}");
        provider.complete(&structured(), &mut NoLiveOutput).await.unwrap();
        assert_eq!(forms(&server)[..2], *expected, "{message}");
        assert_eq!(forms(&server)[2], expected[1], "{message}");
    }
}

#[tokio::test]
async fn a_server_that_knows_no_form_at_all_is_asked_for_none() {
    let unknown = "Unrecognized request argument supplied: response_format";
    let server = FakeServer::start([refuse(400, unknown), refuse(400, unknown), good("一"), good("二")]).await;
    let provider = provider(&server, Structured::Auto);
    assert_eq!(provider.complete(&structured(), &mut NoLiveOutput).await.unwrap().text, "一");
    provider.complete(&structured(), &mut NoLiveOutput).await.unwrap();
    assert_eq!(forms(&server), ["json_schema", "json_object", "off", "off"]);
}

#[tokio::test]
async fn a_complaint_inside_a_stream_counts_as_well() {
    let error = json!({ "error": { "code": 400, "message": "response_format: json_schema is not supported" } });
    let stream = stream(&[&error.to_string()]);
    let server = FakeServer::start([stream, good("一")]).await;
    let provider = provider(&server, Structured::Auto);
    assert_eq!(provider.complete(&structured(), &mut NoLiveOutput).await.unwrap().text, "一");
    assert_eq!(forms(&server), ["json_schema", "json_object"]);
}

#[tokio::test]
async fn an_unrelated_refusal_is_told_as_itself_and_costs_at_most_one_request_more() {
    let table = [
        (400, "This model's maximum context length is 4096 tokens", 1),
        (400, "max_tokens is too large: 90000. This model supports at most 4096 completion tokens", 1),
        (404, "The model `qwen9` does not exist", 1),
        (401, "response_format needs a better key", 1),
        (403, "", 1),
        (404, "", 1),
        // Words that might be about it, and nothing that says so.
        (400, "the schema of your account is wrong", 2),
        (400, "Bad Request", 2),
        (422, "", 2),
    ];
    for (status, message, requests) in table {
        let answers: Vec<Vec<Step>> = (0..8).map(|_| refuse(status, message)).collect();
        let server = FakeServer::start(answers).await;
        let provider = provider(&server, Structured::Auto);
        for call in 1..=2 {
            let error = provider.complete(&structured(), &mut NoLiveOutput).await.unwrap_err();
            let ModelError::Http { status: told, message: said, attempts, .. } = error else { panic!("{error:?}") };
            assert_eq!((told, said.as_str(), attempts), (status, message, requests), "{message}");
            // What was given up in vain is not remembered.
            assert_eq!(forms(&server)[(call - 1) * requests as usize], "json_schema", "{message}");
        }
        assert_eq!(server.requests().len(), 2 * requests as usize, "{message}");
    }
}

#[tokio::test]
async fn a_form_that_the_settings_name_is_not_changed() {
    for form in [Structured::JsonSchema, Structured::JsonObject, Structured::Tool] {
        let server = FakeServer::start([refuse(400, "response_format and tools are not supported"), good("x")]).await;
        let error = provider(&server, form).complete(&structured(), &mut NoLiveOutput).await.unwrap_err();
        assert!(matches!(error, ModelError::Http { status: 400, attempts: 1, .. }), "{error:?}");
    }
}

#[tokio::test]
async fn faults_and_refusals_in_one_call_are_counted_apart() {
    let busy = || refuse(503, "busy");
    let answers = [busy(), refuse(400, "response_format?"), busy(), refuse(400, "json_object?"), busy(), good("一")];
    let server = FakeServer::start(answers).await;
    let provider =
        Caller::new(&CHAT_COMPLETIONS, ServerConfig { max_attempts: 4, ..config(&server.base_url) }).unwrap();
    let mut heard = CapturedDeltas::default();
    let reply = provider.complete(&structured(), &mut heard).await.unwrap();
    assert_eq!((reply.text.as_str(), reply.attempts), ("一", 6));
    assert_eq!(forms(&server), ["json_schema", "json_schema", "json_object", "json_object", "off", "off"]);
    assert_eq!(heard.0.last().map(String::as_str), Some("一"));
}

#[tokio::test]
async fn a_server_that_wants_the_limit_under_its_newer_name_gets_it_from_then_on() {
    let refusal =
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.";
    let server = FakeServer::start([refuse(400, refusal), good("一"), good("二")]).await;
    let config = ServerConfig { max_tokens: Some(50), max_attempts: 1, ..config(&server.base_url) };
    let provider = Caller::new(&CHAT_COMPLETIONS, config).unwrap();
    for _ in 0..2 {
        provider.complete(&request(), &mut NoLiveOutput).await.unwrap();
    }
    let limits: Vec<(Value, Value)> = bodies(&server)
        .iter()
        .map(|body| (body["max_tokens"].clone(), body["max_completion_tokens"].clone()))
        .collect();
    let (old, new) = ((json!(50), Value::Null), (Value::Null, json!(50)));
    assert_eq!(limits, [old, new.clone(), new]);
}

#[tokio::test]
async fn a_reply_that_reached_its_limit_says_so() {
    for (reason, cut_off) in [("length", true), ("stop", false)] {
        let stream = events(&[&piece("您"), &end(reason), "[DONE]"]);
        let server = FakeServer::start([vec![Step::Send(head("text/event-stream")), Step::Send(stream)]]).await;
        let reply = provider(&server, Structured::Auto).complete(&request(), &mut NoLiveOutput).await.unwrap();
        assert_eq!(reply.cut_off, cut_off, "{reason}");
    }
}

#[tokio::test]
async fn fields_and_headers_of_the_settings_are_sent_along() {
    let server = FakeServer::start([good("x")]).await;
    let mut config = config(&server.base_url);
    config.extra = Map::from_iter([
        ("enable_thinking".to_owned(), json!(false)),
        ("options".to_owned(), json!({ "num_ctx": 8192 })),
    ]);
    config.headers = vec![("X-Team".to_owned(), "team-geheim".into())];
    Caller::new(&CHAT_COMPLETIONS, config).unwrap().complete(&request(), &mut NoLiveOutput).await.unwrap();
    let body = bodies(&server).remove(0);
    assert_eq!((&body["enable_thinking"], &body["options"]["num_ctx"]), (&json!(false), &json!(8192)));
    assert!(server.requests()[0].to_ascii_lowercase().contains("x-team: team-geheim\r\n"));
}

#[test]
fn fields_that_are_not_the_settings_are_refused() {
    for key in ["model", "messages", "stream", "temperature", "max_tokens", "response_format", "tools"] {
        let mut config = config("http://127.0.0.1:1/v1");
        config.extra = Map::from_iter([(key.to_owned(), json!("geheim"))]);
        let error = Caller::new(&CHAT_COMPLETIONS, config).unwrap_err();
        assert!(matches!(error, ModelError::Config { .. }), "{key}");
        let message = error.to_string();
        assert!(message.contains(&format!("`extra` must not set `{key}`")) && !message.contains("geheim"), "{message}");
    }
}

#[tokio::test]
async fn a_proxy_that_is_named_is_asked_in_place_of_the_server() {
    let proxy = FakeServer::start([good("via")]).await;
    let named = ServerConfig { proxy: Some(format!("http://{}", proxy.host)), ..config("http://models.invalid/v1") };
    let reply = Caller::new(&CHAT_COMPLETIONS, named).unwrap().complete(&request(), &mut NoLiveOutput).await.unwrap();
    assert_eq!(reply.text, "via");
    assert!(proxy.requests()[0].starts_with("POST http://models.invalid/v1/chat/completions HTTP/1.1\r\n"));
    for bad in ["", "models.example:3128", "socks5://h:1", "ftp://u:geheim@h"] {
        let config = ServerConfig { proxy: Some(bad.to_owned()), ..config("http://h/v1") };
        let message = Caller::new(&CHAT_COMPLETIONS, config).unwrap_err().to_string();
        assert!(message.contains("`proxy`") && !message.contains("geheim"), "{message}");
    }
    let none = ServerConfig { proxy: Some("none".to_owned()), ..config("http://h/v1") };
    Caller::new(&CHAT_COMPLETIONS, none).unwrap();
}

#[tokio::test]
async fn no_secret_of_the_settings_is_shown_even_when_the_server_repeats_it() {
    let said = format!("denied: {KEY}, team-geheim, query-geheim, basic-geheim, proxy-geheim");
    for status in [400, 407, 429] {
        let server = FakeServer::start([refuse(status, &said)]).await;
        let mut config = config("http://models.invalid/v1?key=query-geheim");
        config.headers =
            vec![("x-team".to_owned(), "team-geheim".into()), ("x-auth".to_owned(), "Basic basic-geheim".into())];
        config.proxy = Some(format!("http://user:proxy-geheim@{}", server.host));
        config.extra = Map::from_iter([("user".to_owned(), json!("extra-geheim"))]);
        config.max_attempts = 1;
        let shown = format!("{config:?}");
        let provider = Caller::new(&CHAT_COMPLETIONS, config).unwrap();
        let error = provider.complete(&request(), &mut NoLiveOutput).await.unwrap_err();
        for text in [shown, format!("{provider:?}"), format!("{error:?}"), error.to_string()] {
            assert!(!text.contains("geheim") && !text.contains(KEY), "{text}");
        }
        assert!(error.to_string().contains("denied: ***, ***, ***, ***, ***"), "{error}");
    }
}

#[tokio::test]
async fn one_connection_serves_many_calls() {
    // Chunked, kept open, and the end of the body comes later than the end of the reply.
    let chunk =
        |bytes: &[u8]| [format!("{:x}\r\n", bytes.len()).into_bytes(), bytes.to_vec(), b"\r\n".to_vec()].concat();
    let answer = [
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n".to_vec(),
        chunk(&events(&[&piece("好"), &end("stop"), "[DONE]"])),
    ]
    .concat();
    let turn = [Step::Send(answer), Step::Send(b"0\r\n\r\n".to_vec()), Step::NextRequest];
    let server = FakeServer::start([turn.iter().cycle().take(12).cloned().collect::<Vec<_>>()]).await;
    let provider =
        Caller::new(&CHAT_COMPLETIONS, ServerConfig { max_attempts: 1, ..config(&server.base_url) }).unwrap();
    for _ in 0..4 {
        assert_eq!(provider.complete(&request(), &mut NoLiveOutput).await.unwrap().text, "好");
        // The rest of the answer is read beside this task.
        while !server.is_waiting() {
            tokio::task::yield_now().await;
        }
    }
    assert_eq!(server.requests().len(), 4);
}

/// A listener that says when it has heard something.
struct Began(Arc<AtomicBool>);

impl LiveObserver for Began {
    fn text(&mut self, _piece: &str) {
        self.0.store(true, Ordering::SeqCst);
    }

    fn restart(&mut self) {}
}

#[tokio::test]
async fn a_call_that_is_given_up_closes_its_connection() {
    let speaks = stream(&[&piece("您")]);
    for (steps, is_heard) in [(vec![], false), (speaks, true)] {
        let server = FakeServer::start([[steps, vec![Step::AwaitClose]].concat()]).await;
        let provider = Caller::new(&CHAT_COMPLETIONS, config(&server.base_url)).unwrap();
        let request = request();
        let heard = Arc::new(AtomicBool::new(false));
        let mut live = Began(Arc::clone(&heard));
        {
            let call = provider.complete(&request, &mut live);
            tokio::pin!(call);
            while server.requests().is_empty() || heard.load(Ordering::SeqCst) != is_heard {
                tokio::select! {
                    result = &mut call => panic!("{result:?}"),
                    () = tokio::task::yield_now() => {}
                }
            }
            assert!(!server.saw_close());
        }
        // Without the drop above, this would go on for as long as the test may take.
        while !server.saw_close() {
            tokio::task::yield_now().await;
        }
    }
}
