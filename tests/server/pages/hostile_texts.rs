//! What people and models write is text on the page.

use serde_json::json;

use crate::browser::{Browser, DESKTOP};
use crate::process::Home;
use crate::served::Serving;
use crate::visitor::make_link;

/// Markup, a mark that turns the direction around, and a control character.
const HOSTILE: &str =
    "<img src=x onerror=\"document.title='run'\"><script>document.title='run'</script> a\u{202e}b\u{7}c";

const TALK: &str = "
session:
  session_id: hostile
  session_name: 'TITLE'
  declare:
    - { var: name, type: string }
    - { var: choice, type: string, enum: ['<b>yes</b>', no] }
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          actions:
            - { action_type: ai_ask, action_id: q1, config: { content: 'Name?', output: [{ get: name }] } }
            - { action_type: ai_ask, action_id: q2, config: { content: 'So {{ name }}?', output: [{ get: choice }] } }
";

#[tokio::test]
async fn markup_and_marks_of_direction_are_text() {
    let Some(browser) = Browser::start(DESKTOP).await else { return };
    let home = Home::new();
    home.put("scripts/hostile.yaml", TALK.replace("TITLE", "<script>document.title=\"run\"</script>"));
    let serving = Serving::start(&home);
    let path = make_link(&serving, json!({ "script": "hostile", "kind": "open" })).await;
    browser.open(&format!("{}{path}", serving.url)).await;
    browser.click("Begin").await;
    browser.until_messages(1).await;
    browser.element("form.answer button[type=submit]:not(:disabled)").await;
    // Not typed: a key cannot be pressed for each of these characters.
    let set = format!("document.querySelector('#answer').value = {}", json!(HOSTILE));
    browser.run(&set).await;
    browser.click("Send").await;
    let messages = browser.until_messages(3).await;
    let shown = "<img src=x onerror=\"document.title='run'\"><script>document.title='run'</script> ab\u{fffd}c";
    assert_eq!(messages.get(1..).unwrap(), [shown.to_owned(), format!("So {shown}?")]);
    browser.element_with("button", "<b>yes</b>").await;
    assert_eq!(browser.run("return document.title").await, "<script>document.title=\"run\"</script>");
    let elements = "return document.querySelectorAll('main script, main img, main b, h1 script').length";
    assert_eq!(browser.run(elements).await, 0);
    // Each text has a direction of its own, which does not reach beyond it.
    let isolated = "return [...document.querySelectorAll('.text')].every((text) => \
        text.dir === 'auto' && getComputedStyle(text).unicodeBidi.startsWith('isolate'))";
    assert_eq!(browser.run(isolated).await, true);
    // The store has what was said, as it was.
    let sessions = serving.get("/v1/sessions").await.json();
    let id = sessions["sessions"][0]["id"].as_str().unwrap();
    let export = serving.get(&format!("/v1/sessions/{id}/export")).await.json();
    assert_eq!(export["transcript"][1]["text"], HOSTILE);
}
