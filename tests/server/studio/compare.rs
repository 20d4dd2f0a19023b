//! Two sessions side by side, and the data set of a list.

use fantoccini::key::Key;
use serde_json::json;

use crate::browser::{Browser, Look, PHONE};
use crate::process::Home;
use crate::served::{Serving, TALK, said};
use crate::server::{Server, ServerBehavior};
use crate::studio::author::{WIDE, choose, has, open_compared, open_session};
use crate::studio::sessions::long_script;
use crate::visitor::model_config;

/// A session of a talk in which both questions were answered.
async fn answered(serving: &Serving, name: &str) -> String {
    let id = serving.session("talk").await;
    serving.say(&id, name).await;
    serving.say(&id, "tea").await;
    id
}

/// For each turn whether it differs, and the texts.
const TURNS: &str = "const turns = []; for (const part of document.querySelectorAll('.turn, .said')) { \
    if (part.matches('.turn')) turns.push([part.querySelector('.tag').textContent]); \
    turns.at(-1).push(...[...part.querySelectorAll('.text')].map((text) => text.textContent)); } return turns";

#[tokio::test]
async fn a_session_is_compared_with_a_variant_that_gets_the_same_answers() {
    let Some(browser) = Browser::start(WIDE).await else { return };
    let home = Home::new();
    home.put("scripts/talk.yaml", TALK);
    let serving = Serving::start(&home);
    let id = answered(&serving, "Ann").await;
    open_session(&browser, &serving, &id).await;
    home.put("scripts/talk.yaml", TALK.replace("What do you like?", "What do you enjoy?"));
    browser.click("Compare").await;
    has(&browser, "dialog .again-plan", "No model is asked.").await;
    choose(&browser, "#again-1-script", "scripts/talk.yaml").await;
    has(&browser, "dialog .again-plan", "A model is asked about").await;
    choose(&browser, "#again-1-scheme", "english").await;
    has(&browser, "dialog .again-plan", "Answers that are given again: 2").await;
    browser.element("dialog button.main:not(:disabled)").await.click().await.unwrap();
    browser.element(".heads .side:nth-child(2) .status.done").await;
    has(&browser, ".session-head [role=status]", "Different turns: 1 of 3").await;
    has(&browser, ".heads .side:nth-child(2)", "english").await;
    // One row for each answer, with what both said to it; the words that differ are marked.
    let rows = json!([
        ["the same", "Hello.", "Hello.", "Who are you?", "Who are you?"],
        ["different", "Ann", "What do you like?", "What do you enjoy?"],
        ["the same", "tea", "Ann likes tea.", "Ann likes tea."]
    ]);
    assert_eq!(browser.run(TURNS).await, rows);
    let marks = "return [...document.querySelectorAll('mark')].map((mark) => mark.textContent)";
    assert_eq!(browser.run(marks).await, json!(["like", "enjoy"]));
    // Why: the prompts differ, and the variables do not.
    browser.element(".said:has(mark) button[aria-expanded=false]").await.click().await.unwrap();
    has(&browser, ".diff .removed", "What do you like?").await;
    has(&browser, ".diff .added", "What do you enjoy?").await;
    has(&browser, ".said .detail", "The same values were set.").await;
    has(&browser, ".said .detail .side", "offline").await;
    // The address is enough to see it again.
    browser.reload().await;
    browser.element(".said mark").await;
    assert_eq!(browser.run(TURNS).await, rows);
    browser.element("input[type=checkbox]").await.click().await.unwrap();
    browser.vanishes(".virtual-row:nth-child(3)").await;
    assert_eq!(browser.run(TURNS).await, json!([rows[1]]));
    browser.element(".heads .side:nth-child(2) a").await.click().await.unwrap();
    browser.element("talk-pane .message").await;
    // From there, it is compared with the session from which it began again.
    browser.element("a[href^='#/compare/']").await.click().await.unwrap();
    browser.element(".said mark").await;
}

#[tokio::test]
async fn two_sessions_of_the_list_are_compared_with_the_keyboard() {
    let Some(browser) = Browser::start(WIDE).await else { return };
    let home = Home::new();
    home.put("scripts/talk.yaml", TALK);
    let serving = Serving::start(&home);
    let hostile = "<b>Bob</b> a\u{202e}b";
    let (one, other) = (answered(&serving, "Ann").await, answered(&serving, hostile).await);
    browser.open(&format!("{}/studio#/sessions", serving.url)).await;
    browser.element("tbody tr:nth-child(2)").await;
    browser.element(".buttons button:disabled").await;
    for id in [&one, &other] {
        for _ in 0..30 {
            browser.press(&Key::Tab.to_string()).await;
            let label = browser.run("return document.activeElement.getAttribute('aria-label')").await;
            if label.as_str().is_some_and(|label| label.contains(id.as_str())) {
                break;
            }
        }
        browser.press(" ").await;
        // In the list, the newest is the first.
        browser.run("document.querySelector('tbody').closest('.table').focus()").await;
    }
    browser.tab_to("Compare two sessions (2 chosen)").await;
    browser.press(&Key::Enter.to_string()).await;
    has(&browser, ".heads .side:nth-child(2)", "talk").await;
    assert!(browser.address().await.ends_with(&format!("#/compare/{one}/{other}")));
    // Other answers are beside each other, as text.
    has(&browser, ".turn .message.user .text", "<b>Bob</b> a⟦U+202E⟧b").await;
    assert_eq!(browser.run("return document.querySelectorAll('.message b:not(.letter)').length").await, 0);
    has(&browser, ".session-head [role=status]", "Different turns: 2 of 3").await;
    has(&browser, ".said", "1 variable differs").await;
    let open = "[...document.querySelectorAll('.said p')].find((line) => line.textContent.includes('1 variable differs')).querySelector('button').focus()";
    browser.run(open).await;
    browser.press(&Key::Enter.to_string()).await;
    has(&browser, ".said .detail .value", "Ann").await;
    has(&browser, ".said .detail .value", "<b>Bob</b>").await;
    // A session that is not there is said to be missing.
    browser.open(&format!("{}/studio#/compare/{one}/none", serving.url)).await;
    has(&browser, ".heads .problem", "there is no session").await;
}

#[tokio::test]
async fn variants_are_compared_while_they_run_with_their_degraded_replies() {
    let Some(browser) = Browser::start(WIDE).await else { return };
    let home = Home::new();
    let replies = [said("Who are you, friend?"), "rubbish".to_owned()].map(ServerBehavior::Answers);
    let model = Server::start(replies.to_vec());
    home.put("bcc-script.toml", model_config(&model));
    let script = TALK.replace("'Who are you?'", "'Who are you?', monitor: off, max_rounds: 9, exit: never");
    home.put("scripts/talk.yaml", script.replace("content: '{{ greeting }}'", "delivery: verbatim, content: Hello."));
    let serving = Serving::with(&home, &["--trust"]);
    let id = serving.session("talk").await;
    serving.say(&id, "Ann").await;
    open_session(&browser, &serving, &id).await;
    browser.click("Compare").await;
    browser.element("dialog fieldset select").await;
    choose(&browser, "dialog fieldset select", "new").await;
    choose(&browser, "#again-0-model", "offline").await;
    choose(&browser, "#again-1-model", "default").await;
    // Three sessions: this one, and two variants.
    browser.element("dialog button.main:not(:disabled)").await.click().await.unwrap();
    has(&browser, ".heads .side:nth-child(1)", "offline").await;
    has(&browser, ".heads .side:nth-child(2)", "m").await;
    has(&browser, ".turn .message.user .text", "Ann").await;
    let sessions = serving.get("/v1/sessions").await.json();
    assert_eq!(sessions["sessions"].as_array().unwrap().len(), 3);
    // What happens in one of them is seen.
    let address = browser.address().await;
    let variant = address.rsplit('/').next().unwrap().to_owned();
    browser.element(".heads .side:nth-child(2) .status.waiting").await;
    serving.say(&variant, "I said Ann").await;
    has(&browser, ".turn .message.user .text", "I said Ann").await;
    browser
        .run("for (const button of document.querySelectorAll('.said button[aria-expanded=false]')) button.click()")
        .await;
    has(&browser, ".said .bubble", "Strategies tried").await;
    has(&browser, ".said .detail .side", "no strategy").await;
}

#[tokio::test]
async fn on_a_phone_the_columns_are_below_each_other() {
    let Some(browser) = Browser::start(Look { width: 360, ..PHONE }).await else { return };
    let home = Home::new();
    home.put("scripts/talk.yaml", TALK);
    let serving = Serving::start(&home);
    let (one, other) = (answered(&serving, "Ann").await, answered(&serving, "Bob").await);
    open_compared(&browser, &serving, &one, &other).await;
    let places = "return [...document.querySelectorAll('virtual-list .pair')].every((pair) => { \
        const [one, other] = [...pair.children].map((side) => side.getBoundingClientRect()); \
        return one.left === other.left && other.top >= one.bottom; }) && document.documentElement.scrollWidth <= innerWidth";
    assert_eq!(browser.run(places).await, true);
}

#[tokio::test]
async fn of_long_sessions_only_a_window_is_in_the_page() {
    let Some(browser) = Browser::start(WIDE).await else { return };
    let home = Home::new();
    home.put("scripts/long.yaml", long_script(210));
    let serving = Serving::start(&home);
    let (one, other) = (serving.session("long").await, serving.session("long").await);
    serving.say(&one, "Yes").await;
    serving.say(&other, "No").await;
    open_compared(&browser, &serving, &one, &other).await;
    // Each has said 421 things to two answers.
    let counts = "return [document.querySelectorAll('.virtual-row').length < 60, \
        Number(document.querySelector('.virtual-row').getAttribute('aria-setsize')) > 420]";
    assert_eq!(browser.run(counts).await, json!([true, true]));
    // The heights of rows are known when they have been drawn.
    let to_end = "const done = arguments[0]; const look = () => { document.querySelector('virtual-list').scrollTop = 1e9; \
        const answers = [...document.querySelectorAll('.turn .message.user .text')].map((text) => text.textContent).join(); \
        return answers === 'Yes,No' ? done(answers) : requestAnimationFrame(look); }; look()";
    assert_eq!(browser.run_async(to_end).await, "Yes,No");
    assert_eq!(browser.run(counts).await, json!([true, true]));
}

#[tokio::test]
async fn the_sessions_of_a_list_are_downloaded_as_a_data_set() {
    let Some(browser) = Browser::start(WIDE).await else { return };
    let home = Home::new();
    home.put("scripts/talk.yaml", TALK);
    let serving = Serving::start(&home);
    answered(&serving, "Ann").await;
    serving.session("talk").await;
    browser.open(&format!("{}/studio#/sessions", serving.url)).await;
    browser.element("tbody tr:nth-child(2)").await;
    choose(&browser, "select[name=status]", "completed").await;
    browser.vanishes("tbody tr:nth-child(2)").await;
    // What is downloaded is kept for the test instead of a file.
    let keep = "const real = URL.createObjectURL; window.kept = []; URL.createObjectURL = (blob) => { window.kept.push(blob); return real.call(URL, blob); }";
    browser.run(keep).await;
    browser.click("Data set").await;
    browser
        .element("dialog[open] input[value=jsonl], dialog[open] label:nth-of-type(2) input")
        .await
        .click()
        .await
        .unwrap();
    browser.click("Download").await;
    has(&browser, "dialog [role=status]", "Sessions: 1.").await;
    let first = "const done = arguments[0]; window.kept[0].arrayBuffer().then((bytes) => \
        done([bytes.byteLength > 1000, new TextDecoder('latin1').decode(bytes).includes('talk/interviews.jsonl')]))";
    assert_eq!(browser.run_async(first).await, json!([true, true]));
    browser.element("dialog[open] input[type=checkbox]").await.click().await.unwrap();
    has(&browser, "dialog [role=alert]", "Nothing is masked.").await;
    browser.click("Close").await;
    browser.vanishes("dialog[open]").await;
}
