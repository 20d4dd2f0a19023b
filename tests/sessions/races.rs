//! Advice that comes in at every possible moment around a turn, a death and a resume (LANGUAGE.md section 9): thousands of
//! seeded schedules in virtual time. Models, monitors and the person take as long as the seed has it; the process dies before
//! or after some commits, and in the middle of waiting; what the journal tells must hold whatever the order was.
//!
//! `RACES=50000 cargo test --test sessions races` runs more of them, `RACE_SEED=17` only that one.

use crate::stage;
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

use crate::mortal::{Death, MortalArchive};
use crate::stage::SESSION;

/// Schedules, when `RACES` says nothing: about ten seconds of them.
const SCHEDULES: u64 = if cfg!(debug_assertions) { 1_200 } else { 12_000 };

/// Two topics, of which one is visited again and the other runs for each element of a list; a skill in between.
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

/// What all processes of one session have in common.
struct World {
    archive: Arc<MortalArchive>,
    chance: Mutex<fastrand::Rng>,
    /// Turns that were judged so far: each has a tag of its own in its metrics.
    tags: AtomicU64,
    /// What went wrong where nobody can panic.
    wrong: Mutex<Vec<String>>,
}

impl World {
    fn chance<T>(&self, draw: impl FnOnce(&mut fastrand::Rng) -> T) -> T {
        draw(&mut self.chance.lock().unwrap())
    }

    fn wrong(&self, what: String) {
        self.wrong.lock().unwrap().push(what);
    }
}

struct Process {
    world: Arc<World>,
    /// The actions, by their paths, whose monitors are under way, and those that had one in this process.
    watched: Arc<Mutex<Watched>>,
}

#[derive(Default)]
struct Watched {
    running: BTreeSet<String>,
    before: BTreeSet<String>,
}

/// A monitor under way, until it is done or given up.
struct Running(Arc<Mutex<Watched>>, String);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.lock().unwrap().running.remove(&self.1);
    }
}

impl Process {
    /// One analysis begins: of which action, and whether it may.
    async fn watch(&self, tag: &str) -> Running {
        let rows = self.world.archive.journal_of(SESSION, "outcome", 0, usize::MAX).await.unwrap();
        let metric = |tag: &str| format!("\"user_engagement\":\"{tag}");
        let judged =
            rows.iter().find(|row| row.body.contains(&metric(tag))).expect("a turn that is not committed is watched");
        let judged: Value = serde_json::from_str(&judged.body).unwrap();
        let path = judged["location"]["path"].as_str().unwrap().to_owned();
        let mut watched = self.watched.lock().unwrap();
        if !watched.running.insert(path.clone()) {
            self.world.wrong(format!("two monitors of {path} at a time"));
        }
        let here = format!("\"path\":\"{path}\"");
        let newest = rows.iter().rev().find(|row| row.body.contains(&here) && row.body.contains(&metric("#"))).unwrap();
        // What a resumed session starts again may be older: the newest waits for it.
        if !watched.before.insert(path.clone()) && !newest.body.contains(&metric(tag)) {
            self.world.wrong(format!("{tag} of {path} is analysed, though a newer turn waits"));
        }
        Running(Arc::clone(&self.watched), path)
    }

    async fn monitor(&self, prompt: &str) -> String {
        let tag = prompt.split(['<', '>']).nth(1).unwrap().to_owned();
        let running = self.watch(&tag).await;
        let (ms, kind) = self.world.chance(|chance| {
            let ms = if chance.u8(..12) == 0 { 200_000 } else { chance.u64(..9_000) };
            (ms, chance.u8(..10))
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
        let (ms, exit, blocked) =
            self.world.chance(|chance| (chance.u64(1..3_000), chance.u8(..5) < 2, chance.u8(..4) == 0));
        sleep(Duration::from_millis(ms)).await;
        let tag = format!("#{}#", self.world.tags.fetch_add(1, Ordering::Relaxed));
        let suggestion = if blocked { "blocked" } else { "continue_needed" };
        stage::reply(&request.task.kind, &tag, exit && !request.task.opening, suggestion)
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
        stage::Only::of(Arc::new(Process { world: Arc::clone(&self.world), watched: Arc::default() }))
    }

    fn archive(&self) -> Arc<dyn Store> {
        Arc::<MortalArchive>::clone(&self.world.archive)
    }

    fn pause(&self, most: u64) -> Duration {
        Duration::from_millis(self.world.chance(|chance| chance.u64(..most)))
    }

    /// The process is dead; after a while another one goes on.
    async fn again(&self, dead: Session) -> Option<Session> {
        drop(dead);
        sleep(self.pause(2_000)).await;
        let row = self.world.archive.session(SESSION).await.unwrap().unwrap();
        let over = SessionStatus::parse(&row.status).unwrap().is_final();
        if over { None } else { Some(stage::resume(&self.program, self.archive(), self.models()).await) }
    }

    /// Does something, unless the process dies meanwhile: at a commit, or at any other moment.
    async fn mortal<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let killed = if self.world.chance(|chance| chance.u8(..12)) == 0 { self.pause(4_000) } else { Duration::MAX };
        timeout(killed, self.world.archive.mortal(work)).await.ok().flatten()
    }

    /// The person thinks. Meanwhile arrivals are noted, or not: a front end may have no time for it.
    async fn think(&self, mut session: Session) -> Option<Session> {
        let until =
            Instant::now() + self.pause(self.world.chance(|chance| *chance.choice(&[1, 4_000, 150_000]).unwrap()));
        if self.world.chance(|chance| chance.u8(..4)) == 0 {
            sleep(until - Instant::now()).await;
            return Some(session);
        }
        while timeout_at(until, session.arrived()).await.is_ok() {
            match self.mortal(session.note_arrivals()).await {
                Some(noted) => noted.unwrap(),
                None => session = self.again(session).await?,
            }
        }
        Some(session)
    }

    /// Sends the answer until it is known to have been taken.
    async fn answer(&self, mut session: Session, number: usize) -> Option<Session> {
        let id = format!("mine-{number}");
        loop {
            match self.mortal(session.answer("嗯", Some(&id))).await {
                Some(taken) => {
                    assert!(matches!(taken.unwrap(), TakenAnswer::Yes | TakenAnswer::Before));
                    return Some(session);
                }
                None => session = self.again(session).await?,
            }
        }
    }

    async fn run(&self) {
        let mut living = Some(stage::begin(&self.program, self.archive(), self.models()).await);
        let most = self.world.chance(|chance| chance.usize(2..12));
        let mut answers = 0;
        while let Some(mut session) = living.take() {
            living = match self.mortal(session.advance()).await {
                None => self.again(session).await,
                Some(Ok(SessionPause::Waiting)) if answers < most => {
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

/// What the journal of one schedule came to.
#[derive(Default)]
struct Count {
    arrived: usize,
    used: usize,
    late: usize,
}

/// Advice that waits in a visit of a topic or skill.
#[derive(Debug)]
struct Waiting {
    seq: u64,
    about: u64,
    action: String,
    text: String,
}

fn words<'v>(value: &'v Value, key: &str) -> &'v str {
    value[key].as_str().unwrap_or_default()
}

/// Where the action of a path is at home.
fn home(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(home, _)| home)
}

/// The number in `c12.0`, `c12.m`: for a turn, that of the first event of its commit.
fn number(call: &Value) -> u64 {
    let id = words(call, "call_id").strip_prefix('c').unwrap();
    id.split('.').next().unwrap().parse().unwrap()
}

fn check(journal: &[Value]) -> Count {
    let seq = |event: &Value| event["seq"].as_u64().unwrap();
    let of_turn = |event: &&Value| event["type"] == "model_call" && event["purpose"] == "action";
    let turns: BTreeSet<u64> = journal.iter().filter(of_turn).map(number).collect();
    let turn_of = |seq: u64| *turns.range(..=seq).next_back().unwrap();
    // Which advice each turn says it used, by the turn.
    let mut uses = BTreeMap::new();
    let mut used = BTreeSet::new();
    for event in journal.iter().filter(|event| event["type"] == "monitor_feedback" && event["used"] == true) {
        let brought = event["feedback"].as_u64().unwrap();
        let arrival = &journal[usize::try_from(brought).unwrap() - 1];
        assert!(arrival["type"] == "monitor_feedback" && arrival["used"] == false, "{event} refers to no arrival");
        assert!(used.insert(brought), "used twice: {arrival}");
        let turn = turn_of(seq(event));
        assert!(brought < turn, "used by a turn that began before it came: {event}");
        let at = words(&event["location"], "path");
        assert_eq!(home(at), words(&arrival["location"], "path"), "used elsewhere: {event}");
        assert!(uses.insert(turn, brought).is_none(), "one turn, two advices: {event}");
    }
    // Which advice each turn must have used: the newest that had come to its home and was not used before.
    let mut waiting: BTreeMap<String, Waiting> = BTreeMap::new();
    let mut count = Count { used: used.len(), ..Count::default() };
    let (mut about, mut worked) = (0, false);
    let mut told: BTreeMap<u64, Option<String>> = BTreeMap::new();
    for event in journal {
        match words(event, "type") {
            "model_call" if event["purpose"] == "monitor" => {
                about = number(event);
                worked = event["error"].is_null();
            }
            "monitor_feedback" if event["used"] == false => {
                let home = words(&event["location"], "path").to_owned();
                let action = words(event, "action_id").to_owned();
                let Some(text) = event["analysis"]["feedback_for_action"].as_str() else {
                    // A newer analysis of the same action that advises nothing takes older advice back.
                    let outdated = |waits: &Waiting| worked && waits.action == action && waits.about < about;
                    if waiting.get(&home).is_some_and(outdated) {
                        waiting.remove(&home);
                    }
                    continue;
                };
                count.arrived += 1;
                if waiting.get(&home).is_none_or(|waits| waits.about <= about) {
                    waiting.insert(home, Waiting { seq: seq(event), about, action, text: text.to_owned() });
                }
            }
            "model_call" if event["purpose"] == "action" && !told.contains_key(&number(event)) => {
                let due = waiting.remove(home(words(&event["location"], "path")));
                assert_eq!(
                    uses.get(&number(event)),
                    due.as_ref().map(|due| &due.seq),
                    "lost or made up: {due:?} {event}"
                );
                told.insert(number(event), due.map(|due| due.text));
            }
            "outcome" if !event["debug_info"]["llm_prompt"].is_null() => {
                // And the model was told just that.
                let prompt = event["debug_info"]["llm_prompt"].to_string();
                let due = told.get(&turn_of(seq(event))).unwrap();
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
            archive: MortalArchive::new(Death::Sometimes(seed)),
            chance: Mutex::new(fastrand::Rng::with_seed(seed)),
            tags: AtomicU64::default(),
            wrong: Mutex::default(),
        });
        let schedule = Schedule { world: Arc::clone(&world), program: Arc::clone(program) };
        schedule.run().await;
        let journal = stage::journal(world.archive.as_ref()).await;
        let failed = journal.iter().find(|event| ["session_failed", "session_stopped"].contains(&words(event, "type")));
        assert_eq!(failed, None);
        assert_eq!(*world.wrong.lock().unwrap(), Vec::<String>::new());
        check(&journal)
    })
}

/// Tells the seed when a schedule fails.
struct Told(u64);

impl Drop for Told {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("RACE_SEED={} fails", self.0);
        }
    }
}

#[test]
fn advice_is_used_at_most_once_in_its_own_topic_and_never_lost_whenever_it_comes() {
    let said = |name: &str| std::env::var(name).ok().and_then(|said| said.parse::<u64>().ok());
    let program = stage::program(SCRIPT);
    let seeds: Vec<u64> = match said("RACE_SEED") {
        Some(seed) => vec![seed],
        None => (0..said("RACES").unwrap_or(SCHEDULES)).collect(),
    };
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let counts: Vec<Count> = std::thread::scope(|scope| {
        let run = |worker: usize| {
            let (seeds, program) = (&seeds, &program);
            move || {
                let mine = seeds.iter().skip(worker).step_by(workers);
                mine.map(|seed| {
                    let _told = Told(*seed);
                    race(*seed, program)
                })
                .collect::<Vec<_>>()
            }
        };
        let threads: Vec<_> = (0..workers).map(|worker| scope.spawn(run(worker))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    // The schedules are worth something only as long as all of it happens.
    let sum = |of: fn(&Count) -> usize| counts.iter().map(of).sum::<usize>();
    let (arrived, used, late) = (sum(|count| count.arrived), sum(|count| count.used), sum(|count| count.late));
    eprintln!("{} schedules: {arrived} advices came, {used} were used, {late} waited to the end", seeds.len());
    if seeds.len() > 1 {
        assert!(used > seeds.len() && arrived > used && late > seeds.len() / 4, "{arrived} {used} {late}");
    }
}
