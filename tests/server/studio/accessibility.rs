//! axe-core finds nothing on any view, in both languages, light and dark, and on a phone.

use serde_json::json;

use crate::browser::{Browser, Look, PHONE};
use crate::pages::axe::Axe;
use crate::process::Home;
use crate::served::{Serving, said};
use crate::server::{Server, ServerBehavior};
use crate::studio::author::{WIDE, answer, has, open_compared, open_session};
use crate::visitor::{make_link, model_config};

const SCRIPT: &str = "
session:
  session_id: seen
  session_name: What is seen
  declare:
    - { var: name, type: string }
    - { var: note, type: string }
    - { var: risk, type: string, enum: [low, high] }
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          actions:
            - { action_type: ai_ask, action_id: ask_name, config: { content: 'Who are you?', max_rounds: 4, exit: never, output: [{ get: name }] } }
            - action_type: approval
              action_id: review
              config: { prompt: 'Is that right?', form: [{ get: note, define: Why, required: true }, { get: risk }], rewind_to: ask_name }
";

async fn every_view(look: Look, is_chinese: bool) {
    let Some(browser) = Browser::start(look).await else { return };
    let Some(axe) = Axe::read() else { return };
    let home = Home::new();
    let numbered = said("And then?").replace("还不完整", "3/10").replace("投入", "7/10");
    let replies = [numbered.clone(), "rubbish".to_owned(), "rubbish".to_owned(), numbered].map(ServerBehavior::Answers);
    let model = Server::start(replies.to_vec());
    home.put("bcc-script.toml", model_config(&model));
    home.put("scripts/seen.yaml", SCRIPT.replace("max_rounds: 4", "max_rounds: 4, monitor: off"));
    home.put("scripts/wrong.yaml", SCRIPT.replace("seen", "wrong").replace("ai_ask", "ai_aks"));
    let serving = Serving::with(&home, &["--trust"]);
    let id = serving.session("seen").await;
    browser.open(&format!("{}/studio", serving.url)).await;
    browser.element(".script .failed").await;
    if is_chinese {
        browser.click("中文").await;
        browser.element("html[lang=zh-CN] .script .failed").await;
    }
    axe.check(&browser, "scripts").await;
    browser.open(&format!("{}/studio#/sessions", serving.url)).await;
    browser.element("table a").await;
    axe.check(&browser, "sessions").await;
    make_link(&serving, json!({ "script": "seen", "kind": "open", "expires_at": "2030-01-01" })).await;
    browser.open(&format!("{}/studio#/links", serving.url)).await;
    browser.element(".script .revoke").await;
    browser.run("document.querySelector('details').open = true").await;
    axe.check(&browser, "links").await;
    browser.open(&format!("{}/studio#/scripts/scripts%2Fwrong.yaml", serving.url)).await;
    browser.element(".diagnostic .fix").await;
    axe.check(&browser, "script").await;
    open_session(&browser, &serving, &id).await;
    for text in ["one", "two", "three", "four"] {
        answer(&browser, text).await;
        has(&browser, ".message.user .text", text).await;
        if text != "four" {
            browser.element(".composer button:not(:disabled)").await;
        }
    }
    has(&browser, ".node.waiting .name", "review").await;
    browser.run("document.querySelector('.talk-list').scrollTop = 250").await;
    axe.check(&browser, "talk").await;
    let show = async |number: usize| {
        let script = format!("document.querySelectorAll('.panes-nav button')[{number}].click()");
        browser.run(&script).await;
    };
    show(0).await;
    axe.check(&browser, "tree").await;
    show(2).await;
    for (tab, seen) in [
        ("calls", ".detail .raw"),
        ("variables", "variables-tab > *"),
        ("requests", ".request select"),
        ("metrics", "studio-chart canvas"),
        ("monitors", "monitors-tab > *"),
        ("plan", "plan-tab > *"),
        ("notebook", "notebook-tab > *"),
        ("workflow", ".step"),
    ] {
        browser.run(&format!("document.getElementById('tab-{tab}').click()")).await;
        browser.element(seen).await;
        axe.check(&browser, tab).await;
    }
    show(1).await;
    browser.run("document.querySelector('.timeline button').click()").await;
    browser.element(".past-note").await;
    axe.check(&browser, "earlier turn").await;
    for (number, view) in [(0, "begin again"), (1, "compare")] {
        browser
            .run(&format!("[...document.querySelectorAll('.timeline > button:not(.step)')].at({number} - 2).click()"))
            .await;
        browser.element("dialog[open] .again-plan p").await;
        axe.check(&browser, view).await;
        browser.run("document.querySelector('dialog').close()").await;
    }
    let other = serving.session("seen").await;
    open_compared(&browser, &serving, &id, &other).await;
    browser.run("document.querySelector('.said button[aria-expanded=false]').click()").await;
    browser.element(".said .detail").await;
    axe.check(&browser, "comparison").await;
    browser.open(&format!("{}/studio#/sessions", serving.url)).await;
    browser.element("table a").await;
    browser.run("document.querySelector('.buttons button:last-of-type').click()").await;
    browser.element("dialog[open] input[type=checkbox]").await.click().await.unwrap();
    axe.check(&browser, "data set").await;
}

#[tokio::test]
async fn every_view_of_the_studio_is_accessible() {
    every_view(WIDE, false).await;
}

#[tokio::test]
async fn every_view_of_the_studio_is_accessible_in_chinese_in_the_dark() {
    every_view(Look { is_dark: true, ..WIDE }, true).await;
}

#[tokio::test]
async fn every_view_of_the_studio_is_accessible_on_a_phone() {
    every_view(PHONE, false).await;
}

#[tokio::test]
async fn every_view_of_the_studio_is_accessible_on_a_phone_in_chinese_in_the_dark() {
    every_view(Look { is_dark: true, ..PHONE }, true).await;
}
