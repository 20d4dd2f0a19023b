//! What becomes of a wish for a plan that cannot be fulfilled: it costs nothing where the topic allows none, and is told where
//! a plan was to be expected.

use crate::stage;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bcc_engine::recheck::PinnedScript;
use bcc_llm::model::error::ModelError;
use bcc_llm::model::provider::{LiveObserver, Provider};
use bcc_llm::model::reply::ModelReply;
use bcc_llm::model::request::{ModelRequest, Purpose};
use bcc_runtime::program::host_services::HostServices;
use bcc_runtime::program::models::ModelProviders;
use bcc_runtime::program::orchestration::MOST_ASKED;
use bcc_runtime::program::program::Program;
use bcc_runtime::program::recheck::Recheck;
use bcc_runtime::run::session::{Session, SessionPause, TakenAnswer};
use bcc_store::contract::Store;
use bcc_store::memory::MemoryStore;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

const SCRIPT: &str = "
session:
  session_id: planning
  phases:
    - phase_id: p
      topics:
        - topic_id: family
          strategy: { orchestration: on }
          actions:
            - { action_type: ai_ask, action_id: ask, config: { content: 问, max_rounds: 6 } }
            - { action_type: ai_say, action_id: tell, config: { content: 说 } }
        - topic_id: other
          actions:
            - { action_type: ai_ask, action_id: quiet, config: { content: 问, monitor: off, max_rounds: 6 } }
";

/// Longer than any of these conversations, and shorter than what a plan may take.
const LONG: Duration = Duration::from_secs(100);

/// Ends an action when the person says so; its monitor takes a while and wants a plan so many times; plans take theirs.
struct Model {
    monitor: Duration,
    plan: Duration,
    wishes: AtomicUsize,
    turns: AtomicUsize,
}

#[async_trait]
impl Provider for Model {
    fn name(&self) -> &str {
        "test"
    }

    async fn complete(&self, request: &ModelRequest, _live: &mut dyn LiveObserver) -> Result<ModelReply, ModelError> {
        let text = match request.task.purpose {
            Purpose::Action => {
                let mood = format!("mood {}", self.turns.fetch_add(1, Ordering::Relaxed));
                let ends = request.task.answer.as_deref() == Some("完了");
                stage::reply(&request.task.kind, &mood, ends, "continue_needed")
            }
            Purpose::Monitor => {
                sleep(self.monitor).await;
                let left = self.wishes.load(Ordering::Relaxed);
                self.wishes.store(left.saturating_sub(1), Ordering::Relaxed);
                json!({ "orchestration_needed": left > 0, "intervention_reason": "blocked" }).to_string()
            }
            _ => {
                sleep(self.plan).await;
                let new = json!({ "action_type": "ai_say", "action_id": "more", "config": { "content": "好" } });
                json!({ "action": "insert", "new_action": new, "reason": "r" }).to_string()
            }
        };
        Ok(ModelReply { text, model: "test".to_owned(), attempts: 1, ..ModelReply::default() })
    }
}

/// The script, which counts how often it is read, and may become another one.
struct Script {
    pinned: PinnedScript,
    read: AtomicUsize,
    is_another: AtomicBool,
}

impl Recheck for Script {
    fn actions(&self, topic: &str) -> Option<Vec<Value>> {
        self.read.fetch_add(1, Ordering::Relaxed);
        if self.is_another.load(Ordering::Relaxed) { Some(Vec::new()) } else { self.pinned.actions(topic) }
    }

    fn recheck(&self, topic: &str, actions: &[Value]) -> Result<Program, Vec<String>> {
        self.pinned.recheck(topic, actions)
    }
}

struct World {
    program: Arc<Program>,
    script: Arc<Script>,
    archive: Arc<dyn Store>,
    model: Arc<Model>,
}

impl World {
    fn new(script: &str, monitor: Duration, plan: Duration) -> Self {
        let (program, pinned) = stage::pinned(script, Path::new("tests/plans"), None);
        Self {
            program,
            script: Arc::new(Script { pinned, read: AtomicUsize::default(), is_another: AtomicBool::default() }),
            archive: Arc::new(MemoryStore::default()),
            model: Arc::new(Model {
                monitor,
                plan,
                wishes: AtomicUsize::new(usize::MAX),
                turns: AtomicUsize::default(),
            }),
        }
    }

    fn models(&self) -> Arc<dyn ModelProviders> {
        stage::Only::of(self.model.clone())
    }

    async fn begin(&self) -> Session {
        let mut session = stage::begin_in(
            &self.program,
            self.archive.clone(),
            self.models(),
            Some(self.script.clone()),
            HostServices::default(),
        )
        .await;
        assert_eq!(session.advance().await.unwrap(), SessionPause::Waiting);
        session
    }

    async fn resume(&self) -> Session {
        stage::resume_in(
            &self.program,
            self.archive.clone(),
            self.models(),
            Some(self.script.clone()),
            HostServices::default(),
        )
        .await
    }

    async fn warnings(&self) -> Vec<String> {
        let journal = stage::journal(self.archive.as_ref()).await;
        let plans = journal.iter().filter(|event| event["code"] == "plan-failed");
        plans.map(|event| event["message"].as_str().unwrap().to_owned()).collect()
    }

    async fn plans(&self) -> usize {
        let journal = stage::journal(self.archive.as_ref()).await;
        journal.iter().filter(|event| event["type"] == "orchestrated").count()
    }
}

/// Answers, and notes what comes in during the next seconds.
async fn answer(session: &mut Session, text: &str) {
    assert_eq!(session.answer(text, None).await.unwrap(), TakenAnswer::Yes);
    assert_eq!(session.advance().await.unwrap(), SessionPause::Waiting);
    rest(session, Duration::from_secs(3)).await;
}

async fn rest(session: &mut Session, long: Duration) {
    let _ = timeout(long, async {
        loop {
            session.arrived().await;
            session.note_arrivals().await.unwrap();
        }
    })
    .await;
}

const SOON: Duration = Duration::from_secs(1);

const OVER: &str = "there is no plan for the rest of the topic: the visit to the topic that it was made for is over";

#[tokio::test(start_paused = true)]
async fn where_a_topic_allows_no_plans_nobody_reads_the_script_for_one() {
    let world = World::new(&SCRIPT.replace("orchestration: on", "orchestration: off"), SOON, SOON);
    let mut session = world.begin().await;
    answer(&mut session, "嗯").await;
    answer(&mut session, "完了").await;
    assert_eq!(world.script.read.load(Ordering::Relaxed), 0);
    assert_eq!((world.warnings().await, world.plans().await), (vec![], 0));
}

#[tokio::test(start_paused = true)]
async fn a_visit_that_has_used_up_its_plans_reads_the_script_for_no_further_one() {
    // The inserted action has the id of the one before, so that every plan but the first is refused, and ten are asked for.
    let rounds = (MOST_ASKED + 3).to_string();
    let world = World::new(&SCRIPT.replace("max_rounds: 6", &format!("max_rounds: {rounds}")), SOON, SOON);
    let mut session = world.begin().await;
    let mut read = Vec::new();
    for _ in 0..=MOST_ASKED {
        answer(&mut session, "嗯").await;
        read.push(world.script.read.load(Ordering::Relaxed));
    }
    assert_eq!(world.plans().await, MOST_ASKED as usize);
    let [.., tenth, eleventh] = read.as_slice() else { panic!("{read:?}") };
    assert_eq!(tenth, eleventh);
    assert_eq!(world.warnings().await, [] as [&str; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_plan_that_was_under_way_for_a_topic_that_is_over_is_told_once_after_a_resume() {
    let world = World::new(SCRIPT, SOON, LONG);
    world.model.wishes.store(1, Ordering::Relaxed);
    let mut session = world.begin().await;
    answer(&mut session, "嗯").await;
    assert_eq!(session.answer("完了", None).await.unwrap(), TakenAnswer::Yes);
    assert_eq!(session.advance().await.unwrap(), SessionPause::Waiting);
    drop(session);
    for _ in 0..2 {
        let mut session = world.resume().await;
        assert_eq!(session.advance().await.unwrap(), SessionPause::Waiting);
        rest(&mut session, LONG * 2).await;
        assert_eq!(world.warnings().await, [OVER]);
    }
    assert_eq!(world.plans().await, 0);
}

#[tokio::test(start_paused = true)]
async fn an_analysis_that_wants_a_plan_for_a_topic_that_is_over_is_told_to_come_too_late() {
    for (allowed, warnings) in [("on", vec![OVER]), ("off", vec![])] {
        let script = SCRIPT.replace("orchestration: on", &format!("orchestration: {allowed}"));
        let world = World::new(&script, LONG, SOON);
        let mut session = world.begin().await;
        answer(&mut session, "完了").await;
        rest(&mut session, LONG * 2).await;
        assert_eq!(world.warnings().await, warnings, "{allowed}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_wish_for_a_plan_while_another_one_is_being_made_is_told() {
    let world = World::new(SCRIPT, SOON, LONG);
    let mut session = world.begin().await;
    answer(&mut session, "嗯").await;
    assert_eq!(world.warnings().await, [] as [&str; 0]);
    answer(&mut session, "还行").await;
    assert_eq!(world.warnings().await, ["there is no plan for the rest of the topic: another plan is being made"]);
    rest(&mut session, LONG * 2).await;
    assert_eq!((world.warnings().await.len(), world.plans().await), (1, 1), "the first one comes all the same");
}

#[tokio::test(start_paused = true)]
async fn plans_that_do_not_fit_the_topic_any_more_are_told() {
    crate::at_root();
    let world = World::new(SCRIPT, SOON, SOON);
    let mut session = world.begin().await;
    answer(&mut session, "嗯").await;
    assert_eq!((world.warnings().await, world.plans().await), (vec![], 1));
    world.script.is_another.store(true, Ordering::Relaxed);
    answer(&mut session, "还行").await;
    assert_eq!(
        world.warnings().await,
        ["there is no plan for the rest of the topic: the earlier plans do not fit the topic: every action \
          of the topic is done"]
    );
}
