//! The process dies at any commit: no effect happens more often than it was announced or requested.

use std::sync::Arc;

use bcc_runtime::run::head::SessionStatus;
use bcc_runtime::run::session::SessionPause;
use bcc_store::contract::Store;
use serde_json::json;

use crate::crashing_store::{CrashMode, CrashingStore};
use crate::effects::button::{
    button, event_summaries, press_action, program, resume, session_with_actions, start_session,
};
use crate::test_session::SESSION;

/// The number of seeded runs.
const RUNS: u64 = 60;

/// Runs a session of three presses to its end, through every death, and answers each question about an effect with `answer`. Returns the
/// number of answers and the events.
async fn run_with_deaths(death: CrashMode, name: &str, answer: &str, choice: &str) -> (u32, Vec<String>) {
    let presses = (1..=3).map(|number| {
        let mut action = press_action(name, &json!({ "on_interrupted": choice, "cell": format!("print({number})") }));
        action["action_id"] = json!(format!("press_{number}"));
        action
    });
    let program = program(&session_with_actions(&json!(presses.collect::<Vec<_>>())));
    let store = CrashingStore::new(death);
    let shared = || Arc::<CrashingStore>::clone(&store) as Arc<dyn Store>;
    let mut session = start_session(&program, shared()).await;
    let mut answers = 0;
    let mut pending_id: Option<String> = None;
    for _ in 0..1_000 {
        let survived = match pending_id.clone() {
            Some(id) => store.run_until_crash(session.answer(answer, Some(&id))).await.map(|taken| {
                taken.unwrap();
                pending_id = None;
            }),
            None => match store.run_until_crash(session.advance()).await {
                Some(Ok(SessionPause::Waiting)) => {
                    answers += 1;
                    // An id of the client, which it sends until it knows that the answer arrived.
                    pending_id = Some(format!("mine-{answers}"));
                    Some(())
                }
                Some(pause) => {
                    pause.unwrap();
                    break;
                }
                None => None,
            },
        };
        if survived.is_none() {
            drop(session);
            let row = store.session(SESSION).await.unwrap().unwrap();
            if SessionStatus::parse(&row.status).unwrap().is_final() {
                break;
            }
            session = resume(&program, shared()).await;
            // If the session no longer waits, the answer arrived.
            pending_id = pending_id.filter(|_| session.status() == SessionStatus::WaitingInput);
        }
    }
    let row = store.session(SESSION).await.unwrap().unwrap();
    assert_eq!(row.status, "completed", "{death:?} {answer} {choice}");
    let summaries = event_summaries(store.as_ref()).await;
    // The cells are those of the presses that finished, each with its number.
    let cells = store.cells(SESSION, 0, 99).await.unwrap();
    let pressed = summaries.iter().filter(|line| line.ends_with(": pressed")).count();
    assert_eq!(cells.len(), pressed);
    assert!(cells.iter().zip(1..).all(|(row, number)| row.number == number));
    (answers, summaries)
}

fn count(summaries: &[String], prefix: &str) -> usize {
    summaries.iter().filter(|line| line.starts_with(prefix)).count()
}

#[tokio::test]
async fn nothing_is_repeated_without_an_answer() {
    let mut total_answers = 0;
    for seed in 0..RUNS {
        let name = format!("again-{seed}");
        let (answers, summaries) = run_with_deaths(CrashMode::Sometimes(seed), &name, "again", "ask").await;
        let (started, finished) = (count(&summaries, "started"), count(&summaries, "finished"));
        assert_eq!(started, finished, "{summaries:?}");
        assert!(button(&name).presses() <= 3 + answers, "seed {seed}: {summaries:?}");
        assert!(button(&name).presses() <= u32::try_from(started).unwrap(), "seed {seed}: {summaries:?}");
        assert_eq!(count(&summaries, "cell "), 3, "{summaries:?}");
        total_answers += answers;
    }
    assert!(total_answers > 10, "the deaths met no effect");
}

#[tokio::test]
async fn what_is_skipped_happens_at_most_once() {
    for death in (0..RUNS).map(CrashMode::Sometimes).chain([CrashMode::Before, CrashMode::After]) {
        for (answer, choice) in [("skip", "ask"), ("-", "skip")] {
            let name = format!("skip-{death:?}-{answer}");
            let (answers, summaries) = run_with_deaths(death, &name, answer, choice).await;
            assert!(button(&name).presses() <= 3, "{death:?}: {summaries:?}");
            assert_eq!(count(&summaries, "started"), 3, "{death:?}: {summaries:?}");
            assert!(choice == "ask" || answers == 0);
        }
    }
}
