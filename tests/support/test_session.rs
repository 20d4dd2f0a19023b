//! Sessions without an engine: a checked script, a test model, a store, and virtual time.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use bcc_engine::clock::FixedClock;
use bcc_engine::files::TemplateFolders;
use bcc_engine::pin::Pinned;
use bcc_engine::recheck::PinnedScript;
use bcc_lang::source::compose::parse;
use bcc_lang::source::text::SourceFile;
use bcc_lang::template::layers::collect;
use bcc_llm::model::error::ModelError;
use bcc_llm::model::provider::Provider;
use bcc_runtime::program::event::{Delta, Observer};
use bcc_runtime::program::host_services::HostServices;
use bcc_runtime::program::models::ModelProviders;
use bcc_runtime::program::program::Program;
use bcc_runtime::program::recheck::Recheck;
use bcc_runtime::program::services::Services;
use bcc_runtime::run::session::Session;
use bcc_runtime::run::start::{NewSession, SessionParts};
use bcc_store::contract::Store;
use serde_json::Value;

pub(crate) const SESSION: &str = "s";

/// A minimal template of a kind: its context, then the fields that it requests.
fn template(given: &str, fields: &str) -> String {
    let quoted: Vec<String> = fields.split(' ').map(|field| format!("\"{field}\"")).collect();
    format!("{given}\n{}\n{{{{ output_list }}}}\n", quoted.join(" "))
}

/// The checked script, with short templates, because thousands of sessions are run with it.
pub(crate) fn program(script: &str) -> Arc<Program> {
    let project = tempfile::tempdir().unwrap();
    let talk =
        "safety_risk content EXIT BRIEF metrics user_engagement emotional_intensity progress_suggestion metadata";
    let advice = "intervention_needed intervention_reason intervention_level strategy_suggestion feedback_for_action \
                  modified_approach orchestration_needed orchestration_reason suggested_orchestration";
    let advice = advice.split_whitespace().collect::<Vec<_>>().join(" ");
    let tag = "<{{ metrics.user_engagement }}>";
    for (name, text) in [
        ("ai_ask", template("{{ content }}", &format!("{talk} information_completeness reply_relevance"))),
        ("ai_say", template("{{ content }}", &format!("{talk} understanding_level"))),
        ("ai_ask_monitor", template(tag, &advice).replace("{{ output_list }}", "")),
        (
            "ai_say_monitor",
            template(tag, &format!("{advice} understanding_issue issue_type example_suggestion"))
                .replace("{{ output_list }}", ""),
        ),
    ] {
        let folder = project.path().join("_system/config/default");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(format!("{name}_v1.md")), text).unwrap();
    }
    checked(script, project.path())
}

/// The checked script, with the templates of a project.
pub(crate) fn checked(script: &str, project: &Path) -> Arc<Program> {
    pinned(script, project, None).0
}

/// The same with the templates of a scheme, and with what checks the script again after a plan has changed a topic.
pub(crate) fn pinned(script: &str, project: &Path, scheme: Option<&str>) -> (Arc<Program>, PinnedScript) {
    let file = Arc::new(SourceFile::new("s.yaml", script));
    let templates = collect(&TemplateFolders::of(project), scheme).unwrap();
    let pinned = Pinned::new(Arc::clone(&file), templates, BTreeMap::new());
    let (program, found) = pinned.check(parse(&file)).unwrap();
    let program = program.unwrap_or_else(|| {
        panic!("{}", found.iter().map(|found| found.message.to_string()).collect::<Vec<_>>().join("\n"))
    });
    (Arc::new(program), PinnedScript::new(Arc::new(pinned)))
}

/// Ignores all events, and rejects every plan of a topic.
pub(crate) struct SilentObserver;

impl Observer for SilentObserver {
    fn can_wait(&self) -> bool {
        true
    }

    fn delta(&self, _delta: &Delta<'_>) {}
}

impl Recheck for SilentObserver {
    fn actions(&self, _topic: &str) -> Option<Vec<Value>> {
        None
    }

    fn recheck(&self, _topic: &str, _actions: &[Value]) -> Result<Program, Vec<String>> {
        Err(vec!["no plan was expected".to_owned()])
    }
}

/// One model for the replies of a session, and one for its monitors.
pub(crate) struct FixedModels {
    reply_model: Option<Arc<dyn Provider>>,
    monitor_model: Option<Arc<dyn Provider>>,
}

impl FixedModels {
    pub(crate) fn of(model: Arc<dyn Provider>) -> Arc<Self> {
        Arc::new(Self { reply_model: Some(Arc::clone(&model)), monitor_model: Some(model) })
    }

    pub(crate) fn without_monitors(model: Option<Arc<dyn Provider>>) -> Arc<Self> {
        Arc::new(Self { reply_model: model, monitor_model: None })
    }
}

impl ModelProviders for FixedModels {
    fn provider(&self, _name: Option<&str>) -> Result<Arc<dyn Provider>, ModelError> {
        self.reply_model.clone().ok_or_else(|| ModelError::Config { message: "there is no such model".into() })
    }

    fn monitor(&self, _action_id: &str) -> Option<Arc<dyn Provider>> {
        self.monitor_model.clone()
    }
}

async fn parts(
    program: &Arc<Program>,
    store: Arc<dyn Store>,
    models: Arc<dyn ModelProviders>,
    recheck: Option<Arc<dyn Recheck>>,
    host_services: HostServices,
) -> SessionParts {
    let clock = FixedClock::new("2026-11-21T20:00:00Z".parse().unwrap());
    SessionParts {
        id: SESSION.to_owned(),
        program: Arc::clone(program),
        services: Services {
            models,
            clock: Arc::new(clock),
            observer: Arc::new(SilentObserver),
            recheck: recheck.unwrap_or_else(|| Arc::new(SilentObserver)),
            recorder: None,
            keeps_globals: false,
            host: host_services,
        },
        lock: store.lock(SESSION, "the test").await.unwrap(),
        store,
        script: program.id.clone(),
        model: "of the test".to_owned(),
        budget: Default::default(),
    }
}

pub(crate) async fn start_conversation(
    program: &Arc<Program>,
    store: Arc<dyn Store>,
    models: Arc<dyn ModelProviders>,
) -> Session {
    start_conversation_in(program, store, models, None, HostServices::default()).await
}

/// Starts a session whose topics plans may change if `recheck` allows it, with these host services.
pub(crate) async fn start_conversation_in(
    program: &Arc<Program>,
    store: Arc<dyn Store>,
    models: Arc<dyn ModelProviders>,
    recheck: Option<Arc<dyn Recheck>>,
    host_services: HostServices,
) -> Session {
    start_observed(parts(program, store, models, recheck, host_services).await).await
}

/// Starts a session that tells this observer what it does.
pub(crate) async fn start_conversation_for(
    observer: Arc<dyn Observer>,
    program: &Arc<Program>,
    store: Arc<dyn Store>,
    host_services: HostServices,
) -> Session {
    let mut parts = parts(program, store, FixedModels::without_monitors(None), None, host_services).await;
    parts.services.observer = observer;
    start_observed(parts).await
}

async fn start_observed(parts: SessionParts) -> Session {
    let new_session = NewSession {
        user: "default".to_owned(),
        script_sha256: String::new(),
        settings: "{}".to_owned(),
        manifest: "{}".to_owned(),
        documents: Vec::new(),
        given: Vec::new(),
        notebook: None,
    };
    Session::start(parts, new_session).await.unwrap()
}

/// Resumes the session, as in a new process.
pub(crate) async fn resume(program: &Arc<Program>, store: Arc<dyn Store>, models: Arc<dyn ModelProviders>) -> Session {
    resume_conversation_in(program, store, models, None, HostServices::default()).await
}

/// The same with the parameters of [`start_conversation_in`].
pub(crate) async fn resume_conversation_in(
    program: &Arc<Program>,
    store: Arc<dyn Store>,
    models: Arc<dyn ModelProviders>,
    recheck: Option<Arc<dyn Recheck>>,
    host_services: HostServices,
) -> Session {
    Session::resume(parts(program, store, models, recheck, host_services).await).await.unwrap()
}

pub(crate) async fn journal(store: &dyn Store) -> Vec<Value> {
    let rows = store.journal(SESSION, 0, usize::MAX).await.unwrap();
    rows.iter().map(|row| serde_json::from_str(&row.body).unwrap()).collect()
}

/// A valid reply to an `ai_ask` or `ai_say`.
pub(crate) fn reply(kind: &str, engagement: &str, exit: bool, suggestion: &str) -> String {
    let mut metrics = serde_json::json!({ "user_engagement": engagement, "emotional_intensity": "平静" });
    let own: &[&str] =
        if kind == "ai_ask" { &["information_completeness", "reply_relevance"] } else { &["understanding_level"] };
    for name in own {
        metrics[*name] = "还好".into();
    }
    serde_json::json!({
        "safety_risk": { "detected": false }, "content": "嗯", "EXIT": if exit { "YES" } else { "NO" }, "BRIEF": "",
        "metrics": metrics, "progress_suggestion": suggestion,
        "metadata": { "emotional_tone": "平静", "crisis_signal": false },
    })
    .to_string()
}
