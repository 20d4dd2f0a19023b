//! Links that an author makes, shares and revokes on the page.

use crate::browser::Browser;
use crate::process::Home;
use crate::served::{Serving, TALK};
use crate::studio::author::{WIDE, has};

#[tokio::test]
async fn a_link_is_made_used_and_revoked() {
    let Some(browser) = Browser::start(WIDE).await else { return };
    let home = Home::new();
    home.put("scripts/talk.yaml", TALK);
    let serving = Serving::start(&home);
    browser.open(&format!("{}/studio#/links", serving.url)).await;
    browser.shows("There are no links.").await;
    browser.element("select[name=script] option").await;
    // What the script does not declare is refused, and what was written stays.
    browser.click_summary("Variables and consent").await;
    browser.element("[name=variables]").await.send_keys("mood: 3\nname: Ann").await.unwrap();
    browser.element("[name=consent]").await.send_keys("We keep what you say.").await.unwrap();
    browser.click("Make a link").await;
    has(&browser, ".link-form .problem", "mood").await;
    let field = browser.element("[name=variables]").await;
    field.clear().await.unwrap();
    field.send_keys("name Ann").await.unwrap();
    browser.click("Make a link").await;
    has(&browser, ".link-form .problem", "name Ann").await;
    field.clear().await.unwrap();
    field.send_keys("name: Ann\nname: Bob").await.unwrap();
    browser.click("Make a link").await;
    has(&browser, ".link-form .problem", "Two lines have this name: name").await;
    field.clear().await.unwrap();
    field.send_keys("name: 12345678901234567890").await.unwrap();
    browser.click("Make a link").await;
    has(&browser, ".made", "Keep its address").await;
    let address = browser.run("return document.querySelector('.made input').value").await;
    let address = address.as_str().unwrap().to_owned();
    assert!(address.starts_with(&format!("{}/t/", serving.url)), "{address}");
    has(&browser, ".script", "with consent").await;
    has(&browser, ".script .hint", "0 conversations").await;
    browser.open_tab(&address).await;
    browser.shows("We keep what you say.").await;
    browser.element("#agree").await.click().await.unwrap();
    browser.click("Begin").await;
    browser.until_messages(2).await;
    browser.switch(0).await;
    browser.reload().await;
    browser.click_summary("1 conversation").await;
    // As it was written, and not as a number of JavaScript.
    let session = browser.element(".script details a").await.attr("href").await.unwrap().unwrap();
    assert!(session.starts_with("#/sessions/talk-"), "{session}");
    let id = session.trim_start_matches("#/sessions/");
    let variables = serving.get(&format!("/v1/sessions/{id}/variables")).await.text;
    assert!(variables.contains("12345678901234567890"), "{variables}");
    // The address is shown to who made the link, once.
    browser.vanishes(".made").await;
    browser.click("Revoke").await;
    browser.accept().await;
    has(&browser, ".script .status", "revoked").await;
    browser.vanishes(".script .revoke").await;
    browser.switch(1).await;
    browser.reload().await;
    browser.shows("Who are you?").await;
    browser.vanishes("form.answer:not([hidden]) button[type=submit]:not(:disabled)").await;
}
