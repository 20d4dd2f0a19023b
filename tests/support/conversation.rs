//! A conversation as a file: a script, what the model writes, what the person answers. Run through the library, undisturbed or
//! with the process dying at every commit, it gives a [`Record`].

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

use self::faultless::whole;
use crate::mortal::{Death, MortalArchive};

#[path = "faultless.rs"]
mod faultless;

/// The session that a case is about.
const SESSION: &str = "s";

/// When every session begins.
const START: &str = "2026-11-21T20:00:00Z";

/// How long monitors and plans are waited for, in virtual time: longer than any of them may take.
const THOUGHT: Duration = Duration::from_secs(1_000);

/// Fields of an event or outcome that tell when it was, not what it was.
const STAMPS: [&str; 4] = ["seq", "at", "timestamp", "session_id"];

/// Events that only an interrupted session has.
const OF_RESUMING: [&str; 2] = ["session_resumed", "message_discarded"];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case<E = Value> {
    /// What it shows, where its name does not say all.
    #[serde(default, rename = "about")]
    _about: String,
    /// The script as text.
    script: Option<String>,
    /// Or the fields of its `session:`; `session_id` need not be given.
    session: Option<Map<String, Value>>,
    /// Or (and) the actions of its only topic.
    actions: Option<Vec<Value>>,
    #[serde(default)]
    files: BTreeMap<String, String>,
    /// What the model writes, as a file for `--model replay:` has it under `replies`.
    #[serde(default)]
    replies: Map<String, Value>,
    /// `--scheme`.
    scheme: Option<String>,
    /// `--var`, each.
    #[serde(default)]
    variables: Vec<String>,
    /// The answers of an earlier session of the same user.
    earlier: Option<Vec<String>>,
    #[serde(default)]
    answers: Vec<String>,
    /// Whether the person answers at once, whatever monitors are still thinking about.
    #[serde(default)]
    at_once: bool,
    /// How many minutes the person takes for each answer; then no other time passes.
    minutes: Option<Vec<u64>>,
    /// What `--budget` says each time that the session is resumed after it stopped; nothing, when it is empty.
    #[serde(default)]
    budgets: Vec<String>,
    /// Whether there may be more answers than are waited for.
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
    /// The export's history of metrics, without stamps.
    pub(crate) metrics: Vec<Value>,
    pub(crate) events: Vec<Value>,
    /// Everything that is shown, exported or recorded about the session, but not the conversation itself.
    pub(crate) about: String,
}

impl Record {
    /// Fails unless another run of the same case came to the same.
    pub(crate) fn is_that_of(&self, again: &Self, what: &str) {
        assert_eq!(self.said, again.said, "{what}: transcript");
        assert_eq!(self.variables, again.variables, "{what}: variables");
        assert_eq!(self.outcomes, again.outcomes, "{what}: outcomes");
        assert_eq!(self.events, again.events, "{what}: events");
        assert_eq!(self.status, again.status, "{what}: status");
    }
}

/// Runs a case in virtual time.
pub(crate) fn run<E>(case: &Case<E>, death: Death) -> Result<Record, Refused> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(converse(case, death))
}

/// Why there is no record: the report that the person sees.
pub(crate) struct Refused(pub(crate) String);

/// Collects the pieces of messages that are shown while they arrive.
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
    /// What was shown live was said in these very words, or the journal says that it does not count.
    async fn check(&self, archive: &MortalArchive, session: &str) {
        let rows = archive.journal(session, 0, usize::MAX).await.unwrap();
        let mut left = self.shown.lock().unwrap().clone();
        for row in rows.iter().filter(|row| row.kind == "message" || row.kind == "message_discarded") {
            let event: Value = serde_json::from_str(&row.body).unwrap();
            let shown = left.remove(event["message_id"].as_str().unwrap());
            let differs = shown.is_some_and(|shown| row.kind == "message" && event["text"] != shown);
            assert!(!differs, "shown live in other words than it was said: {event}");
        }
        // A resumed session knows the first message of the turn that died; its others (`m7.1`) go with it.
        let discarded = |id: &str| {
            rows.iter().any(|row| row.kind == "message_discarded" && row.body.contains(&format!("\"{id}\"")))
        };
        left.retain(|id, _| !discarded(id.split('.').next().unwrap()));
        assert!(left.is_empty(), "shown live, neither said nor discarded: {left:?}");
    }
}

/// Runs the case in a project of its own.
async fn converse<E>(case: &Case<E>, death: Death) -> Result<Record, Refused> {
    let directory = tempfile::tempdir().unwrap();
    let file = prepare(case, directory.path());
    let archive = MortalArchive::new(death);
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
    let clock = case.minutes.is_some().then(Arc::<PatientClock>::default);
    let spare_answers = case.spare_answers;
    let environment = Environment::default();
    let project = Project::in_directory(directory.path().to_path_buf(), false, &environment).unwrap();
    let engine = Engine::new(project, environment, Arc::<MortalArchive>::clone(&archive));
    let engine = match &clock {
        Some(clock) => engine.with_clock(Arc::<PatientClock>::clone(clock)),
        None => engine,
    };
    let driver = Driver { at_once: case.at_once, engine, archive: Arc::clone(&archive), spare_answers, clock };
    if let Some(answers) = &case.earlier {
        driver.drive(&request("earlier"), answers, &[], &[]).await?;
    }
    let minutes = case.minutes.as_deref().unwrap_or_default();
    driver.drive(&request(SESSION), &case.answers, minutes, &case.budgets).await?;
    Ok(record(archive.as_ref(), directory.path()).await)
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
        .map(|(key, list)| (key.clone(), list.as_array().unwrap().iter().map(whole).collect()))
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
    /// Keeps nothing of a session that dies but its program, which it checks anew when it resumes the session first.
    engine: Engine,
    archive: Arc<MortalArchive>,
    spare_answers: bool,
    clock: Option<Arc<PatientClock>>,
}

/// A clock for which time passes only while a person thinks about an answer.
#[derive(Default)]
struct PatientClock {
    minutes: AtomicU64,
}

impl PatientClock {
    fn fixed() -> FixedClock {
        FixedClock::new(START.parse().unwrap())
    }
}

impl Clock for PatientClock {
    fn at(&self, seq: u64) -> String {
        Self::fixed().at(seq)
    }

    fn elapsed_ms(&self) -> u64 {
        self.minutes.load(Ordering::Relaxed) * 60_000
    }

    fn words(&self, seq: u64) -> String {
        Self::fixed().words(seq)
    }
}

impl Driver {
    /// Drives a session to where its answers lead, through every death on the way.
    async fn drive(
        &self,
        request: &RunRequest,
        answers: &[String],
        minutes: &[u64],
        budgets: &[String],
    ) -> Result<(), Refused> {
        let id = request.session.as_deref().unwrap();
        let watcher = Arc::new(Watcher::default());
        let mut living = self.begin(request, &watcher).await?;
        let mut answers = answers.iter().enumerate();
        let mut budgets = budgets.iter();
        loop {
            let Some(mut session) = living.take() else {
                let stopped = self.status(id).await == "stopped";
                match budgets.next().filter(|_| stopped) {
                    Some(budget) => living = self.widened(id, budget, &watcher).await,
                    None => break,
                }
                continue;
            };
            match self.archive.mortal(session.advance()).await {
                None => {
                    drop(session);
                    living = self.resume(id, &watcher).await;
                }
                Some(pause) => {
                    if pause.unwrap() == SessionPause::Waiting
                        && let Some((number, answer)) = answers.next()
                        && let Some(session) = self.thought(session, &watcher).await
                    {
                        let minutes = minutes.get(number).copied().unwrap_or(0);
                        living = self.answer(session, answer, &format!("mine-{number}"), minutes, &watcher).await;
                    }
                }
            }
        }
        watcher.check(&self.archive, id).await;
        assert!(self.spare_answers || answers.next().is_none(), "an answer that nobody waited for");
        assert_eq!(budgets.next(), None, "a budget for a session that did not stop");
        Ok(())
    }

    /// Lets monitors and plans come in, until nothing is under way any more.
    async fn thought(&self, session: Session, watcher: &Arc<Watcher>) -> Option<Session> {
        let mut session = session;
        while !self.at_once && tokio::time::timeout(THOUGHT, session.arrived()).await.is_ok() {
            match self.archive.mortal(session.note_arrivals()).await {
                Some(noted) => noted.unwrap(),
                None => {
                    let name = session.id.clone();
                    drop(session);
                    session = self.resume(&name, watcher).await?;
                }
            }
        }
        Some(session)
    }

    async fn begin(&self, request: &RunRequest, watcher: &Arc<Watcher>) -> Result<Option<Session>, Refused> {
        let id = request.session.as_deref().unwrap();
        loop {
            let observer: Arc<dyn Observer> = Arc::<Watcher>::clone(watcher);
            let begun = self.archive.mortal(self.engine.run(request, observer)).await;
            match begun {
                Some(Ok(OpenedSession { session, .. })) => return Ok(Some(session)),
                Some(Err(error)) => return Err(Refused(shown(&error))),
                None if self.archive.session(id).await.unwrap().is_some() => {
                    return Ok(self.resume(id, watcher).await);
                }
                None => {}
            }
        }
    }

    /// Sends the answer, as a client does that does not know whether it arrived, until it is known to have been taken.
    async fn answer(
        &self,
        session: Session,
        text: &str,
        id: &str,
        minutes: u64,
        watcher: &Arc<Watcher>,
    ) -> Option<Session> {
        let mut session = session;
        let mut died = false;
        let answers = session.answers();
        loop {
            // What the person thought is counted with the answer, and once.
            if let Some(clock) = self.clock.as_ref().filter(|_| session.answers() == answers) {
                clock.minutes.fetch_add(minutes, Ordering::Relaxed);
            }
            // An answer that is sent again leaves a warning, which is a commit too: one that died each time would never end.
            let sent = if died {
                Some(session.answer(text, Some(id)).await)
            } else {
                self.archive.mortal(session.answer(text, Some(id))).await
            };
            match sent {
                Some(taken) => {
                    let taken = taken.unwrap();
                    assert!(taken == TakenAnswer::Yes || (died && taken == TakenAnswer::Before), "{taken:?}");
                    return Some(session);
                }
                None => {
                    died = true;
                    let name = session.id.clone();
                    drop(session);
                    session = self.resume(&name, watcher).await?;
                }
            }
        }
    }

    async fn status(&self, id: &str) -> String {
        self.archive.session(id).await.unwrap().unwrap().status
    }

    /// The session again, as a new process finds it; none when it came to its end before the process died.
    async fn resume(&self, id: &str, watcher: &Arc<Watcher>) -> Option<Session> {
        if ["completed", "failed", "stopped"].contains(&self.status(id).await.as_str()) {
            return None;
        }
        let observer: Arc<dyn Observer> = Arc::<Watcher>::clone(watcher);
        Some(self.engine.resume(id, None, observer).await.unwrap_or_else(|error| panic!("{}", shown(&error))).session)
    }

    /// The session that stopped, with this for `--budget`, however often the process dies meanwhile.
    async fn widened(&self, id: &str, budget: &str, watcher: &Arc<Watcher>) -> Option<Session> {
        while self.status(id).await == "stopped" {
            let observer: Arc<dyn Observer> = Arc::<Watcher>::clone(watcher);
            let budget = Budget::parse(Some(budget).filter(|budget| !budget.is_empty())).unwrap();
            let engine = self.engine.clone().with_budget(budget);
            if let Some(opened) = self.archive.mortal(engine.resume(id, None, observer)).await {
                return Some(opened.unwrap_or_else(|error| panic!("{}", shown(&error))).session);
            }
        }
        // It died when the resume was committed.
        self.resume(id, watcher).await
    }
}

fn shown(error: &EngineError) -> String {
    match error {
        EngineError::Invalid(diagnostics) => human(diagnostics, false),
        other => format!("{other}\n{}", other.help().map(ToString::to_string).unwrap_or_default()),
    }
}

async fn record(archive: &MortalArchive, directory: &Path) -> Record {
    let rows = archive.journal(SESSION, 0, usize::MAX).await.unwrap();
    // Errors name the file of the replies, which is another in every run.
    let directory = directory.to_string_lossy();
    for (row, seq) in rows.iter().zip(1..) {
        assert_eq!(row.seq, seq, "sequence numbers have no gaps");
    }
    let mut events: Vec<Value> = rows
        .iter()
        .map(|row| serde_json::from_str(&public_line(&row.body).replace(&*directory, "")).unwrap())
        .collect();
    events.retain(|event| !OF_RESUMING.contains(&event["type"].as_str().unwrap()) && event["code"] != "answer-taken");
    let mut exported = export(archive, SESSION, true).await.unwrap();
    let mut about = exported.to_string();
    for event in events.iter().filter(|event| event["type"] != "message" && event["type"] != "waiting") {
        about.push_str(&event.to_string());
    }
    let messages = archive.messages(SESSION, 0, usize::MAX).await.unwrap();
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
        about,
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
            if ["monitor", "orchestrator"].iter().any(|beside| fields.get("purpose") == Some(&json!(beside))) {
                // What is asked again after a death is asked with the talk as it is by then.
                let kept = fields.get_mut("debug_info").and_then(Value::as_object_mut);
                kept.map(|kept| kept.shift_remove("llm_prompt"));
            }
            for (name, field) in fields.iter_mut() {
                // Ids are made of sequence numbers, which a resumed session has more of.
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
