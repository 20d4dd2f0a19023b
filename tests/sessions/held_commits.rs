//! Turns that need not wait are written together, and nothing that others see is ahead of the store (docs/architecture.md).

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bcc_lang::message::message::Message;
use bcc_llm::model::error::ModelError;
use bcc_llm::model::provider::{LiveObserver, Provider};
use bcc_llm::model::reply::ModelReply;
use bcc_llm::model::request::ModelRequest;
use bcc_runtime::notebook::cell::CellEnd;
use bcc_runtime::notebook::kernel::contract::{Execution, Kernel, KernelError, KernelSettings};
use bcc_runtime::program::event::{Committed, Delta, Observer};
use bcc_runtime::program::host_services::HostServices;
use bcc_runtime::run::error::RunError;
use bcc_runtime::run::session::{Session, SessionPause, TakenAnswer};
use bcc_store::contract::Store;
use bcc_store::error::StoreError;
use bcc_store::rows::Commit;
use serde_json::json;

use crate::crashing_store::hooked_store::{Hook, HookedStore, SessionCreation, Write};
use crate::test_session::{
    FixedModels, SESSION, checked, resume_conversation_in, start_conversation, start_conversation_for,
    start_conversation_in,
};

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

/// A cell that is only added, one that runs it, and two that run when they are added.
const CELLS: &str = "
session:
  session_id: s
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          actions:
            - { action_type: add, action_id: one, config: { shot_type: action, content: one() } }
            - { action_type: exec, action_id: run, config: { codecell_id: lastAddedCellId } }
            - { action_type: add, action_id: two, config: { shot_type: action, content: two(), metadata: { should_execute: true } } }
            - { action_type: add, action_id: three, config: { shot_type: action, content: three(), metadata: { should_execute: true } } }
            - { action_type: set, action_id: end, config: { values: { n: 1 } } }
";

/// A kernel that notes with each code which event was the last one in the store.
struct StoringKernel {
    store: Arc<HookedStore<Writes>>,
    executed: Mutex<Vec<String>>,
    /// The code after which the store takes nothing more.
    last: Option<&'static str>,
}

#[async_trait]
impl Kernel for StoringKernel {
    fn check_permission(&self) -> Result<(), KernelError> {
        Ok(())
    }

    fn executed_cells(&self) -> u64 {
        1
    }

    async fn execute(&self, code: &str, _: Duration, _: &KernelSettings) -> Result<Execution, KernelError> {
        let rows = self.store.journal(SESSION, 0, 100).await.unwrap();
        self.executed.lock().unwrap().push(format!("{code} {}", rows.last().unwrap().kind));
        self.store.hook.fails.store(self.last == Some(code), Ordering::Relaxed);
        Ok(Execution {
            outputs: vec![],
            is_queued: false,
            execution_count: Some(1),
            ended: CellEnd::Ok,
            ms: 1,
            language: serde_json::Map::new(),
            is_interrupted_by_person: false,
            ignored_interrupt: false,
            lost_with_variables: None,
            omitted_bytes: 0,
            variables: serde_json::Map::new(),
        })
    }

    async fn stop(&self) {}
}

async fn cells(last: Option<&'static str>) -> (Session, Arc<HookedStore<Writes>>, Arc<StoringKernel>) {
    let store = Arc::new(HookedStore::with(Writes::default()));
    let kernel = Arc::new(StoringKernel { store: Arc::clone(&store), executed: Mutex::default(), last });
    let program = checked(CELLS, tempfile::tempdir().unwrap().path());
    let models = FixedModels::without_monitors(None);
    let session = start_conversation_in(&program, store.clone(), models, None, host(&kernel)).await;
    (session, store, kernel)
}

fn host(kernel: &Arc<StoringKernel>) -> HostServices {
    HostServices { kernel: Arc::clone(kernel) as Arc<dyn Kernel>, ..HostServices::default() }
}

#[tokio::test]
async fn a_cell_whose_end_cannot_be_written_is_asked_about_and_the_next_one_does_not_run() {
    let (mut session, store, kernel) = cells(Some("two()")).await;
    assert!(session.advance().await.is_err());
    drop(session);
    store.hook.fails.store(false, Ordering::Relaxed);
    let program = checked(CELLS, tempfile::tempdir().unwrap().path());
    let models = FixedModels::without_monitors(None);
    let mut resumed = resume_conversation_in(&program, store.clone(), models, None, host(&kernel)).await;
    assert_eq!(resumed.advance().await.unwrap(), SessionPause::Waiting);
    let executed = kernel.executed.lock().unwrap().clone();
    assert_eq!(executed, ["one() effect_started", "two() effect_started"]);
    let asked = store.session(SESSION).await.unwrap().unwrap();
    assert_eq!(asked.status, "waiting_input");
    assert_eq!(resumed.answer("skip", None).await.unwrap(), TakenAnswer::Yes);
    assert_eq!(resumed.advance().await.unwrap(), SessionPause::Completed);
    assert_eq!(kernel.executed.lock().unwrap().len(), 3, "and only the third one runs");
}

#[tokio::test]
async fn the_end_of_a_cell_is_written_with_the_announcement_of_the_next_before_that_runs() {
    let (mut session, store, kernel) = cells(None).await;
    assert_eq!(session.advance().await.unwrap(), SessionPause::Completed);
    let executed = kernel.executed.lock().unwrap().clone();
    assert_eq!(executed, ["one() effect_started", "two() effect_started", "three() effect_started"]);
    assert_eq!(*store.hook.together.lock().unwrap(), [2, 2, 2, 2], "{CELLS}");
    let numbers: Vec<u64> = store.cells(SESSION, 0, 9).await.unwrap().iter().map(|row| row.number).collect();
    assert_eq!(numbers, [1, 2, 3]);
}

/// Lets the session go on until `two()` has run.
#[derive(Default)]
struct Halting(std::sync::atomic::AtomicBool);

impl Observer for Halting {
    fn committed(&self, committed: &Committed<'_>) {
        let has_run = committed.line.contains("two()") && committed.line.contains("\"ended\"");
        self.0.fetch_or(has_run && committed.event.kind() == "cell", Ordering::Relaxed);
    }

    fn commit_ended(&self) -> Result<(), Message> {
        if self.0.load(Ordering::Relaxed) { Err(Message::word("full")) } else { Ok(()) }
    }

    fn can_halt(&self) -> bool {
        true
    }

    fn delta(&self, _: &Delta<'_>) {}
}

#[tokio::test]
async fn what_an_observer_does_not_let_run_is_not_announced() {
    let store = Arc::new(HookedStore::with(Writes::default()));
    let kernel = Arc::new(StoringKernel { store: Arc::clone(&store), executed: Mutex::default(), last: None });
    let program = checked(CELLS, tempfile::tempdir().unwrap().path());
    let mut session =
        start_conversation_for(Arc::new(Halting::default()), &program, store.clone(), host(&kernel)).await;
    assert!(matches!(session.advance().await, Err(RunError::Halted(_))));
    drop(session);
    assert_eq!(kernel.executed.lock().unwrap().len(), 2);
    let announced = store.journal(SESSION, 0, 100).await.unwrap();
    assert_eq!(announced.iter().filter(|row| row.kind == "effect_started").count(), 2);
    // So it is not asked about, and runs once.
    let models = FixedModels::without_monitors(None);
    let mut resumed = resume_conversation_in(&program, store.clone(), models, None, host(&kernel)).await;
    assert_eq!(resumed.advance().await.unwrap(), SessionPause::Completed);
    let executed = kernel.executed.lock().unwrap().clone();
    assert_eq!(executed, ["one() effect_started", "two() effect_started", "three() effect_started"]);
}
