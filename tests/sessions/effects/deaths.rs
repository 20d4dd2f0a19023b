//! The process dies at any commit: no effect happens more often than it was announced or asked for.

use std::sync::Arc;

use bcc_runtime::run::head::SessionStatus;
use bcc_runtime::run::session::SessionPause;
use bcc_store::contract::Store;
use serde_json::json;

use crate::effects::button::{begin, button, of_actions, press, program, resume, told};
use crate::mortal::{Death, MortalArchive};
use crate::stage::SESSION;

/// How many seeded lives are lived.
const LIVES: u64 = 60;

/// Lives a session of three presses to its end, through every death; says `word` whenever it is asked about one. Gives how
/// often it was said, and what happened.
async fn live(death: Death, name: &str, word: &str, choice: &str) -> (u32, Vec<String>) {
    let presses = (1..=3).map(|number| {
        let mut action = press(name, &json!({ "on_interrupted": choice, "cell": format!("print({number})") }));
        action["action_id"] = json!(format!("press_{number}"));
        action
    });
    let program = program(&of_actions(&json!(presses.collect::<Vec<_>>())));
    let archive = MortalArchive::new(death);
    let shared = || Arc::<MortalArchive>::clone(&archive) as Arc<dyn Store>;
    let mut session = begin(&program, shared()).await;
    let mut said = 0;
    let mut answering: Option<String> = None;
    for _ in 0..1_000 {
        let lived = match answering.clone() {
            Some(id) => archive.mortal(session.answer(word, Some(&id))).await.map(|taken| {
                taken.unwrap();
                answering = None;
            }),
            None => match archive.mortal(session.advance()).await {
                Some(Ok(SessionPause::Waiting)) => {
                    said += 1;
                    // A name of the client's own, which it sends until it knows that it arrived.
                    answering = Some(format!("mine-{said}"));
                    Some(())
                }
                Some(pause) => {
                    pause.unwrap();
                    break;
                }
                None => None,
            },
        };
        if lived.is_none() {
            drop(session);
            let row = archive.session(SESSION).await.unwrap().unwrap();
            if SessionStatus::parse(&row.status).unwrap().is_final() {
                break;
            }
            session = resume(&program, shared()).await;
            // Whoever sees that it goes on knows that the word arrived.
            answering = answering.filter(|_| session.status() == SessionStatus::WaitingInput);
        }
    }
    let row = archive.session(SESSION).await.unwrap().unwrap();
    assert_eq!(row.status, "completed", "{death:?} {word} {choice}");
    let told = told(archive.as_ref()).await;
    // The cells are those of the presses that came to their end, each with its number.
    let cells = archive.cells(SESSION, 0, 99).await.unwrap();
    let pressed = told.iter().filter(|line| line.ends_with(": pressed")).count();
    assert_eq!(cells.len(), pressed);
    assert!(cells.iter().zip(1..).all(|(row, number)| row.number == number));
    (said, told)
}

fn count(told: &[String], what: &str) -> usize {
    told.iter().filter(|line| line.starts_with(what)).count()
}

#[tokio::test]
async fn nothing_is_done_twice_without_a_word() {
    let mut asked = 0;
    for seed in 0..LIVES {
        let name = format!("again-{seed}");
        let (said, told) = live(Death::Sometimes(seed), &name, "again", "ask").await;
        let (started, finished) = (count(&told, "started"), count(&told, "finished"));
        assert_eq!(started, finished, "{told:?}");
        assert!(button(&name).presses() <= 3 + said, "seed {seed}: {told:?}");
        assert!(button(&name).presses() <= u32::try_from(started).unwrap(), "seed {seed}: {told:?}");
        assert_eq!(count(&told, "cell "), 3, "{told:?}");
        asked += said;
    }
    assert!(asked > 10, "the deaths met no effect");
}

#[tokio::test]
async fn what_is_skipped_happens_at_most_once() {
    for death in (0..LIVES).map(Death::Sometimes).chain([Death::Before, Death::After]) {
        for (word, choice) in [("skip", "ask"), ("-", "skip")] {
            let name = format!("skip-{death:?}-{word}");
            let (said, told) = live(death, &name, word, choice).await;
            assert!(button(&name).presses() <= 3, "{death:?}: {told:?}");
            assert_eq!(count(&told, "started"), 3, "{death:?}: {told:?}");
            assert!(choice == "ask" || said == 0);
        }
    }
}
