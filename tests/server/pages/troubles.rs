//! What the page does when something goes wrong: it says so, and loses nothing that was accepted.

use std::sync::{Arc, Barrier};

use reqwest::Method;
use serde_json::json;

use crate::browser::{Browser, DESKTOP};
use crate::pages::conversations::{begin, visit};
use crate::process::Home;
use crate::served::{Serving, said};
use crate::server::{Server, ServerBehavior};
use crate::visitor::{ASKING_MODEL, make_link, model_config};

/// The port of a server.
fn address_of(serving: &Serving) -> String {
    serving.url.strip_prefix("http://").unwrap().to_owned()
}

#[tokio::test]
async fn a_server_that_is_killed_in_the_middle_of_a_word_goes_on_when_it_is_back() {
    let Some(browser) = Browser::start(DESKTOP).await else { return };
    let home = Home::new();
    let text = "It is a long story that comes in pieces.";
    let gate = Arc::new(Barrier::new(2));
    let model = Server::start(vec![ServerBehavior::Paused(gate, said(text)), ServerBehavior::Answers(said(text))]);
    home.put("bcc-script.toml", model_config(&model));
    home.put("scripts/talk.yaml", ASKING_MODEL);
    let mut serving = Serving::with(&home, &["--trust"]);
    let path = make_link(&serving, json!({ "script": "talk", "kind": "open" })).await;
    browser.open(&format!("{}{path}", serving.url)).await;
    browser.click("Begin").await;
    browser.until_messages(1).await;
    browser.say("a person").await;
    // Half of the reply is there.
    browser.element(".live:not([hidden])").await;
    serving.kill();
    browser.shows("No connection. Trying again…").await;
    // What is written in the meantime stays.
    browser.element("#answer").await.send_keys("a draft").await.unwrap();
    let address = address_of(&serving);
    let serving = Serving::of(home.start(["serve", "--addr", &address, "--trust"]));
    assert_eq!(browser.until_messages(3).await.get(1..).unwrap(), ["a person", text]);
    browser.vanishes(".live:not([hidden])").await;
    assert_eq!(browser.run("return document.querySelector('#answer').value").await, "a draft");
    browser.say(" and more").await;
    assert_eq!(browser.until_messages(5).await.get(3).unwrap(), "a draft and more");
    drop(serving);
}

#[tokio::test]
async fn a_reply_that_is_written_again_after_the_server_was_killed_is_announced() {
    let Some(browser) = Browser::start(DESKTOP).await else { return };
    let home = Home::new();
    let text = "It is a long story that comes in pieces.";
    let (first, again) = (Arc::new(Barrier::new(2)), Arc::new(Barrier::new(2)));
    let behaviors =
        vec![ServerBehavior::Paused(first, said(text)), ServerBehavior::Held(Arc::clone(&again), said(text))];
    let model = Server::start(behaviors);
    home.put("bcc-script.toml", model_config(&model));
    home.put("scripts/talk.yaml", ASKING_MODEL);
    let mut serving = Serving::with(&home, &["--trust"]);
    let path = make_link(&serving, json!({ "script": "talk", "kind": "open" })).await;
    browser.open(&format!("{}{path}", serving.url)).await;
    browser.click("Begin").await;
    browser.until_messages(1).await;
    browser.say("a person").await;
    browser.element(".live:not([hidden])").await;
    browser.vanishes(".typing:not([hidden])").await;
    serving.kill();
    browser.shows("No connection. Trying again…").await;
    let address = address_of(&serving);
    let serving = Serving::of(home.start(["serve", "--addr", &address, "--trust"]));
    browser.element(".typing:not([hidden])").await;
    browser.vanishes(".live:not([hidden])").await;
    again.wait();
    assert_eq!(browser.until_messages(3).await.get(1..).unwrap(), ["a person", text]);
    browser.vanishes(".typing:not([hidden])").await;
    drop(serving);
}

#[tokio::test]
async fn a_reply_that_is_written_when_its_link_is_revoked_is_still_shown() {
    let Some(browser) = Browser::start(DESKTOP).await else { return };
    let home = Home::new();
    let text = "It is a long story that comes in pieces.";
    let gate = Arc::new(Barrier::new(2));
    let model = Server::start(vec![ServerBehavior::Paused(Arc::clone(&gate), said(text))]);
    home.put("bcc-script.toml", model_config(&model));
    home.put("scripts/talk.yaml", ASKING_MODEL);
    let serving = Serving::with(&home, &["--trust"]);
    let link = serving.post("/v1/links", json!({ "script": "talk", "kind": "open" })).await.json();
    browser.open(&format!("{}{}", serving.url, link["path"].as_str().unwrap())).await;
    browser.click("Begin").await;
    browser.until_messages(1).await;
    browser.say("a person").await;
    browser.element(".live:not([hidden])").await;
    browser.element("#answer").await.send_keys("a draft").await.unwrap();
    let revoke = format!("/v1/links/{}", link["id"].as_str().unwrap());
    assert_eq!(serving.send(Method::DELETE, &revoke, &[], None).await.status, 204);
    browser.shows("the conversation does not go on").await;
    gate.wait();
    assert_eq!(browser.until_messages(3).await.get(1..).unwrap(), ["a person", text]);
    browser.vanishes(".live:not([hidden])").await;
    browser.vanishes(".typing:not([hidden])").await;
    browser.shows("the conversation does not go on").await;
    assert_eq!(browser.run("return document.querySelector('#answer[readonly]').value").await, "a draft");
}

#[tokio::test]
async fn an_answer_that_cannot_be_sent_is_sent_when_the_server_is_back() {
    let Some(browser) = Browser::start(DESKTOP).await else { return };
    let (home, mut serving) = visit();
    begin(&browser, &serving).await;
    browser.element("form.answer button[type=submit]:not(:disabled)").await;
    serving.kill();
    browser.say("Ann").await;
    browser.element(".own[data-state=later]").await;
    browser.shows("Not sent yet.").await;
    let address = address_of(&serving);
    let serving = Serving::of(home.start(["serve", "--addr", &address]));
    assert_eq!(browser.until_messages(4).await.get(2..).unwrap(), ["Ann", "How are you today, Ann?"]);
    drop(serving);
}

#[tokio::test]
async fn what_answers_in_the_place_of_the_server_erases_nothing() {
    let Some(browser) = Browser::start(DESKTOP).await else { return };
    let (_home, serving) = visit();
    begin(&browser, &serving).await;
    browser.element("form.answer button[type=submit]:not(:disabled)").await;
    let proxy = "window.real = window.fetch; window.fetch = (url, options) => \
        String(url).endsWith('/state') ? Promise.resolve(new Response('404 page not found', { status: 404 })) \
        : String(url).endsWith('/messages') ? Promise.resolve(new Response('{\"error\": \"Service Unavailable\"}', { status: 503 })) \
        : window.real(url, options)";
    browser.run(proxy).await;
    browser.say("Ann").await;
    browser.element(".own[data-state=later]").await;
    browser.element("#answer").await.send_keys("a draft").await.unwrap();
    browser.run("dispatchEvent(new Event('online'))").await;
    browser.shows("Something went wrong on our side.").await;
    let kept = browser.run("return JSON.stringify({ ...sessionStorage })").await;
    assert!(kept.as_str().is_some_and(|kept| kept.contains("Ann") && kept.contains("a draft")), "{kept}");
    browser.run("window.fetch = window.real; dispatchEvent(new Event('online'))").await;
    assert_eq!(browser.until_messages(4).await.get(2..).unwrap(), ["Ann", "How are you today, Ann?"]);
    assert_eq!(browser.run("return document.querySelector('#answer').value").await, "a draft");
}

#[tokio::test]
async fn an_answer_is_taken_back_although_the_response_is_lost() {
    let Some(browser) = Browser::start(DESKTOP).await else { return };
    let (_home, serving) = visit();
    begin(&browser, &serving).await;
    browser.say("Ann").await;
    browser.until_messages(4).await;
    // The server takes it back the first time, and nobody learns of it.
    let lossy = "window.real = window.fetch; window.sent = 0; window.fetch = async (url, options) => { \
        const response = await window.real(url, options); \
        if (String(url).endsWith('/take_back') && window.sent++ === 0) throw new TypeError('lost'); return response; }";
    browser.run(lossy).await;
    browser.click("Take back my last answer").await;
    browser.shows("Your answer was taken back.").await;
    assert_eq!(browser.run("return window.sent").await, 2);
    assert_eq!(browser.messages().await.len(), 2);
    assert_eq!(browser.run("return document.querySelector('#answer').value").await, "Ann");
    assert_eq!(browser.run("return document.querySelector('#connection').textContent").await, "");
}

#[tokio::test]
async fn a_conversation_that_is_shown_again_is_not_read_out_again() {
    let Some(browser) = Browser::start(DESKTOP).await else { return };
    let (_home, serving) = visit();
    begin(&browser, &serving).await;
    browser.say("Ann").await;
    browser.until_messages(4).await;
    let shown_again = "const [done] = arguments; window.added = []; \
        new MutationObserver((changes) => changes.forEach((change) => change.addedNodes.forEach((item) => window.added.push(item.textContent)))) \
            .observe(document.querySelector('.messages'), { childList: true }); \
        const Real = window.EventSource; window.EventSource = function (...all) { done(true); return new Real(...all); }; \
        dispatchEvent(new Event('online'));";
    assert_eq!(browser.run_async(shown_again).await, true);
    browser.say("good").await;
    browser.until_messages(6).await;
    let added = browser.run("return window.added.join(' | ')").await;
    let added = added.as_str().unwrap();
    assert!(
        added.contains("good") && added.contains("Since when?") && !added.contains("Welcome") && !added.contains("Ann"),
        "{added}"
    );
}

#[tokio::test]
async fn ten_tabs_show_the_same() {
    let Some(browser) = Browser::start(DESKTOP).await else { return };
    let (_home, serving) = visit();
    begin(&browser, &serving).await;
    let address = browser.address().await;
    for _ in 0..9 {
        browser.open_tab(&address).await;
        browser.until_messages(2).await;
    }
    browser.say("Ann").await;
    browser.until_messages(4).await;
    for tab in 0..10 {
        browser.switch(tab).await;
        assert_eq!(browser.until_messages(4).await.get(2..).unwrap(), ["Ann", "How are you today, Ann?"]);
    }
    // The tab that was looked at last answers, and the first one shows it.
    browser.click("good").await;
    browser.until_messages(6).await;
    browser.switch(0).await;
    assert_eq!(browser.until_messages(6).await.get(4).unwrap(), "good");
}

#[tokio::test]
async fn a_late_answer_stays_in_the_field() {
    let Some(browser) = Browser::start(DESKTOP).await else { return };
    let (_home, serving) = visit();
    begin(&browser, &serving).await;
    browser.element("form.answer button[type=submit]:not(:disabled)").await;
    // Another window answers while this page has no stream.
    let other = "const [done] = arguments; Object.defineProperty(document, 'hidden', { value: true, configurable: true }); \
        document.dispatchEvent(new Event('visibilitychange')); \
        fetch(location.pathname + '/messages', { method: 'POST', body: JSON.stringify({ text: 'Ann', answer_id: 'a1' }), \
        headers: { 'content-type': 'application/json', 'idempotency-key': 'other' } }).then((r) => done(r.status))";
    assert_eq!(browser.run_async(other).await, 202);
    browser.say("Ben").await;
    browser.shows("This question has just been answered").await;
    assert_eq!(browser.run("return document.querySelector('#answer').value").await, "Ben");
    assert_eq!(browser.until_messages(4).await.get(2).unwrap(), "Ann");
}

#[tokio::test]
async fn an_answer_that_is_too_long_is_given_back() {
    let Some(browser) = Browser::start(DESKTOP).await else { return };
    let (_home, serving) = visit();
    begin(&browser, &serving).await;
    browser.element("form.answer button[type=submit]:not(:disabled)").await;
    // As if it were pasted.
    let paste = "const field = document.querySelector('#answer'); field.value = 'word '.repeat(220000) + 'end'; \
        field.dispatchEvent(new Event('input')); return getComputedStyle(field).unicodeBidi";
    // One direction for all of it: with one for each line, the page stands still for many seconds.
    assert_eq!(browser.run(paste).await, "isolate");
    browser.click("Send").await;
    browser.element(".answer > .notice:not([hidden])").await;
    let told = browser.run("return document.querySelector('.answer > .notice').textContent").await;
    assert_eq!(told, "Your answer is too long to be stored. It is below; please shorten it.");
    assert_eq!(browser.run("return document.querySelector('#answer').value.length").await, 1_100_003);
    assert_eq!(browser.messages().await.len(), 2);
}

#[tokio::test]
async fn links_that_do_not_work_say_why() {
    let Some(browser) = Browser::start(DESKTOP).await else { return };
    let (_home, serving) = visit();
    browser.open(&format!("{}/t/none", serving.url)).await;
    browser.shows("This link does not exist.").await;
    let link = serving.post("/v1/links", json!({ "script": "visit", "kind": "open" })).await.json();
    let path = link["path"].as_str().unwrap();
    browser.open(&format!("{}{path}", serving.url)).await;
    browser.click("Begin").await;
    browser.until_messages(2).await;
    browser.element("#answer").await.send_keys("a draft").await.unwrap();
    let revoke = format!("/v1/links/{}", link["id"].as_str().unwrap());
    assert_eq!(serving.send(Method::DELETE, &revoke, &[], None).await.status, 204);
    // An open page is told, and keeps what was said, and what was only written.
    browser.shows("the conversation does not go on").await;
    browser.shows("This text was not sent any more. You can copy it.").await;
    assert_eq!(browser.run("return document.querySelector('#answer[readonly]').value").await, "a draft");
    assert_eq!(browser.messages().await.len(), 2);
    browser.open(&format!("{}{path}", serving.url)).await;
    browser.shows("This link is no longer valid.").await;
}
