//! Requests that fail: what is not known is not shown as a result, and can be asked for again.

use crate::browser::Browser;
use crate::process::Home;
use crate::served::{Serving, TALK};
use crate::studio::author::{WIDE, fail, has, open_failing};

const LOST: &str = "The server cannot be reached.";

fn project() -> Home {
    let home = Home::new();
    home.put("scripts/talk.yaml", TALK);
    home
}

/// Replaces a text in the script that is edited.
async fn edit(browser: &Browser, before: &str, after: &str) {
    let change = format!(
        "const area = document.querySelector('textarea.code'); area.value = area.value.replace('{before}', '{after}'); \
         area.dispatchEvent(new Event('input'))"
    );
    browser.run(&change).await;
}

#[tokio::test]
async fn a_check_that_could_not_be_made_is_no_error_of_the_script() {
    let Some(browser) = Browser::start(WIDE).await else { return };
    let home = project();
    let serving = Serving::start(&home);
    open_failing(&browser, &format!("{}/studio#/scripts", serving.url), &["/v1/scripts"]).await;
    has(&browser, ".problem", LOST).await;
    // The list is read, and its scripts cannot be checked.
    fail(&browser, &["/v1/scripts/"]).await;
    browser.click("Try again").await;
    has(&browser, ".script .problem", LOST).await;
    browser.vanishes(".script .status").await;
    browser.element(".script button.main:not(:disabled)").await;
    fail(&browser, &[]).await;
    browser.click("Try again").await;
    has(&browser, ".script .status", "No problems").await;
    browser.vanishes(".problem").await;
}

#[tokio::test]
async fn the_editor_reads_and_checks_a_script_again() {
    let Some(browser) = Browser::start(WIDE).await else { return };
    let home = project();
    let serving = Serving::start(&home);
    let address = format!("{}/studio#/scripts/scripts%2Ftalk.yaml", serving.url);
    open_failing(&browser, &address, &["/v1/scripts/"]).await;
    has(&browser, ".problem", LOST).await;
    fail(&browser, &[]).await;
    browser.click("Try again").await;
    has(&browser, ".editor-page .status", "No problems").await;
    browser.vanishes(".problem").await;
    // It is stored, and its check fails.
    edit(&browser, "Who are you?", "Who is there?").await;
    fail(&browser, &["/v1/scripts/"]).await;
    browser.click("Save").await;
    has(&browser, ".problem", LOST).await;
    has(&browser, ".problems .hint", "The text has changed since this check.").await;
    fail(&browser, &[]).await;
    browser.click("Try again").await;
    browser.vanishes(".problem").await;
    has(&browser, ".problems .hint", "No problems").await;
}

#[tokio::test]
async fn a_save_whose_response_was_lost_is_no_change_of_somebody_else() {
    let Some(browser) = Browser::start(WIDE).await else { return };
    let home = Home::new();
    let file = home.put("scripts/talk.yaml", TALK);
    let serving = Serving::start(&home);
    browser.open(&format!("{}/studio#/scripts/scripts%2Ftalk.yaml", serving.url)).await;
    has(&browser, ".status", "No problems").await;
    let lose = "const real = window.fetch; window.fetch = async (url, options) => { const response = await real(url, options); \
        if (options.method !== 'PUT') return response; window.fetch = real; throw new TypeError('lost'); }";
    // The same text is saved again, and then one that was changed in the meantime.
    for [before, after, then] in
        [["Who are you?", "Who is there?", "Who is there?"], ["Who is there?", "Who is it?", "Is anybody there?"]]
    {
        edit(&browser, before, after).await;
        browser.run(lose).await;
        browser.click("Save").await;
        has(&browser, ".problem", LOST).await;
        edit(&browser, after, then).await;
        browser.click("Save").await;
        has(&browser, "[role=status]", "Saved and checked.").await;
        browser.vanishes(".problem").await;
        assert_eq!(std::fs::read_to_string(&file).unwrap(), TALK.replace("Who are you?", then));
    }
    // The next one is a change of this version.
    edit(&browser, "Is anybody there?", "And you?").await;
    browser.click("Save").await;
    has(&browser, "[role=status]", "Saved and checked.").await;
    assert_eq!(std::fs::read_to_string(&file).unwrap(), TALK.replace("Who are you?", "And you?"));
}

#[tokio::test]
async fn links_are_made_after_scripts_or_links_could_not_be_read() {
    let Some(browser) = Browser::start(WIDE).await else { return };
    let home = project();
    let serving = Serving::start(&home);
    let made = serving.post("/v1/links", serde_json::json!({ "script": "talk", "kind": "open" })).await;
    assert_eq!(made.status, 201, "{made:?}");
    open_failing(&browser, &format!("{}/studio#/links", serving.url), &["/v1/scripts", "/v1/links"]).await;
    has(&browser, ".problem", LOST).await;
    // What could be read is shown, and what could not is said.
    fail(&browser, &["/v1/scripts"]).await;
    browser.click("Try again").await;
    has(&browser, ".script .status", "valid").await;
    has(&browser, ".problem", LOST).await;
    fail(&browser, &[]).await;
    browser.click("Try again").await;
    browser.element("select[name=script] option").await;
    browser.vanishes(".problem").await;
    browser.click("Make a link").await;
    has(&browser, ".made", "Keep its address").await;
    // One is revoked, and the list cannot be read after that.
    fail(&browser, &["/v1/links"]).await;
    browser.click("Revoke").await;
    browser.accept().await;
    has(&browser, ".problem", LOST).await;
    fail(&browser, &[]).await;
    browser.click("Try again").await;
    has(&browser, ".script .status", "revoked").await;
}
