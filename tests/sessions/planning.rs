//! Requests for plans that cannot be fulfilled: free where the topic allows no plans, and reported where a plan was to be expected.

use crate::test_session;
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
use bcc_runtime::program::orchestration::MAX_PLAN_REQUESTS;
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

/// Longer than any of these conversations, and shorter than the timeout of a plan.
const LONG: Duration = Duration::from_secs(100);

/// Ends an action at the answer `完了`. Monitors and plans have delays, and the monitor requests a plan as often as `plan_requests` says.
struct Model {
    monitor_delay: Duration,
    plan_delay: Duration,
    plan_requests: AtomicUsize,
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
                let exit = request.task.answer.as_deref() == Some("完了");
                test_session::reply(&request.task.kind, &mood, exit, "continue_needed")
            }
            Purpose::Monitor => {
                sleep(self.monitor_delay).await;
                let left = self.plan_requests.load(Ordering::Relaxed);
                self.plan_requests.store(left.saturating_sub(1), Ordering::Relaxed);
                json!({ "orchestration_needed": left > 0, "intervention_reason": "blocked" }).to_string()
            }
            _ => {
                sleep(self.plan_delay).await;
                let new = json!({ "action_type": "ai_say", "action_id": "more", "config": { "content": "好" } });
                json!({ "action": "insert", "new_action": new, "reason": "r" }).to_string()
            }
        };
        Ok(ModelReply { text, model: "test".to_owned(), attempts: 1, ..ModelReply::default() })
    }
}

/// The script. It counts how often it is read, and can be replaced.
struct Script {
    pinned: PinnedScript,
    read_count: AtomicUsize,
    is_replaced: AtomicBool,
}

impl Recheck for Script {
    fn actions(&self, topic: &str) -> Option<Vec<Value>> {
        self.read_count.fetch_add(1, Ordering::Relaxed);
        if self.is_replaced.load(Ordering::Relaxed) { Some(Vec::new()) } else { self.pinned.actions(topic) }
    }

    fn recheck(&self, topic: &str, actions: &[Value]) -> Result<Program, Vec<String>> {
        self.pinned.recheck(topic, actions)
    }
}

struct World {
    program: Arc<Program>,
    script: Arc<Script>,
    store: Arc<dyn Store>,
    model: Arc<Model>,
}

impl World {
    fn new(script: &str, monitor: Duration, plan: Duration) -> Self {
        let (program, pinned) = test_session::pinned(script, Path::new("tests/plans"), None);
        Self {
            program,
            script: Arc::new(Script { pinned, read_count: AtomicUsize::default(), is_replaced: AtomicBool::default() }),
            store: Arc::new(MemoryStore::default()),
            model: Arc::new(Model {
                monitor_delay: monitor,
                plan_delay: plan,
                plan_requests: AtomicUsize::new(usize::MAX),
                turns: AtomicUsize::default(),
            }),
        }
    }

    fn models(&self) -> Arc<dyn ModelProviders> {
        test_session::FixedModels::of(self.model.clone())
    }

    async fn start(&self) -> Session {
        let mut session = test_session::start_conversation_in(
            &self.program,
            self.store.clone(),
            self.models(),
            Some(self.script.clone()),
            HostServices::default(),
        )
        .await;
        assert_eq!(session.advance().await.unwrap(), SessionPause::Waiting);
        session
    }

    async fn resume(&self) -> Session {
        test_session::resume_conversation_in(
            &self.program,
            self.store.clone(),
            self.models(),
            Some(self.script.clone()),
            HostServices::default(),
        )
        .await
    }

    async fn warnings(&self) -> Vec<String> {
        let journal = test_session::journal(self.store.as_ref()).await;
        let plans = journal.iter().filter(|event| event["code"] == "plan-failed");
        plans.map(|event| event["message"].as_str().unwrap().to_owned()).collect()
    }

    async fn plans(&self) -> usize {
        let journal = test_session::journal(self.store.as_ref()).await;
        journal.iter().filter(|event| event["type"] == "orchestrated").count()
    }
}

/// Answers, and notes the results that arrive in the next five seconds.
async fn answer(session: &mut Session, text: &str) {
    assert_eq!(session.answer(text, None).await.unwrap(), TakenAnswer::Yes);
    assert_eq!(session.advance().await.unwrap(), SessionPause::Waiting);
    wait(session, Duration::from_secs(5)).await;
}

async fn wait(session: &mut Session, time: Duration) {
    let _ = timeout(time, async {
        loop {
            session.wait_for_result().await;
            session.commit_results().await.unwrap();
        }
    })
    .await;
}

const SOON: Duration = Duration::from_secs(1);

const TOPIC_OVER: &str =
    "there is no plan for the rest of the topic: the visit to the topic that it was made for is over";

#[tokio::test(start_paused = true)]
async fn the_script_is_not_read_for_a_plan_where_a_topic_allows_none() {
    let world = World::new(&SCRIPT.replace("orchestration: on", "orchestration: off"), SOON, SOON);
    let mut session = world.start().await;
    answer(&mut session, "嗯").await;
    answer(&mut session, "完了").await;
    assert_eq!(world.script.read_count.load(Ordering::Relaxed), 0);
    assert_eq!((world.warnings().await, world.plans().await), (vec![], 0));
}

#[tokio::test(start_paused = true)]
async fn a_visit_that_has_used_up_its_plans_does_not_read_the_script_again() {
    // The inserted action has the id of the previous one, so every plan but the first is rejected, and ten are requested.
    let rounds = (MAX_PLAN_REQUESTS + 3).to_string();
    let world = World::new(&SCRIPT.replace("max_rounds: 6", &format!("max_rounds: {rounds}")), SOON, SOON);
    let mut session = world.start().await;
    let mut read_counts = Vec::new();
    for _ in 0..=MAX_PLAN_REQUESTS {
        answer(&mut session, "嗯").await;
        read_counts.push(world.script.read_count.load(Ordering::Relaxed));
    }
    assert_eq!(world.plans().await, MAX_PLAN_REQUESTS as usize);
    let [.., tenth, eleventh] = read_counts.as_slice() else { panic!("{read_counts:?}") };
    assert_eq!(tenth, eleventh);
    assert_eq!(world.warnings().await, [] as [&str; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_pending_plan_for_a_topic_that_is_over_is_reported_once_after_a_resume() {
    let world = World::new(SCRIPT, SOON, LONG);
    world.model.plan_requests.store(1, Ordering::Relaxed);
    let mut session = world.start().await;
    answer(&mut session, "嗯").await;
    assert_eq!(session.answer("完了", None).await.unwrap(), TakenAnswer::Yes);
    assert_eq!(session.advance().await.unwrap(), SessionPause::Waiting);
    drop(session);
    for _ in 0..2 {
        let mut session = world.resume().await;
        assert_eq!(session.advance().await.unwrap(), SessionPause::Waiting);
        wait(&mut session, LONG * 2).await;
        assert_eq!(world.warnings().await, [TOPIC_OVER]);
    }
    assert_eq!(world.plans().await, 0);
}

#[tokio::test(start_paused = true)]
async fn an_analysis_that_requests_a_plan_for_a_topic_that_is_over_is_reported_as_too_late() {
    for (allowed, warnings) in [("on", vec![TOPIC_OVER]), ("off", vec![])] {
        let script = SCRIPT.replace("orchestration: on", &format!("orchestration: {allowed}"));
        let world = World::new(&script, LONG, SOON);
        let mut session = world.start().await;
        answer(&mut session, "完了").await;
        wait(&mut session, LONG * 2).await;
        assert_eq!(world.warnings().await, warnings, "{allowed}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_for_a_plan_while_another_one_is_being_made_is_reported() {
    let world = World::new(SCRIPT, SOON, LONG);
    let mut session = world.start().await;
    answer(&mut session, "嗯").await;
    assert_eq!(world.warnings().await, [] as [&str; 0]);
    answer(&mut session, "还行").await;
    assert_eq!(world.warnings().await, ["there is no plan for the rest of the topic: another plan is being made"]);
    wait(&mut session, LONG * 2).await;
    assert_eq!((world.warnings().await.len(), world.plans().await), (1, 1), "the first one comes all the same");
}

#[tokio::test(start_paused = true)]
async fn plans_that_no_longer_fit_the_topic_are_reported() {
    crate::at_root();
    let world = World::new(SCRIPT, SOON, SOON);
    let mut session = world.start().await;
    answer(&mut session, "嗯").await;
    assert_eq!((world.warnings().await, world.plans().await), (vec![], 1));
    world.script.is_replaced.store(true, Ordering::Relaxed);
    answer(&mut session, "还行").await;
    assert_eq!(
        world.warnings().await,
        ["there is no plan for the rest of the topic: the earlier plans do not fit the topic: every action \
          of the topic is done"]
    );
}
