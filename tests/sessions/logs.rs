//! What reading replies writes to the log: strategies, repairs and coercions as warnings, never a value, and the text itself only at
//! debug level and only if nothing in it can be sensitive (docs/replies.md).
//!
//! These tests have their own file: whether a call site logs at all is cached for the whole process, so tests that read the log must
//! not run at the same time as others.

use crate::test_session;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use bcc_lang::schema::embedded;
use bcc_llm::model::error::ModelError;
use bcc_llm::model::provider::{LiveObserver, Provider};
use bcc_llm::model::reply::ModelReply;
use bcc_llm::model::request::{ModelRequest, Purpose};
use bcc_llm::reply::read::read;
use bcc_llm::reply::shape::ReplyShape;
use bcc_runtime::program::messages::log_unreadable;
use bcc_store::contract::Store;
use bcc_store::memory::MemoryStore;
use tracing::Level;

/// Serializes the tests of this file.
static LOG_LOCK: Mutex<()> = Mutex::new(());

/// What `work` logs at `level` and above.
fn logged(level: Level, work: impl FnOnce()) -> String {
    let _lock = LOG_LOCK.lock().unwrap_or_else(PoisonError::into_inner);
    let lines = Arc::new(Mutex::new(Vec::new()));
    let writer = LogWriter(Arc::clone(&lines));
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_ansi(false)
        .without_time()
        .with_writer(move || writer.clone())
        .finish();
    tracing::subscriber::with_default(subscriber, work);
    let lines = lines.lock().unwrap();
    String::from_utf8(lines.clone()).unwrap()
}

/// What is logged while `raw` is read as a reply for an `ai_think`.
fn logged_by_read(level: Level, raw: &str, repair: bool) -> String {
    let schema = serde_json::from_str(embedded::reply("ai_think").unwrap()).unwrap();
    let shape = ReplyShape::new(&schema, &[]).unwrap();
    logged(level, || drop(read(raw, &shape, repair)))
}

#[derive(Clone)]
struct LogWriter(Arc<Mutex<Vec<u8>>>);

impl Write for LogWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn failures_are_logged_by_strategy_and_reason_and_the_text_itself_at_no_level() {
    let raw = "秘密4711 {\"秘密4711\": }";
    let log = logged_by_read(Level::TRACE, raw, false);
    let lines: Vec<&str> = log.lines().collect();
    let warned = |line: &str, strategy: &str| line.contains("WARN") && line.contains(&format!("strategy={strategy}"));
    assert!(warned(lines[0], "direct_parse"), "{log}");
    assert!(warned(lines[1], "trim_and_parse"), "{log}");
    assert!(warned(lines[2], "extract_json_block"), "{log}");
    assert!(lines[3].contains("ERROR") && lines[3].contains("final_error"), "{log}");
    assert_eq!(lines.len(), 4, "{log}");
    assert!(!log.contains("4711"), "{log}");
}

#[test]
fn a_text_that_cannot_be_read_is_logged_at_debug_level_and_not_where_the_script_has_sensitive_variables() {
    let script = |sensitive: bool| {
        let declared = format!("{{ var: phone, type: string, sensitive: {sensitive} }}");
        test_session::program(&format!(
            "session:\n  session_id: s\n  declare: [{declared}]\n  phases:\n    - phase_id: p\n      topics:\n        - topic_id: t\n          actions: [{{ action_type: ai_ask, action_id: a, config: {{ content: 问, output: [{{ get: phone }}] }} }}]\n"
        ))
    };
    let (open, secret) = (script(false), script(true));
    assert!(logged(Level::DEBUG, || log_unreadable("4711", &open)).contains("4711"));
    assert_eq!(logged(Level::INFO, || log_unreadable("4711", &open)), "");
    let log = logged(Level::TRACE, || log_unreadable("4711", &secret));
    assert!(log.contains("sensitive") && !log.contains("4711"), "{log}");
}

#[test]
fn a_late_success_and_what_was_bent_are_logged_as_warnings_without_values_and_a_clean_reply_not_at_all() {
    assert_eq!(logged_by_read(Level::TRACE, "{\"BRIEF\":\"\"}", false), "");
    let log = logged_by_read(Level::TRACE, " {\"BRIEF\":4711}", false);
    assert!(log.contains("strategy=trim_and_parse") && log.contains("parse_retry_count=2"), "{log}");
    assert!(log.contains("/BRIEF coerced"), "{log}");
    assert!(log.lines().all(|line| line.contains("WARN")) && !log.contains("4711"), "{log}");
}

#[test]
fn all_coercions_of_a_reply_are_on_one_line() {
    let schema = serde_json::from_str(embedded::reply("ai_ask").unwrap()).unwrap();
    let shape = ReplyShape::new(&schema, &[]).unwrap();
    let log = logged(Level::TRACE, || drop(read("{\"content\":\"您好\"}", &shape, false)));
    assert_eq!(log.lines().count(), 1, "{log}");
    assert!(log.contains("/EXIT missing") && log.contains("/metrics missing"), "{log}");
}

#[test]
fn every_repair_is_logged_as_a_warning_without_the_text() {
    let log = logged_by_read(Level::INFO, "{'BRIEF': '秘密4711',}", true);
    assert!(log.contains("kind=other_quotes") && log.contains("kind=extra_comma at=22"), "{log}");
    assert!(log.lines().all(|line| line.contains("WARN")) && !log.contains("4711"), "{log}");
}

/// A model that answers actions, and returns an error with a message of the server for monitors.
struct MonitorsDenied;

#[async_trait]
impl Provider for MonitorsDenied {
    fn name(&self) -> &str {
        "refused"
    }

    async fn complete(&self, request: &ModelRequest, _live: &mut dyn LiveObserver) -> Result<ModelReply, ModelError> {
        if request.task.purpose == Purpose::Action {
            let text = test_session::reply(&request.task.kind, "好", false, "continue_needed");
            return Ok(ModelReply { text, ..ModelReply::default() });
        }
        let (host, message) = ("h".to_owned(), "content filter: 4711".to_owned());
        Err(ModelError::Http { host, status: 403, message, retry_after: None, attempts: 1 })
    }
}

#[test]
fn for_a_monitor_without_a_reply_the_kind_of_error_is_logged_without_the_message_of_the_server() {
    let program = test_session::program(
        "session:\n  session_id: s\n  phases:\n    - phase_id: p\n      topics:\n        - topic_id: t\n          actions: [{ action_type: ai_ask, action_id: a, config: { content: 问 } }]\n",
    );
    let log = logged(Level::TRACE, || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
            let mut session = test_session::start_conversation(
                &program,
                store,
                test_session::FixedModels::of(Arc::new(MonitorsDenied)),
            )
            .await;
            session.advance().await.unwrap();
            session.answer("嗯", None).await.unwrap();
            session.advance().await.unwrap();
            session.wait_for_result().await;
        });
    });
    assert!(log.contains("a monitor got no reply") && log.contains("http 403"), "{log}");
    assert!(!log.contains("4711"), "{log}");
}
