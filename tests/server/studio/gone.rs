//! What the page says when a session, a question or a change is not there any more.

use reqwest::Method;
use serde_json::json;

use crate::browser::Browser;
use crate::process::Home;
use crate::served::{Serving, TALK};
use crate::studio::author::{WIDE, has, open_session, until};
use crate::visitor::{Visitor, make_link};

/// Waits until the page has said that this session, which is shown, is gone.
async fn is_gone(browser: &Browser) {
    has(browser, ".connection", "Disconnected").await;
    has(browser, ".problem", "there is no session").await;
    browser.vanishes("form.composer").await;
}

#[tokio::test]
async fn a_session_that_is_deleted_or_withdrawn_is_said_to_be_gone() {
    let Some(browser) = Browser::start(WIDE).await else { return };
    let home = Home::new();
    home.put("scripts/talk.yaml", TALK);
    let serving = Serving::start(&home);
    let id = serving.session("talk").await;
    open_session(&browser, &serving, &id).await;
    has(&browser, ".connection", "Live").await;
    browser.element("#answer").await.send_keys("Ann").await.unwrap();
    let deleted = serving.send(Method::DELETE, &format!("/v1/sessions/{id}"), &[], None).await;
    assert_eq!(deleted.status, 204, "{deleted:?}");
    is_gone(&browser).await;
    // Nothing can be sent, and what was written can be copied.
    assert_eq!(browser.run("return document.querySelector('.composer textarea[readonly]').value").await, "Ann");
    // In a comparison, it has no status, and nothing is said to be the same.
    browser.open(&format!("{}/studio#/compare/{id}/none", serving.url)).await;
    until(&browser, "document.querySelectorAll('.heads .problem').length === 2").await;
    browser.vanishes(".heads .status").await;
    browser.vanishes(".turn").await;
    let consent = json!({ "text": "We keep what you say.", "language": "en" });
    let link = make_link(&serving, json!({ "script": "talk", "kind": "open", "consent": consent })).await;
    let shown = serving.get(&format!("{link}/link")).await.json();
    let visitor = Visitor::of(&serving, &link, "a");
    assert_eq!(visitor.begin(shown["consent"]["sha256"].as_str()).await.status, 200);
    visitor.until("waiting").await;
    let listed = serving.get("/v1/sessions").await.json();
    open_session(&browser, &serving, listed["sessions"][0]["id"].as_str().unwrap()).await;
    has(&browser, ".connection", "Live").await;
    assert_eq!(visitor.post("withdraw", json!({})).await.status, 200);
    is_gone(&browser).await;
}

#[tokio::test]
async fn an_answer_to_a_question_that_was_answered_elsewhere_is_given_back() {
    let Some(browser) = Browser::start(WIDE).await else { return };
    let home = Home::new();
    let more = "            - { action_type: ai_ask, action_id: more, config: { content: 'And then?' } }\n";
    home.put("scripts/talk.yaml", format!("{TALK}{more}"));
    let serving = Serving::start(&home);
    let id = serving.session("talk").await;
    open_session(&browser, &serving, &id).await;
    has(&browser, ".connection", "Live").await;
    browser
        .run(
            "const real = window.fetch; window.fetch = (...all) => all[1]?.method === 'POST' \
             ? new Promise((resolve) => (window.release = () => resolve(real(...all)))) : real(...all)",
        )
        .await;
    browser.element("#answer").await.send_keys("from here").await.unwrap();
    browser.element(".composer button:not(:disabled)").await.click().await.unwrap();
    until(&browser, "window.release").await;
    serving.say(&id, "from elsewhere").await;
    has(&browser, ".message.user .text", "from elsewhere").await;
    browser.run("window.release()").await;
    has(&browser, ".composer .problem", "This question has just been answered").await;
    assert_eq!(
        browser.run("return document.querySelector('.composer .problem').textContent.includes('`')").await,
        false
    );
    assert_eq!(browser.run("return document.querySelector('#answer').value").await, "from here");
    // It is about the question before, and not about the next one.
    serving.say(&id, "once more").await;
    has(&browser, ".message.ai .text", "And then?").await;
    browser.vanishes(".composer .problem").await;
    assert_eq!(browser.run("return document.querySelector('#answer').value").await, "from here");
}

#[tokio::test]
async fn who_stays_with_changes_can_still_go_back_to_every_page_before() {
    let Some(browser) = Browser::start(WIDE).await else { return };
    let home = Home::new();
    home.put("scripts/talk.yaml", TALK);
    let serving = Serving::start(&home);
    browser.open(&format!("{}/studio#/sessions", serving.url)).await;
    browser.element("sessions-view h1").await;
    browser.element("nav a[href='#/scripts']").await.click().await.unwrap();
    browser.element(".script h2 a").await.click().await.unwrap();
    has(&browser, ".editor-page .status", "No problems").await;
    let change = "const area = document.querySelector('textarea.code'); area.value += '# more'; area.dispatchEvent(new Event('input'))";
    browser.run(change).await;
    // Whoever is asked stays, as often as it is asked: after Back, and after a link.
    browser
        .run(
            "window.asked = 0; window.answer = false; window.confirm = () => { window.asked++; return window.answer; }",
        )
        .await;
    for (number, way) in
        ["history.back()", "document.querySelector('nav a[href=\"#/links\"]').click()", "history.back()"]
            .into_iter()
            .enumerate()
    {
        browser.run(way).await;
        until(&browser, &format!("window.asked === {} && location.hash.includes('talk.yaml')", number + 1)).await;
        assert_eq!(browser.run("return document.querySelector('textarea.code').value").await, format!("{TALK}# more"));
    }
    browser.run("window.answer = true; history.back()").await;
    browser.element("scripts-view h1").await;
    assert_eq!(browser.run("return [location.hash, window.asked]").await, json!(["#/scripts", 4]));
    browser.run("history.back()").await;
    browser.element("sessions-view h1").await;
}
