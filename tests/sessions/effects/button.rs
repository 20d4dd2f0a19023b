//! An action kind with an external effect: it presses a button that exists outside of every session, where tests can observe it.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex};

use async_trait::async_trait;
use bcc_check::check::check;
use bcc_check::context::CheckContext;
use bcc_check::library::SkillLibrary;
use bcc_engine::pin::{Pinned, builtin_reply_schemas};
use bcc_lang::script::fields::Fields;
use bcc_lang::source::compose::parse;
use bcc_lang::source::text::SourceFile;
use bcc_llm::model::error::ModelError;
use bcc_runtime::actions::KINDS;
use bcc_runtime::notebook::cell::{Cell, CellKind};
use bcc_runtime::program::action::Action;
use bcc_runtime::program::flow::{ActionError, EffectAnnouncement, Flow};
use bcc_runtime::program::interrupted_effects::{Decision, decide, interrupted_error};
use bcc_runtime::program::kind::{ActionProperties, Kind, KindChecker, KindInfo};
use bcc_runtime::program::outcome::{ExitReason, Outcome};
use bcc_runtime::program::program::Program;
use bcc_runtime::program::turn::Turn;
use bcc_runtime::run::session::Session;
use bcc_store::contract::Store;
use bcc_store::memory::MemoryStore;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::test_session;

#[derive(Default)]
pub(crate) struct Button {
    pub(crate) pressed: AtomicU32,
    /// The number of next presses that never return.
    pub(crate) stuck: AtomicU32,
    /// Notified at every press.
    pub(crate) press: Notify,
    pub(crate) turns: AtomicUsize,
}

impl Button {
    pub(crate) fn presses(&self) -> u32 {
        self.pressed.load(Ordering::SeqCst)
    }
}

static BUTTONS: LazyLock<Mutex<HashMap<String, Arc<Button>>>> = LazyLock::new(Mutex::default);

/// The button of this name. Each test uses its own name, because tests share a process.
pub(crate) fn button(name: &str) -> Arc<Button> {
    Arc::clone(BUTTONS.lock().unwrap().entry(name.to_owned()).or_default())
}

struct Press;

struct PressAction {
    button: String,
    /// The error that is injected while the button is pressed.
    injected_error: Option<&'static str>,
    /// A variable that is true from the announcement on.
    raises: Option<String>,
    /// The content of the cell that it writes into the notebook.
    cell: Option<String>,
    /// The number of onward turns before the press.
    onward: u32,
}

impl Kind for Press {
    fn info(&self) -> KindInfo {
        KindInfo { name: "press", schema: "{}", page: "", exits: &["exit_criteria_met"] }
    }

    fn check(&self, fields: &Fields<'_>, checking: &mut dyn KindChecker) -> Option<Box<dyn Action>> {
        checking.describe(ActionProperties { max_rounds: 1, ..ActionProperties::default() });
        let text = |name| fields.text(name).map(|words| words.text);
        Some(Box::new(PressAction {
            button: text("button")?,
            injected_error: fields.choice("fault", &["broken", "model", "unclosed", "flood"]),
            raises: text("raises"),
            cell: text("cell"),
            onward: fields.integer("onward", 0..=100_000).unwrap_or(0),
        }))
    }
}

#[async_trait]
impl Action for PressAction {
    async fn turn(&self, turn: &Turn<'_>) -> Result<Flow, ActionError> {
        let button = button(&self.button);
        button.turns.fetch_add(1, Ordering::SeqCst);
        let turns_taken: u32 = turn.state()?;
        if turns_taken < self.onward {
            turn.store_state(&(turns_taken + 1))?;
            return Ok(Flow::Onward);
        }
        let pressed = match decide(turn, || EffectAnnouncement { kind: "press", summary: "the red button".into() }) {
            Decision::First(flow) => {
                if let Some(name) = self.raises.as_deref().filter(|_| matches!(flow, Flow::Effect(_))) {
                    turn.set(name, json!(true), None)?;
                }
                return Ok(flow);
            }
            Decision::Skip => None,
            Decision::Fail => return Err(interrupted_error()),
            Decision::Run => Some(self.press(turn, &button).await?),
        };
        turn.set("pressed", json!(pressed), None)?;
        Ok(Flow::done(Outcome::done(ExitReason::ExitCriteriaMet)))
    }
}

impl PressAction {
    async fn press(&self, turn: &Turn<'_>, button: &Button) -> Result<u32, ActionError> {
        let pressed = button.pressed.fetch_add(1, Ordering::SeqCst) + 1;
        button.press.notify_one();
        if button.stuck.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok() {
            std::future::pending::<()>().await;
        }
        match self.injected_error {
            Some("broken") => return Err(ActionError::failed("button-broken", "the button is broken")),
            Some("model") => {
                let error = ModelError::Unreachable { host: "h".into(), reason: "gone".into(), attempts: 1 };
                return Err(error.into());
            }
            Some("flood") => (1..=2_000).for_each(|number| turn.put_cell(cell(number, "x"))),
            _ => {}
        }
        if let Some(content) = &self.cell {
            let mut state = turn.notebook_state();
            state.cell_count += 1;
            turn.put_cell(cell(state.cell_count, content));
            turn.set_notebook_state(state);
        }
        if self.injected_error != Some("unclosed") {
            turn.close_effect("pressed");
        }
        Ok(pressed)
    }
}

fn cell(number: u64, content: &str) -> Cell {
    Cell { number, id: format!("c{number}"), kind: CellKind::Code, content: content.to_owned(), ..Cell::default() }
}

/// A program with these session fields, compiled with the kind `press`.
pub(crate) fn program(session: &Value) -> Arc<Program> {
    let mut session = session.clone();
    session["session_id"] = json!("s");
    let script = json!({ "session": session }).to_string();
    // JSON is YAML.
    let file = Arc::new(SourceFile::new("s.yaml", script));
    let kinds: Vec<&dyn Kind> = KINDS.iter().copied().chain([&Press as &dyn Kind]).collect();
    let templates = bcc_lang::template::layers::collect(
        &bcc_engine::files::TemplateFolders::of(std::path::Path::new("/nowhere")),
        None,
    );
    let pinned = Pinned::new(Arc::clone(&file), templates.unwrap(), BTreeMap::new());
    let reply_schemas =
        builtin_reply_schemas().map(|(name, text)| (name.to_owned(), serde_json::from_str(text).unwrap()));
    let context = CheckContext {
        kinds: &kinds,
        templates: Arc::new(pinned.compiled().unwrap()),
        reply_schemas: &reply_schemas.collect(),
        library: &SkillLibrary::of_files(&[]),
        models: None,
        custom: &BTreeMap::new(),
    };
    let (program, found) = check(&file, parse(&file), &context);
    Arc::new(program.unwrap_or_else(|| {
        panic!("{}", found.iter().map(|found| found.message.to_string()).collect::<Vec<_>>().join("\n"))
    }))
}

/// The fields of a session with one topic that has these actions.
pub(crate) fn session_with_actions(actions: &Value) -> Value {
    json!({ "declare": [{ "var": "raised", "value": false }, { "var": "pressed", "value": null }],
        "phases": [{ "phase_id": "p", "topics": [{ "topic_id": "t", "actions": actions }] }] })
}

/// An action that presses this button.
pub(crate) fn press_action(button: &str, extra_fields: &Value) -> Value {
    let mut action = json!({ "action_type": "press", "action_id": "it", "config": { "button": button } });
    for (name, value) in extra_fields.as_object().unwrap() {
        if matches!(name.as_str(), "fault" | "raises" | "cell" | "onward") {
            action["config"][name] = value.clone();
        } else {
            action[name] = value.clone();
        }
    }
    action
}

/// A new session with these fields in its own store.
pub(crate) async fn new_session(session: &Value) -> (Arc<dyn Store>, Arc<Program>, Session) {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let program = program(session);
    let session = start_session(&program, Arc::clone(&store)).await;
    (store, program, session)
}

/// A new session with one action, which presses the button of this name.
pub(crate) async fn start_pressing(name: &str, extra_fields: &Value) -> (Arc<dyn Store>, Arc<Program>, Session) {
    new_session(&session_with_actions(&json!([press_action(name, extra_fields)]))).await
}

/// Drops the turn while the button is pressed.
pub(crate) async fn drop_during_press(name: &str, session: &mut Session) {
    let stuck = button(name);
    stuck.stuck.store(1, Ordering::SeqCst);
    tokio::select! {
        biased;
        () = stuck.press.notified() => {}
        _ = session.advance() => panic!("the button is stuck"),
    }
}

pub(crate) async fn start_session(program: &Arc<Program>, store: Arc<dyn Store>) -> Session {
    test_session::start_conversation(program, store, test_session::FixedModels::without_monitors(None)).await
}

pub(crate) async fn resume(program: &Arc<Program>, store: Arc<dyn Store>) -> Session {
    test_session::resume(program, store, test_session::FixedModels::without_monitors(None)).await
}

/// The events as one line each: the type and the distinguishing field.
pub(crate) async fn event_summaries(store: &dyn Store) -> Vec<String> {
    let summary = |event: &Value| {
        let text = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
        match text("type").as_str() {
            "effect_started" => Some(format!("started {}", text("effect_id"))),
            "effect_finished" => Some(format!("finished {}: {}", text("effect_id"), text("summary"))),
            "waiting" => Some(format!("waiting for {}", text("for"))),
            "triggered" => Some(format!("triggered {}", text("reason"))),
            "message" => Some(format!("{}: {}", text("role"), text("text"))),
            "cell" => Some(format!("cell {}", event["number"])),
            "error" => Some(format!("error {}", text("code"))),
            "session_completed" | "session_failed" | "session_stopped" | "session_resumed" => Some(text("type")),
            _ => None,
        }
    };
    test_session::journal(store).await.iter().filter_map(summary).collect()
}
