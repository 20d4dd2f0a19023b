//! Tasks of plans that call a tool, when the process dies and when branches run the same plan (docs/plans.md).

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use bcc_lang::message::message::Message;
use bcc_llm::providers::offline::Offline;
use bcc_runtime::effects::tools::{ToolCall, ToolDescription, ToolError, ToolOutput, ToolProgress, Tools, matches};
use bcc_runtime::plan::access::PlanAccess;
use bcc_runtime::plan::document::PlanDocument;
use bcc_runtime::plan::task::TaskStatus;
use bcc_runtime::program::host_services::HostServices;
use bcc_runtime::program::program::Program;
use bcc_runtime::run::head::SessionStatus;
use bcc_runtime::run::session::{Session, SessionPause};
use bcc_store::contract::Store;
use serde_json::{Value, json};

use crate::crashing_store::{CrashMode, CrashingStore};
use crate::test_session::{FixedModels, SESSION, journal, program, resume_conversation_in, start_conversation_in};

/// The number of seeded runs.
const RUNS: u64 = 60;

/// The tool `mcp.box.put`, which changes something, or fails.
#[derive(Default)]
struct PutTool {
    calls: AtomicU32,
    fails: bool,
}

#[async_trait]
impl Tools for PutTool {
    async fn describe(&self, patterns: &[String]) -> (Vec<ToolDescription>, Vec<ToolError>) {
        let tool = ToolDescription {
            name: "mcp.box.put".to_owned(),
            description: String::new(),
            parameters: json!({ "type": "object" }),
            is_read_only: false,
        };
        let is_wanted = patterns.iter().any(|pattern| matches(pattern, &tool.name));
        (is_wanted.then_some(tool).into_iter().collect(), vec![])
    }

    async fn call(&self, call: &ToolCall<'_>, _: &dyn ToolProgress) -> Result<ToolOutput, ToolError> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        match self.fails {
            true => Err(ToolError::Failed { tool: call.tool.to_owned(), why: Message::word("the box is full") }),
            false => Ok(ToolOutput { value: json!("put").into(), is_truncated: false, is_cached: false }),
        }
    }
}

/// A session with the actions, the tool, and a store with the plan 5, whose only task calls the tool.
struct Setting {
    program: Arc<Program>,
    tools: Arc<PutTool>,
    store: Arc<CrashingStore>,
}

impl Setting {
    async fn new(mode: CrashMode, actions: &Value, fails: bool) -> Self {
        let script = json!({ "session": { "session_id": "s", "tools": ["mcp.box.put"],
            "phases": [{ "phase_id": "p", "topics": [{ "topic_id": "t", "actions": actions }] }] } });
        let store = CrashingStore::new(mode);
        let plan = json!({ "bcc_plan": 1, "plan_id": 5, "title": "Work", "tasks": [
            { "id": 10, "name": "Put", "metadata": { "tool": { "name": "mcp.box.put", "arguments": { "n": 1 } } } },
        ] });
        let plan = PlanDocument::read(plan.to_string().as_bytes()).unwrap();
        let plans = PlanAccess::new(Arc::<CrashingStore>::clone(&store), "default");
        plans.import(plan, false, "import", "2026-11-30T00:00:00Z").await.unwrap();
        let tools = Arc::new(PutTool { fails, ..PutTool::default() });
        Self { program: program(&script.to_string()), tools, store }
    }

    fn store(&self) -> Arc<dyn Store> {
        Arc::<CrashingStore>::clone(&self.store)
    }

    fn services(&self) -> HostServices {
        HostServices { tools: Arc::<PutTool>::clone(&self.tools), ..HostServices::default() }
    }

    async fn start(&self) -> Session {
        let models = FixedModels::without_monitors(Some(Arc::new(Offline)));
        start_conversation_in(&self.program, self.store(), models, None, self.services()).await
    }

    async fn resume(&self) -> Session {
        let models = FixedModels::without_monitors(Some(Arc::new(Offline)));
        resume_conversation_in(&self.program, self.store(), models, None, self.services()).await
    }

    /// Runs the session to its end, through every death, and skips each effect about which it asks. Returns the number of questions.
    async fn run(&self) -> u32 {
        let (mut session, mut questions) = (self.start().await, 0);
        for _ in 0..500 {
            let survived = match self.store.run_until_crash(session.advance()).await {
                Some(Ok(SessionPause::Waiting)) => {
                    questions += 1;
                    session.answer("skip", Some(&format!("mine-{questions}"))).await.unwrap();
                    true
                }
                Some(pause) => {
                    pause.unwrap();
                    break;
                }
                None => false,
            };
            if !survived {
                drop(session);
                let row = self.store().session(SESSION).await.unwrap().unwrap();
                if SessionStatus::parse(&row.status).unwrap().is_final() {
                    break;
                }
                session = self.resume().await;
            }
        }
        questions
    }

    fn calls(&self) -> u32 {
        self.tools.calls.load(Ordering::SeqCst)
    }

    /// The status and the error of the task.
    async fn task(&self) -> (TaskStatus, String) {
        let plans = PlanAccess::new(self.store(), "default");
        let read = plans.with_tree(5, |tree| {
            let task = tree.task(10).unwrap();
            (task.status, task.error.clone().unwrap_or_default())
        });
        read.await.unwrap()
    }

    async fn events(&self, kind: &str) -> usize {
        journal(&*self.store()).await.iter().filter(|event| event["type"] == kind).count()
    }
}

fn execute(id: &str) -> Value {
    json!({ "action_type": "execute_plan", "action_id": id, "config": { "plan_id": 5 } })
}

#[tokio::test]
async fn a_task_whose_end_is_in_the_plan_is_over_also_if_the_process_dies_before_the_session_has_stored_it() {
    for (fails, expected) in [(false, TaskStatus::Completed), (true, TaskStatus::Failed)] {
        // Each turn runs twice: what it had changed in the plan the first time is found there.
        let setting = Setting::new(CrashMode::Before, &json!([execute("ex")]), fails).await;
        assert_eq!(setting.run().await, 0, "{fails}");
        let (status, error) = setting.task().await;
        assert_eq!((status, setting.calls()), (expected, 1), "{fails}: {error}");
        assert_eq!(error.contains("the box is full"), fails, "{error}");
        assert_eq!((setting.events("effect_started").await, setting.events("effect_finished").await), (1, 1));
    }
}

#[tokio::test]
async fn a_task_that_two_branches_run_is_run_once_whenever_the_process_dies() {
    let branch = |id: &str| json!({ "id": id, "actions": [execute(id)] });
    let both = json!([{ "action_type": "parallel", "action_id": "both",
        "config": { "branches": [branch("one"), branch("two")] } }]);
    for mode in (0..RUNS).map(CrashMode::Sometimes) {
        let setting = Setting::new(mode, &both, false).await;
        let questions = setting.run().await;
        assert!(setting.calls() <= 1, "{mode:?}: {} calls, {questions} questions", setting.calls());
        let (status, error) = setting.task().await;
        assert!(status.is_over() && setting.events("effect_started").await == 1, "{mode:?}: {status:?} {error}");
    }
}
