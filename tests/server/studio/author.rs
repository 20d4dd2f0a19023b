//! What an author does on the page.

use serde_json::json;

use crate::browser::{Browser, Look};
use crate::served::Serving;

/// Wide enough for three panes.
pub const WIDE: Look = Look { width: 1440, height: 900, is_phone: false, is_dark: false };

/// Opens a page of the studio whose requests for what is under these paths fail, until [`fail`] says otherwise.
pub async fn open_failing(browser: &Browser, address: &str, paths: &[&str]) {
    let failing = format!(
        "window.failing = {}; const real = window.fetch; window.fetch = (url, options) => \
         !options.method && window.failing.some((path) => url.startsWith(path)) ? Promise.reject(new TypeError('lost')) : real(url, options)",
        json!(paths)
    );
    browser.run_before_pages(&failing).await;
    browser.open(address).await;
}

/// Lets the requests for what is under these paths fail, and no others.
pub async fn fail(browser: &Browser, paths: &[&str]) {
    browser.run(&format!("window.failing = {}", json!(paths))).await;
}

/// Opens a session, and waits until it is shown.
pub async fn open_session(browser: &Browser, serving: &Serving, id: &str) {
    browser.open(&format!("{}/studio#/sessions/{id}", serving.url)).await;
    browser.element("talk-pane .message").await;
}

/// Opens the comparison of two sessions, and waits until it is shown.
pub async fn open_compared(browser: &Browser, serving: &Serving, one: &str, other: &str) {
    browser.open(&format!("{}/studio#/compare/{one}/{other}", serving.url)).await;
    browser.element(".said .message").await;
}

/// Chooses in a list when it has this value.
pub async fn choose(browser: &Browser, css: &str, value: &str) {
    browser.element(&format!("{css}:not(:disabled) option[value='{value}']")).await;
    let change = format!(
        "const list = document.querySelector({}); list.value = {}; list.dispatchEvent(new Event('change'))",
        json!(css),
        json!(value)
    );
    browser.run(&change).await;
}

/// Opens a tab of the inspector.
pub async fn open_tab(browser: &Browser, name: &str) {
    browser.element(&format!("#tab-{name}")).await.click().await.unwrap();
    browser.element(&format!("#tab-{name}[aria-selected=true]")).await;
}

/// Answers in the talk.
pub async fn answer(browser: &Browser, text: &str) {
    // The answer before has been sent.
    browser.element("#answer:placeholder-shown").await.send_keys(text).await.unwrap();
    browser.element(".composer button:not(:disabled)").await.click().await.unwrap();
}

/// Waits until an element with this text matches `css`.
pub async fn has(browser: &Browser, css: &str, text: &str) {
    let script = format!(
        "const done = arguments[0]; const look = () => [...document.querySelectorAll({})].some((found) => found.textContent.includes({})) \
         ? done(true) : requestAnimationFrame(look); setTimeout(() => done(document.body.innerText), 20000); look();",
        json!(css),
        json!(text)
    );
    let found = browser.run_async(&script).await;
    assert_eq!(found, true, "{css} with {text:?}: the page says {found}");
}

/// Waits until an expression holds in the page.
pub async fn until(browser: &Browser, expression: &str) {
    let script = format!(
        "const done = arguments[0]; const look = () => ({expression}) ? done(true) : requestAnimationFrame(look); \
         setTimeout(() => done(document.body.innerText), 20000); look();"
    );
    let found = browser.run_async(&script).await;
    assert_eq!(found, true, "{expression}: the page says {found}");
}
