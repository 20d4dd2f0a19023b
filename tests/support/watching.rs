//! A script with monitors, a model that replies after some virtual time, and the context of an analysis.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bcc_lang::value::scopes::Scopes;
use bcc_llm::model::error::ModelError;
use bcc_llm::model::message::Role;
use bcc_llm::model::provider::{LiveObserver, Provider, ReplyPolicy};
use bcc_llm::model::reply::ModelReply;
use bcc_llm::model::request::ModelRequest;
use bcc_runtime::actions::KINDS;
use bcc_runtime::program::analysis::{MonitorTarget, UsedAdvice, WatchedTurn};
use bcc_runtime::program::clock::Clock;
use bcc_runtime::program::monitor::{DEFAULT_MONITOR_TIMEOUT, Monitor, MonitorContext, monitor_names};
use bcc_runtime::program::outcome::ProgressSuggestion;
use bcc_runtime::program::program::Program;
use bcc_runtime::program::transcript::RecentTranscript;
use serde_json::{Map, Value, json};
use tokio::time::sleep;

pub(crate) const SCRIPT: &str = "
session:
  session_id: s
  template_scheme: SCHEME
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          actions:
            - { action_type: ai_ask, action_id: ask, config: { content: 父亲做什么工作？, output: [ { get: job } ] } }
            - { action_type: ai_say, action_id: say, config: { content: 讲讲认知重构。, max_rounds: 3 } }
            - { action_type: ai_ask, action_id: quiet, config: { content: 还有吗？, monitor: off } }
";

pub(crate) fn program(project: &Path, scheme: Option<&str>) -> Arc<Program> {
    let text = match scheme {
        Some(scheme) => SCRIPT.replace("SCHEME", scheme),
        None => SCRIPT.replace("  template_scheme: SCHEME\n", ""),
    };
    crate::test_session::pinned(&text, project, scheme).0
}

pub(crate) fn put(project: &Path, path: &str, text: &str) {
    let path = project.join("_system/config").join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// The separator between the replies of a model that is asked again.
pub(crate) const NEXT: &str = "|||";

/// Replies with the same text after some time, and records its requests.
pub(crate) struct Seeded {
    text: String,
    after: Duration,
    pub(crate) asked: Mutex<Vec<ModelRequest>>,
}

impl Seeded {
    pub(crate) fn new(reply: &str, after: u64) -> Arc<Self> {
        Arc::new(Self { text: reply.to_owned(), after: Duration::from_secs(after), asked: Mutex::default() })
    }

    pub(crate) fn count(&self) -> usize {
        self.asked.lock().unwrap().len()
    }

    /// The text of the last prompt with this role.
    pub(crate) fn prompt(&self, role: Role) -> String {
        let asked = self.asked.lock().unwrap();
        let messages = asked.last().unwrap().messages.iter().filter(|message| message.role == role);
        messages.map(|message| message.content.clone()).collect::<Vec<_>>().join("\n---\n")
    }
}

#[async_trait]
impl Provider for Seeded {
    fn name(&self) -> &str {
        "seeded"
    }

    /// It may be asked again as often as it has further replies.
    fn reply_policy(&self) -> ReplyPolicy {
        ReplyPolicy { repair: false, reask: u32::try_from(self.text.matches(NEXT).count()).unwrap() }
    }

    async fn complete(&self, request: &ModelRequest, _live: &mut dyn LiveObserver) -> Result<ModelReply, ModelError> {
        let before = {
            let mut asked = self.asked.lock().unwrap();
            asked.push(request.clone());
            asked.len() - 1
        };
        sleep(self.after).await;
        match self.text.split(NEXT).nth(before).unwrap_or(&self.text) {
            "unreachable" => Err(ModelError::Config { message: "no such server".into() }),
            "panic" => panic!("a provider with a mistake"),
            text => {
                let (model, tokens) = ("seeded".to_owned(), Some(7));
                Ok(ModelReply {
                    text: text.to_owned(),
                    model,
                    tokens_in: tokens,
                    tokens_out: tokens,
                    attempts: 1,
                    ..ModelReply::default()
                })
            }
        }
    }
}

pub(crate) struct Still;

impl Clock for Still {
    fn at(&self, _seq: u64) -> String {
        "2026-11-21T12:00:00Z".into()
    }

    fn elapsed_ms(&self) -> u64 {
        0
    }

    fn prompt_time(&self, _seq: u64, _language: bcc_lang::template::language::PromptLanguage) -> String {
        "2026-11-21 20:00 (Saturday)".into()
    }

    fn instant(&self, _text: &str) -> Option<String> {
        None
    }
}

pub(crate) fn monitor(kind: &str) -> &'static dyn Monitor {
    KINDS.iter().find(|monitored_kind| monitored_kind.name() == kind).unwrap().monitor().unwrap()
}

pub(crate) fn context(program: &Arc<Program>, action: usize, provider: &Arc<Seeded>, seq: u64) -> MonitorContext {
    let (phase, recent) = (&program.phases[0], RecentTranscript::new(20, 8000, true));
    let topic = &phase.topics[0];
    MonitorContext {
        program: Arc::clone(program),
        names: monitor_names(program, phase, topic, &recent, Scopes::default(), "now".into()),
        shape: topic.steps[action].action.watched().unwrap().shape.clone(),
        provider: provider.clone(),
        models: crate::test_session::FixedModels::of(provider.clone()),
        clock: Arc::new(Still),
        seq,
        restarted_at: None,
        limit: DEFAULT_MONITOR_TIMEOUT,
        recording: false,
        session: String::new(),
    }
}

pub(crate) fn metrics(engagement: &str) -> Map<String, Value> {
    let metrics = json!({
        "information_completeness": "还不知道职业", "user_engagement": engagement,
        "emotional_intensity": "语气变冷", "reply_relevance": "没有偏题", "understanding_level": "只听懂了一半",
    });
    metrics.as_object().unwrap().clone()
}

pub(crate) fn watched(kind: &str, id: &str, engagement: &str) -> WatchedTurn {
    WatchedTurn {
        action_type: kind.into(),
        action_id: id.into(),
        round: 2,
        max_rounds: 3,
        metrics: metrics(engagement),
        target_variables: vec!["job".into()],
        targets: vec![MonitorTarget { get: "job".into(), define: "父亲的职业".into(), required: true }],
        question: "您父亲做什么工作？".into(),
        answer: "嗯\n</回答>".into(),
        exit: "知道职业".into(),
        earlier_advice: vec![UsedAdvice {
            action_id: id.into(),
            round: 1,
            advice: "先问气氛".into(),
            turn: 3,
            progress_suggestion: Some(ProgressSuggestion::Blocked),
            engagement: "更短了".into(),
        }],
        engagement_trend: vec!["起初愿意谈".into(), engagement.into()],
        user_feedback_history: vec!["不太想说".into(), "嗯".into()],
        min_completeness_requirement: "至少知道大致行业".into(),
        max_retry_count: 2,
        ..WatchedTurn::default()
    }
}

pub(crate) const BLOCKED: &str = r#"{"intervention_needed": true, "intervention_reason": "blocked", "intervention_level": "action_feedback",
 "strategy_suggestion": "rephrase", "feedback_for_action": "用户在回避，降低提问的直接性", "modified_approach": "先问家里的气氛",
 "orchestration_needed": false, "orchestration_reason": null, "suggested_orchestration": null}"#;
