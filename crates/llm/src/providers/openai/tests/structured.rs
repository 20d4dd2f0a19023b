//! Tests of optional request features: structured output, the newer name of the token limit, and configured fields.

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

fn reject(status: u16, message: &str) -> Vec<Step> {
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
async fn each_form_has_the_format_of_the_api() {
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
        // Without a schema no form is requested.
        assert_eq!(forms(&server)[1], "off", "{form:?}");
    }
}

#[tokio::test]
async fn the_arguments_of_a_tool_call_are_the_reply() {
    let call = |arguments: &str| {
        json!({ "choices": [{ "delta": { "tool_calls": [{ "index": 0, "function": { "arguments": arguments } }] } }] })
            .to_string()
    };
    let server =
        FakeServer::start([stream(&[&call("{\"content\": "), &call("\"您好\"}"), &end("tool_calls"), "[DONE]"])]).await;
    let mut captured = CapturedDeltas::default();
    let reply = provider(&server, Structured::Tool).complete(&structured(), &mut captured).await.unwrap();
    assert_eq!(reply.text, "{\"content\": \"您好\"}");
    assert_eq!(captured.0.concat(), reply.text);
}

#[tokio::test]
async fn after_a_rejection_a_simpler_form_is_used_and_stored() {
    // Error messages of real servers, each with the forms that are requested until a reply.
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
        let server = FakeServer::start([reject(status, message), good("一"), good("二"), good("三")]).await;
        let provider = provider(&server, Structured::Auto);
        let reply = provider.complete(&structured(), &mut NoLiveOutput).await;
        let reply = reply.unwrap_or_else(|error| panic!("{message}: {error}"));
        // A rejection does not count as a failed attempt; otherwise there would be no second request.
        assert_eq!((reply.text.as_str(), reply.attempts), ("一", 2), "{message}");
        provider.complete(&structured(), &mut NoLiveOutput).await.unwrap();
        assert_eq!(forms(&server)[..2], *expected, "{message}");
        assert_eq!(forms(&server)[2], expected[1], "{message}");
    }
}

#[tokio::test]
async fn without_a_supported_form_none_is_requested() {
    let unknown = "Unrecognized request argument supplied: response_format";
    let server = FakeServer::start([reject(400, unknown), reject(400, unknown), good("一"), good("二")]).await;
    let provider = provider(&server, Structured::Auto);
    assert_eq!(provider.complete(&structured(), &mut NoLiveOutput).await.unwrap().text, "一");
    provider.complete(&structured(), &mut NoLiveOutput).await.unwrap();
    assert_eq!(forms(&server), ["json_schema", "json_object", "off", "off"]);
}

#[tokio::test]
async fn an_error_inside_a_stream_counts_as_a_rejection() {
    let error = json!({ "error": { "code": 400, "message": "response_format: json_schema is not supported" } });
    let stream = stream(&[&error.to_string()]);
    let server = FakeServer::start([stream, good("一")]).await;
    let provider = provider(&server, Structured::Auto);
    assert_eq!(provider.complete(&structured(), &mut NoLiveOutput).await.unwrap().text, "一");
    assert_eq!(forms(&server), ["json_schema", "json_object"]);
}

#[tokio::test]
async fn an_unrelated_error_is_returned_after_at_most_one_more_request() {
    let table = [
        (400, "This model's maximum context length is 4096 tokens", 1),
        (400, "max_tokens is too large: 90000. This model supports at most 4096 completion tokens", 1),
        (404, "The model `qwen9` does not exist", 1),
        (401, "response_format needs a better key", 1),
        (403, "", 1),
        (404, "", 1),
        // Messages that may be about the form, but do not name it.
        (400, "the schema of your account is wrong", 2),
        (400, "Bad Request", 2),
        (422, "", 2),
    ];
    for (status, message, requests) in table {
        let answers: Vec<Vec<Step>> = (0..8).map(|_| reject(status, message)).collect();
        let server = FakeServer::start(answers).await;
        let provider = provider(&server, Structured::Auto);
        for call in 1..=2 {
            let error = provider.complete(&structured(), &mut NoLiveOutput).await.unwrap_err();
            let ModelError::Http { status: actual, message: reported, attempts, .. } = error else {
                panic!("{error:?}")
            };
            assert_eq!((actual, reported.as_str(), attempts), (status, message, requests), "{message}");
            // Features that were removed without success are not stored.
            assert_eq!(forms(&server)[(call - 1) * requests as usize], "json_schema", "{message}");
        }
        assert_eq!(server.requests().len(), 2 * requests as usize, "{message}");
    }
}

#[tokio::test]
async fn a_configured_form_is_not_changed() {
    for form in [Structured::JsonSchema, Structured::JsonObject, Structured::Tool] {
        let server = FakeServer::start([reject(400, "response_format and tools are not supported"), good("x")]).await;
        let error = provider(&server, form).complete(&structured(), &mut NoLiveOutput).await.unwrap_err();
        assert!(matches!(error, ModelError::Http { status: 400, attempts: 1, .. }), "{error:?}");
    }
}

#[tokio::test]
async fn failures_and_rejections_in_a_call_are_counted_separately() {
    let busy = || reject(503, "busy");
    let answers = [busy(), reject(400, "response_format?"), busy(), reject(400, "json_object?"), busy(), good("一")];
    let server = FakeServer::start(answers).await;
    let provider =
        Caller::new(&CHAT_COMPLETIONS, ServerConfig { max_attempts: 4, ..config(&server.base_url) }).unwrap();
    let mut captured = CapturedDeltas::default();
    let reply = provider.complete(&structured(), &mut captured).await.unwrap();
    assert_eq!((reply.text.as_str(), reply.attempts), ("一", 6));
    assert_eq!(forms(&server), ["json_schema", "json_schema", "json_object", "json_object", "off", "off"]);
    assert_eq!(captured.0.last().map(String::as_str), Some("一"));
}

#[tokio::test]
async fn the_newer_name_of_the_token_limit_is_used_after_a_rejection() {
    let rejection =
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.";
    let server = FakeServer::start([reject(400, rejection), good("一"), good("二")]).await;
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
async fn a_reply_at_the_token_limit_is_marked_as_truncated() {
    for (reason, cut_off) in [("length", true), ("stop", false)] {
        let stream = events(&[&piece("您"), &end(reason), "[DONE]"]);
        let server = FakeServer::start([vec![Step::Send(head("text/event-stream")), Step::Send(stream)]]).await;
        let reply = provider(&server, Structured::Auto).complete(&request(), &mut NoLiveOutput).await.unwrap();
        assert_eq!(reply.cut_off, cut_off, "{reason}");
    }
}

#[tokio::test]
async fn configured_fields_and_headers_are_sent() {
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
fn reserved_fields_are_rejected() {
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
async fn a_configured_proxy_is_used() {
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
async fn secrets_are_masked_even_if_the_server_repeats_them() {
    let reported = format!("denied: {KEY}, team-geheim, query-geheim, basic-geheim, proxy-geheim");
    for status in [400, 407, 429] {
        let server = FakeServer::start([reject(status, &reported)]).await;
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
async fn secrets_of_addresses_are_masked_encoded_and_decoded() {
    let reported = "a query%2Bgeheim%20x, query+geheim x, proxy%40geheim, proxy@geheim";
    let server = FakeServer::start([reject(400, reported)]).await;
    let mut config = config("http://models.invalid/v1?key=query%2Bgeheim%20x");
    config.proxy = Some(format!("http://user:proxy%40geheim@{}", server.host));
    let error =
        Caller::new(&CHAT_COMPLETIONS, config).unwrap().complete(&request(), &mut NoLiveOutput).await.unwrap_err();
    assert!(error.to_string().contains("a ***, ***, ***, ***"), "{error}");
}

#[tokio::test]
async fn a_connection_is_reused() {
    // Chunked and kept open; the end of the body arrives after the end of the reply.
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
        // The rest of the response is read in the background.
        while !server.is_waiting() {
            tokio::task::yield_now().await;
        }
    }
    assert_eq!(server.requests().len(), 4);
}

/// Records whether any text was received.
struct TextObserver(Arc<AtomicBool>);

impl LiveObserver for TextObserver {
    fn text(&mut self, _piece: &str) {
        self.0.store(true, Ordering::SeqCst);
    }

    fn restart(&mut self) {}
}

#[tokio::test]
async fn a_canceled_call_closes_its_connection() {
    let with_text = stream(&[&piece("您")]);
    for (steps, has_text) in [(vec![], false), (with_text, true)] {
        let server = FakeServer::start([[steps, vec![Step::AwaitClose]].concat()]).await;
        let provider = Caller::new(&CHAT_COMPLETIONS, config(&server.base_url)).unwrap();
        let request = request();
        let captured = Arc::new(AtomicBool::new(false));
        let mut live = TextObserver(Arc::clone(&captured));
        {
            let call = provider.complete(&request, &mut live);
            tokio::pin!(call);
            while server.requests().is_empty() || captured.load(Ordering::SeqCst) != has_text {
                tokio::select! {
                    result = &mut call => panic!("{result:?}"),
                    () = tokio::task::yield_now() => {}
                }
            }
            assert!(!server.is_closed());
        }
        // Without the drop above, this loop would not end.
        while !server.is_closed() {
            tokio::task::yield_now().await;
        }
    }
}
