//! A conversation as a file: a script, the model's replies, and the person's answers. A run through the library, uninterrupted or with a
//! process crash at every commit, gives a [`Record`].

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bcc_engine::clock::FixedClock;
use bcc_engine::engine::{Engine, OpenedSession, RunRequest};
use bcc_engine::environment::Environment;
use bcc_engine::error::EngineError;
use bcc_engine::export::export;
use bcc_engine::project::Project;
use bcc_lang::source::render::human::human;
use bcc_runtime::program::clock::Clock;
use bcc_runtime::program::event::{Delta, Observer};
use bcc_runtime::program::limits::Budget;
use bcc_runtime::program::stored_event::public_line;
use bcc_runtime::run::session::{Session, SessionPause, TakenAnswer};
use bcc_store::contract::Store;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use self::complete_reply::complete_reply;
use crate::crashing_store::{CrashMode, CrashingStore};

#[path = "complete_reply.rs"]
mod complete_reply;

/// The session of a case.
const SESSION: &str = "s";

/// The start time of every session.
const START: &str = "2026-11-21T20:00:00Z";

/// The timeout for monitors and plans, in virtual time: longer than any of them takes.
const ANALYSIS_TIMEOUT: Duration = Duration::from_secs(1_000);

/// Fields of an event or outcome that hold times and positions, which differ between runs.
const STAMPS: [&str; 4] = ["seq", "at", "timestamp", "session_id"];

/// Events that only a resumed session has.
const OF_RESUMING: [&str; 2] = ["session_resumed", "message_discarded"];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case<E = Value> {
    /// What the case shows, where its name is not enough.
    #[serde(default, rename = "about")]
    _about: String,
    /// The script as text.
    script: Option<String>,
    /// Or the fields of its `session:`; `session_id` is optional.
    session: Option<Map<String, Value>>,
    /// Or (and) the actions of its only topic.
    actions: Option<Vec<Value>>,
    #[serde(default)]
    files: BTreeMap<String, String>,
    /// The model's replies, as under `replies` in a file for `--model replay:`.
    #[serde(default)]
    replies: Map<String, Value>,
    /// `--scheme`.
    scheme: Option<String>,
    /// Each `--var`.
    #[serde(default)]
    variables: Vec<String>,
    /// The answers of an earlier session of the same user.
    earlier: Option<Vec<String>>,
    #[serde(default)]
    answers: Vec<String>,
    /// Whether the person answers at once, while monitors are still running.
    #[serde(default)]
    at_once: bool,
    /// The minutes that the person takes for each answer; otherwise no time passes.
    minutes: Option<Vec<u64>>,
    /// The `--budget` for each resume after the session stopped; empty for none.
    #[serde(default)]
    budgets: Vec<String>,
    /// Whether there may be unused answers.
    #[serde(default)]
    spare_answers: bool,
    pub(crate) expect: E,
}

#[derive(Debug, PartialEq)]
pub(crate) struct Record {
    pub(crate) status: String,
    /// `ai: …` and `user: …`, in order.
    pub(crate) said: Vec<String>,
    /// `session.x`, `topic.topic_a.x` with value, source and round.
    pub(crate) variables: BTreeMap<String, Value>,
    pub(crate) outcomes: Vec<Value>,
    /// The history of metrics in the export, without times and positions.
    pub(crate) metrics: Vec<Value>,
    pub(crate) events: Vec<Value>,
    /// Everything that is shown, exported or recorded about the session, except the conversation itself.
    pub(crate) records: String,
}

impl Record {
    /// Asserts that another run of the same case has the same result.
    pub(crate) fn assert_same(&self, other: &Self, what: &str) {
        assert_eq!(self.said, other.said, "{what}: transcript");
        assert_eq!(self.variables, other.variables, "{what}: variables");
        assert_eq!(self.outcomes, other.outcomes, "{what}: outcomes");
        assert_eq!(self.events, other.events, "{what}: events");
        assert_eq!(self.status, other.status, "{what}: status");
    }
}

/// Runs a case in virtual time.
pub(crate) fn run<E>(case: &Case<E>, crash_mode: CrashMode) -> Result<Record, Refused> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(converse(case, crash_mode))
}

/// The report that the person sees when the session cannot start.
pub(crate) struct Refused(pub(crate) String);

/// Collects the deltas of messages that are shown while they are streamed.
#[derive(Default)]
struct Watcher {
    shown: Mutex<BTreeMap<String, String>>,
}

impl Observer for Watcher {
    fn delta(&self, delta: &Delta<'_>) {
        self.shown.lock().unwrap().entry(delta.message_id.to_owned()).or_default().push_str(delta.text);
    }
}

impl Watcher {
    /// Asserts that streamed text is the text of the message, or that the journal discards it.
    async fn check(&self, store: &CrashingStore, session: &str) {
        let rows = store.journal(session, 0, usize::MAX).await.unwrap();
        let mut left = self.shown.lock().unwrap().clone();
        for row in rows.iter().filter(|row| row.kind == "message" || row.kind == "message_discarded") {
            let event: Value = serde_json::from_str(&row.body).unwrap();
            let shown = left.remove(event["message_id"].as_str().unwrap());
            let differs = shown.is_some_and(|shown| row.kind == "message" && event["text"] != shown);
            assert!(!differs, "shown live in other words than it was said: {event}");
        }
        // A resumed session knows only the first message of the turn that crashed; its other messages (`m7.1`) are discarded with it.
        let discarded = |id: &str| {
            rows.iter().any(|row| row.kind == "message_discarded" && row.body.contains(&format!("\"{id}\"")))
        };
        left.retain(|id, _| !discarded(id.split('.').next().unwrap()));
        assert!(left.is_empty(), "shown live, neither said nor discarded: {left:?}");
    }
}

/// Runs the case in a new project.
async fn converse<E>(case: &Case<E>, crash_mode: CrashMode) -> Result<Record, Refused> {
    let directory = tempfile::tempdir().unwrap();
    let file = prepare(case, directory.path());
    let store = CrashingStore::new(crash_mode);
    let replies = directory.path().join("replies.yaml");
    let request = |session: &str| RunRequest {
        file: file.clone(),
        session: Some(session.to_owned()),
        model: Some(format!("replay:{}", replies.display())),
        scheme: case.scheme.clone(),
        variables: case.variables.clone(),
        clock: case.minutes.is_none().then(|| START.to_owned()),
        ..RunRequest::default()
    };
    let clock = case.minutes.is_some().then(Arc::<ScriptedClock>::default);
    let spare_answers = case.spare_answers;
    let environment = Environment::default();
    let project = Project::in_directory(directory.path().to_path_buf(), false, &environment).unwrap();
    let engine = Engine::new(project, environment, Arc::<CrashingStore>::clone(&store));
    let engine = match &clock {
        Some(clock) => engine.with_clock(Arc::<ScriptedClock>::clone(clock)),
        None => engine,
    };
    let driver = Driver { at_once: case.at_once, engine, store: Arc::clone(&store), spare_answers, clock };
    if let Some(answers) = &case.earlier {
        driver.drive(&request("earlier"), answers, &[], &[]).await?;
    }
    let minutes = case.minutes.as_deref().unwrap_or_default();
    driver.drive(&request(SESSION), &case.answers, minutes, &case.budgets).await?;
    Ok(record(store.as_ref(), directory.path()).await)
}

fn prepare<E>(case: &Case<E>, directory: &Path) -> std::path::PathBuf {
    for (path, text) in &case.files {
        let path = directory.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    // JSON is YAML.
    let replies: Map<String, Value> = case
        .replies
        .iter()
        .map(|(key, list)| (key.clone(), list.as_array().unwrap().iter().map(complete_reply).collect()))
        .collect();
    std::fs::write(directory.join("replies.yaml"), json!({ "replies": replies }).to_string()).unwrap();
    let text = case.script.clone().unwrap_or_else(|| {
        let mut session = case.session.clone().unwrap_or_default();
        session.entry("session_id").or_insert_with(|| json!("case"));
        if let Some(actions) = &case.actions {
            let topic = json!({ "topic_id": "topic", "actions": actions });
            session.insert("phases".into(), json!([{ "phase_id": "phase", "topics": [topic] }]));
        }
        serde_json::to_string_pretty(&json!({ "session": session })).unwrap()
    });
    let file = directory.join("script.yaml");
    std::fs::write(&file, text).unwrap();
    file
}

struct Driver {
    at_once: bool,
    /// The engine keeps only the program of a crashed session, and checks it again when it resumes the session for the first time.
    engine: Engine,
    store: Arc<CrashingStore>,
    spare_answers: bool,
    clock: Option<Arc<ScriptedClock>>,
}

/// A clock that advances only while a person thinks about an answer.
#[derive(Default)]
struct ScriptedClock {
    minutes: AtomicU64,
}

impl ScriptedClock {
    fn fixed() -> FixedClock {
        FixedClock::new(START.parse().unwrap())
    }
}

impl Clock for ScriptedClock {
    fn at(&self, seq: u64) -> String {
        Self::fixed().at(seq)
    }

    fn elapsed_ms(&self) -> u64 {
        self.minutes.load(Ordering::Relaxed) * 60_000
    }

    fn prompt_time(&self, seq: u64, language: bcc_lang::template::language::PromptLanguage) -> String {
        Self::fixed().prompt_time(seq, language)
    }

    fn instant(&self, text: &str) -> Option<String> {
        Self::fixed().instant(text)
    }
}

impl Driver {
    /// Runs a session to the end of its answers, through every crash on the way.
    async fn drive(
        &self,
        request: &RunRequest,
        answers: &[String],
        minutes: &[u64],
        budgets: &[String],
    ) -> Result<(), Refused> {
        let id = request.session.as_deref().unwrap();
        let watcher = Arc::new(Watcher::default());
        let mut current = self.start(request, &watcher).await?;
        let mut answers = answers.iter().enumerate();
        let mut budgets = budgets.iter();
        loop {
            let Some(mut session) = current.take() else {
                let stopped = self.status(id).await == "stopped";
                match budgets.next().filter(|_| stopped) {
                    Some(budget) => current = self.resume_with_budget(id, budget, &watcher).await,
                    None => break,
                }
                continue;
            };
            match self.store.run_until_crash(session.advance()).await {
                None => {
                    drop(session);
                    current = self.resume(id, &watcher).await;
                }
                Some(pause) => {
                    if pause.unwrap() == SessionPause::Waiting
                        && let Some((number, answer)) = answers.next()
                        && let Some(session) = self.finish_analyses(session, &watcher).await
                    {
                        let minutes = minutes.get(number).copied().unwrap_or(0);
                        current = self.answer(session, answer, &format!("mine-{number}"), minutes, &watcher).await;
                    }
                }
            }
        }
        watcher.check(&self.store, id).await;
        assert!(self.spare_answers || answers.next().is_none(), "an answer that nobody waited for");
        assert_eq!(budgets.next(), None, "a budget for a session that did not stop");
        Ok(())
    }

    /// Waits for monitors and plans until none is running.
    async fn finish_analyses(&self, session: Session, watcher: &Arc<Watcher>) -> Option<Session> {
        let mut session = session;
        while !self.at_once && tokio::time::timeout(ANALYSIS_TIMEOUT, session.wait_for_result()).await.is_ok() {
            match self.store.run_until_crash(session.commit_results()).await {
                Some(saved) => saved.unwrap(),
                None => {
                    let name = session.id.clone();
                    drop(session);
                    session = self.resume(&name, watcher).await?;
                }
            }
        }
        Some(session)
    }

    async fn start(&self, request: &RunRequest, watcher: &Arc<Watcher>) -> Result<Option<Session>, Refused> {
        let id = request.session.as_deref().unwrap();
        loop {
            let observer: Arc<dyn Observer> = Arc::<Watcher>::clone(watcher);
            let started = self.store.run_until_crash(self.engine.run(request, observer)).await;
            match started {
                Some(Ok(OpenedSession { session, .. })) => return Ok(Some(session)),
                Some(Err(error)) => return Err(Refused(shown(&error))),
                None if self.store.session(id).await.unwrap().is_some() => {
                    return Ok(self.resume(id, watcher).await);
                }
                None => {}
            }
        }
    }

    /// Sends the answer until it is known to be taken, like a client that does not know whether it arrived.
    async fn answer(
        &self,
        session: Session,
        text: &str,
        id: &str,
        minutes: u64,
        watcher: &Arc<Watcher>,
    ) -> Option<Session> {
        let mut session = session;
        let mut crashed = false;
        let answers = session.answers();
        loop {
            // The thinking time is counted once, with the answer.
            if let Some(clock) = self.clock.as_ref().filter(|_| session.answers() == answers) {
                clock.minutes.fetch_add(minutes, Ordering::Relaxed);
            }
            // Resending an answer commits a warning; if each of these commits crashed, the loop would not end.
            let sent = if crashed {
                Some(session.answer(text, Some(id)).await)
            } else {
                self.store.run_until_crash(session.answer(text, Some(id))).await
            };
            match sent {
                Some(result) => {
                    let result = result.unwrap();
                    assert!(
                        result == TakenAnswer::Yes || (crashed && result == TakenAnswer::AlreadyUsed),
                        "{result:?}"
                    );
                    return Some(session);
                }
                None => {
                    crashed = true;
                    let name = session.id.clone();
                    drop(session);
                    session = self.resume(&name, watcher).await?;
                }
            }
        }
    }

    async fn status(&self, id: &str) -> String {
        self.store.session(id).await.unwrap().unwrap().status
    }

    /// The session as a new process finds it; `None` when it ended before the crash.
    async fn resume(&self, id: &str, watcher: &Arc<Watcher>) -> Option<Session> {
        if ["completed", "failed", "stopped"].contains(&self.status(id).await.as_str()) {
            return None;
        }
        let observer: Arc<dyn Observer> = Arc::<Watcher>::clone(watcher);
        Some(self.engine.resume(id, None, observer).await.unwrap_or_else(|error| panic!("{}", shown(&error))).session)
    }

    /// Resumes the stopped session with this `--budget`, through every crash.
    async fn resume_with_budget(&self, id: &str, budget: &str, watcher: &Arc<Watcher>) -> Option<Session> {
        while self.status(id).await == "stopped" {
            let observer: Arc<dyn Observer> = Arc::<Watcher>::clone(watcher);
            let budget = Budget::parse(Some(budget).filter(|budget| !budget.is_empty())).unwrap();
            let engine = self.engine.clone().with_budget(budget);
            if let Some(resumed) = self.store.run_until_crash(engine.resume(id, None, observer)).await {
                return Some(resumed.unwrap_or_else(|error| panic!("{}", shown(&error))).session);
            }
        }
        // The process crashed at the commit of the resume.
        self.resume(id, watcher).await
    }
}

fn shown(error: &EngineError) -> String {
    match error {
        EngineError::Invalid(diagnostics) => human(diagnostics, false),
        other => format!("{other}\n{}", other.help().map(ToString::to_string).unwrap_or_default()),
    }
}

async fn record(store: &CrashingStore, directory: &Path) -> Record {
    let rows = store.journal(SESSION, 0, usize::MAX).await.unwrap();
    // Errors contain the path of the replies file, which differs in every run.
    let directory = directory.to_string_lossy();
    for (row, seq) in rows.iter().zip(1..) {
        assert_eq!(row.seq, seq, "sequence numbers have no gaps");
    }
    let mut events: Vec<Value> = rows
        .iter()
        .map(|row| serde_json::from_str(&public_line(&row.body).replace(&*directory, "")).unwrap())
        .collect();
    events.retain(|event| !OF_RESUMING.contains(&event["type"].as_str().unwrap()) && event["code"] != "answer-taken");
    let exported = export(store, SESSION, true).await.unwrap();
    // With the digits of numbers.
    let mut records = exported.to_string();
    let mut exported = exported.into_value();
    for event in events.iter().filter(|event| event["type"] != "message" && event["type"] != "waiting") {
        records.push_str(&event.to_string());
    }
    let messages = store.messages(SESSION, 0, usize::MAX).await.unwrap();
    let mut variables = BTreeMap::new();
    flatten("", &exported["variables"], &mut variables);
    strip(&mut exported);
    events.iter_mut().for_each(strip);
    Record {
        status: exported["session"]["status"].as_str().unwrap().to_owned(),
        said: messages.iter().map(|row| format!("{}: {}", row.role, row.text)).collect(),
        variables,
        outcomes: exported["outcomes"].as_array().unwrap().clone(),
        metrics: exported["action_metrics_history"].as_array().unwrap().clone(),
        events,
        records,
    }
}

/// `{"topic": {"topic_a": {"x": {"value": …}}}}` as `topic.topic_a.x`.
fn flatten(path: &str, value: &Value, into: &mut BTreeMap<String, Value>) {
    for (name, inner) in value.as_object().into_iter().flatten() {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        match inner.as_object() {
            Some(stored) if stored.contains_key("source") => {
                let mut stored = inner.clone();
                strip(&mut stored);
                into.insert(path, stored);
            }
            _ => flatten(&path, inner, into),
        }
    }
}

fn strip(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(strip),
        Value::Object(fields) => {
            fields.retain(|name, _| !STAMPS.contains(&name.as_str()));
            if fields.get("purpose") == Some(&json!("orchestrator")) {
                // A request that is repeated after a crash has the newer messages in its prompt.
                let debug_info = fields.get_mut("debug_info").and_then(Value::as_object_mut);
                debug_info.map(|debug_info| debug_info.shift_remove("llm_prompt"));
            }
            for (name, field) in fields.iter_mut() {
                // Ids contain sequence numbers, and a resumed session has more of them.
                let made =
                    ["message_id", "call_id"].contains(&name.as_str()) || (name == "feedback" && field.is_number());
                if made {
                    *field = Value::Null;
                } else {
                    strip(field);
                }
            }
        }
        _ => {}
    }
}
