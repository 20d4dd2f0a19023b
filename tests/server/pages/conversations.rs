//! Conversations on the page, from the beginning to the end.

use fantoccini::key::Key;
use serde_json::json;

use crate::browser::{Browser, DESKTOP, PHONE};
use crate::process::Home;
use crate::served::Serving;
use crate::visitor::make_link;

/// A conversation with each kind of input.
pub const VISIT: &str = "
session:
  session_id: visit
  session_name: How are you?
  declare:
    - { var: name, type: string }
    - { var: mood, type: string, enum: [good, mixed, rather bad] }
    - { var: since, type: date }
    - { var: hours, type: integer }
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          actions:
            - { action_type: ai_say, action_id: hello, config: { content: Welcome. Take all the time that you need. } }
            - { action_type: ai_ask, action_id: ask_name, config: { content: How may I call you?, output: [{ get: name }] } }
            - { action_type: ai_ask, action_id: ask_mood, config: { content: 'How are you today, {{ name }}?', output: [{ get: mood }] } }
            - { action_type: ai_ask, action_id: ask_since, config: { content: Since when?, output: [{ get: since }] } }
            - { action_type: ai_ask, action_id: ask_hours, config: { content: How many hours do you sleep?, output: [{ get: hours }] } }
            - { action_type: ai_say, action_id: bye, config: { content: 'Thank you, {{ name }}.' } }
";

/// Opens a new link to that conversation, and begins it.
pub async fn begin(browser: &Browser, serving: &Serving) {
    let path = make_link(serving, json!({ "script": "visit", "kind": "open" })).await;
    browser.open(&format!("{}{path}", serving.url)).await;
    browser.click("Begin").await;
    browser.until_messages(2).await;
}

/// A project with that conversation.
pub fn visit() -> (Home, Serving) {
    let home = Home::new();
    home.put("scripts/visit.yaml", VISIT);
    let serving = Serving::start(&home);
    (home, serving)
}

#[tokio::test]
async fn a_person_talks_leaves_comes_back_and_takes_a_copy() {
    let Some(browser) = Browser::start(DESKTOP).await else { return };
    let (_home, serving) = visit();
    let path = make_link(&serving, json!({ "script": "visit", "kind": "one_time" })).await;
    browser.open(&format!("{}{path}", serving.url)).await;
    browser.shows("How are you?").await;
    browser.click("Begin").await;
    browser.until_messages(2).await;
    // From now on, the address leads to this conversation.
    let address = browser.address().await;
    let secret = address.rsplit('/').next().unwrap();
    assert!(address.contains(&path) && secret.len() == 64, "{address}");
    browser.say("Ann").await;
    browser.until_messages(4).await;
    browser.element_with("*[contains(@class, 'delivery')]", "Received").await;
    browser.open("about:blank").await;
    browser.open(&address).await;
    assert_eq!(browser.until_messages(4).await.last().unwrap(), "How are you today, Ann?");
    // It was asked for once, with the page.
    let requests = "return performance.getEntriesByType('resource').filter((entry) => entry.name.endsWith('/state')) \
        .map((entry) => entry.initiatorType)";
    assert_eq!(browser.run(requests).await, json!(["link"]));
    browser.click("mixed").await;
    // A date is chosen, and can be changed before it is sent.
    browser.element("#date").await;
    browser
        .run("const d = document.querySelector('#date'); d.value = '2026-11-01'; d.dispatchEvent(new Event('change'))")
        .await;
    assert_eq!(browser.run("return document.querySelector('#answer').value").await, "2026-11-01");
    browser.click("Send").await;
    browser.until_messages(8).await;
    assert_eq!(browser.run("return document.querySelector('#answer').inputMode").await, "decimal");
    browser.say("7").await;
    browser.shows("This conversation has ended. Thank you.").await;
    assert_eq!(browser.messages().await.last().unwrap(), "Thank you, Ann.");
    let copied = "const [done] = arguments; const create = URL.createObjectURL; \
        URL.createObjectURL = (blob) => { blob.text().then(done); return create(blob); }; \
        [...document.querySelectorAll('.foot button')].find((b) => b.textContent === 'Save a copy').click()";
    let copy = browser.run_async(copied).await;
    assert!(copy.as_str().unwrap().contains("Thank you, Ann."), "{copy}");
}

#[tokio::test]
async fn an_answer_that_was_taken_back_is_not_sent_with_another_one() {
    let Some(browser) = Browser::start(DESKTOP).await else { return };
    let (_home, serving) = visit();
    begin(&browser, &serving).await;
    browser.say("Ann").await;
    browser.until_messages(4).await;
    browser.click("mixed").await;
    browser.until_messages(6).await;
    let field = "return document.querySelector('#answer').value";
    // There is a button for it.
    browser.click("Take back my last answer").await;
    browser.until_messages(4).await;
    browser.shows("Your answer was taken back.").await;
    assert_eq!(browser.run(field).await, "");
    // The answer before takes the place of that one, and goes when a button is chosen.
    browser.click("Take back my last answer").await;
    browser.until_messages(2).await;
    browser.until_answer_holds("Ann").await;
    browser.click("Send").await;
    browser.until_messages(4).await;
    browser.click("good").await;
    browser.until_messages(6).await;
    assert_eq!(browser.run(field).await, "");
    // A date that is typed is one after the other, and the focus stays.
    let typed = "const d = document.querySelector('#date'); d.focus(); d.value = '0002-11-01'; \
        d.dispatchEvent(new Event('change')); return document.activeElement.id";
    assert_eq!(browser.run(typed).await, "date");
}

#[tokio::test]
async fn a_link_for_one_talk_says_that_it_was_used() {
    let Some(browser) = Browser::start(DESKTOP).await else { return };
    let (_home, serving) = visit();
    let path = make_link(&serving, json!({ "script": "visit", "kind": "one_time" })).await;
    let address = format!("{}{path}", serving.url);
    // Two visitors have the link open; one of them begins.
    browser.open(&address).await;
    browser.element("form.card").await;
    browser.open_tab(&address).await;
    browser.click("Begin").await;
    browser.until_messages(2).await;
    browser.switch(0).await;
    browser.click("Begin").await;
    browser.shows("This link has already been used.").await;
    browser.open(&address).await;
    browser.shows("This link has already been used.").await;
}

#[tokio::test]
async fn a_talk_begins_after_the_consent_which_can_be_withdrawn() {
    let Some(browser) = Browser::start(DESKTOP).await else { return };
    let (_home, serving) = visit();
    let consent = json!({ "text": "We keep what you say for a year.\n\n<b>Agree?</b>", "language": "en" });
    let path = make_link(&serving, json!({ "script": "visit", "kind": "open", "consent": consent })).await;
    browser.open(&format!("{}{path}", serving.url)).await;
    browser.shows("<b>Agree?</b>").await;
    assert_eq!(browser.run("return document.querySelector('form.card button').disabled").await, true);
    browser.element("#agree").await.click().await.unwrap();
    browser.click("Begin").await;
    browser.until_messages(2).await;
    browser.say("Ann").await;
    browser.until_messages(4).await;
    browser.element("summary").await.click().await.unwrap();
    browser.click("Withdraw my consent").await;
    browser.element("dialog[open]").await;
    browser.click("Cancel").await;
    browser.vanishes("dialog").await;
    browser.element("summary").await.click().await.unwrap();
    browser.click("Withdraw my consent").await;
    browser.click("Withdraw and erase").await;
    browser.shows("The conversation is erased.").await;
    browser.reload().await;
    browser.shows("The conversation is erased.").await;
    assert_eq!(serving.get("/v1/sessions").await.json()["sessions"], json!([]));
}

#[tokio::test]
async fn the_last_answer_is_taken_back_and_changed() {
    let Some(browser) = Browser::start(DESKTOP).await else { return };
    let (_home, serving) = visit();
    begin(&browser, &serving).await;
    browser.say("Ann").await;
    browser.until_messages(4).await;
    // What the server says of the conversation takes a while to arrive: nothing is told before it is shown.
    let slow = "const send = fetch; globalThis.fetch = async (path, options) => { const reply = await send(path, options); \
        if (String(path).endsWith('/state')) await new Promise((done) => setTimeout(done, 400)); return reply; }";
    browser.run(slow).await;
    browser.click("Take back my last answer").await;
    browser.shows("Your answer was taken back.").await;
    assert_eq!(browser.messages().await.len(), 2);
    // It can be changed.
    assert_eq!(browser.run("return document.querySelector('#answer').value").await, "Ann");
    browser.say("-Sophie").await;
    assert_eq!(browser.until_messages(4).await.last().unwrap(), "How are you today, Ann-Sophie?");
}

#[tokio::test]
async fn everything_can_be_done_with_the_keyboard() {
    let Some(browser) = Browser::start(DESKTOP).await else { return };
    let (_home, serving) = visit();
    let path = make_link(&serving, json!({ "script": "visit", "kind": "open" })).await;
    browser.open(&format!("{}{path}", serving.url)).await;
    browser.element("form.card").await;
    browser.tab_to("Begin").await;
    browser.press(&Key::Enter.to_string()).await;
    browser.until_messages(2).await;
    browser.element("form.answer button[type=submit]:not(:disabled)").await;
    browser.run("document.activeElement.blur()").await;
    for _ in 0..30 {
        browser.press(&Key::Tab.to_string()).await;
        if browser.run("return document.activeElement.id").await == "answer" {
            break;
        }
    }
    // Enter sends; a new line needs Shift.
    browser.press("Ann").await;
    browser.press(&Key::Enter.to_string()).await;
    browser.until_messages(4).await;
    browser.element(".options:not([hidden])").await;
    browser.run("document.activeElement.blur()").await;
    browser.tab_to("rather bad").await;
    browser.press(&Key::Enter.to_string()).await;
    assert_eq!(browser.until_messages(6).await.get(4).unwrap(), "rather bad");
    // The focus is not lost with the button.
    assert_eq!(browser.run("return document.activeElement.id").await, "answer");
    // New messages are announced.
    assert_eq!(
        browser.run("return document.querySelector('.messages').parentElement.getAttribute('role')").await,
        "log"
    );
}

#[tokio::test]
async fn on_a_phone_nothing_is_wider_than_the_screen() {
    let Some(browser) = Browser::start(PHONE).await else { return };
    let (_home, serving) = visit();
    begin(&browser, &serving).await;
    let fits = async || {
        let widths = browser.run("return [document.documentElement.scrollWidth, innerWidth]").await;
        assert_eq!((&widths[0], &widths[1]), (&json!(360), &json!(360)));
    };
    fits().await;
    // A long answer without a space, of many lines, while the field grows.
    let long = format!("{}\n{}", "Ann".repeat(60), "line\n".repeat(12));
    browser.element("#answer").await.send_keys(&long).await.unwrap();
    fits().await;
    let height = browser.run("return document.querySelector('#answer').clientHeight").await.as_f64().unwrap();
    assert!(height > 200.0 && height < 400.0, "{height}");
    browser.click("Send").await;
    browser.until_messages(4).await;
    browser.element(".options:not([hidden])").await;
    fits().await;
    browser.element("summary").await.click().await.unwrap();
    fits().await;
}
