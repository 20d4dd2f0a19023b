//! Answers that are taken back: the session is as it was before them, without a model, and goes on from there.

use std::sync::Arc;

use bcc_engine::engine::{Engine, ResumeRequest, RunRequest};
use bcc_engine::environment::Environment;
use bcc_engine::export::export;
use bcc_engine::handle::SessionEvent;
use bcc_engine::markdown::{DocumentDetails, Medium, markdown};
use bcc_engine::project::Project;
use bcc_lang::message::language::Language;
use bcc_lang::value::exact::{ExactValue, ExactValues};
use bcc_runtime::program::clock::Clock;
use bcc_runtime::program::decision::DecisionKind;
use bcc_runtime::program::event::{Event, NoObserver};
use bcc_runtime::run::approval_decision::ApprovalDecision;
use bcc_runtime::run::session::{Session, SessionPause, TakenAnswer};
use bcc_runtime::run::take_back::TakenBack;
use bcc_store::contract::Store;
use bcc_store::memory::MemoryStore;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::crashing_store::{CrashMode, CrashingStore};
use crate::due_clock::DueClock;

const ID: &str = "s";

const SCRIPT: &str = r#"
session:
  session_id: talk
  template_scheme: english
  declare:
    - { var: visits, type: integer, value: 0, scope: global }
    - { var: name, type: string }
    - { var: code, type: string, sensitive: true }
    - { var: likes, type: list }
  phases:
    - phase_id: first
      topics:
        - topic_id: who
          declare:
            - { var: mood, type: string }
          actions:
            - { action_type: ai_ask, action_id: ask_name, config: { content: "Name?", output: [{ get: name, type: string }] } }
            - { action_type: set, action_id: count, config: { values: { visits: "{{ visits + 1 }}" } } }
            - { action_type: ai_ask, action_id: ask_mood, config: { content: "Mood?", output: [{ get: mood, type: string }] } }
        - topic_id: what
          actions:
            - { action_type: ai_ask, action_id: ask_code, config: { content: "Code?", output: [{ get: code, type: string }] } }
            - { action_type: ai_ask, action_id: ask_like, config: { content: "{{ name }}, what do you like?", output: [{ get: likes, type: string, append: true }] } }
    - phase_id: second
      topics:
        - topic_id: more
          actions:
            - { action_type: ai_ask, action_id: ask_more, config: { content: "And what else?", output: [{ get: likes, type: string, append: true }] } }
            - { action_type: ai_say, action_id: bye, config: { content: "Bye, {{ name }}." } }
            - { action_type: ai_ask, action_id: ask_last, config: { content: "A last word?" } }
"#;

const ANSWERS: [&str; 6] = ["Ann", "fine", "open sesame", "tea", "cake", "bye"];

/// An engine for [`SCRIPT`] on this store.
struct World {
    _home: TempDir,
    engine: Engine,
    store: Arc<dyn Store>,
    request: RunRequest,
}

impl World {
    fn new() -> Self {
        Self::on(Arc::new(MemoryStore::default()))
    }

    fn on(store: Arc<dyn Store>) -> Self {
        Self::of(SCRIPT, store)
    }

    fn of(script: &str, store: Arc<dyn Store>) -> Self {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("talk.yaml");
        std::fs::write(&file, script).unwrap();
        let environment = Environment::default();
        let project = Project::of(&file, None, false, &environment).unwrap();
        let engine = Engine::new(project, environment, Arc::clone(&store));
        let request = RunRequest { file, session: Some(ID.to_owned()), ..RunRequest::default() };
        Self { _home: home, engine, store, request }
    }

    /// A session that waits for its first answer.
    async fn start(&self) -> Session {
        let mut session = self.engine.run(&self.request, Arc::new(NoObserver)).await.unwrap().session;
        assert_eq!(session.advance().await.unwrap(), SessionPause::Waiting);
        session
    }

    async fn resume(&self) -> Session {
        let resumed = self.engine.resume_as(ID, &ResumeRequest::default(), Arc::new(NoObserver)).await.unwrap();
        let mut session = resumed.session;
        assert_eq!(session.advance().await.unwrap(), SessionPause::Waiting);
        session
    }

    async fn export(&self) -> ExactValue {
        export(self.store.as_ref(), ID, false).await.unwrap()
    }

    /// Role and text of the messages, and the values of the session's variables.
    async fn conversation(&self) -> (Vec<String>, Value) {
        let export = self.export().await;
        let text = |line: &Value| format!("{}: {}", line["role"].as_str().unwrap(), line["text"].as_str().unwrap());
        let messages = export["transcript"].as_array().unwrap().iter().map(text).collect();
        let values = export["variables"]["session"].as_object().unwrap();
        (messages, values.iter().map(|(name, set)| (name.clone(), set["value"].clone())).collect())
    }

    /// The state of the session as it is stored, without what a restored state has of its own.
    async fn state(&self) -> Value {
        let row = self.store.session(ID).await.unwrap().unwrap();
        let mut head: Value = serde_json::from_str(&row.head).unwrap();
        let own = ["turns", "model_calls", "tokens_in", "tokens_out", "ms", "hidden", "skipped_answer_ids", "waiting"];
        head.as_object_mut().unwrap().retain(|name, _| !own.contains(&name.as_str()));
        let mut variables = self.store.variables(ID).await.unwrap();
        variables.retain(|row| row.scope != "hidden");
        json!({
            "head": head, "status": row.status, "location": row.location, "answers": row.answers,
            "frames": format!("{:#?}", self.store.frames(ID).await.unwrap()),
            "variables": format!("{variables:#?}"),
            "counters": format!("{:#?}", self.store.counters(ID).await.unwrap()),
            "messages": format!("{:#?}", self.store.messages(ID, 0, usize::MAX).await.unwrap()),
        })
    }

    async fn events(&self, kind: &str) -> Vec<Value> {
        let rows = self.store.journal_by_kind(ID, kind, 0, usize::MAX >> 1).await.unwrap();
        rows.iter().map(|row| serde_json::from_str(&row.body).unwrap()).collect()
    }

    /// The ids of open requests.
    async fn open(&self) -> Vec<String> {
        self.store.open_requests(None).await.unwrap().into_iter().map(|open| open.request.id).collect()
    }
}

async fn answer(session: &mut Session, text: &str) -> SessionPause {
    assert_eq!(session.answer(text, None).await.unwrap(), TakenAnswer::Yes);
    session.advance().await.unwrap()
}

async fn take_back(session: &mut Session) {
    assert_eq!(session.take_back().await.unwrap(), TakenBack::Yes);
    assert_eq!(session.advance().await.unwrap(), SessionPause::Waiting);
}

#[tokio::test]
async fn every_answer_can_be_taken_back_to_the_state_before_it() {
    let world = World::new();
    let mut session = world.start().await;
    let mut states = vec![world.state().await];
    for text in &ANSWERS[..5] {
        assert_eq!(answer(&mut session, text).await, SessionPause::Waiting);
        states.push(world.state().await);
    }
    let calls = world.events("model_call").await.len();
    for state in states.iter().rev().skip(1) {
        take_back(&mut session).await;
        assert_eq!(world.state().await, *state);
    }
    assert_eq!(session.take_back().await.unwrap(), TakenBack::NoAnswer);
    assert_eq!(world.events("model_call").await.len(), calls, "a model was called");
    // It goes on as a session that has never had these answers, also after its process ends.
    drop(session);
    let mut session = world.resume().await;
    let others = ["Ben", "tired", "1234", "coffee", "pie", "done"];
    for (number, text) in others.iter().enumerate() {
        let pause = answer(&mut session, text).await;
        assert_eq!(pause, if number + 1 == others.len() { SessionPause::Completed } else { SessionPause::Waiting });
    }
    assert_eq!(session.take_back().await.unwrap(), TakenBack::Final);
    let plain = World::new();
    let mut session = plain.start().await;
    for text in others {
        answer(&mut session, text).await;
    }
    assert_eq!(world.conversation().await, plain.conversation().await);
    // The variables of the user are not undone: both names were counted.
    assert_eq!(world.export().await["variables"]["global"]["visits"]["value"], 2);
    assert_eq!(plain.export().await["variables"]["global"]["visits"]["value"], 1);
}

#[tokio::test]
async fn the_event_says_what_no_longer_counts_and_the_journal_keeps_it() {
    let world = World::new();
    let mut session = world.start().await;
    let before = session.last_seq();
    answer(&mut session, "Ann").await;
    let after = session.last_seq();
    take_back(&mut session).await;
    let taken_back = world.events("taken_back").await;
    let expected = [
        ("from_seq", json!(before + 1)),
        ("to_seq", json!(after)),
        ("seq", json!(after + 1)),
        ("answers", json!(0)),
        ("effects", json!(0)),
        ("globals", json!(["visits"])),
    ];
    for (name, value) in expected {
        assert_eq!(taken_back[0][name], value, "{name}");
    }
    let said = world.events("message").await;
    assert!(said.iter().any(|event| event["role"] == "user" && event["text"] == "Ann"), "{said:?}");
    // The same question under another id: answers that are still on their way are ignored.
    let waiting = world.events("waiting").await;
    let [first, second, third] = waiting.as_slice() else { panic!("{waiting:?}") };
    assert_eq!((&first["prompt"], &first["location"]), (&third["prompt"], &third["location"]));
    assert_eq!([&first["answer_id"], &second["answer_id"], &third["answer_id"]], ["a1", "a2", "a3"]);
    for late in ["a1", "a2"] {
        assert_eq!(session.answer("late", Some(late)).await.unwrap(), TakenAnswer::AlreadyUsed, "{late}");
    }
    assert_eq!(world.open().await, ["a3"]);
    assert_eq!(session.answer("Ben", Some("a3")).await.unwrap(), TakenAnswer::Yes);
    assert_eq!(session.advance().await.unwrap(), SessionPause::Waiting);
    assert_eq!(world.open().await, ["a4"]);
    let answered: Vec<String> = world.store.requests(ID).await.unwrap().into_iter().map(|row| row.id).collect();
    assert_eq!(answered, ["a1", "a3", "a4"]);
}

#[tokio::test]
async fn an_export_shows_the_conversation_without_what_was_taken_back() {
    let world = World::new();
    let mut session = world.start().await;
    answer(&mut session, "Ann").await;
    answer(&mut session, "fine").await;
    let outcomes = world.export().await["outcomes"].as_array().unwrap().len();
    answer(&mut session, "open sesame").await;
    take_back(&mut session).await;
    let export = world.export().await;
    let (messages, _) = world.conversation().await;
    assert_eq!(messages, ["ai: Name?", "user: Ann", "ai: Mood?", "user: fine", "ai: Code?"]);
    assert_eq!(export["outcomes"].as_array().unwrap().len(), outcomes);
    assert_eq!(export["taken_back"].as_array().unwrap().len(), 1, "{export}");
    // The calls were made and cost something.
    let calls = export["model_calls"].as_array().unwrap();
    let marked = calls.iter().filter(|call| call["taken_back"] == true).count();
    assert!(marked > 0 && marked < calls.len(), "{calls:?}");
    assert_eq!(export["usage"]["session"]["calls"], calls.len());
    let details = DocumentDetails::of_session(world.store.as_ref(), ID, Medium::Markdown).await.unwrap();
    let shown = markdown(&export, &details, Language::English);
    assert!(shown.contains("- an answer was taken back at ") && !shown.contains("sesame"), "{shown}");
    // A value that was masked stays masked, although its variable has it no longer.
    drop(session);
    let resumed = world.resume().await;
    assert!(!resumed.masker.text("it was open sesame").contains("sesame"));
    assert!(!export.to_string().contains("open sesame"), "{export}");
}

#[tokio::test]
async fn a_crash_while_an_answer_is_taken_back_leaves_the_state_before_or_after() {
    for (mode, left) in [(CrashMode::Before, 1), (CrashMode::After, 0)] {
        let store = CrashingStore::new(mode);
        let world = World::on(Arc::clone(&store) as Arc<dyn Store>);
        let mut session = world.start().await;
        let first = world.state().await;
        answer(&mut session, "Ann").await;
        let second = world.state().await;
        assert!(store.run_until_crash(session.take_back()).await.is_none(), "{mode:?}");
        assert!(session.take_back().await.is_err(), "this process no longer knows the state");
        drop(session);
        let mut session = world.resume().await;
        assert_eq!(session.answers(), left, "{mode:?}");
        assert_eq!(world.state().await, if left == 0 { first } else { second });
        if left == 1 {
            take_back(&mut session).await;
        }
        answer(&mut session, "Ben").await;
        let (messages, _) = world.conversation().await;
        assert_eq!(messages, ["ai: Name?", "user: Ben", "ai: Mood?"], "{mode:?}");
    }
}

/// Answers, answers that are taken back and new processes in any order: only the answers that are left count.
#[tokio::test]
async fn any_order_of_answers_and_take_backs_is_the_conversation_of_the_answers_that_are_left() {
    for seed in 0..12 {
        let mut chance = fastrand::Rng::with_seed(seed);
        let world = World::new();
        let mut session = world.start().await;
        let mut left: Vec<String> = Vec::new();
        for step in 0..25 {
            match chance.u32(..5) {
                0 | 1 => {
                    let expected = if left.pop().is_some() { TakenBack::Yes } else { TakenBack::NoAnswer };
                    assert_eq!(session.take_back().await.unwrap(), expected, "seed {seed}");
                }
                2 => {
                    drop(session);
                    session = world.resume().await;
                }
                _ if left.len() < ANSWERS.len() - 1 => {
                    left.push(format!("{} {step}", ANSWERS[left.len()]));
                    assert_eq!(answer(&mut session, left.last().unwrap()).await, SessionPause::Waiting);
                }
                _ => {}
            }
            assert_eq!(session.answers(), left.len() as u64, "seed {seed}");
            assert_eq!(world.open().await.len(), 1, "seed {seed}");
        }
        let plain = World::new();
        let mut session = plain.start().await;
        for text in &left {
            answer(&mut session, text).await;
        }
        assert_eq!(world.conversation().await, plain.conversation().await, "seed {seed}");
        let events = world.store.journal(ID, 0, usize::MAX >> 1).await.unwrap();
        assert!(events.iter().map(|row| row.seq).eq(1..=events.len() as u64), "seed {seed}");
    }
}

#[tokio::test]
async fn a_handle_takes_an_answer_back_and_its_events_follow() {
    let world = World::new();
    let mut handle = world.engine.start(&world.request).await.unwrap();
    let mut kinds = Vec::new();
    let mut answered = false;
    while let Some(event) = handle.next().await {
        let SessionEvent::Committed { event, .. } = event else { continue };
        kinds.push(event.kind());
        let Event::Waiting { answer_id, prompt, .. } = *event else { continue };
        match answer_id.as_str() {
            "a1" => {
                assert_eq!(handle.take_back().await.unwrap(), TakenBack::NoAnswer);
                assert_eq!(handle.answer("Ann", None).await.unwrap(), TakenAnswer::Yes);
            }
            "a2" => assert_eq!(handle.take_back().await.unwrap(), TakenBack::Yes),
            _ => {
                assert_eq!((answer_id.as_str(), prompt.as_str()), ("a3", "Name?"));
                answered = true;
                break;
            }
        }
    }
    assert!(answered);
    assert_eq!(kinds[kinds.len() - 2..], ["taken_back", "waiting"]);
    assert_eq!(handle.close().await.unwrap(), SessionPause::Waiting);
}

/// A question, and then an approval in a branch.
const BRANCH_SCRIPT: &str = r#"
session:
  session_id: branch
  template_scheme: english
  phases:
    - phase_id: phase
      topics:
        - topic_id: topic
          actions:
            - { action_type: ai_ask, action_id: ask, config: { content: "Which one?", max_rounds: 1 } }
            - action_type: parallel
              action_id: both
              config:
                branches:
                  - id: decides
                    actions: [{ action_type: approval, action_id: check, config: { prompt: "Right?", timeout: 1h } }]
"#;

#[tokio::test]
async fn a_request_of_a_branch_that_is_taken_back_is_open_no_more() {
    let decision = |request: &str| ApprovalDecision {
        request: Some(request.to_owned()),
        decision: DecisionKind::Approve,
        by: None,
        comment: None,
        values: ExactValues::new(),
    };
    let world = World::of(BRANCH_SCRIPT, Arc::new(MemoryStore::default()));
    let mut session = world.start().await;
    assert_eq!(answer(&mut session, "this").await, SessionPause::Waiting);
    let old = session.requests()[0].1.id.clone();
    assert_eq!(world.open().await, [old.as_str()]);
    take_back(&mut session).await;
    assert_eq!((session.requests().len(), session.time_left()), (0, None));
    assert!(!world.open().await.contains(&old));
    assert!(session.decide(decision(&old)).await.is_err(), "nothing waits for this decision");

    assert_eq!(answer(&mut session, "that").await, SessionPause::Waiting);
    let new = session.requests()[0].1.id.clone();
    session.decide(decision(&new)).await.unwrap();
    assert_eq!(session.advance().await.unwrap(), SessionPause::Completed);
    let answered = world.events("request_answered").await;
    assert_eq!(answered.iter().map(|event| &event["request_id"]).collect::<Vec<_>>(), [&json!(new)]);
}

const WAITING_SCRIPT: &str = r#"
session:
  session_id: talk
  template_scheme: english
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          actions:
            - { action_type: ai_ask, action_id: first, config: { content: "First?", max_rounds: 1 } }
            - { action_type: wait, action_id: pause, config: { for: 1h } }
            - { action_type: ai_ask, action_id: second, config: { content: "Second?", max_rounds: 1 } }
"#;

#[tokio::test]
async fn an_answer_is_taken_back_over_a_wait_about_which_nobody_decided() {
    let mut world = World::of(WAITING_SCRIPT, Arc::new(MemoryStore::default()));
    let clock = Arc::new(DueClock::new(false));
    world.engine = world.engine.with_clock(Arc::clone(&clock) as Arc<dyn Clock>);
    let mut session = world.start().await;
    assert_eq!(answer(&mut session, "one").await, SessionPause::Waiting);
    assert!(world.events("request_answered").await.is_empty());
    clock.end_all();
    assert_eq!(session.advance().await.unwrap(), SessionPause::Waiting);
    assert_eq!(world.events("request_answered").await.len(), 1);
    take_back(&mut session).await;
    let (messages, _) = world.conversation().await;
    assert_eq!(messages, ["ai: First?"]);
}
