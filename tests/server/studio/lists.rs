//! The list of sessions: filters in its address, pages, and what is seen on a narrow screen.

use serde_json::json;

use crate::browser::{Browser, Look, PHONE};
use crate::process::Home;
use crate::served::{Serving, TALK};
use crate::studio::author::{WIDE, choose, has, until};
use crate::studio::sessions::long_script;

const VALUES: &str =
    "return [...document.querySelectorAll('.filters input, .filters select')].map((field) => field.value)";

#[tokio::test]
async fn the_filters_of_a_list_are_seen_kept_in_its_address_and_named_by_its_data_set() {
    let Some(browser) = Browser::start(WIDE).await else { return };
    let home = Home::new();
    home.put("scripts/other.yaml", TALK.replace("session_id: talk", "session_id: other"));
    home.put("scripts/talk.yaml", TALK);
    let serving = Serving::start(&home);
    serving.session("talk").await;
    let id = serving.session("other").await;
    browser.open(&format!("{}/studio", serving.url)).await;
    browser.element("a.button[href='#/sessions?script=other']").await.click().await.unwrap();
    until(&browser, "document.querySelectorAll('tbody tr').length === 1").await;
    assert_eq!(browser.run(VALUES).await, json!(["other", "", "", ""]));
    choose(&browser, "select[name=status]", "waiting_input").await;
    until(&browser, "location.hash === '#/sessions?script=other&status=waiting_input'").await;
    browser.click("Data set").await;
    has(&browser, "dialog[open] .selection", "Script: other · Status: waits for an answer").await;
    browser.click("Close").await;
    // Both ways back lead to the same list.
    for back in ["history.back()", "document.querySelector('a.back').click()"] {
        browser.element(&format!("tbody a[href='#/sessions/{id}']")).await.click().await.unwrap();
        browser.element("talk-pane .message").await;
        browser.run(back).await;
        until(&browser, "document.querySelectorAll('tbody tr').length === 1").await;
        assert_eq!(browser.run(VALUES).await, json!(["other", "waiting_input", "", ""]), "{back}");
    }
    browser.element("nav a[href='#/sessions']").await.click().await.unwrap();
    until(&browser, "document.querySelectorAll('tbody tr').length === 2").await;
    assert_eq!(browser.run(VALUES).await, json!(["", "", "", ""]));
    browser.click("Data set").await;
    has(&browser, "dialog[open] .selection", "All").await;
}

/// Holds the next request for sessions until `lose` is called, after which it fails.
const HOLD: &str = "const real = window.fetch; window.lose = null; window.fetch = (...all) => \
    !window.lose && all[0].startsWith('/v1/sessions?') ? new Promise((_, no) => (window.lose = () => no(new TypeError('lost')))) : real(...all)";

#[tokio::test]
async fn a_list_that_was_extended_stays_so_and_only_the_newest_request_counts() {
    let Some(browser) = Browser::start(WIDE).await else { return };
    let home = Home::new();
    home.put("scripts/talk.yaml", TALK);
    let serving = Serving::start(&home);
    for _ in 0..52 {
        serving.session("talk").await;
    }
    browser.open(&format!("{}/studio#/sessions", serving.url)).await;
    until(&browser, "document.querySelectorAll('tbody tr').length === 50").await;
    browser.click("Show more").await;
    until(&browser, "document.querySelectorAll('tbody tr').length === 52").await;
    // It is not read again from its beginning when the tab is shown again.
    browser.run(HOLD).await;
    browser.run("document.dispatchEvent(new Event('visibilitychange'))").await;
    assert_eq!(browser.run("return window.lose").await, json!(null));
    // A request fails after a later one has succeeded.
    choose(&browser, "select[name=status]", "failed").await;
    until(&browser, "window.lose").await;
    choose(&browser, "select[name=status]", "completed").await;
    has(&browser, ".empty", "There are no sessions.").await;
    let failed = "const done = arguments[0]; window.lose(); \
        requestAnimationFrame(() => requestAnimationFrame(() => done(document.querySelector('.problem') === null)))";
    assert_eq!(browser.run_async(failed).await, true);
}

#[tokio::test]
async fn no_number_is_broken_on_a_narrow_screen() {
    let Some(browser) = Browser::start(Look { width: 360, ..PHONE }).await else { return };
    let home = Home::new();
    home.put("scripts/long.yaml", long_script(30));
    let serving = Serving::start(&home);
    serving.session("long").await;
    browser.open(&format!("{}/studio#/sessions", serving.url)).await;
    browser.click("中文").await;
    browser.element("html[lang=zh-CN] tbody tr").await;
    let lines = "return [...document.querySelectorAll('td.number')].map((cell) => { const range = document.createRange(); \
        range.selectNodeContents(cell); const tops = new Set([...range.getClientRects()].map(({ top }) => Math.round(top))); \
        return [cell.textContent.length > 3, tops.size]; })";
    assert_eq!(browser.run(lines).await, json!([[false, 1], [true, 1]]));
    // The page is as wide as the screen; the table is moved inside it.
    let fits = "return [document.documentElement.scrollWidth <= innerWidth, document.querySelector('tbody a').getClientRects().length]";
    assert_eq!(browser.run(fits).await, json!([true, 1]));
}
