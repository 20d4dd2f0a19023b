//! What was being written when a turn is interrupted, and turns that are taken back while somebody looks at them.

use std::sync::{Arc, Barrier};

use serde_json::json;

use crate::browser::Browser;
use crate::process::Home;
use crate::served::{Serving, TALK, said};
use crate::server::{Server, ServerBehavior};
use crate::studio::author::{WIDE, has, open_session, until};
use crate::visitor::{ASKING_MODEL, model_config};

#[tokio::test]
async fn a_reply_that_was_interrupted_is_not_shown_as_being_written() {
    let Some(browser) = Browser::start(WIDE).await else { return };
    let home = Home::new();
    let half = ServerBehavior::Paused(Arc::new(Barrier::new(2)), said("It is a long story that comes in pieces."));
    let model = Server::start(vec![half, ServerBehavior::Answers(said("Another story."))]);
    home.put("bcc-script.toml", model_config(&model));
    home.put("scripts/talk.yaml", ASKING_MODEL);
    let serving = Serving::with(&home, &["--trust"]);
    let id = serving.session("talk").await;
    open_session(&browser, &serving, &id).await;
    has(&browser, ".connection", "Live").await;
    let (target, path) = (serving.target(), format!("/v1/sessions/{id}/messages"));
    let first_path = path.clone();
    tokio::spawn(async move { target.attempt(&first_path, &[], &json!({ "text": "first" })).await });
    has(&browser, "talk-pane .message.live .text", "It is a").await;
    let instead = json!({ "text": "instead", "on_busy": "interrupt" });
    let reply = serving.post(&path, instead).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    has(&browser, "talk-pane .message.ai .text", "Another story.").await;
    browser.vanishes("talk-pane .message.live").await;
}

/// Which turn the timeline shows.
const STATUS: &str = "timeline-bar [role=status]";

#[tokio::test]
async fn whoever_looks_at_a_turn_that_is_taken_back_is_led_back_to_now() {
    let Some(browser) = Browser::start(WIDE).await else { return };
    let home = Home::new();
    let more = "            - { action_type: ai_ask, action_id: more, config: { content: 'And then?' } }\n";
    home.put("scripts/talk.yaml", format!("{TALK}{more}"));
    let serving = Serving::start(&home);
    let id = serving.session("talk").await;
    for text in ["Ann", "tea"] {
        serving.say(&id, text).await;
    }
    open_session(&browser, &serving, &id).await;
    has(&browser, ".connection", "Live").await;
    has(&browser, "talk-pane .message.ai .text", "And then?").await;
    let step = async |label: &str, shown: &str| {
        browser.element(&format!("button[aria-label='{label}']")).await.click().await.unwrap();
        has(&browser, STATUS, shown).await;
    };
    let take_back_twice = async || {
        for _ in 0..2 {
            let reply = serving.post(&format!("/v1/sessions/{id}/take_back"), json!({})).await;
            assert_eq!(reply.status, 200, "{reply:?}");
        }
    };
    step("One turn back", "Turn 2 of 3").await;
    step("One turn back", "Turn 1 of 3").await;
    // The turn that is shown is still there, and stays.
    take_back_twice().await;
    has(&browser, STATUS, "Turn 1 of 2").await;
    for text in ["Ann", "tea"] {
        serving.say(&id, text).await;
    }
    has(&browser, STATUS, "Turn 1 of 4").await;
    step("One turn forward", "Turn 2 of 4").await;
    step("One turn forward", "Turn 3 of 4").await;
    take_back_twice().await;
    serving.say(&id, "Bea").await;
    has(&browser, "talk-pane .message.user .text", "Bea").await;
    has(&browser, STATUS, "Now").await;
    browser.vanishes(".past-note").await;
    // What is offered begins from what is shown.
    browser
        .run("window.sent = []; const real = window.fetch; window.fetch = (url, options) => { if (options.body) window.sent.push(JSON.parse(options.body)); return real(url, options); }")
        .await;
    browser.click("Begin again from here").await;
    until(&browser, "window.sent.length > 0").await;
    let state = serving.get(&format!("/v1/sessions/{id}")).await.json();
    let sent = browser.run("return window.sent[0].after_seq").await;
    assert_eq!(sent, state["last_seq"], "{state}");
}
