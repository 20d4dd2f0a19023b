//! A server that goes away, tokens, the keyboard, and scripts with errors.

use fantoccini::key::Key;

use crate::access::tokens;
use crate::browser::Browser;
use crate::process::Home;
use crate::served::{Serving, TALK};
use crate::studio::author::{WIDE, answer, has, open_session, open_tab};

#[tokio::test]
async fn a_server_that_is_killed_and_started_again_goes_on() {
    let Some(browser) = Browser::start(WIDE).await else { return };
    let home = Home::new();
    home.put("scripts/talk.yaml", TALK);
    let mut serving = Serving::start(&home);
    let id = serving.session("talk").await;
    open_session(&browser, &serving, &id).await;
    has(&browser, ".connection", "Live").await;
    browser.element("#answer").await.send_keys("Ann").await.unwrap();
    serving.kill();
    has(&browser, ".connection", "Connection lost").await;
    // The answer cannot be sent, and stays.
    browser.element(".composer button:not(:disabled)").await.click().await.unwrap();
    has(&browser, ".composer .problem", "The server cannot be reached.").await;
    assert_eq!(browser.run("return document.querySelector('#answer').value").await, "Ann");
    let address = serving.url.strip_prefix("http://").unwrap().to_owned();
    let serving = Serving::of(home.start(["serve", "--addr", &address]));
    has(&browser, ".connection", "Live").await;
    browser.element(".composer button:not(:disabled)").await.click().await.unwrap();
    has(&browser, ".message.ai .text", "What do you like?").await;
    // What another client does is seen as well, once.
    serving.say(&id, "tea").await;
    has(&browser, ".message.ai .text", "Ann likes tea.").await;
    has(&browser, ".session-head .status", "completed").await;
    browser.vanishes("talk-pane .message.live").await;
    let messages = "return document.querySelectorAll('talk-pane .message').length";
    assert_eq!(browser.run(messages).await, 6);
}

#[tokio::test]
async fn a_token_is_asked_for_and_kept_in_the_tab_only() {
    let Some(browser) = Browser::start(WIDE).await else { return };
    let home = Home::new();
    home.put("scripts/talk.yaml", TALK);
    let tokens = tokens(&home);
    let token = |role: &str| tokens.iter().find(|(name, _)| name == role).unwrap().1.clone();
    let serving = Serving::with(&home, &["--trust"]);
    browser.open(&format!("{}/studio", serving.url)).await;
    browser.shows("This server needs a token").await;
    for (wrong, why) in [("bcc_wrong".to_owned(), "not valid"), (token("talk"), "needs the role")] {
        browser.element("#token").await.send_keys(&wrong).await.unwrap();
        browser.click("Open").await;
        has(&browser, ".problem", why).await;
    }
    browser.element("#token").await.send_keys(&token("author")).await.unwrap();
    browser.click("Open").await;
    has(&browser, ".script .status", "No problems").await;
    let kept = "return [sessionStorage.length, localStorage.length, document.cookie]";
    assert_eq!(browser.run(kept).await, serde_json::json!([1, 0, ""]));
    browser.reload().await;
    browser.click("Start a session").await;
    has(&browser, ".message .text", "Who are you?").await;
    has(&browser, ".connection", "Live").await;
    browser.click("Forget the token").await;
    browser.element("#token").await;
    assert_eq!(browser.run("return sessionStorage.length").await, 0);
}

#[tokio::test]
async fn a_changed_script_stays_while_a_token_is_asked_for() {
    let Some(browser) = Browser::start(WIDE).await else { return };
    let home = Home::new();
    home.put("scripts/talk.yaml", TALK);
    let tokens = tokens(&home);
    let author = &tokens.iter().find(|(name, _)| name == "author").unwrap().1;
    let serving = Serving::with(&home, &["--trust"]);
    browser.open(&format!("{}/studio#/scripts/scripts%2Ftalk.yaml", serving.url)).await;
    browser.element("#token").await.send_keys(author).await.unwrap();
    browser.click("Open").await;
    has(&browser, ".status", "No problems").await;
    browser
        .run(
            "const area = document.querySelector('textarea.code'); area.value = area.value.replace('Who are you?', '你是谁？'); \
             area.dispatchEvent(new Event('input')); window.real = window.fetch; \
             window.fetch = (url, options) => options.method === 'PUT' ? Promise.resolve(new Response('{}', { status: 401 })) : window.real(url, options)",
        )
        .await;
    browser.click("Save").await;
    browser.element("#token").await.send_keys(author).await.unwrap();
    browser.run("window.fetch = window.real").await;
    browser.click("Open").await;
    browser.element(".view:not([hidden]) textarea.code").await;
    browser.click("Save").await;
    has(&browser, "[role=status]", "Saved and checked.").await;
    let source = format!("{}/v1/scripts/talk/source", serving.url);
    let stored = reqwest::Client::new().get(source).bearer_auth(author).send().await.unwrap().text().await.unwrap();
    assert!(stored.contains("你是谁？"), "{stored}");
}

#[tokio::test]
async fn numbers_have_the_digits_that_were_written() {
    let Some(browser) = Browser::start(WIDE).await else { return };
    let home = Home::new();
    let set = "          actions:\n            - { action_type: set, action_id: note, config: { values: { number: 110105199003071233, list: [1.50] } } }\n";
    home.put("scripts/talk.yaml", TALK.replacen("          actions:\n", set, 1));
    let serving = Serving::start(&home);
    let id = serving.session("talk").await;
    open_session(&browser, &serving, &id).await;
    open_tab(&browser, "variables").await;
    has(&browser, "variables-tab", "110105199003071233").await;
    has(&browser, "variables-tab", "1.50").await;
}

#[tokio::test]
async fn problems_of_other_files_are_named_and_only_errors_are_counted() {
    let Some(browser) = Browser::start(WIDE).await else { return };
    let home = Home::new();
    let skill =
        "skill:\n  skill_id: small\n  actions:\n    - { action_type: ai_sya, action_id: x, config: { content: y } }\n";
    home.put("skills/small.yaml", skill);
    let call = "            - { action_type: use_skill, action_id: call, config: { skill: small } }\n";
    home.put("scripts/talk.yaml", format!("{TALK}{call}"));
    let serving = Serving::start(&home);
    browser.open(&format!("{}/studio#/scripts", serving.url)).await;
    has(&browser, ".problems code", "skills/small.yaml:4").await;
    has(&browser, ".script .status", "1 error").await;
}

#[tokio::test]
async fn everything_is_reached_with_the_keyboard() {
    let Some(browser) = Browser::start(WIDE).await else { return };
    let home = Home::new();
    home.put("scripts/talk.yaml", TALK);
    let serving = Serving::start(&home);
    browser.open(&format!("{}/studio", serving.url)).await;
    has(&browser, ".script .status", "No problems").await;
    browser.tab_to("Start a session").await;
    browser.press(&Key::Enter.to_string()).await;
    has(&browser, ".message .text", "Who are you?").await;
    // The tree is one stop, in which the arrows move.
    let focused = async |css: &str| {
        for _ in 0..30 {
            browser.press(&Key::Tab.to_string()).await;
            let script = format!("return document.activeElement.matches({})", serde_json::json!(css));
            if browser.run(&script).await == true {
                return;
            }
        }
        panic!("{css} is not reached with the keyboard");
    };
    focused("[role=treeitem]").await;
    browser.press(&Key::End.to_string()).await;
    let name = "return document.activeElement.querySelector('.name').textContent";
    assert_eq!(browser.run(name).await, "bye");
    browser.press(&Key::Left.to_string()).await;
    browser.press(&Key::Left.to_string()).await;
    assert_eq!(browser.run("return document.activeElement.getAttribute('aria-expanded')").await, "false");
    focused("#answer").await;
    browser.press("Ann").await;
    browser.press(&Key::Enter.to_string()).await;
    has(&browser, ".message.ai .text", "What do you like?").await;
    focused("input[type=range]").await;
    browser.press(&Key::Left.to_string()).await;
    browser.element(".past-note").await;
    browser.press(&Key::Right.to_string()).await;
    browser.vanishes(".past-note").await;
    focused("#tab-calls").await;
    browser.press(&Key::Right.to_string()).await;
    browser.element("#tab-variables[aria-selected=true]:focus").await;
    has(&browser, ".variable", "Ann").await;
}

#[tokio::test]
async fn a_script_is_saved_and_checked_with_its_problems_at_their_lines() {
    let Some(browser) = Browser::start(WIDE).await else { return };
    let home = Home::new();
    home.put("scripts/talk.yaml", TALK);
    let serving = Serving::start(&home);
    browser.open(&format!("{}/studio#/scripts/scripts%2Ftalk.yaml", serving.url)).await;
    has(&browser, ".status", "No problems").await;
    let change = "const area = document.querySelector('textarea.code'); \
        area.value = area.value.replace('action_type: ai_ask', 'action_type: ai_aks'); area.dispatchEvent(new Event('input'))";
    browser.run(change).await;
    browser.click("Save").await;
    has(&browser, ".diagnostic", "there is no action type `ai_aks`").await;
    has(&browser, ".diagnostic .place", "Line 15:").await;
    has(&browser, ".numbers .error", "15").await;
    // The file is unchanged, and the text is not lost.
    assert_eq!(serving.get("/v1/scripts/talk/source").await.text, TALK);
    browser.click("Fix: write `ai_ask`").await;
    let text = "return document.querySelector('textarea.code').value";
    assert_eq!(browser.run(text).await, TALK);
    let change = "const area = document.querySelector('textarea.code'); \
        area.value = area.value.replace('Who are you?', '你是谁？'); area.dispatchEvent(new Event('input'))";
    browser.run(change).await;
    browser.click("Save").await;
    has(&browser, "[role=status]", "Saved and checked.").await;
    assert!(serving.get("/v1/scripts/talk/source").await.text.contains("你是谁？"));
    browser.open(&format!("{}/studio#/scripts", serving.url)).await;
    browser.click("Start a session").await;
    has(&browser, ".message .text", "你是谁？").await;
    answer(&browser, "Ann").await;
    has(&browser, ".message .text", "What do you like?").await;
}

#[tokio::test]
async fn a_fix_is_made_at_its_place_in_a_file_with_a_byte_order_mark_and_mixed_line_ends() {
    let Some(browser) = Browser::start(WIDE).await else { return };
    let home = Home::new();
    let wrong = TALK.replacen('\n', "\r\n", 5).replacen("action_type: ai_ask", "action_type: ai_aks", 1);
    let file = home.put("scripts/talk.yaml", format!("\u{feff}{wrong}"));
    let serving = Serving::start(&home);
    browser.open(&format!("{}/studio#/scripts/scripts%2Ftalk.yaml", serving.url)).await;
    browser.click("Fix: write `ai_ask`").await;
    assert_eq!(browser.run("return document.querySelector('textarea.code').value").await, TALK);
    browser.click("Save").await;
    has(&browser, "[role=status]", "Saved and checked.").await;
    assert_eq!(std::fs::read_to_string(&file).unwrap(), format!("\u{feff}{}", TALK.replace('\n', "\r\n")));
}

#[tokio::test]
async fn the_sessions_of_a_day_are_those_of_the_day_of_whoever_looks() {
    let Some(browser) = Browser::start(WIDE).await else { return };
    let home = Home::new();
    home.put("scripts/talk.yaml", TALK);
    let serving = Serving::start(&home);
    browser.open(&format!("{}/studio", serving.url)).await;
    browser.set_time_zone("Asia/Shanghai").await;
    browser.open(&format!("{}/studio#/sessions", serving.url)).await;
    browser.element("input[name=since]").await;
    let asked = "const done = arguments[0]; const real = window.fetch; \
        window.fetch = (url, options) => { if (String(url).includes('since=')) done(new URL(url, location).searchParams.get('since')); return real(url, options); }; \
        const field = document.querySelector('input[name=since]'); field.value = '2026-11-29'; field.dispatchEvent(new Event('input'));";
    assert_eq!(browser.run_async(asked).await, "2026-11-28T16:00:00.000Z");
}

#[tokio::test]
async fn a_script_in_a_subfolder_is_saved_where_it_is() {
    let Some(browser) = Browser::start(WIDE).await else { return };
    let home = Home::new();
    let file = home.put("scripts/care/sleep/talk.yaml", TALK);
    let serving = Serving::start(&home);
    browser.open(&format!("{}/studio", serving.url)).await;
    has(&browser, ".script .status", "No problems").await;
    browser.element(".script h2 a").await.click().await.unwrap();
    has(&browser, ".editor-page .status", "No problems").await;
    let change = "const area = document.querySelector('textarea.code'); \
        area.value = area.value.replace('Who are you?', 'Who is there?'); area.dispatchEvent(new Event('input'))";
    browser.run(change).await;
    browser.click("Save").await;
    has(&browser, "[role=status]", "Saved and checked.").await;
    assert_eq!(std::fs::read_to_string(&file).unwrap(), TALK.replace("Who are you?", "Who is there?"));
    // Somebody else changes the file: neither text is lost without a decision.
    let theirs = TALK.replace("Who are you?", "And you?");
    std::fs::write(&file, &theirs).unwrap();
    let change = "const area = document.querySelector('textarea.code'); \
        area.value = area.value.replace('Who is there?', 'Who?'); area.dispatchEvent(new Event('input'))";
    browser.run(change).await;
    browser.click("Save").await;
    has(&browser, ".problem", "Somebody else has changed this script").await;
    assert_eq!(std::fs::read_to_string(&file).unwrap(), theirs);
    let text = "return document.querySelector('textarea.code').value";
    assert!(browser.run(text).await.as_str().unwrap().contains("Who?"));
    browser.click("Replace it with mine").await;
    has(&browser, "[role=status]", "Saved and checked.").await;
    assert_eq!(std::fs::read_to_string(&file).unwrap(), TALK.replace("Who are you?", "Who?"));
    std::fs::write(&file, &theirs).unwrap();
    browser.run(&change.replace("'Who is there?', 'Who?'", "'Who?', 'Who now?'")).await;
    browser.click("Save").await;
    browser.click("Show the script as it is now, without my changes").await;
    browser.vanishes(".problem").await;
    assert_eq!(browser.run(text).await, theirs);
}
