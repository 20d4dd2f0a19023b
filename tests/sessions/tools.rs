//! Calls of tools when the process dies, a tool hangs, returns too much, changes, or disappears (docs/tools.md).

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bcc_lang::value::exact::{ExactValue, ExactValues};
use bcc_llm::providers::offline::Offline;
use bcc_runtime::effects::tools::{ToolCall, ToolDescription, ToolError, ToolOutput, ToolProgress, Tools, matches};
use bcc_runtime::program::decision::DecisionKind;
use bcc_runtime::program::host_services::HostServices;
use bcc_runtime::program::program::Program;
use bcc_runtime::run::approval_decision::{ApprovalDecision, DecisionError};
use bcc_runtime::run::head::SessionStatus;
use bcc_runtime::run::session::{Session, SessionPause};
use bcc_store::contract::Store;
use bcc_store::memory::MemoryStore;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::crashing_store::{CrashMode, CrashingStore};
use crate::test_session::{FixedModels, SESSION, journal, program, resume_conversation_in, start_conversation_in};

/// The number of seeded runs.
const RUNS: u64 = 40;

/// The tools `mcp.box.put`, which changes something, and `mcp.box.look`, which does not.
#[derive(Default)]
struct BoxTools {
    calls: AtomicU32,
    /// The number of next calls that never return.
    stuck: AtomicU32,
    /// Notified at every call.
    called: Notify,
    /// The number of bytes of a result.
    size: usize,
    /// The name of an argument that the tools require.
    required: Mutex<Option<&'static str>>,
}

#[async_trait]
impl Tools for BoxTools {
    async fn describe(&self, patterns: &[String]) -> (Vec<ToolDescription>, Vec<ToolError>) {
        let required: Vec<&str> = self.required.lock().unwrap().iter().copied().collect();
        let tools = ["mcp.box.look", "mcp.box.put"].map(|name| ToolDescription {
            name: name.to_owned(),
            description: String::new(),
            parameters: json!({ "type": "object", "required": required }),
            is_read_only: name == "mcp.box.look",
        });
        let is_wanted = |tool: &ToolDescription| patterns.iter().any(|pattern| matches(pattern, &tool.name));
        (tools.into_iter().filter(is_wanted).collect(), vec![])
    }

    async fn call(&self, call: &ToolCall<'_>, _: &dyn ToolProgress) -> Result<ToolOutput, ToolError> {
        let number = self.calls.fetch_add(1, Ordering::SeqCst) + 1;
        self.called.notify_one();
        if self.stuck.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok() {
            std::future::pending::<()>().await;
        }
        let value = json!({ "tool": call.tool, "number": number, "text": "x".repeat(self.size) });
        Ok(ToolOutput { value: value.into(), is_truncated: false, is_cached: false })
    }
}

fn script(tools: &Value, actions: &Value) -> Arc<Program> {
    let session = json!({ "session": { "session_id": "s", "tools": tools,
        "phases": [{ "phase_id": "p", "topics": [{ "topic_id": "t", "actions": actions }] }] } });
    program(&session.to_string())
}

/// An action that calls a tool of the box.
fn call(id: &str, tool: &str, fields: &Value) -> Value {
    let mut action = json!({ "action_type": "tool", "action_id": id, "config": { "name": format!("mcp.box.{tool}"), "output": { id: "number" } } });
    action.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    action
}

fn services(tools: &Arc<BoxTools>) -> HostServices {
    HostServices { tools: Arc::<BoxTools>::clone(tools), ..HostServices::default() }
}

async fn start(program: &Arc<Program>, store: Arc<dyn Store>, tools: &Arc<BoxTools>) -> Session {
    let models = FixedModels::without_monitors(Some(Arc::new(Offline)));
    start_conversation_in(program, store, models, None, services(tools)).await
}

async fn resume(program: &Arc<Program>, store: Arc<dyn Store>, tools: &Arc<BoxTools>) -> Session {
    let models = FixedModels::without_monitors(Some(Arc::new(Offline)));
    resume_conversation_in(program, store, models, None, services(tools)).await
}

fn decision(decision: DecisionKind, values: &[(&str, Value)]) -> ApprovalDecision {
    let values: ExactValues = values.iter().map(|(name, value)| ((*name).to_owned(), value.clone().into())).collect();
    ApprovalDecision { request: None, decision, by: None, comment: None, values }
}

/// The events of these types, as `type status`.
async fn events(store: &dyn Store, kinds: &[&str]) -> Vec<String> {
    let journal = journal(store).await;
    let kind = |event: &Value| event["type"].as_str().unwrap().to_owned();
    let found = journal.iter().filter(|event| kinds.contains(&kind(event).as_str()));
    found
        .map(|event| format!("{} {}", kind(event), event["status"].as_str().unwrap_or_default()).trim().to_owned())
        .collect()
}

#[tokio::test]
async fn a_call_is_never_made_more_often_than_it_was_announced_whenever_the_process_dies() {
    for mode in (0..RUNS).map(CrashMode::Sometimes) {
        let rules = json!(["mcp.box.*", { "name": "mcp.box.put", "approve": "always" }]);
        let actions = json!([
            call("a", "put", &json!({ "on_interrupted": "retry" })),
            call("b", "look", &json!({})),
            call("c", "put", &json!({ "on_interrupted": "skip" })),
        ]);
        let (program, tools) = (script(&rules, &actions), Arc::new(BoxTools::default()));
        let store = CrashingStore::new(mode);
        let shared = || Arc::<CrashingStore>::clone(&store) as Arc<dyn Store>;
        let mut session = start(&program, shared(), &tools).await;
        for _ in 0..500 {
            let survived = match session.status() {
                SessionStatus::WaitingApproval => {
                    let decided = store.run_until_crash(session.decide(decision(DecisionKind::Approve, &[]))).await;
                    decided.map(|taken| taken.unwrap())
                }
                _ => match store.run_until_crash(session.advance()).await {
                    Some(Ok(SessionPause::Completed)) => break,
                    Some(pause) => {
                        pause.unwrap();
                        Some(())
                    }
                    None => None,
                },
            };
            if survived.is_none() {
                drop(session);
                let row = store.session(SESSION).await.unwrap().unwrap();
                if SessionStatus::parse(&row.status).unwrap().is_final() {
                    break;
                }
                session = resume(&program, shared(), &tools).await;
            }
        }
        assert_eq!(store.session(SESSION).await.unwrap().unwrap().status, "completed", "{mode:?}");
        let started = events(store.as_ref(), &["effect_started"]).await.len();
        let finished = events(store.as_ref(), &["effect_finished"]).await.len();
        assert_eq!(started, finished, "{mode:?}");
        // The call of `b` needs no announcement, and is repeated if its result was lost.
        let calls = tools.calls.load(Ordering::SeqCst) as usize;
        assert!(calls <= started + 2, "{mode:?}: {calls} calls, {started} announcements");
        assert_eq!(events(store.as_ref(), &["request_answered"]).await.len(), 2, "{mode:?}: each decision counts once");
        let ended = events(store.as_ref(), &["tool_called"]).await;
        assert_eq!(ended.len(), 3, "{mode:?}: {ended:?}");
        assert_eq!(ended[..2], ["tool_called success", "tool_called success"], "{mode:?}");
    }
}

#[tokio::test]
async fn a_process_that_dies_during_a_call_leaves_the_decision_to_the_author_or_to_a_person() {
    for (choice, answer, calls, end) in [
        ("retry", None, 2, "tool_called success"),
        ("skip", None, 1, "tool_called interrupted"),
        ("fail", None, 1, "tool_called interrupted"),
        ("ask", Some("again"), 2, "tool_called success"),
        ("ask", Some("跳过"), 1, "tool_called interrupted"),
    ] {
        let actions = json!([call("a", "put", &json!({ "on_interrupted": choice, "on_exit": { "failed": "next" } }))]);
        let (program, tools) = (script(&json!(["mcp.box.*"]), &actions), Arc::new(BoxTools::default()));
        tools.stuck.store(1, Ordering::SeqCst);
        let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
        let mut session = start(&program, Arc::clone(&store), &tools).await;
        tokio::select! {
            _ = session.advance() => panic!("the call never returns"),
            () = tools.called.notified() => {}
        }
        drop(session);
        let mut session = resume(&program, Arc::clone(&store), &tools).await;
        let pause = session.advance().await.unwrap();
        if let Some(answer) = answer {
            assert_eq!((pause, tools.calls.load(Ordering::SeqCst)), (SessionPause::Waiting, 1), "{choice}");
            session.answer(answer, None).await.unwrap();
            session.advance().await.unwrap();
        }
        assert_eq!(session.status(), SessionStatus::Completed, "{choice}");
        assert_eq!(tools.calls.load(Ordering::SeqCst), calls, "{choice}");
        assert_eq!(events(store.as_ref(), &["tool_called"]).await, [end], "{choice}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_hangs_is_given_up() {
    let rules = json!([{ "name": "mcp.box.*", "timeout": "2s" }]);
    let actions = json!([
        call("a", "put", &json!({ "on_exit": { "timed_out": "next" } })),
        call("b", "look", &json!({ "timeout": "1h", "on_exit": { "timed_out": "next" } })),
    ]);
    let (program, tools) = (script(&rules, &actions), Arc::new(BoxTools::default()));
    tools.stuck.store(2, Ordering::SeqCst);
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let started = tokio::time::Instant::now();
    let mut session = start(&program, Arc::clone(&store), &tools).await;
    assert_eq!(session.advance().await.unwrap(), SessionPause::Completed);
    assert_eq!(events(store.as_ref(), &["tool_called"]).await, ["tool_called timed_out", "tool_called timed_out"]);
    let hours = started.elapsed().as_secs() / 3600;
    assert_eq!(hours, 1, "the timeout of an action replaces that of the rule");
}

#[tokio::test]
async fn a_long_result_is_a_text_of_the_store_and_no_part_of_the_journal() {
    let actions = json!([call("a", "look", &json!({}))]);
    let (program, tools) =
        (script(&json!(["mcp.box.*"]), &actions), Arc::new(BoxTools { size: 100_000, ..BoxTools::default() }));
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let mut session = start(&program, Arc::clone(&store), &tools).await;
    assert_eq!(session.advance().await.unwrap(), SessionPause::Completed);
    let journal = journal(store.as_ref()).await;
    let called = journal.iter().find(|event| event["type"] == "tool_called").unwrap();
    assert!(called.get("result").is_none() && called.to_string().len() < 1_000, "{called}");
    let sha256 = called["result_sha256"].as_str().unwrap();
    let text = store.text(SESSION, sha256).await.unwrap().unwrap();
    assert_eq!(called["result_bytes"], text.len());
    let result: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&result["number"], result["text"].as_str().unwrap().len()), (&json!(1), 100_000));
}

#[tokio::test]
async fn what_changed_after_a_decision_is_checked_again() {
    let rules = json!([{ "name": "mcp.box.put", "approve": "always" }]);
    let actions = json!([call("a", "put", &json!({ "on_exit": { "failed": "next" } }))]);
    let (program, tools) = (script(&rules, &actions), Arc::new(BoxTools::default()));
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let mut session = start(&program, Arc::clone(&store), &tools).await;
    assert_eq!(session.advance().await.unwrap(), SessionPause::Waiting);
    *tools.required.lock().unwrap() = Some("depth");
    session.decide(decision(DecisionKind::Approve, &[])).await.unwrap();
    assert_eq!(session.advance().await.unwrap(), SessionPause::Completed);
    assert_eq!(events(store.as_ref(), &["effect_started", "tool_called"]).await, ["tool_called refused"]);
    assert_eq!(tools.calls.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_decision_about_a_call_has_exactly_the_values_that_it_needs() {
    let rules = json!([{ "name": "mcp.box.put", "approve": "always" }]);
    let (program, tools) = (script(&rules, &json!([call("a", "put", &json!({}))])), Arc::new(BoxTools::default()));
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let mut session = start(&program, Arc::clone(&store), &tools).await;
    assert_eq!(session.advance().await.unwrap(), SessionPause::Waiting);
    for (kind, values, code) in [
        (DecisionKind::Edit, vec![], "form-field-missing"),
        (DecisionKind::Edit, vec![("arguments", json!("no JSON"))], "form-field-misfit"),
        (DecisionKind::Edit, vec![("arguments", json!({})), ("answer", json!("x"))], "form-field-unknown"),
        (DecisionKind::Answer, vec![], "form-field-missing"),
        (DecisionKind::Answer, vec![("arguments", json!({}))], "form-field-unknown"),
        (DecisionKind::Approve, vec![("arguments", json!({}))], "form-field-unknown"),
        (DecisionKind::Reject, vec![("answer", json!("x"))], "form-field-unknown"),
        (DecisionKind::PushBack, vec![], "decision-not-permitted"),
    ] {
        let refused = session.decide(decision(kind, &values)).await.unwrap_err();
        assert!(matches!(refused, DecisionError::Refused { code: found, .. } if found == code), "{kind:?}: {refused}");
    }
    assert_eq!(session.status(), SessionStatus::WaitingApproval, "nothing was decided");
    session.decide(decision(DecisionKind::Answer, &[("answer", json!({ "number": 9 }))])).await.unwrap();
    assert_eq!(session.advance().await.unwrap(), SessionPause::Completed);
    let variables = store.variables(SESSION).await.unwrap();
    assert_eq!(variables.iter().find(|row| row.name == "a").unwrap().value, "9");
    assert_eq!(tools.calls.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_decision_cannot_give_a_tool_another_number_than_the_one_that_was_decided() {
    let rules = json!([{ "name": "mcp.box.put", "approve": "always" }]);
    let (program, tools) = (script(&rules, &json!([call("a", "put", &json!({}))])), Arc::new(BoxTools::default()));
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let mut session = start(&program, Arc::clone(&store), &tools).await;
    assert_eq!(session.advance().await.unwrap(), SessionPause::Waiting);
    let arguments = ExactValue::parse(r#"{"id": 12345678901234567890123}"#).unwrap();
    let edited = decision(DecisionKind::Edit, &[]);
    let values = ExactValues::from_iter([("arguments".to_owned(), arguments)]);
    session.decide(ApprovalDecision { values, ..edited }).await.unwrap();
    session.advance().await.unwrap();
    assert_eq!(events(store.as_ref(), &["tool_called"]).await, ["tool_called refused"]);
    assert_eq!(tools.calls.load(Ordering::SeqCst), 0);
}
