//! The scripts in `scripts/` run to their end on the offline responder, whatever a person answers; and the example that embeds
//! the library says what its comment promises.

use crate::talks;
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
    /// What they go on saying when the answers are used up; without it, the session must end with the last answer.
    then: Option<String>,
    /// Parts of what the AI says, in this order.
    #[serde(default)]
    hears: Vec<String>,
    /// Parts that the AI must not say.
    #[serde(default)]
    never: Vec<String>,
    /// A part of the last message.
    ends: String,
}

fn root() -> PathBuf {
    PathBuf::from(crate::ROOT)
}

async fn run(script: &Path, person: &Person) {
    let talk = talks::offline(script, &person.answers, person.then.as_deref()).await;
    let who = format!("{} with {}", script.file_name().unwrap().to_string_lossy(), person.who);
    let said = talk.said();
    let transcript = said.join("\n");
    assert_eq!(talk.pause, SessionPause::Completed, "{who} after {} answers:\n{transcript}", talk.answers);
    assert!(talk.answers >= person.answers.len(), "{who}: answers are left over:\n{transcript}");
    let mut rest = transcript.as_str();
    for part in &person.hears {
        let at = rest.find(part.as_str()).unwrap_or_else(|| panic!("{who} does not hear {part:?}:\n{transcript}"));
        rest = &rest[at + part.len()..];
    }
    for part in &person.never {
        assert!(!transcript.contains(part.as_str()), "{who} hears {part:?}:\n{transcript}");
    }
    let last = said.last().unwrap();
    assert!(last.contains(&person.ends), "{who} hears last: {last}");
}

#[tokio::test]
async fn every_script_comes_to_its_end_whatever_is_answered() {
    let mut scripts: Vec<String> = fs::read_dir(root().join("scripts"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        // Beside the scripts lie their tests.
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
    let (said, completed) = embed::talk(&file, &["Ann", "0 times"]).await.unwrap();
    let expected = [
        "ai: Welcome! What is your name?",
        "user: Ann",
        "ai: How often have you been here, Ann?",
        "user: 0 times",
        "ai: Then let me show you around.",
    ];
    assert_eq!(said, expected);
    assert!(completed);
    let (said, completed) = embed::talk(&file, &["Ann"]).await.unwrap();
    assert_eq!((said.len(), completed), (3, false));
}
