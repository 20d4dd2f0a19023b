//! Advice that arrives at every possible moment around a turn, a death and a resume (docs/monitors.md): thousands of seeded
//! schedules in virtual time. The seed decides how long models, monitors and the person take. The process dies before or after some
//! commits, and while it waits. The invariants of the journal must hold for any order.
//!
//! `RACES=50000 cargo test --test sessions races` runs more of them, `RACE_SEED=17` only that one.

use crate::test_session;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bcc_llm::model::error::ModelError;
use bcc_llm::model::provider::{LiveObserver, Provider};
use bcc_llm::model::reply::ModelReply;
use bcc_llm::model::request::{ModelRequest, Purpose};
use bcc_runtime::program::models::ModelProviders;
use bcc_runtime::program::program::Program;
use bcc_runtime::run::head::SessionStatus;
use bcc_runtime::run::session::{Session, SessionPause, TakenAnswer};
use bcc_store::contract::Store;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout, timeout_at};

use crate::crashing_store::{CrashMode, CrashingStore};
use crate::test_session::SESSION;

/// The number of schedules if `RACES` is not set: about ten seconds of them.
const SCHEDULES: u64 = if cfg!(debug_assertions) { 1_200 } else { 12_000 };

/// One topic that is visited again, one that runs for each element of a list, and a skill that is inserted.
const SCRIPT: &str = "
session:
  session_id: race
  history: { messages: 3, chars: 200 }
  declare: [{ var: people, type: list, value: [甲, 乙] }, { var: again, type: integer, value: 0 }]
  skills:
    - { skill_id: comfort, actions: [{ action_type: ai_ask, action_id: soothe, config: { content: 还好吗？, max_rounds: 2 } }] }
  phases:
    - phase_id: p
      topics:
        - topic_id: first
          actions:
            - action_type: ai_ask
              action_id: ask
              on_exit: { user_blocked: { insert: comfort, then: resume } }
              config: { content: 一, max_rounds: 4 }
            - { action_type: ai_say, action_id: tell, config: { content: 二, delivery: verbatim } }
            - { action_type: ai_say, action_id: explain, config: { content: 三, max_rounds: 2 } }
        - topic_id: each
          for_each: { in: people, as: person }
          actions: [{ action_type: ai_ask, action_id: about, config: { content: \"说说{{ person }}\", max_rounds: 3 } }]
        - topic_id: back
          actions:
            - action_type: set
              action_id: once_more
              condition: again < 1
              on_exit: { exit_criteria_met: { goto: first } }
              config: { values: { again: 1 } }
";

/// The state that all processes of one session share.
struct World {
    store: Arc<CrashingStore>,
    rng: Mutex<fastrand::Rng>,
    /// The number of turns so far: the metrics of each have a unique tag.
    tags: AtomicU64,
    /// Problems that were found where a panic would be lost.
    problems: Mutex<Vec<String>>,
}

impl World {
    fn random<T>(&self, draw: impl FnOnce(&mut fastrand::Rng) -> T) -> T {
        draw(&mut self.rng.lock().unwrap())
    }

    fn report_problem(&self, problem: String) {
        self.problems.lock().unwrap().push(problem);
    }
}

struct Process {
    world: Arc<World>,
    /// The paths of actions whose monitors are running, and of those that had one in this process.
    watched: Arc<Mutex<Watched>>,
}

#[derive(Default)]
struct Watched {
    running: BTreeSet<String>,
    before: BTreeSet<String>,
}

/// A running monitor, until it is done or canceled.
struct Running(Arc<Mutex<Watched>>, String);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.lock().unwrap().running.remove(&self.1);
    }
}

impl Process {
    /// Records the start of an analysis and checks that it may start.
    async fn watch(&self, tag: &str) -> Running {
        let rows = self.world.store.journal_by_kind(SESSION, "outcome", 0, usize::MAX).await.unwrap();
        let metric = |tag: &str| format!("\"user_engagement\":\"{tag}");
        let outcome =
            rows.iter().find(|row| row.body.contains(&metric(tag))).expect("a turn that is not committed is watched");
        let outcome: Value = serde_json::from_str(&outcome.body).unwrap();
        let path = outcome["location"]["path"].as_str().unwrap().to_owned();
        let mut watched = self.watched.lock().unwrap();
        if !watched.running.insert(path.clone()) {
            self.world.report_problem(format!("two monitors of {path} at a time"));
        }
        let same_path = format!("\"path\":\"{path}\"");
        let newest_layout =
            rows.iter().rev().find(|row| row.body.contains(&same_path) && row.body.contains(&metric("#"))).unwrap();
        // An analysis that a resumed session starts again may be older than the newest turn, which then waits for it.
        if !watched.before.insert(path.clone()) && !newest_layout.body.contains(&metric(tag)) {
            self.world.report_problem(format!("{tag} of {path} is analysed, though a newer turn waits"));
        }
        Running(Arc::clone(&self.watched), path)
    }

    async fn monitor(&self, prompt: &str) -> String {
        // A metric that looks like markup is quoted.
        let tag = prompt.split('#').nth(1).map(|number| format!("#{number}#")).unwrap();
        let running = self.watch(&tag).await;
        let (ms, kind) = self.world.random(|rng| {
            let ms = if rng.u8(..12) == 0 { 200_000 } else { rng.u64(..9_000) };
            (ms, rng.u8(..10))
        });
        sleep(Duration::from_millis(ms)).await;
        drop(running);
        match kind {
            0 => "not { json".to_owned(),
            1 => json!({ "intervention_needed": false, "feedback_for_action": null }).to_string(),
            _ => json!({ "feedback_for_action": format!("advice {tag}") }).to_string(),
        }
    }

    async fn act(&self, request: &ModelRequest) -> String {
        let (ms, exit, blocked) = self.world.random(|rng| (rng.u64(1..3_000), rng.u8(..5) < 2, rng.u8(..4) == 0));
        sleep(Duration::from_millis(ms)).await;
        let tag = format!("#{}#", self.world.tags.fetch_add(1, Ordering::Relaxed));
        let suggestion = if blocked { "blocked" } else { "continue_needed" };
        test_session::reply(&request.task.kind, &tag, exit && !request.task.opening, suggestion)
    }
}

#[async_trait]
impl Provider for Process {
    fn name(&self) -> &str {
        "moody"
    }

    async fn complete(&self, request: &ModelRequest, _live: &mut dyn LiveObserver) -> Result<ModelReply, ModelError> {
        let prompt: String = request.messages.iter().map(|message| message.content.as_str()).collect();
        let text = match request.task.purpose {
            Purpose::Action => self.act(request).await,
            Purpose::Monitor => self.monitor(&prompt).await,
            Purpose::Orchestrator | Purpose::Persona => panic!("no plan was expected"),
        };
        Ok(ModelReply { text, model: "moody".to_owned(), attempts: 1, ..ModelReply::default() })
    }
}

struct Schedule {
    world: Arc<World>,
    program: Arc<Program>,
}

impl Schedule {
    fn models(&self) -> Arc<dyn ModelProviders> {
        test_session::FixedModels::of(Arc::new(Process { world: Arc::clone(&self.world), watched: Arc::default() }))
    }

    fn store(&self) -> Arc<dyn Store> {
        Arc::<CrashingStore>::clone(&self.world.store)
    }

    fn delay(&self, max_ms: u64) -> Duration {
        Duration::from_millis(self.world.random(|rng| rng.u64(..max_ms)))
    }

    /// The process is dead; after a delay another one resumes the session.
    async fn restart(&self, dead: Session) -> Option<Session> {
        drop(dead);
        sleep(self.delay(2_000)).await;
        let row = self.world.store.session(SESSION).await.unwrap().unwrap();
        let over = SessionStatus::parse(&row.status).unwrap().is_final();
        if over { None } else { Some(test_session::resume(&self.program, self.store(), self.models()).await) }
    }

    /// Runs `work`, unless the process dies meanwhile: at a commit, or at any other moment.
    async fn run_until_crash<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let time_to_live = if self.world.random(|rng| rng.u8(..12)) == 0 { self.delay(4_000) } else { Duration::MAX };
        timeout(time_to_live, self.world.store.run_until_crash(work)).await.ok().flatten()
    }

    /// The person thinks. Meanwhile arrivals are noted, or not: a front end may be busy.
    async fn think(&self, mut session: Session) -> Option<Session> {
        let deadline = Instant::now() + self.delay(self.world.random(|rng| *rng.choice(&[1, 4_000, 150_000]).unwrap()));
        if self.world.random(|rng| rng.u8(..4)) == 0 {
            sleep(deadline - Instant::now()).await;
            return Some(session);
        }
        while timeout_at(deadline, session.wait_for_result()).await.is_ok() {
            match self.run_until_crash(session.commit_results()).await {
                Some(noted) => noted.unwrap(),
                None => session = self.restart(session).await?,
            }
        }
        Some(session)
    }

    /// Sends the answer until it is known to be accepted.
    async fn answer(&self, mut session: Session, number: usize) -> Option<Session> {
        let id = format!("mine-{number}");
        loop {
            match self.run_until_crash(session.answer("嗯", Some(&id))).await {
                Some(taken) => {
                    assert!(matches!(taken.unwrap(), TakenAnswer::Yes | TakenAnswer::AlreadyUsed));
                    return Some(session);
                }
                None => session = self.restart(session).await?,
            }
        }
    }

    async fn run(&self) {
        let mut current = Some(test_session::start_conversation(&self.program, self.store(), self.models()).await);
        let max_answers = self.world.random(|rng| rng.usize(2..12));
        let mut answers = 0;
        while let Some(mut session) = current.take() {
            current = match self.run_until_crash(session.advance()).await {
                None => self.restart(session).await,
                Some(Ok(SessionPause::Waiting)) if answers < max_answers => {
                    answers += 1;
                    match self.think(session).await {
                        Some(session) => self.answer(session, answers).await,
                        None => None,
                    }
                }
                Some(pause) => {
                    pause.unwrap();
                    None
                }
            };
        }
    }
}

/// The advice in the journal of one schedule.
#[derive(Default)]
struct Count {
    wait_for_result: usize,
    used: usize,
    late: usize,
}

/// Advice that waits for use in a visit of a topic or skill.
#[derive(Debug)]
struct Waiting {
    seq: u64,
    turn: u64,
    action: String,
    text: String,
}

fn field<'v>(value: &'v Value, key: &str) -> &'v str {
    value[key].as_str().unwrap_or_default()
}

/// The topic or skill that contains the action of a path.
fn visit_path(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(visit_path, _)| visit_path)
}

/// The number in `c12.0` or `c12.m`: for a turn, the number of the first event of its commit.
fn number(call: &Value) -> u64 {
    let id = field(call, "call_id").strip_prefix('c').unwrap();
    id.split('.').next().unwrap().parse().unwrap()
}

fn check(journal: &[Value]) -> Count {
    let seq = |event: &Value| event["seq"].as_u64().unwrap();
    let of_turn = |event: &&Value| event["type"] == "model_call" && event["purpose"] == "action";
    let turns: BTreeSet<u64> = journal.iter().filter(of_turn).map(number).collect();
    let turn_of = |seq: u64| *turns.range(..=seq).next_back().unwrap();
    // The advice that each turn reports as used, by turn.
    let mut uses = BTreeMap::new();
    let mut used = BTreeSet::new();
    for event in journal.iter().filter(|event| event["type"] == "monitor_feedback" && event["used"] == true) {
        let arrival_seq = event["feedback"].as_u64().unwrap();
        let arrival = &journal[usize::try_from(arrival_seq).unwrap() - 1];
        assert!(arrival["type"] == "monitor_feedback" && arrival["used"] == false, "{event} refers to no arrival");
        assert!(used.insert(arrival_seq), "used twice: {arrival}");
        let turn = turn_of(seq(event));
        assert!(arrival_seq < turn, "used by a turn that began before it came: {event}");
        let at = field(&event["location"], "path");
        assert_eq!(visit_path(at), field(&arrival["location"], "path"), "used elsewhere: {event}");
        assert!(uses.insert(turn, arrival_seq).is_none(), "one turn, two advices: {event}");
    }
    // The advice that each turn must have used: the newest unused one that had arrived in its topic or skill.
    let mut waiting: BTreeMap<String, Waiting> = BTreeMap::new();
    let mut count = Count { used: used.len(), ..Count::default() };
    let (mut turn, mut succeeded) = (0, false);
    let mut advice_by_turn: BTreeMap<u64, Option<String>> = BTreeMap::new();
    for event in journal {
        match field(event, "type") {
            "model_call" if event["purpose"] == "monitor" => {
                turn = number(event);
                succeeded = event["error"].is_null();
            }
            "monitor_feedback" if event["used"] == false => {
                let visit_path = field(&event["location"], "path").to_owned();
                let action = field(event, "action_id").to_owned();
                let Some(text) = event["analysis"]["feedback_for_action"].as_str() else {
                    // A newer analysis of the same action without advice withdraws older advice.
                    let outdated = |waiting_advice: &Waiting| {
                        succeeded && waiting_advice.action == action && waiting_advice.turn < turn
                    };
                    if waiting.get(&visit_path).is_some_and(outdated) {
                        waiting.remove(&visit_path);
                    }
                    continue;
                };
                count.wait_for_result += 1;
                if waiting.get(&visit_path).is_none_or(|waiting_advice| waiting_advice.turn <= turn) {
                    waiting.insert(visit_path, Waiting { seq: seq(event), turn, action, text: text.to_owned() });
                }
            }
            "model_call" if event["purpose"] == "action" && !advice_by_turn.contains_key(&number(event)) => {
                let due = waiting.remove(visit_path(field(&event["location"], "path")));
                assert_eq!(
                    uses.get(&number(event)),
                    due.as_ref().map(|due| &due.seq),
                    "lost or made up: {due:?} {event}"
                );
                advice_by_turn.insert(number(event), due.map(|due| due.text));
            }
            "outcome" if !event["debug_info"]["llm_prompt"].is_null() => {
                // The prompt must contain exactly this advice.
                let prompt = event["debug_info"]["llm_prompt"].to_string();
                let due = advice_by_turn.get(&turn_of(seq(event))).unwrap();
                assert_eq!(prompt.matches("advice #").count(), usize::from(due.is_some()), "{prompt}");
                assert!(due.as_ref().is_none_or(|text| prompt.contains(text.as_str())), "{due:?}: {prompt}");
            }
            _ => {}
        }
    }
    count.late = waiting.len();
    count
}

fn race(seed: u64, program: &Arc<Program>) -> Count {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let world = Arc::new(World {
            store: CrashingStore::new(CrashMode::Sometimes(seed)),
            rng: Mutex::new(fastrand::Rng::with_seed(seed)),
            tags: AtomicU64::default(),
            problems: Mutex::default(),
        });
        let schedule = Schedule { world: Arc::clone(&world), program: Arc::clone(program) };
        schedule.run().await;
        let journal = test_session::journal(world.store.as_ref()).await;
        let failed = journal.iter().find(|event| ["session_failed", "session_stopped"].contains(&field(event, "type")));
        assert_eq!(failed, None);
        assert_eq!(*world.problems.lock().unwrap(), Vec::<String>::new());
        check(&journal)
    })
}

/// Prints the seed if a schedule fails.
struct SeedReport(u64);

impl Drop for SeedReport {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("RACE_SEED={} fails", self.0);
        }
    }
}

#[test]
fn advice_is_used_at_most_once_in_its_own_topic_and_never_lost_whenever_it_comes() {
    let number_from_env = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let program = test_session::program(SCRIPT);
    let seeds: Vec<u64> = match number_from_env("RACE_SEED") {
        Some(seed) => vec![seed],
        None => (0..number_from_env("RACES").unwrap_or(SCHEDULES)).collect(),
    };
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let counts: Vec<Count> = std::thread::scope(|scope| {
        let run = |worker: usize| {
            let (seeds, program) = (&seeds, &program);
            move || {
                let mine = seeds.iter().skip(worker).step_by(workers);
                mine.map(|seed| {
                    let _report = SeedReport(*seed);
                    race(*seed, program)
                })
                .collect::<Vec<_>>()
            }
        };
        let threads: Vec<_> = (0..workers).map(|worker| scope.spawn(run(worker))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    // The schedules are useful only if all cases occur.
    let sum = |value: fn(&Count) -> usize| counts.iter().map(value).sum::<usize>();
    let (wait_for_result, used, late) =
        (sum(|count| count.wait_for_result), sum(|count| count.used), sum(|count| count.late));
    eprintln!("{} schedules: {wait_for_result} advices came, {used} were used, {late} waited to the end", seeds.len());
    if seeds.len() > 1 {
        assert!(
            used > seeds.len() && wait_for_result > used && late > seeds.len() / 4,
            "{wait_for_result} {used} {late}"
        );
    }
}
