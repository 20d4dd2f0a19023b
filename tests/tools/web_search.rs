//! `web_search` with servers on loopback: what they are sent, their answers, and how they fail.

use std::time::Duration;

use bcc_runtime::effects::tools::{ToolError, ToolLimits};
use serde_json::{Value, json};

use crate::search_server::{SearchAnswer, SearchProcess};
use crate::tool_project::{ToolProject, call, call_with};

const KEY: &str = "geheim-4711";

fn searxng(url: &str, lines: &str) -> ToolProject {
    ToolProject::new(&format!("[tools.web_search]\nprovider = \"searxng\"\nurl = \"{url}\"\n{lines}"))
}

fn results(content: &str, count: usize) -> Value {
    let one = |number| json!({ "title": format!("Result {number}"), "url": format!("https://example.org/{number}"), content: "Phages bind." });
    json!({ "results": (0..count).map(one).collect::<Vec<_>>() })
}

async fn failure(answer: SearchAnswer, lines: &str) -> ToolError {
    let server = SearchProcess::start(answer);
    let project = searxng(&server.url, lines);
    call(project.tools(true, &[]).as_ref(), "web_search", json!({ "query": "a" })).await.unwrap_err()
}

#[tokio::test]
async fn the_results_of_searxng_are_given_with_their_links() {
    let server = SearchProcess::json(&results("content", 8));
    let project = searxng(&server.url, "max_results = 2\nlocale = \"zh-CN\"\n");
    let tools = project.tools(true, &[]);
    let output = call(tools.as_ref(), "web_search", json!({ "query": "噬菌体 T4" })).await.unwrap();
    let result = |number| json!({ "title": format!("Result {number}"), "url": format!("https://example.org/{number}"), "snippet": "Phages bind." });
    assert_eq!(
        output.value,
        json!({ "provider": "searxng", "query": "噬菌体 T4", "results": [result(0), result(1)],
                "links": ["https://example.org/0", "https://example.org/1"] })
    );
    call(
        tools.as_ref(),
        "web_search",
        json!({ "query": "b", "max_results": 3, "locale": "de", "time_range": "month" }),
    )
    .await
    .unwrap();
    let requests = server.requests();
    assert!(
        requests[0].starts_with("GET /search?q=%E5%99%AC%E8%8F%8C%E4%BD%93+T4&format=json&language=zh-CN HTTP/1.1"),
        "{requests:?}"
    );
    assert!(
        requests[1].starts_with("GET /search?q=b&format=json&language=de&time_range=month HTTP/1.1"),
        "{requests:?}"
    );
}

#[tokio::test]
async fn a_call_chooses_among_the_configured_providers_and_each_gets_its_own_key() {
    let brave = SearchProcess::json(&json!({ "web": results("description", 1) }));
    let tavily = SearchProcess::json(&results("content", 1));
    let project = ToolProject::new(&format!(
        "[tools.web_search]\nprovider = \"brave\"\nurl = \"{}\"\napi_key_env = \"BRAVE\"\n\
         [[tools.web_search.more]]\nprovider = \"tavily\"\nurl = \"{}\"\napi_key_file = \"key\"\n",
        brave.url, tavily.url
    ));
    project.write("key", format!("{KEY}-tavily\n"));
    let tools = project.tools(true, &[("BRAVE", KEY)]);
    for (provider, arguments) in [
        ("brave", json!({ "query": "a" })),
        ("tavily", json!({ "query": "a", "provider": "tavily", "time_range": "day" })),
    ] {
        let output = call(tools.as_ref(), "web_search", arguments).await.unwrap();
        assert_eq!(
            (&output.value["provider"], &output.value["links"][0]),
            (&json!(provider), &json!("https://example.org/0"))
        );
    }
    let (brave, tavily) = (brave.requests(), tavily.requests());
    assert!(
        brave[0].contains(&format!("x-subscription-token: {KEY}\r\n")) && !brave[0].contains("tavily"),
        "{brave:?}"
    );
    assert!(
        tavily[0].starts_with("POST /search ")
            && tavily[0].contains(&format!("authorization: Bearer {KEY}-tavily\r\n"))
    );
    assert!(tavily[0].ends_with("{\"query\":\"a\",\"max_results\":5,\"time_range\":\"day\"}"), "{tavily:?}");
    let error = call(tools.as_ref(), "web_search", json!({ "query": "a", "provider": "searxng" })).await.unwrap_err();
    assert!(matches!(error, ToolError::InvalidArguments { .. }));
    let shown = error.to_string();
    assert!(shown.contains("`provider`") && shown.contains("brave") && shown.contains("tavily"), "{shown}");
}

#[tokio::test]
async fn an_untrusted_project_sends_nothing_and_says_how_to_trust_it() {
    let server = SearchProcess::json(&results("content", 1));
    let project = searxng(&server.url, "");
    let tools = project.tools(false, &[]);
    let error = call(tools.as_ref(), "web_search", json!({ "query": "a" })).await.unwrap_err();
    assert!(
        matches!(error, ToolError::Unavailable { .. }) && error.to_string().contains("bcc-script trust"),
        "{error}"
    );
    let (described, errors) = tools.describe(&["web_search".to_owned()]).await;
    assert!(described.is_empty() && errors.len() == 1);
    let (described, errors) = tools.describe(&["*".to_owned()]).await;
    assert!(described.is_empty() && errors.is_empty());
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn without_a_configuration_or_a_key_the_call_is_told_what_is_missing() {
    let project = ToolProject::new("");
    let error = call(project.tools(true, &[]).as_ref(), "web_search", json!({ "query": "a" })).await.unwrap_err();
    assert!(error.to_string().contains("add `[tools.web_search]` with a `provider` to bcc-script.toml"), "{error}");
    let project = ToolProject::new("[tools.web_search]\nprovider = \"tavily\"\napi_key_env = \"TAVILY\"\n");
    let error = call(project.tools(true, &[]).as_ref(), "web_search", json!({ "query": "a" })).await.unwrap_err();
    assert!(matches!(error, ToolError::Unavailable { .. }));
    assert!(error.to_string().contains("the environment variable TAVILY is not set"), "{error}");
    let tools = project.tools(true, &[("TAVILY", "geheim\u{7}")]);
    let error = call(tools.as_ref(), "web_search", json!({ "query": "a" })).await.unwrap_err().to_string();
    assert!(error.contains("cannot be sent in a header") && !error.contains("geheim"), "{error}");
}

#[tokio::test]
async fn what_a_server_does_wrong_is_said_without_its_text() {
    let whole = |status, head, body: &str| SearchAnswer::Whole(status, head, body.to_owned());
    for (answer, part) in [
        (whole(403, "", "geheim"), "add `json` to `formats` of `search` in its settings.yml"),
        (whole(429, "retry-after: 7", "geheim"), "permits no more requests now; try again in 7 s"),
        (whole(301, "location: http://127.0.0.1:9/geheim", ""), "redirects are not followed"),
        (whole(500, "", "geheim"), "responded with status 500"),
        (whole(200, "content-type: text/html", "\n <!doctype html><p>geheim"), "sent a web page instead of JSON"),
        (whole(200, "", "{geheim"), "sent something else than results"),
        (whole(200, "", "{\"geheim\": 1}"), "sent something else than results"),
        (SearchAnswer::CutOff, "was lost in the middle of its response"),
        (SearchAnswer::Large(100 * 1024 * 1024), "sent more than 4194304 bytes"),
    ] {
        let error = failure(answer, "").await;
        assert!(matches!(error, ToolError::Failed { .. }), "{error:?}");
        assert!(error.to_string().contains(part) && !error.to_string().contains("geheim"), "{error}");
    }
}

#[tokio::test]
async fn a_server_that_cannot_be_reached_is_named() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let project = searxng(&format!("http://{}", listener.local_addr().unwrap()), "");
    drop(listener);
    let error = call(project.tools(true, &[]).as_ref(), "web_search", json!({ "query": "a" })).await.unwrap_err();
    assert!(error.to_string().contains("the search server searxng cannot be reached"), "{error}");
}

#[tokio::test]
async fn a_key_that_is_refused_is_said() {
    let server = SearchProcess::start(SearchAnswer::Whole(401, "", String::new()));
    let project = ToolProject::new(&format!(
        "[tools.web_search]\nprovider = \"brave\"\nurl = \"{}\"\napi_key_env = \"BRAVE\"\n",
        server.url
    ));
    let tools = project.tools(true, &[("BRAVE", KEY)]);
    let error = call(tools.as_ref(), "web_search", json!({ "query": "a" })).await.unwrap_err().to_string();
    assert!(error.contains("does not accept the key") && !error.contains(KEY), "{error}");
}

#[tokio::test]
async fn a_server_that_hangs_is_left_after_the_time_of_the_configuration_or_of_the_call() {
    // Long enough to connect on a machine that has much else to do.
    for (lines, timeout) in [("timeout = \"1s\"\n", Duration::from_secs(600)), ("", Duration::from_secs(1))] {
        let server = SearchProcess::start(SearchAnswer::Hangs);
        let project = searxng(&server.url, lines);
        let limits = ToolLimits { timeout, ..ToolLimits::default() };
        let tools = project.tools(true, &[]);
        let error = call_with(tools.as_ref(), "web_search", json!({ "query": "a" }), limits).await.unwrap_err();
        assert_eq!(error, ToolError::TimedOut { tool: "web_search".into() });
        server.wait_until_closed();
    }
}

#[tokio::test]
async fn results_are_dropped_with_their_links_until_the_rest_fits() {
    let server = SearchProcess::json(&results("content", 20));
    let project = searxng(&server.url, "max_results = 20\n");
    let limits = ToolLimits { max_bytes: 700, ..ToolLimits::default() };
    let output =
        call_with(project.tools(true, &[]).as_ref(), "web_search", json!({ "query": "a" }), limits).await.unwrap();
    let count = |name: &str| output.value[name].as_array().unwrap().len();
    assert!(output.is_truncated && output.value.to_string().len() <= 700, "{}", output.value);
    assert!((2..20).contains(&count("results")) && count("results") == count("links"), "{}", output.value);
}

#[tokio::test]
async fn a_search_is_repeated_from_the_cache_if_the_call_permits_it() {
    let server = SearchProcess::json(&results("content", 1));
    let project = searxng(&server.url, "");
    let tools = project.tools(true, &[]);
    let limits = ToolLimits { cache: Some(Duration::from_secs(600)), ..ToolLimits::default() };
    let mut cached = Vec::new();
    for _ in 0..2 {
        let output = call_with(tools.as_ref(), "web_search", json!({ "query": "a" }), limits).await.unwrap();
        cached.push(output.is_cached);
    }
    assert_eq!((cached, server.requests().len()), (vec![false, true], 1));
}
