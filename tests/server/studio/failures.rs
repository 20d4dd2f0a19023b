//! The error bubbles: replies that cannot be read are shown with what was tried.

use crate::browser::Browser;
use crate::process::Home;
use crate::served::{Serving, TALK, said};
use crate::server::{Server, ServerBehavior};
use crate::studio::author::{WIDE, answer, has, open_session, open_tab};
use crate::visitor::model_config;

const RUBBISH: &str = "I would rather <script>document.title='run'</script> talk about the weather.";

#[tokio::test]
async fn three_degraded_turns_in_a_row_have_error_bubbles() {
    let Some(browser) = Browser::start(WIDE).await else { return };
    let home = Home::new();
    // A session whose opening cannot be read three times stops.
    let replies = [said("Who are you?"), RUBBISH.to_owned()].map(ServerBehavior::Answers);
    let model = Server::start(replies.to_vec());
    home.put("bcc-script.toml", model_config(&model));
    let script = TALK.replace("'Who are you?'", "'Who are you?', max_rounds: 9, exit: never");
    home.put(
        "scripts/talk.yaml",
        script.replace("content: '{{ greeting }}'", "delivery: verbatim, content: '{{ greeting }}'"),
    );
    let serving = Serving::with(&home, &["--trust"]);
    let id = serving.session("talk").await;
    open_session(&browser, &serving, &id).await;
    has(&browser, ".message.ai .text", "Who are you?").await;
    for text in ["one", "two", "three"] {
        answer(&browser, text).await;
        has(&browser, ".message.user .text", text).await;
        browser.element(".composer textarea").await;
        browser.element(".node.waiting").await;
    }
    let events = serving.get(&format!("/v1/sessions/{id}/journal?limit=1000&brief=true")).await.json();
    let degraded = |event: &&serde_json::Value| event["debug_info"]["parse_error"].is_object();
    let failures = events["events"].as_array().unwrap().iter().filter(degraded).count();
    assert!(failures >= 4, "{failures}");
    has(&browser, ".bubble", "3/3").await;
    has(&browser, ".bubble", "direct_parse → trim_and_parse → extract_json_block").await;
    has(&browser, ".bubble", "Final error").await;
    browser.run("document.querySelector('.talk-list').scrollTop = 1e9").await;
    // Behind a click, the raw reply, as text.
    browser.click("Show the raw reply").await;
    has(&browser, ".bubble .raw", RUBBISH).await;
    assert_eq!(browser.run("return document.querySelectorAll('.bubble script').length").await, 0);
    open_tab(&browser, "calls").await;
    has(&browser, ".detail .raw", "weather").await;
    has(&browser, ".detail", "no strategy").await;
    // In Chinese, it has its Chinese words.
    browser.click("中文").await;
    has(&browser, ".bubble", "重试次数").await;
    has(&browser, ".bubble", "尝试策略").await;
}
