//! Decisions on the page.

use serde_json::{Value, json};

use crate::browser::Browser;
use crate::process::Home;
use crate::served::Serving;
use crate::server::{Server, ServerBehavior};
use crate::studio::author::{WIDE, choose, fail, has, open_failing, open_session, open_tab, until};

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

/// Begins a session of this script and shows its requests. Returns its id.
async fn open_requests(browser: &Browser, serving: &Serving, script: &str) -> String {
    let id = serving.session(script).await;
    open_session(browser, serving, &id).await;
    open_tab(browser, "requests").await;
    id
}

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
    let id = open_requests(&browser, &serving, "release").await;
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

#[tokio::test]
async fn requests_that_could_not_be_read_are_asked_for_until_they_are_known() {
    let Some(browser) = Browser::start(WIDE).await else { return };
    let home = Home::new();
    home.put("scripts/release.yaml", RELEASE);
    let serving = Serving::start(&home);
    let id = serving.session("release").await;
    open_failing(&browser, &format!("{}/studio#/sessions/{id}", serving.url), &["/v1/requests"]).await;
    browser.element("talk-pane .message").await;
    open_tab(&browser, "requests").await;
    has(&browser, "requests-tab [role=status]", "Loading…").await;
    browser.vanishes("requests-tab .empty").await;
    fail(&browser, &[]).await;
    has(&browser, ".request", "Release 7: may we begin?").await;
    browser.vanishes("requests-tab > [role=status]").await;
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
        let id = open_requests(&browser, &serving, "search").await;
        fill(&browser, &format!(".request [id$={field}]"), value).await;
        browser.click(decision).await;
        has(&browser, ".decision", decision).await;
        let page = serving.get(&format!("/v1/sessions/{id}/journal?limit=50")).await.json();
        let mut events = page["events"].as_array().unwrap().iter();
        let answered = events.find(|event| event["type"] == "request_answered");
        let name = &field[1..];
        let given: Value = serde_json::from_str(value).unwrap_or_else(|_| value.into());
        assert_eq!(answered.unwrap()["values"], json!({ name: given }), "{answered:?}");
    }
}

/// Two approvals, the second after the first.
const TWO: &str = "
session:
  session_id: two
  declare: [{ var: color, type: string, enum: [red, blue] }]
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          actions:
            - { action_type: ai_say, action_id: hello, config: { delivery: verbatim, content: Let us begin. } }
            - { action_type: approval, action_id: one, config: { prompt: May the first begin?, form: [{ get: color }] } }
            - { action_type: approval, action_id: two, config: { prompt: May the second begin?, form: [{ get: color }] } }
";

/// The decisions of a session.
async fn decisions(serving: &Serving, id: &str) -> Vec<Value> {
    let page = serving.get(&format!("/v1/sessions/{id}/journal?limit=100")).await.json();
    let events = page["events"].as_array().unwrap().clone();
    events.into_iter().filter(|event| event["type"] == "request_answered").collect()
}

#[tokio::test]
async fn a_second_click_does_not_decide_the_request_that_follows() {
    let Some(browser) = Browser::start(WIDE).await else { return };
    let home = Home::new();
    home.put("scripts/two.yaml", TWO);
    let serving = Serving::start(&home);
    let id = open_requests(&browser, &serving, "two").await;
    choose(&browser, ".request select", "\"red\"").await;
    browser.element(".request button.main:not(:disabled)").await;
    // The second click comes as soon as the form of the next request is there.
    let clicks = "const done = arguments[0]; const button = () => document.querySelector('.request button.main'); button().focus(); button().click(); \
        const look = () => { if (!document.querySelector('.request .text')?.textContent.includes('second')) return requestAnimationFrame(look); \
        button().click(); done(document.activeElement.matches('.request h2')); }; look();";
    assert_eq!(browser.run_async(clicks).await, true, "the focus is not at the next request");
    browser.element(".request button.main:not(:disabled)").await;
    let made = decisions(&serving, &id).await;
    assert_eq!((made.len(), &made[0]["values"]["color"]), (1, &json!("red")), "{made:?}");
    // What was chosen for the first is not chosen for the second.
    assert_eq!(browser.run("return document.querySelector('.request select').value").await, "");
    // The response to a decision is lost, and the decision is not.
    browser.run(&with_posts("real(...all).then(() => { throw new TypeError('lost'); })")).await;
    browser.click("Approve").await;
    has(&browser, ".session-head .status", "completed").await;
    until(&browser, "document.querySelectorAll('.decision').length === 2").await;
    browser.vanishes(".request").await;
    browser.vanishes("requests-tab .problem").await;
    until(&browser, "document.activeElement.matches('.open-requests')").await;
}

/// A script after which requests with a body give this; `real` is the function that sends them, and `all` what it is called with.
fn with_posts(result: &str) -> String {
    format!(
        "const real = window.fetch; window.fetch = (...all) => all[1]?.method === 'POST' ? {result} : real(...all);"
    )
}

const PARALLEL: &str = "
session:
  session_id: money
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          actions:
            - { action_type: ai_say, action_id: hello, config: { delivery: verbatim, content: Let us begin. } }
            - action_type: parallel
              action_id: both
              config:
                branches:
                  - { id: ann, actions: [{ action_type: approval, action_id: for_ann, config: { prompt: Money for Ann? } }] }
                  - { id: bob, actions: [{ action_type: approval, action_id: for_bob, on_exit: { rejected: next }, config: { prompt: Money for Bob? } }] }
";

#[tokio::test]
async fn what_somebody_writes_stays_when_others_decide() {
    let Some(browser) = Browser::start(WIDE).await else { return };
    let home = Home::new();
    home.put("scripts/money.yaml", PARALLEL);
    let serving = Serving::start(&home);
    let id = serving.session("money").await;
    let open = serving.get(&format!("/v1/requests?session={id}")).await.json();
    let path = |prompt: &str| {
        let requests = open["requests"].as_array().unwrap();
        let request = requests.iter().find(|request| request["prompt"] == prompt).unwrap();
        format!("/v1/requests/{id}/{}", request["request_id"].as_str().unwrap())
    };
    open_session(&browser, &serving, &id).await;
    open_tab(&browser, "requests").await;
    let comment = |name: &str| {
        format!(
            "[...document.querySelectorAll('.request')].find((form) => form.textContent.includes('{name}')).querySelector('textarea')"
        )
    };
    until(&browser, "document.querySelectorAll('.request').length === 2").await;
    browser.run(&format!("{}.focus()", comment("Ann"))).await;
    browser.press("She is late").await;
    browser.run(&format!("{}.focus()", comment("Bob"))).await;
    browser.press("Not ").await;
    let decided = serving.post(&path("Money for Ann?"), json!({ "decision": "approve" })).await;
    assert_eq!(decided.status, 200, "{decided:?}");
    // The other form is still the one in which somebody writes.
    has(&browser, ".overtaken", "Money for Ann?").await;
    has(&browser, ".overtaken", "She is late").await;
    until(&browser, "document.querySelectorAll('.request').length === 1").await;
    browser.press("yet").await;
    assert_eq!(browser.run(&format!("return {}.value", comment("Bob"))).await, "Not yet");
    browser.element(".overtaken button").await.click().await.unwrap();
    browser.vanishes(".overtaken").await;
    // Also while another tab is shown.
    open_tab(&browser, "variables").await;
    open_tab(&browser, "requests").await;
    browser.element(".request textarea").await;
    assert_eq!(browser.run(&format!("return {}.value", comment("Bob"))).await, "Not yet");
    // A decision that comes second is refused, which the page says.
    let held = with_posts("new Promise((resolve) => (window.release = () => resolve(real(...all))))");
    browser.run(&held).await;
    browser.click("Reject").await;
    until(&browser, "window.release").await;
    let decided = serving.post(&path("Money for Bob?"), json!({ "decision": "approve", "by": "Kim" })).await;
    assert_eq!(decided.status, 200, "{decided:?}");
    browser.vanishes(".request").await;
    browser.run("window.release()").await;
    has(&browser, ".overtaken", "Not yet").await;
    has(&browser, ".overtaken", "What you entered was not used.").await;
    has(&browser, ".overtaken", "by Kim").await;
    assert_eq!(decisions(&serving, &id).await.len(), 2);
}
