//! A monitor delays nothing: with one that takes five seconds, turns are as fast as with none (docs/acceptance-004.md, unit
//! test 7). Time is virtual, so equal times are exactly equal.

use crate::test_session;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bcc_llm::model::error::ModelError;
use bcc_llm::model::provider::{LiveObserver, Provider};
use bcc_llm::model::reply::ModelReply;
use bcc_llm::model::request::{ModelRequest, Purpose};
use bcc_runtime::run::session::{SessionPause, TakenAnswer};
use bcc_store::contract::Store;
use bcc_store::memory::MemoryStore;
use serde_json::Value;
use tokio::time::{Instant, sleep};

/// The time until the person answers, if they take any.
const PERSON_DELAY: Duration = Duration::from_secs(7);

/// The time that a reply of the conversation takes.
const MODEL_DELAY: Duration = Duration::from_secs(1);

const SCRIPT: &str = "
session:
  session_id: beside
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          actions:
            - { action_type: ai_ask, action_id: ask, config: { content: 问, max_rounds: 6 } }
            - { action_type: ai_say, action_id: tell, config: { content: 说, max_rounds: 4 } }
";

/// A model with one delay for the conversation and another one for monitors; without the latter, there are no monitors.
struct Paced {
    monitor_delay: Option<Duration>,
    turns: AtomicU32,
}

#[async_trait]
impl Provider for Paced {
    fn name(&self) -> &str {
        "paced"
    }

    async fn complete(&self, request: &ModelRequest, _live: &mut dyn LiveObserver) -> Result<ModelReply, ModelError> {
        let text = if request.task.purpose == Purpose::Action {
            sleep(MODEL_DELAY).await;
            let mood = format!("mood {}", self.turns.fetch_add(1, Ordering::Relaxed));
            test_session::reply(&request.task.kind, &mood, false, "continue_needed")
        } else {
            sleep(self.monitor_delay.unwrap()).await;
            r#"{"feedback_for_action": "慢一点"}"#.to_owned()
        };
        Ok(ModelReply { text, model: "paced".to_owned(), attempts: 1, ..ModelReply::default() })
    }
}

/// The duration of each turn, from the answer to the next question, and the journal.
async fn run_conversation(monitors: Option<Duration>, person: Duration) -> (Vec<Duration>, Vec<Value>) {
    let program = test_session::program(SCRIPT);
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let model = Arc::new(Paced { monitor_delay: monitors, turns: AtomicU32::default() });
    let models = if monitors.is_some() {
        test_session::FixedModels::of(model)
    } else {
        test_session::FixedModels::without_monitors(Some(model))
    };
    let mut session = test_session::start_conversation(&program, Arc::clone(&store), models).await;
    let mut turns = Vec::new();
    let mut began = Instant::now();
    loop {
        let pause = session.advance().await.unwrap();
        turns.push(began.elapsed());
        if pause == SessionPause::Completed {
            drop(session);
            return (turns, test_session::journal(store.as_ref()).await);
        }
        // Like the drivers: results that arrive while the person thinks are noted.
        let deadline = Instant::now() + person;
        while tokio::time::timeout_at(deadline, session.wait_for_result()).await.is_ok() {
            session.commit_results().await.unwrap();
        }
        began = Instant::now();
        assert_eq!(session.answer("嗯", None).await.unwrap(), TakenAnswer::Yes);
    }
}

fn feedback(journal: &[Value], used: bool) -> usize {
    journal.iter().filter(|event| event["type"] == "monitor_feedback" && event["used"] == used).count()
}

#[tokio::test(start_paused = true)]
async fn with_a_monitor_of_five_seconds_every_turn_is_as_fast_as_with_none() {
    for person in [Duration::ZERO, PERSON_DELAY] {
        let (without, journal) = run_conversation(None, person).await;
        assert_eq!((feedback(&journal, false), feedback(&journal, true)), (0, 0));
        // The opening, six rounds (the last one also opens the next action), and four rounds.
        assert_eq!(without.len(), 11);
        assert_eq!(without.iter().sum::<Duration>(), MODEL_DELAY * 12, "{without:?}");
        for monitor in [Duration::ZERO, Duration::from_secs(5), Duration::from_secs(86_400)] {
            let (with, journal) = run_conversation(Some(monitor), person).await;
            assert_eq!(with, without, "a monitor that takes {monitor:?}, a person who takes {person:?}");
            if (person, monitor) == (PERSON_DELAY, Duration::from_secs(5)) {
                // All but that of the last turn arrive in time, and all of these but that of the last `ai_ask` turn reach a prompt.
                assert_eq!((feedback(&journal, false), feedback(&journal, true)), (9, 9), "it really ran");
            }
        }
    }
}
