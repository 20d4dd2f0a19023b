//! axe-core finds nothing on any view, in both languages, light and dark, and on a phone.

use serde_json::json;

use crate::browser::{Browser, DESKTOP, Look, PHONE};
use crate::pages::axe::Axe;
use crate::pages::conversations::VISIT;
use crate::process::Home;
use crate::served::Serving;
use crate::visitor::make_link;

/// The same conversation in Chinese.
pub const VISIT_ZH: &str = "
session:
  session_id: visit
  session_name: 最近还好吗
  declare:
    - { var: name, type: string }
    - { var: mood, type: string, enum: [还不错, 时好时坏, 不太好] }
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          actions:
            - { action_type: ai_say, action_id: hello, config: { content: 您好，欢迎您。不着急，慢慢说。 } }
            - { action_type: ai_ask, action_id: ask_name, config: { content: 我该怎么称呼您？, output: [{ get: name }] } }
            - { action_type: ai_ask, action_id: ask_mood, config: { content: '{{ name }}，您今天感觉怎么样？', output: [{ get: mood }] } }
            - { action_type: ai_say, action_id: bye, config: { content: '谢谢您，{{ name }}。' } }
";

async fn every_view(look: Look, script: &str, words: [&str; 7]) {
    let [begin, name, option, question, withdraw, erased, ended] = words;
    let Some(browser) = Browser::start(look).await else { return };
    let Some(axe) = Axe::read() else { return };
    let home = Home::new();
    home.put("scripts/visit.yaml", script);
    let serving = Serving::start(&home);
    let open = async |path: &str| browser.open(&format!("{}{path}", serving.url)).await;
    open("/t/none").await;
    browser.element(".card .notice").await;
    axe.check(&browser, "unknown link").await;
    let consent = json!({ "text": "What we keep, and for how long.", "language": "en" });
    let path = make_link(&serving, json!({ "script": "visit", "kind": "open", "consent": consent })).await;
    open(&path).await;
    browser.element("#agree").await;
    axe.check(&browser, "consent").await;
    browser.element("#agree").await.click().await.unwrap();
    browser.click(begin).await;
    browser.until_messages(2).await;
    axe.check(&browser, "conversation").await;
    browser.say(name).await;
    browser.until_messages(4).await;
    browser.element(".options:not([hidden])").await;
    axe.check(&browser, "quick replies").await;
    browser.element("summary").await.click().await.unwrap();
    axe.check(&browser, "menu").await;
    browser.click(withdraw).await;
    browser.element("dialog[open]").await;
    axe.check(&browser, question).await;
    browser.element("dialog .main").await.click().await.unwrap();
    browser.shows(erased).await;
    axe.check(&browser, "erased").await;
    let path = make_link(&serving, json!({ "script": "visit", "kind": "open" })).await;
    open(&path).await;
    browser.element("form.card").await;
    axe.check(&browser, "beginning").await;
    browser.click(begin).await;
    browser.until_messages(2).await;
    browser.say(name).await;
    browser.click(option).await;
    for answer in ["2026-11-01", "7"] {
        if script == VISIT {
            browser.say(answer).await;
        }
    }
    browser.shows(ended).await;
    axe.check(&browser, "end").await;
}

const ENGLISH: [&str; 7] = [
    "Begin",
    "Ann",
    "mixed",
    "withdrawal",
    "Withdraw my consent",
    "The conversation is erased.",
    "This conversation has ended.",
];

const CHINESE: [&str; 7] = ["开始", "小林", "时好时坏", "撤回", "撤回同意", "对话已删除。", "对话已结束"];

#[tokio::test]
async fn every_view_is_accessible_in_english() {
    every_view(DESKTOP, VISIT, ENGLISH).await;
}

#[tokio::test]
async fn every_view_is_accessible_in_chinese_in_the_dark() {
    every_view(Look { is_dark: true, ..DESKTOP }, VISIT_ZH, CHINESE).await;
}

#[tokio::test]
async fn every_view_is_accessible_on_a_phone_in_the_dark() {
    every_view(Look { is_dark: true, ..PHONE }, VISIT, ENGLISH).await;
}

#[tokio::test]
async fn every_view_is_accessible_on_a_phone_in_chinese() {
    every_view(PHONE, VISIT_ZH, CHINESE).await;
}
