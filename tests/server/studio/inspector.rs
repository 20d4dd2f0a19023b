//! Lists of the inspector that are longer than what is drawn at first.

use serde_json::json;

use crate::browser::Browser;
use crate::process::Home;
use crate::served::{Serving, TALK, said};
use crate::server::{Server, ServerBehavior};
use crate::studio::author::{WIDE, has, open_session, open_tab, until};
use crate::studio::sessions::long_script;
use crate::visitor::model_config;

#[tokio::test]
async fn all_earlier_values_of_a_variable_can_be_seen() {
    let Some(browser) = Browser::start(WIDE).await else { return };
    let home = Home::new();
    home.put("scripts/long.yaml", long_script(60));
    let set = |text: &str| {
        format!(
            "          actions:\n            - {{ action_type: set, action_id: note, config: {{ values: {{ greeting: '{text}' }} }} }}\n"
        )
    };
    let long = format!("{}THE END", "long ".repeat(700));
    let twice = set(&long) + set("Hello.").trim_start_matches("          actions:\n").replace("note", "again").as_str();
    home.put("scripts/talk.yaml", TALK.replacen("          actions:\n", &twice, 1));
    let serving = Serving::start(&home);
    let id = serving.session("long").await;
    open_session(&browser, &serving, &id).await;
    open_tab(&browser, "variables").await;
    has(&browser, ".variable summary", "59 earlier values").await;
    browser.run("document.querySelector('.variable:has(details)').id = 'first'").await;
    browser.run("document.querySelector('#first details').open = true").await;
    let listed = "return document.querySelectorAll('#first details li').length";
    assert_eq!(browser.run(listed).await, 50);
    browser.element("#first details > button").await.click().await.unwrap();
    browser.vanishes("#first details > button").await;
    assert_eq!(browser.run(listed).await, 59);
    // A long one is shown in part, and on demand as a whole.
    let id = serving.session("talk").await;
    open_session(&browser, &serving, &id).await;
    open_tab(&browser, "variables").await;
    browser.click_summary("1 earlier value").await;
    browser.click("Show all 3,507 characters").await;
    has(&browser, ".variable details .value", "THE END").await;
}

#[tokio::test]
async fn all_rounds_with_metrics_can_be_seen() {
    let Some(browser) = Browser::start(WIDE).await else { return };
    let home = Home::new();
    let model = Server::start(vec![ServerBehavior::Answers(said("And then?"))]);
    home.put("bcc-script.toml", model_config(&model));
    let script = TALK.replace("'Who are you?'", "'Who are you?', monitor: off, max_rounds: 50, exit: never");
    home.put("scripts/talk.yaml", script.replace("content: '{{ greeting }}'", "delivery: verbatim, content: Hello."));
    let serving = Serving::with(&home, &["--trust"]);
    let id = serving.session("talk").await;
    for number in 0..42 {
        serving.say(&id, &format!("{number}")).await;
    }
    open_session(&browser, &serving, &id).await;
    open_tab(&browser, "metrics").await;
    has(&browser, "metrics-tab h2", "Rounds 42").await;
    let listed = "return document.querySelectorAll('metrics-tab .round').length";
    assert_eq!(browser.run(listed).await, json!(40));
    browser.click("Show more").await;
    until(&browser, "document.querySelectorAll('metrics-tab .round').length === 42").await;
    browser.vanishes("metrics-tab button.quiet").await;
}
