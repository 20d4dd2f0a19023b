//! Turns that need not wait are written together, and nothing that others see is ahead of the store (docs/architecture.md).

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bcc_llm::model::error::ModelError;
use bcc_llm::model::provider::{LiveObserver, Provider};
use bcc_llm::model::reply::ModelReply;
use bcc_llm::model::request::ModelRequest;
use bcc_runtime::run::session::{Session, SessionPause, TakenAnswer};
use bcc_store::contract::Store;
use bcc_store::error::StoreError;
use bcc_store::rows::Commit;
use serde_json::json;

use crate::crashing_store::hooked_store::{Hook, HookedStore, SessionCreation, Write};
use crate::test_session::{FixedModels, SESSION, checked, start_conversation};

const SCRIPT: &str = "
session:
  session_id: s
  declare: [{ var: n, type: integer, value: 0 }]
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          actions:
            - { action_type: set, action_id: one, config: { values: { n: 1 } } }
            - { action_type: set, action_id: two, config: { values: { n: 2 } } }
            - { action_type: ai_say, action_id: tell, config: { content: 二, delivery: verbatim } }
            - { action_type: ai_ask, action_id: ask, config: { content: 三, max_rounds: 3 } }
";

/// The numbers of commits that were written at a time.
#[derive(Default)]
struct Writes {
    together: Mutex<Vec<usize>>,
    commits: AtomicUsize,
    fails: std::sync::atomic::AtomicBool,
}

#[async_trait]
impl Hook for Writes {
    async fn around(&self, _: Option<SessionCreation<'_>>, _: &Commit, write: Write<'_>) -> Result<(), StoreError> {
        self.commits.fetch_add(1, Ordering::Relaxed);
        if self.fails.load(Ordering::Relaxed) {
            return Err(StoreError::Full { store: "s".into() });
        }
        write.await
    }

    fn together(&self, commits: &[Commit]) -> bool {
        self.together.lock().unwrap().push(commits.len());
        false
    }
}

/// A model that answers at once, or after a pause.
struct Model {
    waits: bool,
    store: Arc<HookedStore<Writes>>,
    /// The number of answers that were stored when it was waited for.
    stored: Arc<Mutex<Vec<u64>>>,
}

#[async_trait]
impl Provider for Model {
    fn name(&self) -> &str {
        "m"
    }

    async fn complete(&self, _: &ModelRequest, _: &mut dyn LiveObserver) -> Result<ModelReply, ModelError> {
        if self.waits {
            tokio::task::yield_now().await;
        }
        let row = self.store.session(SESSION).await.unwrap().unwrap();
        self.stored.lock().unwrap().push(row.answers);
        let text = json!({ "content": "好", "EXIT": "NO", "BRIEF": "", "metrics": {} }).to_string();
        Ok(ModelReply { text, ..ModelReply::default() })
    }
}

type Talk = (Session, Arc<HookedStore<Writes>>, Arc<Mutex<Vec<u64>>>);

async fn talk(waits: bool) -> Talk {
    let store = Arc::new(HookedStore::with(Writes::default()));
    let stored = Arc::new(Mutex::new(vec![]));
    let model = Arc::new(Model { waits, store: Arc::clone(&store), stored: Arc::clone(&stored) });
    let program = checked(SCRIPT, tempfile::tempdir().unwrap().path());
    let mut session = start_conversation(&program, store.clone(), FixedModels::without_monitors(Some(model))).await;
    assert_eq!(session.advance().await.unwrap(), SessionPause::Waiting);
    (session, store, stored)
}

#[tokio::test]
async fn turns_that_take_no_time_are_written_together() {
    let (mut session, store, stored) = talk(false).await;
    assert_eq!(*store.hook.together.lock().unwrap(), [4], "two assignments, a message and a question");
    assert_eq!(session.answer_with_turn("嗯", None).await.unwrap(), TakenAnswer::Yes);
    let before = store.session(SESSION).await.unwrap().unwrap();
    assert_eq!(before.answers, 0, "it is held");
    assert!(session.stored_seq() == before.last_seq && before.last_seq < session.last_seq());
    assert_eq!(session.advance().await.unwrap(), SessionPause::Waiting);
    assert_eq!(*store.hook.together.lock().unwrap(), [4, 2], "the answer and its turn");
    assert_eq!(*stored.lock().unwrap(), [0, 0]);
    let row = store.session(SESSION).await.unwrap().unwrap();
    assert_eq!((row.answers, row.last_seq, session.stored_seq()), (1, session.last_seq(), session.last_seq()));
    // Each turn has a revision of its own: the state after the first assignment is kept.
    let seqs = store.journal_by_kind(SESSION, "variable_set", 0, 10).await.unwrap();
    let revisions = 1..row.revision;
    let mut at_first = false;
    for revision in revisions {
        let state = store.earlier_state(SESSION, revision).await.unwrap().unwrap();
        at_first |= (seqs[0].seq..seqs[1].seq).contains(&state.last_seq);
    }
    assert!(at_first);
}

#[tokio::test]
async fn an_answer_is_stored_before_a_model_is_waited_for() {
    let (mut session, store, stored) = talk(true).await;
    session.answer_with_turn("嗯", None).await.unwrap();
    assert_eq!(session.advance().await.unwrap(), SessionPause::Waiting);
    assert_eq!(*stored.lock().unwrap(), [0, 1]);
    assert_eq!(*store.hook.together.lock().unwrap(), [3], "only what came before the first question");
}

#[tokio::test]
async fn an_answer_alone_is_stored_when_it_is_accepted() {
    let (mut session, store, _) = talk(false).await;
    assert_eq!(session.answer("嗯", None).await.unwrap(), TakenAnswer::Yes);
    assert_eq!(store.session(SESSION).await.unwrap().unwrap().answers, 1);
}

#[tokio::test]
async fn what_could_not_be_written_is_not_gone_on_with() {
    let (mut session, store, _) = talk(false).await;
    let last = session.last_seq();
    session.answer_with_turn("嗯", None).await.unwrap();
    store.hook.fails.store(true, Ordering::Relaxed);
    assert!(session.advance().await.is_err());
    assert_eq!(session.stored_seq(), last);
    store.hook.fails.store(false, Ordering::Relaxed);
    assert!(session.answer("嗯", None).await.is_err(), "its state is not that of the store");
    assert_eq!(store.session(SESSION).await.unwrap().unwrap().answers, 0);
}
