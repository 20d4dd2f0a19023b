//! Sessions without an engine: a checked script, a model of the test's own, an archive, and virtual time.

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

/// A template of a kind, as short as can be: what it is given, then the fields that it asks for.
fn template(given: &str, fields: &str) -> String {
    let quoted: Vec<String> = fields.split(' ').map(|field| format!("\"{field}\"")).collect();
    format!("{given}\n{}\n{{{{ output_list }}}}\n", quoted.join(" "))
}

/// The script, checked, with short templates: thousands of sessions are run with it.
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

/// The script, checked, with the templates of a project.
pub(crate) fn checked(script: &str, project: &Path) -> Arc<Program> {
    pinned(script, project, None).0
}

/// The same with those of a scheme, and what checks it again with a topic that a plan has changed.
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

/// Hears nothing; and no topic of these scripts is planned anew.
pub(crate) struct Nobody;

impl Observer for Nobody {
    fn delta(&self, _delta: &Delta<'_>) {}
}

impl Recheck for Nobody {
    fn actions(&self, _topic: &str) -> Option<Vec<Value>> {
        None
    }

    fn recheck(&self, _topic: &str, _actions: &[Value]) -> Result<Program, Vec<String>> {
        Err(vec!["no plan was expected".to_owned()])
    }
}

/// One model for what a session says, and one for its monitors.
pub(crate) struct Only {
    speaks: Option<Arc<dyn Provider>>,
    watches: Option<Arc<dyn Provider>>,
}

impl Only {
    pub(crate) fn of(model: Arc<dyn Provider>) -> Arc<Self> {
        Arc::new(Self { speaks: Some(Arc::clone(&model)), watches: Some(model) })
    }

    pub(crate) fn without_monitors(model: Option<Arc<dyn Provider>>) -> Arc<Self> {
        Arc::new(Self { speaks: model, watches: None })
    }
}

impl ModelProviders for Only {
    fn provider(&self, _name: Option<&str>) -> Result<Arc<dyn Provider>, ModelError> {
        self.speaks.clone().ok_or_else(|| ModelError::Config { message: "there is no such model".into() })
    }

    fn monitor(&self, _action_id: &str) -> Option<Arc<dyn Provider>> {
        self.watches.clone()
    }
}

async fn parts(
    program: &Arc<Program>,
    archive: Arc<dyn Store>,
    models: Arc<dyn ModelProviders>,
    recheck: Option<Arc<dyn Recheck>>,
    outside: HostServices,
) -> SessionParts {
    let clock = FixedClock::new("2026-11-21T20:00:00Z".parse().unwrap());
    SessionParts {
        id: SESSION.to_owned(),
        program: Arc::clone(program),
        services: Services {
            models,
            clock: Arc::new(clock),
            observer: Arc::new(Nobody),
            recheck: recheck.unwrap_or_else(|| Arc::new(Nobody)),
            recorder: None,
            outside,
        },
        lock: archive.lock(SESSION, "the test").await.unwrap(),
        archive,
        script: program.id.clone(),
        model: "of the test".to_owned(),
        budget: Default::default(),
    }
}

pub(crate) async fn begin(program: &Arc<Program>, archive: Arc<dyn Store>, models: Arc<dyn ModelProviders>) -> Session {
    begin_in(program, archive, models, None, HostServices::default()).await
}

/// A new session whose topics plans may change, as far as `recheck` lets them, and that may touch this outside world.
pub(crate) async fn begin_in(
    program: &Arc<Program>,
    archive: Arc<dyn Store>,
    models: Arc<dyn ModelProviders>,
    recheck: Option<Arc<dyn Recheck>>,
    outside: HostServices,
) -> Session {
    let birth = NewSession {
        user: "default".to_owned(),
        script_sha256: String::new(),
        settings: "{}".to_owned(),
        manifest: "{}".to_owned(),
        documents: Vec::new(),
        given: Vec::new(),
    };
    Session::start(parts(program, archive, models, recheck, outside).await, birth).await.unwrap()
}

/// The session again, in a new process, so to speak.
pub(crate) async fn resume(
    program: &Arc<Program>,
    archive: Arc<dyn Store>,
    models: Arc<dyn ModelProviders>,
) -> Session {
    resume_in(program, archive, models, None, HostServices::default()).await
}

/// The same with what [`begin_in`] takes.
pub(crate) async fn resume_in(
    program: &Arc<Program>,
    archive: Arc<dyn Store>,
    models: Arc<dyn ModelProviders>,
    recheck: Option<Arc<dyn Recheck>>,
    outside: HostServices,
) -> Session {
    Session::resume(parts(program, archive, models, recheck, outside).await).await.unwrap()
}

pub(crate) async fn journal(archive: &dyn Store) -> Vec<Value> {
    let rows = archive.journal(SESSION, 0, usize::MAX).await.unwrap();
    rows.iter().map(|row| serde_json::from_str(&row.body).unwrap()).collect()
}

/// A faultless reply of an `ai_ask` or `ai_say`.
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
