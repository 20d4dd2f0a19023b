//! Tests that the scripts in `scripts/` run to their end with the offline responder, whatever a person answers, and that the example of
//! embedding does what its comment says.

use crate::offline_conversation;
#[path = "../../examples/embed.rs"]
mod embed;

use std::fs;
use std::path::{Path, PathBuf};

use bcc_runtime::run::session::SessionPause;
use serde::Deserialize;

/// A file of `tests/people/`: one script with several people who talk to it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Cases {
    script: String,
    people: Vec<Person>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Person {
    who: String,
    #[serde(default)]
    answers: Vec<String>,
    /// The answer to each question after `answers`; without it, the session must end with the last answer.
    then: Option<String>,
    /// Parts of the AI's messages, in this order.
    #[serde(default)]
    hears: Vec<String>,
    /// Parts that the AI's messages must not contain.
    #[serde(default)]
    never: Vec<String>,
    /// A part of the last message.
    ends: String,
}

fn root() -> PathBuf {
    PathBuf::from(crate::ROOT)
}

async fn run(script: &Path, person: &Person) {
    let conversation = offline_conversation::run(script, &person.answers, person.then.as_deref()).await;
    let label = format!("{} with {}", script.file_name().unwrap().to_string_lossy(), person.who);
    let messages = conversation.messages();
    let transcript = messages.join("\n");
    assert_eq!(
        conversation.pause,
        SessionPause::Completed,
        "{label} after {} answers:\n{transcript}",
        conversation.answers
    );
    assert!(conversation.answers >= person.answers.len(), "{label}: answers are left over:\n{transcript}");
    let mut rest = transcript.as_str();
    for part in &person.hears {
        let at = rest.find(part.as_str()).unwrap_or_else(|| panic!("{label} does not hear {part:?}:\n{transcript}"));
        rest = &rest[at + part.len()..];
    }
    for part in &person.never {
        assert!(!transcript.contains(part.as_str()), "{label} hears {part:?}:\n{transcript}");
    }
    let last = messages.last().unwrap();
    assert!(last.contains(&person.ends), "{label} hears last: {last}");
}

#[tokio::test]
async fn every_script_completes_with_any_answers() {
    let mut scripts: Vec<String> = fs::read_dir(root().join("scripts"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        // The tests of the scripts are in the same folder.
        .filter(|name| name.ends_with(".yaml"))
        .collect();
    scripts.sort();
    let mut files: Vec<PathBuf> =
        fs::read_dir(root().join("tests/people")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let mut tested = Vec::new();
    for file in files {
        let cases: Cases = serde_yaml::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
        assert!(cases.people.len() >= 5, "{}", file.display());
        for person in &cases.people {
            run(&root().join("scripts").join(&cases.script), person).await;
        }
        tested.push(cases.script);
    }
    assert_eq!(tested, scripts);
}

#[tokio::test]
async fn the_embedding_example_talks() {
    let file = root().join("examples/embed.yaml");
    let (messages, completed) = embed::talk(&file, &["Ann", "0 times"]).await.unwrap();
    let expected = [
        "ai: Welcome! What is your name?",
        "user: Ann",
        "ai: How often have you been here, Ann?",
        "user: 0 times",
        "ai: Then let me show you around.",
    ];
    assert_eq!(messages, expected);
    assert!(completed);
    let (messages, completed) = embed::talk(&file, &["Ann"]).await.unwrap();
    assert_eq!((messages.len(), completed), (3, false));
}
