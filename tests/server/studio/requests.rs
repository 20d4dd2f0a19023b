//! Decisions on the page.

use crate::browser::Browser;
use crate::process::Home;
use crate::served::Serving;
use crate::server::{Server, ServerBehavior};
use crate::studio::author::{WIDE, has, open_session, open_tab};

const RELEASE: &str = "
session:
  session_id: release
  declare:
    - { var: plan, type: string }
    - { var: window, type: string }
    - { var: hosts, type: integer }
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          actions:
            - { action_type: ai_say, action_id: hello, config: { delivery: verbatim, content: Let us begin. } }
            - { action_type: set, action_id: prepare, config: { values: { plan: Release 7 } } }
            - action_type: approval
              action_id: release
              config:
                prompt: '{{ plan }}: may we begin?'
                form: [{ get: window, define: When it may begin, required: true }, { get: hosts }]
                rewind_to: prepare
            - { action_type: ai_say, action_id: done, config: { delivery: verbatim, content: 'It begins {{ window }}.' } }
";

async fn fill(browser: &Browser, css: &str, text: &str) {
    let field = browser.element(css).await;
    field.clear().await.unwrap();
    field.send_keys(text).await.unwrap();
}

#[tokio::test]
async fn a_request_is_pushed_back_and_then_approved_with_its_form() {
    let Some(browser) = Browser::start(WIDE).await else { return };
    let home = Home::new();
    home.put("scripts/release.yaml", RELEASE);
    let serving = Serving::start(&home);
    let id = serving.session("release").await;
    open_session(&browser, &serving, &id).await;
    open_tab(&browser, "requests").await;
    has(&browser, ".request", "Release 7: may we begin?").await;
    fill(&browser, ".request [id$=-comment]", "Test it first <b>").await;
    fill(&browser, ".request [id$=-by]", "Kim").await;
    browser.click("Push back").await;
    has(&browser, ".decision", "Push back").await;
    has(&browser, ".decision", "Test it first <b>").await;
    has(&browser, "talk-pane .note", "Kim").await;
    // The same question again: its form must be filled.
    has(&browser, ".request", "Release 7: may we begin?").await;
    browser.click("Approve").await;
    has(&browser, ".request .warning", "This value is required.").await;
    fill(&browser, ".request [id$=-window]", "tonight").await;
    fill(&browser, ".request [id$=-hosts]", "many").await;
    browser.click("Approve").await;
    has(&browser, ".request .warning", "This is not a whole number.").await;
    fill(&browser, ".request [id$=-hosts]", "12").await;
    browser.click("Approve").await;
    has(&browser, ".session-head .status", "completed").await;
    has(&browser, ".message .text", "It begins tonight.").await;
    let variables = serving.get(&format!("/v1/sessions/{id}/variables")).await.json();
    assert_eq!(variables["variables"]["session"]["hosts"]["value"], 12, "{variables}");
}

const SEARCH: &str = "
session:
  session_id: search
  declare: [{ var: found }]
  tools: [{ name: web_search, approve: always }]
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          actions:
            - { action_type: ai_say, action_id: hello, config: { delivery: verbatim, content: Let us search. } }
            - action_type: tool
              action_id: search
              on_exit: { failed: next }
              config: { name: web_search, arguments: { query: phages }, output: { found: results } }
            - { action_type: ai_say, action_id: done, config: { delivery: verbatim, content: 'Found {{ found }}.' } }
";

#[tokio::test]
async fn a_tool_call_is_made_with_other_arguments_or_answered() {
    let Some(browser) = Browser::start(WIDE).await else { return };
    let home = Home::new();
    home.put("scripts/search.yaml", SEARCH);
    let engine = Server::start(vec![ServerBehavior::Rejects(404, "")]);
    let tool = format!("[tools.web_search]\nprovider = \"searxng\"\nurl = \"{}\"\n", engine.base_url);
    home.put("bcc-script.toml", tool);
    let serving = Serving::with(&home, &["--trust"]);
    for (field, value, decision) in [
        ("-arguments", "{\"query\": \"bacteria\"}", "Approve with changes"),
        ("-answer", "not needed", "Answer instead"),
    ] {
        let id = serving.session("search").await;
        open_session(&browser, &serving, &id).await;
        open_tab(&browser, "requests").await;
        fill(&browser, &format!(".request [id$={field}]"), value).await;
        browser.click(decision).await;
        has(&browser, ".decision", decision).await;
        let page = serving.get(&format!("/v1/sessions/{id}/journal?limit=50")).await.json();
        let mut events = page["events"].as_array().unwrap().iter();
        let answered = events.find(|event| event["type"] == "request_answered");
        let name = &field[1..];
        let given: serde_json::Value = serde_json::from_str(value).unwrap_or_else(|_| value.into());
        assert_eq!(answered.unwrap()["values"], serde_json::json!({ name: given }), "{answered:?}");
    }
}
