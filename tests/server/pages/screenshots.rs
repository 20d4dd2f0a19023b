//! Pictures of the page, for people: `BCC_SCREENSHOTS=FOLDER cargo test --test server screenshots -- --ignored`.

use std::path::PathBuf;

use serde_json::json;

use crate::browser::{Browser, DESKTOP, Look, PHONE};
use crate::pages::accessibility::VISIT_ZH;
use crate::pages::conversations::VISIT;
use crate::process::Home;
use crate::served::Serving;
use crate::visitor::make_link;

#[tokio::test]
#[ignore = "writes pictures, which people look at"]
async fn screenshots() {
    let folder = PathBuf::from(std::env::var_os("BCC_SCREENSHOTS").expect("BCC_SCREENSHOTS names a folder"));
    let dark = |look: Look| Look { is_dark: true, ..look };
    let picture = Look { width: 720, height: 620, ..DESKTOP };
    for (name, look, script, words) in [
        ("light", picture, VISIT, ["Begin", "Ann", "mixed"]),
        ("dark", dark(picture), VISIT, ["Begin", "Ann", "mixed"]),
        ("phone", PHONE, VISIT, ["Begin", "Ann", "mixed"]),
        ("phone-dark-zh", dark(PHONE), VISIT_ZH, ["开始", "小林", "时好时坏"]),
        ("zh", picture, VISIT_ZH, ["开始", "小林", "时好时坏"]),
    ] {
        let Some(browser) = Browser::start(look).await else { return };
        let home = Home::new();
        home.put("scripts/visit.yaml", script);
        let serving = Serving::start(&home);
        let consent =
            json!({ "text": "We keep what you say for twelve months.\n\nOnly our team reads it.", "language": "en" });
        let path = make_link(&serving, json!({ "script": "visit", "kind": "open", "consent": consent })).await;
        let save = async |view: &str| {
            std::fs::write(folder.join(format!("{name}-{view}.png")), browser.screenshot().await).unwrap();
        };
        browser.open(&format!("{}{path}", serving.url)).await;
        browser.element("#agree").await;
        save("consent").await;
        browser.element("#agree").await.click().await.unwrap();
        browser.click(words[0]).await;
        browser.until_messages(2).await;
        browser.say(words[1]).await;
        browser.until_messages(4).await;
        browser.element(".options:not([hidden])").await;
        save("options").await;
        browser.element("summary").await.click().await.unwrap();
        save("menu").await;
        browser.element("summary").await.click().await.unwrap();
        browser.click(words[2]).await;
        browser.until_messages(6).await;
        save("next").await;
    }
}
