//! `run --web`: a conversation in the browser, in one command.

use std::time::Instant;

use crate::process::{Home, Next, Running, TIMEOUT, install_text};
use crate::served::{Serving, TALK};
use crate::visitor::Visitor;

/// The command with a browser that writes the address to a file and ends.
fn started(home: &Home) -> Running {
    let browser = home.path().join("browser.sh");
    install_text(&browser, "#!/bin/sh\nprintf '%s' \"$1\" > address.new && mv address.new address\n");
    let mut command = home.command(["run", "scripts/talk.yaml", "--web", "--var", "greeting=Hi."]);
    command.env("BROWSER", browser);
    Running::start(command)
}

/// The server and the path of the page.
fn served(home: &Home) -> (Serving, String) {
    let running = started(home);
    let Next::Line(line) = running.line_until(Instant::now() + TIMEOUT) else { panic!("{}", running.finish().err) };
    let address = line.strip_prefix("the conversation is at ").unwrap().to_owned();
    let deadline = Instant::now() + TIMEOUT;
    while !home.path().join("address").exists() {
        assert!(Instant::now() < deadline, "the browser is not opened");
        std::thread::yield_now();
    }
    assert_eq!(std::fs::read_to_string(home.path().join("address")).unwrap(), address);
    let (url, token) = address.split_once("/t/").unwrap();
    (Serving::at(running, url), format!("/t/{token}"))
}

#[tokio::test]
async fn the_command_ends_with_the_conversation() {
    let home = Home::new();
    home.put("scripts/talk.yaml", TALK);
    let (serving, path) = served(&home);
    // There is nothing but the page.
    assert_eq!(serving.get("/v1/scripts").await.status, 404);
    let visitor = Visitor::of(&serving, &path, "a");
    assert_eq!(visitor.begin(None).await.status, 200);
    assert_eq!(Visitor::of(&serving, &path, "b").begin(None).await.status, 410);
    assert_eq!(visitor.until("waiting").await["messages"][0]["text"], "Hi.");
    visitor.say("Ann", "1").await;
    visitor.say("tea", "2").await;
    visitor.until("completed").await;
    // The page loads the copy after the end.
    assert!(visitor.get("copy").await.text.contains("Ann likes tea."));
    let finished = serving.finish();
    assert_eq!((finished.code, finished.err.contains("is complete")), (Some(0), true), "{}", finished.err);
}

#[tokio::test]
async fn an_interrupted_conversation_can_be_resumed() {
    let home = Home::new();
    home.put("scripts/talk.yaml", TALK);
    let (serving, path) = served(&home);
    let visitor = Visitor::of(&serving, &path, "a");
    visitor.begin(None).await;
    visitor.say("Ann", "1").await;
    visitor.until("waiting").await;
    serving.terminate();
    let finished = serving.finish();
    assert_eq!(finished.code, Some(130), "{}", finished.err);
    let hint = finished.err.lines().find_map(|line| line.split_once("Resume with: bcc-script ")).unwrap().1;
    let resumed = home.finish(hint.split(' '), "tea\n");
    assert_eq!(resumed.code, Some(0), "{}", resumed.err);
    assert!(resumed.out.contains("Ann likes tea."), "{}", resumed.out);
}
